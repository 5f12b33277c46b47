//! A network on this machine: namespaces, cables, processes and the switches under test.
//!
//! - The lab gives an experiment an isolated device under test, as if it were in a rack: its own
//!   network namespace, its own core, cables to the tester, no background traffic, and counters of
//!   all frames that the kernel lost.
//! - File descriptors and child processes of this process hold everything that the lab creates. It
//!   vanishes when the run ends for any reason.
//! - Only the run's private folder, and the huge pages recorded in it, can outlive a crash. The
//!   next start removes them.
//!
//! Source: Linux `namespaces(7)`, `veth(4)`, `rtnetlink(7)`, `sock_diag(7)`, `proc(5)`.
//!
//! Invariant: nothing outside the run's own namespaces, processes and folder is changed, with two
//! exceptions. These are the machine's number of huge pages while a DPDK program runs, and the up
//! state of interfaces that the user names.

pub mod error;
pub mod requirement;
pub mod capabilities;
pub mod wait;
pub mod proc;
pub mod affinity;
pub mod namespace;
pub mod pid_namespace;
pub mod netlink;
pub mod ethtool;
pub mod napi;
pub mod veth;
pub mod probe;
pub mod hugepages;
pub mod runfolder;
pub mod process;
pub mod pipe_process;
pub mod packet_diag;
pub mod tcp_diag;
pub mod account;
pub mod load;
pub mod borrowed_interfaces;
pub mod topology;
pub mod peer;
pub mod agent;
pub mod host;
mod survey;

pub use error::LabError;
pub use namespace::Namespace;
pub use requirement::Requirement;
pub use runfolder::RunFolder;
pub use survey::survey;
pub use topology::{Lab, Site, Wiring};

/// An Ethernet address in network byte order.
pub type Mac = [u8; 6];
