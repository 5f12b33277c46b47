//! The tester measured by itself, and the load that overloads every target.
//!
//! RFC 9971 and RFC 2544 section 6 want a tester that is known before its results are believed:
//! the loop without target gives its ceiling (the largest load without loss, offered within 0.1 %
//! of what was intended), its own latency and how far its frames stray from their schedule. A result
//! of a target cannot be better known than this.

use instrument::search::binary::{Ask, BinarySearch, Goal, Measured};
use instrument::stream::{GAP_BYTES, Rate};
use instrument::trial::TrialReport;
use results::record::Calibration;

use super::recording;
use super::{Plan, RunError};
use crate::experiments::Context;
use crate::parameter::{Effort, Parameters};
use crate::target::name::TargetKind;
use crate::target::{Bench, Target};
use crate::workload::Setup;

/// Frame size at which tester and targets are saturated, FCS included.
const FRAME_BYTES: u16 = 64;

/// Seconds of a calibration trial.
const SECONDS: f64 = 0.15;

/// A load that no software tester reaches, to see what it offers at most.
const RATE_PPS_BEYOND: f64 = 50e6;

/// Share of the ceiling at which latency and pacing are taken.
const QUIET_SHARE: f64 = 0.1;

/// How far above the fastest target a nominal link has to be to overload it.
const OVERLOAD: f64 = 1.1;

/// Nominal links are rounded up to this, bit/s.
const CAPACITY_STEP_BPS: f64 = 10e6;

/// Measures the tester without a target over the bench's link. Absent in virtual time, where the
/// tester has no limit.
pub fn calibrate(
    bench: &mut Bench,
    parameters: &Parameters,
) -> Result<Option<Calibration>, RunError> {
    if parameters.simulated {
        return Ok(None);
    }
    let kind = TargetKind::Direct;
    let mut target = bench.target(kind).map_err(|error| RunError::Target(kind, error))?;
    let found = measure(target.as_mut(), parameters, bench.link_name());
    target.stop().map_err(|error| RunError::Target(kind, error))?;
    found.map(Some)
}

fn measure(
    target: &mut dyn Target,
    parameters: &Parameters,
    link: &str,
) -> Result<Calibration, RunError> {
    let beyond = offer(target, parameters, RATE_PPS_BEYOND)?;
    let saturated = beyond.total.pps_offered().max(1000.0);
    let mut search = BinarySearch::new(Goal {
        loss_ratio: 0.0,
        rate_pps_min: saturated / 64.0,
        rate_pps_max: saturated,
        resolution_pps: saturated / 32.0,
        is_confirmed: false,
    });
    let ceiling = loop {
        match search.next() {
            Ask::Search { rate_pps } | Ask::Confirm { rate_pps } => {
                let report = offer(target, parameters, rate_pps)?;
                search.record(Measured::from(&report));
            }
            Ask::Found(found) => break found.rate_pps,
        }
    };
    let quiet = offer(target, parameters, (ceiling * QUIET_SHARE).max(1000.0))?;
    Ok(Calibration {
        id: "loop".into(),
        link: link.into(),
        frame_bytes: FRAME_BYTES.into(),
        rate_pps_ceiling: ceiling as u64,
        rate_pps_saturated: saturated as u64,
        latency: recording::distribution(&quiet.latency.from_sent),
        pacing_error: recording::distribution(&quiet.pacing.gap_error),
        clock: recording::clock(quiet.stamps),
    })
}

/// The lowest nominal capacity, in bit/s, that overloads each of these targets at 64 bytes. What
/// the tester can offer bounds what it can find out.
pub fn overloading(targets: &mut [Box<dyn Target>], plan: &Plan) -> Result<u64, RunError> {
    let mut fastest: f64 = 0.0;
    for target in targets.iter_mut().filter(|target| target.kind() != TargetKind::Direct) {
        let kind = target.kind();
        let single = Setup::single(plan.seed);
        target.install(&single).map_err(|error| RunError::Target(kind, error))?;
        let report = offer(target.as_mut(), &plan.parameters, RATE_PPS_BEYOND)?;
        fastest = fastest.max(report.total.pps_forwarded());
    }
    let bits_per_frame = 8.0 * f64::from(FRAME_BYTES) + 8.0 * GAP_BYTES as f64;
    let bps = fastest * OVERLOAD * bits_per_frame;
    Ok(((bps / CAPACITY_STEP_BPS).ceil().max(1.0) * CAPACITY_STEP_BPS) as u64)
}

/// One short trial of 64-byte frames at this rate.
fn offer(
    target: &mut dyn Target,
    parameters: &Parameters,
    rate_pps: f64,
) -> Result<TrialReport, RunError> {
    let quick = Parameters::at(Effort::Quick);
    let parameters = Parameters { seconds: SECONDS, warmup_s: quick.warmup_s, ..parameters.clone() };
    let kind = target.kind();
    let context = Context {
        technology: kind.technology(),
        addresses: target.addresses(),
        capacity_bps: 0,
        parameters,
        seed: 1,
    };
    let setup = Setup::single(1);
    let trial = context.trial(&setup, FRAME_BYTES, Rate::FramesPerSecond(rate_pps));
    target.trial(&trial).map_err(|error| RunError::Trial(kind, error))
}

/// The calibration in words.
pub fn sentence(found: &Calibration) -> String {
    let latency = found.latency.as_ref().and_then(|it| it.ns_p50).map_or_else(String::new, |ns| {
        format!(", its own median latency {:.1} us", ns as f64 / 1e3)
    });
    let pacing = found.pacing_error.as_ref().and_then(|it| it.ns_p50).map_or_else(
        String::new,
        |ns| format!(", median pacing error {ns} ns"),
    );
    format!(
        "tester over {} without target: {} frames/s of {} bytes without loss{latency}{pacing}",
        found.link, found.rate_pps_ceiling, found.frame_bytes
    )
}

