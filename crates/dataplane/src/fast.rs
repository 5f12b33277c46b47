//! Lookup structures designed for CPU caches and for concurrent readers.
//!
//! One thread changes them while any number of others look up and never wait. Shared state is
//! atomic, an entry is written before it can be found, and a slot is reused only after every reader
//! has released it. This is the only part of the crate that permits `unsafe`.

pub mod versioned;
pub mod bits;
pub mod buckets;
pub mod epoch;
pub mod prefilter;
pub mod memory;
pub mod prefetch;
pub mod rcu_cell;
pub mod trie;
mod sync;
pub mod thread_counters;
pub mod slab;
pub mod verdict;
