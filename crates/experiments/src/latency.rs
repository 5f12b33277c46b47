//! Latency at 10, 50, 90 and 100 percent of the throughput.
//!
//! Method: a search for the highest load within the loss ratio (at least 0.5 %, because a zero-loss load on a
//! shared machine depends mostly on the machine). Repeated trials at shares of that load follow. With `--set
//! load_reference=TARGET`, the loads of all targets are shares of that target's result. Only that target is searched; the
//! others wait for it. Several frame sizes are curves, each with its own loads. Every frame carries its send time.
//! Whole histograms are stored; percentiles are never averaged.

use std::collections::{BTreeMap, BTreeSet};

use record::{Metric, Role};
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::search::bracket::Bracket;
use tester::stream::Rate;

use super::search::{SearchTask, Searches};
use super::{Context, FRAME_CURVE, Finding, Method, Tag, curve_of};
use targets::name::TargetKind;
use workload::Setup;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "load_percent";

/// Shares of the found load.
const LOADS: Parameter = Parameter {
    default: "10,50,90,100",
    help: "offered loads, in percent of the highest load within the loss ratio",
    ..shared::LOADS
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAMES, LOADS];

/// Minimum loss ratio of the preceding search.
const LOSS_MIN: f64 = 0.005;

/// Returns the target whose maximum is the base of the loads, unless it is this one.
fn led_by(context: &Context) -> Option<TargetKind> {
    let name = context.parameters.control.load_of.as_ref()?;
    name.parse().ok().filter(|kind| *kind != context.kind)
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let (frames, loads) = (context.frames(&shared::FRAMES), context.loads(&LOADS));
    let loss_ratio = context.parameters.loss.max(LOSS_MIN);
    let metric = Metric::ThroughputPpsLossTolerated;
    let task = |&frame_bytes: &u16| SearchTask { frame_bytes, loss_ratio, metric };
    let tasks = frames.iter().map(task).collect();
    let cases = |&frame_bytes: &u16| {
        let curve = curve_of(FRAME_CURVE, &frames, frame_bytes);
        loads.iter().map(move |&percent| Case { frame_bytes, curve, percent })
    };
    Box::new(Latency {
        context: context.clone(),
        search: Searches::new(context, "frame_bytes", tasks, 1),
        bases_pps: BTreeMap::new(),
        is_searched: false,
        led_by: led_by(context),
        is_installed: false,
        cases: frames.iter().flat_map(cases).collect(),
        repeats: context.parameters.repeats,
        yielded: 0,
        findings: Vec::new(),
    })
}

/// One trial of a repeat.
#[derive(Debug, Clone, Copy)]
struct Case {
    frame_bytes: u16,
    curve: Option<(&'static str, f64)>,
    /// Load in percent of the result for this size.
    percent: f64,
}

/// State of the method: first the searches, then the loads.
struct Latency {
    context: Context,
    search: Searches,
    /// Results of the searches, by frame size.
    bases_pps: BTreeMap<u16, f64>,
    /// Whether all searches are complete.
    is_searched: bool,
    /// Target that gives the loads, if it is another target.
    led_by: Option<TargetKind>,
    is_installed: bool,
    cases: Vec<Case>,
    repeats: u32,
    yielded: u64,
    findings: Vec<Finding>,
}

impl Latency {
    fn loads_expected(&self) -> u64 {
        self.cases.len() as u64 * u64::from(self.repeats)
    }

    /// Takes the results of a search, which give the loads.
    fn take(&mut self) {
        for found in self.search.findings() {
            let frame_bytes = found.x as u16;
            self.bases_pps.insert(frame_bytes, found.value);
            let curve = self.cases.iter().find(|case| case.frame_bytes == frame_bytes);
            let curve = curve.and_then(|case| case.curve);
            self.findings.push(Finding { axis: AXIS, x: 100.0, curve, ..found });
        }
        self.is_searched = true;
        self.leave_out();
    }

    /// Removes a size with a throughput of 0.
    fn leave_out(&mut self) {
        let passes =
            |case: &Case| self.bases_pps.get(&case.frame_bytes).is_some_and(|pps| *pps > 0.0);
        self.cases.retain(passes);
    }
}

impl Procedure for Latency {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if !self.is_searched && self.led_by.is_none() {
            match self.search.next(last) {
                Step::Done => self.take(),
                step => return step,
            }
        }
        if self.yielded == self.loads_expected() {
            return Step::Done;
        }
        if self.led_by.is_some() && !std::mem::replace(&mut self.is_installed, true) {
            return Step::Install(self.context.setup());
        }
        let case = self.cases[(self.yielded % self.cases.len() as u64) as usize];
        self.yielded += 1;
        let setup = self.context.setup();
        let base_pps = self.bases_pps.get(&case.frame_bytes).copied().unwrap_or_default();
        let rate = Rate::FramesPerSecond(base_pps * case.percent / 100.0);
        let trial = self.context.trial(&setup, case.frame_bytes, rate);
        let coordinates: Vec<_> = [(AXIS, case.percent)].into_iter().chain(case.curve).collect();
        Step::Trial { point: Point::new(&coordinates), trial }
    }
}

impl Method for Latency {
    fn tag(&self) -> Tag {
        match self.is_searched {
            // The trials of the search, including the longer confirmation trials, only give the loads.
            false => Tag { role: Role::Search, ..self.search.tag() },
            true => {
                let repeat = self.yielded.saturating_sub(1) / self.cases.len().max(1) as u64;
                Tag { role: Role::Measure, repeat: repeat as u32 + 1 }
            }
        }
    }

    fn allowed(&self) -> Vec<f64> {
        if self.is_searched { Vec::new() } else { self.search.allowed() }
    }

    fn brackets(&self) -> Vec<Bracket> {
        if self.is_searched { Vec::new() } else { self.search.brackets() }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn waits(&self) -> bool {
        self.led_by.is_some() && !self.is_searched
    }

    fn learn(&mut self, found: &record::Outcome) {
        let is_leader = self.led_by.is_some_and(|kind| kind.name() == found.target);
        if !is_leader || found.metric != Metric::ThroughputPpsLossTolerated || self.is_searched {
            return;
        }
        let curve = found.point.within.as_ref().map(|within| within.value);
        let is_it = |case: &&Case| case.curve.map(|(_, value)| value) == curve;
        let Some(case) = self.cases.iter().find(is_it) else { return };
        self.bases_pps.insert(case.frame_bytes, found.value);
        let sizes: BTreeSet<u16> = self.cases.iter().map(|case| case.frame_bytes).collect();
        if sizes.iter().all(|size| self.bases_pps.contains_key(size)) {
            self.is_searched = true;
            self.leave_out();
        }
    }
}
