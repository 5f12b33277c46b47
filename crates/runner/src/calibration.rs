//! Calibration: measures the tester without a target, and finds the load that overloads every
//! target.
//!
//! RFC 9971 and RFC 2544 section 6 require the tester's limits to be known before its results are
//! used. The loop without a target yields three figures: the ceiling (the largest load without
//! loss, offered within 0.1 % of the intended load), the tester's own latency, and the deviation of
//! its frames from their schedule. A target's result cannot be more accurate than these.

use os::jitter;
use packet::time::Nanos;
use record::{
    Bound, BoundCause, BoundSide, Calibration, ClockSource, ControllerCeiling, CoreGaps, Stalls,
};
use stats::interval;
use testbed::affinity::Cores;
use tester::calibrate::{Calibrator, Settings};
use tester::controller_self_test::{self, ChannelKind};
use tester::procedure::{Outcome, Procedure, Step};
use tester::stream::{GAP_BYTES, Rate};
use tester::trial::{Trial, TrialReport};

use super::recording;
use super::{Plan, RunError};
use experiments::Context;
use targets::name::{Link, TargetKind};
use targets::{Bench, Target};
use workload::Setup;
use workload::parameter::Parameters;

/// Frame size that saturates tester and targets, FCS included.
const FRAME_BYTES: u16 = 64;

/// Duration of a calibration trial, in seconds.
const SECONDS: f64 = 0.15;

/// Duration of the uncounted warm-up traffic before it, in seconds.
const WARMUP_S: f64 = 0.05;

/// Load above any software tester's ability, to find the highest offered load.
const RATE_PPS_BEYOND: f64 = 50e6;

/// Load at which the tester's own latency is measured.
const RATE_PPS_BIAS: f64 = 10_000.0;

/// Resolution of the ceiling, as a share of the highest offered load.
const RESOLUTION: f64 = 0.03;

/// Time for which a busy-polling thread observes each core.
const WATCH: Nanos = Nanos::from_millis(100);

/// Ratio of the nominal link capacity to the fastest target's rate that overloads this target.
const OVERLOAD: f64 = 1.1;

/// Experiments that measure a switch's message rate.
const CONTROLLED: &[&str] = &[
    "control-rate",
    "packet-in",
    "packet-out",
    "packet-in-out",
    "reactive-setup",
    "flow-mod-rate",
];

/// Step to which nominal link capacities are rounded up, bit/s.
const CAPACITY_STEP_BPS: f64 = 10e6;

/// Measures the tester without a target over the bench's link.
///
/// Returns `None` in virtual time, where the tester has no limit, and where no cable connects the
/// tester to itself.
pub fn calibrate(
    bench: &mut Bench,
    parameters: &Parameters,
) -> Result<Option<Calibration>, RunError> {
    if parameters.simulated || !bench.can_be_looped() {
        return Ok(None);
    }
    let kind = TargetKind::Direct;
    let mut target = bench.target(kind, 1).map_err(|error| RunError::Target(kind, error))?;
    let found = measure(target.as_mut(), parameters, bench);
    target.stop().map_err(|error| RunError::Target(kind, error))?;
    found.map(Some)
}

/// Measures the highest message rates of the tester's controller, over the kind of channel that
/// this link's targets use.
pub fn controller(link: Link) -> Option<ControllerCeiling> {
    let way = match link {
        Link::Memory | Link::Replay => ChannelKind::Memory,
        Link::Veth | Link::VethXdp | Link::VethLive | Link::Memif => ChannelKind::Unix,
        Link::Nic | Link::NicXdp => ChannelKind::Tcp,
    };
    // Without a socket, no switch can be measured this way either.
    controller_self_test::measure(way, &std::env::temp_dir()).ok()
}

/// Returns whether an experiment's results may be limited by the controller.
pub fn needs_controller(id: &str) -> bool {
    CONTROLLED.contains(&id)
}

fn measure(
    target: &mut dyn Target,
    parameters: &Parameters,
    bench: &Bench,
) -> Result<Calibration, RunError> {
    let template = trial(target, parameters, RATE_PPS_BEYOND);
    let mut calibrator = Calibrator::new(Settings {
        stream: template.streams[0].clone(),
        rate_pps_max: RATE_PPS_BEYOND,
        rate_pps_bias: RATE_PPS_BIAS,
        resolution_ratio: RESOLUTION,
        duration: template.duration,
        drain: template.drain,
    });
    let mut last = None;
    loop {
        match calibrator.next(last.as_ref()) {
            Step::Done => break,
            Step::Install(()) => last = Some(Outcome::Installed),
            Step::Module { .. } => unreachable!("a calibration has no switch"),
            Step::Trial { point, trial } => {
                let kind = target.kind();
                let report = target.trial(&trial).map_err(|error| RunError::Trial(kind, error))?;
                last = Some(Outcome::Trial { point, report: Box::new(report) });
            }
        }
    }
    let clock = match &last {
        Some(Outcome::Trial { report, .. }) => recording::clock(report.stamps),
        _ => ClockSource::UserSpace,
    };
    let found = calibrator.finish().expect("a calibration that is done has found its values");
    let pacing = found.pacing_at_half.as_ref().unwrap_or(&found.pacing_at_bias);
    Ok(Calibration {
        id: "loop".into(),
        link: bench.link_name().into(),
        frame_bytes: found.frame_bytes as u32,
        rate_pps_ceiling: found.ceiling.rate_pps as u64,
        bound: (found.ceiling.rate_pps >= RATE_PPS_BEYOND * (1.0 - RESOLUTION))
            .then_some(Bound { side: BoundSide::Lower, cause: BoundCause::SearchLimit }),
        rate_pps_saturated: found.saturated_pps as u64,
        latency: recording::distribution(&found.bias.from_sent),
        latency_ns_error: interval::of_mean(&found.bias_ns_means, interval::LEVEL_PERCENT_HIGH)
            .map(|interval| (interval.high - interval.low) / 2.0),
        pacing_error: recording::distribution(&pacing.gap_error),
        frames_dropped: Some(found.dropped),
        stalls: Some(found.stalls).filter(|stalls| *stalls != Stalls::default()),
        cores: gaps(bench.cores()),
        clock,
        controller: None,
    })
}

/// Measures how long other work interrupts the cores of tester and target; empty where this cannot
/// be measured.
fn gaps(cores: &Cores) -> Vec<CoreGaps> {
    let mut both = [&cores.instrument[..], &cores.target].concat();
    both.sort_unstable();
    both.dedup();
    let found = jitter::watch(&both, WATCH);
    let row = |one: jitter::OsJitter| CoreGaps {
        core: one.core as u32,
        ns_watched: one.span.0,
        count: one.count,
        ns_total: one.total.0,
        ns_longest: one.longest.0,
    };
    found.unwrap_or_default().into_iter().map(row).collect()
}

/// Returns the lowest nominal capacity, in bit/s, that overloads each of these targets at 64 bytes.
///
/// The tester's own highest load limits the result.
pub fn overloading(targets: &mut [Box<dyn Target>], plan: &Plan) -> Result<u64, RunError> {
    let mut fastest: f64 = 0.0;
    for target in targets.iter_mut().filter(|target| target.kind() != TargetKind::Direct) {
        let kind = target.kind();
        let single = Setup::single(plan.seed);
        target.resume();
        target.install(&single).map_err(|error| RunError::Target(kind, error))?;
        let report = offer(target.as_mut(), &plan.parameters, RATE_PPS_BEYOND);
        target.suspend();
        let report = report?;
        fastest = fastest.max(report.total.pps_forwarded());
    }
    let bits_per_frame = 8.0 * f64::from(FRAME_BYTES) + 8.0 * GAP_BYTES as f64;
    let bps = fastest * OVERLOAD * bits_per_frame;
    Ok(((bps / CAPACITY_STEP_BPS).ceil().max(1.0) * CAPACITY_STEP_BPS) as u64)
}

/// Runs one short trial of 64-byte frames at this rate.
fn offer(
    target: &mut dyn Target,
    parameters: &Parameters,
    rate_pps: f64,
) -> Result<TrialReport, RunError> {
    let kind = target.kind();
    let trial = trial(target, parameters, rate_pps);
    target.trial(&trial).map_err(|error| RunError::Trial(kind, error))
}

fn trial(target: &dyn Target, parameters: &Parameters, rate_pps: f64) -> Trial {
    let parameters = Parameters { seconds: SECONDS, warmup_s: WARMUP_S, ..parameters.clone() };
    let context = Context {
        kind: target.kind(),
        technology: target.kind().technology(),
        addresses: target.addresses(),
        capacity_bps: 0,
        parameters,
        seed: 1,
        ceiling_pps: None,
        has_throughputs: false,
    };
    context.trial(&Setup::single(1), FRAME_BYTES, Rate::FramesPerSecond(rate_pps))
}

/// Formats the controller's rates as a sentence.
pub fn controller_sentence(found: &ControllerCeiling) -> String {
    let rates = found.per_s.iter().map(|(kind, rate)| format!("{kind} {rate:.0}"));
    let rates: Vec<String> = rates.collect();
    format!(
        "controller of the tester over {}, messages per second: {}",
        found.channel,
        rates.join(", ")
    )
}

/// Formats the calibration as a sentence.
pub fn sentence(found: &Calibration) -> String {
    let latency = found.latency.as_ref().map_or_else(String::new, |it| {
        let error =
            found.latency_ns_error.map_or_else(String::new, |ns| format!(" ± {:.2}", ns / 1e3));
        format!(", mean latency {:.2}{error} us", it.ns_mean / 1e3)
    });
    let pacing = found
        .pacing_error
        .as_ref()
        .and_then(|it| it.ns_p50)
        .map_or_else(String::new, |ns| format!(", median pacing error {ns} ns"));
    format!(
        "tester over {} without target: {} frames/s of {} bytes without loss{latency}{pacing}",
        found.link, found.rate_pps_ceiling, found.frame_bytes
    )
}
