//! What is checked before a group is taken: buckets, limits, and where frames would go from it.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.6.1 and 6.5. Invariant: nothing here
//! changes the table.

use std::collections::HashMap;

use super::{
    BUCKET_NO_MAX, BucketSpec, CHAIN_MAX, GroupError, GroupKind, GroupNo, GroupSpec, GroupTable,
};
use crate::action::Action;

impl GroupTable {
    /// Checks a group against all that there is and returns the groups that it refers to.
    pub(super) fn check(&self, spec: &GroupSpec) -> Result<Vec<GroupNo>, GroupError> {
        self.check_room(spec)?;
        check_kind(spec)?;
        let mut targets = Vec::new();
        for (at, bucket) in spec.buckets.iter().enumerate() {
            if bucket.id > BUCKET_NO_MAX {
                return Err(GroupError::BadBucket(bucket.id));
            }
            if spec.buckets[..at].iter().any(|other| other.id == bucket.id) {
                return Err(GroupError::BucketExists(bucket.id));
            }
            self.check_references(spec.number, bucket, &mut targets)?;
        }
        targets.sort_unstable();
        targets.dedup();
        self.check_chains(spec.number, &targets)?;
        Ok(targets)
    }

    fn check_room(&self, spec: &GroupSpec) -> Result<(), GroupError> {
        let own = self.groups.get(&spec.number).map_or(0, |group| group.buckets.len());
        let room = self.limits.buckets_max.saturating_sub(self.buckets - own);
        let limits = [(self.limits.group_buckets_max, self.limits.group_buckets_max)];
        let limits = limits.into_iter().chain([(room, self.limits.buckets_max)]);
        for (room, max) in limits {
            if spec.buckets.len() > room {
                return Err(GroupError::OutOfBuckets(max));
            }
        }
        Ok(())
    }

    /// Whether what a bucket watches and sends to exists; groups are noted.
    fn check_references(
        &self,
        own: GroupNo,
        bucket: &BucketSpec,
        targets: &mut Vec<GroupNo>,
    ) -> Result<(), GroupError> {
        if let Some(port) = bucket.watch_port
            && !self.ports.iter().any(|(known, _)| *known == port)
        {
            return Err(GroupError::BadWatchPort(port));
        }
        let is_known = |number| number == own || self.contains(number);
        if let Some(number) = bucket.watch_group {
            if !is_known(number) {
                return Err(GroupError::BadWatchGroup(number));
            }
            targets.push(number);
        }
        for action in &*bucket.actions {
            if let Action::Group(number) = *action {
                if !is_known(number) {
                    return Err(GroupError::BadOutGroup(number));
                }
                targets.push(number);
            }
        }
        Ok(())
    }

    /// Whether the groups would still hang together without a loop or too long a chain if the one of
    /// this number had these targets.
    fn check_chains(&self, number: GroupNo, targets: &[GroupNo]) -> Result<(), GroupError> {
        if targets.is_empty() {
            return Ok(());
        }
        let mut lengths = HashMap::new();
        let mut longest = self.chain_length(number, number, targets, &mut lengths)?;
        // Chains through this one begin at groups that refer to it.
        for (other, group) in &self.groups {
            if !group.targets.is_empty() && !lengths.contains_key(other) {
                let length = self.chain_length(*other, number, targets, &mut lengths)?;
                longest = longest.max(length);
            }
        }
        if longest > CHAIN_MAX { Err(GroupError::ChainTooLong(CHAIN_MAX)) } else { Ok(()) }
    }

    /// Groups in the longest chain that begins at `from`, if `changed` had these targets.
    fn chain_length(
        &self,
        from: GroupNo,
        changed: GroupNo,
        targets: &[GroupNo],
        lengths: &mut HashMap<GroupNo, Option<usize>>,
    ) -> Result<usize, GroupError> {
        match lengths.get(&from) {
            Some(Some(length)) => return Ok(*length),
            // It is being walked through, so this walk came back to it.
            Some(None) => return Err(GroupError::Loop(from)),
            None => {}
        }
        lengths.insert(from, None);
        let own = || self.groups.get(&from).map_or(&[][..], |group| &group.targets);
        let next = if from == changed { targets } else { own() };
        let mut length = 1;
        for target in next {
            length = length.max(1 + self.chain_length(*target, changed, targets, lengths)?);
        }
        lengths.insert(from, Some(length));
        Ok(length)
    }
}

fn check_kind(spec: &GroupSpec) -> Result<(), GroupError> {
    let suits = |bucket: &BucketSpec| match spec.kind {
        GroupKind::Select => true,
        GroupKind::FastFailover => {
            bucket.weight == 0 && (bucket.watch_port.is_some() || bucket.watch_group.is_some())
        }
        GroupKind::All | GroupKind::Indirect => bucket.weight == 0,
    };
    let one = spec.kind != GroupKind::Indirect || spec.buckets.len() == 1;
    // A select group of several buckets without any weight could never choose one.
    let chooses = spec.kind != GroupKind::Select
        || spec.buckets.len() < 2
        || spec.buckets.iter().any(|bucket| bucket.weight > 0);
    if one && chooses && spec.buckets.iter().all(suits) {
        Ok(())
    } else {
        Err(GroupError::InvalidGroup(spec.number))
    }
}
