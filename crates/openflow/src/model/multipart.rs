//! Multipart requests and replies: statistics and descriptions.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5 (`ofp_stats_request`, `ofp_stats_reply`), 1.3.5 section
//! 7.3.5 (`ofp_multipart_request`, `ofp_multipart_reply`).
//!
//! Requests and replies may have several messages; all but the last have the "more" flag.

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

/// A multipart request, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultipartRequest {
    /// Whether another part follows with the same transaction ID (from 1.3 on).
    pub more: bool,
    /// This part.
    pub body: MultipartRequestBody,
}

/// Body of a multipart request, by type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultipartRequestBody {
    /// Description of the switch.
    Desc,
    /// Flow entries with their counters.
    Flow(FlowStatsRequest),
    /// Sum of the counters of flow entries.
    Aggregate(FlowStatsRequest),
    /// Statistics of all tables.
    Table,
    /// Statistics of one port, or of all with [`super::reserved::NONE`].
    Port(PortNo),
    /// Statistics of queues.
    Queue {
        /// The port, or all with [`super::reserved::ALL`] in 1.0 and [`super::reserved::NONE`]
        /// later.
        port: PortNo,
        /// The queue, or all with [`super::queue::QUEUE_ALL`].
        queue: u32,
    },
    /// Statistics of one group, or of all with [`super::group::GROUP_ALL`].
    Group(u32),
    /// Description of one group, or of all with [`super::group::GROUP_ALL`]; before 1.5 always all.
    GroupDesc(u32),
    /// Group features of the switch.
    GroupFeatures,
    /// Statistics of one meter, or of all with [`super::meter::METER_ALL`].
    Meter(u32),
    /// Configuration of one meter, or of all with [`super::meter::METER_ALL`].
    MeterConfig(u32),
    /// Meter features of the switch.
    MeterFeatures,
    /// Counters of flow entries without their instructions (1.5).
    FlowStats(FlowStatsRequest),
    /// Table features; requests them if empty, otherwise sets them.
    TableFeatures(Vec<TableFeatures>),
    /// Description of one port, or of all with [`super::reserved::NONE`]; before 1.5 always all.
    PortDesc(PortNo),
    /// Descriptions of all tables.
    TableDesc,
    /// Descriptions of queues.
    QueueDesc {
        /// The port, or all with [`super::reserved::NONE`].
        port: PortNo,
        /// The queue, or all with [`super::queue::QUEUE_ALL`].
        queue: u32,
    },
    /// Adds, modifies or deletes flow monitors.
    FlowMonitor(Vec<FlowMonitorRequest>),
    /// Status of all controllers.
    ControllerStatus,
    /// Bundle features.
    BundleFeatures(BundleFeaturesRequest),
    /// An experimenter request.
    Experimenter(Experimenter),
}

/// Filter for flow entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowStatsRequest {
    /// Entries within this match.
    pub matching: Match,
    /// Their table, or [`TABLE_ALL`].
    pub table: u8,
    /// Only entries with this output port; [`super::reserved::NONE`] for all.
    pub out_port: PortNo,
    /// Only entries with this output group; [`GROUP_ANY`] for all, and always in 1.0.
    pub out_group: u32,
    /// The required cookie bits in `cookie_mask`.
    pub cookie: u64,
    /// Only entries whose cookie equals `cookie` in these bits; always 0 in 1.0.
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

/// A multipart reply, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MultipartReply {
    /// Whether another part follows with the same transaction ID.
    pub more: bool,
    /// This part.
    pub body: MultipartReplyBody,
}

/// Body of a multipart reply, by type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultipartReplyBody {
    /// Description of the switch.
    Desc(SwitchDescription),
    /// Flow entries with their counters.
    Flow(Vec<FlowStats>),
    /// Sum of the counters of flow entries.
    Aggregate(AggregateStats),
    /// Statistics of tables.
    Table(Vec<TableStats>),
    /// Statistics of ports.
    Port(Vec<PortStats>),
    /// Statistics of queues.
    Queue(Vec<QueueStats>),
    /// Statistics of groups.
    Group(Vec<GroupStats>),
    /// Descriptions of groups.
    GroupDesc(Vec<GroupDescription>),
    /// Group features of the switch.
    GroupFeatures(GroupFeatures),
    /// Statistics of meters.
    Meter(Vec<MeterStats>),
    /// Configurations of meters.
    MeterConfig(Vec<MeterConfig>),
    /// Meter features of the switch.
    MeterFeatures(MeterFeatures),
    /// Counters of flow entries (1.5).
    FlowStats(Vec<FlowCounters>),
    /// Features of tables.
    TableFeatures(Vec<TableFeatures>),
    /// Descriptions of ports.
    PortDesc(Vec<PortDescription>),
    /// Descriptions of tables.
    TableDesc(Vec<TableDescription>),
    /// Descriptions of queues.
    QueueDesc(Vec<PacketQueue>),
    /// Updates of flow monitors.
    FlowMonitor(Vec<FlowUpdate>),
    /// Status of controllers.
    ControllerStatus(Vec<ControllerStatus>),
    /// Bundle features.
    BundleFeatures(BundleFeatures),
    /// An experimenter reply.
    Experimenter(Experimenter),
}

/// Manufacturer, versions and names of a switch (`ofp_desc_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchDescription {
    /// Manufacturer, at most 255 bytes.
    pub manufacturer: Text,
    /// Hardware description, at most 255 bytes.
    pub hardware: Text,
    /// Software description, at most 255 bytes.
    pub software: Text,
    /// Serial number, at most 31 bytes.
    pub serial_number: Text,
    /// Human-readable name of the datapath, at most 255 bytes.
    pub datapath: Text,
}

/// A flow entry and its counters (`ofp_flow_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// The entry's table.
    pub table: u8,
    /// Its match.
    pub matching: Match,
    /// Its priority.
    pub priority: u16,
    /// Opaque number that the controller assigned to it.
    pub cookie: u64,
    /// Time since it was installed.
    pub age: Nanos,
    /// Time since the last matching frame; only in 1.5 and in Nicira's statistics.
    pub idle_age: Option<Nanos>,
    /// Its idle timeout in seconds.
    pub idle_timeout_s: u16,
    /// Its hard timeout in seconds.
    pub hard_timeout_s: u16,
    /// Its flags; from 1.3 on.
    pub flags: FlowModFlags,
    /// Importance for eviction; the switch evicts the least important entries first. From 1.4 on.
    pub importance: u16,
    /// Matched frames, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub packets: u64,
    /// Matched bytes, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub bytes: u64,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
}

/// Sum of the counters of flow entries (`ofp_aggregate_stats_reply`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AggregateStats {
    /// Matched frames.
    pub packets: u64,
    /// Matched bytes.
    pub bytes: u64,
    /// Number of flow entries.
    pub flows: u32,
}

impl From<MultipartRequestBody> for MultipartRequest {
    /// Returns a request of one part.
    fn from(body: MultipartRequestBody) -> MultipartRequest {
        MultipartRequest { more: false, body }
    }
}

impl From<MultipartReplyBody> for MultipartReply {
    /// Returns a reply of one part.
    fn from(body: MultipartReplyBody) -> MultipartReply {
        MultipartReply { more: false, body }
    }
}

impl MultipartRequestBody {
    /// Returns the multipart type.
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
    /// Returns the multipart type.
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
