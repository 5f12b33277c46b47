//! A switch thread driven by Open vSwitch's ovs-ofctl over a Unix socket, another implementation
//! of the other end: what it prints is what it understood of ours.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod default;
mod first;
mod rig;
mod versions;
