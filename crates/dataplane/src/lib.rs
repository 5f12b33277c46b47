//! The forwarding core: deterministic, cannot fail, knows no control protocol.
//!
//! Modules are listed in the order in which a frame meets them. Time and seeds are arguments.

/// What every data plane is: frames in, frames and events out.
pub mod forwarder;
/// Everything that happens to a frame is counted once.
pub mod counter;
/// The fields by which a frame is classified, packed into four words.
pub mod key;
/// Which frames an entry is for.
pub mod matching;
/// What is done with a frame that an entry matched.
pub mod action;
/// An installed entry, as the control plane says it and as it is told about it.
pub mod flow;
