//! Replies of a switch: flow entries, with the time since each last matched, and tables.
//!
//! OpenFlow 1.0 has no field for that time, so the control socket has it. Invariant: one reply has
//! at most `FLOWS_TOLD_MAX` entries, and the position of the next one. A request therefore delays
//! frames no longer than that many entries take.

use dataplane::flow::{FlowFilter, FlowRecord, Part};
use dataplane::pipeline::Pipeline;
use openflow::model::Instruction;
use packet::time::Nanos;
use serde_json::{Value, json};

use super::not_for;
use crate::control::request::{FlowsFrom, Request};
use crate::translate;

/// Maximum number of flow entries in one reply.
pub const FLOWS_TOLD_MAX: usize = 1024;

/// Processes a request that only a switch supports.
pub(super) fn answer(request: Request, pipeline: &Pipeline, now: Nanos) -> Result<Value, String> {
    match request {
        Request::GetFlows(FlowsFrom { from }) => Ok(flows(pipeline, from, now)),
        other => Err(not_for("switch", &other)),
    }
}

/// Returns the flow entries from this position on, and the position of the next reply if there are
/// more.
fn flows(pipeline: &Pipeline, from: usize, now: Nanos) -> Value {
    let mut records = pipeline.tables().records(&FlowFilter::ALL, from, now);
    let rows: Vec<Value> = records.by_ref().take(FLOWS_TOLD_MAX).map(|it| flow(&it)).collect();
    json!({ "flows": rows, "next": records.next().map(|record| record.place) })
}

fn flow(record: &FlowRecord) -> Value {
    let told = translate::flow_stats_up(record, record.table == 0);
    let actions = Instruction::applied(&told.instructions);
    let actions: Vec<String> = actions.iter().map(ToString::to_string).collect();
    json!({
        "table": table_name(record.part),
        "match": told.matching.to_string(),
        "priority": told.priority,
        "cookie": format!("{:#x}", told.cookie),
        "actions": actions,
        "packets": told.packets,
        "bytes": told.bytes,
        "age_ms": record.age.0 / 1_000_000,
        "since_match_ms": record.idle.0 / 1_000_000,
        "idle_timeout_s": told.idle_timeout_s,
        "hard_timeout_s": told.hard_timeout_s,
    })
}

/// Returns the counters of the tables.
pub(super) fn tables(pipeline: &Pipeline) -> Value {
    let tables = translate::flow::PARTS.map(|id| {
        let account = pipeline.tables().part_account(0, id);
        json!({
            "name": table_name(id),
            "entries": account.entries,
            "entries_max": account.entries_max,
            "lookups": account.lookups,
            "matched": account.matched,
        })
    });
    json!(tables)
}

fn table_name(table: Part) -> &'static str {
    match table {
        Part::Exact => "exact",
        Part::Wildcard => "wildcard",
    }
}
