//! Instructions of a flow entry.
//!
//! Source: OpenFlow switch specification 1.3.5, section 5.9 (1.5.1, section 5.5, for statistics
//! triggers). An entry has each instruction at most once. They execute in the order of the fields
//! here, regardless of their order in the message. An action list of OpenFlow 1.0 is an `apply`.

use std::sync::Arc;

use packet::time::Nanos;

use crate::action::{Action, Actions};

/// The instructions of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Instructions {
    /// Reports the entry when its counters reach these limits.
    pub trigger: Option<StatTrigger>,
    /// The meter that the frame passes first.
    pub meter: Option<u32>,
    /// Actions that execute immediately, in order.
    pub apply: Actions,
    /// Clears the action set.
    pub clear: bool,
    /// Actions to write to the action set; each replaces one of its kind.
    pub write: Actions,
    /// Value and mask: metadata bits to set for later tables.
    pub metadata: Option<(u64, u64)>,
    /// The next table; without one, the action set executes.
    pub goto: Option<u8>,
    /// The `max_len` of each output to other ports than the controller, first of `apply`, then of
    /// `write`, as sent. Empty if all are zero. Frames do not depend on it; flow statistics report
    /// it.
    pub output_bytes_max: Arc<[u16]>,
}

/// Limits at which an entry's statistics are sent unsolicited. At least one limit is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct StatTrigger {
    /// Report at every multiple of a limit, not only at the first.
    pub periodic: bool,
    /// Report only when the first of the limits is reached.
    pub only_first: bool,
    /// Number of matched frames.
    pub frames: Option<u64>,
    /// Number of matched bytes.
    pub bytes: Option<u64>,
    /// Time since the installation.
    pub age: Option<Nanos>,
    /// Time without a match.
    pub idle: Option<Nanos>,
}

impl Instructions {
    /// Creates an apply-actions instruction with these actions, in order.
    pub fn apply(actions: &[Action]) -> Instructions {
        Instructions { apply: actions.into(), ..Instructions::default() }
    }

    /// Creates a write-actions instruction with these actions.
    pub fn write(actions: &[Action]) -> Instructions {
        Instructions { write: actions.into(), ..Instructions::default() }
    }

    /// Returns all actions, those of apply-actions first.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(self.write.iter())
    }

    /// Returns the groups that the actions refer to.
    pub fn groups(&self) -> impl Iterator<Item = u32> {
        self.actions().filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        })
    }

    /// Returns the meters that the instructions refer to.
    pub fn meters(&self) -> impl Iterator<Item = u32> {
        let listed = self.actions().filter_map(|action| match action {
            Action::Meter(meter) => Some(*meter),
            _ => None,
        });
        self.meter.into_iter().chain(listed)
    }
}
