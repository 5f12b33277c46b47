//! Messages that change the switch: flow entries, groups, meters, ports and tables.
//! ([`super::packet_out`] handles packet-outs.)
//!
//! Source: OpenFlow switch specification 1.0.0, sections 4.6 and 5.3; 1.3.5, sections 6.4 to 6.6
//! and 7.3.4. A message that concerns many flow entries may take several turns ([`PartialChange`]).
//!
//! Invariant: each message takes effect completely, or is rejected and changes nothing.

use std::sync::Arc;
use std::task::Poll;

use dataplane::action::Action as CoreAction;
use dataplane::egress::PortSettings;
use dataplane::flow::{FlowError, FlowFilter, Source};
use dataplane::group::{BucketSpec, GroupChange, GroupSpec};
use dataplane::instruction::Instructions;
use dataplane::pipeline::{Deletion, Pipeline};
use dataplane::table::{Addition, Modification, Progress, Selection};
use openflow::header::Xid;
use openflow::model::group::{GroupMod, GroupModCommand};
use openflow::model::meter::{MeterMod, MeterModCommand};
use openflow::model::table::{TABLE_ALL, TableMod};
use openflow::model::{
    Action, FlowMod, FlowModCommand, FlowModFlags, Instruction, Message, PacketOut, PortConfig,
    PortDescription, PortMod,
};
use openflow::version::{ErrorCode, Version};
use packet::time::Nanos;

use crate::budget::RUN_STEPS;
use crate::translate::flow::{VersionContext, modify_rules, table_down};
use crate::translate::{self, ActionLimits};

use super::packet_out::buffer_error_up;
use super::{Agent, Datapath, modelled};

/// Budget steps to convert a bucket, without those of its actions.
const BUCKET_STEPS: usize = 8;

/// Budget steps to convert an action of a bucket.
const ACTION_STEPS: usize = 4;

/// A message that changes the switch, alone or in a bundle.
#[allow(clippy::large_enum_variant, reason = "flow-mods are frequent, and boxing them is slow")]
pub(super) enum StateChange {
    FlowMod(FlowMod),
    GroupMod(GroupMod),
    MeterMod(MeterMod),
    PortMod(PortMod),
    TableMod(TableMod),
    PacketOut(PacketOut),
}

impl StateChange {
    /// Converts a message, or returns it if it does not change the switch or cannot be in a bundle.
    #[allow(clippy::result_large_err, reason = "the message is processed next, not returned")]
    pub(super) fn of(message: Message) -> Result<StateChange, Message> {
        Ok(match message {
            Message::FlowMod(change) => StateChange::FlowMod(change),
            Message::GroupMod(change) => StateChange::GroupMod(change),
            Message::MeterMod(change) => StateChange::MeterMod(change),
            Message::PortMod(change) => StateChange::PortMod(change),
            Message::TableMod(change) => StateChange::TableMod(change),
            Message::PacketOut(packet) => StateChange::PacketOut(packet),
            other => return Err(other),
        })
    }
}

/// Origin of a change, and its protocol version.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The connection.
    pub owner: u32,
    /// The message's transaction ID.
    pub xid: Xid,
    /// The connection's version.
    pub version: Version,
    /// Whether the first table counts as two tables, as in OpenFlow 1.0.
    pub parts: bool,
}

impl Origin {
    /// Returns the source of the change for flow monitors.
    pub fn source(&self) -> Source {
        Source { owner: self.owner, xid: self.xid }
    }

    /// Returns the source of the change for conversions.
    pub fn speaker(&self) -> VersionContext {
        VersionContext { version: self.version, parts: self.parts, source: self.source() }
    }
}

/// The rest of a message that takes several turns.
pub(super) struct PartialChange {
    work: ChangeWork,
    /// Buffered frame that goes through the tables afterwards.
    buffer: Option<u32>,
}

/// Work of a message.
#[allow(clippy::large_enum_variant, reason = "most values live only on the stack")]
enum ChangeWork {
    Add(Addition),
    Modify(Modification),
    Delete(Selection),
    /// Conversion of the buckets of a group-mod.
    Buckets(Vec<BucketSpec>),
    Group(GroupChange),
    /// Deletion of flow entries that use deleted groups or meters.
    DeleteUsers(Deletion),
}

impl Agent {
    /// Applies one message, up to the share of the turn. [`Agent::continue_message`] continues the
    /// rest.
    pub(super) fn change(
        &mut self,
        who: Origin,
        message: &StateChange,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<PartialChange>, ErrorCode> {
        match message {
            StateChange::FlowMod(change) => self.flow_mod((who, message), change, datapath),
            StateChange::GroupMod(change) => self.group_mod((who, message), change, datapath),
            StateChange::MeterMod(change) => self.meter_mod((who, message), change, datapath),
            StateChange::PortMod(change) => self.port_mod(who, change, datapath).map(|()| None),
            StateChange::TableMod(change) => {
                self.table_mod(who.version, change, datapath).map(|()| None)
            }
            StateChange::PacketOut(packet) => self.packet_out(who, packet, datapath).map(|()| None),
        }
    }

    /// Begins work on flow entries, up to the share of the turn.
    fn begin_work(
        &mut self,
        (who, message): (Origin, &StateChange),
        (work, buffer): (ChangeWork, Option<u32>),
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<PartialChange>, ErrorCode> {
        *datapath.due = Some(Nanos::ZERO);
        let mut unfinished = PartialChange { work, buffer };
        match self.continue_message((who, message), &mut unfinished, datapath) {
            Poll::Ready(outcome) => outcome.map(|()| None),
            Poll::Pending => Ok(Some(unfinished)),
        }
    }

    /// Continues a message until its end, or until the share of the turn is spent.
    pub(super) fn continue_message(
        &mut self,
        (who, message): (Origin, &StateChange),
        unfinished: &mut PartialChange,
        datapath: &mut Datapath<'_>,
    ) -> Poll<Result<(), ErrorCode>> {
        let source = who.source();
        loop {
            let Datapath { pipeline, outputs, now, budget, .. } = datapath;
            let ports = self.ports.numbers();
            let (progress, used) = budget.run(RUN_STEPS, |steps| match &mut unfinished.work {
                ChangeWork::Add(addition) => {
                    pipeline.add_some(addition, *now, outputs, steps).map_err(flow_error_up)
                }
                ChangeWork::Modify(modification) => {
                    pipeline.modify_some(modification, *now, outputs, steps).map_err(flow_error_up)
                }
                ChangeWork::Delete(selection) => {
                    Ok(pipeline.delete_some(selection, *now, outputs, steps))
                }
                ChangeWork::Buckets(buckets) => {
                    let StateChange::GroupMod(change) = message else {
                        unreachable!("only group-mods have buckets")
                    };
                    let world = ActionLimits { ports, pipeline, version: who.version };
                    if convert_some(change, buckets, &world, steps)? {
                        let buckets = std::mem::take(buckets);
                        unfinished.work = group_work(change, buckets, pipeline)?;
                    }
                    Ok(Progress::More)
                }
                ChangeWork::Group(change) => {
                    let progress = pipeline.change_group_some(change, *now, steps);
                    progress.map_err(translate::group::group_error_up)
                }
                ChangeWork::DeleteUsers(deletion) => {
                    Ok(pipeline.delete_users_some(deletion, source, *now, outputs, steps))
                }
            });
            match progress {
                Ok(Progress::Done) => break,
                Ok(Progress::More) if self.pauses(used, datapath) => return Poll::Pending,
                Ok(Progress::More) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        *datapath.due = Some(Nanos::ZERO);
        Poll::Ready(match unfinished.buffer {
            // As later versions specify, the buffered frame then goes through the tables.
            Some(id) => self.release(id, None, &[CoreAction::Table], datapath),
            None => Ok(()),
        })
    }

    /// Returns the objects to which actions may refer.
    pub(super) fn world<'a>(&'a self, who: Origin, datapath: &'a Datapath<'_>) -> ActionLimits<'a> {
        ActionLimits {
            ports: self.ports.numbers(),
            pipeline: datapath.pipeline,
            version: who.version,
        }
    }

    fn flow_mod(
        &mut self,
        (who, message): (Origin, &StateChange),
        change: &FlowMod,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<PartialChange>, ErrorCode> {
        if change.flags.contains(FlowModFlags::EMERGENCY) {
            return Err(no_emergency_table(change));
        }
        self.check_table(who, change)?;
        let speaker = who.speaker();
        let (matching, named) = translate::match_down(&change.matching, speaker.version)?;
        let filter = translate::filter_down(change, matching, speaker);
        if matches!(change.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict) {
            let work = ChangeWork::Delete(datapath.pipeline.select(filter));
            return self.begin_work((who, message), (work, None), datapath);
        }
        let table = table_down(change.table, speaker);
        let instructions = self.instructions(who, change, table, datapath)?;
        let spec = translate::spec_down(change, (matching, named), instructions, speaker);
        let same =
            FlowFilter { table: Some(table), ..FlowFilter::strictly(spec.matching, spec.rank) };
        self.features.check(change, table, &same, datapath.pipeline)?;
        if let Some(id) = change.buffer_id {
            self.buffers.check(id).map_err(buffer_error_up)?;
        }
        modelled::before(change.command, &spec, datapath);
        if !modelled::has_room((change, who.version), (&spec, &filter), datapath) {
            return Err(ErrorCode::FlowModTableFull);
        }
        if change.command != FlowModCommand::Add {
            let rules = modify_rules(change, who.version);
            let selection = datapath.pipeline.select(filter);
            let work = ChangeWork::Modify(Modification::new(spec, selection, rules));
            return self.begin_work((who, message), (work, change.buffer_id), datapath);
        }
        let work = ChangeWork::Add(Addition::new(spec));
        self.begin_work((who, message), (work, change.buffer_id), datapath)
    }

    /// Converts the instructions of a flow entry. Most flow entries in a sequence only output to
    /// one port. These instructions do not depend on the rest of the entry, so the last result is
    /// reused.
    fn instructions(
        &mut self,
        who: Origin,
        change: &FlowMod,
        table: u8,
        datapath: &Datapath<'_>,
    ) -> Result<Arc<Instructions>, ErrorCode> {
        let said = &change.instructions;
        if let Some((version, known, list)) = &self.last_instructions
            && *version == who.version
            && known == said
        {
            return Ok(Arc::clone(list));
        }
        let world = self.world(who, datapath);
        let list = translate::instructions_down(said, &change.matching, table, &world)?;
        let list = Arc::new(list);
        if let [Instruction::ApplyActions(actions)] = &said[..]
            && let [Action::Output { .. }] = &actions[..]
        {
            self.last_instructions = Some((who.version, said.clone(), Arc::clone(&list)));
        }
        Ok(list)
    }

    /// Checks the table of a flow-mod. Deletions may select all tables. In plain 1.0 the byte of
    /// the table is part of the command.
    fn check_table(&self, who: Origin, change: &FlowMod) -> Result<(), ErrorCode> {
        let deletes =
            matches!(change.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
        let every = change.table == TABLE_ALL && (deletes || who.version == Version::V1_0);
        match who.parts {
            true if change.table != 0 => Err(ErrorCode::FlowModBadCommand),
            false if !every && !self.features.has(change.table) => Err(ErrorCode::FlowModBadTable),
            _ => Ok(()),
        }
    }

    fn group_mod(
        &mut self,
        (who, message): (Origin, &StateChange),
        change: &GroupMod,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<PartialChange>, ErrorCode> {
        if !change.experimenter.is_empty() {
            return Err(ErrorCode::PropertyBadExperimenter);
        }
        let buckets = Vec::with_capacity(change.buckets.len());
        self.begin_work((who, message), (ChangeWork::Buckets(buckets), None), datapath)
    }

    fn meter_mod(
        &mut self,
        (who, message): (Origin, &StateChange),
        change: &MeterMod,
        datapath: &mut Datapath<'_>,
    ) -> Result<Option<PartialChange>, ErrorCode> {
        let now = datapath.now;
        let spec = translate::meter::meter_down(change)?;
        let pipeline = &mut *datapath.pipeline;
        *datapath.due = Some(Nanos::ZERO);
        let outcome = match change.command {
            MeterModCommand::Add => pipeline.add_meter(spec, now),
            MeterModCommand::Modify => pipeline.modify_meter(spec, now),
            MeterModCommand::Delete => {
                let work = ChangeWork::DeleteUsers(pipeline.forget_meter(change.meter));
                return self.begin_work((who, message), (work, None), datapath);
            }
        };
        outcome.map(|()| None).map_err(translate::meter::meter_error_up)
    }

    fn port_mod(
        &mut self,
        who: Origin,
        change: &PortMod,
        datapath: &mut Datapath<'_>,
    ) -> Result<(), ErrorCode> {
        if let Some(transaction) = &mut self.transaction {
            let ports = transaction.ports.get_or_insert_with(|| self.ports.clone());
            return ports.modify(change, who.version).map(drop);
        }
        if let Some(port) = self.ports.modify(change, who.version)? {
            self.set_port(port, datapath);
        }
        Ok(())
    }

    /// Applies a port's settings to the data plane, and sends port-status messages to the
    /// controllers.
    pub(super) fn set_port(&mut self, port: PortDescription, datapath: &mut Datapath<'_>) {
        datapath.pipeline.set_port(port.number, settings_of(&port));
        self.tell_port(port);
    }
}

/// Continues to convert the buckets of a group-mod. Returns true if it has converted all.
fn convert_some(
    change: &GroupMod,
    buckets: &mut Vec<BucketSpec>,
    world: &ActionLimits<'_>,
    steps: &mut usize,
) -> Result<bool, ErrorCode> {
    for from in &change.buckets[buckets.len()..] {
        if *steps == 0 {
            return Ok(false);
        }
        *steps = steps.saturating_sub(BUCKET_STEPS + ACTION_STEPS * from.actions.len());
        buckets.push(translate::group::bucket_down(from, world)?);
    }
    *steps = steps.saturating_sub(1);
    Ok(true)
}

/// Begins the work of a group-mod with these buckets.
fn group_work(
    change: &GroupMod,
    buckets: Vec<BucketSpec>,
    pipeline: &mut Pipeline,
) -> Result<ChangeWork, ErrorCode> {
    let (number, place) = (change.group, translate::group::place_down(change.command_bucket));
    let spec =
        |buckets| GroupSpec { number, kind: translate::group::kind_down(change.kind), buckets };
    Ok(match change.command {
        GroupModCommand::Add => ChangeWork::Group(GroupChange::add(spec(buckets))),
        GroupModCommand::Modify => ChangeWork::Group(GroupChange::modify(spec(buckets))),
        GroupModCommand::InsertBucket => {
            ChangeWork::Group(GroupChange::insert(number, place, buckets))
        }
        GroupModCommand::RemoveBucket => ChangeWork::Group(GroupChange::remove(number, place)),
        GroupModCommand::Delete => {
            let deletion = pipeline.forget_group(number);
            ChangeWork::DeleteUsers(deletion.map_err(translate::group::group_error_up)?)
        }
    })
}

/// Converts a port's configuration to settings of the forwarding core.
pub fn settings_of(port: &PortDescription) -> PortSettings {
    let has = |bit| port.config.contains(bit);
    PortSettings {
        down: has(PortConfig::PORT_DOWN),
        no_receive: has(PortConfig::NO_RECEIVE),
        no_receive_spanning_tree: has(PortConfig::NO_RECEIVE_STP),
        no_flood: has(PortConfig::NO_FLOOD),
        no_forward: has(PortConfig::NO_FORWARD),
        no_packet_in: has(PortConfig::NO_PACKET_IN),
    }
}

/// Returns the error for the emergency table, which is not supported and counts as full.
fn no_emergency_table(change: &FlowMod) -> ErrorCode {
    match change.idle_timeout_s | change.hard_timeout_s {
        0 => ErrorCode::FlowModTableFull,
        _ => ErrorCode::FlowModBadTimeout,
    }
}

fn flow_error_up(error: FlowError) -> ErrorCode {
    match error {
        FlowError::TableFull(_) => ErrorCode::FlowModTableFull,
        FlowError::Overlap => ErrorCode::FlowModOverlap,
        FlowError::NoSuchTable(_) => ErrorCode::FlowModBadTable,
        FlowError::BadGoto(_) => ErrorCode::InstructionBadTable,
        FlowError::NoSuchGroup(_) => ErrorCode::ActionBadOutGroup,
        FlowError::NoSuchMeter(_) => ErrorCode::MeterModUnknownMeter,
    }
}
