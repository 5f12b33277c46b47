//! Flow monitors: updates about added, removed and modified flow entries.
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
    /// Contents of a monitor's updates (`ofp_flow_monitor_flags`).
    FlowMonitorFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Existing entries when the monitor starts.
        INITIAL "initial"                            [NO, NO, NO, NO,  0,  0];
        /// Added entries.
        ADD "add"                                    [NO, NO, NO, NO,  1,  1];
        /// Removed entries.
        REMOVED "removed"                            [NO, NO, NO, NO,  2,  2];
        /// Modified entries.
        MODIFY "modify"                              [NO, NO, NO, NO,  3,  3];
        /// Include the instructions.
        INSTRUCTIONS "instructions"                  [NO, NO, NO, NO,  4,  4];
        /// Report the controller's own changes in full.
        NO_ABBREVIATION "no_abbreviation"            [NO, NO, NO, NO,  5,  5];
        /// Report only the controller's own changes.
        ONLY_OWN "only_own"                          [NO, NO, NO, NO,  6,  6];
    }
}

/// Command of a flow monitor request (`ofp_flow_monitor_command`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FlowMonitorCommand {
    /// Adds a monitor.
    #[default]
    Add,
    /// Modifies a monitor.
    Modify,
    /// Deletes a monitor.
    Delete,
}

/// Adds, modifies or deletes a flow monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowMonitorRequest {
    /// Monitor ID, chosen by the controller.
    pub id: u32,
    /// The command.
    pub command: FlowMonitorCommand,
    /// Contents of the updates.
    pub flags: FlowMonitorFlags,
    /// Monitors entries within this match.
    pub matching: Match,
    /// The table, or [`TABLE_ALL`].
    pub table: u8,
    /// Only entries with this output port; [`reserved::NONE`] for all.
    pub out_port: PortNo,
    /// Only entries with this output group; 0xffff_ffff for all.
    pub out_group: u32,
}

/// An update (`ofp_flow_update_event`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowUpdate {
    /// Full description of an entry's change or initial state.
    Full(FlowUpdateFull),
    /// Completion of the controller's own flow-mod.
    Abbreviated {
        /// Transaction ID of the flow-mod.
        xid: Xid,
    },
    /// The switch paused the updates because its buffer is full.
    Paused,
    /// The switch resumed the updates.
    Resumed,
}

/// Full description of an entry's change or initial state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowUpdateFull {
    /// The event.
    pub event: FlowEvent,
    /// The entry's table.
    pub table: u8,
    /// The entry's match.
    pub matching: Match,
    /// The entry's priority.
    pub priority: u16,
    /// The entry's cookie.
    pub cookie: u64,
    /// The entry's idle timeout in seconds.
    pub idle_timeout_s: u16,
    /// The entry's hard timeout in seconds.
    pub hard_timeout_s: u16,
    /// The entry's instructions, if the monitor requests them and the entry still exists.
    pub instructions: Vec<Instruction>,
}

/// Event of a flow entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEvent {
    /// The entry existed when the monitor started.
    Initial,
    /// The entry was added.
    Added,
    /// The entry was removed.
    Removed(FlowRemovedReason),
    /// The entry was modified.
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
