//! A mirror of a running element in another data plane, such as one in the kernel.
//!
//! The mirror decides some of the frames by the element's decision tree and tables. The element
//! decides the others. Sums of counters are exact, because the element adds the mirror's counts
//! before its program changes, and whenever a caller requests it.

use std::fmt::Debug;

use dataplane::mac_table::MacTable;
use packet::time::Nanos;

use super::Element;
use crate::executor::{Enforcer, MirrorCount};
use crate::lfb::Lfb;

/// A mirror of an element.
pub trait ElementMirror: Debug + Send {
    /// Leaves all frames to the element from now on. Returns when the mirror has decided and counted
    /// its last frame.
    fn suspend(&mut self);

    /// Returns the frames that were decided since the last call, for the tree that the element has.
    fn take_counts(&mut self) -> Vec<MirrorCount>;
}

impl<E: Enforcer> Element<E> {
    /// Sets the mirror. The element suspends it before every change that the mirror does not follow
    /// itself. The caller resumes it.
    pub fn set_mirror(&mut self, mirror: Option<Box<dyn ElementMirror>>) {
        self.mirror = mirror;
    }

    /// Adds the frames that the mirror decided to the counters.
    pub fn add_mirrored(&mut self) {
        if let Some(mirror) = &mut self.mirror {
            self.enforcer.add_mirrored(&mirror.take_counts());
        }
    }

    /// Suspends the mirror, and adds its last frames to the counters.
    pub(super) fn suspend_mirror(&mut self) {
        if let Some(mirror) = &mut self.mirror {
            mirror.suspend();
            self.enforcer.add_mirrored(&mirror.take_counts());
        }
    }

    /// Returns true if a mirror may decide frames: the element forwards, and traces no frames.
    pub fn allows_mirror(&self, now: Nanos) -> bool {
        let is_tracing = self.observing.as_ref().is_some_and(|it| it.is_tracing(now));
        self.forwards && !is_tracing
    }

    /// Returns the bridge table of a learning block, by its index in the program.
    pub fn stations_mut(&mut self, instance: usize) -> Option<&mut MacTable> {
        match self.enforcer.block_mut(instance) {
            Some(Lfb::LearnSearch(block)) => block.stations_mut(),
            _ => None,
        }
    }
}
