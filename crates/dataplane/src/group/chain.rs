//! Validation of groups: buckets, limits and references.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.6.1 and 6.5. The check of chains works
//! within a budget ([`Chains`]), since it may have to examine all groups. Invariant: nothing here
//! changes the table.

use std::collections::HashMap;

use super::{BucketSpec, CHAIN_MAX, GroupError, GroupKind, GroupNo, GroupTable};
use crate::action::Action;
use crate::table::Progress;

/// Progress of the check that new references of a group create neither a loop nor too long a chain:
/// a depth-first search of all chains.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// The current chain: each group, its next target to visit, and the longest chain from it so
    /// far.
    path: Vec<(GroupNo, usize, usize)>,
    /// Length of the longest chain from each group; `None` while the search is inside it.
    lengths: HashMap<GroupNo, Option<usize>>,
    /// Maximum of all lengths.
    longest: usize,
    /// The next group at which the search starts; `None` before it has begun.
    from: Option<GroupNo>,
}

impl GroupTable {
    /// Checks that the table has room for a group of this number with this many buckets.
    pub(super) fn check_room(&self, number: GroupNo, buckets: usize) -> Result<(), GroupError> {
        let own = self.groups.get(&number).map_or(0, |group| group.buckets.len());
        let room = self.limits.buckets_max.saturating_sub(self.buckets - own);
        let limits = [(self.limits.group_buckets_max, self.limits.group_buckets_max)];
        let limits = limits.into_iter().chain([(room, self.limits.buckets_max)]);
        for (room, max) in limits {
            if buckets > room {
                return Err(GroupError::OutOfBuckets(max));
            }
        }
        Ok(())
    }

    /// Checks that the references of a bucket exist.
    pub(super) fn check_references(
        &self,
        own: GroupNo,
        bucket: &BucketSpec,
    ) -> Result<(), GroupError> {
        if let Some(port) = bucket.watch_port
            && !self.ports.iter().any(|(known, _)| *known == port)
        {
            return Err(GroupError::BadWatchPort(port));
        }
        let is_known = |number| number == own || self.contains(number);
        if let Some(number) = bucket.watch_group
            && !is_known(number)
        {
            return Err(GroupError::BadWatchGroup(number));
        }
        match output_groups(bucket).find(|number| !is_known(*number)) {
            Some(number) => Err(GroupError::BadOutGroup(number)),
            None => Ok(()),
        }
    }

    /// Continues the check of chains, with these targets for the group of this number. Each group
    /// and each reference costs one step.
    pub(super) fn check_chains(
        &self,
        (number, targets): (GroupNo, &[GroupNo]),
        chains: &mut Chains,
        budget: &mut usize,
    ) -> Result<Progress, GroupError> {
        if targets.is_empty() {
            return Ok(Progress::Done);
        }
        loop {
            while let Some((at, next, longest)) = chains.path.pop() {
                if *budget == 0 {
                    chains.path.push((at, next, longest));
                    return Ok(Progress::More);
                }
                *budget -= 1;
                let own = || self.groups.get(&at).map_or(&[][..], |group| &group.targets);
                let all = if at == number { targets } else { own() };
                let Some(&target) = all.get(next) else {
                    chains.leave(at, longest);
                    continue;
                };
                match chains.lengths.get(&target) {
                    Some(Some(length)) => {
                        chains.path.push((at, next + 1, longest.max(1 + length)));
                    }
                    // The target is in the current chain, so there is a loop.
                    Some(None) => return Err(GroupError::Loop(target)),
                    None => {
                        chains.path.push((at, next + 1, longest));
                        chains.enter(target);
                    }
                }
            }
            match chains.from {
                // The first search starts at the group itself.
                None => {
                    chains.from = Some(0);
                    chains.enter(number);
                }
                Some(_) if chains.longest > CHAIN_MAX => {
                    return Err(GroupError::ChainTooLong(CHAIN_MAX));
                }
                Some(_) if self.count_referrers(number) == 0 => return Ok(Progress::Done),
                Some(_) if *budget == 0 => return Ok(Progress::More),
                // Chains through the group start at groups that refer to it.
                Some(from) => {
                    *budget -= 1;
                    let Some((&other, group)) = self.groups.range(from..).next() else {
                        return Ok(Progress::Done);
                    };
                    chains.from = Some(other + 1);
                    if !group.targets.is_empty() && !chains.lengths.contains_key(&other) {
                        chains.enter(other);
                    }
                }
            }
        }
    }
}

impl Chains {
    /// Extends the current chain by a group.
    fn enter(&mut self, number: GroupNo) {
        self.lengths.insert(number, None);
        self.path.push((number, 0, 1));
    }

    /// Records the longest chain from a group, and updates the group before it.
    fn leave(&mut self, number: GroupNo, length: usize) {
        self.lengths.insert(number, Some(length));
        self.longest = self.longest.max(length);
        if let Some((_, _, longest)) = self.path.last_mut() {
            *longest = (*longest).max(1 + length);
        }
    }
}

/// Returns the groups that a bucket refers to.
pub(super) fn targets(bucket: &BucketSpec) -> impl Iterator<Item = GroupNo> {
    bucket.watch_group.into_iter().chain(output_groups(bucket))
}

fn output_groups(bucket: &BucketSpec) -> impl Iterator<Item = GroupNo> {
    bucket.actions.iter().filter_map(|action| match *action {
        Action::Group(number) => Some(number),
        _ => None,
    })
}

/// Checks that the buckets, in any order, suit the type of their group.
pub(super) fn check_kind<'a>(
    number: GroupNo,
    kind: GroupKind,
    buckets: impl Iterator<Item = &'a BucketSpec>,
) -> Result<(), GroupError> {
    let (mut count, mut weights) = (0, 0);
    for bucket in buckets {
        let suits = match kind {
            GroupKind::Select => true,
            GroupKind::FastFailover => {
                bucket.weight == 0 && (bucket.watch_port.is_some() || bucket.watch_group.is_some())
            }
            GroupKind::All | GroupKind::Indirect => bucket.weight == 0,
        };
        if !suits {
            return Err(GroupError::InvalidGroup(number));
        }
        (count, weights) = (count + 1, weights + usize::from(bucket.weight > 0));
    }
    let one = kind != GroupKind::Indirect || count == 1;
    // A select group with several buckets and no weight could never choose one.
    let chooses = kind != GroupKind::Select || count < 2 || weights > 0;
    if one && chooses { Ok(()) } else { Err(GroupError::InvalidGroup(number)) }
}
