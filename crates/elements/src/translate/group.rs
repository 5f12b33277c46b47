//! Groups: group-mods and statistics.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 6.5, 7.3.4.2 and 7.4.7
//! (`ofp_group_mod_failed`); 1.5.1, section 7.3.4.3 (changes of single buckets).

use dataplane::group::{self, BucketPlace, BucketSpec, GroupError, GroupView};
use openflow::model::group::{
    BUCKET_ALL, BUCKET_FIRST, BUCKET_LAST, Bucket, BucketCounters, GROUP_ANY, GroupDescription,
    GroupKind, GroupStats,
};
use openflow::model::reserved;
use openflow::version::ErrorCode;
use packet::time::Nanos;

use super::action::{ActionContext, ActionLimits, actions_down, actions_up, output_bytes_max};
use super::{port_down, port_up};

/// Converts a bucket of a group-mod.
pub fn bucket_down(from: &Bucket, world: &ActionLimits<'_>) -> Result<BucketSpec, ErrorCode> {
    if !from.experimenter.is_empty() {
        return Err(ErrorCode::PropertyBadExperimenter);
    }
    let port = (from.watch_port != reserved::NONE).then(|| port_down(from.watch_port));
    Ok(BucketSpec {
        id: from.id,
        weight: from.weight,
        watch_port: port,
        watch_group: (from.watch_group != GROUP_ANY).then_some(from.watch_group),
        actions: actions_down(&from.actions, ActionContext::Bucket, world)?.into(),
        output_bytes_max: output_bytes_max(from.actions.iter()),
    })
}

/// Converts the type of a group.
pub fn kind_down(from: GroupKind) -> group::GroupKind {
    match from {
        GroupKind::All => group::GroupKind::All,
        GroupKind::Select => group::GroupKind::Select,
        GroupKind::Indirect => group::GroupKind::Indirect,
        GroupKind::FastFailover => group::GroupKind::FastFailover,
    }
}

/// Converts the bucket position of a command.
pub fn place_down(from: u32) -> BucketPlace {
    match from {
        BUCKET_FIRST => BucketPlace::First,
        BUCKET_LAST => BucketPlace::Last,
        BUCKET_ALL => BucketPlace::All,
        id => BucketPlace::Id(id),
    }
}

/// Converts the error of a rejected group-mod.
pub fn group_error_up(error: GroupError) -> ErrorCode {
    match error {
        GroupError::GroupExists(_) => ErrorCode::GroupModExists,
        GroupError::InvalidGroup(_) => ErrorCode::GroupModInvalid,
        GroupError::OutOfGroups(_) => ErrorCode::GroupModOutOfGroups,
        GroupError::OutOfBuckets(_) => ErrorCode::GroupModOutOfBuckets,
        GroupError::ChainTooLong(_) => ErrorCode::GroupModChainingUnsupported,
        GroupError::Loop(_) => ErrorCode::GroupModLoop,
        GroupError::UnknownGroup(_) => ErrorCode::GroupModUnknownGroup,
        GroupError::ChainedGroup(_) => ErrorCode::GroupModChainedGroup,
        GroupError::BadType(_) => ErrorCode::GroupModBadType,
        GroupError::BadCommand(_) => ErrorCode::GroupModBadCommand,
        GroupError::BadBucket(_) => ErrorCode::GroupModBadBucket,
        GroupError::BadWatchPort(_) | GroupError::BadWatchGroup(_) => ErrorCode::GroupModBadWatch,
        GroupError::UnknownBucket(_) => ErrorCode::GroupModUnknownBucket,
        GroupError::BucketExists(_) => ErrorCode::GroupModBucketExists,
        GroupError::BadOutGroup(_) => ErrorCode::ActionBadOutGroup,
    }
}

/// Converts a group to its description, without buckets.
pub fn group_up(from: &GroupView) -> GroupDescription {
    let kind = match from.kind() {
        group::GroupKind::All => GroupKind::All,
        group::GroupKind::Select => GroupKind::Select,
        group::GroupKind::Indirect => GroupKind::Indirect,
        group::GroupKind::FastFailover => GroupKind::FastFailover,
    };
    let (buckets, experimenter) = (Vec::new(), Vec::new());
    GroupDescription { kind, group: from.number(), buckets, experimenter }
}

/// Converts a bucket to its description.
pub fn bucket_up(from: &BucketSpec) -> Bucket {
    Bucket {
        id: from.id,
        weight: from.weight,
        watch_port: from.watch_port.map_or(reserved::NONE, port_up),
        watch_group: from.watch_group.unwrap_or(GROUP_ANY),
        actions: actions_up(&from.actions, &mut from.output_bytes_max.iter().copied()),
        experimenter: Vec::new(),
    }
}

/// Converts a group's counters. `references` is the number of flow entries and groups that refer to
/// it.
pub fn group_stats_up(from: &GroupView, references: usize, now: Nanos) -> GroupStats {
    let traffic = from.traffic();
    let counters = |place| {
        let (_, traffic) = from.bucket(place)?;
        Some(BucketCounters { packets: traffic.frames, bytes: traffic.bytes })
    };
    GroupStats {
        group: from.number(),
        references: references as u32,
        packets: traffic.frames,
        bytes: traffic.bytes,
        age: from.age(now),
        buckets: (0..from.count_buckets()).filter_map(counters).collect(),
    }
}
