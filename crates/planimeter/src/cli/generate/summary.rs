//! Summary of sent and received frames as text: one or two lines for each stream and replay, one
//! for each port.

use tester::trial::ReplayReport;
use tester::trial::{Classes, OFFERED_SHARE_MIN, Pacing, StreamReport, TrialReport};

use crate::cli::output::say;

/// Prints the summary.
pub fn print(report: &TrialReport) {
    report.streams.iter().for_each(print_stream);
    report.replays.iter().for_each(print_replay);
    for (place, port) in report.ports.iter().enumerate() {
        let counters = &port.counters;
        say!(
            "port {} ({}): {} frames and {} bytes sent, {} frames and {} bytes received",
            place + 1,
            port.name,
            counters.tx_frames,
            counters.tx_bytes,
            counters.rx_frames,
            counters.rx_bytes
        );
    }
    let share = report.total.offered_share();
    if share < OFFERED_SHARE_MIN {
        say!(
            "only {:.1} % of the intended load was sent, limited by {}",
            share * 100.0,
            report.limit()
        );
    }
}

fn print_stream(stream: &StreamReport) {
    let load = &stream.load;
    say!(
        "stream {}: {} frames intended, {} sent, {}",
        stream.id,
        load.intended,
        load.offered,
        back(&stream.classes)
    );
    if let Some(gaps) = gaps(&stream.pacing) {
        say!("stream {}: {gaps}", stream.id);
    }
}

/// Formats the received frames.
fn back(classes: &Classes) -> String {
    let mut line =
        format!("{} received at the right port, {} at another", classes.correct, classes.elsewhere);
    for (count, what) in [
        (classes.duplicate, "twice"),
        (classes.reordered, "out of order"),
        (classes.corrupt, "corrupt"),
        (classes.late, "too late to check for duplicates"),
    ] {
        if count > 0 {
            line += &format!(", {count} {what}");
        }
    }
    line
}

/// Formats the gaps between frames, and their deviation from the intended ones.
fn gaps(pacing: &Pacing) -> Option<String> {
    let (gaps, wrong) = (&pacing.gaps, &pacing.gap_error);
    let (least, most) = (gaps.ns_min()?, gaps.ns_max()?);
    let (usual, wrong_usual) = (gaps.ns_at_quantile(0.5)?, wrong.ns_at_quantile(0.5)?);
    let wrong_most = wrong.ns_max()?;
    Some(format!(
        "gaps: median {usual} ns, {least} to {most} ns; gap error: median {wrong_usual} ns, \
         maximum {wrong_most} ns"
    ))
}

fn print_replay(replay: &ReplayReport) {
    let counts = &replay.counts;
    let end = match (replay.is_complete, replay.is_behind) {
        (true, _) => "whole",
        (false, true) => "stopped early, frames were due",
        (false, false) => "stopped early",
    };
    let mut line = format!(
        "replay {}: {} frames and {} bytes sent, {} passes, {end}",
        replay.id, counts.frames, counts.bytes, counts.passes
    );
    for (count, what) in [
        (counts.refused_long, "too long"),
        (counts.refused_short, "too short"),
        (counts.refused_cut, "truncated and not sent"),
        (counts.padded, "padded"),
        (counts.filled, "truncated and filled"),
        (counts.starved, "late reads of the file"),
    ] {
        if count > 0 {
            line += &format!(", {count} {what}");
        }
    }
    say!("{line}");
    if let Some(seen) = &replay.back {
        say!(
            "replay {}: {} signed, {} too short for a signature; {}",
            replay.id,
            counts.signed,
            counts.frames - counts.signed,
            back(&seen.classes)
        );
    }
    if let Some(gaps) = gaps(&replay.pacing) {
        say!("replay {}: {gaps}", replay.id);
    }
    replay.warnings.iter().for_each(|warning| say!("replay {}: {warning}", replay.id));
}
