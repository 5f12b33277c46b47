//! What an entry does with the frames that match it: its instructions.
//!
//! Source: OpenFlow switch specification 1.3.5, section 5.9 (1.5.1, section 5.5, for statistics
//! triggers). An entry has each kind at most once, and they are done in the order of the fields here,
//! whatever the order in which they were said. A list of actions of OpenFlow 1.0 is an `apply`.

use std::sync::Arc;

use packet::time::Nanos;

use crate::action::{Action, Actions};

/// The instructions of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Instructions {
    /// Tell when the entry's counters reach this.
    pub trigger: Option<StatTrigger>,
    /// The meter that the frame has to pass first.
    pub meter: Option<u32>,
    /// Actions done at once, in order.
    pub apply: Actions,
    /// Forget the action set.
    pub clear: bool,
    /// Actions put into the action set, each in place of one of its kind.
    pub write: Actions,
    /// Value and mask: bits of the metadata to set, for the tables that follow.
    pub metadata: Option<(u64, u64)>,
    /// The table that goes on; without one the action set is done.
    pub goto: Option<u8>,
    /// The `max_len` of each output of `apply`, then of `write`, to other than the control plane, as
    /// sent; empty if all are zero. Frames do not depend on it: it is kept for flow statistics.
    pub output_bytes_max: Arc<[u16]>,
}

/// When an entry's statistics are told without being asked for. At least one limit is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct StatTrigger {
    /// Tell at every multiple of a limit, not only when it is first reached.
    pub periodic: bool,
    /// Tell only when the first of the limits is reached.
    pub only_first: bool,
    /// Frames that matched.
    pub frames: Option<u64>,
    /// Bytes of those.
    pub bytes: Option<u64>,
    /// Time since the entry was installed.
    pub age: Option<Nanos>,
    /// Time without a frame that matched.
    pub idle: Option<Nanos>,
}

impl Instructions {
    /// Do these actions, in order, and nothing else.
    pub fn apply(actions: &[Action]) -> Instructions {
        Instructions { apply: actions.into(), ..Instructions::default() }
    }

    /// Put these actions into the action set, and do it.
    pub fn write(actions: &[Action]) -> Instructions {
        Instructions { write: actions.into(), ..Instructions::default() }
    }

    /// All actions, those done at once first.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(self.write.iter())
    }

    /// The groups that frames are sent to.
    pub fn groups(&self) -> impl Iterator<Item = u32> {
        self.actions().filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        })
    }

    /// The meters that frames are to pass.
    pub fn meters(&self) -> impl Iterator<Item = u32> {
        let listed = self.actions().filter_map(|action| match action {
            Action::Meter(meter) => Some(*meter),
            _ => None,
        });
        self.meter.into_iter().chain(listed)
    }
}
