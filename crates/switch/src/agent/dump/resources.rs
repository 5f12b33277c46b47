//! Replies about groups, meters and tables, prepared incrementally.
//!
//! A walk proceeds by number, so groups and meters may be added and deleted between two of its
//! steps.

use dataplane::pipeline::Pipeline;
use openflow::header::{HEADER_BYTES, MESSAGE_BYTES_MAX};
use openflow::model::Message;
use openflow::model::group::GroupDescription;
use openflow::model::multipart::{MultipartReply, MultipartReplyBody};
use openflow::model::table::features::{TableFeatures, TableProperty};
use openflow::version::Version;
use packet::time::Nanos;

use super::super::features::Features;
use super::{ACTION_BYTES, Part};
use crate::lower::express;
use crate::lower::group::{group_stats_up, group_up};
use crate::lower::meter::{meter_config_up, meter_stats_up};

/// Budget steps of a row, without its list.
const ROW_STEPS: usize = 8;

/// Budget steps of the counters of one bucket or band.
const COUNTER_STEPS: usize = 4;

/// Budget steps of the description of one bucket or band.
const DESCRIPTION_STEPS: usize = 16;

/// Budget steps of the features of one table.
const FEATURES_STEPS: usize = 1024;

/// Bytes of rows that fit into one message, after its header and that of the reply.
const ROOM_BYTES: usize = MESSAGE_BYTES_MAX - 2 * HEADER_BYTES;

/// Maximum bytes of a row, without its list.
const ROW_BYTES: usize = 64;

/// Maximum bytes of a bucket, without its actions.
const BUCKET_BYTES: usize = 48;

/// Maximum bytes of a band, or of a bucket's counters.
const LISTED_BYTES: usize = 16;

/// Bytes of an identifier in table features.
const ID_BYTES: usize = 8;

/// Sources of a reply.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Groups, meters and tables.
    pub pipeline: &'a Pipeline,
    /// Table features.
    pub features: &'a Features,
    /// The current time.
    pub now: Nanos,
}

/// Walk of a reply in progress.
#[derive(Debug)]
pub struct Walk {
    /// The next number, or `None` at the end.
    next: Option<u32>,
    last: u32,
    /// Rows of the next part, and their bytes.
    body: MultipartReplyBody,
    bytes: usize,
}

/// Number, bytes and steps of a row that was added.
struct AddedRow {
    number: u32,
    bytes: usize,
    steps: usize,
}

impl Walk {
    /// Creates a walk over these numbers, inclusive. The empty body selects the kind.
    pub fn new((first, last): (u32, u32), body: MultipartReplyBody) -> Walk {
        Walk { next: Some(first), last, body, bytes: 0 }
    }

    /// Continues for at most `steps` steps, and returns the next part if it is complete.
    pub fn next(&mut self, version: Version, source: Source<'_>, steps: &mut usize) -> Part {
        loop {
            if self.next.is_none() {
                return self.part(true);
            }
            if *steps == 0 {
                return Part::None;
            }
            let is_empty = self.bytes == 0;
            let Some(made) = self.add_row(version, source) else {
                self.next = None;
                continue;
            };
            *steps = steps.saturating_sub(made.steps);
            if !is_empty && self.bytes + made.bytes > ROOM_BYTES {
                // This row becomes the first of the next part.
                self.pop();
                return self.part(false);
            }
            self.bytes += made.bytes;
            self.next = made.number.checked_add(1).filter(|next| *next <= self.last);
        }
    }

    fn part(&mut self, last: bool) -> Part {
        self.bytes = 0;
        let body = take_rows(&mut self.body);
        let message = Message::MultipartReply(MultipartReply { more: !last, body });
        Part::Message { message, last }
    }

    /// Adds the row of the next existing number, unless it is past the last.
    fn add_row(&mut self, version: Version, source: Source<'_>) -> Option<AddedRow> {
        let Source { pipeline, features, now } = source;
        let (from, last) = (self.next?, self.last);
        let references = pipeline.tables().references();
        match &mut self.body {
            MultipartReplyBody::Group(rows) => {
                let (number, buckets) = next_group(pipeline, (from, last))?;
                let record = pipeline.groups().records(number, now).pop()?;
                rows.push(group_stats_up(&record, references.of_group(number)));
                let (bytes, steps) = (LISTED_BYTES * buckets, COUNTER_STEPS * buckets);
                Some(made(number, bytes, steps))
            }
            MultipartReplyBody::GroupDesc(rows) => {
                let (number, buckets) = next_group(pipeline, (from, last))?;
                let record = pipeline.groups().records(number, now).pop()?;
                let row = express::group(version, group_up(&record.spec));
                let bytes = description_bytes(&row);
                rows.push(row);
                Some(made(number, bytes, DESCRIPTION_STEPS * buckets))
            }
            MultipartReplyBody::Meter(rows) => {
                let number = pipeline.meters().next(from).filter(|number| *number <= last)?;
                let record = pipeline.meters().records(number, now).pop()?;
                let bands = record.bands.len();
                rows.push(meter_stats_up(&record, references.of_meter(number) as u32));
                Some(made(number, LISTED_BYTES * bands, COUNTER_STEPS * bands))
            }
            MultipartReplyBody::MeterConfig(rows) => {
                let number = pipeline.meters().next(from).filter(|number| *number <= last)?;
                let record = pipeline.meters().records(number, now).pop()?;
                let bands = record.bands.len();
                rows.push(meter_config_up(&record.spec));
                Some(made(number, LISTED_BYTES * bands, DESCRIPTION_STEPS * bands))
            }
            MultipartReplyBody::TableFeatures(rows) => {
                let number = (from..=last).find(|number| features.has(*number as u8))?;
                let row = features.row(number as u8, version, pipeline);
                let bytes = features_bytes(&row);
                rows.push(row);
                Some(made(number, bytes, FEATURES_STEPS))
            }
            _ => None,
        }
    }

    /// Removes the last row.
    fn pop(&mut self) {
        match &mut self.body {
            MultipartReplyBody::Group(rows) => drop(rows.pop()),
            MultipartReplyBody::GroupDesc(rows) => drop(rows.pop()),
            MultipartReplyBody::Meter(rows) => drop(rows.pop()),
            MultipartReplyBody::MeterConfig(rows) => drop(rows.pop()),
            MultipartReplyBody::TableFeatures(rows) => drop(rows.pop()),
            _ => {}
        }
    }
}

/// Takes the rows so far and leaves none.
fn take_rows(body: &mut MultipartReplyBody) -> MultipartReplyBody {
    use MultipartReplyBody as Body;
    let empty = match body {
        Body::Group(_) => Body::Group(Vec::new()),
        Body::GroupDesc(_) => Body::GroupDesc(Vec::new()),
        Body::Meter(_) => Body::Meter(Vec::new()),
        Body::MeterConfig(_) => Body::MeterConfig(Vec::new()),
        _ => Body::TableFeatures(Vec::new()),
    };
    std::mem::replace(body, empty)
}

fn made(number: u32, bytes: usize, steps: usize) -> AddedRow {
    AddedRow { number, bytes: ROW_BYTES + bytes, steps: ROW_STEPS + steps }
}

fn next_group(pipeline: &Pipeline, (from, last): (u32, u32)) -> Option<(u32, usize)> {
    pipeline.groups().next(from).filter(|(number, _)| *number <= last)
}

/// Returns the maximum bytes of a group description.
fn description_bytes(row: &GroupDescription) -> usize {
    let buckets = row.buckets.iter();
    buckets.map(|bucket| BUCKET_BYTES + ACTION_BYTES * bucket.actions.len()).sum()
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
