//! Statistics: short ones at once, those of entries in parts while the controller reads them.
//!
//! Source: OpenFlow switch specification 1.0.0, section 5.3.5. A walk over the entries remembers
//! its place, not the entries, so that a reply of any length costs one part of memory; entries
//! that come or go meanwhile may or may not be in it, every other one is in it once.

use dataplane::flow::FlowFilter;
use dataplane::pipeline::Pipeline;
use openflow::header::Xid;
use openflow::model::{
    AggregateStats, FlowStats, Message, MultipartReply, MultipartReplyBody, PortNo,
    SwitchDescription, TableStats, reserved,
};
use packet::time::Nanos;

use crate::forward::Lane;
use crate::lower;

use super::port_book;

/// Entries in one part of a reply: with as many actions as an entry can have (64) they stay below
/// the 64 KiB that a message may have.
const PART_FLOWS: usize = 64;

/// Actions in one part of a reply.
const PART_ACTIONS: usize = 2048;

/// A walk over the entries for a reply that is under way.
#[derive(Debug)]
pub struct Dump {
    xid: Xid,
    filter: FlowFilter,
    place: usize,
}

impl Dump {
    /// Begins to answer the request with this number.
    pub fn new(xid: Xid, filter: FlowFilter) -> Self {
        Dump { xid, filter, place: 0 }
    }

    /// The number of the request that it answers.
    pub fn xid(&self) -> Xid {
        self.xid
    }

    /// The next part, and whether it is the last.
    pub fn next(&mut self, pipeline: &Pipeline, now: Nanos) -> (Message, bool) {
        let mut flows: Vec<FlowStats> = Vec::new();
        let mut actions = 0;
        let mut last = true;
        for record in pipeline.tables().records(&self.filter, self.place, now) {
            actions += record.instructions.actions().count();
            if flows.len() == PART_FLOWS || (!flows.is_empty() && actions > PART_ACTIONS) {
                last = false;
                break;
            }
            self.place = record.place + 1;
            flows.push(lower::flow_stats_up(&record));
        }
        (reply_part(MultipartReplyBody::Flow(flows), !last), last)
    }
}

fn reply_part(body: MultipartReplyBody, more: bool) -> Message {
    Message::MultipartReply(MultipartReply { more, body })
}

/// A reply in one message.
pub fn whole(body: MultipartReplyBody) -> Message {
    reply_part(body, false)
}

/// The sums over the entries.
pub fn aggregate(pipeline: &Pipeline, filter: Option<&FlowFilter>) -> MultipartReplyBody {
    let totals = filter.map(|filter| pipeline.tables().totals(filter)).unwrap_or_default();
    MultipartReplyBody::Aggregate(AggregateStats {
        packets: totals.frames,
        bytes: totals.bytes,
        flows: totals.entries as u32,
    })
}

/// The tables.
pub fn tables(pipeline: &Pipeline) -> MultipartReplyBody {
    use dataplane::flow::Part;
    use openflow::model::{FIELDS_1_0, TableAbilities};
    use packet::field::FieldSet;
    let rows = lower::flow::TABLES.map(|table| {
        let account = pipeline.tables().part_account(0, table);
        let (name, wildcards) = match table {
            Part::Exact => ("exact", FieldSet::NONE),
            Part::Wildcard => ("wildcard", FIELDS_1_0),
        };
        TableStats {
            table: lower::flow::table_up(table),
            entries: account.entries as u32,
            lookups: account.lookups,
            matched: account.matched,
            abilities: Some(TableAbilities {
                name: name.into(),
                wildcards,
                entries_max: account.entries_max as u32,
                ..TableAbilities::default()
            }),
        }
    });
    MultipartReplyBody::Table(rows.to_vec())
}

/// One port, or all with [`reserved::NONE`].
pub fn ports(lanes: &mut [Lane], port: PortNo) -> MultipartReplyBody {
    let wanted = |lane: &&mut Lane| port == reserved::NONE || lane.number == port;
    MultipartReplyBody::Port(lanes.iter_mut().filter(wanted).map(port_book::stats).collect())
}

/// Who made the switch, and its names.
pub fn description(datapath: &str) -> MultipartReplyBody {
    MultipartReplyBody::Desc(SwitchDescription {
        manufacturer: "planimeter".into(),
        hardware: "user space".into(),
        software: concat!("planimeter ", env!("CARGO_PKG_VERSION")).into(),
        serial_number: "none".into(),
        datapath: datapath.into(),
    })
}
