//! Commands for groups, meters, queues and ports.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 6.5 and 6.6. Invariant: no entry refers to
//! a group or meter that does not exist, because deleting these also deletes the entries.

use packet::frame::PortNo;
use packet::time::Nanos;

use super::engine::Engine;
use super::{EngineGuard, Pipeline};
use crate::action::Action;
use crate::flow::{FlowError, FlowRemovedReason, Source};
use crate::forwarder::Outputs;
use crate::group::{
    BucketPlace, BucketSpec, GROUPS_ALL, GroupChange, GroupError, GroupNo, GroupSpec, GroupTable,
};
use crate::instruction::Instructions;
use crate::meter::{METER_NO_MAX, METERS_ALL, MeterError, MeterNo, MeterSpec, MeterTable};
use crate::queue::{PortQueues, QueueError};
use crate::table::Progress;

/// Deleted groups or meters, and the progress of removing their entries.
#[derive(Debug)]
pub struct Deletion {
    gone: RemovedResource,
    count: usize,
    /// Next slot to examine, or `None` once all are.
    from: Option<usize>,
    /// Number of groups that a deleted group refers to and whose references are removed.
    released: usize,
}

#[derive(Debug)]
enum RemovedResource {
    Groups(Box<GroupTable>),
    Meters(MeterTable),
}

impl Deletion {
    /// Returns the number of deleted groups or meters.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether an entry with these instructions uses one of them.
    fn is_used_by(&self, instructions: &Instructions) -> bool {
        match &self.gone {
            RemovedResource::Groups(groups) => {
                instructions.groups().any(|number| groups.contains(number))
            }
            RemovedResource::Meters(meters) => {
                instructions.meters().any(|number| meters.contains(number))
            }
        }
    }

    fn why(&self) -> FlowRemovedReason {
        match self.gone {
            RemovedResource::Groups(_) => FlowRemovedReason::GroupDelete,
            RemovedResource::Meters(_) => FlowRemovedReason::MeterDelete,
        }
    }
}

impl Pipeline {
    /// Begins a transaction on entries, groups, meters and table configurations, and hides its
    /// changes from other workers (see [`Tables::begin`](crate::table::Tables::begin)).
    pub fn begin(&mut self) {
        self.tables.begin();
    }

    /// Rolls back all changes since the beginning.
    pub fn take_back(&mut self) {
        while !self.take_back_some(&mut usize::MAX.clone()).is_done() {
            std::hint::spin_loop();
        }
    }

    /// Like [`Pipeline::take_back`], within a budget (see
    /// [`Tables::take_back_some`](crate::table::Tables::take_back_some)).
    pub fn take_back_some(&mut self, budget: &mut usize) -> Progress {
        let given_up = self.shared.engine().other.take();
        self.gone = given_up.or_else(|| self.gone.take());
        match self.tables.take_back_some(budget) {
            Progress::Done => self.free_gone(budget),
            Progress::More => Progress::More,
        }
    }

    /// Commits the changes since the beginning and reports their events. When this returns, every
    /// worker uses all of them; before that, none does.
    pub fn keep(&mut self, out: &mut Outputs) {
        while !self.keep_some(out, &mut usize::MAX.clone()).is_done() {
            std::hint::spin_loop();
        }
    }

    /// Like [`Pipeline::keep`], within a budget (see
    /// [`Tables::keep_some`](crate::table::Tables::keep_some)).
    pub fn keep_some(&mut self, out: &mut Outputs, budget: &mut usize) -> Progress {
        if !self.tables.keep_some(out, budget).is_done() {
            return Progress::More;
        }
        let before = self.shared.engine().keep_spread();
        self.gone = before.or_else(|| self.gone.take());
        self.free_gone(budget)
    }

    /// Frees groups and meters that a bundle replaced, while workers continue.
    fn free_gone(&mut self, budget: &mut usize) -> Progress {
        let is_freed = self.gone.as_mut().is_none_or(|gone| gone.free_some(budget));
        if !is_freed {
            return Progress::More;
        }
        self.gone = None;
        Progress::Done
    }

    /// Changes groups and meters, immediately or as part of the open bundle.
    fn change_spread<T>(&self, change: impl FnOnce(&mut GroupTable, &mut MeterTable) -> T) -> T {
        let mut engine = self.shared.engine();
        let (groups, meters) = engine.spread(self.tables.next_edition());
        change(groups, meters)
    }

    /// Returns the groups and their counters.
    pub fn groups(&self) -> EngineGuard<'_, GroupTable> {
        EngineGuard { engine: self.shared.engine(), part: Engine::groups }
    }

    /// Changes a group within a budget (see [`GroupTable::change_some`]).
    pub fn change_group_some(
        &mut self,
        change: &mut GroupChange,
        now: Nanos,
        budget: &mut usize,
    ) -> Result<Progress, GroupError> {
        self.change_spread(|groups, _| groups.change_some(change, now, budget))
    }

    /// Adds a group (see [`GroupChange::add`]).
    pub fn add_group(&mut self, spec: GroupSpec, now: Nanos) -> Result<(), GroupError> {
        self.change_spread(|groups, _| groups.change(GroupChange::add(spec), now))
    }

    /// Modifies a group (see [`GroupChange::modify`]).
    pub fn modify_group(&mut self, spec: GroupSpec) -> Result<(), GroupError> {
        self.change_spread(|groups, _| groups.change(GroupChange::modify(spec), Nanos::ZERO))
    }

    /// Deletes a group, or all with [`GROUPS_ALL`](crate::group::GROUPS_ALL), and the entries that
    /// send to them. Returns the number of deleted groups.
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

    /// Deletes a group, or all of them, without the entries that send to them:
    /// [`Pipeline::delete_users_some`] deletes these. Until then, frames for the group are dropped,
    /// and its number must not be used for a new group.
    pub fn forget_group(&mut self, number: GroupNo) -> Result<Deletion, GroupError> {
        let gone = self.change_spread(|groups, _| groups.delete(number))?;
        let (count, users) = (gone.count(), self.tables.references());
        let is_used = match number {
            GROUPS_ALL => users.has_groups(),
            _ => users.of_group(number) > 0,
        };
        let (gone, from) = (RemovedResource::Groups(Box::new(gone)), is_used.then_some(0));
        Ok(Deletion { gone, count, from, released: 0 })
    }

    /// Removes the entries that use what was deleted, and frees it, within a budget.
    pub fn delete_users_some(
        &mut self,
        deletion: &mut Deletion,
        source: Source,
        now: Nanos,
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Progress {
        if let Some(mut from) = deletion.from.filter(|_| deletion.count > 0) {
            let uses = |instructions: &Instructions| deletion.is_used_by(instructions);
            let why = (deletion.why(), source, now);
            let progress = self.tables.delete_users(uses, &mut from, why, out, budget);
            deletion.from = (!progress.is_done()).then_some(from);
            if !progress.is_done() {
                return Progress::More;
            }
        }
        let is_freed = match &mut deletion.gone {
            RemovedResource::Groups(gone) => {
                let from = &mut deletion.released;
                let released = self.change_spread(|all, _| all.release_some(gone, from, budget));
                if !released.is_done() {
                    return Progress::More;
                }
                gone.free_some(budget)
            }
            RemovedResource::Meters(meters) => meters.free_some(budget),
        };
        if is_freed { Progress::Done } else { Progress::More }
    }

    /// Inserts buckets into a group (see [`GroupChange::insert`]).
    pub fn insert_buckets(
        &mut self,
        number: GroupNo,
        place: BucketPlace,
        buckets: Vec<BucketSpec>,
    ) -> Result<(), GroupError> {
        let change = GroupChange::insert(number, place, buckets);
        self.change_spread(|groups, _| groups.change(change, Nanos::ZERO))
    }

    /// Removes buckets from a group (see [`GroupChange::remove`]).
    pub fn remove_buckets(
        &mut self,
        number: GroupNo,
        place: BucketPlace,
    ) -> Result<(), GroupError> {
        let change = GroupChange::remove(number, place);
        self.change_spread(|groups, _| groups.change(change, Nanos::ZERO))
    }

    /// Returns the meters and their counters.
    pub fn meters(&self) -> EngineGuard<'_, MeterTable> {
        EngineGuard { engine: self.shared.engine(), part: Engine::meters }
    }

    /// Adds a meter (see [`MeterTable::add`]).
    pub fn add_meter(&mut self, spec: MeterSpec, now: Nanos) -> Result<(), MeterError> {
        self.change_spread(|_, meters| meters.add(spec, now))
    }

    /// Modifies a meter (see [`MeterTable::modify`]).
    pub fn modify_meter(&mut self, spec: MeterSpec, now: Nanos) -> Result<(), MeterError> {
        self.change_spread(|_, meters| meters.modify(spec, now))
    }

    /// Deletes a meter, or all with [`METERS_ALL`](crate::meter::METERS_ALL), and the entries that
    /// use them. Returns the number of deleted meters.
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

    /// Deletes a meter, or all of them, without the entries that use them:
    /// [`Pipeline::delete_users_some`] deletes these. Until then, the meter passes all frames, and
    /// its number must not be used for a new meter.
    pub fn forget_meter(&mut self, number: MeterNo) -> Deletion {
        let gone = self.change_spread(|_, meters| meters.delete(number));
        let users = self.tables.references();
        let is_used = match number {
            METERS_ALL => users.has_meters(),
            _ => users.of_meter(number) > 0,
        };
        let count = gone.len();
        Deletion {
            gone: RemovedResource::Meters(gone),
            count,
            from: is_used.then_some(0),
            released: 0,
        }
    }

    /// Configures the queues of a port (see [`crate::egress::Egress::set_queues`]).
    pub fn set_queues(&mut self, queues: &PortQueues, now: Nanos) -> Result<(), QueueError> {
        self.change_ports(|egress| egress.set_queues(queues, now))
    }

    /// Sets whether a port's link is up. Returns false if the port does not exist.
    pub fn set_link(&mut self, port: PortNo, up: bool) -> bool {
        self.change_ports(|egress| egress.set_link(port, up))
    }

    /// Sets whether frames with an invalid TTL are sent to the controller (the default) or dropped.
    pub fn tell_invalid_ttl(&mut self, told: bool) {
        self.shared.engine().egress.tell_invalid_ttl = told;
    }

    /// Checks that the groups and meters of an entry exist.
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
