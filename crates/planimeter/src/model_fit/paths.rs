//! Data path of frames: latency of the hardware, and whether software forwards frames too.
//!
//! The minimum latency at each frame size is that of a path. The difference between median and
//! minimum is half of the jitter; later frames are slow ones. A software path is present if the
//! first frames of an entry take much longer than its last ones. The latency of the links is
//! subtracted if the tester was measured without a target. Source: the OFLOPS-SUME paper, section
//! IV-A.

use elements::hardware_model::model::InHardware;
use record::Record;
use tester::stream::GAP_BYTES;

use super::line::{LinearFit, Point, line, mean};
use super::model::FittedModel;
use super::observations::{ObservedCell, ObservedTrial, TargetRuns, Value, place};
use super::updates::Update;

const EXPERIMENT: &str = "forwarding-latency";

/// Minimum ratio of the latency of an entry's first frames to that of its last ones for a software
/// path.
const SLOWER: f64 = 3.0;

/// Below this share of probes returned before the update, a link was the limit.
const LOST: f64 = 0.9;

/// Relative uncertainty of a rate that is known only from the forwarded frames.
const RATE_SHARE: f64 = 0.1;

/// From this share of probes returned, nearly all returned.
const KEPT: f64 = 0.98;

/// Number of frames that may queue for a link with a known rate only.
const LINK_QUEUE_FRAMES: u64 = 100;

/// Keys of the slow frames.
const SLOW_KEYS: [&str; 3] =
    ["path_hardware.slow_percent", "path_hardware.slow_ns", "path_hardware.slow_byte_ps"];

/// Bound for the sample minimum with uniform jitter, in units of jitter divided by the number of
/// frames.
///
/// The sample minimum is within this of the true minimum in 95 of 100 cases.
const LEAST_MISSED: f64 = 3.0;

/// A frame is slow if its latency exceeds the minimum by this many times the jitter.
const SLOW: f64 = 2.0;

/// Fits whether software forwards the first frames of entries, from their latency.
pub fn tiers(updates: &[Update<'_>], sheet: &mut FittedModel) -> Option<InHardware> {
    let seen = || updates.iter().filter_map(|update| Some((update, update.frames_ns?)));
    let slower = |(_, (first, last)): &(&Update<'_>, (f64, f64))| *first > SLOWER * last;
    let from = |update: &Update<'_>, (first, last): (f64, f64)| {
        format!(
            "measured: {}, rule-activation, first_frame_ns_p50 and last_frame_ns_p50: {first:.0} and {last:.0}",
            update.run.name
        )
    };
    let Some((update, frames)) = seen().find(slower) else {
        let (update, frames) = seen().next()?;
        sheet.word("tiers.in_hardware", InHardware::All as u64, from(update, frames));
        return Some(InHardware::All);
    };
    let told = from(update, frames) + "; assumed: a frame, not time, moves rules to hardware";
    sheet.word("tiers.in_hardware", InHardware::Used as u64, told);
    let crowded = updates
        .iter()
        .filter(|update| update.deed == "add" && update.back_ratio.is_some_and(|it| it < LOST));
    let rates: Vec<Point> = crowded
        .clone()
        .map(|update| {
            let y = update.back_ratio.unwrap_or(0.0) * update.probes_pps;
            Point { x: 0.0, y, half: RATE_SHARE * y }
        })
        .collect();
    let mut link_ns = 0.0;
    if let (Some(update), Some((value, half))) = (crowded.clone().next(), mean(&rates)) {
        let from = place(update.run, "rule-activation", "probes_back_ratio of probes_pps");
        sheet.say("tiers.link_pps", Value { value, half: half.max(RATE_SHARE * value), from });
        let why = "frames that wait for the link are not visible";
        sheet.assume("tiers.link_queue_frames", LINK_QUEUE_FRAMES, why);
        link_ns = 1e9 / value;
    }
    let slow = seen().filter(slower);
    // Probes that all return do not queue: their latency is that of the link and the software.
    let free = slow.clone().find(|(update, _)| update.back_ratio.is_some_and(|it| it >= KEPT));
    if let Some((update, (first, last))) = free {
        let (least, mean) = update.first_frame_ns.unwrap_or((first, first));
        // Jitter is uniform.
        let jitter = 2.0 * (mean - least);
        let what = "first_frame_ns_min minus last_frame_ns_p50 and a frame's time on the link";
        let from = place(update.run, "rule-activation", what);
        let half = last + 2.0 * RATE_SHARE * link_ns + 2.0 * jitter / update.rules;
        let value = Value { value: least - last - link_ns, half, from };
        sheet.say("path_software.latency_ns", value);
        let what = "twice first_frame_ns_mean minus first_frame_ns_min";
        let from = place(update.run, "rule-activation", what);
        let half = 1.3 * jitter / update.rules.sqrt();
        let value = Value { value: jitter, half, from };
        sheet.say("path_software.jitter_ns", value);
    }
    Some(InHardware::Used)
}

/// Fits the latency of the hardware path, and its capacity.
pub fn fit(evidence: &TargetRuns<'_>, sheet: &mut FittedModel) {
    let metric = |what: &'static str| evidence.cells(EXPERIMENT, what);
    let slowest =
        metric("forwarding_ns_min").iter().filter_map(|it| it.curve).min_by(f64::total_cmp);
    let at_low = |what: &'static str| -> Vec<ObservedCell<'_>> {
        metric(what).into_iter().filter(|it| it.curve == slowest).collect()
    };
    let least = at_low("forwarding_ns_min");
    let Some(first) = least.first() else { return };
    let from = |what: &str| place(first.run, EXPERIMENT, what);
    let frames = |x: f64| -> Vec<u64> {
        let trials = evidence.trials(EXPERIMENT).into_iter();
        let same = trials.filter(|it| it.trial.point.value == x && curve(it) == slowest);
        same.map(|it| it.count("forwarding_ns_mean")).collect()
    };
    let middle = at_low("forwarding_ns_p50");
    // The fewer frames there were, the further their minimum may be above the true one.
    let above = |it: &ObservedCell<'_>| {
        let same = middle.iter().find(|mid| mid.x == it.x && mid.run.name == it.run.name);
        let jitter = same.map_or(0.0, |mid| 2.0 * (mid.value - it.value));
        let fewest = frames(it.x).into_iter().min().unwrap_or(0);
        LEAST_MISSED * jitter / fewest.max(1) as f64
    };
    let dots: Vec<Point> = least
        .iter()
        .map(|it| {
            let (own, known) = own_ns(&it.run.record, it.x);
            Point { x: it.x, y: it.value - own, half: it.half + known + above(it) }
        })
        .collect();
    let Some((latency, byte)) = base(&dots) else { return };
    let what = from("forwarding_ns_min by size, minus the latency of the links");
    sheet.say(
        "path_hardware.latency_ns",
        Value { value: latency.0, half: latency.1, from: what.clone() },
    );
    sheet.say(
        "path_hardware.byte_ps",
        Value { value: byte.0 * 1000.0, half: byte.1 * 1000.0, from: what },
    );
    let rises = |what: &'static str| -> Vec<Point> {
        let of = |it: ObservedCell<'_>| {
            let same = least.iter().find(|low| low.x == it.x && low.run.name == it.run.name)?;
            Some(Point { x: it.x, y: it.value - same.value, half: it.half + same.half })
        };
        at_low(what).into_iter().filter_map(of).collect()
    };
    let middles: Vec<Point> = rises("forwarding_ns_p50");
    let jitter = mean(&middles).map(|(rise, half)| (2.0 * rise, 2.0 * half));
    let Some((jitter, known)) = jitter else { return };
    let value =
        Value { value: jitter, half: known, from: from("twice the median minus the minimum") };
    sheet.say("path_hardware.jitter_ns", value);
    if sheet.model().has_software() {
        for key in SLOW_KEYS {
            sheet.assume(key, 0, "the slowest frames include frames of the software path");
        }
    } else {
        let from = from("forwarding_ns_max and _mean minus the minimum");
        slow((&rises, &frames), jitter, from, sheet);
    }
    capacity(evidence, sheet);
}

/// Returns the latency at size 0 and the slope per byte, both at least 0.
fn base(dots: &[Point]) -> Option<((f64, f64), (f64, f64))> {
    match line(dots) {
        Some(LinearFit { at_zero, slope }) if slope.0 > slope.1 => Some((at_zero, slope)),
        found => {
            let flat = mean(dots)?;
            Some((flat, (0.0, found.map_or(0.0, |it| it.slope.1))))
        }
    }
}

/// Returns the curve of a trial.
fn curve(watched: &ObservedTrial<'_>) -> Option<f64> {
    watched.trial.point.within.as_ref().map(|within| within.value)
}

/// Fits the additional latency of slow frames and their share, from the number of frames in the
/// trials of each size.
fn slow(
    (rises, frames): (&impl Fn(&'static str) -> Vec<Point>, &impl Fn(f64) -> Vec<u64>),
    jitter: f64,
    from: String,
    sheet: &mut FittedModel,
) {
    let far = rises("forwarding_ns_max");
    let means = rises("forwarding_ns_mean");
    let is_slow = |dot: &Point| dot.y > SLOW * jitter + 2.0 * dot.half && dot.y > 0.0;
    let slow: Vec<Point> = far
        .iter()
        .filter(|dot| is_slow(dot))
        .map(|dot| Point { y: dot.y - jitter, ..*dot })
        .collect();
    let share = |mean: &Point| {
        let most = slow.iter().find(|dot| dot.x == mean.x)?;
        let share = (mean.y - jitter / 2.0).max(0.0) / most.y;
        // Which frames are slow is random, even if the repeats agree.
        let seen = frames(mean.x).into_iter().sum::<u64>().max(1) as f64;
        let chance = 2.0 * (share * (1.0 - share).max(0.0) / seen).sqrt();
        let half = 100.0 * (mean.half / most.y).max(chance);
        Some(Point { x: mean.x, y: share * 100.0, half })
    };
    let shares: Vec<Point> = means.iter().filter_map(share).collect();
    let Some((share, known)) = mean(&shares).filter(|_| slow.len() == far.len()) else {
        for key in SLOW_KEYS {
            let from = format!("{from}: no slow frames at some size");
            sheet.say(key, Value { value: 0.0, half: 0.0, from });
        }
        return;
    };
    let [percent, ns, byte_ps] = SLOW_KEYS;
    let value = Value { value: share, half: known, from: from.clone() };
    sheet.say(percent, value);
    if let Some((more, byte)) = base(&slow) {
        let value = Value { value: more.0, half: more.1, from: from.clone() };
        sheet.say(ns, value);
        let value = Value { value: byte.0 * 1000.0, half: byte.1 * 1000.0, from };
        sheet.say(byte_ps, value);
    }
}

/// Fits the capacity in frames per second, where the offered load exceeded it.
fn capacity(evidence: &TargetRuns<'_>, sheet: &mut FittedModel) {
    let offered = evidence.cells(EXPERIMENT, "offered_pps");
    let lost = evidence.cells(EXPERIMENT, "lost_ratio");
    // Loss that also happens at a low rate has another cause, such as late activation.
    let slowest = lost.iter().filter_map(|it| it.curve).min_by(f64::total_cmp);
    let always = lost.iter().any(|it| it.curve == slowest && it.value > 0.005);
    let carried = offered.iter().filter(|it| !always && it.curve != slowest).filter_map(|it| {
        let is_same = |lost: &&ObservedCell<'_>| {
            (lost.x, lost.curve, &lost.run.name) == (it.x, it.curve, &it.run.name)
        };
        let lost = lost.iter().find(is_same).filter(|lost| lost.value > 0.02)?;
        let y = it.value * (1.0 - lost.value);
        Some((it.run, Point { x: it.x, y, half: it.half + it.value * lost.half }))
    });
    let carried: Vec<_> = carried.collect();
    let dots: Vec<Point> = carried.iter().map(|(_, dot)| *dot).collect();
    let key = "path_hardware.capacity_pps";
    match (mean(&dots), carried.first()) {
        (Some((value, half)), Some((run, _))) => {
            let from = place(run, EXPERIMENT, "offered_pps and lost_ratio of lossy loads");
            sheet.say(key, Value { value, half: half.max(0.05 * value), from });
        }
        _ if always => sheet.assume(key, 0, "frames were also lost at the lowest load"),
        _ => sheet.assume(key, 0, "no offered load lost frames"),
    }
}

/// Returns the latency of links and tester for this frame size, with its uncertainty.
fn own_ns(record: &Record, bytes: f64) -> (f64, f64) {
    let wire = |bytes: f64| {
        let bps = record.parameters.get("capacity_bps").and_then(serde_json::Value::as_f64);
        bps.filter(|bps| *bps > 0.0).map_or(0.0, |bps| 8e9 * (bytes + GAP_BYTES as f64) / bps)
    };
    if record.environment.simulated {
        // To the switch and from it.
        return (2.0 * wire(bytes), 0.0);
    }
    let calibrated = record.calibrations.first().and_then(|it| {
        let latency = it.latency.as_ref()?;
        Some((latency.ns_mean, it.latency_ns_error.unwrap_or(0.0)))
    });
    calibrated.unwrap_or((0.0, 0.0))
}
