//! Flow-mod and flow-removed messages.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.3 (`ofp_flow_mod`) and 5.4.2 (`ofp_flow_removed`), 1.5.1
//! sections 7.3.4.2 and 7.4.2.

pub mod counters;
pub mod monitor;

use std::fmt;

use packet::time::Nanos;

use super::action::Action;
use super::bits::bits;
use super::group::GROUP_ANY;
use super::instruction::{Instruction, show_instructions};
use super::matching::Match;
use super::port::stats::Counter;
use super::port::{PortNo, ShowPort, reserved};
use super::table::ShowTable;
use super::text::list;
use crate::version::NO;
use crate::version::Version;

/// ID of a frame that the switch buffers; never 0xffff_ffff, which means "none".
pub type BufferId = u32;

/// Default priority of a flow entry.
pub const PRIORITY_DEFAULT: u16 = 0x8000;

/// Command of a flow-mod (`ofp_flow_mod_command`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FlowModCommand {
    /// Adds a flow entry; replaces one with the same match and priority.
    #[default]
    Add,
    /// Modifies the actions of all entries within the match; 1.0 and 1.1 add one if there is none.
    Modify,
    /// Like [`FlowModCommand::Modify`], for the one entry with exactly this match and priority.
    ModifyStrict,
    /// Deletes all flow entries within the match.
    Delete,
    /// Deletes the flow entry with exactly this match and priority.
    DeleteStrict,
}

bits! {
    /// Flags of a flow-mod (`ofp_flow_mod_flags`).
    FlowModFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Send flow-removed when the entry expires or is deleted.
        SEND_FLOW_REMOVED "send_flow_removed"        [ 0,  0,  0,  0,  0,  0];
        /// Reject the entry if it overlaps one of the same priority.
        CHECK_OVERLAP "check_overlap"                [ 1,  1,  1,  1,  1,  1];
        /// Emergency entry: in use while no controller is connected.
        EMERGENCY "emergency"                        [ 2, NO, NO, NO, NO, NO];
        /// Reset the counters.
        RESET_COUNTS "reset_counts"                  [NO, NO,  2,  2,  2,  2];
        /// Do not count packets.
        NO_PACKET_COUNTS "no_packet_counts"          [NO, NO, NO,  3,  3,  3];
        /// Do not count bytes.
        NO_BYTE_COUNTS "no_byte_counts"              [NO, NO, NO,  4,  4,  4];
    }
}

/// Adds, modifies or deletes flow entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowMod {
    /// The command.
    pub command: FlowModCommand,
    /// The table; deletions may use [`super::table::TABLE_ALL`]. In 1.0 it is 0, except with
    /// Nicira's table ID extension.
    pub table: u8,
    /// Match of the new entry, or filter for existing entries.
    pub matching: Match,
    /// Priority; a higher one takes precedence. In 1.0 entries without wildcards have the highest.
    pub priority: u16,
    /// Opaque number that the controller assigns to the entry.
    pub cookie: u64,
    /// Modifies and deletes only entries whose cookie equals `cookie` in these bits; always 0 in
    /// 1.0.
    pub cookie_mask: u64,
    /// Seconds without a matching frame after which the entry expires; 0 for never.
    pub idle_timeout_s: u16,
    /// Seconds after which the entry expires; 0 for never.
    pub hard_timeout_s: u16,
    /// A buffered frame to apply the new entry to.
    pub buffer_id: Option<BufferId>,
    /// Deletes only entries with this output port; [`reserved::NONE`] for all.
    pub out_port: PortNo,
    /// Deletes only entries with this output group; [`GROUP_ANY`] for all.
    pub out_group: u32,
    /// Importance for eviction: the switch evicts the least important entries first (1.4).
    pub importance: u16,
    /// Flags.
    pub flags: FlowModFlags,
    /// Instructions of the entry.
    pub instructions: Vec<Instruction>,
}

impl FlowMod {
    /// Returns a flow-mod that adds an entry with these apply-actions to table 0.
    pub fn add(matching: Match, priority: u16, actions: Vec<Action>) -> FlowMod {
        let instructions = Instruction::apply(actions);
        FlowMod { matching, priority, instructions, ..FlowMod::default() }
    }

    /// Returns a flow-mod that deletes the entries within a match from a table.
    ///
    /// [`super::table::TABLE_ALL`] deletes from all tables. In 1.0 a table other than 0 is a Nicira
    /// extension: a peer that has not enabled it rejects the command. See [`FlowMod::delete_all`].
    pub fn delete(table: u8, matching: Match) -> FlowMod {
        FlowMod { command: FlowModCommand::Delete, table, matching, ..FlowMod::default() }
    }

    /// Returns a flow-mod that deletes the entries within a match from every table in this version.
    ///
    /// In 1.0 it names no table.
    pub fn delete_all(version: Version, matching: Match) -> FlowMod {
        let table = if version == Version::V1_0 { 0 } else { super::table::TABLE_ALL };
        FlowMod::delete(table, matching)
    }

    /// Returns the apply-actions.
    pub fn applied(&self) -> &[Action] {
        Instruction::applied(&self.instructions)
    }
}

impl Default for FlowMod {
    fn default() -> Self {
        FlowMod {
            command: FlowModCommand::Add,
            table: 0,
            matching: Match::ANY,
            priority: PRIORITY_DEFAULT,
            cookie: 0,
            cookie_mask: 0,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            buffer_id: None,
            out_port: reserved::NONE,
            out_group: GROUP_ANY,
            importance: 0,
            flags: FlowModFlags::NONE,
            instructions: Vec::new(),
        }
    }
}

/// Why a flow entry was removed (`ofp_flow_removed_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowRemovedReason {
    /// The idle timeout expired.
    IdleTimeout,
    /// The hard timeout expired.
    HardTimeout,
    /// A flow-mod deleted it.
    Delete,
    /// Its group was deleted (1.1).
    GroupDelete,
    /// Its meter was deleted (1.4).
    MeterDelete,
    /// The switch evicted it for a new entry (1.4).
    Eviction,
}

impl FlowRemovedReason {
    /// All reasons, in the order of their codes, which are the same in all versions.
    pub const ALL: [FlowRemovedReason; 6] = [
        FlowRemovedReason::IdleTimeout,
        FlowRemovedReason::HardTimeout,
        FlowRemovedReason::Delete,
        FlowRemovedReason::GroupDelete,
        FlowRemovedReason::MeterDelete,
        FlowRemovedReason::Eviction,
    ];

    /// Returns the name in text output.
    pub fn name(self) -> &'static str {
        match self {
            FlowRemovedReason::IdleTimeout => "idle_timeout",
            FlowRemovedReason::HardTimeout => "hard_timeout",
            FlowRemovedReason::Delete => "delete",
            FlowRemovedReason::GroupDelete => "group_delete",
            FlowRemovedReason::MeterDelete => "meter_delete",
            FlowRemovedReason::Eviction => "eviction",
        }
    }
}

/// Notifies of a removed flow entry.
///
/// 1.0 transmits neither table nor hard timeout; decoding sets them to 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRemoved {
    /// The reason.
    pub reason: FlowRemovedReason,
    /// The entry's table.
    pub table: u8,
    /// The entry's match.
    pub matching: Match,
    /// The entry's priority.
    pub priority: u16,
    /// The entry's cookie.
    pub cookie: u64,
    /// Time since the entry was installed.
    pub age: Nanos,
    /// The entry's idle timeout in seconds.
    pub idle_timeout_s: u16,
    /// The entry's hard timeout in seconds.
    pub hard_timeout_s: u16,
    /// Matched frames, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub packets: u64,
    /// Matched bytes, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub bytes: u64,
}

impl fmt::Display for FlowModCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FlowModCommand::Add => "add",
            FlowModCommand::Modify => "modify",
            FlowModCommand::ModifyStrict => "modify_strict",
            FlowModCommand::Delete => "delete",
            FlowModCommand::DeleteStrict => "delete_strict",
        })
    }
}

impl fmt::Display for FlowMod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} table={}", self.command, ShowTable(self.table))?;
        write!(f, " priority={} match={} cookie={:#x}", self.priority, self.matching, self.cookie)?;
        if self.cookie_mask != 0 {
            write!(f, "/{:#x}", self.cookie_mask)?;
        }
        write!(f, " idle_timeout={}s hard_timeout={}s", self.idle_timeout_s, self.hard_timeout_s)?;
        if self.importance != 0 {
            write!(f, " importance={}", self.importance)?;
        }
        if let Some(id) = self.buffer_id {
            write!(f, " buffer={id:#x}")?;
        }
        if self.out_port != reserved::NONE {
            write!(f, " out_port={}", ShowPort(self.out_port))?;
        }
        if self.out_group != GROUP_ANY {
            write!(f, " out_group={}", self.out_group)?;
        }
        write!(f, " flags={}", self.flags)?;
        let deletes = matches!(self.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
        if deletes && self.instructions.is_empty() {
            return Ok(());
        }
        show_instructions(f, &self.instructions)
    }
}

impl fmt::Display for FlowRemovedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for FlowRemoved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} table={}", self.reason, self.table)?;
        write!(f, " priority={} match={}", self.priority, self.matching)?;
        write!(f, " cookie={:#x} age={}ns", self.cookie, self.age.0)?;
        write!(f, " idle_timeout={}s hard_timeout={}s", self.idle_timeout_s, self.hard_timeout_s)?;
        write!(f, " packets={} bytes={}", Counter(self.packets), Counter(self.bytes))
    }
}

pub(crate) fn show_actions(f: &mut fmt::Formatter<'_>, actions: &[Action]) -> fmt::Result {
    if actions.is_empty() { f.write_str("drop") } else { list(f, actions) }
}
