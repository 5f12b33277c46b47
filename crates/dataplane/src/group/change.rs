//! Adding, modifying and deleting groups and single buckets.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 6.5, and 1.5.1, section 7.3.4.3. A modified
//! group keeps its counters and its age; only unchanged buckets keep their counters. Invariant: a
//! command takes effect completely or fails without a change.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

use packet::time::Nanos;

use super::chain::Chains;
use super::{
    BUCKET_NO_MAX, Bucket, BucketPlace, BucketSpec, GROUP_NO_MAX, GROUPS_ALL, Group, GroupError,
    GroupNo, GroupSpec, GroupTable,
};
use crate::action_set::ActionSet;
use crate::counter::SharedTraffic;
use crate::hash::{Seeded, mix};
use crate::table::Progress;

/// Progress of a command that adds or modifies a group.
#[derive(Debug, Clone)]
pub struct GroupChange {
    command: Command,
    /// The resulting group, the groups that it refers to, and the progress of the check of chains.
    checked: Option<(GroupSpec, Vec<GroupNo>, Chains)>,
}

#[derive(Debug, Clone)]
enum Command {
    Add(GroupSpec),
    Modify(GroupSpec),
    Insert(GroupNo, BucketPlace, Vec<BucketSpec>),
    Remove(GroupNo, BucketPlace),
}

impl GroupChange {
    /// Adds a group.
    pub fn add(spec: GroupSpec) -> GroupChange {
        GroupChange { command: Command::Add(spec), checked: None }
    }

    /// Replaces a group's description.
    pub fn modify(spec: GroupSpec) -> GroupChange {
        GroupChange { command: Command::Modify(spec), checked: None }
    }

    /// Inserts buckets into a group; the existing ones do not change.
    pub fn insert(number: GroupNo, place: BucketPlace, buckets: Vec<BucketSpec>) -> GroupChange {
        GroupChange { command: Command::Insert(number, place, buckets), checked: None }
    }

    /// Removes buckets from a group; the others do not change.
    pub fn remove(number: GroupNo, place: BucketPlace) -> GroupChange {
        GroupChange { command: Command::Remove(number, place), checked: None }
    }
}

impl GroupTable {
    /// Executes a command.
    pub fn change(&mut self, mut change: GroupChange, now: Nanos) -> Result<(), GroupError> {
        self.change_some(&mut change, now, &mut usize::MAX.clone()).map(drop)
    }

    /// Like [`GroupTable::change`], within a budget. Call it until it is done or fails, with no
    /// other command in between.
    pub fn change_some(
        &mut self,
        change: &mut GroupChange,
        now: Nanos,
        budget: &mut usize,
    ) -> Result<Progress, GroupError> {
        let keeps = matches!(change.command, Command::Insert(..) | Command::Remove(..));
        let (spec, targets, mut chains) = match change.checked.take() {
            Some(checked) => checked,
            None => {
                let spec = self.spec_of(&mut change.command)?;
                let targets = self.check(&spec)?;
                *budget = budget.saturating_sub(spec.buckets.len());
                (spec, targets, Chains::default())
            }
        };
        let progress = self.check_chains((spec.number, &targets), &mut chains, budget)?;
        match (progress, keeps) {
            (Progress::More, _) => change.checked = Some((spec, targets, chains)),
            (Progress::Done, true) => self.replace(spec, targets),
            (Progress::Done, false) => self.put(spec, targets, now),
        }
        Ok(progress)
    }

    /// Returns the resulting group of a command.
    fn spec_of(&self, command: &mut Command) -> Result<GroupSpec, GroupError> {
        match command {
            Command::Add(spec) if spec.number > GROUP_NO_MAX => {
                Err(GroupError::InvalidGroup(spec.number))
            }
            Command::Add(spec) if self.contains(spec.number) => {
                Err(GroupError::GroupExists(spec.number))
            }
            Command::Add(_) if self.count() >= self.limits.groups_max => {
                Err(GroupError::OutOfGroups(self.limits.groups_max))
            }
            Command::Modify(spec) if !self.contains(spec.number) => {
                Err(GroupError::UnknownGroup(spec.number))
            }
            Command::Add(spec) | Command::Modify(spec) => {
                let (number, kind) = (spec.number, spec.kind);
                Ok(GroupSpec { number, kind, buckets: std::mem::take(&mut spec.buckets) })
            }
            Command::Insert(number, place, buckets) => {
                let mut spec = self.spec(*number)?;
                let at = match *place {
                    BucketPlace::First => 0,
                    BucketPlace::Last => spec.buckets.len(),
                    BucketPlace::All => return Err(GroupError::BadBucket(u32::MAX)),
                    BucketPlace::Id(id) => find(&spec.buckets, id)? + 1,
                };
                spec.buckets.splice(at..at, std::mem::take(buckets));
                Ok(spec)
            }
            Command::Remove(number, place) => {
                let mut spec = self.spec(*number)?;
                let last = spec.buckets.len().checked_sub(1);
                let last = last.ok_or(GroupError::UnknownBucket(None));
                let range = match *place {
                    BucketPlace::First => last.map(|_| 0..1)?,
                    BucketPlace::Last => last.map(|last| last..last + 1)?,
                    BucketPlace::All => 0..spec.buckets.len(),
                    BucketPlace::Id(id) => find(&spec.buckets, id).map(|at| at..at + 1)?,
                };
                spec.buckets.drain(range);
                Ok(spec)
            }
        }
    }

    /// Deletes a group, or all with [`GROUPS_ALL`], and returns the deleted groups, so that the
    /// caller can delete entries that send to them. A group that does not exist is not an error.
    pub fn delete(&mut self, number: GroupNo) -> Result<GroupTable, GroupError> {
        let mut empty = GroupTable::new(&[], self.limits, self.seed);
        if number == GROUPS_ALL {
            (empty.ports, empty.changes) = (self.ports.clone(), self.changes + 1);
            return Ok(std::mem::replace(self, empty));
        }
        if number > GROUP_NO_MAX {
            return Err(GroupError::InvalidGroup(number));
        }
        if self.count_referrers(number) > 0 {
            return Err(GroupError::ChainedGroup(number));
        }
        if let Some(group) = self.groups.remove(&number) {
            self.buckets -= group.buckets.len();
            self.changes += 1;
            self.live.remove(&number);
            self.count_targets(&group.targets, |count| count - 1);
            empty.groups.insert(number, group);
        }
        Ok(empty)
    }

    /// Replaces a group. Buckets that stay keep their counters. They also keep their flows if
    /// another bucket with equal actions is removed.
    fn replace(&mut self, spec: GroupSpec, targets: Vec<GroupNo>) {
        let mut buckets: Vec<Bucket> = spec.buckets.into_iter().map(Bucket::new).collect();
        tell_apart(&mut buckets);
        let old = self.groups.get(&spec.number).map_or(&[][..], |group| &group.buckets);
        let old: HashMap<u32, &Bucket> = old.iter().map(|old| (old.spec.id, old)).collect();
        let mut taken: BTreeSet<u64> = BTreeSet::new();
        let mut new: Vec<&mut Bucket> = Vec::new();
        for bucket in &mut buckets {
            match old.get(&bucket.spec.id) {
                Some(before) => {
                    (bucket.traffic, bucket.identity) = (before.traffic.clone(), before.identity);
                    taken.insert(bucket.identity);
                }
                None => new.push(bucket),
            }
        }
        for bucket in new {
            while !taken.insert(bucket.identity) {
                bucket.identity = mix(bucket.identity, 1);
            }
        }
        let (number, kind) = (spec.number, spec.kind);
        self.install((number, kind), buckets, targets, Nanos::ZERO);
    }

    fn spec(&self, number: GroupNo) -> Result<GroupSpec, GroupError> {
        let group = self.groups.get(&number).ok_or(GroupError::UnknownGroup(number))?;
        let buckets = group.buckets.iter().map(|bucket| bucket.spec.clone()).collect();
        Ok(GroupSpec { number, kind: group.kind, buckets })
    }

    fn put(&mut self, spec: GroupSpec, targets: Vec<GroupNo>, now: Nanos) {
        let mut buckets: Vec<Bucket> = spec.buckets.into_iter().map(Bucket::new).collect();
        tell_apart(&mut buckets);
        self.install((spec.number, spec.kind), buckets, targets, now);
    }

    /// Replaces the group with this number and keeps its counters and age, or adds a new group.
    fn install(
        &mut self,
        (number, kind): (GroupNo, super::GroupKind),
        buckets: Vec<Bucket>,
        targets: Vec<GroupNo>,
        now: Nanos,
    ) {
        let before = self.groups.get(&number);
        let (traffic, added_at) = before.map_or_else(
            || (SharedTraffic::default(), now),
            |it| (it.traffic.clone(), it.added_at),
        );
        self.buckets += buckets.len();
        self.count_targets(&targets, |count| count + 1);
        let group = Group { kind, buckets, targets, traffic, added_at };
        if let Some(old) = self.groups.insert(number, Arc::new(group)) {
            self.buckets -= old.buckets.len();
            self.count_targets(&old.targets, |count| count - 1);
        }
        self.changes += 1;
    }

    /// Updates the reference counts of groups.
    fn count_targets(&mut self, targets: &[GroupNo], count: impl Fn(usize) -> usize) {
        for &target in targets {
            match count(self.count_referrers(target)) {
                0 => drop(self.referrers.remove(&target)),
                count => drop(self.referrers.insert(target, count)),
            }
        }
    }
}

impl Bucket {
    fn new(spec: BucketSpec) -> Bucket {
        let mut set = ActionSet::default();
        set.write(&spec.actions);
        let identity = Seeded(0x6b75_7474).hash_one(set.actions());
        let (set, traffic) = (set.actions().into(), SharedTraffic::default());
        Bucket { spec, set, identity, traffic }
    }
}

/// Makes the identities of buckets with equal actions unique. An identity does not depend on
/// buckets with other actions, so that these can be added and removed.
fn tell_apart(buckets: &mut [Bucket]) {
    let mut seen = std::collections::HashMap::new();
    for bucket in buckets {
        let twins: &mut u64 = seen.entry(bucket.identity).or_default();
        bucket.identity = mix(bucket.identity, *twins);
        *twins += 1;
    }
}

fn find(buckets: &[BucketSpec], id: u32) -> Result<usize, GroupError> {
    if id > BUCKET_NO_MAX {
        return Err(GroupError::BadBucket(id));
    }
    let at = buckets.iter().position(|bucket| bucket.id == id);
    at.ok_or(GroupError::UnknownBucket(Some(id)))
}
