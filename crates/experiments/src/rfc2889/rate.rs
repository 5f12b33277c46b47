//! Maximum forwarding rate (RFC 2889, 5.6): the highest forwarding rate under any load.
//!
//! Method: fully meshed at each frame size, from the throughput to the capacity of link and tester in ten steps.
//! The results are the highest forwarding rate, and the load per port at that rate. This shows a target whose
//! forwarding rate decreases under higher load, which its forwarding rate under full load does not show.

use record::{Metric, Role};
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::search::bracket::{Bracket, SearchQuantity};

use super::super::throughput_based::{AtThroughput, Throughputs};
use super::super::{Context, Finding, Method, Tag};
use super::AXIS;
use workload::Setup;
use workload::mesh::Pattern;

/// Number of loads of a pass: the throughput, the maximum, and those between.
const LOADS: usize = 11;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let frames = super::frames(context);
    Box::new(AtThroughput::new(context, frames, climb).searching(super::searches))
}

fn climb(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    Box::new(RatePasses {
        setup: super::setup(context),
        sizes: found.all().collect(),
        context: context.clone(),
        yielded: 0,
        best: (0.0, 0.0),
        is_installed: false,
        is_limited: false,
        findings: Vec::new(),
    })
}

/// Passes that run one after another.
struct RatePasses {
    context: Context,
    setup: Setup,
    /// Frame sizes, each with the throughput per port.
    sizes: Vec<(u16, f64)>,
    yielded: usize,
    /// Highest forwarding rate, and the load per port at that rate.
    best: (f64, f64),
    is_installed: bool,
    is_limited: bool,
    findings: Vec<Finding>,
}

impl RatePasses {
    /// Returns the frame size of a trial by its number, and its load per port.
    fn load(&self, number: usize) -> (u16, f64) {
        let (frame_bytes, from_pps) = self.sizes[number / LOADS % self.sizes.len()];
        let ports = self.setup.ports();
        let most_pps = self.context.port_pps(frame_bytes, ports).max(from_pps);
        let part = (number % LOADS) as f64 / (LOADS - 1) as f64;
        (frame_bytes, (from_pps + (most_pps - from_pps) * part).max(1.0))
    }

    fn trials(&self) -> usize {
        self.sizes.len() * LOADS * self.context.searches() as usize
    }

    fn repeat(&self, number: usize) -> u32 {
        (number / (LOADS * self.sizes.len().max(1))) as u32 + 1
    }

    fn take(&mut self, last: Option<&Outcome>) {
        let (Some(Outcome::Trial { report, .. }), Some(number)) =
            (last, self.yielded.checked_sub(1))
        else {
            return;
        };
        let (frame_bytes, load_pps) = self.load(number);
        let rate_pps = report.total.pps_forwarded();
        if rate_pps > self.best.0 {
            self.best = (rate_pps, load_pps);
            self.is_limited = report.is_tester_limited();
        }
        if self.yielded.is_multiple_of(LOADS) {
            let (rate_pps, load_pps) = std::mem::take(&mut self.best);
            let (repeat, x) = (self.repeat(number), f64::from(frame_bytes));
            let tester_limited = std::mem::take(&mut self.is_limited);
            let found = |metric, value| Finding {
                tester_limited,
                ..Finding::new(repeat, AXIS, x, metric, value)
            };
            self.findings.push(found(Metric::RatePpsMaximum, rate_pps));
            self.findings.push(found(Metric::LoadPpsOfMaximum, load_pps));
        }
    }
}

impl Procedure for RatePasses {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if !std::mem::replace(&mut self.is_installed, true) {
            return Step::Install(self.setup);
        }
        self.take(last);
        if self.yielded >= self.trials() {
            return Step::Done;
        }
        let (frame_bytes, load_pps) = self.load(self.yielded);
        self.yielded += 1;
        let point = Point::new(&[(AXIS, f64::from(frame_bytes))]);
        let trial = super::trial(&self.context, Pattern::Full, frame_bytes, load_pps);
        Step::Trial { point, trial }
    }
}

impl Method for RatePasses {
    fn tag(&self) -> Tag {
        Tag { role: Role::Search, repeat: self.repeat(self.yielded.saturating_sub(1)) }
    }

    /// The load rises to the maximum and the best value counts; there is no failed load on the way.
    fn brackets(&self) -> Vec<Bracket> {
        let Some(number) = self.yielded.checked_sub(1) else { return Vec::new() };
        let (frame_bytes, tried) = self.load(number);
        let (most_came, at_load) = self.best;
        vec![Bracket {
            sought: SearchQuantity::new(
                "load per port with the highest forwarding rate",
                "highest rate so far",
                "frames/s",
            ),
            tried,
            met: (most_came > 0.0).then_some(at_load),
            missed: None,
            most: self.context.port_pps(frame_bytes, self.setup.ports()).max(tried),
            width: None,
        }]
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }
}
