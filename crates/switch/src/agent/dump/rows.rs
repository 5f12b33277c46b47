//! Entries as the bytes of statistics, from one template for each row of entries that look alike.
//!
//! Entries of a big table mostly ask for the same fields and do the same. Only the first of them is
//! made into a message's row; of the others the values are written into its bytes.

use dataplane::pipeline::Pipeline;
use dataplane::table::{Glance, Look, Selection};
use openflow::codec::{FlowNumbers, FlowTemplate, ROWS_BYTES_MAX, put_flow_row};
use openflow::model::FlowStats;
use openflow::version::Version;
use packet::field::Field;
use packet::time::Nanos;

use super::ROW_STEPS;
use crate::lower::{self, express, port_up};

/// Appends the next entries that fit into one part, for so many steps at most.
pub fn fill(
    version: Version,
    (pipeline, now): (&Pipeline, Nanos),
    selection: &mut Selection,
    out: &mut Vec<u8>,
    steps: &mut usize,
) {
    let mut known: Option<(Look, FlowTemplate)> = None;
    let (mut count, mut too_many) = (0, None);
    for entry in selection.glances(pipeline.tables(), now, steps) {
        let before = out.len();
        match known.as_ref().filter(|(look, _)| entry.has(look)) {
            Some((_, template)) => put(template, &entry, out),
            None => {
                let row = lower::flow_stats_up(&entry.record(), false);
                let row = express::flow_stats(version, row);
                let said = put_flow_row(version, &row, out);
                debug_assert!(said, "what a version cannot say is left out");
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

/// Appends an entry that has the template's look.
fn put(template: &FlowTemplate, entry: &Glance<'_>, out: &mut Vec<u8>) {
    let (idle, hard) = entry.timeouts();
    let mut row = template.begin(
        &FlowNumbers {
            age: entry.age(),
            priority: entry.priority(),
            idle_timeout_s: lower::seconds_up(idle),
            hard_timeout_s: lower::seconds_up(hard),
            cookie: entry.cookie(),
            packets: entry.frames(),
            bytes: entry.bytes(),
        },
        out,
    );
    entry.values(|field, value| row.put(told(field, value)));
}

/// Whether a row's fields are those that the entry names, with its values: nothing was left out.
fn says_as_named(row: &FlowStats, entry: &Glance<'_>) -> bool {
    let mut values = Vec::new();
    entry.values(|field, value| values.push((field, told(field, value))));
    row.matching.fields().iter().map(|row| (row.field, row.value)).eq(values)
}

/// A value as it is told: ports have other numbers.
#[inline]
fn told(field: Field, value: u128) -> u128 {
    match field {
        Field::InPort | Field::InPhyPort | Field::ActsetOutput => port_up(value as u32).into(),
        _ => value,
    }
}
