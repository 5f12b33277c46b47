//! Back-to-back frames and buffer time (RFC 9004, which updates RFC 2544, 26.4).
//!
//! Method: this applies to each frame size whose throughput is below the capacity of link and tester. Bursts at
//! that capacity follow a pause. After each burst, the target has the time that it needs at its throughput, and a
//! drain time. A binary search finds the longest burst without loss, to one frame (TST009 12.3.2; with `--set
//! loss_verification=`, a burst with loss is repeated). The whole search is repeated.
//!
//! With a burst of `b` frames at `L` frames/s and a throughput of `T` frames/s, the implied buffer time is `b / L`.
//! The corrected one, which excludes frames forwarded during the burst, is `b / L (1 - T / L)`. A burst near the
//! longest possible one only gives a lower bound and is irregular: raise `--set burst_seconds=`.
//!
//! Parameters: `--set burst_seconds=` is the longest burst; `--set burst_step=` is the resolution in frames.

use packet::time::Nanos;
use record::{Bound, BoundCause, BoundSide, Metric, Role};
use tester::generator::schedule::Period;
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::search::binary::{
    BinarySearch, Goal, Irregularity, MeasuredLoad, SearchRequest, SearchResult,
};
use tester::search::bracket::{Bracket, SearchQuantity};
use tester::stream::Rate;
use tester::trial::Trial;

use super::sequence::TaskSequence;
use super::throughput_based::{AtThroughput, Throughputs};
use super::{Context, Finding, Method, Tag, rfc2544};
use workload::Setup;

/// Name of the axis.
pub const AXIS: &str = rfc2544::AXIS;

/// From this share of the highest load, a throughput shows no buffer.
const FULL_SHARE: f64 = 0.99;

/// From this share of the longest burst, a result is only a lower bound.
const NEAR_LIMIT_SHARE: f64 = 0.9;

/// Maximum time for the target to empty its buffer.
const EMPTYING_MAX: Nanos = Nanos::from_secs(30);

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(AtThroughput::new(context, context.frames(&rfc2544::FRAMES), bursts))
}

fn bursts(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    let size = |(frame_bytes, throughput_pps)| {
        let burst_pps = context.most_pps(frame_bytes);
        let is_below = throughput_pps < burst_pps * FULL_SHARE;
        is_below.then_some(Size { frame_bytes, throughput_pps, burst_pps })
    };
    let sizes: Vec<Size> = found.each().filter_map(size).collect();
    Box::new(Bursts {
        row: TaskSequence::new(context.setup(), sizes.len(), context.searches()),
        sizes,
        context: context.clone(),
        search: None,
        findings: Vec::new(),
    })
}

/// Frame size with a measurable buffer.
#[derive(Debug, Clone, Copy)]
struct Size {
    frame_bytes: u16,
    throughput_pps: f64,
    burst_pps: f64,
}

/// Searches that run one after another.
struct Bursts {
    context: Context,
    sizes: Vec<Size>,
    row: TaskSequence,
    /// Search for the burst length in frames.
    search: Option<BinarySearch>,
    findings: Vec<Finding>,
}

impl Size {
    /// Returns the length of the longest burst, in frames.
    fn limit(&self, context: &Context) -> f64 {
        (self.burst_pps * context.parameters.methods.burst_s).floor().max(2.0)
    }

    fn goal(&self, context: &Context) -> Goal {
        Goal {
            loss_ratio: 0.0,
            rate_pps_min: 1.0,
            rate_pps_max: self.limit(context),
            resolution_pps: f64::from(context.parameters.methods.burst_step),
            is_confirmed: false,
            verifications: context.parameters.verify,
        }
    }

    /// Creates a trial with a burst of this length and time for the target to forward it.
    fn trial(&self, context: &Context, setup: &Setup, frames: u64) -> Trial {
        let rate = Rate::FramesPerSecond(self.burst_pps);
        let duration = Period::new(rate, usize::from(self.frame_bytes)).span(frames);
        let emptying = Nanos::from_secs_f64(frames as f64 / self.throughput_pps).min(EMPTYING_MAX);
        let trial = context.trial(setup, self.frame_bytes, rate);
        let drain = trial.drain.saturating_add(emptying);
        Trial { warmup: Nanos::ZERO, duration, drain, ..trial }
    }

    fn findings(&self, repeat: u32, frames: f64, limit: f64, found: &SearchResult) -> [Finding; 3] {
        let is_cut = found.irregular.contains(&Irregularity::TrialsExhausted);
        let is_disturbed = |it: &Irregularity| matches!(it, Irregularity::Disturbed { .. });
        let implied_s = frames / self.burst_pps;
        let corrected_s = implied_s * (1.0 - self.throughput_pps / self.burst_pps);
        let is_open = frames >= limit * NEAR_LIMIT_SHARE;
        let irregular = is_cut || frames < 1.0 || is_open;
        let open = Bound { side: BoundSide::Lower, cause: BoundCause::SearchLimit };
        [
            (Metric::BurstFrames, frames),
            (Metric::BufferNsImplied, implied_s * 1e9),
            (Metric::BufferNsCorrected, corrected_s * 1e9),
        ]
        .map(|(metric, value)| Finding {
            bound: is_open.then_some(open),
            irregular,
            disturbed: found.irregular.iter().any(is_disturbed),
            ..Finding::new(repeat, AXIS, f64::from(self.frame_bytes), metric, value)
        })
    }
}

impl Procedure for Bursts {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let Some(install) = self.row.begin() {
            return install;
        }
        if let (Some(Outcome::Trial { report, .. }), Some(search)) = (last, &mut self.search) {
            search.record(MeasuredLoad::from(&**report));
        }
        loop {
            let Some(size) = self.row.task().map(|task| self.sizes[task]) else {
                return Step::Done;
            };
            let goal = size.goal(&self.context);
            match self.search.get_or_insert_with(|| BinarySearch::new(goal)).next() {
                SearchRequest::Search { rate_pps: frames }
                | SearchRequest::Confirm { rate_pps: frames } => {
                    let point = Point::new(&[(AXIS, f64::from(size.frame_bytes))]);
                    let trial = size.trial(&self.context, self.row.setup(), frames as u64);
                    return Step::Trial { point, trial };
                }
                SearchRequest::Found(found) => {
                    let (repeat, frames) = (self.row.repeat(), found.rate_pps.floor());
                    self.findings.extend(size.findings(repeat, frames, goal.rate_pps_max, &found));
                    self.search = None;
                    self.row.next();
                }
            }
        }
    }
}

impl Method for Bursts {
    fn tag(&self) -> Tag {
        Tag { role: Role::Search, repeat: self.row.repeat() }
    }

    fn allowed(&self) -> Vec<f64> {
        vec![0.0]
    }

    fn brackets(&self) -> Vec<Bracket> {
        let sought = SearchQuantity::new("longest burst", "nothing lost", "frames");
        self.search.as_ref().and_then(|search| search.bracket(sought)).into_iter().collect()
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }
}

#[cfg(test)]
mod tests {
    use record::Flag;
    use tester::stream::line_rate_pps;
    use tester::trial::{Load, TrialReport};

    use super::*;
    use studies::taking;
    use targets::name::TargetKind;
    use workload::ADDRESSES;
    use workload::Technology;
    use workload::parameter::{Effort, Parameters};

    const THROUGHPUT_PPS: f64 = 500_000.0;

    fn context(assignments: &[&str]) -> Context {
        let mut parameters = Parameters::at(Effort::Quick);
        let entries = studies::find("rfc9004").unwrap();
        for assignment in assignments {
            taking::assign(&mut parameters, &entries, assignment)
                .expect("the keys of the test are valid");
        }
        Context {
            kind: TargetKind::Switch,
            technology: Technology::OpenFlow,
            addresses: ADDRESSES,
            capacity_bps: 1_000_000_000,
            parameters,
            seed: 1,
            ceiling_pps: None,
            has_throughputs: true,
        }
    }

    /// Returns the results for a simulated target with this buffer in frames and a known forwarding
    /// rate.
    fn found(buffer: f64, set: &[&str]) -> Vec<Finding> {
        let context = context(&[&["frame=64", "repeats=1"], set].concat());
        let line_pps = line_rate_pps(context.capacity_bps, 64);
        let mut method = method(&context);
        method.inherit(&record::Outcome {
            experiment: "rfc2544/throughput".into(),
            target: "switch".into(),
            link: None,
            repeat: 1,
            point: record::Point::new(AXIS, 64.0),
            metric: Metric::ThroughputPps,
            value: THROUGHPUT_PPS,
            resolution: None,
            bound: None,
            trials: Vec::new(),
            flags: Vec::<Flag>::new(),
            goal: None,
        });
        let mut last = None;
        loop {
            last = Some(match method.next(last.as_ref()) {
                Step::Done => return method.findings(),
                Step::Module { .. } => panic!("the method has trials only"),
                Step::Install(_) => Outcome::Installed,
                Step::Trial { point, trial } => {
                    let stream = &trial.streams[0];
                    let period = Period::new(stream.rate, stream.frame_bytes);
                    let offered = period.frames_within(trial.duration);
                    let held = offered as f64 * (1.0 - THROUGHPUT_PPS / line_pps);
                    let lost = (held - buffer).max(0.0).ceil() as u64;
                    let load = Load {
                        intended: offered,
                        offered,
                        forwarded: offered - lost.min(offered),
                        ..Load::default()
                    };
                    let report = Box::new(TrialReport::unmeasured(&trial, Nanos::ZERO, load));
                    Outcome::Trial { point, report }
                }
            });
        }
    }

    fn value(findings: &[Finding], metric: Metric) -> &Finding {
        findings.iter().find(|it| it.metric == metric).expect("the search found the metric")
    }

    #[test]
    fn the_search_finds_a_known_buffer_to_the_frame() {
        let line_pps = line_rate_pps(1_000_000_000, 64);
        for buffer in [1.0, 64.0, 1000.0, 4096.0, 65_536.0] {
            let found = found(buffer, &[]);
            let burst = value(&found, Metric::BurstFrames);
            let wanted = (buffer / (1.0 - THROUGHPUT_PPS / line_pps)).floor();
            assert_eq!((burst.value, burst.irregular), (wanted, false), "{buffer}");
            let corrected_s = value(&found, Metric::BufferNsCorrected).value * 1e-9;
            assert!((corrected_s * line_pps - buffer).abs() <= 1.0, "{buffer}: {corrected_s} s");
        }
    }

    #[test]
    fn a_burst_near_the_maximum_is_a_bound_and_a_coarser_step_is_used() {
        let found_short = found(1e6, &["burst_seconds=0.01"]);
        assert!(value(&found_short, Metric::BurstFrames).irregular);
        let coarse = found(1000.0, &["burst_step=100"]);
        let burst = value(&coarse, Metric::BurstFrames).value;
        let wanted = 1000.0 / (1.0 - THROUGHPUT_PPS / line_rate_pps(1_000_000_000, 64));
        assert!(burst <= wanted && burst > wanted - 101.0, "{burst} of {wanted}");
    }
}
