//! What select groups were seen to choose, and what they have to choose again.
//!
//! Source: OpenFlow switch specification 1.3.5, section 5.6.1. The frames of one flow go by the same
//! bucket; when a bucket leaves, only its own flows move. Which bucket a flow goes by at first is
//! found out by trying all that may be: those after which everything that the switch did is as
//! it has to be.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::group::{Bucket, Flow, Groups};

/// For each group and flow, the bucket, or that there is none.
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

    /// With one more.
    pub fn with(&self, unknown: &Unknown, bucket: Option<u32>) -> Choices {
        let mut more = self.clone();
        more.0.insert((unknown.group, unknown.flow.clone()), bucket);
        more
    }

    /// Takes over what all of these say; returns how much is new.
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

    /// Forgets what need not hold any more after a change. `rising` says that something may have
    /// become live that was not, without the text saying so.
    /// Returns how many choices have to stay although a bucket has left.
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

/// The buckets of weight that are surely live.
fn choosable(groups: &Groups, number: u32) -> Vec<Bucket> {
    let Some(group) = groups.groups.get(&number) else { return Vec::new() };
    let live = |bucket: &&Bucket| bucket.weight > 0 && bucket.watches() && groups.lives(bucket);
    group.buckets.iter().filter(live).cloned().collect()
}
