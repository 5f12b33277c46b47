//! Liveness of buckets and groups.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 6.5 ("group liveness"). A bucket is live
//! while its watch port or watch group is live. A group is live while one of its buckets is. A
//! bucket that watches nothing depends on the destination of its actions, so that a select group
//! avoids a port that is down.
//!
//! After a change of a group or port, liveness is computed on demand. When a frame is sent to a
//! group, it is computed for this group and the groups that it refers to. So the cost of a change
//! does not depend on the number of groups.
//!
//! Invariant: liveness is recomputed after every change and before its use.

use std::sync::Arc;

use packet::frame::PortNo;
use shared::Shared;

use super::{Bucket, Group, GroupNo, GroupTable};
use crate::action::Action;

/// Live buckets of a group, as of a number of changes.
#[derive(Debug)]
pub(super) struct Live {
    changes: u64,
    /// One bit per bucket.
    buckets: Vec<u64>,
}

impl Live {
    /// Returns the first live bucket.
    pub(super) fn first(&self) -> Option<usize> {
        self.places().next()
    }

    /// Returns the indexes of the live buckets, in order.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.buckets.iter().enumerate().flat_map(|(word, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit)
            })
        })
    }
}

impl GroupTable {
    /// Sets whether a port is live: its link is up, and it is not disabled.
    pub fn set_port_live(&mut self, port: PortNo, live: bool) {
        for (_, known) in self.ports.iter_mut().filter(|(number, _)| *number == port) {
            self.changes += u64::from(*known != live);
            *known = live;
        }
    }

    /// Whether a group is live.
    pub fn is_live(&mut self, number: GroupNo) -> bool {
        self.live(number).is_some_and(|live| live.first().is_some())
    }

    /// Returns the live buckets of a group.
    #[inline]
    pub(super) fn live(&mut self, number: GroupNo) -> Option<&Live> {
        let is_known = self.live.get(&number).is_some_and(|live| live.changes == self.changes);
        if !is_known {
            let GroupTable { groups, ports, changes, live, .. } = self;
            Search { groups, ports, changes: *changes, live }.is_live(number);
        }
        self.live.get(&number).map(|live| &**live)
    }
}

/// State of a liveness computation.
struct Search<'a> {
    groups: &'a Shared<GroupNo, Arc<Group>>,
    ports: &'a [(PortNo, bool)],
    changes: u64,
    live: &'a mut Shared<GroupNo, Arc<Live>>,
}

impl Search<'_> {
    /// Whether a group is live; caches the result. References have no loops, so this terminates.
    fn is_live(&mut self, number: GroupNo) -> bool {
        if let Some(live) = self.live.get(&number).filter(|live| live.changes == self.changes) {
            return live.first().is_some();
        }
        let Some(group) = self.groups.get(&number) else { return false };
        let mut buckets = vec![0; group.buckets.len().div_ceil(64)];
        for (at, bucket) in group.buckets.iter().enumerate() {
            buckets[at / 64] |= u64::from(self.has_live(bucket)) << (at % 64);
        }
        let live = Live { changes: self.changes, buckets };
        let is_live = live.first().is_some();
        self.live.insert(number, Arc::new(live));
        is_live
    }

    fn has_live(&mut self, bucket: &Bucket) -> bool {
        let (port, group) = (bucket.spec.watch_port, bucket.spec.watch_group);
        if port.is_some() || group.is_some() {
            return port.is_some_and(|port| self.is_port_live(port))
                || group.is_some_and(|group| self.is_live(group));
        }
        // In an action set with an output, this is the last action.
        match bucket.set.last() {
            Some(Action::Group(group)) => self.is_live(*group),
            Some(action) => action.port().is_none_or(|port| self.is_port_live(port)),
            None => true,
        }
    }

    fn is_port_live(&self, port: PortNo) -> bool {
        self.ports.iter().any(|(number, live)| *number == port && *live)
    }
}
