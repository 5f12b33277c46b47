//! costa2017: its tables and figures, one file per type of measurement.
//!
//! Source: L. C. Costa and others, section III. Entries are installed beforehand. A client sends 10,000 UDP packets
//! to a server, which returns them, and the study measures the round trip time of each. Sizes are 64, 128 and 256
//! bytes; confidence intervals are at 99 %.
//!
//! The study does not state whether a size is that of the frame or of the UDP payload. Here it is the frame size,
//! including the frame check sequence, as in RFC 2544, which the study refers to. Targets without OpenFlow have one
//! type of entry. The reports show them as what the study calls legacy mode.

/// Common settings of its experiments: packets, sizes and rates.
pub mod setting;
/// Tables II and III, figures 2 to 5: match types, sizes and jitter.
pub mod matching;
/// Client and server as tester ports and as programs with sockets.
pub mod sockets;
/// Figure 6: OpenFlow mode compared with legacy mode.
pub mod modes;
/// Table V: one entry compared with a full table.
pub mod filling;
/// Table VI: header rewrites.
pub mod rewriting;
/// Table IV: number of entries that fit.
pub mod capacity;
/// Number of routes that fit.
mod routes;
/// Tables VII and VIII, figures 7 to 10: statistics under load.
pub mod statistics;
