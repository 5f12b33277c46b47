//! An installed entry, as the control plane says it and as it is told about it.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.1, 3.6 and 4.6. These are plain
//! values; the table that holds them is [`crate::table`].

use packet::time::Nanos;

use crate::action::{Action, Actions};
use crate::matching::Match;

/// What the control plane asks to be installed, or to be changed.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    /// Frames that it is for.
    pub matching: Match,
    /// Rank among entries with open fields, higher first. An exact match goes before all of them,
    /// whatever this says.
    pub priority: u16,
    /// A number for the control plane's own use.
    pub cookie: u64,
    /// Remove the entry when no frame has matched for so long; zero for never.
    pub idle_timeout: Nanos,
    /// Remove the entry when it is so old; zero for never.
    pub hard_timeout: Nanos,
    /// Tell the control plane when the entry goes.
    pub notify_removed: bool,
    /// Refuse the entry if one of the same rank could match the same frame.
    pub check_overlap: bool,
    /// Whatever else the control plane wants to find again in [`FlowRecord`] (the wildcard bits
    /// as it had said them, for instance).
    pub note: u32,
    /// What to do with the frames; nothing means to drop them.
    pub actions: Actions,
}

impl FlowSpec {
    /// An entry without time-outs, cookie or flags.
    pub fn new(matching: Match, priority: u16, actions: &[Action]) -> FlowSpec {
        FlowSpec {
            matching,
            priority,
            cookie: 0,
            idle_timeout: Nanos::ZERO,
            hard_timeout: Nanos::ZERO,
            notify_removed: false,
            check_overlap: false,
            note: 0,
            actions: actions.into(),
        }
    }
}

/// Which of the two tables an entry is in. They are looked up in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TableId {
    /// The hash table of exact matches.
    Exact,
    /// The list of matches with open fields, searched in order of priority.
    Wildcard,
}

/// An installed entry and its counters at one moment.
#[derive(Debug, Clone)]
pub struct FlowRecord {
    /// Where a walk over the entries stands at this one; it goes on at `place + 1`.
    pub place: usize,
    /// The table that it is in.
    pub table: TableId,
    /// Frames that it is for.
    pub matching: Match,
    /// Its priority as it was given.
    pub priority: u16,
    /// The control plane's number.
    pub cookie: u64,
    /// Idle time-out, zero for never.
    pub idle_timeout: Nanos,
    /// Hard time-out, zero for never.
    pub hard_timeout: Nanos,
    /// Whether its removal is told.
    pub notify_removed: bool,
    /// The control plane's note.
    pub note: u32,
    /// What it does.
    pub actions: Actions,
    /// Frames that matched it.
    pub frames: u64,
    /// Bytes of those, without frame check sequence.
    pub bytes: u64,
    /// Time since it was installed.
    pub age: Nanos,
    /// Time since a frame last matched it (or since it was installed, if none has).
    pub idle: Nanos,
}

/// Entries that a dump, a modification or a deletion is about.
#[derive(Debug, Clone)]
pub struct FlowFilter {
    /// Entries for no other frames than these.
    pub matching: Match,
    /// Only the entry with this very match and this priority, not all those that it covers.
    pub strict_priority: Option<u16>,
    /// Only entries that send frames to the same place as this action does.
    pub destination: Option<Action>,
    /// Only entries in this table.
    pub table: Option<TableId>,
}

impl FlowFilter {
    /// All entries.
    pub const ALL: FlowFilter =
        FlowFilter { matching: Match::ANY, strict_priority: None, destination: None, table: None };

    /// The entries that `matching` covers.
    pub fn covered_by(matching: Match) -> FlowFilter {
        FlowFilter { matching, ..FlowFilter::ALL }
    }

    /// The entry with this match and priority.
    pub fn strictly(matching: Match, priority: u16) -> FlowFilter {
        FlowFilter { matching, strict_priority: Some(priority), ..FlowFilter::ALL }
    }
}

/// Sums over the entries that a filter lets through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Frames that matched them.
    pub frames: u64,
    /// Bytes of those, without frame check sequence.
    pub bytes: u64,
    /// Entries.
    pub entries: usize,
}

/// Why an entry went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowRemovedReason {
    /// No frame had matched for the idle time-out.
    IdleTimeout,
    /// The hard time-out was over.
    HardTimeout,
    /// The control plane deleted it.
    Deleted,
}

/// Why an entry was not installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowError {
    /// The table that it belongs to holds as many entries as it may.
    TableFull(TableId),
    /// An entry of the same rank could match the same frame.
    Overlap,
}

impl std::fmt::Display for FlowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FlowError::TableFull(TableId::Exact) => write!(f, "the table of exact matches is full"),
            FlowError::TableFull(TableId::Wildcard) => {
                write!(f, "the table of matches with open fields is full")
            }
            FlowError::Overlap => write!(f, "an entry of the same rank overlaps"),
        }
    }
}

impl std::error::Error for FlowError {}
