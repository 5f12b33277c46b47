//! Commands about groups, meters, queues and ports: what entries send frames by.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 6.5 and 6.6. Invariant: no entry sends to a
//! group or passes a meter that does not exist, because entries go with what they refer to.

use packet::frame::PortNo;
use packet::time::Nanos;

use super::engine::Engine;
use super::{Held, Pipeline};
use crate::action::Action;
use crate::flow::{FlowError, FlowRemovedReason, Source};
use crate::forwarder::Outputs;
use crate::group::{BucketPlace, BucketSpec, GroupError, GroupNo, GroupSpec, GroupTable};
use crate::instruction::Instructions;
use crate::meter::{METER_NO_MAX, MeterError, MeterNo, MeterSpec, MeterTable};
use crate::queue::{PortQueues, QueueError};
use crate::table::Progress;

/// Groups or meters that were deleted, and how far the removal of their entries has come.
#[derive(Debug, Clone)]
pub struct Deletion {
    /// Their numbers, in order.
    numbers: Vec<u32>,
    why: FlowRemovedReason,
    /// The first place of an entry that was not examined.
    from: usize,
}

impl Deletion {
    /// How many groups or meters were deleted.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }
}

impl Pipeline {
    /// Begins to remember how entries, groups, meters and tables' settings are, and to keep what changes
    /// from other workers (see [`Tables::begin`](crate::table::Tables::begin)).
    pub fn begin(&mut self) {
        self.tables.begin();
    }

    /// Makes all of that again what it was at the beginning.
    pub fn take_back(&mut self) {
        self.shared.engine().other = None;
        self.tables.take_back();
    }

    /// The same within a budget (see [`Tables::take_back_some`](crate::table::Tables::take_back_some)).
    pub fn take_back_some(&mut self, budget: &mut usize) -> Progress {
        self.shared.engine().other = None;
        self.tables.take_back_some(budget)
    }

    /// Keeps what was changed since the beginning, and tells of it. Every worker forwards by all of it
    /// when this returns, and by none of it until it does so.
    pub fn keep(&mut self, out: &mut Outputs) {
        self.tables.keep(out);
        self.shared.engine().keep_spread();
    }

    /// The same within a budget (see [`Tables::keep_some`](crate::table::Tables::keep_some)).
    pub fn keep_some(&mut self, out: &mut Outputs, budget: &mut usize) -> Progress {
        let progress = self.tables.keep_some(out, budget);
        if progress.is_done() {
            self.shared.engine().keep_spread();
        }
        progress
    }

    /// Changes groups and meters, at once or together with what else a bundle does.
    fn change_spread<T>(&self, change: impl FnOnce(&mut GroupTable, &mut MeterTable) -> T) -> T {
        let mut engine = self.shared.engine();
        let (groups, meters) = engine.spread(self.tables.next_edition());
        change(groups, meters)
    }

    /// The groups and their counters.
    pub fn groups(&self) -> Held<'_, GroupTable> {
        Held { engine: self.shared.engine(), part: Engine::groups }
    }

    /// Adds a group (see [`GroupTable::add`]).
    pub fn add_group(&mut self, spec: GroupSpec, now: Nanos) -> Result<(), GroupError> {
        self.change_spread(|groups, _| groups.add(spec, now))
    }

    /// Changes a group (see [`GroupTable::modify`]).
    pub fn modify_group(&mut self, spec: GroupSpec) -> Result<(), GroupError> {
        self.change_spread(|groups, _| groups.modify(spec))
    }

    /// Deletes a group, or all for [`GROUPS_ALL`](crate::group::GROUPS_ALL), with the entries that
    /// send to them, and returns how many groups went.
    pub fn delete_group(
        &mut self,
        number: GroupNo,
        source: Source,
        now: Nanos,
        out: &mut Outputs,
    ) -> Result<usize, GroupError> {
        let mut deletion = self.forget_group(number)?;
        self.delete_users_some(&mut deletion, source, now, out, &mut usize::MAX.clone());
        Ok(deletion.count())
    }

    /// Deletes a group, or all of them, without the entries that send to them: these are left to
    /// [`Pipeline::delete_users_some`]. Until that is done, frames that they send there are dropped, and no
    /// group of such a number may be added.
    pub fn forget_group(&mut self, number: GroupNo) -> Result<Deletion, GroupError> {
        let numbers = self.change_spread(|groups, _| groups.delete(number))?;
        Ok(Deletion { numbers, why: FlowRemovedReason::GroupDelete, from: 0 })
    }

    /// Removes the entries that use what was deleted, as far as the budget goes.
    pub fn delete_users_some(
        &mut self,
        deletion: &mut Deletion,
        source: Source,
        now: Nanos,
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Progress {
        let Deletion { numbers, why, from } = deletion;
        if numbers.is_empty() {
            return Progress::Done;
        }
        let uses = |instructions: &Instructions| match why {
            FlowRemovedReason::MeterDelete => instructions.uses_meter(numbers),
            _ => instructions.uses_group(numbers),
        };
        self.tables.delete_users(uses, from, (*why, source, now), out, budget)
    }

    /// Puts buckets into a group (see [`GroupTable::insert_buckets`]).
    pub fn insert_buckets(
        &mut self,
        number: GroupNo,
        place: BucketPlace,
        buckets: Vec<BucketSpec>,
    ) -> Result<(), GroupError> {
        self.change_spread(|groups, _| groups.insert_buckets(number, place, buckets))
    }

    /// Takes buckets out of a group (see [`GroupTable::remove_buckets`]).
    pub fn remove_buckets(
        &mut self,
        number: GroupNo,
        place: BucketPlace,
    ) -> Result<(), GroupError> {
        self.change_spread(|groups, _| groups.remove_buckets(number, place))
    }

    /// The meters and their counters.
    pub fn meters(&self) -> Held<'_, MeterTable> {
        Held { engine: self.shared.engine(), part: Engine::meters }
    }

    /// Adds a meter (see [`MeterTable::add`]).
    pub fn add_meter(&mut self, spec: MeterSpec, now: Nanos) -> Result<(), MeterError> {
        self.change_spread(|_, meters| meters.add(spec, now))
    }

    /// Changes a meter (see [`MeterTable::modify`]).
    pub fn modify_meter(&mut self, spec: MeterSpec, now: Nanos) -> Result<(), MeterError> {
        self.change_spread(|_, meters| meters.modify(spec, now))
    }

    /// Deletes a meter, or all for [`METERS_ALL`](crate::meter::METERS_ALL), with the entries whose
    /// frames pass them, and returns how many meters went.
    pub fn delete_meter(
        &mut self,
        number: MeterNo,
        source: Source,
        now: Nanos,
        out: &mut Outputs,
    ) -> usize {
        let mut deletion = self.forget_meter(number);
        self.delete_users_some(&mut deletion, source, now, out, &mut usize::MAX.clone());
        deletion.count()
    }

    /// Deletes a meter, or all of them, without the entries whose frames pass them: these are left to
    /// [`Pipeline::delete_users_some`]. Until that is done, frames pass the meter freely, and no meter of
    /// such a number may be added.
    pub fn forget_meter(&mut self, number: MeterNo) -> Deletion {
        let numbers = self.change_spread(|_, meters| meters.delete(number));
        Deletion { numbers, why: FlowRemovedReason::MeterDelete, from: 0 }
    }

    /// Gives a port queues (see [`crate::egress::Egress::set_queues`]).
    pub fn set_queues(&mut self, queues: &PortQueues, now: Nanos) -> Result<(), QueueError> {
        self.change_ports(|egress| egress.set_queues(queues, now))
    }

    /// Tells whether a port's link carries frames. False if there is no such port.
    pub fn set_link(&mut self, port: PortNo, up: bool) -> bool {
        self.change_ports(|egress| egress.set_link(port, up))
    }

    /// Whether frames whose time to live is used up go to the control plane (as they do until this
    /// is said), or are dropped.
    pub fn tell_invalid_ttl(&mut self, told: bool) {
        self.shared.engine().egress.tell_invalid_ttl = told;
    }

    /// Whether the groups and meters that an entry uses exist.
    pub(super) fn check_references(&self, instructions: &Instructions) -> Result<(), FlowError> {
        let is_there = |meter: MeterNo| meter <= METER_NO_MAX && self.meters().contains(meter);
        for action in instructions.actions() {
            match *action {
                Action::Group(group) if !self.groups().contains(group) => {
                    return Err(FlowError::NoSuchGroup(group));
                }
                Action::Meter(meter) if !is_there(meter) => {
                    return Err(FlowError::NoSuchMeter(meter));
                }
                _ => {}
            }
        }
        match instructions.meter {
            Some(meter) if !is_there(meter) => Err(FlowError::NoSuchMeter(meter)),
            _ => Ok(()),
        }
    }
}
