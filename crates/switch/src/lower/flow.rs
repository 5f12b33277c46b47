//! Entries: what a flow-mod says, and what statistics and removals tell.

use dataplane::action::Action;
use dataplane::flow::{self, FlowFilter, FlowFlags, FlowRecord, FlowSpec, Part, rank_exact_first};
use openflow::model::{
    self, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowStats, FlowStatsRequest,
    TABLE_ALL,
};

use super::action::destination_down;
use super::{actions_up, match_down, match_up, seconds_down, seconds_up};

/// The entry that a flow-mod asks for.
pub fn spec_down(from: &FlowMod, actions: Vec<Action>) -> FlowSpec {
    let (matching, named) = match_down(&from.matching);
    FlowSpec {
        named,
        cookie: from.cookie,
        idle_timeout: seconds_down(from.idle_timeout_s),
        hard_timeout: seconds_down(from.hard_timeout_s),
        flags: FlowFlags {
            notify_removed: from.flags.contains(FlowModFlags::SEND_FLOW_REMOVED),
            check_overlap: from.flags.contains(FlowModFlags::CHECK_OVERLAP),
            reset_counts: from.command == FlowModCommand::Add,
            ..FlowFlags::default()
        },
        ..FlowSpec::new(matching, from.priority, &actions)
    }
    .exact_first()
}

/// The entries that a flow-mod is about; `strict` for the one with its match and priority.
pub fn filter_down(from: &FlowMod, strict: bool) -> FlowFilter {
    let matching = match_down(&from.matching).0;
    let rank = rank_exact_first(&matching, from.priority);
    FlowFilter {
        strict_rank: strict.then_some(rank),
        destination: destination_down(from.out_port),
        ..FlowFilter::covered_by(matching)
    }
}

/// The entries that a request for statistics is about, or `None` if it names a table that does
/// not exist.
pub fn stats_filter_down(from: &FlowStatsRequest) -> Option<FlowFilter> {
    let part = match from.table {
        TABLE_ALL => None,
        number => Some(TABLES.into_iter().find(|&table| table_up(table) == number)?),
    };
    Some(FlowFilter {
        destination: destination_down(from.out_port),
        part,
        ..FlowFilter::covered_by(match_down(&from.matching).0)
    })
}

/// The tables, in the order in which they are looked up.
pub const TABLES: [Part; 2] = [Part::Exact, Part::Wildcard];

/// A table's number.
pub fn table_up(table: Part) -> u8 {
    match table {
        Part::Exact => 0,
        Part::Wildcard => 1,
    }
}

/// An entry as statistics tell of it.
pub fn flow_stats_up(from: &FlowRecord) -> FlowStats {
    FlowStats {
        table: table_up(from.part),
        matching: match_up(&from.matching, from.named),
        priority: from.priority,
        cookie: from.cookie,
        age: from.age,
        idle_timeout_s: seconds_up(from.idle_timeout),
        hard_timeout_s: seconds_up(from.hard_timeout),
        packets: from.frames,
        bytes: from.bytes,
        instructions: model::Instruction::apply(actions_up(&from.instructions.apply)),
        ..FlowStats::default()
    }
}

/// The news that an entry is gone.
pub fn flow_removed_up(from: &FlowRecord, why: flow::FlowRemovedReason) -> FlowRemoved {
    FlowRemoved {
        reason: match why {
            flow::FlowRemovedReason::IdleTimeout => model::FlowRemovedReason::IdleTimeout,
            flow::FlowRemovedReason::HardTimeout => model::FlowRemovedReason::HardTimeout,
            flow::FlowRemovedReason::Deleted
            | flow::FlowRemovedReason::GroupDelete
            | flow::FlowRemovedReason::MeterDelete
            | flow::FlowRemovedReason::Eviction => model::FlowRemovedReason::Delete,
        },
        table: 0,
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
