//! Observed choices of select groups, which must be repeated.
//!
//! Source: OpenFlow switch specification 1.3.5, section 5.6.1. The frames of one flow use the same
//! bucket; when a bucket is removed, only its own flows move. The first choice for a flow is
//! inferred: the test tries all possible choices and keeps those that explain everything the switch
//! did.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::group::{Bucket, Flow, Groups};

/// The bucket for each group and flow, or `None` for no bucket.
#[derive(Debug, Clone, Default)]
pub struct Choices(HashMap<(u32, Flow), Option<u32>>);

/// A choice that is not known yet.
#[derive(Debug)]
pub struct Unknown {
    pub group: u32,
    pub flow: Flow,
    pub among: Vec<Option<u32>>,
}

impl Choices {
    pub fn get(&self, group: u32, flow: &Flow) -> Option<Option<u32>> {
        self.0.get(&(group, flow.clone())).copied()
    }

    /// Returns these choices and one more.
    pub fn with(&self, unknown: &Unknown, bucket: Option<u32>) -> Choices {
        let mut more = self.clone();
        more.0.insert((unknown.group, unknown.flow.clone()), bucket);
        more
    }

    /// Learns the choices on which all of these agree; returns the number of new ones.
    pub fn learn(&mut self, fitting: &[Choices]) -> usize {
        let before = self.0.len();
        let Some((first, others)) = fitting.split_first() else { return 0 };
        for (of, bucket) in &first.0 {
            if others.iter().all(|other| other.0.get(of) == Some(bucket)) {
                self.0.insert(of.clone(), *bucket);
            }
        }
        self.0.len() - before
    }

    /// Removes the choices that may change after a modification. `rising`: a bucket may have become
    /// live for which the specification defines no liveness. Returns the number of choices that
    /// must stay although a bucket was removed.
    pub fn settle(&mut self, before: &Groups, after: &Groups, rising: bool) -> usize {
        let mut kept: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut smaller = BTreeSet::new();
        for (number, group) in &after.groups {
            let (old, new) = (choosable(before, *number), choosable(after, *number));
            let vague = group.buckets.iter().any(|bucket| bucket.weight > 0 && !bucket.watches());
            if new.iter().all(|bucket| old.contains(bucket)) && !(rising && vague) {
                if new.len() < old.len() {
                    smaller.insert(*number);
                }
                kept.insert(*number, new.iter().map(|bucket| bucket.id).collect());
            }
        }
        self.0.retain(|(group, _), bucket| {
            bucket.is_some_and(|id| kept.get(group).is_some_and(|some| some.contains(&id)))
        });
        self.0.keys().filter(|(group, _)| smaller.contains(group)).count()
    }
}

/// Returns the buckets with a weight that are certainly live.
fn choosable(groups: &Groups, number: u32) -> Vec<Bucket> {
    let Some(group) = groups.groups.get(&number) else { return Vec::new() };
    let live = |bucket: &&Bucket| bucket.weight > 0 && bucket.watches() && groups.lives(bucket);
    group.buckets.iter().filter(live).cloned().collect()
}
