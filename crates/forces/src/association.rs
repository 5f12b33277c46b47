//! Both ends of an association as state machines: bytes and time in, bytes and events out.
//!
//! Source: RFC 5810 sections 4.3, 4.4, 7.5 to 7.10 and 8, channels by RFC 5811, several CEs by
//! RFC 7121, large answers by RFC 7391. [`Fe`] speaks for a forwarding element, whose instances stand
//! behind [`Element`]; FEObject and FEPO, which are about the protocol, are its own, but for topology
//! and selectors. [`Ce`] is a control element's end of one association.
//!
//! Neither waits, nor knows a socket or a clock: time is a [`Moment`] that the owner hands over, from
//! any beginning. Memory is bounded by limits with a name.

/// How requests are carried out on an element.
mod apply;
/// A control element's end.
mod ce;
/// Which message goes by which channel.
mod channel;
/// What stands behind a forwarding element's end.
mod element;
/// A forwarding element's end.
mod fe;
/// Answers that one message does not hold.
mod parts;
/// Properties of components and events.
pub mod properties;

pub use ce::{Answer, Ce, CeEvent, CeSettings, Refused};
pub use channel::{Channel, QUEUE_OCTETS_MAX};
pub use element::{Change, Element, Place};
pub use fe::{Fe, FeEvent, FeSettings, Happening};

/// A moment, counted from any beginning that does not change.
pub type Moment = std::time::Duration;

#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;
