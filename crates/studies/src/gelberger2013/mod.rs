//! gelberger2013: "Performance analysis of software-defined networking (SDN)" (Gelberger, Yemini, Giladi; IEEE
//! MASCOTS 2013).
//!
//! The study compares an element that is programmed by a graph (ProGFE), an OpenFlow 1.0 soft switch and the Linux
//! kernel. The workloads are switching, IPv4 routing and VLAN tagging. Its question is whether the more flexible
//! element is slower. The text contains no values of its figures. The reports compare its statements with the
//! measurements.

pub mod entries;
pub mod workload;
pub mod tcp;
pub mod latency;
pub mod bridging;
pub mod rate;
pub mod offload;
