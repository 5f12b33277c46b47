//! What an entry does with its frames: actions now or at the end, and where they go on.
//!
//! Source: OpenFlow 1.3.5 section 7.2.4 (`ofp_instruction_*`), 1.5.1 section 7.2.5. A list of
//! actions in 1.0 is one [`Instruction::ApplyActions`], an empty one no instruction at all. In a
//! list of instructions each kind stands at most once; the switch carries them out in the order
//! meter, apply, clear, write, metadata, goto, wherever they stand.

use std::fmt;

use packet::time::Nanos;

use super::action::{Action, Experimenter};
use super::bits::bits;
use super::flow::show_actions;
use super::text::list;
use crate::version::{InstructionKind, NO};

/// One of the things that an entry does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// The frame goes on to this table.
    GotoTable(u8),
    /// Writes the bits of the mask into the metadata.
    WriteMetadata {
        /// The value; zero outside of the mask.
        value: u64,
        /// One bits are written.
        mask: u64,
    },
    /// Puts these into the action set.
    WriteActions(Vec<Action>),
    /// Does these at once, in order.
    ApplyActions(Vec<Action>),
    /// Empties the action set.
    ClearActions,
    /// Has a meter look at the frame (1.3 and 1.4; later an action).
    Meter(u32),
    /// Tells the controllers when a counter passes a threshold (1.5).
    StatTrigger {
        /// How often.
        flags: StatTriggerFlags,
        /// The thresholds.
        thresholds: Counters,
    },
    /// What somebody else defines.
    Experimenter(Experimenter),
}

bits! {
    /// When a threshold tells (`ofp_stat_trigger_flags`).
    StatTriggerFlags {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// At every multiple of the threshold.
        PERIODIC "periodic"                          [NO, NO, NO, NO, NO,  0];
        /// Only for the first threshold that is reached.
        ONLY_FIRST "only_first"                      [NO, NO, NO, NO, NO,  1];
    }
}

/// Counters of entries, or thresholds of them, where given (1.5's `ofp_stats`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// How long the entry has been there.
    pub age: Option<Nanos>,
    /// How long no frame has matched it.
    pub idle: Option<Nanos>,
    /// How many entries.
    pub flows: Option<u32>,
    /// Frames that matched.
    pub packets: Option<u64>,
    /// Bytes of those.
    pub bytes: Option<u64>,
}

impl Instruction {
    /// The instructions that do these actions at once.
    pub fn apply(actions: Vec<Action>) -> Vec<Instruction> {
        if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] }
    }

    /// The actions that are done at once.
    pub fn applied(instructions: &[Instruction]) -> &[Action] {
        instructions
            .iter()
            .find_map(|instruction| match instruction {
                Instruction::ApplyActions(actions) => Some(&actions[..]),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// Its row in the table of versions.
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

/// Shows plain actions as such, and anything else instruction by instruction.
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
