//! Which buckets and groups are live.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 6.5 ("group liveness"): a bucket is live
//! while the port or the group that it watches is, a group while one of its buckets is. A bucket
//! that watches nothing is taken to watch what its actions send to, so that a select group does
//! without a port that is dead.
//!
//! Invariant: what is live is found out anew after every change and before it is asked for.

use std::collections::HashMap;

use packet::frame::PortNo;

use super::{Bucket, GroupNo, GroupTable};
use crate::action::Action;

impl GroupTable {
    /// Tells whether a port is live: its link carries frames, and it is not switched off.
    pub fn set_port_live(&mut self, port: PortNo, live: bool) {
        for (_, known) in self.ports.iter_mut().filter(|(number, _)| *number == port) {
            self.stale |= *known != live;
            *known = live;
        }
    }

    /// Whether a group is live.
    pub fn is_live(&mut self, number: GroupNo) -> bool {
        self.refresh();
        self.groups.get(&number).is_some_and(|group| group.live)
    }

    /// Finds out what is live, if anything has changed.
    #[inline]
    pub(super) fn refresh(&mut self) {
        if self.stale {
            self.find_live();
            self.stale = false;
        }
    }

    fn find_live(&mut self) {
        let mut known = HashMap::new();
        let numbers: Vec<GroupNo> = self.groups.keys().copied().collect();
        for number in &numbers {
            self.group_lives(*number, &mut known);
        }
        for (number, group) in &mut self.groups {
            let buckets = known.remove(number).unwrap_or_default();
            group.live = buckets.contains(&true);
            group.buckets.iter_mut().zip(buckets).for_each(|(bucket, live)| bucket.live = live);
        }
    }

    /// Whether a group is live; which of its buckets are is noted in `known`. Groups refer to each
    /// other without loops, so that this ends.
    fn group_lives(&self, number: GroupNo, known: &mut HashMap<GroupNo, Vec<bool>>) -> bool {
        if let Some(buckets) = known.get(&number) {
            return buckets.contains(&true);
        }
        let Some(group) = self.groups.get(&number) else { return false };
        let lives: Vec<bool> =
            group.buckets.iter().map(|bucket| self.bucket_lives(bucket, known)).collect();
        let live = lives.contains(&true);
        known.insert(number, lives);
        live
    }

    fn bucket_lives(&self, bucket: &Bucket, known: &mut HashMap<GroupNo, Vec<bool>>) -> bool {
        let (port, group) = (bucket.spec.watch_port, bucket.spec.watch_group);
        if port.is_some() || group.is_some() {
            return port.is_some_and(|port| self.port_lives(port))
                || group.is_some_and(|group| self.group_lives(group, known));
        }
        // In a set that sends, the last action does.
        match bucket.set.last() {
            Some(Action::Group(group)) => self.group_lives(*group, known),
            Some(action) => action.port().is_none_or(|port| self.port_lives(port)),
            None => true,
        }
    }

    fn port_lives(&self, port: PortNo) -> bool {
        self.ports.iter().any(|(number, live)| *number == port && *live)
    }
}
