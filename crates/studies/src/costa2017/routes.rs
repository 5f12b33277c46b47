//! Table IV, legacy mode of routers: number of routes that fit.
//!
//! Method: a router gets the maximum number of routes, and a frame to each shows which of them forward. If a frame
//! does not arrive or the router rejected the routes, a search halves the interval down to one route. Each step
//! uses a router without any routes. A failed number is retried at decreasing rates before it counts, because a
//! frame lost by overload would count against the router. A frame has proved every route of the reported number.

use packet::time::Nanos;
use record::{Bound, BoundCause, BoundSide, Metric, Name, Role};
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::search::binary::{
    BinarySearch, Goal, Irregularity, MeasuredLoad, SearchRequest, SearchResult,
};
use tester::search::bracket::{Bracket, SearchQuantity};
use tester::stream::Rate;
use tester::trial::Trial;

use super::filling::bound;
use super::matching::AXIS;
use experiments::{Context, Finding, Method, Tag};
use workload::Setup;
use workload::parameter::Traffic;

/// Size of the frames that check routes.
const FRAME_BYTES: u16 = 64;

/// Initial rate of frames that check routes, and its maximum as a share of the capacity of link and tester.
const LOOKING_PPS: f64 = 25_000.0;
const LOOKING_SHARE: f64 = 0.25;

/// Factor by which a retry reduces the rate.
const SLOWER: f64 = 5.0;

/// Maximum time for checking all routes at the reduced rate, in seconds.
const LOOKING_S_MAX: f64 = 60.0;

/// Minimum number of retries of a failed number.
const VERIFICATIONS_MIN: u32 = 2;

/// A repeated search.
pub struct Routes {
    context: Context,
    most: u32,
    search: Option<BinarySearch>,
    /// Number of routes that the router got last.
    given: Option<u32>,
    /// Number of checks of these routes.
    looked: u32,
    done: u32,
    findings: Vec<Finding>,
}

impl Routes {
    /// Creates the search on one router.
    pub fn new(context: &Context) -> Routes {
        let (context, most) = (context.clone(), bound(context).max(1));
        let (search, given, looked, done) = (None, None, 0, 0);
        Routes { context, most, search, given, looked, done, findings: Vec::new() }
    }

    fn goal(&self) -> Goal {
        Goal {
            loss_ratio: 0.0,
            rate_pps_min: 1.0,
            rate_pps_max: f64::from(self.most),
            resolution_pps: 1.0,
            is_confirmed: false,
            verifications: self.context.parameters.verify.max(VERIFICATIONS_MIN),
        }
    }

    fn setup(&self, entries: u32) -> Setup {
        Setup { entries, traffic: Traffic::Sequential, ..self.context.setup() }
    }

    /// Returns the rate for checking this number of routes, which decreases with each retry.
    fn pps(&self, entries: u32) -> f64 {
        let first = LOOKING_PPS.min(self.context.most_pps(FRAME_BYTES) * LOOKING_SHARE);
        let slower = first / SLOWER.powi(self.looked as i32);
        slower.max(f64::from(entries) / LOOKING_S_MAX).min(first)
    }

    /// Creates a trial with one frame to each route; late frames are sent too.
    fn trial(&self, entries: u32) -> Trial {
        let pps = self.pps(entries);
        let rate = Rate::FramesPerSecond(pps);
        let trial = self.context.trial(&self.setup(entries), FRAME_BYTES, rate);
        let duration = Nanos::from_secs_f64((f64::from(entries) - 0.5) / pps);
        Trial { warmup: Nanos::ZERO, duration, catch_up_frames: u32::MAX, ..trial }
    }

    fn finish(&mut self, found: &SearchResult) {
        let is_met = |it: &Irregularity| matches!(it, Irregularity::MaxLoadMet);
        let is_limited = |it: &Irregularity| matches!(it, Irregularity::TesterLimited { .. });
        let is_disturbed = |it: &Irregularity| matches!(it, Irregularity::Disturbed { .. });
        let is_broken = |it: &Irregularity| !is_met(it) && !is_limited(it) && !is_disturbed(it);
        let is_full = !found.irregular.iter().any(is_met);
        self.done += 1;
        let open = Bound { side: BoundSide::Lower, cause: BoundCause::SearchLimit };
        let values = [
            ("routes_count", found.rate_pps.floor(), (!is_full).then_some(open)),
            ("is_full_count", f64::from(u8::from(is_full)), None),
        ];
        for (name, value, bound) in values {
            let metric = Metric::Named(Name::of(name));
            self.findings.push(Finding {
                bound,
                irregular: found.irregular.iter().any(is_broken),
                tester_limited: found.irregular.iter().any(is_limited),
                disturbed: found.irregular.iter().any(is_disturbed),
                ..Finding::new(self.done, AXIS, f64::from(FRAME_BYTES), metric, value)
            });
        }
        (self.search, self.given) = (None, None);
    }
}

impl Procedure for Routes {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let (Some(Outcome::Trial { report, .. }), Some(search)) = (last, &mut self.search) {
            search.record(MeasuredLoad::from(report.as_ref()));
        }
        loop {
            if self.done == self.context.parameters.repeats {
                return Step::Done;
            }
            let goal = self.goal();
            match self.search.get_or_insert_with(|| BinarySearch::new(goal)).next() {
                SearchRequest::Found(found) => self.finish(&found),
                SearchRequest::Search { rate_pps: tried }
                | SearchRequest::Confirm { rate_pps: tried } => {
                    let entries = tried as u32;
                    if self.given.replace(entries) != Some(entries) {
                        self.looked = 0;
                        return Step::Install(self.setup(entries));
                    }
                    let point = Point::new(&[(AXIS, f64::from(FRAME_BYTES))]);
                    let trial = self.trial(entries);
                    self.looked += 1;
                    return Step::Trial { point, trial };
                }
            }
        }
    }
}

impl Method for Routes {
    fn tag(&self) -> Tag {
        Tag { role: Role::Search, repeat: self.done + 1 }
    }

    fn allowed(&self) -> Vec<f64> {
        vec![0.0]
    }

    fn brackets(&self) -> Vec<Bracket> {
        let sought = SearchQuantity::new("routes that fit", "all forward", "routes");
        self.search.as_ref().and_then(|search| search.bracket(sought)).into_iter().collect()
    }

    fn tolerates_rejection(&self) -> bool {
        true
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }
}
