//! Ways to find the entry for a key: a hash table of whole keys, and for matches with open fields a
//! list in order of rank or a hash table for each mask.
//!
//! Both keep the numbers of entries, not the entries: an [`Entry`] holds what the path of a frame
//! touches, in one cache line, and [`crate::table`] owns them all.

/// Exact matches: a hash table with one cache line for eight entries.
pub mod exact;
/// Matches with open fields, searched one after the other.
pub mod linear;
/// Whichever of the two ways a table was made with.
pub mod rest;
/// Matches with open fields, searched mask by mask.
pub mod tuple_space;

use packet::time::Nanos;

use crate::flow::Part;
use crate::key::Key;

/// How matches with open fields are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Classifier {
    /// One after the other in order of rank: the linear table of the study.
    #[default]
    Linear,
    /// By a hash for each mask that occurs.
    TupleSpace,
}

/// No entry.
pub const NOWHERE: u32 = u32::MAX;

/// What the path of a frame reads and writes of an entry: one cache line.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Entry {
    /// The key of an exact match; the value of a match with open fields.
    pub key: Key,
    /// Frames that matched.
    pub frames: u64,
    /// Bytes of those, without frame check sequence.
    pub bytes: u64,
    /// When a frame last matched, or when the entry was installed.
    pub last_match: Nanos,
    /// What its list of actions comes to.
    pub verdict: Verdict,
    /// The part of its table that it is in.
    pub part: Part,
}

/// What a list of actions comes to: the two common cases need no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No action: drop.
    Drop,
    /// One action: send it, unchanged, out of this port.
    Output(u16),
    /// Go through the list of actions; there are no other instructions.
    List,
    /// Follow the instructions.
    Program,
}
