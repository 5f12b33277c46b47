//! Packet classifiers: a hash table of whole keys, and for wildcard matches bit sets, tuple space
//! search, longest prefixes, or a list in rank order.
//!
//! Classifiers store entry numbers, not entries: a [`Line`](crate::fast::slab::Line) holds the data
//! that the fast path needs.

pub mod exact;
pub mod linear;
pub mod wildcard_large;
pub mod routes;
pub mod wildcard;
pub mod store;
pub mod tuple_space;

/// Classifier for wildcard matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Classifier {
    /// Selected by the number and kind of the matches.
    #[default]
    Automatic,
    /// Linear search in rank order: the linear table of bianco2010.
    Linear,
    /// Tuple space search: a hash table for each mask.
    TupleSpace,
}

/// Whether an entry of some rank overlaps a match, so that a frame could match both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overlap {
    /// No entry overlaps.
    No,
    /// If an entry overlaps, the match covers it.
    Covered,
    /// Only a scan of the entries can decide.
    Unknown,
    /// An entry overlaps.
    Yes,
}

impl From<bool> for Overlap {
    fn from(overlaps: bool) -> Overlap {
        if overlaps { Overlap::Yes } else { Overlap::No }
    }
}

/// With more entries of a rank in lists, the caller must scan for overlaps.
const RANK_FEW: usize = 256;

/// Not a valid entry number.
pub const NO_ENTRY: u32 = u32::MAX;
