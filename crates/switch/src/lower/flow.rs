//! Entries: what a flow-mod says, and what statistics and removals tell.

use dataplane::action::Action;
use dataplane::flow::{self, FlowFilter, FlowRecord, FlowSpec, TableId};
use openflow::model::{
    self, FlowMod, FlowModFlags, FlowRemoved, FlowStats, FlowStatsRequest, TABLE_ALL,
};

use super::action::destination_down;
use super::{actions_up, match_down, match_up, seconds_down, seconds_up};

/// The entry that a flow-mod asks for.
pub fn spec_down(from: &FlowMod, actions: Vec<Action>) -> FlowSpec {
    let (matching, note) = match_down(&from.matching);
    FlowSpec {
        matching,
        priority: from.priority,
        cookie: from.cookie,
        idle_timeout: seconds_down(from.idle_timeout_s),
        hard_timeout: seconds_down(from.hard_timeout_s),
        notify_removed: from.flags.contains(FlowModFlags::SEND_FLOW_REMOVED),
        check_overlap: from.flags.contains(FlowModFlags::CHECK_OVERLAP),
        note,
        actions: actions.into(),
    }
}

/// The entries that a flow-mod is about; `strict` for the one with its match and priority.
pub fn filter_down(from: &FlowMod, strict: bool) -> FlowFilter {
    FlowFilter {
        matching: match_down(&from.matching).0,
        strict_priority: strict.then_some(from.priority),
        destination: destination_down(from.out_port),
        table: None,
    }
}

/// The entries that a request for statistics is about, or `None` if it names a table that does
/// not exist.
pub fn stats_filter_down(from: &FlowStatsRequest) -> Option<FlowFilter> {
    let table = match from.table {
        TABLE_ALL => None,
        number => Some(TABLES.into_iter().find(|&table| table_up(table) == number)?),
    };
    Some(FlowFilter {
        matching: match_down(&from.matching).0,
        strict_priority: None,
        destination: destination_down(from.out_port),
        table,
    })
}

/// The tables, in the order in which they are looked up.
pub const TABLES: [TableId; 2] = [TableId::Exact, TableId::Wildcard];

/// A table's number.
pub fn table_up(table: TableId) -> u8 {
    match table {
        TableId::Exact => 0,
        TableId::Wildcard => 1,
    }
}

/// An entry as statistics tell of it.
pub fn flow_stats_up(from: &FlowRecord) -> FlowStats {
    FlowStats {
        table: table_up(from.table),
        matching: match_up(&from.matching, from.note),
        priority: from.priority,
        cookie: from.cookie,
        age: from.age,
        idle_timeout_s: seconds_up(from.idle_timeout),
        hard_timeout_s: seconds_up(from.hard_timeout),
        packets: from.frames,
        bytes: from.bytes,
        actions: actions_up(&from.actions),
    }
}

/// The news that an entry is gone.
pub fn flow_removed_up(from: &FlowRecord, why: flow::FlowRemovedReason) -> FlowRemoved {
    FlowRemoved {
        reason: match why {
            flow::FlowRemovedReason::IdleTimeout => model::FlowRemovedReason::IdleTimeout,
            flow::FlowRemovedReason::HardTimeout => model::FlowRemovedReason::HardTimeout,
            flow::FlowRemovedReason::Deleted => model::FlowRemovedReason::Delete,
        },
        matching: match_up(&from.matching, from.note),
        priority: from.priority,
        cookie: from.cookie,
        age: from.age,
        idle_timeout_s: seconds_up(from.idle_timeout),
        packets: from.frames,
        bytes: from.bytes,
    }
}
