//! The forwarding core: deterministic, cannot fail, knows no control protocol.
//!
//! Modules are listed in the order in which a frame meets them. Time and seeds are arguments.

/// What every data plane is: frames in, frames and events out.
pub mod forwarder;
/// Everything that happens to a frame is counted once.
pub mod counter;
/// The OpenFlow data plane: key, tables, actions, for a batch at a time.
pub mod pipeline;
/// The fields by which a frame is classified, packed into four words.
pub mod key;
/// Where in a frame the headers are that a pipeline matches and changes.
pub mod locate;
/// Which frames an entry is for.
pub mod matching;
/// An installed entry, as the control plane says it and as it is told about it.
pub mod flow;
/// The installed entries: found by key, changed by command, removed in time.
pub mod table;
/// Values that many entries have in common.
mod shared;
/// Ways to find the entry for a key.
pub mod classifier;
/// The structures that frames are looked up in, made for caches and for threads that share them.
pub mod fast;
/// A timing wheel: which of many entries is due next.
pub mod wheel;
/// What is done with a frame that an entry matched.
pub mod action;
/// What tables wrote to be done in the end.
pub mod action_set;
/// What an entry does: actions at once, actions at the end, and where to go on.
pub mod instruction;
/// Frames that go by several ways, by one that is chosen, or by the first that works.
pub mod group;
/// How fast frames come, and what is done with those too many.
pub mod meter;
/// Where decided frames go: the actions done in order, every loss counted.
pub mod egress;
/// Queues of a port, each with its rates.
pub mod queue;
/// Changing a field of a frame in place, with its checksums.
pub mod rewrite;
/// A learning bridge.
pub mod bridge;
/// What a bridge knows: behind which port each address was seen last.
pub mod mac_table;
/// A VLAN tagger.
pub mod tagger;
/// An IPv4 router.
pub mod router;
/// The longest prefix that holds an address, in one to three steps.
pub mod route_table;
/// What was looked up lately: a cache of destinations before the route table.
pub mod route_cache;
/// Whose hardware address is known, and which frames wait for one.
pub mod neighbor;
/// One word hashed.
pub mod hash;
/// A hash table of numbers with chains.
mod chains;
/// Random choices that repeat, for property tests.
#[cfg(test)]
mod dice;
