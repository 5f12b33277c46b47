//! Matches, and which of their fields were named.
//!
//! The core's matches are canonical: they forget fields that cannot matter. So that a controller
//! finds its own words again in statistics, the fields that it named go along as a set.

use dataplane::matching::{Asked, Match};
use openflow::model::{self, Field, FieldMatch};
use packet::field::FieldSet;

use super::{port_down, port_up};

/// The lower byte of an ARP operation, which is all that 1.0 asks for.
const ARP_OP_MASK: u128 = 0xff;

/// The core's match, and the note that says which fields were named.
pub fn match_down(from: &model::Match) -> (Match, FieldSet) {
    let down = |row: &FieldMatch| -> Asked {
        match row.field {
            Field::InPort => (row.field, port_down(row.value as u32).into(), row.mask),
            Field::ArpOp => (row.field, row.value & ARP_OP_MASK, ARP_OP_MASK),
            field => (field, row.value, row.mask),
        }
    };
    let asked: Vec<Asked> = from.fields().iter().map(down).collect();
    (Match::asking(&asked), from.names())
}

/// The match in OpenFlow's terms, with the fields that `named` holds.
pub fn match_up(from: &Match, named: FieldSet) -> model::Match {
    let rows = from.asked(named).into_iter().map(|(field, value, mask)| match field {
        Field::InPort => FieldMatch::exact(field, port_up(value as u32)),
        Field::ArpOp => FieldMatch::exact(field, value),
        _ => FieldMatch::masked(field, value, mask),
    });
    rows.collect()
}
