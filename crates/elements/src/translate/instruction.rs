//! Instructions of flow entries.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 5.9 and 7.4.3 (`ofp_bad_instruction`).

use dataplane::instruction::{Instructions, StatTrigger};
use openflow::model::instruction::{Counters, StatTriggerFlags};
use openflow::model::{self, Action, Instruction};
use openflow::version::{ErrorCode, Version};

use super::action::{ActionContext, ActionLimits, actions_down, actions_up, output_bytes_max};
use super::consistency::{applied_make_sense, written_make_sense};

/// Converts the instructions of a flow entry in `table`, or returns their error.
pub fn instructions_down(
    from: &[Instruction],
    matching: &model::Match,
    table: u8,
    world: &ActionLimits<'_>,
) -> Result<Instructions, ErrorCode> {
    let mut to = Instructions::default();
    let mut seen = 0u32;
    for instruction in from {
        let bit = 1 << instruction.kind() as u32;
        if seen & bit != 0 {
            return Err(ErrorCode::InstructionDuplicate);
        }
        seen |= bit;
        one_down(instruction, matching, table, world, &mut to)?;
    }
    let lists = |of: fn(&Instruction) -> &[Action]| from.iter().flat_map(of);
    to.output_bytes_max = output_bytes_max(lists(applied).chain(lists(written)));
    Ok(to)
}

fn one_down(
    from: &Instruction,
    matching: &model::Match,
    table: u8,
    world: &ActionLimits<'_>,
    to: &mut Instructions,
) -> Result<(), ErrorCode> {
    match from {
        Instruction::GotoTable(next) => {
            if *next <= table || usize::from(*next) >= world.pipeline.tables().count_tables() {
                return Err(ErrorCode::InstructionBadTable);
            }
            to.goto = Some(*next);
        }
        Instruction::WriteMetadata { value, mask } => to.metadata = Some((*value, *mask)),
        Instruction::WriteActions(actions) => {
            to.write = list_down(actions, matching, written_make_sense, world)?;
        }
        Instruction::ApplyActions(actions) => {
            to.apply = list_down(actions, matching, applied_make_sense, world)?;
        }
        Instruction::ClearActions => to.clear = true,
        Instruction::Meter(meter) if world.has_meter(*meter) => to.meter = Some(*meter),
        Instruction::Meter(_) => return Err(ErrorCode::MeterModUnknownMeter),
        Instruction::StatTrigger { flags, thresholds } => {
            to.trigger = Some(trigger_down(*flags, thresholds)?);
        }
        Instruction::Experimenter(_) => return Err(ErrorCode::InstructionBadExperimenter),
    }
    Ok(())
}

/// Returns the actions of an apply-actions instruction.
fn applied(from: &Instruction) -> &[Action] {
    if let Instruction::ApplyActions(actions) = from { actions } else { &[] }
}

/// Returns the actions of a write-actions instruction.
fn written(from: &Instruction) -> &[Action] {
    if let Instruction::WriteActions(actions) = from { actions } else { &[] }
}

fn list_down(
    actions: &[Action],
    matching: &model::Match,
    make_sense: fn(&model::Match, &[Action]) -> bool,
    world: &ActionLimits<'_>,
) -> Result<dataplane::action::Actions, ErrorCode> {
    let list = actions_down(actions, ActionContext::Flow, world)?;
    if world.version > Version::V1_0 && !make_sense(matching, actions) {
        return Err(ErrorCode::ActionMatchInconsistent);
    }
    Ok(list.into())
}

/// Converts a statistics trigger, which must have a threshold.
fn trigger_down(flags: StatTriggerFlags, from: &Counters) -> Result<StatTrigger, ErrorCode> {
    let trigger = StatTrigger {
        periodic: flags.contains(StatTriggerFlags::PERIODIC),
        only_first: flags.contains(StatTriggerFlags::ONLY_FIRST),
        frames: from.packets,
        bytes: from.bytes,
        age: from.age,
        idle: from.idle,
    };
    let nothing = trigger.frames.is_none()
        && trigger.bytes.is_none()
        && trigger.age.is_none()
        && trigger.idle.is_none();
    if nothing { Err(ErrorCode::InstructionUnsupported) } else { Ok(trigger) }
}

/// Converts instructions to OpenFlow, in the order of their execution.
pub fn instructions_up(from: &Instructions) -> Vec<Instruction> {
    let mut to = Vec::new();
    let mut bytes_max = from.output_bytes_max.iter().copied();
    to.extend(from.trigger.as_ref().map(trigger_up));
    to.extend(from.meter.map(Instruction::Meter));
    if !from.apply.is_empty() {
        to.push(Instruction::ApplyActions(actions_up(&from.apply, &mut bytes_max)));
    }
    if from.clear {
        to.push(Instruction::ClearActions);
    }
    if !from.write.is_empty() {
        to.push(Instruction::WriteActions(actions_up(&from.write, &mut bytes_max)));
    }
    to.extend(from.metadata.map(|(value, mask)| Instruction::WriteMetadata { value, mask }));
    to.extend(from.goto.map(Instruction::GotoTable));
    to
}

fn trigger_up(from: &StatTrigger) -> Instruction {
    let mut flags = StatTriggerFlags::NONE;
    if from.periodic {
        flags |= StatTriggerFlags::PERIODIC;
    }
    if from.only_first {
        flags |= StatTriggerFlags::ONLY_FIRST;
    }
    let thresholds = Counters {
        age: from.age,
        idle: from.idle,
        flows: None,
        packets: from.frames,
        bytes: from.bytes,
    };
    Instruction::StatTrigger { flags, thresholds }
}
