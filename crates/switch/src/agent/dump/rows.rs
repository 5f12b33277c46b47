//! Entries as the bytes of statistics, from one template for each row of entries that look alike.
//!
//! Entries of a big table mostly ask for the same fields and do the same. Only the first of them is
//! made into a message's row; of the others the values are written into its bytes.

use dataplane::flow::{FlowFilter, FlowRecord};
use dataplane::pipeline::Pipeline;
use openflow::codec::{FlowNumbers, FlowTemplate, ROWS_BYTES_MAX, put_flow_row};
use openflow::version::Version;
use packet::field::Field;
use packet::time::Nanos;

use crate::lower::{self, express, port_up};

/// What the entries of one look have in common.
struct Look {
    like: FlowRecord,
    template: FlowTemplate,
}

impl Look {
    fn fits(&self, record: &FlowRecord) -> bool {
        let like = &self.like;
        std::sync::Arc::ptr_eq(&like.instructions, &record.instructions)
            && like.table == record.table
            && like.flags == record.flags
            && like.importance == record.importance
            && like.named == record.named
            && like.matching.asks_as(&record.matching)
    }
}

/// Appends the next entries that fit into one part; whether these are the last.
pub fn fill(
    version: Version,
    (pipeline, now): (&Pipeline, Nanos),
    filter: &FlowFilter,
    place: &mut usize,
    out: &mut Vec<u8>,
) -> bool {
    let mut look: Option<Look> = None;
    for record in pipeline.tables().records(filter, *place, now) {
        let before = out.len();
        match look.as_ref().filter(|look| look.fits(&record)) {
            Some(look) => look.template.put(&numbers(&record), values(&record), out),
            None => {
                let row = lower::flow_stats_up(&record, false);
                let row = express::flow_stats(version, row);
                let said = put_flow_row(version, &row, out);
                debug_assert!(said, "what a version cannot say is left out");
                // Where nothing was left out, the fields of the row are those that were named.
                let template = FlowTemplate::of(version, &row).filter(|_| {
                    row.matching.names() == record.named && values_agree(&row, &record)
                });
                look = template.map(|template| Look { like: record.clone(), template });
            }
        }
        if out.len() > ROWS_BYTES_MAX {
            out.truncate(before);
            return false;
        }
        *place = record.place + 1;
    }
    true
}

fn values_agree(row: &openflow::model::FlowStats, record: &FlowRecord) -> bool {
    row.matching.fields().iter().map(|field| field.value).eq(values(record))
}

/// The values of the fields as they were named, in their order.
fn values(record: &FlowRecord) -> impl Iterator<Item = u128> + '_ {
    let values = record.named.iter().zip(record.matching.values(record.named));
    values.map(|(field, value)| match field {
        Field::InPort | Field::InPhyPort | Field::ActsetOutput => port_up(value as u32).into(),
        _ => value,
    })
}

fn numbers(record: &FlowRecord) -> FlowNumbers {
    FlowNumbers {
        age: record.age,
        priority: record.priority,
        idle_timeout_s: lower::seconds_up(record.idle_timeout),
        hard_timeout_s: lower::seconds_up(record.hard_timeout),
        cookie: record.cookie,
        packets: record.frames,
        bytes: record.bytes,
    }
}
