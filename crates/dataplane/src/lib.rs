//! Forwarding core: deterministic, infallible and independent of the control protocol.
//!
//! Modules are listed in the order in which they process a frame. Time and random seeds are
//! arguments.

pub mod forwarder;
pub mod counter;
pub mod pipeline;
pub mod key;
pub mod parse;
pub mod matching;
pub mod flow;
pub mod table;
mod shared;
pub mod classifier;
pub mod fast;
pub mod wheel;
pub mod action;
pub mod action_set;
pub mod instruction;
pub mod group;
pub mod meter;
pub mod egress;
pub mod queue;
pub mod rewrite;
pub mod bridge;
pub mod mac_table;
pub mod tagger;
pub mod router;
pub mod route_table;
pub mod route_cache;
pub mod neighbor;
pub mod hash;
mod chains;
#[cfg(test)]
mod rng;
