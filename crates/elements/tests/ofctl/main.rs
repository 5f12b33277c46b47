//! Tests of a switch with Open vSwitch's ovs-ofctl over a Unix socket. Its output shows how another
//! implementation interprets the switch's messages.

#![allow(clippy::unwrap_used, reason = "a test may panic at any place")]

mod default;
mod first;
mod rig;
mod versions;
