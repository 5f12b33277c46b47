//! Statistics and descriptions: what is asked for, and what comes back.
//!
//! Source: OpenFlow 1.0.0 section 5.3.5 (`ofp_stats_request`, `ofp_stats_reply`). A reply may
//! come in several messages, each of which but the last says that there is more.

use std::fmt;

use packet::time::Nanos;

use super::action::{Action, Experimenter};
use super::flow::show_actions;
use super::matching::{Fields, Match};
use super::port::{PortNo, ShowPort};
use super::text::Text;
use crate::version::MultipartKind;

/// A counter that the switch does not have.
pub const COUNTER_UNKNOWN: u64 = u64::MAX;

/// Table number in a request that means all tables.
pub const TABLE_ALL: u8 = 0xff;

/// Table number in a request that means the emergency table (1.0 only).
pub const TABLE_EMERGENCY: u8 = 0xfe;

/// Queue number in a request that means all queues of the port.
pub const QUEUE_ALL: u32 = 0xffff_ffff;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MultipartRequest {
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
        /// The port, or all with [`super::reserved::ALL`].
        port: PortNo,
        /// The queue, or all with [`QUEUE_ALL`].
        queue: u32,
    },
    /// What somebody else defines.
    Experimenter(Experimenter),
}

/// Which entries are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowStatsRequest {
    /// Entries within this match.
    pub matching: Match,
    /// Their table, or [`TABLE_ALL`].
    pub table: u8,
    /// Only those that output to this port; [`super::reserved::NONE`] for all.
    pub out_port: PortNo,
}

impl Default for FlowStatsRequest {
    fn default() -> Self {
        let out_port = super::reserved::NONE;
        FlowStatsRequest { matching: Match::ANY, table: TABLE_ALL, out_port }
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
    /// Its idle time-out in seconds.
    pub idle_timeout_s: u16,
    /// Its hard time-out in seconds.
    pub hard_timeout_s: u16,
    /// Frames that it matched.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// What it does.
    pub actions: Vec<Action>,
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

/// One table and its counters (`ofp_table_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Its number; lower ones are looked up first.
    pub table: u8,
    /// Its name, at most 31 bytes.
    pub name: Text,
    /// Fields that its entries may leave open.
    pub wildcards: Fields,
    /// Entries that it can hold.
    pub entries_max: u32,
    /// Entries that it holds.
    pub entries: u32,
    /// Frames looked up in it.
    pub lookups: u64,
    /// Frames that matched one of its entries.
    pub matched: u64,
}

/// One port and its counters (`ofp_port_stats`); [`COUNTER_UNKNOWN`] for what it does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Its number.
    pub port: PortNo,
    /// Frames received.
    pub rx_packets: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Received frames dropped.
    pub rx_dropped: u64,
    /// Frames dropped instead of being sent.
    pub tx_dropped: u64,
    /// Receive errors of every kind.
    pub rx_errors: u64,
    /// Transmit errors of every kind.
    pub tx_errors: u64,
    /// Frames with alignment errors.
    pub rx_frame_errors: u64,
    /// Frames lost to overrun.
    pub rx_overruns: u64,
    /// Frames with a wrong check sequence.
    pub rx_crc_errors: u64,
    /// Collisions.
    pub collisions: u64,
}

/// One queue and its counters (`ofp_queue_stats`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Its port.
    pub port: PortNo,
    /// Its number at the port.
    pub queue: u32,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames dropped for want of room.
    pub tx_errors: u64,
}

impl MultipartRequest {
    /// Its row in the table of versions.
    pub fn kind(&self) -> MultipartKind {
        match self {
            MultipartRequest::Desc => MultipartKind::Desc,
            MultipartRequest::Flow(_) => MultipartKind::Flow,
            MultipartRequest::Aggregate(_) => MultipartKind::Aggregate,
            MultipartRequest::Table => MultipartKind::Table,
            MultipartRequest::Port(_) => MultipartKind::Port,
            MultipartRequest::Queue { .. } => MultipartKind::Queue,
            MultipartRequest::Experimenter(_) => MultipartKind::Experimenter,
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
            MultipartReplyBody::Experimenter(_) => MultipartKind::Experimenter,
        }
    }
}

struct ShowTable(u8);

impl fmt::Display for ShowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            TABLE_ALL => f.write_str("all"),
            TABLE_EMERGENCY => f.write_str("emergency"),
            number => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for FlowStatsRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={} out_port={}", ShowTable(self.table), ShowPort(self.out_port))?;
        write!(f, " match={}", self.matching)
    }
}

impl fmt::Display for MultipartRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind())?;
        match self {
            MultipartRequest::Desc | MultipartRequest::Table => Ok(()),
            MultipartRequest::Flow(which) | MultipartRequest::Aggregate(which) => {
                write!(f, " {which}")
            }
            MultipartRequest::Port(port) => write!(f, " port={}", ShowPort(*port)),
            MultipartRequest::Queue { port, queue: QUEUE_ALL } => {
                write!(f, " port={} queue=all", ShowPort(*port))
            }
            MultipartRequest::Queue { port, queue } => {
                write!(f, " port={} queue={queue}", ShowPort(*port))
            }
            MultipartRequest::Experimenter(body) => write!(f, " {body}"),
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
        write!(f, " packets={} bytes={} actions=", self.packets, self.bytes)?;
        show_actions(f, &self.actions)
    }
}

impl fmt::Display for AggregateStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flows={} packets={} bytes={}", self.flows, self.packets, self.bytes)
    }
}

impl fmt::Display for TableStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table={} name={:?} wildcards={}", self.table, self.name, self.wildcards)?;
        write!(f, " entries={}/{}", self.entries, self.entries_max)?;
        write!(f, " lookups={} matched={}", self.lookups, self.matched)
    }
}

struct Counter(u64);

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == COUNTER_UNKNOWN { f.write_str("?") } else { write!(f, "{}", self.0) }
    }
}

impl fmt::Display for PortStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port={}", ShowPort(self.port))?;
        for (name, value) in [
            ("rx_packets", self.rx_packets),
            ("tx_packets", self.tx_packets),
            ("rx_bytes", self.rx_bytes),
            ("tx_bytes", self.tx_bytes),
            ("rx_dropped", self.rx_dropped),
            ("tx_dropped", self.tx_dropped),
            ("rx_errors", self.rx_errors),
            ("tx_errors", self.tx_errors),
            ("rx_frame_errors", self.rx_frame_errors),
            ("rx_overruns", self.rx_overruns),
            ("rx_crc_errors", self.rx_crc_errors),
            ("collisions", self.collisions),
        ] {
            write!(f, " {name}={}", Counter(value))?;
        }
        Ok(())
    }
}

impl fmt::Display for QueueStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port={} queue={}", ShowPort(self.port), self.queue)?;
        write!(f, " tx_bytes={}", Counter(self.tx_bytes))?;
        write!(f, " tx_packets={}", Counter(self.tx_packets))?;
        write!(f, " tx_errors={}", Counter(self.tx_errors))
    }
}
