//! Matches: the same fields on both sides, except for port numbers.
//!
//! The core's matches are canonical: they omit fields that have no effect. The set of fields that
//! the controller specified is stored with them ([`MatchDetails`]), so that statistics return the original
//! match.

use dataplane::flow::MatchDetails;
use dataplane::matching::{Match, MatchedFields};
use openflow::model::{self, FieldMatch, reserved};
use openflow::version::{ErrorCode, Version};

use super::{is_port, port_down, port_up};

/// Converts a match to the core, with the set of specified fields, or returns its error. In 1.0 the
/// Ethernet type is the one behind the first VLAN tag.
pub fn match_down(
    from: &model::Match,
    version: Version,
) -> Result<(Match, MatchDetails), ErrorCode> {
    if !from.experimenter().is_empty() {
        return Err(ErrorCode::MatchBadField);
    }
    from.fields().iter().try_for_each(check)?;
    let named = MatchDetails { fields: from.names(), icmp_upper: from.icmp_upper() };
    let matching = Match::asking_each(from.fields().iter().map(field_down));
    Ok(match version {
        Version::V1_0 => (matching.behind_one_tag(), named),
        _ => (matching, named),
    })
}

/// Rejects numbers that no port can have.
fn check(from: &FieldMatch) -> Result<(), ErrorCode> {
    let port = from.value as model::PortNo;
    match is_port(from.field) && port > 0xffff && port < reserved::MAX {
        true => Err(ErrorCode::MatchBadValue),
        false => Ok(()),
    }
}

fn field_down(from: &FieldMatch) -> MatchedFields {
    let value = match is_port(from.field) {
        true => port_down(from.value as model::PortNo).into(),
        false => from.value,
    };
    (from.field, value, from.mask)
}

/// Converts a match to OpenFlow, with the specified fields.
pub fn match_up(from: &Match, named: MatchDetails) -> model::Match {
    let fields = from.asked(named.fields).into_iter().map(|(field, value, mask)| {
        let value = if is_port(field) { port_up(value as u32).into() } else { value };
        FieldMatch { field, value, mask }
    });
    fields.collect::<model::Match>().with_icmp_upper(named.icmp_upper)
}
