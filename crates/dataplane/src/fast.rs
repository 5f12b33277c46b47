//! Lookup structures designed for CPU caches and for concurrent readers.
//!
//! One thread changes them while any number of others look up and never wait. Shared state is
//! atomic, an entry is written before it can be found, and a slot is reused only after every reader
//! has released it. This is the only part of the crate that permits `unsafe`.

/// Previous actions of changed entries, for readers of the previous edition.
pub mod aside;
/// Bit sets of matches, indexed by the nibbles of the key.
pub mod bits;
/// Hash buckets of one cache line.
pub mod buckets;
/// Epoch-based reclamation.
pub mod epoch;
/// Determines from parts of a key which groups of matches it may meet.
pub mod sieve;
/// Zeroed memory that the system commits on first use.
pub mod memory;
/// Prefetch instructions.
pub mod prefetch;
/// A value that a writer replaces while readers keep the old one.
pub mod published;
/// Longest-prefix match.
pub mod trie;
/// Atomics that a model checker can replace.
mod sync;
/// Counters of an additional reader.
pub mod tally;
/// Fast path data of each entry: one cache line.
pub mod slab;
