//! bianco2010: "OpenFlow switching: data plane performance" (Bianco, Birke, Giraudo, Palacin;
//! IEEE ICC 2010, DOI 10.1109/ICC.2010.5502016).
//!
//! The study compares OpenFlow switching, bridging and routing in a Linux PC under the load of a
//! router tester on 1 Gbit/s links. What it calls throughput is the forwarding rate at full
//! nominal load: one trial a point, averaged over three runs of 60 seconds.

/// Forwarding rate of one flow against frame size.
pub mod fig2;
/// Forwarding rate of one flow of 64-byte frames against offered load.
pub mod fig3;
/// Latency of one flow of 64-byte frames against offered load.
pub mod fig4;
