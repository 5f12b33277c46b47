//! Latency at shares of the throughput: 10, 50, 90 and 100 percent of what passes within the loss.
//!
//! Method: a search for the load within the set loss (at least 0.5 %, since a zero-loss load on a
//! shared machine says more about the machine), then trials at shares of what it found, each
//! repeated. With `--set load_of=TARGET` the loads of all targets are shares of what was found for that
//! one, which alone is searched; the others wait for it. Every frame carries its send time; whole histograms are kept, percentiles are never averaged.

use instrument::experiment::{Experiment, Outcome, Point, Step};
use instrument::search::bracket::Bracket;
use instrument::stream::Rate;
use results::record::{self, Metric, Role};

use super::search::{Searches, Task};
use super::{Context, Finding, Method, Tag};
use crate::target::name::TargetKind;
use crate::workload::Setup;

/// Name of the axis.
pub const AXIS: &str = "load_percent";

/// Shares of the found load, in percent.
pub const LOAD_PERCENT: [f64; 4] = [10.0, 50.0, 90.0, 100.0];

/// Least loss ratio that the search before it allows.
const LOSS_MIN: f64 = 0.005;

/// The method on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let frame_bytes = context.frames_or(&[64])[0];
    let loss_ratio = context.parameters.loss.max(LOSS_MIN);
    let task = Task { frame_bytes, loss_ratio, metric: Metric::ThroughputPpsLossy };
    Box::new(Latency {
        context: context.clone(),
        frame_bytes,
        search: Searches::new(context, "frame_bytes", vec![task], 1),
        base_pps: None,
        led_by: context.parameters.control.load_of.filter(|kind| *kind != context.kind),
        is_installed: false,
        loads: context.loads_or(&LOAD_PERCENT),
        yielded: 0,
        findings: Vec::new(),
    })
}

/// The method at work: first the search, then the loads.
struct Latency {
    context: Context,
    frame_bytes: u16,
    search: Searches,
    base_pps: Option<f64>,
    /// The target whose load it is to learn, if that is not its own.
    led_by: Option<TargetKind>,
    is_installed: bool,
    loads: Vec<f64>,
    yielded: u64,
    findings: Vec<Finding>,
}

impl Latency {
    fn loads_expected(&self) -> u64 {
        self.loads.len() as u64 * u64::from(self.context.parameters.repeats)
    }
}

impl Experiment for Latency {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if self.base_pps.is_none() && self.led_by.is_none() {
            match self.search.next(last) {
                Step::Done => {
                    // What was found is the load that the shares refer to: all of it.
                    let found = self.search.findings().into_iter();
                    let whole = |finding| Finding { axis: AXIS, x: 100.0, ..finding };
                    self.findings = found.map(whole).collect();
                    self.base_pps = self.findings.first().map(|finding| finding.value);
                }
                step => return step,
            }
        }
        let base_pps = self.base_pps.unwrap_or(0.0);
        if base_pps <= 0.0 || self.yielded == self.loads_expected() {
            return Step::Done;
        }
        if self.led_by.is_some() && !std::mem::replace(&mut self.is_installed, true) {
            return Step::Install(self.context.setup());
        }
        let percent = self.loads[(self.yielded % self.loads.len() as u64) as usize];
        self.yielded += 1;
        let setup = self.context.setup();
        let rate = Rate::FramesPerSecond(base_pps * percent / 100.0);
        let trial = self.context.trial(&setup, self.frame_bytes, rate);
        Step::Trial { point: Point::new(&[(AXIS, percent)]), trial }
    }
}

impl Method for Latency {
    fn tag(&self) -> Tag {
        match self.base_pps {
            // Its trials, the longer ones that confirm included, only lead to the loads.
            None => Tag { role: Role::Search, ..self.search.tag() },
            Some(_) => {
                let repeat = self.yielded.saturating_sub(1) / self.loads.len().max(1) as u64;
                Tag { role: Role::Measure, repeat: repeat as u32 + 1 }
            }
        }
    }

    fn allowed(&self) -> Vec<f64> {
        if self.base_pps.is_none() { self.search.allowed() } else { Vec::new() }
    }

    fn brackets(&self) -> Vec<Bracket> {
        if self.base_pps.is_none() { self.search.brackets() } else { Vec::new() }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn trials_expected(&self) -> u64 {
        match self.led_by {
            None => self.search.trials_expected() + self.loads_expected(),
            Some(_) => self.loads_expected(),
        }
    }

    fn waits(&self) -> bool {
        self.led_by.is_some() && self.base_pps.is_none()
    }

    fn learn(&mut self, found: &record::Outcome) {
        let is_leader = self.led_by.is_some_and(|kind| kind.name() == found.target);
        if is_leader && found.metric == Metric::ThroughputPpsLossy && self.base_pps.is_none() {
            self.base_pps = Some(found.value);
        }
    }
}
