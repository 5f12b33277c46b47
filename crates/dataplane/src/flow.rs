//! An installed entry, as the control plane says it and as it is told about it.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 3.1, 3.6 and 4.6; 1.4.1, sections 5.2, 5.5,
//! 6.4, 7.3.4.1 and 7.4.2. These are plain values; the tables that hold them are in
//! [`crate::table`].

use std::sync::Arc;

use packet::field::FieldSet;
use packet::time::Nanos;

use crate::action::Action;
use crate::instruction::Instructions;
use crate::matching::Match;

/// The rank of an exact match where such go first (OpenFlow 1.0): above all priorities.
pub const RANK_EXACT: u32 = 1 << 16;

/// The rank of a match where exact ones go before all others, as in OpenFlow 1.0. Elsewhere the
/// rank is the priority.
pub fn rank_exact_first(matching: &Match, priority: u16) -> u32 {
    if matching.is_exact() { RANK_EXACT } else { u32::from(priority) }
}

/// Who ordered a change: passed through to the news of it and not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// The connection.
    pub owner: u32,
    /// The message.
    pub xid: u32,
}

/// What the control plane wrote into a match beyond what frames depend on; statistics repeat it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Named {
    /// The fields that it named.
    pub fields: FieldSet,
    /// The upper bytes of a 16-bit ICMP type and code (OpenFlow 1.0 and 1.1), which no frame has.
    pub icmp_upper: [u8; 2],
}

impl From<FieldSet> for Named {
    fn from(fields: FieldSet) -> Named {
        Named { fields, icmp_upper: [0; 2] }
    }
}

/// What the control plane asks to be installed, or to be changed.
#[derive(Debug, Clone)]
pub struct FlowSpec {
    /// The table that it is for.
    pub table: u8,
    /// Frames that it is for.
    pub matching: Match,
    /// The fields of the match as they were sent, to be found again in [`FlowRecord::named`].
    pub named: Named,
    /// The priority as it was said.
    pub priority: u16,
    /// Where it stands among the table's entries, higher first: [`rank_exact_first`], or the
    /// priority. Two entries of a table never have the same match and rank.
    pub rank: u32,
    /// A number for the control plane's own use.
    pub cookie: u64,
    /// Remove the entry when no frame has matched for so long; zero for never.
    pub idle_timeout: Nanos,
    /// Remove the entry when it is so old; zero for never.
    pub hard_timeout: Nanos,
    /// How much it matters: less important entries are evicted first.
    pub importance: u16,
    /// Flags.
    pub flags: FlowFlags,
    /// What to do with the frames; nothing means to drop them.
    pub instructions: Arc<Instructions>,
    /// Who asks for it.
    pub source: Source,
}

/// What is special about an entry, or about adding it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FlowFlags {
    /// Tell the control plane when the entry goes.
    pub notify_removed: bool,
    /// Refuse the entry if one of the same rank could match the same frame.
    pub check_overlap: bool,
    /// Set its counters to zero if it is changed or replaces one that is like it. Without, the
    /// entry that is like it hands its counters on.
    pub reset_counts: bool,
    /// Frames need not be counted: they are told as [`NOT_COUNTED`].
    pub no_frame_counts: bool,
    /// Bytes need not be counted: they are told as [`NOT_COUNTED`].
    pub no_byte_counts: bool,
    /// It is a table-miss entry: what it sends to the controller goes as
    /// [`PacketInReason::NoMatch`](crate::forwarder::PacketInReason::NoMatch).
    pub miss: bool,
}

/// What a counter says that is not kept.
pub const NOT_COUNTED: u64 = u64::MAX;

impl FlowSpec {
    /// An entry of table 0 that does these actions, of rank `priority`, without time-outs, cookie
    /// or flags.
    pub fn new(matching: Match, priority: u16, actions: &[Action]) -> FlowSpec {
        FlowSpec::doing(matching, priority, Instructions::apply(actions))
    }

    /// An entry of table 0 with these instructions, of rank `priority`, without time-outs, cookie
    /// or flags.
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

    /// The same as OpenFlow 1.0 has it: an exact match goes before every priority.
    #[must_use]
    pub fn exact_first(mut self) -> FlowSpec {
        self.rank = rank_exact_first(&self.matching, self.priority);
        self
    }
}

/// Which part of a table an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The hash table of exact matches.
    Exact,
    /// The matches with open fields, and exact ones that share their key with another.
    Wildcard,
}

/// An installed entry and its counters at one moment.
#[derive(Debug, Clone)]
pub struct FlowRecord {
    /// Where a walk over the entries stands at this one; it goes on at `place + 1`.
    pub place: usize,
    /// The table that it is in.
    pub table: u8,
    /// The part of that table.
    pub part: Part,
    /// Frames that it is for.
    pub matching: Match,
    /// The fields of the match as they were sent.
    pub named: Named,
    /// Its priority as it was given.
    pub priority: u16,
    /// Where it stands among the table's entries.
    pub rank: u32,
    /// The control plane's number.
    pub cookie: u64,
    /// Idle time-out, zero for never.
    pub idle_timeout: Nanos,
    /// Hard time-out, zero for never.
    pub hard_timeout: Nanos,
    /// How much it matters.
    pub importance: u16,
    /// Its flags, as they were when it was added.
    pub flags: FlowFlags,
    /// What it does.
    pub instructions: Arc<Instructions>,
    /// Frames that matched it, or [`NOT_COUNTED`].
    pub frames: u64,
    /// Bytes of those, without frame check sequence, or [`NOT_COUNTED`].
    pub bytes: u64,
    /// Time since it was installed.
    pub age: Nanos,
    /// Time since a frame last matched it (or since it was installed, if none has).
    pub idle: Nanos,
}

/// Entries that a dump, a modification or a deletion is about.
#[derive(Debug, Clone)]
pub struct FlowFilter {
    /// Only entries in this table.
    pub table: Option<u8>,
    /// Only entries in this part of a table.
    pub part: Option<Part>,
    /// Entries for no other frames than these.
    pub matching: Match,
    /// Only the entry with this very match and this rank, not all those that it covers.
    pub strict_rank: Option<u32>,
    /// Value and mask: only entries that have these bits in their cookie.
    pub cookie: (u64, u64),
    /// Only entries with an action that sends frames to the same place as this one does.
    pub destination: Option<Action>,
    /// Only entries with an action that sends frames to this group.
    pub group: Option<u32>,
    /// Who asks for it.
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

    /// The entries that `matching` covers.
    pub fn covered_by(matching: Match) -> FlowFilter {
        FlowFilter { matching, ..FlowFilter::ALL }
    }

    /// The entries with this match and rank (see [`FlowSpec::rank`]), one in each table.
    pub fn strictly(matching: Match, rank: u32) -> FlowFilter {
        FlowFilter { matching, strict_rank: Some(rank), ..FlowFilter::ALL }
    }
}

/// What changing entries does besides: the versions differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModifyRules {
    /// Install the entry if there is none to change (1.0, and 1.1 where no cookie was asked for).
    pub add: bool,
    /// Take over the cookie (1.0).
    pub cookie: bool,
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
    /// The control plane deleted a group that it sends to.
    GroupDelete,
    /// The control plane deleted a meter that it passes.
    MeterDelete,
    /// It made room for another.
    Eviction,
}

/// What happened to an entry, for who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowChange {
    /// It was installed.
    Added,
    /// It does something else now, or has another cookie.
    Modified,
    /// It is gone.
    Removed(FlowRemovedReason),
}

/// Why an entry was not installed or changed. Nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowError {
    /// The table has no room for it.
    TableFull(u8),
    /// An entry of the same rank could match the same frame.
    Overlap,
    /// There is no such table.
    NoSuchTable(u8),
    /// It goes on in a table that does not exist, or not after its own.
    BadGoto(u8),
    /// It sends frames to a group that does not exist.
    NoSuchGroup(u32),
    /// Its frames are to pass a meter that does not exist.
    NoSuchMeter(u32),
}

impl std::fmt::Display for FlowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FlowError::TableFull(table) => write!(f, "table {table} is full"),
            FlowError::Overlap => write!(f, "an entry of the same rank overlaps"),
            FlowError::NoSuchTable(table) => write!(f, "there is no table {table}"),
            FlowError::BadGoto(table) => write!(f, "it cannot go on in table {table}"),
            FlowError::NoSuchGroup(group) => write!(f, "there is no group {group}"),
            FlowError::NoSuchMeter(meter) => write!(f, "there is no meter {meter}"),
        }
    }
}

impl std::error::Error for FlowError {}
