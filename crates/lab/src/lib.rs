//! A network on this machine: namespaces, cables, processes and the switches under test.
//!
//! The lab lends an experiment a device under test that behaves as if it stood in a rack: its own
//! network namespace, its own core, cables to the instrument, no chatter, and an account of every
//! frame the kernel lost on the way. What it makes is held by file descriptors and child processes
//! of this process, so it vanishes when the run ends, however it ends; only the run's private
//! folder, and the huge pages it has in writing, can outlive a crash, and the next start sweeps them.
//!
//! Source: Linux `namespaces(7)`, `veth(4)`, `rtnetlink(7)`, `sock_diag(7)`, `proc(5)`.
//! Invariant: nothing outside the run's own namespaces, processes and folder is ever changed, but
//! the machine's number of huge pages while a program of DPDK runs, and whether an interface that a user
//! names is on.

pub mod error;
pub mod need;
pub mod rights;
pub mod wait;
pub mod proc;
pub mod pin;
pub mod namespace;
pub mod pid_namespace;
pub mod netlink;
pub mod ethtool;
pub mod napi;
pub mod veth;
pub mod hugepages;
pub mod runfolder;
pub mod process;
pub mod talk;
pub mod packet_diag;
pub mod tcp_diag;
pub mod account;
pub mod load;
pub mod taken;
pub mod topology;
pub mod peer;
pub mod agent;
pub mod host;

pub use error::LabError;
pub use namespace::Namespace;
pub use need::Need;
pub use runfolder::RunFolder;
pub use topology::{Lab, Site, Wiring};

/// An Ethernet address, in the order of the wire.
pub type Mac = [u8; 6];
