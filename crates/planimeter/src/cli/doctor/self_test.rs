//! `planimeter doctor --calibrate`: measures the tester without a target over each available link,
//! and explains what this means for results.
//!
//! Each link has a separate thread, because a tester pins its thread to its core permanently.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::time::Nanos;
use record::number;
use record::{Calibration, Distribution};
use serde_json::json;
use tester::pauses::AWAY;

use super::super::failure::{Failure, FailureKind};
use super::super::{signals, variables};
use runner::calibration;
use targets::name::Link;
use targets::{Bench, HostPaths};
use workload::parameter::{Effort, Parameters};

/// All links that can loop the tester to itself.
const LINKS: [Link; 5] = [Link::Memory, Link::Memif, Link::Veth, Link::VethXdp, Link::VethLive];

/// Result for a link, or why there is none.
pub struct LinkResult {
    link: Link,
    found: Result<Calibration, String>,
}

/// Measures over one link after the other.
pub fn all(surroundings: &HostPaths) -> Result<Vec<LinkResult>, Failure> {
    // Without privileges, the process enters a user namespace, before there are threads.
    variables::best_link();
    let stop = signals::flag()?;
    let mut rows = Vec::new();
    for link in LINKS {
        let found = std::thread::scope(|scope| {
            let thread = scope.spawn(|| one(link, surroundings, &stop));
            thread.join().unwrap_or_else(|_| Err("the measurement panicked".into()))
        });
        if stop.load(Ordering::Relaxed) {
            return Err(Failure { kind: FailureKind::Interrupted, line: "interrupted".into() });
        }
        rows.push(LinkResult { link, found });
    }
    Ok(rows)
}

fn one(
    link: Link,
    surroundings: &HostPaths,
    stop: &Arc<AtomicBool>,
) -> Result<Calibration, String> {
    let parameters = Parameters::at(Effort::Quick);
    let mut bench =
        Bench::open(link, surroundings, &parameters, stop).map_err(|error| error.to_string())?;
    let found = calibration::calibrate(&mut bench, &parameters).map_err(|it| it.to_string())?;
    let found = found.ok_or_else(|| "the tester has no limits in virtual time".to_string())?;
    Ok(Calibration { controller: calibration::controller(link), ..found })
}

/// Returns the rows as JSON.
pub fn json(rows: &[LinkResult]) -> serde_json::Value {
    let row = |row: &LinkResult| match &row.found {
        Ok(found) => json!({ "link": row.link.name(), "found": found }),
        Err(why) => json!({ "link": row.link.name(), "missing": why }),
    };
    rows.iter().map(row).collect()
}

/// Head of the table.
const TABLE_HEAD: &str = "\
Tester without a target, 64-byte frames:

link           max. sent,    no loss,      latency, us,     latency,    pacing,   longest    lost
                 frames/s    frames/s      mean ± error      p99, us    p50, ns stall, us  frames
";

/// Formats the rows and their meaning as text.
pub fn table(rows: &[LinkResult]) -> String {
    let mut text = String::from(TABLE_HEAD);
    for row in rows {
        match &row.found {
            Ok(found) => text.push_str(&line(row.link, found)),
            Err(why) => {
                writeln!(text, "{:13}  unsupported: {why}", row.link.name()).expect("a string")
            }
        }
    }
    text.push('\n');
    if let Some(found) = rows.iter().find_map(|row| row.found.as_ref().ok()) {
        text.push_str(&cores(found));
    }
    text.push('\n');
    let mut told: Vec<&str> = Vec::new();
    for found in rows.iter().filter_map(|row| row.found.as_ref().ok()?.controller.as_ref()) {
        if !told.contains(&found.channel.as_str()) {
            told.push(&found.channel);
            writeln!(text, "{}", calibration::controller_sentence(found)).expect("a string");
        }
    }
    text.push_str(&meaning());
    text
}

fn line(link: Link, found: &Calibration) -> String {
    let micro = |ns: f64| format!("{:.2}", ns / 1e3);
    let of = |it: &Option<Distribution>, pick: fn(&Distribution) -> Option<u64>| {
        it.as_ref().and_then(pick)
    };
    let dash = || "-".to_string();
    let mean = found.latency.as_ref().map_or_else(dash, |it| micro(it.ns_mean));
    let error = found.latency_ns_error.map_or_else(dash, micro);
    let high = of(&found.latency, |it| it.ns_p99).map_or_else(dash, |ns| micro(ns as f64));
    let pacing = of(&found.pacing_error, |it| it.ns_p50).map_or_else(dash, |ns| ns.to_string());
    let away = found.stalls.map_or(0, |stalls| stalls.ns_longest);
    format!(
        "{:13}{:>12}{:>12}{:>9} ± {:<8}{high:>11}{pacing:>11}{:>10}{:>8}\n",
        link.name(),
        number::count(found.rate_pps_saturated as i64),
        number::count(found.rate_pps_ceiling as i64),
        mean,
        error,
        away / 1000,
        found.frames_dropped.unwrap_or(0),
    )
}

fn cores(found: &Calibration) -> String {
    let mut text = String::new();
    for core in &found.cores {
        let share = core.ns_total as f64 * 100.0 / core.ns_watched.max(1) as f64;
        writeln!(
            text,
            "core {:<3} interrupted {} times in {}: {share:.2} % of the time, at most {}",
            core.core,
            core.count,
            Nanos(core.ns_watched),
            Nanos(core.ns_longest)
        )
        .expect("a string");
    }
    text
}

/// Explains what the numbers mean for results.
fn meaning() -> String {
    format!(
        "\nA target that forwards more frames than the tester does without loss cannot be measured \
         over that link: its trials are marked tester_limited.\nThe value after ± is the \
         uncertainty of a mean latency after the tester's own is subtracted; single latencies are \
         uncertain by the longest stall.\nFrames that arrive during a stall of {AWAY} or more have \
         no latency and are counted separately; a trial with a stall of a millisecond is marked.\n"
    )
}
