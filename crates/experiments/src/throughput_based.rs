//! Measurements at loads derived from the throughput at each frame size.
//!
//! Several standards measure at the throughput or at shares of it, and therefore begin with a search. If an earlier
//! experiment of the same set found the throughput of the target, that value is used. Otherwise this method
//! searches for it. Both appear in the results, so that a report shows the basis of the loads.

use std::collections::BTreeMap;

use record::{Flag, Metric, Role};
use stats::series;
use tester::procedure::{Outcome, Procedure, Step};
use tester::search::bracket::Bracket;
use tester::stream::Rate;
use tester::trial::Trial;

use super::search::{SearchTask, Searches};
use super::sweep::{Sweep, SweepPoint};
use super::{Context, Finding, Method, Tag};
use workload::Setup;
use workload::parameter::declaration::Values;

/// Name of the throughput axis.
const AXIS: &str = "frame_bytes";

/// Throughput in frames per second, by frame size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Throughputs(BTreeMap<u16, f64>);

/// Creates the method that needs the throughput values.
pub type MethodFactory = fn(&Context, &Throughputs) -> Box<dyn Method>;

/// A method that follows a throughput search.
pub struct AtThroughput {
    context: Context,
    frames: Vec<u16>,
    /// Known values, by frame size and repeat.
    known: BTreeMap<(u16, u32), Finding>,
    search: Option<Searches>,
    /// Creates the search for unknown values.
    searching: fn(&Context, Vec<SearchTask>) -> Searches,
    make: MethodFactory,
    then: Option<Box<dyn Method>>,
    findings: Vec<Finding>,
}

impl Throughputs {
    /// Iterates over all sizes and their throughput, which is 0 if every load lost frames.
    pub fn all(&self) -> impl Iterator<Item = (u16, f64)> + '_ {
        self.0.iter().map(|(size, pps)| (*size, *pps))
    }

    /// Iterates over the sizes with a throughput above 0.
    pub fn each(&self) -> impl Iterator<Item = (u16, f64)> + '_ {
        self.0.iter().map(|(size, pps)| (*size, *pps)).filter(|(_, pps)| *pps > 0.0)
    }
}

/// Creates repeated trials at the throughput of each frame size; the flag enables the latency distribution.
pub fn at_throughput(
    context: &Context,
    found: &Throughputs,
    repeats: u32,
    tells_variation: bool,
) -> Box<dyn Method> {
    let setup = context.setup();
    let point = |(frame_bytes, pps)| {
        let trial = context.trial(&setup, frame_bytes, Rate::FramesPerSecond(pps));
        let trial = Trial { tells_variation, ..trial };
        SweepPoint { x: f64::from(frame_bytes), curve: None, setup, trial }
    };
    Box::new(Sweep::new(AXIS, found.each().map(point).collect(), repeats))
}

impl AtThroughput {
    /// Creates the method with `make`, at the throughput of these frame sizes.
    pub fn new(context: &Context, frames: Values<u16>, make: MethodFactory) -> Self {
        let frames = frames.into_iter().collect();
        let (context, known) = (context.clone(), BTreeMap::new());
        let (search, then, findings) = (None, None, Vec::new());
        // The search only gives the loads; more repeats than the default do not improve them.
        let searching = |context: &Context, tasks| {
            let searches = context.searches().min(context.parameters.searches_by_default());
            Searches::new(context, AXIS, tasks, searches)
        };
        AtThroughput { context, frames, known, search, searching, make, then, findings }
    }

    /// Replaces the throughput search.
    #[must_use]
    pub fn searching(self, searching: fn(&Context, Vec<SearchTask>) -> Searches) -> Self {
        AtThroughput { searching, ..self }
    }

    /// Creates a search for the unknown values.
    fn missing(&self) -> Searches {
        let is_missing = |size: &u16| self.known.keys().all(|(known, _)| known != size);
        let task = |&frame_bytes: &u16| {
            let metric = Metric::ThroughputPps;
            is_missing(&frame_bytes).then_some(SearchTask { frame_bytes, loss_ratio: 0.0, metric })
        };
        let tasks = self.frames.iter().filter_map(task).collect();
        (self.searching)(&self.context, tasks)
    }

    fn know(&mut self, finding: Finding) {
        self.known.insert((finding.x as u16, finding.repeat), finding);
    }

    fn throughputs(&self) -> Throughputs {
        let of = |size: u16| {
            let found = self.known.range((size, 0)..=(size, u32::MAX));
            let values: Vec<f64> = found.map(|(_, finding)| finding.value).collect();
            (size, series::median(&values).unwrap_or(0.0))
        };
        Throughputs(self.frames.iter().copied().map(of).collect())
    }
}

impl Procedure for AtThroughput {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let Some(then) = &mut self.then {
            return then.next(last);
        }
        if self.search.is_none() {
            self.search = Some(self.missing());
        }
        let search = self.search.as_mut().expect("the search was created above");
        if !search.is_empty() {
            match search.next(last) {
                Step::Done => {}
                step => return step,
            }
            let found = search.findings();
            found.into_iter().for_each(|finding| self.know(finding));
        }
        self.findings.extend(self.known.values().cloned());
        let mut then = (self.make)(&self.context, &self.throughputs());
        let step = then.next(None);
        self.then = Some(then);
        step
    }
}

impl Method for AtThroughput {
    fn tag(&self) -> Tag {
        let searching = || self.search.as_ref().map_or(1, |search| search.tag().repeat);
        match &self.then {
            Some(then) => then.tag(),
            // The trials of the search, including the longer confirmation trials, only give the loads.
            None => Tag { role: Role::Search, repeat: searching() },
        }
    }

    fn allowed(&self) -> Vec<f64> {
        match &self.then {
            Some(then) => then.allowed(),
            None => self.search.iter().flat_map(|search| search.allowed()).collect(),
        }
    }

    fn brackets(&self) -> Vec<Bracket> {
        match &self.then {
            Some(then) => then.brackets(),
            None => self.search.iter().flat_map(|search| search.brackets()).collect(),
        }
    }

    fn findings(&mut self) -> Vec<Finding> {
        let mut found = std::mem::take(&mut self.findings);
        found.extend(self.then.iter_mut().flat_map(|then| then.findings()));
        found
    }

    fn inherit(&mut self, found: &record::Outcome) {
        if found.metric != Metric::ThroughputPps || found.point.name != AXIS {
            return;
        }
        let is = |flag| found.flags.contains(&flag);
        self.know(Finding {
            irregular: is(Flag::Irregular),
            tester_limited: is(Flag::TesterLimited),
            disturbed: is(Flag::TesterInterference),
            ..Finding::new(found.repeat, AXIS, found.point.value, found.metric, found.value)
        });
    }
}
