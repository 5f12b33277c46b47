//! Encodes and decodes instructions.
//!
//! Source: OpenFlow 1.1.0 section A.2.4 to 1.5.1 section 7.2.5. 1.0 has a list of apply-actions
//! instead.

use packet::error::{Malformed, MalformedReason};

use super::action::{put_actions, read_actions};
use super::bytes::{Put, Reader, put_length_of_eights};
use super::flow::counters::{put_counters, read_counters};
use super::message::{put_experimenter, read_experimenter};
use super::{Fault, MessagePart};
use crate::model::instruction::{Instruction, StatTriggerFlags};
use crate::version::{ErrorCode, InstructionKind, Version};

/// Bytes of an instruction's type and length.
const PREFIX_BYTES: usize = 4;

/// Appends instructions; in 1.0, the apply-actions.
pub(super) fn put_instructions(
    version: Version,
    instructions: &[Instruction],
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    instructions.iter().try_for_each(|instruction| match instruction {
        Instruction::ApplyActions(actions) if version == Version::V1_0 => {
            put_actions(version, actions, out)
        }
        instruction => put_instruction(version, instruction, out),
    })
}

fn put_instruction(
    version: Version,
    instruction: &Instruction,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let kind = instruction.kind();
    let start = out.len();
    out.put_u16(kind.code(version).ok_or(MessagePart::Instruction(kind))?);
    out.put_u16(0);
    match instruction {
        Instruction::GotoTable(table) => {
            out.put_u8(*table);
            out.put_zeros(3);
        }
        Instruction::WriteMetadata { value, mask } => {
            out.put_zeros(4);
            out.put_u64(*value);
            out.put_u64(*mask);
        }
        Instruction::WriteActions(actions) | Instruction::ApplyActions(actions) => {
            out.put_zeros(4);
            put_actions(version, actions, out)?;
        }
        Instruction::ClearActions => out.put_zeros(4),
        Instruction::Meter(meter) => out.put_u32(*meter),
        Instruction::StatTrigger { flags, thresholds } => {
            out.put_u32(flags.to_wire(version).map_err(MessagePart::Bit)?);
            put_counters(thresholds, out)?;
        }
        Instruction::Experimenter(vendor) => put_experimenter(vendor, out),
    }
    put_length_of_eights("instruction", out, start, 2)
}

/// Reads instructions up to the end; in 1.0, a list of actions.
pub(super) fn read_instructions(
    version: Version,
    reader: &mut Reader,
) -> Result<Vec<Instruction>, Fault> {
    if version == Version::V1_0 {
        return Ok(Instruction::apply(read_actions(version, reader)?));
    }
    let mut instructions: Vec<Instruction> = Vec::new();
    while reader.left() > 0 {
        let at = reader.at();
        let instruction = read_instruction(version, reader)?;
        let kind = instruction.kind();
        let is_other = kind != InstructionKind::Experimenter;
        if is_other && instructions.iter().any(|other| other.kind() == kind) {
            return Err(Fault::value(at, kind as u64, ErrorCode::InstructionDuplicate));
        }
        instructions.push(instruction);
    }
    Ok(instructions)
}

fn bad_length(malformed: Malformed) -> Fault {
    Fault::new(malformed, ErrorCode::InstructionBadLength)
}

fn read_instruction(version: Version, reader: &mut Reader) -> Result<Instruction, Fault> {
    let at = reader.at();
    let code = reader.u16().map_err(bad_length)?;
    let length = usize::from(reader.u16().map_err(bad_length)?);
    if length < 2 * PREFIX_BYTES || !length.is_multiple_of(8) {
        return Err(bad_length(Malformed { at: at + 2, why: MalformedReason::BadLength(length) }));
    }
    let mut body = reader.within(length - PREFIX_BYTES).map_err(bad_length)?;
    let Some(kind) = InstructionKind::from_code(version, code) else {
        return Err(Fault::value(at, code, ErrorCode::InstructionUnknown));
    };
    let instruction = read_body(version, kind, &mut body)?;
    body.finish().map_err(bad_length)?;
    Ok(instruction)
}

fn read_body(
    version: Version,
    kind: InstructionKind,
    body: &mut Reader,
) -> Result<Instruction, Fault> {
    Ok(match kind {
        InstructionKind::GotoTable => {
            let table = body.u8().map_err(bad_length)?;
            body.skip(3).map_err(bad_length)?;
            Instruction::GotoTable(table)
        }
        InstructionKind::WriteMetadata => {
            body.skip(4).map_err(bad_length)?;
            let value = body.u64().map_err(bad_length)?;
            let mask = body.u64().map_err(bad_length)?;
            Instruction::WriteMetadata { value: value & mask, mask }
        }
        InstructionKind::WriteActions | InstructionKind::ApplyActions => {
            body.skip(4).map_err(bad_length)?;
            let actions = read_actions(version, body)?;
            match kind {
                InstructionKind::WriteActions => Instruction::WriteActions(actions),
                _ => Instruction::ApplyActions(actions),
            }
        }
        InstructionKind::ClearActions => {
            body.skip(4).map_err(bad_length)?;
            Instruction::ClearActions
        }
        InstructionKind::Meter => Instruction::Meter(body.u32().map_err(bad_length)?),
        InstructionKind::StatTrigger => {
            let flags = body.u32().map_err(bad_length)?;
            let flags = StatTriggerFlags::from_wire(version, flags).0;
            Instruction::StatTrigger { flags, thresholds: read_counters(body)? }
        }
        InstructionKind::Experimenter => Instruction::Experimenter(read_experimenter(body)?),
    })
}
