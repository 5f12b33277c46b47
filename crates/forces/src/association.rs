//! Both ends of a ForCES association as state machines, without I/O.
//!
//! Source: RFC 5810 sections 4.3, 4.4, 7.5 to 7.10 and 8; channels: RFC 5811; several CEs: RFC
//! 7121; large responses: RFC 7391.
//!
//! - [`Fe`] is the end of a forwarding element. It accesses the element's instances through
//!   [`Element`]. It implements FEObject and FEPO itself, except topology and selectors.
//! - [`Ce`] is a control element's end of one association.
//! - Neither blocks or has sockets or clocks. The owner passes the time as a [`Timestamp`].
//! - Named limits bound memory.

mod operations;
mod ce;
mod channel;
mod element;
mod fe;
mod fragmentation;
pub mod properties;

pub use ce::{Answer, Ce, CeEvent, CeSettings, RequestError};
pub use channel::{Channel, QUEUE_OCTETS_MAX};
pub use element::{Change, Element, Place};
pub use fe::{Fe, FeEvent, FeSettings, Happening};

/// Time since an arbitrary fixed start.
pub type Timestamp = std::time::Duration;

#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;
