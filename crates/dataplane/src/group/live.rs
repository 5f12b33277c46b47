//! Which buckets and groups are live.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 6.5 ("group liveness"): a bucket is live
//! while the port or the group that it watches is, a group while one of its buckets is. A bucket
//! that watches nothing is taken to watch what its actions send to, so that a select group does
//! without a port that is dead.
//!
//! After a change of a group or port it is determined anew for a group when a frame goes by it, together with the
//! groups that it refers to. So a change costs the same however many groups there are.
//!
//! Invariant: what is live is determined anew after every change and before it is used.

use std::sync::Arc;

use packet::frame::PortNo;
use shared::Shared;

use super::{Bucket, Group, GroupNo, GroupTable};
use crate::action::Action;

/// Which buckets of a group are live, as of a number of changes.
#[derive(Debug)]
pub(super) struct Live {
    changes: u64,
    /// A bit for each bucket.
    buckets: Vec<u64>,
}

impl Live {
    /// The first bucket that is live.
    pub(super) fn first(&self) -> Option<usize> {
        self.places().next()
    }

    /// The places of the buckets that are live, in order.
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
    /// Tells whether a port is live: its link carries frames, and it is not switched off.
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

    /// Which buckets of a group are live.
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

/// What it takes to find out what is live.
struct Search<'a> {
    groups: &'a Shared<GroupNo, Arc<Group>>,
    ports: &'a [(PortNo, bool)],
    changes: u64,
    live: &'a mut Shared<GroupNo, Arc<Live>>,
}

impl Search<'_> {
    /// Whether a group is live, which is noted. Groups refer to each other without loops, so that this ends.
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
        // In a set that sends, the last action does.
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
