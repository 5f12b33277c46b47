//! Matches: the same fields on both sides, but for the numbers of ports.
//!
//! The core's matches are canonical: they forget fields that cannot matter. So that a controller
//! finds its own words again in statistics, the set of fields that it named goes along ([`Named`]).

use dataplane::flow::Named;
use dataplane::matching::{Asked, Match};
use openflow::model::{self, FieldMatch, reserved};
use openflow::version::{ErrorCode, Version};

use super::{is_port, port_down, port_up};

/// The core's match and the fields that were named, or what cannot be matched. In 1.0 the Ethernet
/// type is the one behind the first tag.
pub fn match_down(from: &model::Match, version: Version) -> Result<(Match, Named), ErrorCode> {
    if !from.experimenter().is_empty() {
        return Err(ErrorCode::MatchBadField);
    }
    from.fields().iter().try_for_each(check)?;
    let named = Named { fields: from.names(), icmp_upper: from.icmp_upper() };
    let matching = Match::asking_each(from.fields().iter().map(field_down));
    Ok(match version {
        Version::V1_0 => (matching.behind_one_tag(), named),
        _ => (matching, named),
    })
}

/// Refuses numbers that no port can have.
fn check(from: &FieldMatch) -> Result<(), ErrorCode> {
    let port = from.value as model::PortNo;
    match is_port(from.field) && port > 0xffff && port < reserved::MAX {
        true => Err(ErrorCode::MatchBadValue),
        false => Ok(()),
    }
}

fn field_down(from: &FieldMatch) -> Asked {
    let value = match is_port(from.field) {
        true => port_down(from.value as model::PortNo).into(),
        false => from.value,
    };
    (from.field, value, from.mask)
}

/// The match in OpenFlow's terms, with the fields that were named.
pub fn match_up(from: &Match, named: Named) -> model::Match {
    let fields = from.asked(named.fields).into_iter().map(|(field, value, mask)| {
        let value = if is_port(field) { port_up(value as u32).into() } else { value };
        FieldMatch { field, value, mask }
    });
    fields.collect::<model::Match>().with_icmp_upper(named.icmp_upper)
}
