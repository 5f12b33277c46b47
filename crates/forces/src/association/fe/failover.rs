//! Failover to another control element (RFC 5810 section 8, RFC 7121 sections 2 and 3).
//!
//! Without a primary CE the element stops forwarding immediately, or continues until FEPO's CEFTI
//! expires. In cold standby it tries the backups one after the other. In hot standby they are
//! already associated and one takes over.

use super::protocol_objects::{self, ADMIN_DISABLE, OPER_DISABLE, OPER_ENABLE};
use super::{
    AssociationState, Body, CES_MAX, Element, Fe, FeEvent, Flags, Id, Peer, RETRY_INTERVAL,
    SetupResult, TeardownReason,
};

impl Fe {
    /// Requests a connection to a CE, unless there is one.
    pub(super) fn try_ce(&mut self, ce: Id) {
        let now = self.now;
        if !self.peers.contains_key(&ce) && self.peers.len() >= CES_MAX {
            return;
        }
        let peer = self.peers.entry(ce).or_insert_with(|| Peer::new(now));
        if matches!(
            peer.stand,
            AssociationState::Idle | AssociationState::Lost | AssociationState::Unreachable
        ) {
            peer.stand = AssociationState::Connecting;
            self.events.push_back(FeEvent::Connect(ce));
        }
    }

    /// Handles the response to an association setup.
    pub(super) fn answered(
        &mut self,
        ce: Id,
        result: SetupResult,
        destination: Id,
        element: &mut dyn Element,
    ) {
        if result != SetupResult::SUCCESS {
            self.lose(ce, TeardownReason::OTHER, element);
            return;
        }
        if self.id == Id::NONE && destination.is_fe() && destination != Id::NONE {
            self.id = destination;
            self.own.set_id(destination);
        }
        if let Some(peer) = self.peers.get_mut(&ce) {
            peer.stand = AssociationState::Associated;
        }
        let is_primary = ce == self.own.primary();
        self.events.push_back(FeEvent::Associated(ce, is_primary));
        if is_primary {
            self.has_primary(element);
        }
    }

    /// Handles an association with the primary CE, the previous one or a new one.
    fn has_primary(&mut self, element: &mut dyn Element) {
        (self.stops_at, self.retries_at) = (None, None);
        if self.own.state() != ADMIN_DISABLE {
            self.own.set_state(OPER_ENABLE);
            element.set_forwarding(true);
        }
        let (last, primary) = (self.own.last(), self.own.primary());
        if last != Id::NONE && last != primary {
            let told = [
                (protocol_objects::PRIMARY_DOWN, last),
                (protocol_objects::PRIMARY_CHANGED, primary),
            ];
            for (event, ce) in told {
                if let Some(select) = protocol_objects::notification(element.catalog(), event, ce) {
                    self.tell(&select);
                }
            }
        }
        if self.own.is_hot() {
            self.own.backups().into_iter().for_each(|ce| self.try_ce(ce));
        }
    }

    /// Handles the end of an association or of an attempt.
    pub(super) fn lose(&mut self, ce: Id, reason: TeardownReason, element: &mut dyn Element) {
        let Some(peer) = self.peers.get_mut(&ce) else { return };
        let was_associated = match peer.stand {
            AssociationState::Idle | AssociationState::Lost | AssociationState::Unreachable => {
                return;
            }
            AssociationState::Associated => true,
            AssociationState::Connecting | AssociationState::Asking { .. } => false,
        };
        peer.stand =
            if was_associated { AssociationState::Lost } else { AssociationState::Unreachable };
        self.events.push_back(FeEvent::Disconnect(ce));
        if !was_associated {
            self.try_next(ce, element);
            return;
        }
        self.events.push_back(FeEvent::Lost(ce, reason));
        if self.transaction.as_ref().is_some_and(|transaction| transaction.ce == ce) {
            self.end_transaction(element);
        }
        if ce == self.own.primary() {
            self.own.set_last(ce);
            self.without_primary(element);
            self.try_next(ce, element);
        }
    }

    /// Handles the loss of the primary CE: the element stops, or continues for a while.
    fn without_primary(&mut self, element: &mut dyn Element) {
        match self.own.goes_on() {
            true => self.stops_at = Some(self.now + self.own.goes_on_for()),
            false => {
                self.subscriptions.clear();
                self.stop(element);
            }
        }
    }

    fn stop(&mut self, element: &mut dyn Element) {
        if self.own.state() != ADMIN_DISABLE {
            self.own.set_state(OPER_DISABLE);
        }
        element.set_forwarding(false);
    }

    /// Switches to the next CE, if the failed one was the primary CE.
    pub(super) fn try_next(&mut self, ce: Id, element: &mut dyn Element) {
        if ce != self.own.primary() {
            return;
        }
        for _ in 0..=self.own.backups().len() {
            self.own.rotate();
            if self.is_associated(self.own.primary()) {
                self.events.push_back(FeEvent::Associated(self.own.primary(), true));
                self.has_primary(element);
                return;
            }
            if !self.own.is_hot() {
                break;
            }
        }
        let next = self.peers.get(&self.own.primary()).map(|peer| peer.stand);
        match next {
            // Pause before retrying a CE that just failed, or the only one.
            Some(AssociationState::Lost | AssociationState::Unreachable) => {
                self.retries_at = Some(self.now + RETRY_INTERVAL);
            }
            _ => self.try_ce(self.own.primary()),
        }
    }

    /// Handles a connection that a CE opened: retries the primary CE without waiting.
    pub fn came(&mut self, ce: Id, now: super::Timestamp) {
        self.now = self.now.max(now);
        if ce == self.own.primary() && self.retries_at.take().is_some() {
            self.try_ce(ce);
        }
    }

    /// Handles the failover timeouts.
    pub(super) fn time_failover(&mut self, element: &mut dyn Element) {
        if self.retries_at.is_some_and(|at| at <= self.now) {
            self.retries_at = None;
            self.try_ce(self.own.primary());
        }
        if self.stops_at.is_some_and(|at| at <= self.now) {
            self.stops_at = None;
            self.subscriptions.clear();
            self.stop(element);
        }
    }

    /// Applies changes of FEObject and FEPO: forwarding state and primary CE.
    pub(super) fn follow(&mut self, before: (Id, u64), element: &mut dyn Element) {
        let (old, state) = before;
        if self.own.state() != state {
            element.set_forwarding(self.own.state() == OPER_ENABLE);
        }
        let new = self.own.primary();
        if new == old {
            return;
        }
        self.own.set_last(old);
        self.own.demote(old);
        if self.is_associated(new) {
            self.events.push_back(FeEvent::Associated(new, true));
            self.has_primary(element);
            return;
        }
        self.send(old, Body::AssociationTeardown(TeardownReason::NORMAL), 0, Flags::default());
        self.lose(old, TeardownReason::NORMAL, element);
        self.without_primary(element);
        self.try_ce(new);
    }

    /// Updates the state of all CEs in FEPO.
    pub(super) fn note_stands(&mut self) {
        let primary = self.own.primary();
        let row = |(id, peer): (&Id, &Peer)| {
            let status = match peer.stand {
                AssociationState::Idle | AssociationState::Connecting => 0,
                AssociationState::Asking { .. } => 1,
                AssociationState::Associated if *id == primary => 3,
                AssociationState::Associated => 2,
                AssociationState::Lost => 4,
                AssociationState::Unreachable => 5,
            };
            (*id, status, peer.counts.0)
        };
        let rows: Vec<_> = self.peers.iter().map(row).collect();
        self.own.set_all_ces(rows.into_iter());
    }
}
