//! Scripts of flow-mods and requests for controllers, derived from setups.
//!
//! Flows are exact matches with a source address that no traffic uses. Changes to them therefore do not affect the
//! forwarding of frames.

use openflow::model::flow::{FlowMod, FlowModCommand};
use openflow::model::instruction::Instruction;
use openflow::model::multipart::FlowStatsRequest;
use openflow::model::table::TABLE_ALL;
use openflow::model::{Action, PRIORITY_DEFAULT};
use record::ControllerCommand;
use tester::controller::script::{Commit, Script};

use super::Context;
use targets::flow_setup::{self, PORT_IN};
use workload::Setup;
use workload::parameter::control::Priorities;
use workload::parameter::{Table, Traffic};

/// Outstanding batches of many flow-mods, so that the switch always has work.
const AHEAD_OF_MANY: usize = 8;

/// Minimum size of a batch of many flow-mods.
const MANY: u32 = 100;

/// Offset of the source address of flows that only the controller uses.
const ASIDE: u32 = 1 << 16;

/// Flow-mods per batch during traffic.
const BATCH_BESIDE: u32 = 1000;

/// Returns the flows of a script: `count` exact matches in addition to those of the setup.
fn flows(context: &Context, count: u32) -> impl Iterator<Item = FlowMod> + use<> {
    let (table, traffic) = (Table::Exact, Traffic::One);
    let setup = Setup { table, entries: count, traffic, shift: ASIDE, ..context.setup() };
    let priorities = context.parameters.control.priorities;
    flow_setup::flows(&setup, &context.addresses).zip(0u32..).map(move |(flow, place)| {
        let priority = match priorities {
            Priorities::Same => PRIORITY_DEFAULT,
            Priorities::Ascending => 1 + (place % u32::from(u16::MAX - 1)) as u16,
            Priorities::Random => 1 + (scattered(place) % (u32::from(u16::MAX) - 1)) as u16,
        };
        FlowMod { priority, ..flow }
    })
}

/// Returns a pseudo-random number that depends only on the position.
fn scattered(place: u32) -> u32 {
    let mixed = u64::from(place).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

fn done_to(deed: ControllerCommand, flow: FlowMod) -> FlowMod {
    match deed {
        ControllerCommand::Modify => FlowMod {
            command: FlowModCommand::ModifyStrict,
            instructions: Instruction::apply(vec![Action::output(PORT_IN.into())]),
            ..flow
        },
        ControllerCommand::Delete => {
            FlowMod { command: FlowModCommand::DeleteStrict, instructions: Vec::new(), ..flow }
        }
        _ => flow,
    }
}

/// Applies this operation to `count` flows, in batches.
pub fn each(context: &Context, deed: ControllerCommand, commit: Commit, count: u32) -> Script {
    let control = &context.parameters.control;
    let flow_mods = flows(context, count).map(|flow| done_to(deed, flow));
    let is_many = commit.flow_mods() >= MANY;
    let ahead = control.ahead.unwrap_or(if is_many { AHEAD_OF_MANY } else { 1 });
    said(Script::flow_mods(deed, control.version, commit, flow_mods)).ahead(ahead)
}

/// Adds and deletes flows alternately at the configured rate, as long as traffic runs.
pub fn steadily(context: &Context) -> Script {
    let control = &context.parameters.control;
    let batch = BATCH_BESIDE.min((control.flow_mods_per_s / 100.0).max(1.0) as u32);
    let added = flows(context, batch).map(|flow| done_to(ControllerCommand::Add, flow));
    let deleted = flows(context, batch).map(|flow| done_to(ControllerCommand::Delete, flow));
    let commit = Commit::Barrier(batch);
    said(Script::flow_mods(
        ControllerCommand::AddDelete,
        control.version,
        commit,
        added.chain(deleted),
    ))
    .ahead(AHEAD_OF_MANY)
    .paced(control.flow_mods_per_s)
    .endless()
}

/// Requests every entry.
pub fn tell_all(context: &Context) -> Script {
    let which = FlowStatsRequest { table: TABLE_ALL, ..FlowStatsRequest::default() };
    said(Script::flow_stats(context.parameters.control.version, which))
}

fn said(script: Result<Script, openflow::codec::NotExpressible>) -> Script {
    script.expect("every version can add, modify, delete and request exact-match entries")
}
