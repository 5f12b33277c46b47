//! The tables and figures of costa2017: a file for each kind of measurement.
//!
//! Source: L. C. Costa and others, section III: rules are installed before, a client sends 10,000 UDP packets to a
//! server, which returns them, and the round-trip time of each is taken; sizes are 64, 128 and 256 bytes, intervals
//! are those of 99 %. The study does not say whether a size is that of the frame or of what UDP carries: here it is
//! the frame's, frame check sequence included, as in RFC 2544, which it refers to. Targets without OpenFlow have
//! one kind of entry, and stand beside as what the study calls legacy mode.

/// What all of its experiments share: packets, sizes, and how they are sent.
pub mod setting;
/// Tables II and III, figures 2 to 5: match types, sizes and jitter.
pub mod matching;
/// Client and server as the tester's ports and as programs with sockets.
pub mod sockets;
/// Figure 6: OpenFlow mode against legacy mode.
pub mod modes;
/// Table V: one rule against a full table.
pub mod filling;
/// Table VI: header rewrites.
pub mod rewriting;
/// Table IV: how many rules fit.
pub mod capacity;
/// How many routes fit.
mod routes;
/// Tables VII and VIII, figures 7 to 10: statistics under load.
pub mod statistics;
