//! Flow entries as the control plane requests them and as statistics report them.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.1, 3.6 and 4.6; 1.4.1, sections 5.2,
//! 5.5, 6.4, 7.3.4.1 and 7.4.2. These types are plain values; the tables are in [`crate::table`].

use std::sync::Arc;

use packet::field::FieldSet;
use packet::time::Nanos;

use crate::action::Action;
use crate::instruction::Instructions;
use crate::matching::Match;

/// Rank of an exact match if exact matches go first (OpenFlow 1.0): above all priorities.
pub const RANK_EXACT: u32 = 1 << 16;

/// Returns the rank of a match if exact matches go first, as in OpenFlow 1.0. In later versions the
/// rank is the priority.
pub fn rank_exact_first(matching: &Match, priority: u16) -> u32 {
    if matching.is_exact() { RANK_EXACT } else { u32::from(priority) }
}

/// Origin of a change: copied to its events and not interpreted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The connection.
    pub owner: u32,
    /// The transaction identifier of the message.
    pub xid: u32,
}

/// Details of a requested match that do not affect matching but that statistics repeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MatchDetails {
    /// The fields that the match named.
    pub fields: FieldSet,
    /// The upper bytes of a 16-bit ICMP type and code (OpenFlow 1.0 and 1.1), which no frame has.
    pub icmp_upper: [u8; 2],
}

impl From<FieldSet> for MatchDetails {
    fn from(fields: FieldSet) -> MatchDetails {
        MatchDetails { fields, icmp_upper: [0; 2] }
    }
}

/// A request to install or modify an entry.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    /// The table of the entry.
    pub table: u8,
    /// The frames that the entry matches.
    pub matching: Match,
    /// The fields of the match as sent; [`FlowRecord::named`] returns them.
    pub named: MatchDetails,
    /// The priority as sent.
    pub priority: u16,
    /// Precedence among the table's entries, highest first: [`rank_exact_first`], or the priority.
    /// No two entries of a table have the same match and rank.
    pub rank: u32,
    /// Opaque number of the control plane.
    pub cookie: u64,
    /// Removes the entry after this time without a match; zero means never.
    pub idle_timeout: Nanos,
    /// Removes the entry at this age; zero means never.
    pub hard_timeout: Nanos,
    /// Importance: less important entries are evicted first.
    pub importance: u16,
    /// Flags.
    pub flags: FlowFlags,
    /// Instructions for the frames; none means to drop them.
    pub instructions: Arc<Instructions>,
    /// Origin of the request.
    pub source: Source,
}

/// Flags of an entry, or of a request to add it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FlowFlags {
    /// Notify the control plane when the entry is removed.
    pub notify_removed: bool,
    /// Reject the entry if one of the same rank could match the same frame.
    pub check_overlap: bool,
    /// Reset the counters if the entry is modified or replaces an identical one. Otherwise, the
    /// counters of the replaced entry continue.
    pub reset_counts: bool,
    /// Do not count frames: the counter is reported as [`NOT_COUNTED`].
    pub no_frame_counts: bool,
    /// Do not count bytes: the counter is reported as [`NOT_COUNTED`].
    pub no_byte_counts: bool,
    /// This is a table-miss entry: its packet-ins have the reason
    /// [`PacketInReason::NoMatch`](crate::forwarder::PacketInReason::NoMatch).
    pub miss: bool,
}

/// Reported value of a disabled counter.
pub const NOT_COUNTED: u64 = u64::MAX;

impl FlowSpec {
    /// Creates an entry of table 0 with an apply-actions instruction, with rank `priority` and
    /// without timeouts, cookie or flags.
    pub fn new(matching: Match, priority: u16, actions: &[Action]) -> FlowSpec {
        FlowSpec::doing(matching, priority, Instructions::apply(actions))
    }

    /// Creates an entry of table 0 with these instructions, with rank `priority` and without
    /// timeouts, cookie or flags.
    pub fn doing(matching: Match, priority: u16, instructions: Instructions) -> FlowSpec {
        FlowSpec {
            table: 0,
            matching,
            named: matching.fields_asked().into(),
            priority,
            rank: priority.into(),
            cookie: 0,
            idle_timeout: Nanos::ZERO,
            hard_timeout: Nanos::ZERO,
            importance: 0,
            flags: FlowFlags::default(),
            instructions: instructions.into(),
            source: Source::default(),
        }
    }

    /// Sets the rank by the rules of OpenFlow 1.0: an exact match precedes every priority.
    #[must_use]
    pub fn exact_first(mut self) -> FlowSpec {
        self.rank = rank_exact_first(&self.matching, self.priority);
        self
    }
}

/// Part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The hash table of exact matches.
    Exact,
    /// Wildcard matches, and exact matches that share their key with another.
    Wildcard,
}

/// An installed entry and its counters at one moment.
#[derive(Debug, Clone)]
pub struct FlowRecord {
    /// The entry's slot; an iteration continues at `place + 1`.
    pub place: usize,
    /// The table of the entry.
    pub table: u8,
    /// The part of that table.
    pub part: Part,
    /// The frames that the entry matches.
    pub matching: Match,
    /// The fields of the match as sent.
    pub named: MatchDetails,
    /// The priority as sent.
    pub priority: u16,
    /// Precedence among the table's entries.
    pub rank: u32,
    /// Opaque number of the control plane.
    pub cookie: u64,
    /// Idle timeout; zero means none.
    pub idle_timeout: Nanos,
    /// Hard timeout; zero means none.
    pub hard_timeout: Nanos,
    /// Importance for eviction.
    pub importance: u16,
    /// Flags at the time of addition.
    pub flags: FlowFlags,
    /// Instructions.
    pub instructions: Arc<Instructions>,
    /// Number of matched frames, or [`NOT_COUNTED`].
    pub frames: u64,
    /// Number of matched bytes without frame check sequence, or [`NOT_COUNTED`].
    pub bytes: u64,
    /// Time since the installation.
    pub age: Nanos,
    /// Time since the last match, or since the installation if no frame has matched.
    pub idle: Nanos,
}

/// Filter of a dump, a modification or a deletion.
#[derive(Debug, Clone)]
pub struct FlowFilter {
    /// Only entries in this table.
    pub table: Option<u8>,
    /// Only entries in this part of a table.
    pub part: Option<Part>,
    /// Only entries whose match this one covers.
    pub matching: Match,
    /// Only the entry with exactly this match and this rank, instead of all entries that the match
    /// covers.
    pub strict_rank: Option<u32>,
    /// Value and mask: only entries with these bits in their cookie.
    pub cookie: (u64, u64),
    /// Only entries with an action that sends frames to the same destination as this action.
    pub destination: Option<Action>,
    /// Only entries with an action that sends frames to this group.
    pub group: Option<u32>,
    /// Origin of the request.
    pub source: Source,
}

impl FlowFilter {
    /// All entries.
    pub const ALL: FlowFilter = FlowFilter {
        table: None,
        part: None,
        matching: Match::ANY,
        strict_rank: None,
        cookie: (0, 0),
        destination: None,
        group: None,
        source: Source { owner: 0, xid: 0 },
    };

    /// Selects the entries that `matching` covers.
    pub fn covered_by(matching: Match) -> FlowFilter {
        FlowFilter { matching, ..FlowFilter::ALL }
    }

    /// Selects the entries with this match and rank (see [`FlowSpec::rank`]), one in each table.
    pub fn strictly(matching: Match, rank: u32) -> FlowFilter {
        FlowFilter { matching, strict_rank: Some(rank), ..FlowFilter::ALL }
    }
}

/// Rules of a modify command, which differ between OpenFlow versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModifyRules {
    /// Add the entry if there is none to modify (1.0, and 1.1 if the request has no cookie mask).
    pub add: bool,
    /// Set the cookie (1.0).
    pub cookie: bool,
}

/// Sums over the entries that pass a filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Number of matched frames.
    pub frames: u64,
    /// Number of matched bytes without frame check sequence.
    pub bytes: u64,
    /// Number of entries.
    pub entries: usize,
}

/// Reason for the removal of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowRemovedReason {
    /// No frame matched during the idle timeout.
    IdleTimeout,
    /// The hard timeout expired.
    HardTimeout,
    /// The control plane deleted the entry.
    Deleted,
    /// The control plane deleted a group that the entry sends to.
    GroupDelete,
    /// The control plane deleted a meter that the entry uses.
    MeterDelete,
    /// Another entry took its place in a full table.
    Eviction,
}

/// Change of an entry, for flow monitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowChange {
    /// The entry was installed.
    Added,
    /// Its instructions or its cookie changed.
    Modified,
    /// It was removed.
    Removed(FlowRemovedReason),
}

/// Error of installing or modifying an entry. The tables are unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowError {
    /// The table is full.
    TableFull(u8),
    /// An entry of the same rank could match the same frame.
    Overlap,
    /// The table does not exist.
    NoSuchTable(u8),
    /// The goto-table instruction names a table that does not exist or does not come later.
    BadGoto(u8),
    /// An action refers to a group that does not exist.
    NoSuchGroup(u32),
    /// An instruction or action refers to a meter that does not exist.
    NoSuchMeter(u32),
}

impl std::fmt::Display for FlowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FlowError::TableFull(table) => write!(f, "table {table} is full"),
            FlowError::Overlap => write!(f, "an entry of the same priority overlaps"),
            FlowError::NoSuchTable(table) => write!(f, "there is no table {table}"),
            FlowError::BadGoto(table) => write!(f, "goto-table to table {table} is invalid"),
            FlowError::NoSuchGroup(group) => write!(f, "there is no group {group}"),
            FlowError::NoSuchMeter(meter) => write!(f, "there is no meter {meter}"),
        }
    }
}

impl std::error::Error for FlowError {}
