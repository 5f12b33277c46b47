//! Groups and their buckets of actions.
//!
//! Source: OpenFlow 1.1.0 section A.3.4.2 (`ofp_group_mod`, `ofp_bucket`), 1.5.1 section 7.3.4.3.
//!
//! Buckets have IDs from 1.5 on. For earlier versions, decoding sets the ID to the bucket's index,
//! and encoding omits it.

use std::fmt;

use packet::time::Nanos;

use super::action::{Action, Experimenter};
use super::bits::bits;
use super::flow::show_actions;
use super::kinds::ActionKinds;
use super::port::stats::Counter;
use super::port::{PortNo, ShowPort, reserved};
use crate::version::NO;

/// Maximum group ID.
pub const GROUP_MAX: u32 = 0xffff_ff00;
/// All groups, in deletions.
pub const GROUP_ALL: u32 = 0xffff_fffc;
/// Any group, as a filter; no group, as a watch group.
pub const GROUP_ANY: u32 = 0xffff_ffff;

/// The first bucket, or the position before it.
pub const BUCKET_FIRST: u32 = 0xffff_fffd;
/// The last bucket, or the position after it.
pub const BUCKET_LAST: u32 = 0xffff_fffe;
/// All buckets, in removals; no bucket, in commands without a bucket.
pub const BUCKET_ALL: u32 = 0xffff_ffff;

/// Command of a group-mod (`ofp_group_mod_command`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GroupModCommand {
    /// Adds a new group.
    #[default]
    Add,
    /// Modifies an existing group.
    Modify,
    /// Deletes one group or all; a missing group is not an error.
    Delete,
    /// Inserts buckets into an existing group (1.5).
    InsertBucket,
    /// Removes one bucket or all (1.5).
    RemoveBucket,
}

/// Which buckets process a frame (`ofp_group_type`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// All buckets, each with its own copy.
    #[default]
    All,
    /// One bucket, selected by weight.
    Select,
    /// The only bucket.
    Indirect,
    /// The first live bucket.
    FastFailover,
}

/// Actions of a group, executed as an action set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Bucket ID, unique in the group (1.5).
    pub id: u32,
    /// Relative weight in [`GroupKind::Select`]; 0 in other types.
    pub weight: u16,
    /// Port whose liveness decides the bucket's, in [`GroupKind::FastFailover`]; [`reserved::NONE`]
    /// in other types.
    pub watch_port: PortNo,
    /// Group whose liveness decides the bucket's, in [`GroupKind::FastFailover`]; [`GROUP_ANY`] in
    /// other types.
    pub watch_group: u32,
    /// The actions.
    pub actions: Vec<Action>,
    /// Experimenter properties (1.5).
    pub experimenter: Vec<Experimenter>,
}

/// Adds, modifies or deletes a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMod {
    /// The command.
    pub command: GroupModCommand,
    /// Group type.
    pub kind: GroupKind,
    /// Group ID, or [`GROUP_ALL`] in deletions.
    pub group: u32,
    /// Where to insert buckets, or which to remove (1.5); [`BUCKET_ALL`] in other commands.
    pub command_bucket: u32,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// Experimenter properties (1.5).
    pub experimenter: Vec<Experimenter>,
}

/// An installed group (`ofp_group_desc`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupDescription {
    /// Group type.
    pub kind: GroupKind,
    /// Group ID.
    pub group: u32,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// Experimenter properties (1.5).
    pub experimenter: Vec<Experimenter>,
}

/// A group's counters (`ofp_group_stats`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// Group ID.
    pub group: u32,
    /// Number of flow entries and groups that refer to it.
    pub references: u32,
    /// Processed frames, or [`super::port::stats::COUNTER_UNKNOWN`].
    pub packets: u64,
    /// Processed bytes.
    pub bytes: u64,
    /// Time since the group was installed; from 1.3 on, decoded as 0 before.
    pub age: Nanos,
    /// The counters of each bucket, in order.
    pub buckets: Vec<BucketCounters>,
}

/// A bucket's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BucketCounters {
    /// Processed frames.
    pub packets: u64,
    /// Processed bytes.
    pub bytes: u64,
}

bits! {
    /// A set of group types.
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
    /// Capabilities of groups (`ofp_group_capabilities`).
    GroupCapabilities {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// Weights in select groups.
        SELECT_WEIGHT "select_weight"                [NO, NO,  0,  0,  0,  0];
        /// Liveness in select groups.
        SELECT_LIVENESS "select_liveness"            [NO, NO,  1,  1,  1,  1];
        /// Groups that refer to groups.
        CHAINING "chaining"                          [NO, NO,  2,  2,  2,  2];
        /// The switch rejects loops of such groups.
        CHAINING_CHECKS "chaining_checks"            [NO, NO,  3,  3,  3,  3];
    }
}

/// Group features of a switch (`ofp_group_features`, 1.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupFeatures {
    /// Supported types.
    pub kinds: GroupKinds,
    /// Capabilities.
    pub capabilities: GroupCapabilities,
    /// Maximum number of groups of each type, in the order of [`GroupKind::ALL`].
    pub groups_max: [u32; 4],
    /// Supported actions of each type.
    pub actions: [ActionKinds; 4],
}

impl GroupKind {
    /// All types, in the order of their codes, which are the same in all versions.
    pub const ALL: [GroupKind; 4] =
        [GroupKind::All, GroupKind::Select, GroupKind::Indirect, GroupKind::FastFailover];

    /// Returns the name in text output.
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
