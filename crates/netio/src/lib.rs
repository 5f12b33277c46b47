//! Packet input and output: ports, captures, and wrappers of ports.
//!
//! - A [`port::Port`] receives and transmits batches of frames and never waits. [`open`] opens one
//!   by its name: AF_PACKET, AF_XDP, memif, vhost-user, TAP or capture files.
//! - A [wrapper](wrap) (a trace, a fault, a delay, a rate) adds a function to a port and is itself
//!   a port.
//! - [`capture`] reads and writes capture files, and [`control_tap`] captures control channels.
//!
//! ```
//! use netio::memory::pair;
//! use netio::port::Port;
//! use packet::frame::Batch;
//! use packet::time::Nanos;
//!
//! let (mut left, mut right) = pair(256, "link");
//! let mut batch = Batch::new(32);
//! batch.push_bytes(&[0; 60]);
//! assert_eq!(left.transmit(&mut batch, Nanos::ZERO)?, 1);
//! batch.clear();
//! assert_eq!(right.receive(&mut batch, Nanos::ZERO)?, 1);
//! assert_eq!(right.counters().rx_bytes, 60);
//! # Ok::<(), netio::port::PortError>(())
//! ```

pub mod port;
pub mod departure;
pub mod link;
pub mod in_place;
pub mod memory;
pub mod afpacket;
pub mod xdp;
pub mod tagging;
pub mod tap;
pub mod memif;
pub mod vhost;
pub mod pcap;
pub mod replay;
pub mod wrap;
pub mod open;
pub mod capture;
pub mod control_tap;
mod sigbus_guard;
mod netns;
mod interface;
