//! Wrappers: ports around a port that simulate a link or record its frames.
//!
//! - Every wrapper acts on the frames *sent* through it and returns received frames unchanged. The
//!   trace records both directions. Wrappers on both ends of a pair of memory ports thus make a
//!   whole link.
//! - A wrapper that holds frames moves them on at every call of [`Port::receive`] or
//!   [`Port::transmit`] (an empty batch is enough), at or after the time that [`Port::next_event`]
//!   returns.
//! - Random decisions come from a seed: the same seed and the same calls give the same frames.
//!
//! [`Port::receive`]: crate::port::Port::receive
//! [`Port::transmit`]: crate::port::Port::transmit
//! [`Port::next_event`]: crate::port::Port::next_event

/// Implements these methods of [`Port`](crate::port::Port) by those of the inner port.
macro_rules! delegated {
    ($($method:ident),+) => { $(delegated!(@$method);)+ };
    (@facts) => {
        fn facts(&self) -> &crate::port::PortFacts {
            self.inner.facts()
        }
    };
    (@counters) => {
        fn counters(&mut self) -> crate::port::PortCounters {
            self.inner.counters()
        }
    };
    (@has_link) => {
        fn has_link(&self) -> bool {
            self.inner.has_link()
        }
    };
    (@link) => {
        fn link(&self) -> crate::link::Link {
            self.inner.link()
        }
    };
    (@descriptor) => {
        fn descriptor(&self) -> Option<std::os::fd::RawFd> {
            self.inner.descriptor()
        }
    };
    (@next_event) => {
        fn next_event(&self) -> Option<packet::time::Nanos> {
            self.inner.next_event()
        }
    };
}

pub mod delay;
pub mod fault;
pub mod rate;
pub mod tail_drop;
pub mod trace;

pub mod rng;
mod queue;
