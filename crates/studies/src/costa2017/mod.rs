//! costa2017: its tables and figures, one file per type of measurement.
//!
//! Source: L. C. Costa and others, section III. Entries are installed beforehand. A client sends 10,000 UDP packets
//! to a server, which returns them, and the study measures the round trip time of each. Sizes are 64, 128 and 256
//! bytes; confidence intervals are at 99 %.
//!
//! The study does not state whether a size is that of the frame or of the UDP payload. Here it is the frame size,
//! including the frame check sequence, as in RFC 2544, which the study refers to. Targets without OpenFlow have one
//! type of entry. The reports show them as what the study calls legacy mode.

pub mod entries;
pub mod common;
pub mod matching;
pub mod sockets;
pub mod modes;
pub mod filling;
pub mod rewriting;
pub mod capacity;
mod routes;
pub mod statistics;
