//! Long replies, made in parts while the controller reads them.
//!
//! A walk remembers its place, not what it walks over, so that a reply of any length costs one part
//! of memory; what comes or goes meanwhile may or may not be in it, everything else is in it once.

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

use crate::lower;
use crate::lower::express;

use super::features::Features;
use super::monitor::Monitor;
use super::news::counters_up;
use super::nicira::{self, flows_up};

/// Groups, meters and tables.
mod resources;
/// Rows as bytes.
mod rows;

use resources::{Source, Walk};

/// Bytes of one part, as they are reckoned: a part stays below the 64 KiB of a message.
const PART_BYTES: usize = 40 << 10;

/// Bytes that an entry takes at most besides its actions, with forty fields of sixteen bytes.
const FLOW_BYTES: usize = 400;

/// Bytes that one action takes at most, with a masked field of sixteen bytes.
const ACTION_BYTES: usize = 48;

/// Steps of one entry in a reply, beside those of finding it.
const ROW_STEPS: usize = 1;

/// A walk for a reply that is under way.
#[derive(Debug)]
pub struct Dump {
    xid: Xid,
    version: Version,
    what: What,
}

/// What is walked over.
#[derive(Debug)]
enum What {
    /// Entries, and whether the first table's parts count as tables.
    Flows(Selection, bool),
    /// Entries in Nicira's words.
    NiciraFlows(Selection),
    /// Entries without what they do (1.5).
    FlowCounters(Selection),
    /// Entries at the beginning of monitors: of the first of them, and of those after it.
    Monitors(Selection, VecDeque<Monitor>),
    /// The sum over entries, and whether it is told in Nicira's words.
    Totals(Selection, FlowTotals, bool),
    /// Groups, meters or tables.
    Resources(Walk),
    /// Parts that are made already, last first.
    Ready(Vec<MultipartReplyBody>),
}

/// What the next piece of the walk made.
#[derive(Debug)]
pub enum Part {
    /// Nothing yet.
    None,
    /// Rows of flow statistics as bytes.
    Rows {
        /// Whether the reply ends with them.
        last: bool,
    },
    /// A message.
    Message {
        /// It.
        message: Message,
        /// Whether the reply ends with it.
        last: bool,
    },
}

impl Dump {
    /// Begins to answer the request with this number with entries.
    pub fn flows(xid: Xid, version: Version, selection: Selection, parts: bool) -> Self {
        Dump { xid, version, what: What::Flows(selection, parts) }
    }

    /// The same in Nicira's words.
    pub fn nicira_flows(xid: Xid, selection: Selection) -> Self {
        Dump { xid, version: Version::V1_0, what: What::NiciraFlows(selection) }
    }

    /// The same with entries' counters alone.
    pub fn flow_counters(xid: Xid, version: Version, selection: Selection) -> Self {
        Dump { xid, version, what: What::FlowCounters(selection) }
    }

    /// The same with the sum over entries, as the version or as Nicira tells it.
    pub fn totals(xid: Xid, version: Version, selection: Selection, is_nicira: bool) -> Self {
        let what = What::Totals(selection, FlowTotals::default(), is_nicira);
        Dump { xid, version, what }
    }

    /// The same with the entries that these monitors find at their beginning.
    pub fn monitors(xid: Xid, version: Version, monitors: Vec<Monitor>) -> Self {
        let what = match monitors.first() {
            Some(first) => What::Monitors(Selection::new(first.filter()), monitors.into()),
            None => What::Ready(vec![MultipartReplyBody::FlowMonitor(Vec::new())]),
        };
        Dump { xid, version, what }
    }

    /// The same with the rows of groups, meters or tables of these numbers, the last one included. The body says which,
    /// and is empty.
    pub fn resources(
        xid: Xid,
        version: Version,
        numbers: (u32, u32),
        body: MultipartReplyBody,
    ) -> Self {
        Dump { xid, version, what: What::Resources(Walk::new(numbers, body)) }
    }

    /// The same with rows that are made already, in as many parts as they need.
    pub fn ready(xid: Xid, version: Version, body: MultipartReplyBody) -> Result<Self, ErrorCode> {
        // What a version has no words for has been left out; if not, there is nothing to tell.
        let parts = codec::split(version, body).map_err(|_| ErrorCode::RequestBadMultipart)?;
        let parts = parts.into_iter().rev().map(|part| part.body).collect();
        Ok(Dump { xid, version, what: What::Ready(parts) })
    }

    /// The number of the request that it answers.
    pub fn xid(&self) -> Xid {
        self.xid
    }

    /// Goes on for so many steps at most, and gives the next part if there is one. Rows that are made as bytes are
    /// appended to `rows`.
    pub fn next(
        &mut self,
        (pipeline, features): (&mut Pipeline, &Features),
        now: Nanos,
        rows: &mut Vec<u8>,
        steps: &mut usize,
    ) -> Part {
        let version = self.version;
        let has_rows = (Version::V1_2..=Version::V1_4).contains(&version);
        let tables = (&*pipeline, now);
        match &mut self.what {
            What::Flows(selection, false) if has_rows => {
                rows::fill(version, tables, selection, rows, steps);
                match (rows.is_empty(), selection.is_done()) {
                    (true, false) => Part::None,
                    (_, last) => Part::Rows { last },
                }
            }
            What::Flows(selection, parts) => {
                let told = records(tables, selection, *parts, steps);
                let told = told.into_iter().map(|row| express::flow_stats(version, row)).collect();
                part(told, MultipartReplyBody::Flow, selection.is_done())
            }
            What::NiciraFlows(selection) => {
                let told = records(tables, selection, false, steps);
                part(told, flows_up, selection.is_done())
            }
            What::FlowCounters(selection) => {
                let told = records(tables, selection, false, steps);
                let up = |row: &FlowStats| counters_up(row, FlowStatsReason::Request);
                let told = told.iter().map(up).collect();
                part(told, MultipartReplyBody::FlowStats, selection.is_done())
            }
            What::Monitors(selection, monitors) => initial(tables, selection, monitors, steps),
            What::Totals(selection, totals, is_nicira) => {
                match pipeline.totals_some(selection, totals, steps) {
                    Progress::More => Part::None,
                    Progress::Done => message(totals_up(totals, *is_nicira), true),
                }
            }
            What::Resources(walk) => walk.next(version, Source { pipeline, features, now }, steps),
            What::Ready(parts) => {
                let body = parts.pop().expect("a reply has a part");
                message(body, parts.is_empty())
            }
        }
    }
}

fn message(body: MultipartReplyBody, last: bool) -> Part {
    let message = Message::MultipartReply(MultipartReply { more: !last, body });
    Part::Message { message, last }
}

/// These rows, unless there are none yet.
fn part<T>(rows: Vec<T>, body: impl FnOnce(Vec<T>) -> MultipartReplyBody, last: bool) -> Part {
    match rows.is_empty() && !last {
        true => Part::None,
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

/// The next entries that fit into one part.
fn records(
    (pipeline, now): (&Pipeline, Nanos),
    selection: &mut Selection,
    parts: bool,
    steps: &mut usize,
) -> Vec<FlowStats> {
    let (mut rows, mut bytes, mut too_many) = (Vec::new(), 0, None);
    for record in selection.records(pipeline.tables(), now, steps) {
        let row = lower::flow_stats_up(&record, parts);
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

/// The next entries of the first of these monitors; when it has no more, the next one's turn comes.
fn initial(
    (pipeline, now): (&Pipeline, Nanos),
    selection: &mut Selection,
    monitors: &mut VecDeque<Monitor>,
    steps: &mut usize,
) -> Part {
    let Some(monitor) = monitors.front() else {
        return message(MultipartReplyBody::FlowMonitor(Vec::new()), true);
    };
    let (mut rows, mut bytes, mut too_many) = (Vec::new(), 0, None);
    for record in selection.records(pipeline.tables(), now, steps) {
        bytes += size(&lower::flow_stats_up(&record, false));
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

/// Bytes that an entry takes at most.
fn size(row: &FlowStats) -> usize {
    let actions = row.instructions.iter().map(|instruction| match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => actions.len(),
        _ => 1,
    });
    FLOW_BYTES + ACTION_BYTES * actions.sum::<usize>()
}
