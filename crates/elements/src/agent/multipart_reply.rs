//! Long replies, which are prepared in parts while the controller reads them.
//!
//! A walk stores its position, not a copy of the entries. A reply of any length therefore needs the
//! memory of one part. Entries that are added or removed during the walk may be missing or
//! included. All others are included once.

use std::collections::VecDeque;

use dataplane::flow::FlowTotals;
use dataplane::pipeline::Pipeline;
use dataplane::table::{Progress, Selection};
use openflow::codec;
use openflow::header::Xid;
use openflow::model::flow::counters::FlowStatsReason;
use openflow::model::flow::monitor::{FlowEvent, FlowUpdate};
use openflow::model::multipart::{AggregateStats, FlowStats, MultipartReply, MultipartReplyBody};
use openflow::model::{Instruction, Message};
use openflow::version::{ErrorCode, Version};
use packet::time::Nanos;

use crate::translate;
use crate::translate::downgrade;

use super::async_messages::counters_up;
use super::monitor::Monitor;
use super::nicira::{self, flows_up};
use super::shaping::QueueRange;

mod resources;
mod rows;

pub use resources::Source;
use resources::Walk;

/// Estimated bytes of one part, so that it stays below the 64 KiB of a message.
const PART_BYTES: usize = 40 << 10;

/// Estimated bytes of a flow entry without its actions.
const FLOW_BYTES: usize = 400;

/// Maximum bytes of one action, with a masked field of sixteen bytes.
const ACTION_BYTES: usize = 48;

/// Budget steps of one entry in a reply, without those of finding it.
const ROW_STEPS: usize = 1;

/// Walk of a reply in progress.
#[derive(Debug)]
pub struct Dump {
    xid: Xid,
    version: Version,
    what: ReplyObjects,
}

/// Objects of a walk.
#[derive(Debug)]
enum ReplyObjects {
    /// Flow entries, and whether the parts of the first table count as tables.
    Flows(Selection, bool),
    /// Flow entries in Nicira's format.
    NiciraFlows(Selection),
    /// Flow entries without instructions (1.5).
    FlowCounters(Selection),
    /// Initial flow entries of monitors: the selection of the first remaining monitor, and all
    /// remaining monitors.
    Monitors(Selection, VecDeque<Monitor>),
    /// Aggregate of flow entries, and whether its reply has Nicira's format.
    Totals(Selection, FlowTotals, bool),
    /// Groups, meters, tables, ports or queues.
    Resources(Walk),
    /// Prepared parts, last first.
    Ready(Vec<MultipartReplyBody>),
}

/// Result of the next step of a walk.
#[derive(Debug)]
pub enum ReplyPart {
    /// Nothing yet.
    None,
    /// Encoded rows of flow statistics.
    Rows {
        /// Whether the reply ends with them.
        last: bool,
    },
    /// A message.
    Message {
        /// The message.
        message: Message,
        /// Whether the reply ends with it.
        last: bool,
    },
}

impl Dump {
    /// Begins a reply with flow entries to the request with this transaction ID.
    pub fn flows(xid: Xid, version: Version, selection: Selection, parts: bool) -> Self {
        Dump { xid, version, what: ReplyObjects::Flows(selection, parts) }
    }

    /// Begins a reply with flow entries in Nicira's format.
    pub fn nicira_flows(xid: Xid, selection: Selection) -> Self {
        Dump { xid, version: Version::V1_0, what: ReplyObjects::NiciraFlows(selection) }
    }

    /// Begins a reply with counters of flow entries.
    pub fn flow_counters(xid: Xid, version: Version, selection: Selection) -> Self {
        Dump { xid, version, what: ReplyObjects::FlowCounters(selection) }
    }

    /// Begins a reply with the aggregate of flow entries, in the version's or Nicira's format.
    pub fn totals(xid: Xid, version: Version, selection: Selection, is_nicira: bool) -> Self {
        let what = ReplyObjects::Totals(selection, FlowTotals::default(), is_nicira);
        Dump { xid, version, what }
    }

    /// Begins a reply with the initial flow entries of these monitors.
    pub fn monitors(xid: Xid, version: Version, monitors: Vec<Monitor>) -> Self {
        let what = match monitors.first() {
            Some(first) => ReplyObjects::Monitors(Selection::new(first.filter()), monitors.into()),
            None => ReplyObjects::Ready(vec![MultipartReplyBody::FlowMonitor(Vec::new())]),
        };
        Dump { xid, version, what }
    }

    /// Begins a reply with groups, meters or tables of these numbers, or with ports of these indexes,
    /// inclusive. The empty body selects the kind.
    pub fn resources(
        xid: Xid,
        version: Version,
        numbers: (u32, u32),
        body: MultipartReplyBody,
    ) -> Self {
        Dump { xid, version, what: ReplyObjects::Resources(Walk::new(numbers, body)) }
    }

    /// Begins a reply with queues. The empty body selects the kind.
    pub fn queues(xid: Xid, version: Version, range: QueueRange, body: MultipartReplyBody) -> Self {
        Dump { xid, version, what: ReplyObjects::Resources(Walk::queues(range, body)) }
    }

    /// Begins a reply with prepared rows, in as many parts as they need.
    pub fn ready(xid: Xid, version: Version, body: MultipartReplyBody) -> Result<Self, ErrorCode> {
        // What a version cannot express was removed before; otherwise there is nothing to send.
        let parts = codec::split(version, body).map_err(|_| ErrorCode::RequestBadMultipart)?;
        let parts = parts.into_iter().rev().map(|part| part.body).collect();
        Ok(Dump { xid, version, what: ReplyObjects::Ready(parts) })
    }

    /// Returns the transaction ID of the request.
    pub fn xid(&self) -> Xid {
        self.xid
    }

    /// Continues for at most `steps` steps, and returns the next part if there is one. Encoded rows
    /// are appended to `rows`.
    pub fn next(
        &mut self,
        source: &mut Source<'_>,
        rows: &mut Vec<u8>,
        steps: &mut usize,
    ) -> ReplyPart {
        let version = self.version;
        let has_rows = (Version::V1_2..=Version::V1_4).contains(&version);
        let tables = (&*source.pipeline, source.now);
        match &mut self.what {
            ReplyObjects::Flows(selection, false) if has_rows => {
                rows::fill(version, tables, selection, rows, steps);
                match (rows.is_empty(), selection.is_done()) {
                    (true, false) => ReplyPart::None,
                    (_, last) => ReplyPart::Rows { last },
                }
            }
            ReplyObjects::Flows(selection, parts) => {
                let told = records(tables, selection, *parts, steps);
                let told =
                    told.into_iter().map(|row| downgrade::flow_stats(version, row)).collect();
                part(told, MultipartReplyBody::Flow, selection.is_done())
            }
            ReplyObjects::NiciraFlows(selection) => {
                let told = records(tables, selection, false, steps);
                part(told, flows_up, selection.is_done())
            }
            ReplyObjects::FlowCounters(selection) => {
                let told = records(tables, selection, false, steps);
                let up = |row: &FlowStats| counters_up(row, FlowStatsReason::Request);
                let told = told.iter().map(up).collect();
                part(told, MultipartReplyBody::FlowStats, selection.is_done())
            }
            ReplyObjects::Monitors(selection, monitors) => {
                initial(tables, selection, monitors, steps)
            }
            ReplyObjects::Totals(selection, totals, is_nicira) => {
                match source.pipeline.totals_some(selection, totals, steps) {
                    Progress::More => ReplyPart::None,
                    Progress::Done => message(totals_up(totals, *is_nicira), true),
                }
            }
            ReplyObjects::Resources(walk) => walk.next(version, source, steps),
            ReplyObjects::Ready(parts) => {
                let body = parts.pop().expect("a reply has at least one part");
                message(body, parts.is_empty())
            }
        }
    }
}

fn message(body: MultipartReplyBody, last: bool) -> ReplyPart {
    let message = Message::MultipartReply(MultipartReply { more: !last, body });
    ReplyPart::Message { message, last }
}

/// Creates a part of these rows, unless there are none yet.
fn part<T>(rows: Vec<T>, body: impl FnOnce(Vec<T>) -> MultipartReplyBody, last: bool) -> ReplyPart {
    match rows.is_empty() && !last {
        true => ReplyPart::None,
        false => message(body(rows), last),
    }
}

fn totals_up(totals: &FlowTotals, is_nicira: bool) -> MultipartReplyBody {
    let flows = totals.entries as u32;
    let sum = AggregateStats { packets: totals.frames, bytes: totals.bytes, flows };
    match is_nicira {
        true => nicira::aggregate_up(sum),
        false => MultipartReplyBody::Aggregate(sum),
    }
}

/// Returns the next flow entries that fit into one part.
fn records(
    (pipeline, now): (&Pipeline, Nanos),
    selection: &mut Selection,
    parts: bool,
    steps: &mut usize,
) -> Vec<FlowStats> {
    let (mut rows, mut bytes, mut too_many) = (Vec::new(), 0, None);
    for record in selection.records(pipeline.tables(), now, steps) {
        let row = translate::flow_stats_up(&record, parts);
        bytes += size(&row);
        if !rows.is_empty() && bytes > PART_BYTES {
            too_many = Some(record.place);
            break;
        }
        rows.push(row);
    }
    too_many.iter().for_each(|&place| selection.seek(place));
    *steps = steps.saturating_sub(rows.len() * ROW_STEPS);
    rows
}

/// Returns the next flow entries of the first monitor. When it has no more, the next monitor
/// follows.
fn initial(
    (pipeline, now): (&Pipeline, Nanos),
    selection: &mut Selection,
    monitors: &mut VecDeque<Monitor>,
    steps: &mut usize,
) -> ReplyPart {
    let Some(monitor) = monitors.front() else {
        return message(MultipartReplyBody::FlowMonitor(Vec::new()), true);
    };
    let (mut rows, mut bytes, mut too_many) = (Vec::new(), 0, None);
    for record in selection.records(pipeline.tables(), now, steps) {
        bytes += size(&translate::flow_stats_up(&record, false));
        if !rows.is_empty() && bytes > PART_BYTES {
            too_many = Some(record.place);
            break;
        }
        rows.push(FlowUpdate::Full(monitor.update(&record, FlowEvent::Initial)));
    }
    too_many.iter().for_each(|&place| selection.seek(place));
    *steps = steps.saturating_sub(rows.len() * ROW_STEPS);
    if selection.is_done() {
        monitors.pop_front();
        monitors.iter().take(1).for_each(|next| *selection = Selection::new(next.filter()));
    }
    part(rows, MultipartReplyBody::FlowMonitor, monitors.is_empty())
}

/// Returns the estimated encoded size of a flow entry.
fn size(row: &FlowStats) -> usize {
    let actions = row.instructions.iter().map(|instruction| match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => actions.len(),
        _ => 1,
    });
    FLOW_BYTES + ACTION_BYTES * actions.sum::<usize>()
}
