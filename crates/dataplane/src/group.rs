//! Groups: frames sent to one go by all of its buckets, by one that is chosen, or by the first live.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.6 (group table), 6.5 (group modification)
//! and 7.3.4.2; 1.5.1, section 7.3.4.3 (single buckets inserted and removed). A bucket's actions
//! are done as an action set ([`crate::action_set`]) on a copy of the frame of its own. Which buckets
//! are live follows from ports and from other groups ([`live`]); which one a select group chooses,
//! from the frame's flow and the buckets' weights ([`select`]).
//!
//! Invariant: a group refers only to groups that exist, never through others to itself, and through
//! at most [`CHAIN_MAX`] groups one after the other.

use std::sync::Arc;

use packet::frame::PortNo;
use packet::time::Nanos;
use shared::Shared;

use crate::action::Actions;
use crate::counter::{SharedTraffic, Traffic};

/// What is checked before a group is taken, and how groups hang together.
mod chain;
/// Adding, changing and deleting groups and single buckets.
mod change;
/// The flow that a frame belongs to, as one word.
pub mod flow;
/// Which buckets and groups are live.
mod live;
/// Which bucket of several a flow goes by.
pub mod select;

pub use change::GroupChange;
use live::Live;

/// The number by which a group is known.
pub type GroupNo = u32;
/// The number by which a group knows a bucket.
pub type BucketNo = u32;

/// Highest number of a group.
pub const GROUP_NO_MAX: GroupNo = 0xffff_ff00;
/// All groups, in commands and questions.
pub const GROUPS_ALL: GroupNo = 0xffff_fffc;
/// Highest number of a bucket.
pub const BUCKET_NO_MAX: BucketNo = 0xffff_ff00;
/// Groups that a frame can go through one after the other.
pub const CHAIN_MAX: usize = 16;

/// How much a table of groups holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    /// Groups.
    pub groups_max: usize,
    /// Buckets of all groups together.
    pub buckets_max: usize,
    /// Buckets of one group.
    pub group_buckets_max: usize,
}

impl Default for GroupLimits {
    fn default() -> Self {
        GroupLimits { groups_max: 4096, buckets_max: 65_536, group_buckets_max: 1024 }
    }
}

/// By which of its buckets a group sends a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// By every one.
    All,
    /// By one that is live, chosen by the frame's flow, in proportion to the weights.
    Select,
    /// By the only one.
    Indirect,
    /// By the first that is live.
    FastFailover,
}

/// A group as the control plane describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its number.
    pub number: GroupNo,
    /// Which of its buckets are used.
    pub kind: GroupKind,
    /// The buckets, first to last.
    pub buckets: Vec<BucketSpec>,
}

/// A bucket as the control plane describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketSpec {
    /// Its number in the group; where the control plane gives none, its place.
    pub id: BucketNo,
    /// Its share of the flows in a select group; zero for none, and zero in all other groups.
    pub weight: u16,
    /// It is live while this port is.
    pub watch_port: Option<PortNo>,
    /// It is live while this group is.
    pub watch_group: Option<GroupNo>,
    /// Its actions, in any order.
    pub actions: Actions,
    /// The `max_len` of each output among them to other than the control plane, as sent; empty if
    /// all are zero. Frames do not depend on it: it is kept for group descriptions.
    pub output_bytes_max: Arc<[u16]>,
}

impl BucketSpec {
    /// A bucket that watches nothing.
    pub fn new(id: BucketNo, weight: u16, actions: &[crate::action::Action]) -> BucketSpec {
        let actions = actions.into();
        let output_bytes_max = Arc::default();
        BucketSpec { id, weight, watch_port: None, watch_group: None, actions, output_bytes_max }
    }
}

/// Which buckets of a group a command is about, or where it puts new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketPlace {
    /// The first one; new ones go before it.
    First,
    /// The last one; new ones go behind it.
    Last,
    /// Every one; new ones have no such place.
    All,
    /// The one with this number; new ones go behind it.
    Id(BucketNo),
}

/// A group and its counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRecord {
    /// The group as it was described.
    pub spec: GroupSpec,
    /// Frames and bytes that it was sent.
    pub traffic: Traffic,
    /// Frames and bytes that went by each bucket.
    pub buckets: Vec<Traffic>,
    /// How many groups send to it. Entries that do are the pipeline's to count.
    pub references: usize,
    /// Time since it was added.
    pub age: Nanos,
}

/// Why a command about groups is refused. The table gives those that depend on what it holds; the
/// others are for whoever translates a protocol into [`GroupSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupError {
    /// There is a group of this number already.
    GroupExists(GroupNo),
    /// No group can have this number, or its buckets do not suit its kind: a weight where nothing
    /// is chosen, nothing to watch for a fast failover, or not exactly one bucket for an indirect
    /// group.
    InvalidGroup(GroupNo),
    /// The table holds as many groups as it may.
    OutOfGroups(usize),
    /// A group, or all of them together, may not have more buckets than this.
    OutOfBuckets(usize),
    /// A frame would go through more groups than [`CHAIN_MAX`].
    ChainTooLong(usize),
    /// Frames would come back to the group.
    Loop(GroupNo),
    /// There is no group of this number.
    UnknownGroup(GroupNo),
    /// Another group refers to it, so that it cannot go.
    ChainedGroup(GroupNo),
    /// No group is of this type.
    BadType(u8),
    /// No command has this number.
    BadCommand(u16),
    /// A bucket cannot have this number, or there is no such place for it.
    BadBucket(BucketNo),
    /// A bucket watches a port that does not exist.
    BadWatchPort(PortNo),
    /// A bucket watches a group that does not exist.
    BadWatchGroup(GroupNo),
    /// The group has no bucket of this number, or none at all.
    UnknownBucket(Option<BucketNo>),
    /// The group has a bucket of this number already.
    BucketExists(BucketNo),
    /// A bucket sends frames to a group that does not exist.
    BadOutGroup(GroupNo),
}

/// The groups, by number. A clone costs little however many there are; it counts together what both have in common.
#[derive(Debug)]
pub struct GroupTable {
    limits: GroupLimits,
    groups: Shared<GroupNo, Arc<Group>>,
    /// How many groups refer to each one that any refers to.
    referrers: Shared<GroupNo, usize>,
    /// Buckets of all groups together.
    buckets: usize,
    /// The ports, and whether each is live.
    ports: Vec<(PortNo, bool)>,
    /// How often what is live may have changed.
    changes: u64,
    /// Which buckets are live, of groups that frames went by.
    live: Shared<GroupNo, Arc<Live>>,
    seed: u64,
}

impl Clone for GroupTable {
    fn clone(&self) -> GroupTable {
        GroupTable {
            limits: self.limits,
            groups: self.groups.clone(),
            referrers: self.referrers.clone(),
            buckets: self.buckets,
            ports: self.ports.clone(),
            changes: self.changes,
            live: Shared::new(),
            seed: self.seed,
        }
    }
}

#[derive(Debug)]
struct Group {
    kind: GroupKind,
    buckets: Vec<Bucket>,
    /// Groups that it refers to, each once.
    targets: Vec<GroupNo>,
    traffic: SharedTraffic,
    added_at: Nanos,
}

#[derive(Debug)]
struct Bucket {
    spec: BucketSpec,
    /// Its actions in the order in which they are done.
    set: Actions,
    /// What it does, as one word: buckets of one group differ in it.
    identity: u64,
    traffic: SharedTraffic,
}

/// Which buckets a frame goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// There is no such group.
    NoGroup,
    /// None of those that could be chosen is live.
    None,
    /// The one in this place.
    One(usize),
    /// All of so many.
    All(usize),
}

impl GroupTable {
    /// No groups yet, between these ports, which are live. `seed` is a secret that decides which
    /// flow goes by which bucket.
    pub fn new(ports: &[PortNo], limits: GroupLimits, seed: u64) -> GroupTable {
        GroupTable {
            limits,
            groups: Shared::new(),
            referrers: Shared::new(),
            buckets: 0,
            ports: ports.iter().map(|port| (*port, true)).collect(),
            changes: 0,
            live: Shared::new(),
            seed,
        }
    }

    /// How much fits.
    pub fn limits(&self) -> GroupLimits {
        self.limits
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is a group of this number.
    pub fn contains(&self, number: GroupNo) -> bool {
        self.groups.contains_key(&number)
    }

    /// The group of this number, or all for [`GROUPS_ALL`], in the order of their numbers.
    pub fn records(&self, number: GroupNo, now: Nanos) -> Vec<GroupRecord> {
        let record = |(number, group): (&GroupNo, &Arc<Group>)| {
            group.record(*number, self.count_referrers(*number), now)
        };
        match number {
            GROUPS_ALL => self.groups.iter().map(record).collect(),
            _ => {
                self.groups.get(&number).map(|group| record((&number, group))).into_iter().collect()
            }
        }
    }

    /// The first group whose number is not below `from`, and how many buckets it has.
    pub fn next(&self, from: GroupNo) -> Option<(GroupNo, usize)> {
        let next = self.groups.range(from..).next();
        next.map(|(number, group)| (*number, group.buckets.len()))
    }

    /// By which buckets a frame goes that is sent to a group, which counts it.
    pub fn choose(&mut self, number: GroupNo, bytes: &[u8]) -> Chosen {
        let Some(group) = self.groups.get(&number) else { return Chosen::NoGroup };
        group.traffic.add(bytes.len());
        let one = |place: Option<usize>| place.map_or(Chosen::None, Chosen::One);
        match group.kind {
            GroupKind::All if group.buckets.is_empty() => Chosen::None,
            GroupKind::All => Chosen::All(group.buckets.len()),
            GroupKind::Indirect => Chosen::One(0),
            GroupKind::FastFailover => one(self.live(number).and_then(Live::first)),
            GroupKind::Select => {
                self.live(number);
                let (groups, live) = (&self.groups, self.live.get(&number));
                let buckets = groups.get(&number).map_or(&[][..], |group| &group.buckets);
                let live = live.map(|live| live.places()).into_iter().flatten();
                let ranks = live.map(|at| (at, buckets[at].identity, buckets[at].spec.weight));
                one(select::choose(flow::word(bytes, self.seed), ranks))
            }
        }
    }

    /// What is done with a frame that goes by a bucket, which counts it.
    pub fn open(&mut self, number: GroupNo, place: usize, bytes: usize) -> Option<Actions> {
        let bucket = self.groups.get(&number)?.buckets.get(place)?;
        bucket.traffic.add(bytes);
        Some(bucket.set.clone())
    }

    /// Takes over which ports are live.
    pub(crate) fn take_ports(&mut self, other: &GroupTable) {
        if self.ports != other.ports {
            self.ports.clone_from(&other.ports);
            self.changes += 1;
        }
    }

    /// Frees what it holds, a step of the budget for each group and bucket, but for what clones hold too. Returns
    /// whether nothing is left.
    pub(crate) fn free_some(&mut self, budget: &mut usize) -> bool {
        let freed = |group: &Arc<Group>| match Arc::strong_count(group) {
            1 => group.buckets.len(),
            _ => 0,
        };
        self.groups.clear_some(freed, budget)
            && self.referrers.clear_some(|_| 0, budget)
            && self.live.clear_some(|_| 0, budget)
    }

    /// How many groups refer to one.
    fn count_referrers(&self, number: GroupNo) -> usize {
        self.referrers.get(&number).copied().unwrap_or(0)
    }
}

impl Group {
    fn record(&self, number: GroupNo, references: usize, now: Nanos) -> GroupRecord {
        let buckets = self.buckets.iter().map(|bucket| bucket.spec.clone()).collect();
        GroupRecord {
            spec: GroupSpec { number, kind: self.kind, buckets },
            traffic: self.traffic.get(),
            buckets: self.buckets.iter().map(|bucket| bucket.traffic.get()).collect(),
            references,
            age: now.since(self.added_at),
        }
    }
}

impl std::fmt::Display for GroupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GroupError::GroupExists(number) => write!(f, "there is a group {number} already"),
            GroupError::InvalidGroup(number) => {
                write!(
                    f,
                    "group {number}: no group has this number, or this kind and these buckets"
                )
            }
            GroupError::OutOfGroups(max) => write!(f, "the table holds {max} groups"),
            GroupError::OutOfBuckets(max) => write!(f, "there can be at most {max} buckets"),
            GroupError::ChainTooLong(max) => {
                write!(f, "a frame goes through at most {max} groups one after the other")
            }
            GroupError::Loop(number) => write!(f, "frames would come back to group {number}"),
            GroupError::UnknownGroup(number) => write!(f, "there is no group {number}"),
            GroupError::ChainedGroup(number) => write!(f, "another group sends to group {number}"),
            GroupError::BadType(kind) => write!(f, "no group is of type {kind}"),
            GroupError::BadCommand(command) => {
                write!(f, "no group command has the number {command}")
            }
            GroupError::BadBucket(id) => write!(f, "no bucket can have the number {id:#x}"),
            GroupError::BadWatchPort(port) => write!(f, "there is no port {port} to be watched"),
            GroupError::BadWatchGroup(number) => {
                write!(f, "there is no group {number} to be watched")
            }
            GroupError::UnknownBucket(Some(id)) => write!(f, "the group has no bucket {id}"),
            GroupError::UnknownBucket(None) => write!(f, "the group has no bucket"),
            GroupError::BucketExists(id) => write!(f, "the group has a bucket {id} already"),
            GroupError::BadOutGroup(number) => write!(f, "there is no group {number} to send to"),
        }
    }
}

impl std::error::Error for GroupError {}

#[cfg(test)]
mod tests;
