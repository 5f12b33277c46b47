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

pub mod delay;
pub mod fault;
pub mod rate;
pub mod tail_drop;
pub mod trace;

mod rng;
mod queue;
