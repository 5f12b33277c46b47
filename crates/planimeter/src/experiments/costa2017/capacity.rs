//! Table IV: how many rules fit, in OpenFlow mode and in legacy mode.
//!
//! Claim: most switches hold fewer rules in OpenFlow mode than entries in legacy mode. Method: rules are put in
//! until the switch refuses one, or says nothing more, or a bound is reached, once rules that name every field and
//! once rules that name an address; then frames visit each, or a sample, and show whether it acts. A bridge hears
//! stations until one is not found again (RFC 2889, 5.7). A router is given as many routes as the bound says, and a
//! frame to each shows which forward; it is not searched for more.

use instrument::experiment::{Experiment, Outcome, Point, Step};
use instrument::module::Module;
use instrument::stream::Rate;
use instrument::trial::Trial;
use packet::time::Nanos;
use results::record::{Metric, Name, Role};

use super::super::modules::rounds::{Rounds, Spot};
use super::super::modules::table_capacity::{
    self, BATCH, ORDER, PROBES_PPS, SAMPLE, TableCapacity, filling,
};
use super::super::modules::updates::VERSION;
use super::super::{Context, Finding, Method, Tag, rfc2889};
use super::filling::{BOUND, bound};
use super::matching::AXIS;
use crate::catalog::Show;
use crate::parameter::Traffic;
use crate::parameter::own::Declared;
use crate::target::name::Technology;
use crate::workload::Setup;

/// What can be set.
pub const PARAMETERS: &[Declared] =
    &[BOUND, BATCH, ORDER, SAMPLE, PROBES_PPS, table_capacity::PATIENCE, VERSION];

/// Size of the frames that look for entries.
const FRAME_BYTES: u16 = 64;

/// Frames a second that look for routes.
const LOOKING_PPS: f64 = 25_000.0;

/// What is shown.
pub const SHOWS: &[Show] = &[Show::values(
    "Rules that the target took, and entries of legacy mode",
    &["exact_accepted_rules", "wildcard_accepted_rules", "addresses_cached", "routes_count"],
    &[
        "exact_is_full_count",
        "exact_acting_rules",
        "exact_missing_rules",
        "exact_unseen_rules",
        "wildcard_is_full_count",
        "wildcard_acting_rules",
        "wildcard_missing_rules",
        "wildcard_unseen_rules",
    ],
)];

/// The table on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    match context.technology {
        Technology::Bridging => rfc2889::addresses::capacity(context),
        Technology::Routing => Box::new(Routes::new(context)),
        Technology::OpenFlow | Technology::Wire => {
            let bound = bound(context);
            let at = |is_exact: bool, prefix: &'static str| {
                let filling = filling(context, bound, is_exact);
                let make =
                    move |_| Box::new(TableCapacity::new(filling.clone())) as Box<dyn Module>;
                Spot::new(f64::from(FRAME_BYTES), 2.0, make).named(prefix)
            };
            let spots = vec![at(true, "exact_"), at(false, "wildcard_")];
            Box::new(Rounds::new(context, AXIS, spots))
        }
    }
}

/// Routes, and a frame to each.
struct Routes {
    context: Context,
    setup: Setup,
    is_installed: bool,
    done: u32,
    findings: Vec<Finding>,
}

impl Routes {
    fn new(context: &Context) -> Routes {
        let entries = bound(context);
        let setup = Setup { entries, traffic: Traffic::Sequential, ..context.setup() };
        let (is_installed, done, findings) = (false, 0, Vec::new());
        Routes { context: context.clone(), setup, is_installed, done, findings }
    }

    /// One frame to each route; one that is late is sent all the same.
    fn trial(&self) -> Trial {
        let rate = Rate::FramesPerSecond(LOOKING_PPS);
        let trial = self.context.trial(&self.setup, FRAME_BYTES, rate);
        let frames = f64::from(self.setup.entries);
        let duration = Nanos::from_secs_f64((frames - 0.5) / LOOKING_PPS);
        Trial { warmup: Nanos::ZERO, duration, catch_up_frames: u32::MAX, ..trial }
    }
}

impl Experiment for Routes {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let Some(Outcome::Trial { report, .. }) = last {
            self.done += 1;
            let metric = Metric::Named(Name::of("routes_count"));
            let came = report.total.forwarded as f64;
            let x = f64::from(FRAME_BYTES);
            self.findings.push(Finding::new(self.done, AXIS, x, metric, came));
        }
        if self.done == self.context.parameters.repeats {
            return Step::Done;
        }
        if !std::mem::replace(&mut self.is_installed, true) {
            return Step::Install(self.setup);
        }
        let point = Point::new(&[(AXIS, f64::from(FRAME_BYTES))]);
        Step::Trial { point, trial: self.trial() }
    }
}

impl Method for Routes {
    fn tag(&self) -> Tag {
        Tag { role: Role::Measure, repeat: self.done + 1 }
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn trials_expected(&self) -> u64 {
        self.context.parameters.repeats.into()
    }

    fn trial_seconds(&self) -> Option<f64> {
        Some(f64::from(self.setup.entries) / LOOKING_PPS)
    }
}
