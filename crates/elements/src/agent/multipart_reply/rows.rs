//! Encodes flow entries as flow statistics, with one template for all entries of the same shape.
//!
//! Most flow entries of a large table have the same match fields and instructions. Only the first
//! one is converted to a message row. For the others only the values are written into a copy of its
//! bytes.

use dataplane::pipeline::Pipeline;
use dataplane::table::{EntryProperties, FlowRef, Selection};
use openflow::codec::{FlowNumbers, FlowTemplate, ROWS_BYTES_MAX, put_flow_row};
use openflow::model::FlowStats;
use openflow::version::Version;
use packet::field::Field;
use packet::time::Nanos;

use super::ROW_STEPS;
use crate::translate::{self, downgrade, port_up};

/// Appends the next flow entries that fit into one part, within `steps` steps.
pub fn fill(
    version: Version,
    (pipeline, now): (&Pipeline, Nanos),
    selection: &mut Selection,
    out: &mut Vec<u8>,
    steps: &mut usize,
) {
    let mut known: Option<(EntryProperties, FlowTemplate)> = None;
    let (mut count, mut too_many) = (0, None);
    for entry in selection.glances(pipeline.tables(), now, steps) {
        let before = out.len();
        match known.as_ref().filter(|(look, _)| entry.has(look)) {
            Some((_, template)) => put(template, &entry, out),
            None => {
                let row = translate::flow_stats_up(&entry.record(), false);
                let row = downgrade::flow_stats(version, row);
                let is_encoded = put_flow_row(version, &row, out);
                debug_assert!(is_encoded, "fields that the version lacks are removed");
                let template = FlowTemplate::of(version, &row);
                let template = template.filter(|_| says_as_named(&row, &entry));
                known = template.map(|template| (entry.look(), template));
            }
        }
        if out.len() > ROWS_BYTES_MAX {
            out.truncate(before);
            too_many = Some(entry.place());
            break;
        }
        count += 1;
    }
    too_many.iter().for_each(|&place| selection.seek(place));
    *steps = steps.saturating_sub(count * ROW_STEPS);
}

/// Appends a flow entry that has the template's shape.
fn put(template: &FlowTemplate, entry: &FlowRef<'_>, out: &mut Vec<u8>) {
    let (idle, hard) = entry.timeouts();
    let mut row = template.begin(
        &FlowNumbers {
            age: entry.age(),
            priority: entry.priority(),
            idle_timeout_s: translate::seconds_up(idle),
            hard_timeout_s: translate::seconds_up(hard),
            cookie: entry.cookie(),
            packets: entry.frames(),
            bytes: entry.bytes(),
        },
        out,
    );
    entry.values(|field, value| row.put(told(field, value)));
}

/// Whether a row has exactly the fields and values of the entry, so that nothing was left out.
fn says_as_named(row: &FlowStats, entry: &FlowRef<'_>) -> bool {
    let mut values = Vec::new();
    entry.values(|field, value| values.push((field, told(field, value))));
    row.matching.fields().iter().map(|row| (row.field, row.value)).eq(values)
}

/// Converts a value for the reply: ports have other numbers.
#[inline]
fn told(field: Field, value: u128) -> u128 {
    match field {
        Field::InPort | Field::InPhyPort | Field::ActsetOutput => port_up(value as u32).into(),
        _ => value,
    }
}
