//! Ways to find the entry for a key: a hash table of whole keys, and for matches with open fields sets of
//! bits, hash tables for masks, the longest prefix, or a list in order of rank.
//!
//! They keep the numbers of entries, not the entries: a [`Line`](crate::fast::slab::Line) holds what the
//! path of a frame touches.

/// Exact matches: a hash table with one cache line for eight entries.
pub mod exact;
/// Matches with open fields, searched one after the other.
pub mod linear;
/// Many matches with open fields: a routing table, and tuples.
pub mod many;
/// Matches that make up a routing table.
pub mod routes;
/// Matches with open fields, in the structure that suits how many they are.
pub mod rest;
/// Hash tables that are replaced a few rows at a time.
pub mod store;
/// Matches with open fields, searched mask by mask.
pub mod tuple_space;

/// How matches with open fields are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Classifier {
    /// As suits those that there are.
    #[default]
    Automatic,
    /// One after the other in order of rank: the linear table of the study.
    Linear,
    /// By a hash for each mask that occurs.
    TupleSpace,
}

/// Whether an entry of some rank overlaps a match: some frame would match both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overlap {
    /// None does.
    No,
    /// If one does, the match covers it.
    Covered,
    /// Only the entries tell.
    Unknown,
    /// One does.
    Yes,
}

impl From<bool> for Overlap {
    fn from(overlaps: bool) -> Overlap {
        if overlaps { Overlap::Yes } else { Overlap::No }
    }
}

/// With more entries of a rank in lists, whether one of them overlaps a match is left to the caller.
const RANK_FEW: usize = 256;

/// No entry.
pub const NOWHERE: u32 = u32::MAX;

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

impl Verdict {
    const KIND: u32 = 30;

    /// As a number.
    #[inline]
    pub fn pack(self) -> u32 {
        match self {
            Verdict::Drop => 0,
            Verdict::Output(port) => 1 << Verdict::KIND | u32::from(port),
            Verdict::List => 2 << Verdict::KIND,
            Verdict::Program => 3 << Verdict::KIND,
        }
    }

    /// What [`Verdict::pack`] made a number of.
    #[inline]
    pub fn unpack(number: u32) -> Verdict {
        match number >> Verdict::KIND {
            0 => Verdict::Drop,
            1 => Verdict::Output(number as u16),
            2 => Verdict::List,
            _ => Verdict::Program,
        }
    }
}
