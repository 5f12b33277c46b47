//! gelberger2013: "Performance analysis of software-defined networking (SDN)" (Gelberger, Yemini, Giladi;
//! IEEE MASCOTS 2013).
//!
//! The study sets an element that is programmed by a graph (ProGFE) beside an OpenFlow 1.0 soft switch and what the
//! kernel does itself, with three workloads: switching, IPv4 routing and VLAN tagging. It asks whether the richer of the two
//! is slower. Its figures are not printed in its text: what it says of them is put to what is measured here.

/// What targets are asked to do with packets.
pub mod workload;
/// Throughput of TCP by window and by frame size.
pub mod tcp;
/// Latency by frame size, and how much it varies.
pub mod latency;
/// Bridges as code and as programs.
pub mod bridging;
/// All workloads side by side.
pub mod rate;
/// Work done in the element, or by a controller.
pub mod offload;
