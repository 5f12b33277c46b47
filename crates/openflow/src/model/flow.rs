//! Entries of the tables: adding, changing and deleting them, and the news of their end.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.3 (`ofp_flow_mod`) and 5.4.2 (`ofp_flow_removed`), 1.5.1
//! sections 7.3.4.2 and 7.4.2.

/// The counters of an entry without what it does.
pub mod counters;
/// News of entries.
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

/// The number of a frame that the switch keeps; never 0xffff_ffff, which means "none".
pub type BufferId = u32;

/// Priority of an entry whose sender does not care.
pub const PRIORITY_DEFAULT: u16 = 0x8000;

/// What to do with the entries (`ofp_flow_mod_command`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FlowModCommand {
    /// Adds an entry, replacing one with the same match and priority.
    #[default]
    Add,
    /// Changes the actions of all entries within the match; adds one if there is none.
    Modify,
    /// The same for the one entry with exactly this match and priority.
    ModifyStrict,
    /// Deletes all entries within the match.
    Delete,
    /// Deletes the one entry with exactly this match and priority.
    DeleteStrict,
}

bits! {
    /// How an entry is added (`ofp_flow_mod_flags`).
    FlowModFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Tell the controllers when the entry goes.
        SEND_FLOW_REMOVED "send_flow_removed"        [ 0,  0,  0,  0,  0,  0];
        /// Refuse the entry if it overlaps one of the same priority.
        CHECK_OVERLAP "check_overlap"                [ 1,  1,  1,  1,  1,  1];
        /// For when the controller cannot be reached.
        EMERGENCY "emergency"                        [ 2, NO, NO, NO, NO, NO];
        /// Start the counters again.
        RESET_COUNTS "reset_counts"                  [NO, NO,  2,  2,  2,  2];
        /// Do not count packets.
        NO_PACKET_COUNTS "no_packet_counts"          [NO, NO, NO,  3,  3,  3];
        /// Do not count bytes.
        NO_BYTE_COUNTS "no_byte_counts"              [NO, NO, NO,  4,  4,  4];
    }
}

/// Adds, changes or deletes entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowMod {
    /// What to do.
    pub command: FlowModCommand,
    /// In which table; deletions may say [`super::table::TABLE_ALL`]. 1.0 says 0, or another with Nicira's
    /// extension for tables.
    pub table: u8,
    /// Which frames, or which entries.
    pub matching: Match,
    /// The higher, the earlier; 1.0 gives entries without wildcards the highest.
    pub priority: u16,
    /// The controller's own number for the entry.
    pub cookie: u64,
    /// Changes and deletes only entries whose cookie has the given one's bits here; none counts in
    /// 1.0.
    pub cookie_mask: u64,
    /// Seconds without a frame after which the entry goes; 0 for never.
    pub idle_timeout_s: u16,
    /// Seconds after which the entry goes; 0 for never.
    pub hard_timeout_s: u16,
    /// A kept frame to which the new entry is applied.
    pub buffer_id: Option<BufferId>,
    /// Deletes only entries that output to this port; [`reserved::NONE`] for all.
    pub out_port: PortNo,
    /// Deletes only entries that send to this group; [`GROUP_ANY`] for all.
    pub out_group: u32,
    /// The less, the sooner it has to make room for others (1.4).
    pub importance: u16,
    /// How.
    pub flags: FlowModFlags,
    /// What is done with the frames.
    pub instructions: Vec<Instruction>,
}

impl FlowMod {
    /// Adds an entry to table 0 that does these actions at once.
    pub fn add(matching: Match, priority: u16, actions: Vec<Action>) -> FlowMod {
        let instructions = Instruction::apply(actions);
        FlowMod { matching, priority, instructions, ..FlowMod::default() }
    }

    /// Deletes the entries within a match from a table, or from all with [`super::table::TABLE_ALL`]. In 1.0 a table that is
    /// not 0 is Nicira's extension, and who has not agreed on it refuses the command: see [`FlowMod::delete_all`].
    pub fn delete(table: u8, matching: Match) -> FlowMod {
        FlowMod { command: FlowModCommand::Delete, table, matching, ..FlowMod::default() }
    }

    /// Deletes the entries within a match from every table, as this version says that: 1.0 names no table.
    pub fn delete_all(version: Version, matching: Match) -> FlowMod {
        let table = if version == Version::V1_0 { 0 } else { super::table::TABLE_ALL };
        FlowMod::delete(table, matching)
    }

    /// The actions that are done at once.
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

/// Why an entry went (`ofp_flow_removed_reason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowRemovedReason {
    /// No frame came for the idle time-out.
    IdleTimeout,
    /// The hard time-out was over.
    HardTimeout,
    /// A flow-mod deleted it.
    Delete,
    /// Its group was deleted (1.1).
    GroupDelete,
    /// Its meter was deleted (1.4).
    MeterDelete,
    /// It had to make room (1.4).
    Eviction,
}

impl FlowRemovedReason {
    /// All of them, in the order of their codes, which are the same in all versions.
    pub const ALL: [FlowRemovedReason; 6] = [
        FlowRemovedReason::IdleTimeout,
        FlowRemovedReason::HardTimeout,
        FlowRemovedReason::Delete,
        FlowRemovedReason::GroupDelete,
        FlowRemovedReason::MeterDelete,
        FlowRemovedReason::Eviction,
    ];

    /// The name in text forms.
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

/// An entry has gone. 1.0 tells neither table nor hard time-out: they are 0 when it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRemoved {
    /// Why.
    pub reason: FlowRemovedReason,
    /// The table that it was in.
    pub table: u8,
    /// The entry's match.
    pub matching: Match,
    /// The entry's priority.
    pub priority: u16,
    /// The controller's own number for the entry.
    pub cookie: u64,
    /// How long it was there.
    pub age: Nanos,
    /// Its idle time-out in seconds.
    pub idle_timeout_s: u16,
    /// Its hard time-out in seconds.
    pub hard_timeout_s: u16,
    /// Frames that it matched, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub packets: u64,
    /// Bytes of those, or [`super::port::stats::COUNTER_UNKNOWN`].
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
