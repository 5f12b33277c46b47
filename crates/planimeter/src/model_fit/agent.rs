//! OpenFlow agent of the switch: cost of each message, delay of barrier replies, and table
//! capacity.
//!
//! The reply time of messages that follow each other includes the channel latency, the agent's time
//! and the barrier delay. With many outstanding messages, only the agent's time remains. Source:
//! costa2017, tables VII and VIII; metrics C5, C6 and C10 of the method.

use elements::hardware_model::model::Answers;

use super::line::{LinearFit, Point, line, mean};
use super::model::FittedModel;
use super::observations::{ObservedCell, TargetRuns, Value, number, place};
use super::updates::{EXPERIMENT as RULES, Update};
use super::writing::DEEDS;
use experiments::control_plane::packets::{SAMPLES, SLOW_PPS, STEP};

const RATES: &str = "control-rate";

/// If many outstanding messages give this many times the rate of one, the reply time includes a
/// wait.
const WAITING: f64 = 1.2;

/// Burst of packet-ins that a model allows after a pause.
const BURST: f64 = 10.0;

/// If entries activate late by this share of a step, the step underestimates the rate.
const LATE: f64 = 0.1;

/// A rate with a larger relative uncertainty is unknown.
const UNSURE: f64 = 0.5;

/// Minimum ratio of requested to completed rate that makes a rate a limit.
const BEYOND: f64 = 1.2;

fn dots(seen: &[ObservedCell<'_>]) -> Vec<Point> {
    seen.iter().map(|it| Point { x: it.x, y: it.value, half: it.half }).collect()
}

/// Returns the sources of cells, each run once.
fn sources(seen: &[ObservedCell<'_>], experiment: &str, metric: &str) -> String {
    let mut names: Vec<&str> = seen.iter().map(|it| it.run.name.as_str()).collect();
    names.dedup();
    format!("measured: {}, {experiment}, {metric}", names.join(" and "))
}

/// Returns the latency of a message and its reply without any work of the agent.
fn channel(evidence: &TargetRuns<'_>) -> (f64, f64) {
    let seen = evidence.cells("echo-delay", "echo_ns_min");
    let shortest = seen.iter().min_by(|one, other| one.x.total_cmp(&other.x));
    shortest.map_or((0.0, 0.0), |seen| (seen.value, seen.half))
}

/// Fits message costs and the barrier delay; returns the cost of a flow-mod if it is known.
pub fn fit(
    evidence: &TargetRuns<'_>,
    (updates, told): (&[Update<'_>], Option<Answers>),
    sheet: &mut FittedModel,
) -> Option<(f64, f64)> {
    let channel = channel(evidence);
    let message = barriers(evidence, channel, sheet);
    let flow_mod = flow_mods(updates, (told, channel), message, sheet);
    packet_outs(evidence, message, sheet);
    statistics(evidence, channel, sheet);
    flow_mod
}

/// Returns the time per completed message in nanoseconds, by the number of outstanding messages.
fn times<'a>(evidence: &TargetRuns<'a>, metric: &'a str) -> Vec<ObservedCell<'a>> {
    let mut seen = evidence.cells(RATES, metric);
    seen.retain(|it| it.x >= 1.0 && it.value > 0.0);
    for it in &mut seen {
        let ns = 1e9 / it.value;
        (it.half, it.value) = (it.half / it.value * ns, ns);
    }
    seen
}

/// Fits the default cost of a message, and the barrier delay.
fn barriers(
    evidence: &TargetRuns<'_>,
    channel: (f64, f64),
    sheet: &mut FittedModel,
) -> Option<(f64, f64)> {
    let metric = "barrier_done_per_s";
    let seen = times(evidence, metric);
    let alone: Vec<Point> = dots(&seen).into_iter().filter(|dot| dot.x == 1.0).collect();
    let (alone, known) = mean(&alone)?;
    let (way, way_known) = channel;
    let least = seen.iter().map(|it| it.value).fold(f64::INFINITY, f64::min);
    let from = || sources(&seen, RATES, metric);
    if alone < WAITING * least {
        let (value, half) = (alone - way, known + way_known);
        let from = from() + " with one outstanding, minus echo-delay's echo_ns_min";
        sheet.say("agent.message_ns", Value { value, half, from });
        if !sheet.has("barrier.delay_ns") {
            let from =
                self::sources(&seen, RATES, metric) + ": more outstanding messages are not faster";
            sheet.say("barrier.delay_ns", Value { value: 0.0, half, from });
        }
        return Some((value.max(0.0), half));
    }
    let best = || seen.iter().filter(|it| it.value <= WAITING * least);
    let half = best().map(|it| it.half).fold(f64::INFINITY, f64::min);
    // Twice as many outstanding messages gave twice the rate: the agent is partly idle.
    let under_way = best().map(|it| it.x).fold(f64::INFINITY, f64::min);
    if least * under_way < WAITING * alone {
        let why = format!("control-rate had too few outstanding messages; at most {least:.0} ns");
        sheet.assume("agent.message_ns", 0, why);
        if !sheet.has("barrier.delay_ns") {
            let from = from() + " with one outstanding; includes agent.message_ns";
            let value = Value { value: alone - way, half: known + way_known + least, from };
            sheet.say("barrier.delay_ns", value);
        }
        return None;
    }
    let many = from() + ", with most outstanding";
    sheet.say("agent.message_ns", Value { value: least, half, from: many });
    let late = Value {
        value: alone - least - way,
        half: known + half + way_known,
        from: from() + " with one outstanding, minus that with many and echo-delay's echo_ns_min",
    };
    let is_late = late.value > late.half;
    if is_late && !sheet.has("barrier.delay_ns") {
        sheet.say("barrier.delay_ns", late);
    }
    Some((least, half))
}

/// Fits the cost of a flow-mod from barrier replies after many of them, if the agent determines
/// these.
///
/// Of several operations, only those count whose entries activate after the reply: there, only the
/// agent delays it.
fn flow_mods(
    updates: &[Update<'_>],
    (told, channel): (Option<Answers>, (f64, f64)),
    message: Option<(f64, f64)>,
    sheet: &mut FittedModel,
) -> Option<(f64, f64)> {
    let metric = "control_plane_ns";
    let answer =
        |update: &&Update<'_>| Some(Point { x: update.rules, y: update.control_ns?, half: 0.0 });
    let of = |is_late: bool| {
        DEEDS.into_iter().find_map(|deed| {
            let of: Vec<&Update<'_>> = updates.iter().filter(|it| it.deed == deed).collect();
            let is_wanted = of.iter().any(|update| update.is_late()) == is_late;
            let found = line(&of.iter().filter_map(answer).collect::<Vec<_>>());
            found.filter(|_| is_wanted).map(|found| (found, of))
        })
    };
    let found = of(true).or_else(|| of(false));
    if told? != Answers::Taken {
        let most = found.map_or(String::new(), |it| format!(", at most {:.0} ns", it.0.slope.0));
        let why = format!("barriers wait for the hardware, which hides this value{most}");
        sheet.assume("agent.flow_mod_ns", 0, why);
        return None;
    }
    let Some((LinearFit { at_zero, slope }, of)) = found else {
        return one_count(updates, sheet);
    };
    let mut names: Vec<&str> = of.iter().map(|update| update.run.name.as_str()).collect();
    names.dedup();
    let deed = of.first().map_or("", |update| update.deed);
    let from = format!("measured: {}, {RULES}, {metric} of {deed}", names.join(" and "));
    let over = format!("{from}, slope over the number of rules");
    sheet.say("agent.flow_mod_ns", Value { value: slope.0, half: slope.1, from: over });
    if message.is_none() {
        let value = at_zero.0 - channel.0;
        let from = format!("{from} without rules; includes barrier.delay_ns");
        sheet.say("agent.message_ns", Value { value, half: at_zero.1, from });
    }
    Some(slope)
}

/// Fits the cost from updates with one number of entries, which does not separate the cost of the
/// barrier.
fn one_count(updates: &[Update<'_>], sheet: &mut FittedModel) -> Option<(f64, f64)> {
    let late = updates.iter().filter(|update| update.is_late());
    let (update, control) = late.filter_map(|it| Some((it, it.control_ns?))).next()?;
    let (value, half) = (control / update.rules, sheet.model().agent.message_ns as f64);
    let half = half / update.rules;
    let from = place(update.run, RULES, "control_plane_ns") + " per rule; includes the barrier";
    sheet.say("agent.flow_mod_ns", Value { value, half, from });
    Some((value, half))
}

fn packet_outs(evidence: &TargetRuns<'_>, message: Option<(f64, f64)>, sheet: &mut FittedModel) {
    let metric = "packet_out_done_per_s";
    let seen = times(evidence, metric);
    let least = seen.iter().min_by(|one, other| one.value.total_cmp(&other.value));
    if let Some((seen, (barrier, known))) = least.zip(message) {
        let from = place(seen.run, RATES, metric) + ", minus the barrier after each";
        let value = seen.value - barrier;
        sheet.say("agent.packet_out_ns", Value { value, half: seen.half + known, from });
    }
}

fn statistics(evidence: &TargetRuns<'_>, channel: (f64, f64), sheet: &mut FittedModel) {
    let experiment = "stats-delay";
    let idle = |metric| {
        let mut seen = evidence.cells(experiment, metric);
        seen.retain(|it| it.curve == Some(0.0));
        seen
    };
    let (way, way_known) = channel;
    let kinds = ["aggregate_reply_ns_p50", "flow_reply_ns_p50"];
    let found = kinds.into_iter().find_map(|metric| {
        let seen = idle(metric);
        Some((line(&dots(&seen))?, sources(&seen, experiment, metric)))
    });
    if let Some((LinearFit { at_zero, slope }, from)) = found {
        // The lowest entry is installed too.
        let value = at_zero.0 - slope.0 - way;
        let half = at_zero.1 + slope.1 + way_known;
        let without = format!("{from} without rules");
        sheet.say("agent.flow_stats_ns", Value { value, half, from: without });
        let from = format!("{from}, slope over the number of rules");
        sheet.say("agent.flow_stats_rule_ns", Value { value: slope.0, half: slope.1, from });
    }
    let metric = "port_reply_ns_p50";
    let seen = idle(metric);
    if let Some((value, half)) = mean(&dots(&seen)) {
        let from = sources(&seen, experiment, metric);
        let value = Value { value: value - way, half: half + way_known, from };
        sheet.say("agent.port_stats_ns", value);
    }
}

/// Fits the rate of packet-ins from steps that requested more than arrived. Late activation must be
/// known before.
pub fn packet_ins(evidence: &TargetRuns<'_>, sheet: &mut FittedModel) {
    let experiment = "packet-in";
    let hardware = &sheet.model().hardware;
    let late_ns = hardware.insert_ns + hardware.activation_ns + hardware.batch_interval_ns;
    let is_early = sheet.model().answers() != Answers::Acting && !sheet.model().has_software();
    let late_s = if is_early { late_ns as f64 / 1e9 } else { 0.0 };
    let mut found = Vec::new();
    let mut from = String::new();
    for watched in evidence.trials(experiment) {
        let Some(step_s) = number(watched.run, &STEP) else { continue };
        if late_s > LATE * step_s {
            let why = "packet-in's own rule activates after the barrier reply, so that its steps \
                       lose frames";
            return sheet.assume("agent.packet_ins_per_s", 0, why);
        }
        let points = watched.series("done_per_s");
        // A step without any packet-ins gives no information.
        let limited = points.iter().filter(|[asked, done]| *done > 0.0 && *asked > BEYOND * done);
        let done: Vec<f64> = limited.map(|[_, done]| done * step_s).collect();
        from = place(watched.run, experiment, "done_per_s");
        if done.is_empty() {
            continue;
        }
        let middle = done.iter().sum::<f64>() / done.len() as f64;
        let off = done.iter().map(|it| (it - middle).abs()).fold(0.0, f64::max);
        let slow = slow_round(&watched);
        let dot = match slow {
            // Two durations separate the burst from the rate.
            Some((more, span_s)) if span_s > 1.5 * step_s => Point {
                x: 0.0,
                y: (more - middle) / (span_s - step_s),
                half: (off + 1.0) / (span_s - step_s),
            },
            _ => Point { x: 0.0, y: (middle - BURST) / step_s, half: (off + BURST) / step_s },
        };
        found.push(dot);
    }
    match mean(&found) {
        Some((value, half)) if half > UNSURE * value => {
            let why = format!(
                "the rates above the limit are inconsistent: {:.0} ± {half:.0} per second",
                value.max(0.0)
            );
            sheet.assume("agent.packet_ins_per_s", 0, why);
        }
        Some((value, half)) => {
            let from = from + ", where more was requested";
            sheet.say("agent.packet_ins_per_s", Value { value, half, from });
        }
        None if !from.is_empty() => {
            let why = "packet-in did not request more than the switch sent";
            sheet.assume("agent.packet_ins_per_s", 0, why);
        }
        None => {}
    }
}

/// Returns the number of slow frames that arrived and their time, unless all arrived.
fn slow_round(watched: &super::observations::ObservedTrial<'_>) -> Option<(f64, f64)> {
    let (lost, _) = watched.measured("lost_ratio").filter(|(lost, _)| *lost > 0.05)?;
    let (samples, pps) = (number(watched.run, &SAMPLES)?, number(watched.run, &SLOW_PPS)?);
    Some((samples * (1.0 - lost), samples / pps))
}

/// Fits the number of entries that fit.
pub fn capacity(evidence: &TargetRuns<'_>, sheet: &mut FittedModel) {
    let (experiment, metric) = ("table-capacity", "accepted_rules");
    let seen = evidence.cells(experiment, metric);
    let full: Vec<ObservedCell<'_>> = evidence.cells(experiment, "is_full_count");
    let is_full = |seen: &&ObservedCell<'_>| {
        let same = full.iter().find(|it| it.run.name == seen.run.name && it.x == seen.x);
        same.is_some_and(|it| it.value > 0.5)
    };
    let filled = seen.iter().filter(is_full).min_by(|a, b| a.value.total_cmp(&b.value));
    match (filled, seen.iter().map(|it| it.value).max_by(f64::total_cmp)) {
        (Some(seen), _) => {
            let from = place(seen.run, experiment, metric) + ", plus the lowest rule";
            let value = Value { value: seen.value + 1.0, half: seen.half, from };
            sheet.say("capacity.rules", value);
        }
        (None, Some(most)) => {
            let why = format!("the table accepted {most:.0} rules and was not full");
            sheet.assume("capacity.rules", 0, why);
        }
        (None, None) => {}
    }
}
