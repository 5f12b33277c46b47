//! The structures that frames are looked up in, made for caches and for threads that share them.
//!
//! One thread changes them, any number of others look things up meanwhile and never wait: what is
//! shared is atomic, an entry is written before it can be found, and a place is not used again before
//! every reader has let go of it. This is the only part of the crate in which `unsafe` is allowed.

/// What entries did before they were changed, for who does not see the change yet.
pub mod aside;
/// Sets of matches, a bit for each, found half a byte of the key at a time.
pub mod bits;
/// Which entry has a hash: buckets of one cache line.
pub mod buckets;
/// When nobody can still be looking at what was taken away.
pub mod epoch;
/// Which groups of matches a key may meet, by parts of it alone.
pub mod sieve;
/// Zeroed memory that is not touched before it is used.
pub mod memory;
/// Telling the processor what will be read.
pub mod prefetch;
/// One value that a writer replaces and readers hold on to.
pub mod published;
/// The entry of the longest prefix that holds an address.
pub mod trie;
/// What a model can stand in for.
mod sync;
/// What one more reader counts.
pub mod tally;
/// What the path of a frame touches of each entry: one cache line.
pub mod slab;
