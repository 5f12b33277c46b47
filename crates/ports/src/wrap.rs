//! Ports around a port: what is between two ends of a link, as far as it matters to a test.
//!
//! Every wrapper acts on the frames that are *sent* through it and passes received frames on as
//! they are (the trace sees both), so wrapping both ends of a pair of memory ports makes a whole
//! link. A wrapper that holds frames moves them on whenever it is called, by [`Port::receive`] or
//! [`Port::transmit`] (an empty batch will do), at or after the moment that
//! [`Port::next_event`] tells. Chance comes from a seed: the same seed and the same calls give
//! the same frames.
//!
//! [`Port::receive`]: crate::port::Port::receive
//! [`Port::transmit`]: crate::port::Port::transmit
//! [`Port::next_event`]: crate::port::Port::next_event

/// A link that takes time.
pub mod delay;
/// A link that loses, repeats, reorders and corrupts.
pub mod fault;
/// A link of so many bits per second.
pub mod rate;
/// A link that loses what does not fit.
pub mod tail_drop;
/// A record of all frames, in pcapng.
pub mod trace;

mod chance;
mod held;
