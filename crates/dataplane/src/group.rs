//! Groups: all, select, indirect and fast failover.
//!
//! Source: OpenFlow Switch Specification 1.3.5, sections 5.6 (group table), 6.5 (group
//! modification) and 7.3.4.2; 1.5.1, section 7.3.4.3 (inserting and removing single buckets). A
//! bucket's actions execute as an action set ([`crate::action_set`]) on its own copy of the frame.
//! The liveness of buckets depends on ports and on other groups ([`live`]). A select group chooses
//! a bucket by the frame's flow and the buckets' weights ([`select`]).
//!
//! Invariant: a group refers only to existing groups, never to itself through others, and through
//! at most [`CHAIN_MAX`] groups in a chain.

use std::sync::Arc;

use packet::frame::PortNo;
use packet::time::Nanos;
use shared::Shared;

use crate::action::Actions;
use crate::counter::{SharedTraffic, Traffic};

mod chain;
mod change;
pub mod flow;
mod live;
pub mod select;

pub use change::GroupChange;
use live::Live;

/// Number of a group.
pub type GroupNo = u32;
/// Number of a bucket in its group.
pub type BucketNo = u32;

/// Highest number of a group.
pub const GROUP_NO_MAX: GroupNo = 0xffff_ff00;
/// All groups, in commands and requests.
pub const GROUPS_ALL: GroupNo = 0xffff_fffc;
/// Highest number of a bucket.
pub const BUCKET_NO_MAX: BucketNo = 0xffff_ff00;
/// Maximum length of a chain of groups.
pub const CHAIN_MAX: usize = 16;

/// Limits of a group table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    /// Maximum number of groups.
    pub groups_max: usize,
    /// Maximum number of buckets in all groups.
    pub buckets_max: usize,
    /// Maximum number of buckets in a group.
    pub group_buckets_max: usize,
}

impl Default for GroupLimits {
    fn default() -> Self {
        GroupLimits { groups_max: 4096, buckets_max: 65_536, group_buckets_max: 1024 }
    }
}

/// Type of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// Sends the frame to every bucket.
    All,
    /// Sends the frame to one live bucket, chosen by the frame's flow in proportion to the weights.
    Select,
    /// Sends the frame to its only bucket.
    Indirect,
    /// Sends the frame to the first live bucket.
    FastFailover,
}

/// Description of a group, as requested by the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    /// The group number.
    pub number: GroupNo,
    /// The group type.
    pub kind: GroupKind,
    /// The buckets, in order.
    pub buckets: Vec<BucketSpec>,
}

/// Description of a bucket, as requested by the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketSpec {
    /// The bucket number in the group; its index if the control plane assigns none.
    pub id: BucketNo,
    /// Share of the flows in a select group. Zero means none; other groups require zero.
    pub weight: u16,
    /// The bucket is live while this port is live.
    pub watch_port: Option<PortNo>,
    /// The bucket is live while this group is live.
    pub watch_group: Option<GroupNo>,
    /// The actions, in any order.
    pub actions: Actions,
    /// The `max_len` of each output to other ports than the controller, as sent. Empty if all are
    /// zero. Frames do not depend on it; group descriptions report it.
    pub output_bytes_max: Arc<[u16]>,
}

impl BucketSpec {
    /// Creates a bucket without watch port and watch group.
    pub fn new(id: BucketNo, weight: u16, actions: &[crate::action::Action]) -> BucketSpec {
        let actions = actions.into();
        let output_bytes_max = Arc::default();
        BucketSpec { id, weight, watch_port: None, watch_group: None, actions, output_bytes_max }
    }
}

/// Buckets of a group that a command applies to, or position of new buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketPlace {
    /// The first bucket; new buckets go before it.
    First,
    /// The last bucket; new buckets go after it.
    Last,
    /// All buckets; not a position for new buckets.
    All,
    /// The bucket with this number; new buckets go after it.
    Id(BucketNo),
}

/// A group and its counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRecord {
    /// The group's description.
    pub spec: GroupSpec,
    /// Frames and bytes sent to the group.
    pub traffic: Traffic,
    /// Frames and bytes sent to each bucket.
    pub buckets: Vec<Traffic>,
    /// Number of groups that refer to it. The pipeline counts references of flow entries.
    pub references: usize,
    /// Time since the group was added.
    pub age: Nanos,
}

/// A group as of one moment, to read it in several steps. Later commands do not change it. Its
/// counters continue until a command replaces the group.
#[derive(Debug, Clone)]
pub struct GroupView {
    number: GroupNo,
    group: Arc<Group>,
}

/// Error of a group command. The table returns the errors that depend on its contents; protocol
/// decoders return the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupError {
    /// A group with this number exists already.
    GroupExists(GroupNo),
    /// The group number is invalid, or the buckets do not fit the type. Only select groups have
    /// weights. Buckets of fast failover groups need a watch port or watch group. An indirect group
    /// has exactly one bucket.
    InvalidGroup(GroupNo),
    /// The table is full; this is its capacity.
    OutOfGroups(usize),
    /// A group, or all groups together, would have more buckets than this.
    OutOfBuckets(usize),
    /// A chain of groups would exceed [`CHAIN_MAX`].
    ChainTooLong(usize),
    /// The group would refer to itself.
    Loop(GroupNo),
    /// No group has this number.
    UnknownGroup(GroupNo),
    /// Another group refers to this group, so it cannot be deleted.
    ChainedGroup(GroupNo),
    /// The group type is unknown.
    BadType(u8),
    /// The command is unknown.
    BadCommand(u16),
    /// The bucket number or position is invalid.
    BadBucket(BucketNo),
    /// A bucket watches a port that does not exist.
    BadWatchPort(PortNo),
    /// A bucket watches a group that does not exist.
    BadWatchGroup(GroupNo),
    /// The group has no bucket with this number, or none at all.
    UnknownBucket(Option<BucketNo>),
    /// The group has a bucket with this number already.
    BucketExists(BucketNo),
    /// A bucket sends to a group that does not exist.
    BadOutGroup(GroupNo),
}

/// The groups, by number. A clone is cheap, regardless of the number of groups; shared groups have
/// common counters.
#[derive(Debug)]
pub struct GroupTable {
    limits: GroupLimits,
    groups: Shared<GroupNo, Arc<Group>>,
    /// Number of groups that refer to each referenced group.
    referrers: Shared<GroupNo, usize>,
    /// Number of buckets in all groups.
    buckets: usize,
    /// The ports and their liveness.
    ports: Vec<(PortNo, bool)>,
    /// Number of changes that may have affected liveness.
    changes: u64,
    /// Live buckets of groups that frames were sent to.
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
    /// Groups that this group refers to, each once.
    targets: Vec<GroupNo>,
    traffic: SharedTraffic,
    added_at: Nanos,
}

#[derive(Debug, Clone)]
struct Bucket {
    spec: BucketSpec,
    /// The actions in execution order.
    set: Actions,
    /// Hash of the actions, made unique within the group.
    identity: u64,
    traffic: SharedTraffic,
}

/// Buckets chosen for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// The group does not exist.
    NoGroup,
    /// No eligible bucket is live.
    None,
    /// The bucket with this index.
    One(usize),
    /// All buckets; this is their number.
    All(usize),
}

impl GroupTable {
    /// Creates an empty table with these ports, which are live. `seed` is a secret for the choice
    /// of buckets.
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

    /// Returns the limits.
    pub fn limits(&self) -> GroupLimits {
        self.limits
    }

    /// Returns the number of groups.
    pub fn count(&self) -> usize {
        self.groups.len()
    }

    /// Whether a group with this number exists.
    pub fn contains(&self, number: GroupNo) -> bool {
        self.groups.contains_key(&number)
    }

    /// Returns the group with this number, or all with [`GROUPS_ALL`], ordered by number.
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

    /// Returns the first group with a number from `from` on.
    pub fn next(&self, from: GroupNo) -> Option<GroupView> {
        let (number, group) = self.groups.range(from..).next()?;
        Some(GroupView { number: *number, group: Arc::clone(group) })
    }

    /// Chooses the buckets for a frame, and counts the frame in the group.
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

    /// Returns a bucket's actions for a frame, and counts the frame in the bucket.
    pub fn open(&mut self, number: GroupNo, place: usize, bytes: usize) -> Option<Actions> {
        let bucket = self.groups.get(&number)?.buckets.get(place)?;
        bucket.traffic.add(bytes);
        Some(bucket.set.clone())
    }

    /// Copies the liveness of the ports from another table.
    pub(crate) fn take_ports(&mut self, other: &GroupTable) {
        if self.ports != other.ports {
            self.ports.clone_from(&other.ports);
            self.changes += 1;
        }
    }

    /// Frees groups and buckets, one step each, except those that clones share. Returns whether
    /// nothing is left.
    pub(crate) fn free_some(&mut self, budget: &mut usize) -> bool {
        let freed = |group: &Arc<Group>| match Arc::strong_count(group) {
            1 => group.buckets.len(),
            _ => 0,
        };
        self.groups.clear_some(freed, budget)
            && self.referrers.clear_some(|_| 0, budget)
            && self.live.clear_some(|_| 0, budget)
    }

    /// Returns the number of groups that refer to a group.
    pub fn count_referrers(&self, number: GroupNo) -> usize {
        self.referrers.get(&number).copied().unwrap_or(0)
    }
}

impl GroupView {
    /// Returns the group number.
    pub fn number(&self) -> GroupNo {
        self.number
    }

    /// Returns the group type.
    pub fn kind(&self) -> GroupKind {
        self.group.kind
    }

    /// Returns frames and bytes sent to the group.
    pub fn traffic(&self) -> Traffic {
        self.group.traffic.get()
    }

    /// Returns the time since the group was added.
    pub fn age(&self, now: Nanos) -> Nanos {
        now.since(self.group.added_at)
    }

    /// Returns the number of buckets.
    pub fn count_buckets(&self) -> usize {
        self.group.buckets.len()
    }

    /// Returns the bucket with this index, and the frames and bytes sent to it.
    pub fn bucket(&self, place: usize) -> Option<(&BucketSpec, Traffic)> {
        self.group.buckets.get(place).map(|bucket| (&bucket.spec, bucket.traffic.get()))
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
            GroupError::GroupExists(number) => write!(f, "group {number} exists already"),
            GroupError::InvalidGroup(number) => {
                write!(f, "group {number}: invalid number, or invalid buckets for its type")
            }
            GroupError::OutOfGroups(max) => {
                write!(f, "the group table is full: at most {max} groups")
            }
            GroupError::OutOfBuckets(max) => write!(f, "too many buckets: at most {max}"),
            GroupError::ChainTooLong(max) => {
                write!(f, "the chain of groups is too long: at most {max}")
            }
            GroupError::Loop(number) => write!(f, "group {number} would refer to itself"),
            GroupError::UnknownGroup(number) => write!(f, "there is no group {number}"),
            GroupError::ChainedGroup(number) => write!(f, "another group refers to group {number}"),
            GroupError::BadType(kind) => write!(f, "invalid group type {kind}"),
            GroupError::BadCommand(command) => {
                write!(f, "invalid group command {command}")
            }
            GroupError::BadBucket(id) => write!(f, "invalid bucket ID {id:#x}"),
            GroupError::BadWatchPort(port) => write!(f, "there is no port {port} to watch"),
            GroupError::BadWatchGroup(number) => {
                write!(f, "there is no group {number} to watch")
            }
            GroupError::UnknownBucket(Some(id)) => write!(f, "the group has no bucket {id}"),
            GroupError::UnknownBucket(None) => write!(f, "the group has no buckets"),
            GroupError::BucketExists(id) => write!(f, "bucket {id} exists already"),
            GroupError::BadOutGroup(number) => write!(f, "there is no group {number} to send to"),
        }
    }
}

impl std::error::Error for GroupError {}

#[cfg(test)]
mod tests;
