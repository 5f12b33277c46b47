//! Long replies, made in parts while the controller reads them.
//!
//! A walk remembers its place, not what it walks over, so that a reply of any length costs one part
//! of memory; what comes or goes meanwhile may or may not be in it, everything else is in it once.

use dataplane::flow::FlowFilter;
use dataplane::pipeline::Pipeline;
use openflow::codec;
use openflow::header::Xid;
use openflow::model::flow::counters::FlowStatsReason;
use openflow::model::flow::monitor::{FlowEvent, FlowUpdate};
use openflow::model::multipart::{FlowStats, MultipartReply, MultipartReplyBody};
use openflow::model::{Instruction, Message};
use openflow::version::{ErrorCode, Version};
use packet::time::Nanos;

use crate::lower;
use crate::lower::express;

use super::monitor::Monitor;
use super::news::counters_up;
use super::nicira::flows_up;

/// Rows as bytes.
mod rows;

/// Bytes of one part, as they are reckoned: a part stays below the 64 KiB of a message.
const PART_BYTES: usize = 40 << 10;

/// Bytes that an entry takes at most besides its actions, with forty fields of sixteen bytes.
const FLOW_BYTES: usize = 400;

/// Bytes that one action takes at most, with a masked field of sixteen bytes.
const ACTION_BYTES: usize = 48;

/// A walk for a reply that is under way.
#[derive(Debug)]
pub struct Dump {
    xid: Xid,
    version: Version,
    what: What,
    place: usize,
}

/// What is walked over.
#[derive(Debug)]
enum What {
    /// Entries, and whether the first table's parts count as tables.
    Flows(FlowFilter, bool),
    /// Entries in Nicira's words.
    NiciraFlows(FlowFilter),
    /// Entries without what they do (1.5).
    FlowCounters(FlowFilter),
    /// Entries at the beginning of monitors.
    Monitors(Vec<Monitor>),
    /// Parts that are made already, last first.
    Ready(Vec<MultipartReplyBody>),
}

impl Dump {
    /// Begins to answer the request with this number with entries.
    pub fn flows(xid: Xid, version: Version, filter: FlowFilter, parts: bool) -> Self {
        Dump { xid, version, what: What::Flows(filter, parts), place: 0 }
    }

    /// The same in Nicira's words.
    pub fn nicira_flows(xid: Xid, filter: FlowFilter) -> Self {
        Dump { xid, version: Version::V1_0, what: What::NiciraFlows(filter), place: 0 }
    }

    /// The same with entries' counters alone.
    pub fn flow_counters(xid: Xid, version: Version, filter: FlowFilter) -> Self {
        Dump { xid, version, what: What::FlowCounters(filter), place: 0 }
    }

    /// The same with the entries that these monitors find at their beginning.
    pub fn monitors(xid: Xid, version: Version, monitors: Vec<Monitor>) -> Self {
        Dump { xid, version, what: What::Monitors(monitors), place: 0 }
    }

    /// The same with rows that are made already, in as many parts as they need.
    pub fn ready(xid: Xid, version: Version, body: MultipartReplyBody) -> Result<Self, ErrorCode> {
        // What a version has no words for has been left out; if not, there is nothing to tell.
        let parts = codec::split(version, body).map_err(|_| ErrorCode::RequestBadMultipart)?;
        let parts = parts.into_iter().rev().map(|part| part.body).collect();
        Ok(Dump { xid, version, what: What::Ready(parts), place: 0 })
    }

    /// The number of the request that it answers.
    pub fn xid(&self) -> Xid {
        self.xid
    }

    /// The rows of the next part as bytes, and whether it is the last; `None` where they are not made
    /// so.
    pub fn next_rows(
        &mut self,
        pipeline: &Pipeline,
        now: Nanos,
        rows: &mut Vec<u8>,
    ) -> Option<bool> {
        let has_rows = (Version::V1_2..=Version::V1_4).contains(&self.version);
        match &mut self.what {
            What::Flows(filter, false) if has_rows => {
                Some(rows::fill(self.version, (pipeline, now), filter, &mut self.place, rows))
            }
            _ => None,
        }
    }

    /// The next part, and whether it is the last.
    pub fn next(&mut self, pipeline: &Pipeline, now: Nanos) -> (Message, bool) {
        let (place, version) = (&mut self.place, self.version);
        let (body, last) = match &mut self.what {
            What::Flows(filter, parts) => {
                let (flows, last) = flows(pipeline, filter, *parts, place, now);
                let flows = flows.into_iter().map(|row| express::flow_stats(version, row));
                (MultipartReplyBody::Flow(flows.collect()), last)
            }
            What::NiciraFlows(filter) => {
                let (flows, last) = flows(pipeline, filter, false, place, now);
                (flows_up(flows), last)
            }
            What::FlowCounters(filter) => {
                let (flows, last) = flows(pipeline, filter, false, place, now);
                let told = flows.iter().map(|row| counters_up(row, FlowStatsReason::Request));
                (MultipartReplyBody::FlowStats(told.collect()), last)
            }
            What::Monitors(monitors) => initial(pipeline, monitors, place, now),
            What::Ready(parts) => {
                let part = parts.pop().expect("a reply has a part");
                (part, parts.is_empty())
            }
        };
        (Message::MultipartReply(MultipartReply { more: !last, body }), last)
    }
}

/// The next entries that fit into one part, and whether these are the last.
fn flows(
    pipeline: &Pipeline,
    filter: &FlowFilter,
    parts: bool,
    place: &mut usize,
    now: Nanos,
) -> (Vec<FlowStats>, bool) {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for record in pipeline.tables().records(filter, *place, now) {
        let row = lower::flow_stats_up(&record, parts);
        bytes += size(&row);
        if !rows.is_empty() && bytes > PART_BYTES {
            return (rows, false);
        }
        *place = record.place + 1;
        rows.push(row);
    }
    (rows, true)
}

/// The next entries of the first of these monitors; when it has no more, the next one's turn comes.
fn initial(
    pipeline: &Pipeline,
    monitors: &mut Vec<Monitor>,
    place: &mut usize,
    now: Nanos,
) -> (MultipartReplyBody, bool) {
    let Some(monitor) = monitors.first() else {
        return (MultipartReplyBody::FlowMonitor(Vec::new()), true);
    };
    let (mut rows, mut bytes, mut all) = (Vec::new(), 0, true);
    let filter = monitor.filter();
    for record in pipeline.tables().records(&filter, *place, now) {
        bytes += size(&lower::flow_stats_up(&record, false));
        if !rows.is_empty() && bytes > PART_BYTES {
            all = false;
            break;
        }
        *place = record.place + 1;
        rows.push(FlowUpdate::Full(monitor.update(&record, FlowEvent::Initial)));
    }
    if all {
        monitors.remove(0);
        *place = 0;
    }
    (MultipartReplyBody::FlowMonitor(rows), monitors.is_empty())
}

/// Bytes that an entry takes at most.
fn size(row: &FlowStats) -> usize {
    let actions = row.instructions.iter().map(|instruction| match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => actions.len(),
        _ => 1,
    });
    FLOW_BYTES + ACTION_BYTES * actions.sum::<usize>()
}
