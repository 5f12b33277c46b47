//! Instructions as bytes.
//!
//! Source: OpenFlow 1.1.0 section A.2.4 to 1.5.1 section 7.2.5. In their place 1.0 has the list of
//! the actions that are done at once.

use super::action::{put_actions, read_actions};
use super::bytes::Reader;
use super::{Fault, What};
use crate::model::instruction::Instruction;
use crate::version::Version;

/// Appends instructions where 1.0 has a list of actions.
pub(super) fn put_action_list(
    version: Version,
    instructions: &[Instruction],
    out: &mut Vec<u8>,
) -> Result<(), What> {
    instructions.iter().try_for_each(|instruction| match instruction {
        Instruction::ApplyActions(actions) => put_actions(version, actions, out),
        other => Err(What::Instruction(other.kind())),
    })
}

/// Reads a list of actions up to the end.
pub(super) fn read_action_list(
    version: Version,
    reader: &mut Reader,
) -> Result<Vec<Instruction>, Fault> {
    Ok(Instruction::apply(read_actions(version, reader)?))
}
