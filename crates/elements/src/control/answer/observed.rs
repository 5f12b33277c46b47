//! Observation of a running element: costs of its blocks, traces of frames, and effects of loading
//! a program.
//!
//! Times are in units of the processor's cycle counter. Replies contain the counter's value, so
//! that two replies give its rate.

use os::clock;
use packet::time::Nanos;
use progfe::element::{Fate, Held, StateDiff};
use progfe::lfb::{DropReason, Verdict};
use progfe::observe::tracing::Ended;
use progfe::observe::{TraceRecord, Wanted};
use progfe::plan::Difference;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::trace::{Step, Trace};
use progfe::xml::Source;
use serde_json::{Map, Value, json};

use crate::control::request::{
    CostsAsked, OBSERVED_MS_MAX, ProgramSource, TraceAsked, TracedAsked,
};
use crate::datapath::Element;
use crate::fast_path::block_paths;

/// Maximum number of frames in one reply.
const FRAMES_ONCE: usize = 32;

fn until(for_ms: u64, now: Nanos) -> Result<Nanos, String> {
    match for_ms {
        1..=OBSERVED_MS_MAX => Ok(now.saturating_add(Nanos::from_millis(for_ms))),
        _ => Err(format!("for_ms: {for_ms} is not between 1 and {OBSERVED_MS_MAX}")),
    }
}

pub(super) fn measure(
    asked: CostsAsked,
    element: &mut Element,
    now: Nanos,
) -> Result<Value, String> {
    let CostsAsked { every, for_ms } = asked;
    match element.measure_costs(clock::cycles, every, until(for_ms, now)?, now) {
        true => Ok(json!({ "counter": clock::cycles(), "at_ns": now.0 })),
        false => Err("another client measures costs (hint: retry when that has ended)".to_owned()),
    }
}

pub(super) fn costs(element: &Element, now: Nanos) -> Result<Value, String> {
    let costs = element.costs().ok_or("no costs were measured (hint: send measure_costs first)")?;
    let instances = costs.program().instances.iter().enumerate();
    let blocks = instances.filter_map(|(at, instance)| {
        let visits = costs.visits(at).filter(|visits| visits.count > 0)?;
        let told =
            json!({ "frames": visits.count, "total": visits.total, "median": visits.median() });
        Some((instance.name.clone(), told))
    });
    Ok(json!({
        "counter": clock::cycles(),
        "at_ns": now.0,
        "unit": if cfg!(target_arch = "x86_64") { "cycles" } else { "ns" },
        "reading": costs.reading,
        "every": costs.every(),
        "frames": costs.frames,
        "began_again": costs.began_again,
        "done": costs.is_over(now),
        "blocks": blocks.collect::<Map<String, Value>>(),
    }))
}

pub(super) fn trace_next(
    asked: TraceAsked,
    element: &mut Element,
    now: Nanos,
) -> Result<Value, String> {
    let TraceAsked { count, for_ms, port, when } = asked;
    let wanted = Wanted { count, port, when, until: until(for_ms, now)? };
    Ok(json!({ "id": element.trace_next(&wanted, now)? }))
}

pub(super) fn traced(
    asked: TracedAsked,
    element: &mut Element,
    now: Nanos,
) -> Result<Value, String> {
    let TracedAsked { id, end } = asked;
    let tracing = element.tracing(id);
    let tracing =
        tracing.ok_or_else(|| format!("no trace {id}: a later trace may have replaced it"))?;
    let program = tracing.program().clone();
    let frames: Vec<Value> = std::iter::from_fn(|| tracing.take())
        .take(FRAMES_ONCE)
        .map(|traced| frame(&program, &traced))
        .collect();
    let ended = tracing.ended(now).filter(|_| !tracing.has_more()).map(|ended| match ended {
        Ended::Count => "count",
        Ended::Time => "time",
        Ended::Program => "program",
    });
    let missed = tracing.missed;
    if end {
        element.end_tracing(id);
    }
    Ok(json!({ "frames": frames, "ended": ended, "missed": missed }))
}

/// Converts a traced frame: its bytes as received and as sent, and its trace.
fn frame(program: &Program, traced: &TraceRecord) -> Value {
    let mut told = trace(program, &traced.trace);
    let left = traced.left.iter();
    told["at_ns"] = traced.at.0.into();
    told["port"] = traced.port.into();
    told["came"] = hex(&traced.came).into();
    told["left"] = left.map(|(port, bytes)| json!({ "port": port, "bytes": hex(bytes) })).collect();
    told
}

/// Converts a trace.
pub fn trace(program: &Program, trace: &Trace) -> Value {
    let steps: Vec<Value> = trace.steps.iter().map(|it| step(program, it)).collect();
    json!({ "steps": steps, "left_out": trace.left_out })
}

fn step(program: &Program, step: &Step) -> Value {
    let class = program.class_of(step.instance);
    let named = |meta: &[(u32, u128)]| -> Value {
        let pairs = meta.iter().map(|(id, value)| {
            let known = program.catalog.metadata_by_id(*id);
            let name = known.map_or_else(|| id.to_string(), |metadata| metadata.name.clone());
            // JSON numbers cannot represent all addresses.
            let value =
                u64::try_from(*value).map_or_else(|_| value.to_string().into(), Value::from);
            (name, value)
        });
        Value::Object(pairs.collect())
    };
    let input = step.input.and_then(|at| Some((class.inputs.get(at.port as usize)?, at.index)));
    json!({
        "copy": step.copy,
        "instance": program.instances[step.instance].name,
        "class": class.name,
        "input": input.map(|(port, _)| port.name.clone()),
        "input_index": input.filter(|(port, _)| port.group).map(|(_, index)| index),
        "before": named(&step.before),
        "after": named(&step.after),
        "bytes": step.bytes.as_deref().map(hex),
        "outcome": step.outcome(program),
        "dropped": match step.verdict {
            Verdict::Dropped(reason) => Some(reason.name()),
            Verdict::Out(..) if step.link.is_none() => Some(DropReason::Unlinked.name()),
            _ => None,
        },
        "copies": step.copies,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the differences of a program, and what would happen to the current contents of blocks.
pub(super) fn plan(
    document: &ProgramSource,
    element: &Element,
    now: Nanos,
) -> Result<Value, String> {
    let source = Source::new(&document.name, &document.text);
    let (program, problems) = Program::load(&source, &no_files);
    let program = program.ok_or_else(|| problems.to_string().trim_end().to_owned())?;
    let differences = progfe::plan::plan(element.program(), &program);
    let told = differences.iter().map(Difference::to_string);
    let differences: Vec<String> = told.collect();
    let blocks = block_paths(program.clone());
    let blocks = blocks.map_err(|all| all.to_string().trim_end().to_owned())?;
    let foreseen = element.foresee(program, now);
    let (holdings, links) = foreseen.map_err(|all| all.to_string().trim_end().to_owned())?;
    let holding = |it: &StateDiff| {
        let holds = it.holds.iter().map(|(name, held)| match held {
            Held::Number(number) => (name.clone(), json!(number)),
            Held::Rows(rows) => (name.clone(), json!({ "rows": rows })),
        });
        json!({
            "instance": it.instance,
            "holds": holds.collect::<Map<String, Value>>(),
            "dropped_frames": it.drops,
            "fate": match it.fate {
                Fate::Kept => "kept",
                Fate::AsItFits => "kept as far as it fits",
                Fate::Lost => "lost",
            },
        })
    };
    Ok(json!({
        "runs": element.program().name,
        "generation": element.generation(),
        "problems": problems.to_string().trim_end(),
        "differences": differences,
        "state": holdings.iter().map(holding).collect::<Vec<_>>(),
        "links_lost": links,
        "fast_path": blocks,
    }))
}
