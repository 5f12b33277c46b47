//! Matches: the same fields on both sides, but for the numbers of ports.
//!
//! The core's matches are canonical: they forget fields that cannot matter. So that a controller
//! finds its own words again in statistics, the set of fields that it named goes along.

use dataplane::matching::Match;
use openflow::model::{self, FieldMatch, reserved};
use openflow::version::ErrorCode;
use packet::field::FieldSet;

use super::{is_port, port_down, port_up};

/// The core's match and the fields that were named, or what cannot be matched.
pub fn match_down(from: &model::Match) -> Result<(Match, FieldSet), ErrorCode> {
    if !from.experimenter().is_empty() {
        return Err(ErrorCode::MatchBadField);
    }
    let asked: Result<Vec<_>, _> = from.fields().iter().map(field_down).collect();
    Ok((Match::asking(&asked?), from.names()))
}

fn field_down(from: &FieldMatch) -> Result<(packet::field::Field, u128, u128), ErrorCode> {
    if !is_port(from.field) {
        return Ok((from.field, from.value, from.mask));
    }
    let port = from.value as model::PortNo;
    if port > 0xffff && port < reserved::MAX {
        return Err(ErrorCode::MatchBadValue);
    }
    Ok((from.field, port_down(port).into(), from.mask))
}

/// The match in OpenFlow's terms, with the fields that were named.
pub fn match_up(from: &Match, named: FieldSet) -> model::Match {
    let fields = from.asked(named).into_iter().map(|(field, value, mask)| {
        let value = if is_port(field) { port_up(value as u32).into() } else { value };
        FieldMatch { field, value, mask }
    });
    fields.collect()
}
