//! Groups: buckets of actions, of which a frame gets all, one, or the first that is live.
//!
//! Source: OpenFlow 1.1.0 section A.3.4.2 (`ofp_group_mod`, `ofp_bucket`), 1.5.1 section 7.3.4.3.
//! Buckets have numbers from 1.5 on; before, they are read with the number of their place and
//! written without it.

use std::fmt;

use packet::time::Nanos;

use super::action::{Action, Experimenter};
use super::bits::bits;
use super::flow::show_actions;
use super::kinds::ActionKinds;
use super::port::stats::Counter;
use super::port::{PortNo, ShowPort, reserved};
use crate::version::NO;

/// The greatest number that a group can have.
pub const GROUP_MAX: u32 = 0xffff_ff00;
/// Stands for all groups when deleting.
pub const GROUP_ALL: u32 = 0xffff_fffc;
/// Stands for any group as a filter, and for none to watch.
pub const GROUP_ANY: u32 = 0xffff_ffff;

/// The greatest number that a bucket can have.
pub const BUCKET_MAX: u32 = 0xffff_ff00;
/// Stands for the place before the first bucket, or for the first.
pub const BUCKET_FIRST: u32 = 0xffff_fffd;
/// Stands for the place behind the last bucket, or for the last.
pub const BUCKET_LAST: u32 = 0xffff_fffe;
/// Stands for all buckets when removing, and for none where no bucket is meant.
pub const BUCKET_ALL: u32 = 0xffff_ffff;

/// What to do with a group (`ofp_group_mod_command`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GroupModCommand {
    /// Adds one that is not there yet.
    #[default]
    Add,
    /// Changes one that is there.
    Modify,
    /// Deletes one, or all; it is no error if it is not there.
    Delete,
    /// Adds buckets to one that is there (1.5).
    InsertBucket,
    /// Removes one bucket or all (1.5).
    RemoveBucket,
}

/// Which buckets a frame gets (`ofp_group_type`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// All, each with a copy.
    #[default]
    All,
    /// One, chosen by weight.
    Select,
    /// The only one.
    Indirect,
    /// The first that is live.
    FastFailover,
}

/// Actions that a frame may get, done as an action set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Its number in the group (1.5).
    pub id: u32,
    /// Its share, in [`GroupKind::Select`]; 0 elsewhere.
    pub weight: u16,
    /// Live while this port is, in [`GroupKind::FastFailover`]; [`reserved::NONE`] elsewhere.
    pub watch_port: PortNo,
    /// Live while this group is, in [`GroupKind::FastFailover`]; [`GROUP_ANY`] elsewhere.
    pub watch_group: u32,
    /// What is done.
    pub actions: Vec<Action>,
    /// What somebody else defines (1.5).
    pub experimenter: Vec<Experimenter>,
}

/// Adds, changes or deletes a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMod {
    /// What to do.
    pub command: GroupModCommand,
    /// Which buckets a frame gets.
    pub kind: GroupKind,
    /// The group's number, or [`GROUP_ALL`] when deleting.
    pub group: u32,
    /// Where buckets are inserted, or which are removed (1.5); [`BUCKET_ALL`] in other commands.
    pub command_bucket: u32,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// What somebody else defines (1.5).
    pub experimenter: Vec<Experimenter>,
}

/// A group as it is installed (`ofp_group_desc`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupDescription {
    /// Which buckets a frame gets.
    pub kind: GroupKind,
    /// Its number.
    pub group: u32,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// What somebody else defines (1.5).
    pub experimenter: Vec<Experimenter>,
}

/// A group's counters (`ofp_group_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// Its number.
    pub group: u32,
    /// How many entries and groups send to it.
    pub references: u32,
    /// Frames that it dealt with, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// How long it has been there; told from 1.3 on, and read as 0 before.
    pub age: Nanos,
    /// The counters of each bucket, in order.
    pub buckets: Vec<BucketCounters>,
}

/// A bucket's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketCounters {
    /// Frames that it got.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
}

bits! {
    /// A set of kinds of groups.
    GroupKinds {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// [`GroupKind::All`].
        EVERY_BUCKET "all"                           [NO,  0,  0,  0,  0,  0];
        /// [`GroupKind::Select`].
        SELECT "select"                              [NO,  1,  1,  1,  1,  1];
        /// [`GroupKind::Indirect`].
        INDIRECT "indirect"                          [NO,  2,  2,  2,  2,  2];
        /// [`GroupKind::FastFailover`].
        FAST_FAILOVER "fast_failover"                [NO,  3,  3,  3,  3,  3];
    }
}

bits! {
    /// What groups can do (`ofp_group_capabilities`).
    GroupCapabilities {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Weights of select groups.
        SELECT_WEIGHT "select_weight"                [NO, NO,  0,  0,  0,  0];
        /// Liveness of select groups.
        SELECT_LIVENESS "select_liveness"            [NO, NO,  1,  1,  1,  1];
        /// Groups that send to groups.
        CHAINING "chaining"                          [NO, NO,  2,  2,  2,  2];
        /// Loops of such groups are refused.
        CHAINING_CHECKS "chaining_checks"            [NO, NO,  3,  3,  3,  3];
    }
}

/// What groups a switch can have (`ofp_group_features`, 1.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupFeatures {
    /// Which kinds.
    pub kinds: GroupKinds,
    /// What they can do.
    pub capabilities: GroupCapabilities,
    /// How many of each kind, in the order of [`GroupKind::ALL`].
    pub groups_max: [u32; 4],
    /// Which actions in each kind.
    pub actions: [ActionKinds; 4],
}

impl GroupKind {
    /// All kinds, in the order of their codes, which are the same in all versions.
    pub const ALL: [GroupKind; 4] =
        [GroupKind::All, GroupKind::Select, GroupKind::Indirect, GroupKind::FastFailover];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            GroupKind::All => "all",
            GroupKind::Select => "select",
            GroupKind::Indirect => "indirect",
            GroupKind::FastFailover => "fast_failover",
        }
    }
}

impl Default for Bucket {
    fn default() -> Self {
        Bucket {
            id: 0,
            weight: 0,
            watch_port: reserved::NONE,
            watch_group: GROUP_ANY,
            actions: Vec::new(),
            experimenter: Vec::new(),
        }
    }
}

impl Default for GroupMod {
    fn default() -> Self {
        GroupMod {
            command: GroupModCommand::Add,
            kind: GroupKind::All,
            group: 0,
            command_bucket: BUCKET_ALL,
            buckets: Vec::new(),
            experimenter: Vec::new(),
        }
    }
}

struct ShowGroup(u32);

impl fmt::Display for ShowGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            GROUP_ALL => f.write_str("all"),
            GROUP_ANY => f.write_str("any"),
            number => write!(f, "{number}"),
        }
    }
}

fn show_experimenters(f: &mut fmt::Formatter<'_>, properties: &[Experimenter]) -> fmt::Result {
    properties.iter().try_for_each(|property| write!(f, " experimenter={property}"))
}

fn show_buckets(f: &mut fmt::Formatter<'_>, buckets: &[Bucket]) -> fmt::Result {
    buckets.iter().try_for_each(|bucket| write!(f, "\n    bucket {bucket}"))
}

impl fmt::Display for GroupModCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GroupModCommand::Add => "add",
            GroupModCommand::Modify => "modify",
            GroupModCommand::Delete => "delete",
            GroupModCommand::InsertBucket => "insert_bucket",
            GroupModCommand::RemoveBucket => "remove_bucket",
        })
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} weight={}", self.id, self.weight)?;
        if self.watch_port != reserved::NONE {
            write!(f, " watch_port={}", ShowPort(self.watch_port))?;
        }
        if self.watch_group != GROUP_ANY {
            write!(f, " watch_group={}", self.watch_group)?;
        }
        f.write_str(" actions=")?;
        show_actions(f, &self.actions)?;
        show_experimenters(f, &self.experimenter)
    }
}

impl fmt::Display for GroupMod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} group={} {}", self.command, ShowGroup(self.group), self.kind.name())?;
        if self.command_bucket != BUCKET_ALL {
            write!(f, " at={:#x}", self.command_bucket)?;
        }
        show_experimenters(f, &self.experimenter)?;
        show_buckets(f, &self.buckets)
    }
}

impl fmt::Display for GroupDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group={} {}", self.group, self.kind.name())?;
        show_experimenters(f, &self.experimenter)?;
        show_buckets(f, &self.buckets)
    }
}

impl fmt::Display for GroupStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group={} references={}", self.group, self.references)?;
        write!(f, " packets={} bytes={}", Counter(self.packets), Counter(self.bytes))?;
        write!(f, " age={}ns", self.age.0)?;
        self.buckets.iter().try_for_each(|bucket| {
            let (packets, bytes) = (Counter(bucket.packets), Counter(bucket.bytes));
            write!(f, "\n    bucket packets={packets} bytes={bytes}")
        })
    }
}

impl fmt::Display for GroupFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kinds={} capabilities={}", self.kinds, self.capabilities)?;
        for (place, kind) in GroupKind::ALL.into_iter().enumerate() {
            let (most, actions) = (self.groups_max[place], self.actions[place]);
            write!(f, "\n    {} groups_max={most} actions={actions}", kind.name())?;
        }
        Ok(())
    }
}
