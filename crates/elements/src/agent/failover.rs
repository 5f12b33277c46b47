//! Fail mode: handling of table misses while no controller is connected.
//!
//! Source: OpenFlow switch specification 1.0.0, section 4.3, 1.3.5, section 6.3.2, and the two fail
//! modes of Open vSwitch.
//!
//! Only the controllers that the switch connects to (`--controller`) count for the fail mode. A
//! connection that a listener accepted (`--listen`) is a management connection, like those of Open
//! vSwitch's `ptcp:` targets. It neither stops a standalone switch from bridging nor prevents it
//! from starting.
//!
//! - A secure switch never bridges.
//! - A standalone switch without configured controllers bridges from the start.
//! - A standalone switch with configured controllers bridges once none of them has been connected
//!   for the patience time, until one is.
//!
//! A switch that does not bridge sends table-miss frames to all connections, and drops them if
//! there is none.

use packet::time::Nanos;

use crate::config::FailMode;

/// Handling of table misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misses {
    /// Sends them to the controllers.
    ToController,
    /// Drops them.
    Dropped,
    /// Forwards them like a learning bridge.
    Bridged,
}

/// Numbers of established connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectedCounts {
    /// Controllers that the switch connected to.
    pub controllers: usize,
    /// Connections that a listener accepted.
    pub management: usize,
}

/// State of the fail mode.
#[derive(Debug)]
pub struct Failover {
    mode: FailMode,
    patience: Nanos,
    /// Since when no controller is connected; `None` while one is.
    alone_since: Option<Nanos>,
    misses: Misses,
}

impl Failover {
    /// Creates the state of a switch that starts at `now` without a connection. `patience` is how
    /// long a standalone switch waits for a controller before it bridges: zero if none is
    /// configured.
    pub fn new(mode: FailMode, patience: Nanos, now: Nanos) -> Self {
        Failover { mode, patience, alone_since: Some(now), misses: Misses::Dropped }
    }

    /// Updates the state. Returns the handling of table misses if it changes.
    pub fn turn(&mut self, connected: ConnectedCounts, now: Nanos) -> Option<Misses> {
        if connected.controllers > 0 {
            self.alone_since = None;
        }
        let gives_up = connected.controllers == 0 && {
            let since = *self.alone_since.get_or_insert(now);
            self.mode == FailMode::Standalone && now.since(since) >= self.patience
        };
        let misses = match connected.controllers + connected.management {
            _ if gives_up => Misses::Bridged,
            0 => Misses::Dropped,
            _ => Misses::ToController,
        };
        (std::mem::replace(&mut self.misses, misses) != misses).then_some(misses)
    }

    /// Returns the current handling of table misses.
    pub fn misses(&self) -> Misses {
        self.misses
    }

    /// Returns when a standalone switch starts to bridge.
    pub fn next_event(&self) -> Option<Nanos> {
        let waits = self.mode == FailMode::Standalone && self.misses != Misses::Bridged;
        let since = self.alone_since.filter(|_| waits)?;
        Some(since.saturating_add(self.patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Nanos = Nanos(100);

    const NONE: ConnectedCounts = ConnectedCounts { controllers: 0, management: 0 };
    const CONTROLLER: ConnectedCounts = ConnectedCounts { controllers: 1, management: 0 };
    const MANAGEMENT: ConnectedCounts = ConnectedCounts { controllers: 0, management: 1 };

    #[test]
    fn standalone_bridges_after_a_timeout_and_stops_when_a_controller_connects() {
        let mut failover = Failover::new(FailMode::Standalone, PATIENCE, Nanos(5));
        assert_eq!(failover.turn(NONE, Nanos(104)), None);
        assert_eq!(failover.next_event(), Some(Nanos(105)));
        assert_eq!(failover.turn(NONE, Nanos(105)), Some(Misses::Bridged));
        assert_eq!(failover.turn(NONE, Nanos(106)), None);
        assert_eq!(failover.turn(CONTROLLER, Nanos(200)), Some(Misses::ToController));
        assert_eq!(failover.next_event(), None);
        assert_eq!(failover.turn(NONE, Nanos(300)), Some(Misses::Dropped));
        assert_eq!(failover.turn(NONE, Nanos(399)), None);
        assert_eq!(failover.turn(NONE, Nanos(400)), Some(Misses::Bridged));
        assert_eq!(failover.next_event(), None);
    }

    #[test]
    fn management_connections_neither_stop_nor_delay_bridging() {
        let mut failover = Failover::new(FailMode::Standalone, PATIENCE, Nanos(0));
        assert_eq!(failover.turn(MANAGEMENT, Nanos(50)), Some(Misses::ToController));
        assert_eq!(failover.next_event(), Some(Nanos(100)));
        assert_eq!(failover.turn(MANAGEMENT, Nanos(100)), Some(Misses::Bridged));
        assert_eq!(failover.turn(NONE, Nanos(101)), None);
        assert_eq!(failover.turn(MANAGEMENT, Nanos(102)), None);
        let both = ConnectedCounts { controllers: 1, management: 1 };
        assert_eq!(failover.turn(both, Nanos(103)), Some(Misses::ToController));
    }

    #[test]
    fn standalone_without_configured_controllers_bridges_immediately() {
        let mut failover = Failover::new(FailMode::Standalone, Nanos::ZERO, Nanos(7));
        assert_eq!(failover.turn(MANAGEMENT, Nanos(7)), Some(Misses::Bridged));
    }

    #[test]
    fn secure_never_bridges() {
        let mut failover = Failover::new(FailMode::Secure, PATIENCE, Nanos(0));
        assert_eq!(failover.turn(CONTROLLER, Nanos(1)), Some(Misses::ToController));
        assert_eq!(failover.turn(MANAGEMENT, Nanos(2)), None);
        assert_eq!(failover.turn(NONE, Nanos(3)), Some(Misses::Dropped));
        assert_eq!(failover.turn(NONE, Nanos(1_000_000)), None);
        assert_eq!(failover.next_event(), None);
    }
}
