//! Instructions of a flow entry.
//!
//! Source: OpenFlow 1.3.5 section 7.2.4 (`ofp_instruction_*`), 1.5.1 section 7.2.5.
//!
//! - A list of actions in 1.0 is one [`Instruction::ApplyActions`]; an empty list is no
//!   instruction.
//! - A list of instructions has each type at most once.
//! - The switch executes them in the order meter, apply, clear, write, metadata, goto, regardless
//!   of their order in the list.

use std::fmt;

use packet::time::Nanos;

use super::action::{Action, Experimenter};
use super::bits::bits;
use super::flow::show_actions;
use super::text::list;
use crate::version::{InstructionKind, NO};

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// Continues processing in this table.
    GotoTable(u8),
    /// Writes the bits of the mask into the metadata.
    WriteMetadata {
        /// The value; zero outside the mask.
        value: u64,
        /// The bits to write.
        mask: u64,
    },
    /// Merges these actions into the action set.
    WriteActions(Vec<Action>),
    /// Executes these actions immediately, in order.
    ApplyActions(Vec<Action>),
    /// Clears the action set.
    ClearActions,
    /// Applies a meter to the frame (1.3 and 1.4; an action in 1.5).
    Meter(u32),
    /// Sends the counters to the controllers when one passes a threshold (1.5).
    StatTrigger {
        /// When it triggers.
        flags: StatTriggerFlags,
        /// The thresholds.
        thresholds: Counters,
    },
    /// An experimenter instruction.
    Experimenter(Experimenter),
}

bits! {
    /// When a stat trigger sends counters (`ofp_stat_trigger_flags`).
    StatTriggerFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// At every multiple of the threshold.
        PERIODIC "periodic"                          [NO, NO, NO, NO, NO,  0];
        /// Only at the first threshold that is reached.
        ONLY_FIRST "only_first"                      [NO, NO, NO, NO, NO,  1];
    }
}

/// Counters of flow entries, or thresholds for them; each optional (`ofp_stats` of 1.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Time since the entry was installed.
    pub age: Option<Nanos>,
    /// Time since the last matching frame.
    pub idle: Option<Nanos>,
    /// Number of flow entries.
    pub flows: Option<u32>,
    /// Matched frames.
    pub packets: Option<u64>,
    /// Matched bytes.
    pub bytes: Option<u64>,
}

impl Instruction {
    /// Returns the instructions that apply these actions.
    pub fn apply(actions: Vec<Action>) -> Vec<Instruction> {
        if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] }
    }

    /// Returns the apply-actions.
    pub fn applied(instructions: &[Instruction]) -> &[Action] {
        instructions
            .iter()
            .find_map(|instruction| match instruction {
                Instruction::ApplyActions(actions) => Some(&actions[..]),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// Returns the instruction type.
    pub fn kind(&self) -> InstructionKind {
        match self {
            Instruction::GotoTable(_) => InstructionKind::GotoTable,
            Instruction::WriteMetadata { .. } => InstructionKind::WriteMetadata,
            Instruction::WriteActions(_) => InstructionKind::WriteActions,
            Instruction::ApplyActions(_) => InstructionKind::ApplyActions,
            Instruction::ClearActions => InstructionKind::ClearActions,
            Instruction::Meter(_) => InstructionKind::Meter,
            Instruction::StatTrigger { .. } => InstructionKind::StatTrigger,
            Instruction::Experimenter(_) => InstructionKind::Experimenter,
        }
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind();
        match self {
            Instruction::GotoTable(table) => write!(f, "{name}:{table}"),
            Instruction::WriteMetadata { value, mask } => write!(f, "{name}:{value:#x}/{mask:#x}"),
            Instruction::WriteActions(actions) | Instruction::ApplyActions(actions) => {
                write!(f, "{name}(")?;
                list(f, actions)?;
                f.write_str(")")
            }
            Instruction::ClearActions => write!(f, "{name}"),
            Instruction::Meter(meter) => write!(f, "{name}:{meter}"),
            Instruction::StatTrigger { flags, thresholds } => {
                write!(f, "{name}(flags={flags}{thresholds})")
            }
            Instruction::Experimenter(experimenter) => write!(f, "{name}:{experimenter}"),
        }
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spans = [("age", self.age), ("idle", self.idle)];
        for (name, span) in spans {
            span.map_or(Ok(()), |span| write!(f, " {name}={}ns", span.0))?;
        }
        let flows = self.flows.map(u64::from);
        for (name, count) in [("flows", flows), ("packets", self.packets), ("bytes", self.bytes)] {
            count.map_or(Ok(()), |count| write!(f, " {name}={count}"))?;
        }
        Ok(())
    }
}

/// Writes a single apply-actions as plain actions, and anything else instruction by instruction.
pub(crate) fn show_instructions(
    f: &mut fmt::Formatter<'_>,
    instructions: &[Instruction],
) -> fmt::Result {
    match instructions {
        [] => f.write_str(" actions=drop"),
        [Instruction::ApplyActions(actions)] => {
            f.write_str(" actions=")?;
            show_actions(f, actions)
        }
        _ => {
            f.write_str(" instructions=")?;
            list(f, instructions)
        }
    }
}
