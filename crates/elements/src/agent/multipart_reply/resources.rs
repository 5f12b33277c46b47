//! Replies about groups, meters, tables, ports and queues, prepared incrementally.
//!
//! A walk proceeds by number, so groups and meters may be added and deleted between two of its
//! steps. The description of a group takes several steps if the group has many buckets. It shows the
//! group as of the first of them.

use dataplane::group::GroupView;
use dataplane::pipeline::Pipeline;
use openflow::header::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use openflow::model::Message;
use openflow::model::group::GroupDescription;
use openflow::model::multipart::{MultipartReply, MultipartReplyBody};
use openflow::model::table::features::{TableFeatures, TableProperty};
use openflow::version::Version;
use packet::time::Nanos;

use super::super::features::Features;
use super::super::ports::{self, PortTable};
use super::super::shaping::{QueueRange, queue_description, queue_stats};
use super::super::tables;
use super::ReplyPart;
use crate::fast_path::FastPath;
use crate::forward::ForwardPort;
use crate::translate::downgrade;
use crate::translate::group::{bucket_up, group_stats_up, group_up};
use crate::translate::meter::{meter_config_up, meter_stats_up};

/// Budget steps of a row, without its list.
const ROW_STEPS: usize = 8;

/// Budget steps of the counters of one bucket or band.
const COUNTER_STEPS: usize = 4;

/// Budget steps of the description of one bucket or band.
const DESCRIPTION_STEPS: usize = 16;

/// Budget steps per action of a bucket with actions that the version cannot express.
const OMISSION_STEPS: usize = 32;

/// Budget steps of the features of one table.
const FEATURES_STEPS: usize = 1024;

/// Budget steps of the statistics or the description of one table.
const TABLE_STEPS: usize = 16;

/// Budget steps of the statistics of one table before 1.3, which have its capabilities.
const CAPABILITIES_STEPS: usize = 96;

/// Budget steps of the statistics of one port, whose counters may take a system call.
const PORT_STEPS: usize = 64;

/// Budget steps of the description of one port.
const PORT_DESCRIPTION_STEPS: usize = 16;

/// Budget steps of one queue, which is one of up to 64 queues of its port.
const QUEUE_STEPS: usize = 16;

/// Bytes of rows that fit into one message, after its header and that of the reply.
const ROOM_BYTES: usize = MESSAGE_BYTES_MAX - 2 * HEADER_BYTES;

/// Maximum bytes of a row, without its list.
const ROW_BYTES: usize = 64;

/// Maximum bytes that the row of a port or of a table has in addition.
const LONG_ROW_BYTES: usize = 64;

/// Maximum bytes of a band, or of a bucket's counters.
const LISTED_BYTES: usize = 16;

/// Bytes of an identifier in table features.
const ID_BYTES: usize = 8;

/// Sources of a reply.
pub struct Source<'a> {
    /// Groups, meters, tables and queues.
    pub pipeline: &'a mut Pipeline,
    /// Table features.
    pub features: &'a Features,
    /// Port counters.
    pub forward_ports: &'a mut [ForwardPort],
    /// Further port counters.
    pub fast_path: Option<&'a FastPath>,
    /// Port descriptions.
    pub ports: &'a PortTable,
    /// Time since the switch was opened.
    pub age: Nanos,
    /// The current time.
    pub now: Nanos,
}

/// Walk of a reply in progress.
#[derive(Debug)]
pub struct Walk {
    /// The next number, or `None` at the end.
    next: Option<u64>,
    last: u64,
    /// The queues, in a reply about queues.
    queues: Option<QueueRange>,
    /// The group description under construction.
    description: Option<Description>,
    /// Rows of the next part, and their bytes.
    body: MultipartReplyBody,
    bytes: usize,
}

/// A group description under construction.
#[derive(Debug)]
struct Description {
    group: GroupView,
    row: GroupDescription,
    /// Bytes of a message with the row: without buckets, and with those so far.
    bytes: [usize; 2],
}

/// Result of adding a row.
enum AddResult {
    /// A row was added.
    Row(AddedRow),
    /// The steps were used up before the row was complete.
    Unfinished,
}

/// Number, bytes and steps of a row that was added.
struct AddedRow {
    number: u64,
    bytes: usize,
    steps: usize,
}

impl Walk {
    /// Creates a walk over these numbers, inclusive. The empty body selects the kind.
    pub fn new((first, last): (u32, u32), body: MultipartReplyBody) -> Walk {
        Walk {
            next: Some(first.into()),
            last: last.into(),
            queues: None,
            description: None,
            body,
            bytes: 0,
        }
    }

    /// Creates a walk over queues.
    pub fn queues(range: QueueRange, body: MultipartReplyBody) -> Walk {
        let (next, last) = (Some(range.start()), u64::MAX);
        Walk { next, last, queues: Some(range), ..Walk::new((0, 0), body) }
    }

    /// Continues for at most `steps` steps, and returns the next part if it is complete.
    pub fn next(
        &mut self,
        version: Version,
        source: &mut Source<'_>,
        steps: &mut usize,
    ) -> ReplyPart {
        loop {
            if self.next.is_none() {
                return self.part(0, true);
            }
            if *steps == 0 {
                return ReplyPart::None;
            }
            let is_empty = self.bytes == 0;
            let made = match self.add_row(version, source, steps) {
                Some(AddResult::Row(made)) => made,
                Some(AddResult::Unfinished) => continue,
                None => {
                    self.next = None;
                    continue;
                }
            };
            *steps = steps.saturating_sub(made.steps);
            self.next = made.number.checked_add(1).filter(|next| *next <= self.last);
            if !is_empty && self.bytes + made.bytes > ROOM_BYTES {
                // This row is the first of the next part.
                let part = self.part(1, false);
                self.bytes = made.bytes;
                return part;
            }
            self.bytes += made.bytes;
        }
    }

    /// Returns the next part, and keeps the last `kept` rows.
    fn part(&mut self, kept: usize, last: bool) -> ReplyPart {
        self.bytes = 0;
        let body = take_rows(&mut self.body, kept);
        let message = Message::MultipartReply(MultipartReply { more: !last, body });
        ReplyPart::Message { message, last }
    }

    /// Adds the row of the next existing number, unless it is past the last.
    fn add_row(
        &mut self,
        version: Version,
        source: &mut Source<'_>,
        steps: &mut usize,
    ) -> Option<AddResult> {
        let (pipeline, now) = (&*source.pipeline, source.now);
        let (from, last) = (self.next?, self.last);
        let references = pipeline.tables().references();
        let made = match &mut self.body {
            MultipartReplyBody::Group(rows) => {
                let group = next_group(pipeline, (from, last))?;
                let (number, buckets) = (group.number(), group.count_buckets());
                let groups = pipeline.groups().count_referrers(number);
                let references = references.of_group(number) + groups;
                rows.push(group_stats_up(&group, references, now));
                made(number, LISTED_BYTES * buckets, COUNTER_STEPS * buckets)
            }
            MultipartReplyBody::GroupDesc(rows) => {
                let mut description = match self.description.take() {
                    Some(description) => description,
                    None => Description::new(version, next_group(pipeline, (from, last))?),
                };
                if !description.add_some(version, steps) {
                    self.description = Some(description);
                    return Some(AddResult::Unfinished);
                }
                let bytes = description.bytes[1];
                let number = description.row.group;
                rows.push(description.row);
                made(number, bytes, 0)
            }
            MultipartReplyBody::Meter(rows) => {
                let number = next_meter(pipeline, (from, last))?;
                let record = pipeline.meters().records(number, now).pop()?;
                let bands = record.bands.len();
                rows.push(meter_stats_up(&record, references.of_meter(number) as u32));
                made(number, LISTED_BYTES * bands, COUNTER_STEPS * bands)
            }
            MultipartReplyBody::MeterConfig(rows) => {
                let number = next_meter(pipeline, (from, last))?;
                let record = pipeline.meters().records(number, now).pop()?;
                let bands = record.bands.len();
                rows.push(meter_config_up(&record.spec));
                made(number, LISTED_BYTES * bands, DESCRIPTION_STEPS * bands)
            }
            MultipartReplyBody::TableFeatures(rows) => {
                let number = (from..=last).find(|number| source.features.has(*number as u8))?;
                let row = source.features.row(number as u8, version, pipeline);
                let bytes = features_bytes(&row);
                rows.push(row);
                made(number as u32, bytes, FEATURES_STEPS)
            }
            MultipartReplyBody::Table(rows) => {
                let table = next_table(pipeline, from)?;
                rows.push(tables::stats(table, version, pipeline));
                let is_long = version < Version::V1_3;
                let steps = if is_long { CAPABILITIES_STEPS } else { TABLE_STEPS };
                made(table.into(), LONG_ROW_BYTES, steps)
            }
            MultipartReplyBody::TableDesc(rows) => {
                let table = next_table(pipeline, from)?;
                rows.push(tables::description(table, pipeline));
                made(table.into(), 0, TABLE_STEPS)
            }
            MultipartReplyBody::Port(rows) => {
                let forward_port = source.forward_ports.get_mut(from as usize)?;
                rows.push(ports::stats(forward_port, source.fast_path, source.age));
                made(from as u32, LONG_ROW_BYTES, PORT_STEPS)
            }
            MultipartReplyBody::PortDesc(rows) => {
                let port = source.ports.descriptions().get(from as usize)?;
                rows.push(downgrade::port(version, port.clone()));
                made(from as u32, LONG_ROW_BYTES, PORT_DESCRIPTION_STEPS)
            }
            MultipartReplyBody::Queue(rows) => {
                let ports = source.ports.numbers();
                let (number, record) = self.queues?.next(from, (pipeline, ports), now)?;
                rows.push(queue_stats(&record));
                AddedRow { number, ..made(0, 0, QUEUE_STEPS) }
            }
            MultipartReplyBody::QueueDesc(rows) => {
                let ports = source.ports.numbers();
                let (number, record) = self.queues?.next(from, (pipeline, ports), now)?;
                rows.push(queue_description(version, &record));
                AddedRow { number, ..made(0, 0, QUEUE_STEPS) }
            }
            _ => return None,
        };
        Some(AddResult::Row(made))
    }
}

impl Description {
    fn new(version: Version, group: GroupView) -> Description {
        let row = group_up(&group);
        let bytes = downgrade::group_bytes(version, row.clone()).unwrap_or(MESSAGE_BYTES_MAX);
        Description { group, row, bytes: [bytes; 2] }
    }

    /// Adds buckets within `steps` steps. Returns true if it has all buckets that the version can
    /// express and that fit into a message.
    fn add_some(&mut self, version: Version, steps: &mut usize) -> bool {
        let empty = group_up(&self.group);
        while *steps > 0 {
            let Some((spec, _)) = self.group.bucket(self.row.buckets.len()) else { return true };
            let actions = spec.actions.len();
            let Some((bucket, bytes)) = downgrade::bucket(version, &empty, bucket_up(spec)) else {
                return true;
            };
            let each = if bucket.actions.len() < actions { OMISSION_STEPS } else { 1 };
            *steps = steps.saturating_sub(DESCRIPTION_STEPS + each * actions);
            let [without, so_far] = &mut self.bytes;
            if *so_far + bytes - *without > MESSAGE_BYTES_MAX {
                return true;
            }
            *so_far += bytes - *without;
            self.row.buckets.push(bucket);
        }
        false
    }
}

/// Takes the rows so far, without the last `kept`.
fn take_rows(body: &mut MultipartReplyBody, kept: usize) -> MultipartReplyBody {
    use MultipartReplyBody as Body;
    fn take<T>(rows: &mut Vec<T>, kept: usize) -> Vec<T> {
        let rest = rows.split_off(rows.len() - kept);
        std::mem::replace(rows, rest)
    }
    match body {
        Body::Group(rows) => Body::Group(take(rows, kept)),
        Body::GroupDesc(rows) => Body::GroupDesc(take(rows, kept)),
        Body::Meter(rows) => Body::Meter(take(rows, kept)),
        Body::MeterConfig(rows) => Body::MeterConfig(take(rows, kept)),
        Body::TableFeatures(rows) => Body::TableFeatures(take(rows, kept)),
        Body::Table(rows) => Body::Table(take(rows, kept)),
        Body::TableDesc(rows) => Body::TableDesc(take(rows, kept)),
        Body::Port(rows) => Body::Port(take(rows, kept)),
        Body::PortDesc(rows) => Body::PortDesc(take(rows, kept)),
        Body::Queue(rows) => Body::Queue(take(rows, kept)),
        Body::QueueDesc(rows) => Body::QueueDesc(take(rows, kept)),
        other => unreachable!("{other:?} has no walk"),
    }
}

fn made(number: u32, bytes: usize, steps: usize) -> AddedRow {
    AddedRow { number: number.into(), bytes: ROW_BYTES + bytes, steps: ROW_STEPS + steps }
}

fn next_group(pipeline: &Pipeline, (from, last): (u64, u64)) -> Option<GroupView> {
    pipeline.groups().next(from as u32).filter(|group| u64::from(group.number()) <= last)
}

fn next_meter(pipeline: &Pipeline, (from, last): (u64, u64)) -> Option<u32> {
    pipeline.meters().next(from as u32).filter(|number| u64::from(*number) <= last)
}

fn next_table(pipeline: &Pipeline, from: u64) -> Option<u8> {
    (from < pipeline.tables().count_tables() as u64).then_some(from as u8)
}

/// Returns the maximum bytes of table features.
fn features_bytes(row: &TableFeatures) -> usize {
    let ids = |property: &TableProperty| match property {
        TableProperty::Instructions { ids, .. } => ids.len(),
        TableProperty::Actions { ids, .. } => ids.len(),
        TableProperty::Match(ids)
        | TableProperty::Wildcards(ids)
        | TableProperty::SetField { ids, .. }
        | TableProperty::CopyField { ids, .. } => ids.len(),
        TableProperty::NextTables { tables, .. } | TableProperty::SynchronizedFrom(tables) => {
            tables.len()
        }
        TableProperty::PacketTypes(types) => types.len(),
        TableProperty::Experimenter { body, .. } => body.body.len(),
    };
    row.properties.iter().map(|property| 2 * ID_BYTES + ID_BYTES * ids(property)).sum()
}
