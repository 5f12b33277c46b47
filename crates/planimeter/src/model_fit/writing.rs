//! Transfer of entries to the hardware, and the event that triggers barrier replies.
//!
//! There are three cases:
//!
//! - The reply never comes before the last activation, for any operation: barriers are honest.
//! - The reply always comes the same time before it: the switch replies when entries are written.
//! - Otherwise the switch replies when the agent has accepted the entries.
//!
//! Additions, modifications and deletions are evaluated separately. A difference between them that
//! the model cannot express is reported. If entries activate one after another, their interval is
//! that of the slower of agent and hardware. Source: metrics C2 to C5 of the method; OFLOPS-SUME,
//! section IV-B.

use std::ops::Range;

use elements::hardware_model::model::keys::BATCH_MAX;
use elements::hardware_model::model::{Answers, InHardware};

use super::line::{LinearFit, Point, line, mean, median};
use super::model::FittedModel;
use super::observations::Value;
use super::updates::{EXPERIMENT, Update};
use experiments::activation_times::Bounds;
use experiments::activation_times::batches::Batches;

/// Minimum relative difference of two values, in addition to their uncertainty.
const SHARE: f64 = 0.02;

/// Maximum deviation of the start of a batch from a multiple of the interval, as a share of the
/// interval.
const OFF_BEAT: f64 = 0.15;

/// An interval below this many times the shortest one is a single interval.
const SINGLE: f64 = 1.5;

/// Minimum size of a full batch, as a share of the largest.
const FULL: f64 = 0.95;

/// Minimum ratio of the time per entry of two operations that shows that barriers wait for only one
/// of them.
const DIFFERING: f64 = 2.0;

/// Minimum ratio of the lengths of updates that differ.
const LENGTHS_DIFFER: f64 = 1.2;

/// Minimum cost of moves, in half widths above zero.
const CLEAR: f64 = 1.5;

fn from(updates: &[&Update<'_>], what: &str) -> String {
    let mut names: Vec<&str> = updates.iter().map(|update| update.run.name.as_str()).collect();
    names.dedup();
    format!("measured: {}, {EXPERIMENT}, {what}", names.join(" and "))
}

/// Operations on entries.
pub const DEEDS: [&str; 3] = ["add", "modify", "delete"];

/// Returns the event that triggers barrier replies; `None` if no run shows it.
pub fn answers(
    updates: &[Update<'_>],
    tier: Option<InHardware>,
    sheet: &mut FittedModel,
) -> Option<Answers> {
    // If software forwards what the hardware does not have yet, additions activate immediately.
    let has_software = tier == Some(InHardware::Used);
    let is_modify = |update: &&Update<'_>| update.deed == "modify";
    let only_modify = has_software && updates.iter().any(|it| is_modify(&it));
    let seen: Vec<&Update<'_>> = updates
        .iter()
        .filter(|update| update.gap_ns.is_some() && (!only_modify || is_modify(update)))
        .collect();
    let gaps = || seen.iter().filter_map(|update| update.gap_ns);
    if seen.is_empty() {
        return None;
    }
    let widest = gaps().map(|(_, half)| half).fold(0.0, f64::max);
    let least = gaps().map(|(gap, _)| gap).fold(f64::INFINITY, f64::min);
    let most = gaps().map(|(gap, _)| gap).fold(f64::NEG_INFINITY, f64::max);
    let range = format!(
        "barrier_gap_ns_max: the last rule activated {least:.0} to {most:.0} ns after the reply, \
         each ± {widest:.0}"
    );
    let from = from(&seen, &range);
    // Updates differ in length by the number of entries or by the time per entry.
    let differs = |of: fn(&Update<'_>) -> Option<f64>| {
        let values = || seen.iter().filter_map(|update| of(update));
        let least = values().fold(f64::INFINITY, f64::min);
        values().fold(0.0, f64::max) > LENGTHS_DIFFER * least
    };
    let is_many = differs(|it| Some(it.rules)) || differs(|it| it.control_ns);
    let told = if !seen.iter().any(|update| update.is_late()) {
        Answers::Acting
    } else if is_many && seen.iter().all(|it| it.is_late()) && most - least <= 2.0 * widest {
        let middle = gaps().map(|(gap, _)| gap).sum::<f64>() / seen.len() as f64;
        let from = format!("{from}; includes the delay of the reply itself");
        sheet.say("hardware.activation_ns", Value { value: middle, half: widest, from });
        sheet.assume("barrier.delay_ns", 0, "included in hardware.activation_ns");
        Answers::Written
    } else {
        Answers::Taken
    };
    if told == Answers::Taken
        && let Some((waits, early)) = differing(&seen)
    {
        let why = format!(
            "barriers wait for {waits}, but not for {early}; a model has one value for all \
             operations"
        );
        sheet.assume("barrier.answers", told as u64, why);
        return Some(told);
    }
    sheet.word("barrier.answers", told as u64, from);
    Some(told)
}

/// Finds an operation for which barriers wait longer than for another operation whose entries
/// activate late.
///
/// An agent with the same cost for both does not do that.
fn differing(updates: &[&Update<'_>]) -> Option<(&'static str, &'static str)> {
    let of = |deed: &'static str| -> Vec<&Update<'_>> {
        updates.iter().copied().filter(|update| update.deed == deed).collect()
    };
    let per_rule = |of: &[&Update<'_>], pick: fn(f64, f64) -> f64, from: f64| {
        let each = of.iter().filter_map(|update| Some(update.control_ns? / update.rules));
        each.fold(from, pick)
    };
    let early = DEEDS.into_iter().filter(|deed| of(deed).iter().any(|it| it.is_late()));
    let waits = || DEEDS.into_iter().filter(|deed| !of(deed).iter().any(|it| it.is_late()));
    early
        .flat_map(|early| waits().map(move |waits| (waits, early)))
        .filter(|(waits, _)| !of(waits).is_empty())
        .find(|(waits, early)| {
            let least = per_rule(&of(waits), f64::min, f64::INFINITY);
            let most = per_rule(&of(early), f64::max, 0.0);
            least > DIFFERING * most
        })
}

/// Fits the time of writing, and its batches; `flow_mod` is the agent's cost for each entry.
pub fn fit(
    updates: &[Update<'_>],
    (told, tier): (Option<Answers>, Option<InHardware>),
    flow_mod: Option<(f64, f64)>,
    sheet: &mut FittedModel,
) {
    // Software forwards what the hardware does not have yet, and what it does not have any more.
    let has_software = tier.is_some_and(|it| it != InHardware::All);
    let shows_hardware = |update: &&Update<'_>| !has_software || update.deed == "modify";
    let seen: Vec<&Update<'_>> = updates.iter().filter(shows_hardware).collect();
    let batched = batches(&seen, flow_mod, sheet);
    for (deed, key) in [
        ("add", "hardware.insert_ns"),
        ("modify", "hardware.modify_ns"),
        ("delete", "hardware.delete_ns"),
    ] {
        let of: Vec<&Update<'_>> = seen.iter().copied().filter(|it| it.deed == deed).collect();
        if of.is_empty() {
            continue;
        }
        let level: Vec<&Update<'_>> =
            of.iter().copied().filter(|it| deed != "add" || it.order == "same").collect();
        // An honest barrier gives the last activation time more precisely than probes.
        let by_barrier = told.is_some_and(|told| told != Answers::Taken) && !batched;
        let mut found = if by_barrier { by_answers(&level, sheet) } else { None };
        found = found.or_else(|| mean(&costs(&level, batched)));
        if deed == "add" {
            let moves = moves(&of, batched, sheet);
            found = found.or(moves);
        }
        let Some((value, half)) = found else { continue };
        // With batches, only the hardware is visible; otherwise the slower of hardware and agent.
        let agent = flow_mod.filter(|_| !batched);
        let what = match by_barrier {
            true => {
                "slope of control_plane_ns over the number of rules, for which the barrier waits"
            }
            false => "time between activations, from acts_after_ns and acts_by_ns",
        };
        match agent {
            Some((agent, known)) if value <= agent + half + known + SHARE * agent => {
                sheet.assume(
                    key,
                    0,
                    format!("hidden behind agent.flow_mod_ns, at most {value:.0} ns"),
                );
            }
            _ => sheet.say(key, Value { value, half, from: from(&of, what) }),
        }
    }
    if has_software && sheet.has("hardware.modify_ns") {
        let like = sheet.model().hardware.modify_ns;
        for key in ["hardware.insert_ns", "hardware.delete_ns"] {
            sheet.assume(key, like, "hidden by the software path; same as modify_ns");
        }
    }
    if told == Some(Answers::Taken) && !batched {
        activation(&seen, flow_mod, sheet);
    }
}

/// Returns the time per entry from barriers that wait for all entries.
fn by_answers(updates: &[&Update<'_>], sheet: &FittedModel) -> Option<(f64, f64)> {
    let answer =
        |update: &&Update<'_>| Some(Point { x: update.rules, y: update.control_ns?, half: 0.0 });
    let dots: Vec<Point> = updates.iter().filter_map(answer).collect();
    // The cost of the barrier itself may overlap with writing; its delay comes afterwards.
    let (message, late) = (sheet.model().agent.message_ns, sheet.model().barrier.delay_ns);
    let known = sheet.found("barrier.delay_ns").map_or(0.0, |found| found.half);
    let each = |dot: &Point| Point {
        x: 0.0,
        y: (dot.y - late as f64) / dot.x,
        half: (message as f64 + known) / dot.x,
    };
    let found = line(&dots).map(|it| it.slope);
    found.or_else(|| mean(&dots.iter().map(each).collect::<Vec<_>>()))
}

fn costs(updates: &[&Update<'_>], batched: bool) -> Vec<Point> {
    updates.iter().flat_map(|update| update.costs(batched)).collect()
}

/// Fits the cost of moves if rising or falling priorities take longer; returns the time per entry
/// without moves.
fn moves(updates: &[&Update<'_>], batched: bool, sheet: &mut FittedModel) -> Option<(f64, f64)> {
    let of = |order: &str| -> Vec<&Update<'_>> {
        updates.iter().copied().filter(|update| update.order == order).collect()
    };
    let same = of("same");
    let mut at_zero = None;
    let mut dearest: Option<(u64, Value)> = None;
    let mut tried = 0;
    for (place, order) in ["ascending", "descending"].into_iter().enumerate() {
        let of = of(order);
        let found = if batched { line(&costs(&of, true)) } else { bent(&of, &same) };
        let Some(found) = found else { continue };
        tried += 1;
        at_zero = at_zero.or(Some(found.at_zero));
        let (value, half) = found.slope;
        if value > CLEAR * half && dearest.as_ref().is_none_or(|(_, it)| value > it.value) {
            let what = format!(
                "slope of the time per rule over the number of rules, priority_order={order}"
            );
            dearest = Some((place as u64, Value { value, half, from: from(&of, &what) }));
        }
    }
    match dearest {
        Some((place, found)) => {
            sheet.word("hardware.moves", place, found.from.clone());
            sheet.say("hardware.move_ns", found);
        }
        None if tried == 2 => {
            let what = "neither ascending nor descending priorities take longer";
            let value = Value { value: 0.0, half: 0.0, from: from(updates, what) };
            sheet.say("hardware.move_ns", value);
        }
        None => {}
    }
    at_zero
}

/// Fits the time per entry over the number of entries, without batches.
///
/// It compares the total time with that of the same number of entries of equal priority. Otherwise
/// it compares the second half of the entries with the first.
fn bent(updates: &[&Update<'_>], same: &[&Update<'_>]) -> Option<LinearFit> {
    let span = |update: &Update<'_>| update.span(0, update.times.len() - 1).0;
    let ends = |update: &Update<'_>| update.span(0, update.times.len() - 1).1;
    let level = |rules: f64| {
        let alike = same.iter().filter(|update| update.rules == rules);
        let dots = alike.map(|update| Point { x: rules, y: span(update), half: ends(update) });
        mean(&dots.collect::<Vec<_>>())
    };
    let mut slopes = Vec::new();
    let mut at_zero = Vec::new();
    for update in updates.iter().filter(|update| update.times.len() > 2) {
        let (steps, known) = (update.rules - 1.0, ends(update));
        let (all, pairs) = (span(update), steps * update.rules / 2.0);
        let (slope, half) = match level(update.rules) {
            Some((level, off)) => ((all - level) / pairs, (known + off) / pairs),
            None => {
                let middle = update.times.len() / 2;
                let (half, _) = update.span(0, middle);
                let share = middle as f64;
                let later = all - half - half * (steps - share) / share;
                let weight = share * (steps - share) / 2.0 * (steps / share);
                (later / weight, 2.0 * known / weight)
            }
        };
        slopes.push(Point { x: 0.0, y: slope, half });
        let rest =
            Point { x: 0.0, y: all / steps - slope * update.rules / 2.0, half: known / steps };
        at_zero.push(Point { half: rest.half + half * update.rules / 2.0, ..rest });
    }
    Some(LinearFit { at_zero: mean(&at_zero)?, slope: mean(&slopes)? })
}

/// Fits batches; returns whether there are any.
fn batches(updates: &[&Update<'_>], flow_mod: Option<(f64, f64)>, sheet: &mut FittedModel) -> bool {
    // If entries move, the first entry of a batch may take long.
    let level: Vec<&Update<'_>> = updates
        .iter()
        .copied()
        .filter(|update| update.deed != "add" || update.order == "same")
        .filter(|update| update.is_batched())
        .collect();
    let all = || level.iter().filter_map(|update| update.batches.as_ref());
    let intervals: Vec<Bounds> = all().flat_map(|batches| batches.intervals()).collect();
    let middles = || intervals.iter().map(|interval| interval.middle());
    let least = middles().fold(f64::INFINITY, f64::min);
    // A batch is skipped if nothing waits; the shortest intervals give the period.
    let Some(beat) = median(middles().filter(|it| *it < SINGLE * least).collect()) else {
        return false;
    };
    let beats = |interval: &Bounds| (interval.middle() / beat).round();
    let is_off = |interval: &Bounds| {
        let off = (interval.middle() - beat * beats(interval)).abs();
        off > OFF_BEAT * beat + interval.half()
    };
    if intervals.iter().any(is_off) {
        return false;
    }
    let interval = |batches: &Batches| {
        let all: f64 = batches.intervals().iter().map(beats).sum();
        let span = batches.begins[batches.begins.len() - 1].since(batches.begins[0]);
        Point { x: 0.0, y: span.middle() / all, half: span.half() / all }
    };
    let Some((value, half)) = mean(&all().map(interval).collect::<Vec<_>>()) else {
        return false;
    };
    let what = format!("time between batches, {} pauses", intervals.len());
    let interval_ns = value;
    sheet.say("hardware.batch_interval_ns", Value { value, half, from: from(&level, &what) });
    sizes(&level, interval_ns, flow_mod, sheet);
    let orders = level.iter().filter_map(|update| update.inner_order());
    let shares: Vec<f64> = orders.map(|order| order.inverted_share()).collect();
    if let Some(share) = median(shares) {
        let word = u64::from(share > 0.25);
        let what =
            format!("{:.0} % of pairs within batches activate in reverse order", share * 100.0);
        sheet.word("hardware.order", word, from(&level, &what));
    } else {
        sheet.assume(
            "hardware.order",
            0,
            "batches are shorter than the uncertainty of an activation time",
        );
    }
    true
}

/// Fits the number of entries per batch, if one was full.
fn sizes(
    updates: &[&Update<'_>],
    interval_ns: f64,
    flow_mod: Option<(f64, f64)>,
    sheet: &mut FittedModel,
) {
    let whole = |batches: &Batches| -> Vec<usize> {
        let mut sizes: Vec<usize> = batches.groups.iter().map(Range::len).collect();
        sizes.pop();
        sizes
    };
    let sizes: Vec<usize> =
        updates.iter().filter_map(|update| update.batches.as_ref()).flat_map(whole).collect();
    let Some(most) = sizes.iter().copied().max() else { return };
    // Some entries activate through other paths, and are missing from their batch.
    let full: Vec<usize> =
        sizes.iter().copied().filter(|size| *size as f64 >= FULL * most as f64).collect();
    let off = full.iter().map(|size| most - size).max().unwrap_or(0);
    // A size that matches the rate of the agent is not a limit of the hardware.
    let taken = flow_mod.filter(|(ns, _)| *ns > 0.0).map(|(ns, _)| interval_ns / ns);
    let is_by_agent = taken.is_some_and(|taken| (taken - most as f64).abs() <= 2.0 + 0.05 * taken);
    if 2 * full.len() >= sizes.len() && !is_by_agent {
        let what = format!("{} of {} batches before the last", full.len(), sizes.len());
        let half = off as f64 + (1.0 - FULL) * most as f64;
        let value = Value { value: most as f64, half, from: from(updates, &what) };
        sheet.say("hardware.batch_rules", value);
    } else {
        let why = format!("no batch was full; the largest had {most} rules");
        sheet.assume("hardware.batch_rules", BATCH_MAX, why);
    }
}

/// Fits the time from writing to activation, from the very first entry.
fn activation(updates: &[&Update<'_>], flow_mod: Option<(f64, f64)>, sheet: &mut FittedModel) {
    let insert = sheet.model().hardware.insert_ns as f64;
    let agent = flow_mod.map_or(0.0, |(ns, _)| ns);
    let added = updates.iter().filter(|update| update.deed == "add");
    let dots: Vec<Point> = added
        .clone()
        .filter_map(|update| {
            let first = (!update.times.is_empty()).then(|| update.times.nth(0))?;
            Some(Point { x: 0.0, y: first.middle() - agent - insert, half: first.half() })
        })
        .collect();
    let widest = dots.iter().map(|dot| dot.half).fold(0.0, f64::max);
    let added: Vec<&Update<'_>> = added.copied().collect();
    if let Some((value, half)) = mean(&dots).filter(|_| !sheet.has("hardware.activation_ns")) {
        let half = half.max(widest);
        let value = if value > 2.0 * half { value } else { 0.0 };
        let what = "activation time of the first rule, minus the time of agent and hardware for it";
        sheet.say("hardware.activation_ns", Value { value, half, from: from(&added, what) });
    }
}
