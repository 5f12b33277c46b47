//! Adding, changing and deleting groups, and single buckets of them.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 6.5, and 1.5.1, section 7.3.4.3. A changed
//! group keeps its own counters and its age; of its buckets only those that a command does not
//! touch keep theirs. Invariant: a command takes effect whole or is refused and changes nothing.

use std::hash::BuildHasher;

use packet::time::Nanos;

use super::{
    BUCKET_NO_MAX, Bucket, BucketPlace, BucketSpec, GROUP_NO_MAX, GROUPS_ALL, Group, GroupError,
    GroupNo, GroupSpec, GroupTable,
};
use crate::action_set::ActionSet;
use crate::counter::SharedTraffic;
use crate::hash::{Seeded, mix};

impl GroupTable {
    /// Adds a group.
    pub fn add(&mut self, spec: GroupSpec, now: Nanos) -> Result<(), GroupError> {
        if spec.number > GROUP_NO_MAX {
            return Err(GroupError::InvalidGroup(spec.number));
        }
        if self.contains(spec.number) {
            return Err(GroupError::GroupExists(spec.number));
        }
        if self.count() >= self.limits.groups_max {
            return Err(GroupError::OutOfGroups(self.limits.groups_max));
        }
        let targets = self.check(&spec)?;
        self.put(spec, targets, SharedTraffic::default(), now);
        Ok(())
    }

    /// Puts another description in the place of a group's.
    pub fn modify(&mut self, spec: GroupSpec) -> Result<(), GroupError> {
        self.group(spec.number)?;
        let targets = self.check(&spec)?;
        let old = self.take(spec.number).expect("it was there just now");
        self.put(spec, targets, old.traffic, old.added_at);
        Ok(())
    }

    /// Deletes a group, or all for [`GROUPS_ALL`], and returns the numbers of those that went:
    /// entries that send to them have to go too. A group that does not exist is no error.
    pub fn delete(&mut self, number: GroupNo) -> Result<Vec<GroupNo>, GroupError> {
        if number == GROUPS_ALL {
            let mut gone: Vec<GroupNo> = self.groups.drain().map(|(number, _)| number).collect();
            gone.sort_unstable();
            self.buckets = 0;
            return Ok(gone);
        }
        if number > GROUP_NO_MAX {
            return Err(GroupError::InvalidGroup(number));
        }
        if self.groups.values().any(|group| group.targets.contains(&number)) {
            return Err(GroupError::ChainedGroup(number));
        }
        Ok(self.take(number).map(|_| number).into_iter().collect())
    }

    /// Puts more buckets into a group; those that it has stay as they are.
    pub fn insert_buckets(
        &mut self,
        number: GroupNo,
        place: BucketPlace,
        buckets: Vec<BucketSpec>,
    ) -> Result<(), GroupError> {
        let mut spec = self.spec(number)?;
        let at = match place {
            BucketPlace::First => 0,
            BucketPlace::Last => spec.buckets.len(),
            BucketPlace::All => return Err(GroupError::BadBucket(u32::MAX)),
            BucketPlace::Id(id) => find(&spec.buckets, id)? + 1,
        };
        spec.buckets.splice(at..at, buckets);
        self.replace(spec)
    }

    /// Takes buckets out of a group; the others stay as they are.
    pub fn remove_buckets(
        &mut self,
        number: GroupNo,
        place: BucketPlace,
    ) -> Result<(), GroupError> {
        let mut spec = self.spec(number)?;
        let last = || spec.buckets.len().checked_sub(1).ok_or(GroupError::UnknownBucket(None));
        let range = match place {
            BucketPlace::First => last().map(|_| 0..1)?,
            BucketPlace::Last => last().map(|last| last..last + 1)?,
            BucketPlace::All => 0..spec.buckets.len(),
            BucketPlace::Id(id) => find(&spec.buckets, id).map(|at| at..at + 1)?,
        };
        spec.buckets.drain(range);
        self.replace(spec)
    }

    /// Changes a group to one that has some of the same buckets; these keep their counters, and
    /// their flows even if another that does the same leaves.
    fn replace(&mut self, spec: GroupSpec) -> Result<(), GroupError> {
        let targets = self.check(&spec)?;
        let number = spec.number;
        let old = self.take(number).expect("whoever changes it has found it");
        self.put(spec, targets, old.traffic, old.added_at);
        let group = self.groups.get_mut(&number).expect("it was put there just now");
        let mut taken: Vec<u64> = Vec::new();
        let mut new: Vec<&mut Bucket> = Vec::new();
        for bucket in &mut group.buckets {
            match old.buckets.iter().find(|other| other.spec.id == bucket.spec.id) {
                Some(before) => {
                    (bucket.traffic, bucket.identity) = (before.traffic.clone(), before.identity);
                    taken.push(bucket.identity);
                }
                None => new.push(bucket),
            }
        }
        for bucket in new {
            while taken.contains(&bucket.identity) {
                bucket.identity = mix(bucket.identity, 1);
            }
            taken.push(bucket.identity);
        }
        Ok(())
    }

    fn group(&self, number: GroupNo) -> Result<&Group, GroupError> {
        self.groups.get(&number).ok_or(GroupError::UnknownGroup(number))
    }

    fn spec(&self, number: GroupNo) -> Result<GroupSpec, GroupError> {
        let group = self.group(number)?;
        let buckets = group.buckets.iter().map(|bucket| bucket.spec.clone()).collect();
        Ok(GroupSpec { number, kind: group.kind, buckets })
    }

    fn take(&mut self, number: GroupNo) -> Option<Group> {
        let gone = self.groups.remove(&number)?;
        self.buckets -= gone.buckets.len();
        self.stale = true;
        Some(gone)
    }

    fn put(
        &mut self,
        spec: GroupSpec,
        targets: Vec<GroupNo>,
        traffic: SharedTraffic,
        added_at: Nanos,
    ) {
        let kind = spec.kind;
        let mut buckets: Vec<Bucket> = spec.buckets.into_iter().map(Bucket::new).collect();
        tell_apart(&mut buckets);
        self.buckets += buckets.len();
        let group = Group { kind, buckets, targets, traffic, added_at, live: false };
        self.groups.insert(spec.number, group);
        self.stale = true;
    }
}

impl Bucket {
    fn new(spec: BucketSpec) -> Bucket {
        let mut set = ActionSet::default();
        set.write(&spec.actions);
        let identity = Seeded(0x6b75_7474).hash_one(set.actions());
        let (set, traffic) = (set.actions().into(), SharedTraffic::default());
        Bucket { spec, set, identity, traffic, live: false }
    }
}

/// Gives buckets that do the same identities that differ. A bucket's own does not depend on those
/// that do something else, so that these can come and go.
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
