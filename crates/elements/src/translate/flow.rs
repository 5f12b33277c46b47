//! Flow entries: flow-mods, statistics and removals.
//!
//! Version 1.0 sees only the first table, as two tables: the hash of exact matches and the others,
//! in lookup order. An exact match takes precedence over all others there. From 1.1 on it is one
//! table, and priority decides.

use std::sync::Arc;

use dataplane::flow::{
    self, FlowFilter, FlowFlags, FlowRecord, FlowSpec, MatchDetails, ModifyRules, Part, RANK_EXACT,
    Source,
};
use dataplane::instruction::Instructions;
use dataplane::key;
use dataplane::matching::Match;
use openflow::model::matching::transport_fields;
use openflow::model::multipart::{FlowStats, FlowStatsRequest};
use openflow::model::table::TABLE_ALL;
use openflow::model::{self, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved};
use openflow::version::{ErrorCode, Version};
use packet::field::{Field, FieldSet};

use super::action::destination_down;
use super::{instructions_up, match_down, match_up, seconds_down, seconds_up};
use openflow::model::group::GROUP_ANY;

/// Origin of a message, and the meaning of its table numbers.
#[derive(Debug, Clone, Copy)]
pub struct VersionContext {
    /// The version of the connection.
    pub version: Version,
    /// Whether table numbers mean 1.0's two tables instead of all tables.
    pub parts: bool,
    /// The source of a change.
    pub source: Source,
}

/// Converts a flow-mod with its converted match to a flow entry.
pub fn spec_down(
    from: &FlowMod,
    (matching, named): (Match, MatchDetails),
    instructions: Arc<Instructions>,
    speaker: VersionContext,
) -> FlowSpec {
    let has = |flag| from.flags.contains(flag);
    let adds = from.command == FlowModCommand::Add;
    let is_miss = matching == Match::ANY && from.priority == 0;
    FlowSpec {
        table: table_down(from.table, speaker),
        matching,
        named,
        priority: from.priority,
        rank: rank(&matching, from.priority, speaker.version),
        cookie: from.cookie,
        idle_timeout: seconds_down(from.idle_timeout_s),
        hard_timeout: seconds_down(from.hard_timeout_s),
        importance: from.importance,
        flags: FlowFlags {
            notify_removed: has(FlowModFlags::SEND_FLOW_REMOVED),
            check_overlap: has(FlowModFlags::CHECK_OVERLAP),
            // Up to 1.1, additions reset counters and modifications never do.
            reset_counts: has(FlowModFlags::RESET_COUNTS)
                || (speaker.version <= Version::V1_1 && adds),
            no_frame_counts: has(FlowModFlags::NO_PACKET_COUNTS),
            no_byte_counts: has(FlowModFlags::NO_BYTE_COUNTS),
            miss: is_miss && speaker.version >= Version::V1_3,
        },
        instructions,
        source: speaker.source,
    }
}

const ETH_TYPE_IPV6: u64 = 0x86dd;

fn rank(matching: &Match, priority: u16, version: Version) -> u32 {
    match version {
        Version::V1_0 if is_exact_in_1_0(matching) => RANK_EXACT,
        _ => priority.into(),
    }
}

/// Whether a match specifies all of the twelve fields of 1.0 that its frames have. The core stores
/// those behind the Ethernet header of IPv6 separately.
fn is_exact_in_1_0(matching: &Match) -> bool {
    if matching.field(key::Field::EthType).0 != ETH_TYPE_IPV6 {
        return matching.names_every_field();
    }
    let asked = matching.fields_asked();
    let proto = matching.asked(FieldSet::NONE.with(Field::IpProto));
    let ports =
        proto.first().and_then(|asked| transport_fields(ETH_TYPE_IPV6 as u16, asked.1 as u8));
    matching.asks_whole_key()
        && asked.has(Field::IpDscp)
        && asked.has(Field::IpProto)
        && ports.is_none_or(|(src, dst)| asked.has(src) && asked.has(dst))
}

/// Converts a table number. A flow-mod without a table means the first one.
pub fn table_down(table: u8, speaker: VersionContext) -> u8 {
    if speaker.parts || (speaker.version == Version::V1_0 && table == TABLE_ALL) {
        0
    } else {
        table
    }
}

/// Returns the filter of the flow entries that a flow-mod modifies or deletes. `matching` is its
/// converted match.
pub fn filter_down(from: &FlowMod, matching: Match, speaker: VersionContext) -> FlowFilter {
    let strict =
        matches!(from.command, FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict);
    let deletes = matches!(from.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    let every = from.table == TABLE_ALL && !speaker.parts;
    FlowFilter {
        table: (!every).then(|| table_down(from.table, speaker)),
        part: None,
        matching,
        strict_rank: strict.then(|| rank(&matching, from.priority, speaker.version)),
        cookie: (from.cookie, from.cookie_mask),
        destination: if deletes { destination_down(from.out_port) } else { None },
        group: group_down(from.out_group).filter(|_| deletes),
        source: speaker.source,
    }
}

fn group_down(group: u32) -> Option<u32> {
    (group != GROUP_ANY).then_some(group)
}

/// Returns the version-dependent effects of modifying flow entries.
pub fn modify_rules(from: &FlowMod, version: Version) -> ModifyRules {
    let add = match version {
        // In 1.0 only Nicira's extension can filter by cookie; it then sets no new one.
        Version::V1_0 | Version::V1_1 => from.cookie_mask == 0,
        _ => false,
    };
    ModifyRules { add, cookie: version == Version::V1_0 && add }
}

/// Returns the filter of a statistics request, or `None` if it names a table of 1.0 that does not
/// exist.
pub fn stats_filter_down(
    from: &FlowStatsRequest,
    speaker: VersionContext,
) -> Result<Option<FlowFilter>, ErrorCode> {
    let (matching, _) = match_down(&from.matching, speaker.version)?;
    let (table, part) = match (speaker.parts, from.table) {
        (true, TABLE_ALL) => (Some(0), None),
        (true, number) => match PARTS.into_iter().find(|&part| part_up(part) == number) {
            Some(part) => (Some(0), Some(part)),
            None => return Ok(None),
        },
        (false, TABLE_ALL) => (None, None),
        (false, number) => (Some(number), None),
    };
    Ok(Some(FlowFilter {
        table,
        part,
        matching,
        strict_rank: None,
        cookie: (from.cookie, from.cookie_mask),
        destination: destination_down(from.out_port),
        group: group_down(from.out_group),
        source: speaker.source,
    }))
}

/// The parts of the first table, in lookup order.
pub const PARTS: [Part; 2] = [Part::Exact, Part::Wildcard];

/// Returns the table number of a part.
pub fn part_up(part: Part) -> u8 {
    match part {
        Part::Exact => 0,
        Part::Wildcard => 1,
    }
}

/// Converts a flow entry to flow statistics.
pub fn flow_stats_up(from: &FlowRecord, parts: bool) -> FlowStats {
    FlowStats {
        table: if parts { part_up(from.part) } else { from.table },
        matching: match_up(&from.matching, from.named),
        priority: from.priority,
        cookie: from.cookie,
        age: from.age,
        idle_age: Some(from.idle),
        idle_timeout_s: seconds_up(from.idle_timeout),
        hard_timeout_s: seconds_up(from.hard_timeout),
        flags: flags_up(from.flags),
        importance: from.importance,
        packets: from.frames,
        bytes: from.bytes,
        instructions: instructions_up(&from.instructions),
    }
}

fn flags_up(from: FlowFlags) -> FlowModFlags {
    let rows = [
        (from.notify_removed, FlowModFlags::SEND_FLOW_REMOVED),
        (from.check_overlap, FlowModFlags::CHECK_OVERLAP),
        (from.reset_counts, FlowModFlags::RESET_COUNTS),
        (from.no_frame_counts, FlowModFlags::NO_PACKET_COUNTS),
        (from.no_byte_counts, FlowModFlags::NO_BYTE_COUNTS),
    ];
    let set = rows.into_iter().filter(|(set, _)| *set);
    set.fold(FlowModFlags::NONE, |flags, (_, flag)| flags | flag)
}

/// Converts a removed flow entry to a flow-removed message.
pub fn flow_removed_up(from: &FlowRecord, why: flow::FlowRemovedReason) -> FlowRemoved {
    FlowRemoved {
        reason: reason_up(why),
        table: from.table,
        matching: match_up(&from.matching, from.named),
        priority: from.priority,
        cookie: from.cookie,
        age: from.age,
        idle_timeout_s: seconds_up(from.idle_timeout),
        hard_timeout_s: seconds_up(from.hard_timeout),
        packets: from.frames,
        bytes: from.bytes,
    }
}

/// Converts the reason of a removal.
pub fn reason_up(why: flow::FlowRemovedReason) -> model::FlowRemovedReason {
    use flow::FlowRemovedReason as From;
    use model::FlowRemovedReason as To;
    match why {
        From::IdleTimeout => To::IdleTimeout,
        From::HardTimeout => To::HardTimeout,
        From::Deleted => To::Delete,
        From::GroupDelete => To::GroupDelete,
        From::MeterDelete => To::MeterDelete,
        From::Eviction => To::Eviction,
    }
}
