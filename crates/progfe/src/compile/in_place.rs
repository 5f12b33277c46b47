//! Decisions for frames that stay in the receive buffer, by their first bytes.

use dataplane::forwarder::{
    BatchDecision, Decision, FrameHead, GROWS_MAX, Outputs, PendingBatch, SIGHTS_MAX,
};
use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use super::Compiled;
use super::symbolic_bytes::VIEW_BYTES;
use super::tree::{End, Fate};
use crate::executor::Enforcer;

impl Compiled {
    /// See [`Forwarder::decide`](dataplane::forwarder::Forwarder::decide). Decides all frames of a
    /// batch or none.
    pub(super) fn decide_in_place(
        &mut self,
        port: PortNo,
        [sights, next]: [&[FrameHead<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<CompiledBatch<'_>> {
        let told_max = match (self.tree.root(port), &self.plan) {
            (Some(_), Some(plan)) => plan.told_max,
            _ => {
                self.skip_batch();
                return BatchDecision::Done(0);
            }
        };
        let is_seen = |sight: &FrameHead<'_>| sight.head.len() >= sight.bytes.min(VIEW_BYTES);
        // Frames in `ahead` have been checked already.
        if !self.has_room(told_max, sights.len())
            || !(self.is_ahead || sights.iter().all(is_seen))
            || !next.iter().all(is_seen)
            || !self.tree.leaves_by(&self.ports)
        {
            self.skip_batch();
            return BatchDecision::Done(0);
        }
        if !self.is_ahead {
            self.ahead.see(&mut self.tree, port, sights, &self.one_by_one);
            self.ahead.guess(&self.tree, &self.one_by_one);
        }
        std::mem::swap(&mut self.row, &mut self.ahead);
        self.is_ahead = !next.is_empty();
        if self.is_ahead {
            self.ahead.see(&mut self.tree, port, next, &self.one_by_one);
        }
        let is_plain = self.conclude(sights, now);
        if self.is_ahead {
            self.ahead.guess(&self.tree, &self.one_by_one);
        }
        let Compiled { row, tree, one_by_one, walk, .. } = self;
        let mut left = 0;
        let (mut can_stay, mut changes) = (is_plain, false);
        let mut place = 0;
        while place < sights.len() {
            let (at, first) = (row.end(place), place);
            let End { fate, change, .. } = &tree.ends[at as usize];
            let (decision, reach) = match fate {
                Fate::Leaves(to, _) => (Decision::Output(*to), change.reach()),
                Fate::Gone | Fate::Goes => (Decision::Dropped, 0),
            };
            while place < sights.len() && row.end(place) == at {
                can_stay &= reach <= sights[place].head.len();
                decisions[place] = decision;
                place += 1;
            }
            if let Decision::Output(to) = decision {
                left += (place - first) as u64;
                // A frame that leaves by its ingress port needs a separate buffer.
                can_stay &= to != port;
                changes |= !change.is_none();
            }
        }
        tree.settle(one_by_one);
        if !can_stay {
            return BatchDecision::Needs(sights.len(), CompiledBatch(self));
        }
        one_by_one.account.received += sights.len() as u64;
        one_by_one.account.left += left;
        walk.tell_plain(one_by_one, sights.len());
        match changes {
            true => BatchDecision::Rewrites(sights.len(), CompiledBatch(self)),
            false => BatchDecision::Done(sights.len()),
        }
    }
}

/// A batch in the tree, with the ends of its frames.
pub struct CompiledBatch<'a>(&'a mut Compiled);

impl PendingBatch for CompiledBatch<'_> {
    #[inline]
    fn rewrite(&self, place: usize, head: &mut [u8], bytes: usize) -> (usize, usize) {
        let Compiled { tree, row, .. } = &*self.0;
        let change = &tree.ends[row.end(place) as usize].change;
        let grown = change.grown as isize;
        if !change.is_none() {
            change.rewrite(&mut head[GROWS_MAX - grown.max(0) as usize..]);
        }
        (GROWS_MAX.saturating_add_signed(-grown), bytes.saturating_add_signed(grown))
    }

    fn resume(self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        self.0.go_on(frames, now, out);
        self.0.serve(now, out);
    }
}
