//! How entries reach the hardware, and what a barrier's answer says of that.
//!
//! A barrier whose answer never came before the last rule acted is honest; one that came always as long before
//! is answered when entries are written; any other when the agent has taken them. What is seen of
//! rules that act one after the other is the slower of agent and hardware.
//! Source: metrics C2 to C5 of the method; OFLOPS-SUME, section IV-B.

use std::ops::Range;

use switch::behaviour::model::keys::BATCH_MAX;
use switch::behaviour::model::{Answers, InHardware};

use super::evidence::Value;
use super::line::{Dot, Line, line, mean, median};
use super::sheet::Sheet;
use super::updates::{EXPERIMENT, Update};

/// What a value has to differ by from another beyond what is known of both: a share of it.
const SHARE: f64 = 0.02;

/// How far from a multiple of their interval batches may begin: a share of it.
const OFF_BEAT: f64 = 0.15;

/// Batches of so many rules of the largest are as full as that: a share.
const FULL: f64 = 0.95;

/// Moves cost something if they are so many half-widths above nothing.
const CLEAR: f64 = 1.5;

fn from(updates: &[&Update<'_>], what: &str) -> String {
    let mut names: Vec<&str> = updates.iter().map(|update| update.run.name.as_str()).collect();
    names.dedup();
    format!("measured: {}, {EXPERIMENT}, {what}", names.join(" and "))
}

/// By which event barriers are answered. None where no run tells.
pub fn answers(
    updates: &[Update<'_>],
    tier: Option<InHardware>,
    sheet: &mut Sheet,
) -> Option<Answers> {
    // Where software forwards what the hardware has not got yet, additions act at once.
    let deeds = match tier {
        Some(InHardware::Used) => ["modify", "delete", "add"],
        _ => ["add", "modify", "delete"],
    };
    let added: Vec<&Update<'_>> = preferred(updates, &deeds);
    let gaps: Vec<(f64, f64, f64)> = added
        .iter()
        .filter_map(|update| update.gap_ns.map(|(gap, half)| (update.rules, gap, half)))
        .collect();
    let is_late = |(_, gap, half): &(f64, f64, f64)| gap > half;
    if gaps.is_empty() {
        return None;
    }
    let widest = gaps.iter().map(|(_, _, half)| *half).fold(0.0, f64::max);
    let least = gaps.iter().map(|(_, gap, _)| *gap).fold(f64::INFINITY, f64::min);
    let most = gaps.iter().map(|(_, gap, _)| *gap).fold(f64::NEG_INFINITY, f64::max);
    let range = format!(
        "barrier_gap_ns_max: the last rule acted {least:.0} to {most:.0} ns after the answer, each known to \
         ± {widest:.0}"
    );
    let from = from(&added, &range);
    let counts = gaps.iter().map(|(rules, _, _)| *rules);
    let is_many = counts.clone().fold(0.0, f64::max) > counts.fold(f64::INFINITY, f64::min);
    let told = if !gaps.iter().any(is_late) {
        Answers::Acting
    } else if is_many && gaps.iter().all(is_late) && most - least <= 2.0 * widest {
        let middle = gaps.iter().map(|(_, gap, _)| *gap).sum::<f64>() / gaps.len() as f64;
        let from = format!("{from}; what the answer itself is late by is not told apart");
        sheet.say("hardware.activation_ns", Value { value: middle, half: widest, from });
        sheet.assume("barrier.delay_ns", 0, "not told apart from hardware.activation_ns");
        Answers::Written
    } else {
        Answers::Taken
    };
    sheet.word("barrier.answers", told as u64, from);
    Some(told)
}

/// Updates of the first of these deeds that there are any of.
fn preferred<'u, 'a>(updates: &'u [Update<'a>], deeds: &[&str]) -> Vec<&'u Update<'a>> {
    let of = |deed: &&str| -> Vec<&'u Update<'a>> {
        updates.iter().filter(|update| update.deed == *deed).collect()
    };
    deeds.iter().map(of).find(|found| !found.is_empty()).unwrap_or_default()
}

/// What writing takes, and its batches; `flow_mod` is what the agent takes for each.
pub fn fit(
    updates: &[Update<'_>],
    (told, tier): (Option<Answers>, Option<InHardware>),
    flow_mod: Option<(f64, f64)>,
    sheet: &mut Sheet,
) {
    // Software forwards what the hardware has not got yet, and what it has no more.
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
        // An honest barrier tells when the last rule acts, better than probes do.
        let by_barrier = told.is_some_and(|told| told != Answers::Taken) && !batched;
        let mut found = if by_barrier { by_answers(&level, sheet) } else { None };
        found = found.or_else(|| mean(&costs(&level, batched)));
        if deed == "add" {
            let moves = moves(&of, batched, sheet);
            found = found.or(moves);
        }
        let Some((value, half)) = found else { continue };
        // In batches the hardware alone is seen; otherwise the slower of it and the agent.
        let agent = flow_mod.filter(|_| !batched);
        let what = match by_barrier {
            true => "control_plane_ns over the number of rules, the barrier waiting for them",
            false => "from one rule's acting to the next one's, by rules_acting",
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
            sheet.assume(key, like, "software forwards meanwhile and hides it; as modify_ns");
        }
    }
    if told == Some(Answers::Taken) && !batched {
        activation(&seen, flow_mod, sheet);
    }
}

/// What a rule takes by when barriers behind all of them were answered that wait for them.
fn by_answers(updates: &[&Update<'_>], sheet: &Sheet) -> Option<(f64, f64)> {
    let answer =
        |update: &&Update<'_>| Some(Dot { x: update.rules, y: update.control_ns?, half: 0.0 });
    let dots: Vec<Dot> = updates.iter().filter_map(answer).collect();
    // The barrier's own time may pass while entries are written; what it is late by comes after.
    let (message, late) = (sheet.model().agent.message_ns, sheet.model().barrier.delay_ns);
    let known = sheet.found("barrier.delay_ns").map_or(0.0, |found| found.half);
    let each = |dot: &Dot| Dot {
        x: 0.0,
        y: (dot.y - late as f64) / dot.x,
        half: (message as f64 + known) / dot.x,
    };
    let found = line(&dots).map(|it| it.slope);
    found.or_else(|| mean(&dots.iter().map(each).collect::<Vec<_>>()))
}

fn costs(updates: &[&Update<'_>], batched: bool) -> Vec<Dot> {
    updates.iter().flat_map(|update| update.costs(batched)).collect()
}

/// What moving an entry takes, if priorities that rise or fall cost more; then what an entry takes without.
fn moves(updates: &[&Update<'_>], batched: bool, sheet: &mut Sheet) -> Option<(f64, f64)> {
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
            let what = format!("what a rule takes over how many there are, priority_order={order}");
            dearest = Some((place as u64, Value { value, half, from: from(&of, &what) }));
        }
    }
    match dearest {
        Some((place, found)) => {
            sheet.word("hardware.moves", place, found.from.clone());
            sheet.say("hardware.move_ns", found);
        }
        None if tried == 2 => {
            let what = "neither rising nor falling priorities cost more";
            let value = Value { value: 0.0, half: 0.0, from: from(updates, what) };
            sheet.say("hardware.move_ns", value);
        }
        None => {}
    }
    at_zero
}

/// What a rule takes over how many there are, without batches: by how much longer all of them take than as many of
/// the same priority, or else by how much longer the later half takes than the earlier.
fn bent(updates: &[&Update<'_>], same: &[&Update<'_>]) -> Option<Line> {
    let span = |update: &Update<'_>| -> Option<f64> {
        Some(update.times_ns.last()? - update.times_ns.first()?)
    };
    let ends = |update: &Update<'_>| -> f64 {
        let halves = [update.halves_ns.first(), update.halves_ns.last()];
        halves.into_iter().flatten().sum()
    };
    let level = |rules: f64| {
        let alike = same.iter().filter(|update| update.rules == rules);
        let dots =
            alike.filter_map(|update| Some(Dot { x: rules, y: span(update)?, half: ends(update) }));
        mean(&dots.collect::<Vec<_>>())
    };
    let mut slopes = Vec::new();
    let mut at_zero = Vec::new();
    for update in updates.iter().filter(|update| update.times_ns.len() > 2) {
        let (steps, known) = (update.rules - 1.0, ends(update));
        let (all, pairs) = (span(update)?, steps * update.rules / 2.0);
        let (slope, half) = match level(update.rules) {
            Some((level, off)) => ((all - level) / pairs, (known + off) / pairs),
            None => {
                let middle = update.times_ns.len() / 2;
                let half = update.times_ns[middle] - update.times_ns[0];
                let share = middle as f64;
                let later = all - half - half * (steps - share) / share;
                let weight = share * (steps - share) / 2.0 * (steps / share);
                (later / weight, 2.0 * known / weight)
            }
        };
        slopes.push(Dot { x: 0.0, y: slope, half });
        let rest = Dot { x: 0.0, y: all / steps - slope * update.rules / 2.0, half: known / steps };
        at_zero.push(Dot { half: rest.half + half * update.rules / 2.0, ..rest });
    }
    Some(Line { at_zero: mean(&at_zero)?, slope: mean(&slopes)? })
}

/// Batches: whether there are any.
fn batches(updates: &[&Update<'_>], flow_mod: Option<(f64, f64)>, sheet: &mut Sheet) -> bool {
    // Where entries move, a batch's first may take long.
    let level: Vec<&Update<'_>> = updates
        .iter()
        .copied()
        .filter(|update| update.deed != "add" || update.order == "same")
        .filter(|update| update.batches().len() > 1)
        .collect();
    let intervals: Vec<f64> = level.iter().flat_map(|update| update.intervals()).collect();
    let Some(least) = intervals.iter().copied().min_by(f64::total_cmp) else { return false };
    let beats = |interval: f64| (interval / least).round();
    let is_off = |interval: &&f64| (*interval / least - beats(**interval)).abs() > OFF_BEAT;
    if intervals.iter().any(|it| is_off(&it)) {
        return false;
    }
    let interval = |update: &&Update<'_>| {
        let intervals = update.intervals();
        let all: f64 = intervals.iter().map(|it| beats(*it)).sum();
        Dot {
            x: 0.0,
            y: intervals.iter().sum::<f64>() / all,
            half: 2.0 * update.resolution_ns / all,
        }
    };
    let Some((value, half)) = mean(&level.iter().map(interval).collect::<Vec<_>>()) else {
        return false;
    };
    let what = format!("from the beginning of a batch to the next, {} pauses", intervals.len());
    let interval_ns = value;
    sheet.say("hardware.batch_interval_ns", Value { value, half, from: from(&level, &what) });
    sizes(&level, interval_ns, flow_mod, sheet);
    let shares: Vec<f64> = level.iter().filter_map(|update| update.inversions()).collect();
    if let Some(share) = median(shares) {
        let word = u64::from(share > 0.25);
        let what =
            format!("{:.0} % of pairs within batches act the other way round", share * 100.0);
        sheet.word("hardware.order", word, from(&level, &what));
    } else {
        sheet.assume(
            "hardware.order",
            0,
            "batches take no longer than a rule's moment is known to",
        );
    }
    true
}

/// How many rules a batch takes, if one was full.
fn sizes(
    updates: &[&Update<'_>],
    interval_ns: f64,
    flow_mod: Option<(f64, f64)>,
    sheet: &mut Sheet,
) {
    let whole = |update: &&Update<'_>| -> Vec<usize> {
        let mut sizes: Vec<usize> = update.batches().iter().map(Range::len).collect();
        sizes.pop();
        sizes
    };
    let sizes: Vec<usize> = updates.iter().flat_map(whole).collect();
    let Some(most) = sizes.iter().copied().max() else { return };
    // Some rules act by other ways, and are missing where they are looked for.
    let full: Vec<usize> =
        sizes.iter().copied().filter(|size| *size as f64 >= FULL * most as f64).collect();
    let off = full.iter().map(|size| most - size).max().unwrap_or(0);
    // As many as the agent takes meanwhile are no limit of the hardware.
    let taken = flow_mod.filter(|(ns, _)| *ns > 0.0).map(|(ns, _)| interval_ns / ns);
    let is_by_agent = taken.is_some_and(|taken| (taken - most as f64).abs() <= 2.0 + 0.05 * taken);
    if 2 * full.len() >= sizes.len() && !is_by_agent {
        let what = format!("{} of {} batches that others followed", full.len(), sizes.len());
        let half = off as f64 + (1.0 - FULL) * most as f64;
        let value = Value { value: most as f64, half, from: from(updates, &what) };
        sheet.say("hardware.batch_rules", value);
    } else {
        let why = format!("no batch was full; the largest had {most} rules");
        sheet.assume("hardware.batch_rules", BATCH_MAX, why);
    }
}

/// From having been written until acting, by the first rule of all.
fn activation(updates: &[&Update<'_>], flow_mod: Option<(f64, f64)>, sheet: &mut Sheet) {
    let insert = sheet.model().hardware.insert_ns as f64;
    let agent = flow_mod.map_or(0.0, |(ns, _)| ns);
    let added = updates.iter().filter(|update| update.deed == "add");
    let dots: Vec<Dot> = added
        .clone()
        .filter_map(|update| {
            let first = *update.times_ns.first()?;
            Some(Dot { x: 0.0, y: first - agent - insert, half: update.resolution_ns })
        })
        .collect();
    let widest = dots.iter().map(|dot| dot.half).fold(0.0, f64::max);
    let added: Vec<&Update<'_>> = added.copied().collect();
    if let Some((value, half)) = mean(&dots).filter(|_| !sheet.has("hardware.activation_ns")) {
        let half = half.max(widest);
        let value = if value > 2.0 * half { value } else { 0.0 };
        let what = "when the first rule acts, less what agent and hardware take for it";
        sheet.say("hardware.activation_ns", Value { value, half, from: from(&added, what) });
    }
}
