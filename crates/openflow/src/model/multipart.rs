//! Statistics and descriptions: what is asked for, and what comes back.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5 (`ofp_stats_request`, `ofp_stats_reply`), 1.3.5 section
//! 7.3.5 (`ofp_multipart_request`, `ofp_multipart_reply`). Both may come in several messages, each
//! of which but the last says that there is more.

use std::fmt;

use packet::time::Nanos;

use super::action::Experimenter;
use super::bundle::{BundleFeatures, BundleFeaturesRequest};
use super::flow::FlowModFlags;
use super::flow::counters::FlowCounters;
use super::flow::monitor::{FlowMonitorRequest, FlowUpdate};
use super::group::{GROUP_ANY, GroupDescription, GroupFeatures, GroupStats};
use super::instruction::{Instruction, show_instructions};
use super::matching::Match;
use super::meter::{MeterConfig, MeterFeatures, MeterStats};
use super::port::stats::{Counter, PortStats};
use super::port::{PortDescription, PortNo, ShowPort};
use super::queue::{PacketQueue, QUEUE_ALL, QueueStats};
use super::role::ControllerStatus;
use super::table::features::TableFeatures;
use super::table::{ShowTable, TABLE_ALL, TableDescription, TableStats};
use super::text::Text;
use crate::version::MultipartKind;

/// What is asked for, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultipartRequest {
    /// Another part follows with the same transaction id (from 1.3 on).
    pub more: bool,
    /// This part.
    pub body: MultipartRequestBody,
}

/// What is asked for, by type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultipartRequestBody {
    /// Who made the switch, and its names.
    Desc,
    /// Each entry.
    Flow(FlowStatsRequest),
    /// The sum over entries.
    Aggregate(FlowStatsRequest),
    /// Each table.
    Table,
    /// One port, or all with [`super::reserved::NONE`].
    Port(PortNo),
    /// One queue, or several.
    Queue {
        /// The port, or all with [`super::reserved::ALL`] in 1.0 and [`super::reserved::NONE`]
        /// later.
        port: PortNo,
        /// The queue, or all with [`super::queue::QUEUE_ALL`].
        queue: u32,
    },
    /// One group, or all with [`super::group::GROUP_ALL`].
    Group(u32),
    /// One group, or all with [`super::group::GROUP_ALL`]; before 1.5 it is always all.
    GroupDesc(u32),
    /// What groups can do.
    GroupFeatures,
    /// One meter, or all with [`super::meter::METER_ALL`].
    Meter(u32),
    /// One meter, or all with [`super::meter::METER_ALL`].
    MeterConfig(u32),
    /// What meters can do.
    MeterFeatures,
    /// The counters of each entry (1.5).
    FlowStats(FlowStatsRequest),
    /// Features of tables: without any, asks for them, else sets them.
    TableFeatures(Vec<TableFeatures>),
    /// One port, or all with [`super::reserved::NONE`]; before 1.5 it is always all.
    PortDesc(PortNo),
    /// How each table behaves.
    TableDesc,
    /// What queues promise.
    QueueDesc {
        /// The port, or all with [`super::reserved::NONE`].
        port: PortNo,
        /// The queue, or all with [`super::queue::QUEUE_ALL`].
        queue: u32,
    },
    /// Sets monitors up, changes or ends them.
    FlowMonitor(Vec<FlowMonitorRequest>),
    /// How each controller does.
    ControllerStatus,
    /// How well bundles can be scheduled.
    BundleFeatures(BundleFeaturesRequest),
    /// What somebody else defines.
    Experimenter(Experimenter),
}

/// Which entries are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowStatsRequest {
    /// Entries within this match.
    pub matching: Match,
    /// Their table, or [`TABLE_ALL`].
    pub table: u8,
    /// Only those that output to this port; [`super::reserved::NONE`] for all.
    pub out_port: PortNo,
    /// Only those that send to this group; [`GROUP_ANY`] for all, and always in 1.0.
    pub out_group: u32,
    /// The cookie's bits in `cookie_mask`.
    pub cookie: u64,
    /// Only those whose cookie has the given one's bits here; none counts in 1.0.
    pub cookie_mask: u64,
}

impl Default for FlowStatsRequest {
    fn default() -> Self {
        FlowStatsRequest {
            matching: Match::ANY,
            table: TABLE_ALL,
            out_port: super::reserved::NONE,
            out_group: GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
        }
    }
}

/// What comes back, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultipartReply {
    /// Another part follows with the same transaction id.
    pub more: bool,
    /// This part.
    pub body: MultipartReplyBody,
}

/// What comes back, by type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultipartReplyBody {
    /// Who made the switch, and its names.
    Desc(SwitchDescription),
    /// Entries.
    Flow(Vec<FlowStats>),
    /// The sum over entries.
    Aggregate(AggregateStats),
    /// Tables.
    Table(Vec<TableStats>),
    /// Ports.
    Port(Vec<PortStats>),
    /// Queues.
    Queue(Vec<QueueStats>),
    /// Groups.
    Group(Vec<GroupStats>),
    /// Types and buckets of groups.
    GroupDesc(Vec<GroupDescription>),
    /// What groups can do.
    GroupFeatures(GroupFeatures),
    /// Meters.
    Meter(Vec<MeterStats>),
    /// Bands of meters.
    MeterConfig(Vec<MeterConfig>),
    /// What meters can do.
    MeterFeatures(MeterFeatures),
    /// Counters of entries (1.5).
    FlowStats(Vec<FlowCounters>),
    /// Features of tables.
    TableFeatures(Vec<TableFeatures>),
    /// Ports.
    PortDesc(Vec<PortDescription>),
    /// How tables behave.
    TableDesc(Vec<TableDescription>),
    /// What queues promise.
    QueueDesc(Vec<PacketQueue>),
    /// What became of entries.
    FlowMonitor(Vec<FlowUpdate>),
    /// How controllers do.
    ControllerStatus(Vec<ControllerStatus>),
    /// How well bundles can be scheduled.
    BundleFeatures(BundleFeatures),
    /// What somebody else defines.
    Experimenter(Experimenter),
}

/// Who made the switch, and its names (`ofp_desc_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchDescription {
    /// Its maker, at most 255 bytes.
    pub manufacturer: Text,
    /// Its hardware, at most 255 bytes.
    pub hardware: Text,
    /// Its software, at most 255 bytes.
    pub software: Text,
    /// Its serial number, at most 31 bytes.
    pub serial_number: Text,
    /// What people call it, at most 255 bytes.
    pub datapath: Text,
}

/// One entry and its counters (`ofp_flow_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// The table that it is in.
    pub table: u8,
    /// Its match.
    pub matching: Match,
    /// Its priority.
    pub priority: u16,
    /// The controller's own number for it.
    pub cookie: u64,
    /// How long it has been there.
    pub age: Nanos,
    /// How long no frame has matched it; told by 1.5 and by Nicira's statistics.
    pub idle_age: Option<Nanos>,
    /// Its idle time-out in seconds.
    pub idle_timeout_s: u16,
    /// Its hard time-out in seconds.
    pub hard_timeout_s: u16,
    /// How it was added; told from 1.3 on.
    pub flags: FlowModFlags,
    /// The less, the sooner it has to make room; told from 1.4 on.
    pub importance: u16,
    /// Frames that it matched, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub packets: u64,
    /// Bytes of those, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub bytes: u64,
    /// What it does.
    pub instructions: Vec<Instruction>,
}

/// The sum over entries (`ofp_aggregate_stats_reply`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AggregateStats {
    /// Frames that they matched.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// How many entries.
    pub flows: u32,
}

impl From<MultipartRequestBody> for MultipartRequest {
    /// A request of one part.
    fn from(body: MultipartRequestBody) -> MultipartRequest {
        MultipartRequest { more: false, body }
    }
}

impl From<MultipartReplyBody> for MultipartReply {
    /// A reply of one part.
    fn from(body: MultipartReplyBody) -> MultipartReply {
        MultipartReply { more: false, body }
    }
}

impl MultipartRequestBody {
    /// Its row in the table of versions.
    pub fn kind(&self) -> MultipartKind {
        match self {
            MultipartRequestBody::Desc => MultipartKind::Desc,
            MultipartRequestBody::Flow(_) => MultipartKind::Flow,
            MultipartRequestBody::Aggregate(_) => MultipartKind::Aggregate,
            MultipartRequestBody::Table => MultipartKind::Table,
            MultipartRequestBody::Port(_) => MultipartKind::Port,
            MultipartRequestBody::Queue { .. } => MultipartKind::Queue,
            MultipartRequestBody::Group(_) => MultipartKind::Group,
            MultipartRequestBody::GroupDesc(_) => MultipartKind::GroupDesc,
            MultipartRequestBody::GroupFeatures => MultipartKind::GroupFeatures,
            MultipartRequestBody::Meter(_) => MultipartKind::Meter,
            MultipartRequestBody::MeterConfig(_) => MultipartKind::MeterConfig,
            MultipartRequestBody::MeterFeatures => MultipartKind::MeterFeatures,
            MultipartRequestBody::FlowStats(_) => MultipartKind::FlowStats,
            MultipartRequestBody::TableFeatures(_) => MultipartKind::TableFeatures,
            MultipartRequestBody::PortDesc(_) => MultipartKind::PortDesc,
            MultipartRequestBody::TableDesc => MultipartKind::TableDesc,
            MultipartRequestBody::QueueDesc { .. } => MultipartKind::QueueDesc,
            MultipartRequestBody::FlowMonitor(_) => MultipartKind::FlowMonitor,
            MultipartRequestBody::ControllerStatus => MultipartKind::ControllerStatus,
            MultipartRequestBody::BundleFeatures(_) => MultipartKind::BundleFeatures,
            MultipartRequestBody::Experimenter(_) => MultipartKind::Experimenter,
        }
    }
}

impl MultipartReplyBody {
    /// Its row in the table of versions.
    pub fn kind(&self) -> MultipartKind {
        match self {
            MultipartReplyBody::Desc(_) => MultipartKind::Desc,
            MultipartReplyBody::Flow(_) => MultipartKind::Flow,
            MultipartReplyBody::Aggregate(_) => MultipartKind::Aggregate,
            MultipartReplyBody::Table(_) => MultipartKind::Table,
            MultipartReplyBody::Port(_) => MultipartKind::Port,
            MultipartReplyBody::Queue(_) => MultipartKind::Queue,
            MultipartReplyBody::Group(_) => MultipartKind::Group,
            MultipartReplyBody::GroupDesc(_) => MultipartKind::GroupDesc,
            MultipartReplyBody::GroupFeatures(_) => MultipartKind::GroupFeatures,
            MultipartReplyBody::Meter(_) => MultipartKind::Meter,
            MultipartReplyBody::MeterConfig(_) => MultipartKind::MeterConfig,
            MultipartReplyBody::MeterFeatures(_) => MultipartKind::MeterFeatures,
            MultipartReplyBody::FlowStats(_) => MultipartKind::FlowStats,
            MultipartReplyBody::TableFeatures(_) => MultipartKind::TableFeatures,
            MultipartReplyBody::PortDesc(_) => MultipartKind::PortDesc,
            MultipartReplyBody::TableDesc(_) => MultipartKind::TableDesc,
            MultipartReplyBody::QueueDesc(_) => MultipartKind::QueueDesc,
            MultipartReplyBody::FlowMonitor(_) => MultipartKind::FlowMonitor,
            MultipartReplyBody::ControllerStatus(_) => MultipartKind::ControllerStatus,
            MultipartReplyBody::BundleFeatures(_) => MultipartKind::BundleFeatures,
            MultipartReplyBody::Experimenter(_) => MultipartKind::Experimenter,
        }
    }
}

impl fmt::Display for FlowStatsRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={} out_port={}", ShowTable(self.table), ShowPort(self.out_port))?;
        if self.out_group != GROUP_ANY {
            write!(f, " out_group={}", self.out_group)?;
        }
        if self.cookie_mask != 0 {
            write!(f, " cookie={:#x}/{:#x}", self.cookie, self.cookie_mask)?;
        }
        write!(f, " match={}", self.matching)
    }
}

struct ShowQueue(u32);

impl fmt::Display for ShowQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            QUEUE_ALL => f.write_str("all"),
            number => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for MultipartRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.body.kind(), if self.more { " more" } else { "" })?;
        match &self.body {
            MultipartRequestBody::Desc
            | MultipartRequestBody::Table
            | MultipartRequestBody::TableDesc
            | MultipartRequestBody::GroupFeatures
            | MultipartRequestBody::MeterFeatures
            | MultipartRequestBody::ControllerStatus => Ok(()),
            MultipartRequestBody::Flow(which)
            | MultipartRequestBody::Aggregate(which)
            | MultipartRequestBody::FlowStats(which) => write!(f, " {which}"),
            MultipartRequestBody::Group(group) | MultipartRequestBody::GroupDesc(group) => {
                write!(f, " group={group:#x}")
            }
            MultipartRequestBody::Meter(meter) | MultipartRequestBody::MeterConfig(meter) => {
                write!(f, " meter={meter:#x}")
            }
            MultipartRequestBody::Port(port) | MultipartRequestBody::PortDesc(port) => {
                write!(f, " port={}", ShowPort(*port))
            }
            MultipartRequestBody::Queue { port, queue }
            | MultipartRequestBody::QueueDesc { port, queue } => {
                write!(f, " port={} queue={}", ShowPort(*port), ShowQueue(*queue))
            }
            MultipartRequestBody::TableFeatures(tables) => show_rows(f, tables),
            MultipartRequestBody::FlowMonitor(monitors) => show_rows(f, monitors),
            MultipartRequestBody::BundleFeatures(request) => write!(f, " {request}"),
            MultipartRequestBody::Experimenter(body) => write!(f, " {body}"),
        }
    }
}

fn show_rows<T: fmt::Display>(f: &mut fmt::Formatter<'_>, rows: &[T]) -> fmt::Result {
    rows.iter().try_for_each(|row| write!(f, "\n  {row}"))
}

impl fmt::Display for MultipartReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.body.kind(), if self.more { " more" } else { "" })?;
        match &self.body {
            MultipartReplyBody::Desc(desc) => write!(f, " {desc}"),
            MultipartReplyBody::Flow(rows) => show_rows(f, rows),
            MultipartReplyBody::Aggregate(sum) => write!(f, " {sum}"),
            MultipartReplyBody::Table(rows) => show_rows(f, rows),
            MultipartReplyBody::Port(rows) => show_rows(f, rows),
            MultipartReplyBody::Queue(rows) => show_rows(f, rows),
            MultipartReplyBody::Group(rows) => show_rows(f, rows),
            MultipartReplyBody::GroupDesc(rows) => show_rows(f, rows),
            MultipartReplyBody::GroupFeatures(features) => write!(f, " {features}"),
            MultipartReplyBody::Meter(rows) => show_rows(f, rows),
            MultipartReplyBody::MeterConfig(rows) => show_rows(f, rows),
            MultipartReplyBody::MeterFeatures(features) => write!(f, " {features}"),
            MultipartReplyBody::FlowStats(rows) => show_rows(f, rows),
            MultipartReplyBody::TableFeatures(rows) => show_rows(f, rows),
            MultipartReplyBody::PortDesc(rows) => show_rows(f, rows),
            MultipartReplyBody::TableDesc(rows) => show_rows(f, rows),
            MultipartReplyBody::QueueDesc(rows) => show_rows(f, rows),
            MultipartReplyBody::FlowMonitor(rows) => show_rows(f, rows),
            MultipartReplyBody::ControllerStatus(rows) => show_rows(f, rows),
            MultipartReplyBody::BundleFeatures(features) => write!(f, " {features}"),
            MultipartReplyBody::Experimenter(body) => write!(f, " {body}"),
        }
    }
}

impl fmt::Display for SwitchDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "manufacturer={:?} hardware={:?}", self.manufacturer, self.hardware)?;
        write!(f, " software={:?} serial_number={:?}", self.software, self.serial_number)?;
        write!(f, " datapath={:?}", self.datapath)
    }
}

impl fmt::Display for FlowStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={} priority={} match={}", self.table, self.priority, self.matching)?;
        write!(f, " cookie={:#x} age={}ns", self.cookie, self.age.0)?;
        write!(f, " idle_timeout={}s hard_timeout={}s", self.idle_timeout_s, self.hard_timeout_s)?;
        if let Some(idle) = self.idle_age {
            write!(f, " idle_age={}ns", idle.0)?;
        }
        if !self.flags.is_empty() {
            write!(f, " flags={}", self.flags)?;
        }
        if self.importance != 0 {
            write!(f, " importance={}", self.importance)?;
        }
        write!(f, " packets={} bytes={}", Counter(self.packets), Counter(self.bytes))?;
        show_instructions(f, &self.instructions)
    }
}

impl fmt::Display for AggregateStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flows={} packets={} bytes={}", self.flows, self.packets, self.bytes)
    }
}
