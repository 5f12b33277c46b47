//! Adding, modifying and deleting groups and single buckets.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 6.5, and 1.5.1, section 7.3.4.3. A modified
//! group keeps its counters and its age; only unchanged buckets keep their counters.
//!
//! A group with many buckets is created in steps, beside the group that it replaces. One step
//! installs it. Invariant: a command takes effect completely or fails without a change.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use packet::time::Nanos;

use super::chain::{Chains, check_kind, targets};
use super::{
    BUCKET_NO_MAX, Bucket, BucketNo, BucketPlace, BucketSpec, GROUP_NO_MAX, GROUPS_ALL, Group,
    GroupError, GroupKind, GroupNo, GroupSpec, GroupTable,
};
use crate::action_set::ActionSet;
use crate::counter::SharedTraffic;
use crate::hash::{Seeded, mix};
use crate::table::Progress;

/// Budget steps to check and create a bucket, without those of its actions.
const NEW_BUCKET_STEPS: usize = 16;
/// Budget steps to copy a bucket that stays.
const KEPT_BUCKET_STEPS: usize = 8;
/// Budget steps to update the reference count of a group.
const REFERENCE_STEPS: usize = 8;
/// Budget steps to free a bucket.
const FREE_STEPS: usize = 4;
/// Number of buckets whose type is checked in one budget step.
const BUCKETS_A_STEP: usize = 4;

/// Progress of a command that adds or modifies a group.
#[derive(Debug)]
pub struct GroupChange {
    number: GroupNo,
    command: Command,
    /// The new buckets, until the command begins.
    buckets: Vec<BucketSpec>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Command {
    Add(GroupKind),
    Modify(GroupKind),
    Insert(BucketPlace),
    Remove(BucketPlace),
}

/// Phase of a command.
#[derive(Debug, Default)]
enum Phase {
    /// Checks that do not depend on single buckets.
    #[default]
    Begun,
    /// Checks and creates the buckets.
    Creating(Box<GroupBuilder>),
    /// Checks the chains from these targets.
    Checking(Box<GroupBuilder>, Vec<GroupNo>, Chains),
    /// Counts references of these targets, from this index on. Then installs the group.
    Referring(Box<GroupBuilder>, Vec<GroupNo>, usize),
    /// Removes the references of the group that was replaced, from this index on, and frees it.
    Releasing(Arc<Group>, usize),
}

/// A group under construction.
#[derive(Debug)]
struct GroupBuilder {
    kind: GroupKind,
    /// The group with buckets that stay, if any do.
    old: Option<Arc<Group>>,
    /// The buckets of this group that new ones replace.
    replaced: Range<usize>,
    /// The next of its buckets to copy.
    next: usize,
    new: std::vec::IntoIter<BucketSpec>,
    /// The buckets that stay, followed by the new ones.
    buckets: Vec<Bucket>,
    ids: BTreeSet<BucketNo>,
    targets: BTreeSet<GroupNo>,
    identities: BTreeSet<u64>,
    /// Number of new buckets with each hash of actions.
    twins: HashMap<u64, u64>,
}

impl GroupChange {
    /// Adds a group.
    pub fn add(spec: GroupSpec) -> GroupChange {
        GroupChange::new(spec.number, Command::Add(spec.kind), spec.buckets)
    }

    /// Replaces a group's description.
    pub fn modify(spec: GroupSpec) -> GroupChange {
        GroupChange::new(spec.number, Command::Modify(spec.kind), spec.buckets)
    }

    /// Inserts buckets into a group; the existing ones do not change.
    pub fn insert(number: GroupNo, place: BucketPlace, buckets: Vec<BucketSpec>) -> GroupChange {
        GroupChange::new(number, Command::Insert(place), buckets)
    }

    /// Removes buckets from a group; the others do not change.
    pub fn remove(number: GroupNo, place: BucketPlace) -> GroupChange {
        GroupChange::new(number, Command::Remove(place), Vec::new())
    }

    fn new(number: GroupNo, command: Command, buckets: Vec<BucketSpec>) -> GroupChange {
        GroupChange { number, command, buckets, phase: Phase::Begun }
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
        let number = change.number;
        loop {
            change.phase = match std::mem::take(&mut change.phase) {
                Phase::Begun => Phase::Creating(Box::new(self.begin(change, budget)?)),
                Phase::Creating(mut builder) => {
                    if !self.create_some(number, &mut builder, budget)?.is_done() {
                        change.phase = Phase::Creating(builder);
                        return Ok(Progress::More);
                    }
                    let targets = std::mem::take(&mut builder.targets).into_iter().collect();
                    Phase::Checking(builder, targets, Chains::default())
                }
                Phase::Checking(builder, targets, mut chains) => {
                    if !self.check_chains((number, &targets), &mut chains, budget)?.is_done() {
                        change.phase = Phase::Checking(builder, targets, chains);
                        return Ok(Progress::More);
                    }
                    Phase::Referring(builder, targets, 0)
                }
                Phase::Referring(builder, targets, mut from) => {
                    let count = |count| count + 1;
                    if !self.count_targets(&targets, &mut from, count, budget).is_done() {
                        change.phase = Phase::Referring(builder, targets, from);
                        return Ok(Progress::More);
                    }
                    match self.install(number, *builder, targets, now) {
                        Some(old) => Phase::Releasing(old, 0),
                        None => return Ok(Progress::Done),
                    }
                }
                Phase::Releasing(mut old, mut from) => {
                    let count = |count| count - 1;
                    let progress = self.count_targets(&old.targets, &mut from, count, budget);
                    if !progress.is_done() || !free_buckets(&mut old, budget) {
                        change.phase = Phase::Releasing(old, from);
                        return Ok(Progress::More);
                    }
                    return Ok(Progress::Done);
                }
            };
        }
    }

    /// Begins a command: checks that it applies and has room, and that the buckets suit the type.
    fn begin(
        &self,
        change: &mut GroupChange,
        budget: &mut usize,
    ) -> Result<GroupBuilder, GroupError> {
        let number = change.number;
        let known = || self.groups.get(&number).ok_or(GroupError::UnknownGroup(number));
        let (kind, old, replaced) = match change.command {
            Command::Add(_) if number > GROUP_NO_MAX => {
                return Err(GroupError::InvalidGroup(number));
            }
            Command::Add(_) if self.contains(number) => {
                return Err(GroupError::GroupExists(number));
            }
            Command::Add(_) if self.count() >= self.limits.groups_max => {
                return Err(GroupError::OutOfGroups(self.limits.groups_max));
            }
            Command::Add(kind) => (kind, None, 0..0),
            Command::Modify(kind) => known().map(|_| (kind, None, 0..0))?,
            Command::Insert(place) => {
                let old = known()?;
                let at = insertion_place(&old.buckets, place)?;
                (old.kind, Some(Arc::clone(old)), at..at)
            }
            Command::Remove(place) => {
                let old = known()?;
                (old.kind, Some(Arc::clone(old)), removed_places(&old.buckets, place)?)
            }
        };
        let new = std::mem::take(&mut change.buckets);
        let before = old.as_ref().map_or(&[][..], |old| &old.buckets);
        let kept = before[..replaced.start].iter().chain(&before[replaced.end..]);
        let count = before.len() - replaced.len() + new.len();
        self.check_room(number, count)?;
        check_kind(number, kind, kept.map(|bucket| &bucket.spec).chain(&new))?;
        *budget = budget.saturating_sub(count / BUCKETS_A_STEP);
        Ok(GroupBuilder {
            kind,
            old,
            replaced,
            next: 0,
            new: new.into_iter(),
            buckets: Vec::with_capacity(count),
            ids: BTreeSet::new(),
            targets: BTreeSet::new(),
            identities: BTreeSet::new(),
            twins: HashMap::new(),
        })
    }

    /// Continues to create the buckets of a group. Buckets that stay come first, so that new ones
    /// get other identities.
    fn create_some(
        &self,
        number: GroupNo,
        builder: &mut GroupBuilder,
        budget: &mut usize,
    ) -> Result<Progress, GroupError> {
        while *budget > 0 {
            if builder.next == builder.replaced.start {
                builder.next = builder.replaced.end;
            }
            let kept = builder.old.as_ref().and_then(|old| old.buckets.get(builder.next)).cloned();
            let (bucket, steps) = match kept {
                Some(bucket) => {
                    builder.next += 1;
                    builder.identities.insert(bucket.identity);
                    (bucket, KEPT_BUCKET_STEPS)
                }
                None => {
                    let Some(spec) = builder.new.next() else {
                        builder.order();
                        return Ok(Progress::Done);
                    };
                    if spec.id > BUCKET_NO_MAX {
                        return Err(GroupError::BadBucket(spec.id));
                    }
                    if builder.ids.contains(&spec.id) {
                        return Err(GroupError::BucketExists(spec.id));
                    }
                    self.check_references(number, &spec)?;
                    let steps = NEW_BUCKET_STEPS + spec.actions.len();
                    let mut bucket = Bucket::new(spec);
                    bucket.identity = builder.unique(bucket.identity);
                    (bucket, steps)
                }
            };
            *budget = budget.saturating_sub(steps);
            builder.ids.insert(bucket.spec.id);
            builder.targets.extend(targets(&bucket.spec));
            builder.buckets.push(bucket);
        }
        Ok(Progress::More)
    }

    /// Deletes a group, or all with [`GROUPS_ALL`], and returns the deleted groups, so that the
    /// caller can delete entries that send to them. A group that does not exist is not an error. The
    /// caller also removes the references of deleted groups with [`GroupTable::release_some`].
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
            empty.groups.insert(number, group);
        }
        Ok(empty)
    }

    /// Removes the references of a deleted group, from an index on, within a budget. There are none
    /// if all groups were deleted.
    pub fn release_some(
        &mut self,
        gone: &GroupTable,
        from: &mut usize,
        budget: &mut usize,
    ) -> Progress {
        match gone.groups.iter().next() {
            Some((_, group)) if !self.referrers.is_empty() => {
                self.count_targets(&group.targets, from, |count| count - 1, budget)
            }
            _ => Progress::Done,
        }
    }

    /// Installs a group, and returns the group that it replaces. That group's counters and age
    /// stay.
    fn install(
        &mut self,
        number: GroupNo,
        builder: GroupBuilder,
        targets: Vec<GroupNo>,
        now: Nanos,
    ) -> Option<Arc<Group>> {
        let GroupBuilder { kind, buckets, .. } = builder;
        let before = self.groups.get(&number);
        let (traffic, added_at) = before.map_or_else(
            || (SharedTraffic::default(), now),
            |it| (it.traffic.clone(), it.added_at),
        );
        self.buckets += buckets.len();
        self.changes += 1;
        let group = Group { kind, buckets, targets, traffic, added_at };
        let old = self.groups.insert(number, Arc::new(group))?;
        self.buckets -= old.buckets.len();
        Some(old)
    }

    /// Updates the reference counts of groups, from an index on, within a budget.
    fn count_targets(
        &mut self,
        targets: &[GroupNo],
        from: &mut usize,
        count: impl Fn(usize) -> usize,
        budget: &mut usize,
    ) -> Progress {
        while let Some(&target) = targets.get(*from) {
            if *budget == 0 {
                return Progress::More;
            }
            *budget = budget.saturating_sub(REFERENCE_STEPS);
            *from += 1;
            match count(self.count_referrers(target)) {
                0 => drop(self.referrers.remove(&target)),
                count => drop(self.referrers.insert(target, count)),
            }
        }
        Progress::Done
    }
}

impl GroupBuilder {
    /// Returns the identity of a new bucket with this hash of its actions. It differs from those of
    /// all other buckets. It does not depend on buckets with other actions, so that these can be
    /// added and removed.
    fn unique(&mut self, hash: u64) -> u64 {
        let twins = self.twins.entry(hash).or_default();
        let mut identity = mix(hash, *twins);
        *twins += 1;
        while !self.identities.insert(identity) {
            identity = mix(identity, 1);
        }
        identity
    }

    /// Moves the new buckets to their place.
    fn order(&mut self) {
        let kept = self.old.as_ref().map_or(0, |old| old.buckets.len() - self.replaced.len());
        let new = self.buckets.len() - kept;
        self.buckets[self.replaced.start..].rotate_right(new);
    }
}

impl Bucket {
    /// Creates a bucket. Its identity is the hash of its actions.
    fn new(spec: BucketSpec) -> Bucket {
        let mut set = ActionSet::default();
        set.write(&spec.actions);
        let identity = Seeded(0x6b75_7474).hash_one(set.actions());
        let (set, traffic) = (set.actions().into(), SharedTraffic::default());
        Bucket { spec, set, identity, traffic }
    }
}

/// Frees the buckets of a group within a budget, unless it is still in use elsewhere. Returns
/// whether none is left.
fn free_buckets(group: &mut Arc<Group>, budget: &mut usize) -> bool {
    let Some(group) = Arc::get_mut(group) else { return true };
    while *budget > 0 && group.buckets.pop().is_some() {
        *budget = budget.saturating_sub(FREE_STEPS);
    }
    group.buckets.is_empty()
}

/// Returns the index before which to insert buckets.
fn insertion_place(buckets: &[Bucket], place: BucketPlace) -> Result<usize, GroupError> {
    match place {
        BucketPlace::First => Ok(0),
        BucketPlace::Last => Ok(buckets.len()),
        BucketPlace::All => Err(GroupError::BadBucket(u32::MAX)),
        BucketPlace::Id(id) => Ok(find(buckets, id)? + 1),
    }
}

/// Returns the indexes of the buckets to remove.
fn removed_places(buckets: &[Bucket], place: BucketPlace) -> Result<Range<usize>, GroupError> {
    let last = buckets.len().checked_sub(1).ok_or(GroupError::UnknownBucket(None));
    match place {
        BucketPlace::First => last.map(|_| 0..1),
        BucketPlace::Last => last.map(|last| last..last + 1),
        BucketPlace::All => Ok(0..buckets.len()),
        BucketPlace::Id(id) => find(buckets, id).map(|at| at..at + 1),
    }
}

fn find(buckets: &[Bucket], id: u32) -> Result<usize, GroupError> {
    if id > BUCKET_NO_MAX {
        return Err(GroupError::BadBucket(id));
    }
    let at = buckets.iter().position(|bucket| bucket.spec.id == id);
    at.ok_or(GroupError::UnknownBucket(Some(id)))
}
