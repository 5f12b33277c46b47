//! What happens to frames without match while there is no controller.
//!
//! Source: OpenFlow switch specification 1.0.0, section 4.3, and Open vSwitch's two fail modes,
//! whose names users know. As soon as the last controller is gone such frames are dropped, for
//! nobody would answer; a switch that fails standalone bridges them once it has waited in vain.

use packet::time::Nanos;

use crate::config::FailMode;

/// Where frames without match go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misses {
    /// To the controllers.
    ToController,
    /// Nowhere.
    Dropped,
    /// Where a learning bridge would send them.
    Bridged,
}

/// The state between "connected" and "given up".
#[derive(Debug)]
pub struct Failover {
    mode: FailMode,
    patience: Nanos,
    /// Since when there is no controller; `None` while there is one.
    alone_since: Option<Nanos>,
    misses: Misses,
}

impl Failover {
    /// A switch that starts at `now` without a controller, and waits for one so long before it
    /// goes on without.
    pub fn new(mode: FailMode, patience: Nanos, now: Nanos) -> Self {
        Failover { mode, patience, alone_since: Some(now), misses: Misses::Dropped }
    }

    /// Takes note of whether there is a controller; returns where misses go if that changes.
    pub fn turn(&mut self, connected: bool, now: Nanos) -> Option<Misses> {
        let misses = if connected {
            self.alone_since = None;
            Misses::ToController
        } else {
            let since = *self.alone_since.get_or_insert(now);
            match self.mode {
                FailMode::Standalone if now.since(since) >= self.patience => Misses::Bridged,
                _ => Misses::Dropped,
            }
        };
        (std::mem::replace(&mut self.misses, misses) != misses).then_some(misses)
    }

    /// Where frames without match go now.
    pub fn misses(&self) -> Misses {
        self.misses
    }

    /// When it will go on without a controller.
    pub fn next_event(&self) -> Option<Nanos> {
        let waits = self.mode == FailMode::Standalone && self.misses == Misses::Dropped;
        let since = self.alone_since.filter(|_| waits)?;
        Some(since.saturating_add(self.patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Nanos = Nanos(100);

    #[test]
    fn standalone_bridges_after_the_patience_and_stops_when_a_controller_comes() {
        let mut failover = Failover::new(FailMode::Standalone, PATIENCE, Nanos(5));
        assert_eq!(failover.turn(false, Nanos(104)), None);
        assert_eq!(failover.next_event(), Some(Nanos(105)));
        assert_eq!(failover.turn(false, Nanos(105)), Some(Misses::Bridged));
        assert_eq!(failover.turn(false, Nanos(106)), None);
        assert_eq!(failover.turn(true, Nanos(200)), Some(Misses::ToController));
        assert_eq!(failover.turn(false, Nanos(300)), Some(Misses::Dropped));
        assert_eq!(failover.turn(false, Nanos(399)), None);
        assert_eq!(failover.turn(false, Nanos(400)), Some(Misses::Bridged));
        assert_eq!(failover.next_event(), None);
    }

    #[test]
    fn secure_never_bridges() {
        let mut failover = Failover::new(FailMode::Secure, PATIENCE, Nanos(0));
        assert_eq!(failover.turn(true, Nanos(1)), Some(Misses::ToController));
        assert_eq!(failover.turn(false, Nanos(2)), Some(Misses::Dropped));
        assert_eq!(failover.turn(false, Nanos(1_000_000)), None);
        assert_eq!(failover.next_event(), None);
    }
}
