//! Forwarding core: deterministic, infallible and independent of the control protocol.
//!
//! Modules are listed in the order in which they process a frame. Time and random seeds are
//! arguments.

/// Interface of every data plane: frames in, frames and events out.
pub mod forwarder;
/// Frame and byte counters.
pub mod counter;
/// OpenFlow data plane that processes batches: key, tables, actions.
pub mod pipeline;
/// Header fields of a frame, packed into four words.
pub mod key;
/// Positions of the headers that a pipeline matches and changes.
pub mod locate;
/// Matches of flow entries.
pub mod matching;
/// Flow entries: requests to install them and records of them.
pub mod flow;
/// Flow tables: lookup, flow-mods and timeouts.
pub mod table;
/// Values that many entries share.
mod shared;
/// Packet classifiers.
pub mod classifier;
/// Lookup structures designed for CPU caches and for concurrent readers.
pub mod fast;
/// Timing wheel for timeouts.
pub mod wheel;
/// Actions of a flow entry.
pub mod action;
/// OpenFlow action set.
pub mod action_set;
/// Instructions of a flow entry: apply-actions, write-actions, goto-table and others.
pub mod instruction;
/// Groups: all, select, indirect and fast failover.
pub mod group;
/// Meters: rate measurement and bands.
pub mod meter;
/// Executes actions and delivers frames to ports; counts every drop.
pub mod egress;
/// Port queues with rate limits.
pub mod queue;
/// Rewrites header fields in place and updates checksums.
pub mod rewrite;
/// Learning bridge.
pub mod bridge;
/// MAC address table of a bridge.
pub mod mac_table;
/// VLAN tagger.
pub mod tagger;
/// IPv4 router.
pub mod router;
/// Longest-prefix match in one to three steps.
pub mod route_table;
/// Cache of destinations in front of the route table.
pub mod route_cache;
/// Neighbor cache: hardware addresses, and frames that wait for one.
pub mod neighbor;
/// Hash of one word.
pub mod hash;
/// Chained hash table of numbers.
mod chains;
/// Reproducible random choices for property tests.
#[cfg(test)]
mod dice;
