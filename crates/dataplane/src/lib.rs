//! The forwarding core: deterministic, cannot fail, knows no control protocol.
//!
//! Modules are listed in the order in which a frame meets them. Time and seeds are arguments.

/// What every data plane is: frames in, frames and events out.
pub mod forwarder;
