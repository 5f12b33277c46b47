//! News of entries that come, go and change.
//!
//! Source: OpenFlow 1.4.1 section 7.3.5.19 (`ofp_flow_monitor_request`, `ofp_flow_update_*`).

use std::fmt;

use super::super::bits::bits;
use super::super::instruction::{Instruction, show_instructions};
use super::super::matching::Match;
use super::super::port::{PortNo, ShowPort, reserved};
use super::super::table::{ShowTable, TABLE_ALL};
use super::FlowRemovedReason;
use crate::header::Xid;
use crate::version::NO;

bits! {
    /// What a monitor tells (`ofp_flow_monitor_flags`).
    FlowMonitorFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Entries that there are at its beginning.
        INITIAL "initial"                            [NO, NO, NO, NO,  0,  0];
        /// Entries that come.
        ADD "add"                                    [NO, NO, NO, NO,  1,  1];
        /// Entries that go.
        REMOVED "removed"                            [NO, NO, NO, NO,  2,  2];
        /// Entries that change.
        MODIFY "modify"                              [NO, NO, NO, NO,  3,  3];
        /// What they do.
        INSTRUCTIONS "instructions"                  [NO, NO, NO, NO,  4,  4];
        /// The controller's own changes in full.
        NO_ABBREVIATION "no_abbreviation"            [NO, NO, NO, NO,  5,  5];
        /// The controller's own changes only.
        ONLY_OWN "only_own"                          [NO, NO, NO, NO,  6,  6];
    }
}

/// What becomes of a monitor (`ofp_flow_monitor_command`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FlowMonitorCommand {
    /// It is new.
    #[default]
    Add,
    /// It changes.
    Modify,
    /// It ends.
    Delete,
}

/// Sets a monitor up, changes or ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowMonitorRequest {
    /// The controller's number for it.
    pub id: u32,
    /// What becomes of it.
    pub command: FlowMonitorCommand,
    /// What it tells.
    pub flags: FlowMonitorFlags,
    /// Entries within this match.
    pub matching: Match,
    /// Their table, or [`TABLE_ALL`].
    pub table: u8,
    /// Only those that output to this port; [`reserved::NONE`] for all.
    pub out_port: PortNo,
    /// Only those that send to this group; 0xffff_ffff for all.
    pub out_group: u32,
}

/// What became of entries (`ofp_flow_update_event`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowUpdate {
    /// An entry came, went, changed or was there.
    Full(FlowUpdateFull),
    /// The controller's own flow-mod was done.
    Abbreviated {
        /// Its transaction id.
        xid: Xid,
    },
    /// The news stop for want of room.
    Paused,
    /// The news go on.
    Resumed,
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowUpdateFull {
    /// What.
    pub event: FlowEvent,
    /// Its table.
    pub table: u8,
    /// Its match.
    pub matching: Match,
    /// Its priority.
    pub priority: u16,
    /// The controller's own number for it.
    pub cookie: u64,
    /// Its idle time-out in seconds.
    pub idle_timeout_s: u16,
    /// Its hard time-out in seconds.
    pub hard_timeout_s: u16,
    /// What it does, if the monitor asks for it and it is not gone.
    pub instructions: Vec<Instruction>,
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEvent {
    /// It was there at the monitor's beginning.
    Initial,
    /// It came.
    Added,
    /// It went.
    Removed(FlowRemovedReason),
    /// It changed.
    Modified,
}

impl Default for FlowMonitorRequest {
    fn default() -> Self {
        FlowMonitorRequest {
            id: 0,
            command: FlowMonitorCommand::Add,
            flags: FlowMonitorFlags::NONE,
            matching: Match::ANY,
            table: TABLE_ALL,
            out_port: reserved::NONE,
            out_group: u32::MAX,
        }
    }
}

impl fmt::Display for FlowMonitorRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.command {
            FlowMonitorCommand::Add => "add",
            FlowMonitorCommand::Modify => "modify",
            FlowMonitorCommand::Delete => "delete",
        })?;
        write!(f, " id={:#x} flags={} table={}", self.id, self.flags, ShowTable(self.table))?;
        write!(f, " out_port={} out_group={:#x}", ShowPort(self.out_port), self.out_group)?;
        write!(f, " match={}", self.matching)
    }
}

impl fmt::Display for FlowUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlowUpdate::Full(update) => write!(f, "{update}"),
            FlowUpdate::Abbreviated { xid } => write!(f, "abbreviated xid={xid:#x}"),
            FlowUpdate::Paused => f.write_str("paused"),
            FlowUpdate::Resumed => f.write_str("resumed"),
        }
    }
}

impl fmt::Display for FlowUpdateFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.event {
            FlowEvent::Initial => f.write_str("initial")?,
            FlowEvent::Added => f.write_str("added")?,
            FlowEvent::Removed(reason) => write!(f, "removed:{reason}")?,
            FlowEvent::Modified => f.write_str("modified")?,
        }
        write!(f, " table={} priority={} match={}", self.table, self.priority, self.matching)?;
        write!(f, " cookie={:#x}", self.cookie)?;
        write!(f, " idle_timeout={}s hard_timeout={}s", self.idle_timeout_s, self.hard_timeout_s)?;
        show_instructions(f, &self.instructions)
    }
}
