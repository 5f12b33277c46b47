//! Address caching capacity and address learning rate (RFC 2889, 5.7 and 5.8).
//!
//! Method: three ports are used. A station behind the test port sends frames so that its address is learned. Frames
//! from many stations then arrive at the learning port at a fixed rate. Afterwards, the test port sends a frame to
//! each of them. All of these must leave by the learning port, and none by the third, the monitoring port.
//!
//! Every trial uses a new target without learned addresses, because ageing would take long. The
//! capacity is the highest number of stations that meets this, found by bisection with a resolution
//! of one. The station at the test port is not counted. The learning rate is the highest rate for a
//! number of stations well below the capacity.
//!
//! Parameters: `--set addresses=`, the maximum number; `--set learning_rate=` for the capacity.

use packet::time::Nanos;
use record::{Bound, BoundCause, BoundSide, Metric, Name, Role};
use tester::procedure::{Outcome, Point, Procedure, Step};
use tester::search::binary::{
    BinarySearch, Goal, Irregularity, MeasuredLoad, SearchRequest, SearchResult,
};
use tester::search::bracket::{self, Bracket};
use tester::stream::{Field, FieldVariation, IndexOrder, Rate, Stream, Values};
use tester::trial::{Trial, TrialReport, Window};

use super::super::search::LOWEST_SHARE;
use super::super::{Context, Finding, Method, Tag};
use super::AXIS;
use workload::mesh::between;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;
use workload::{FIRST_MAC, Setup};

/// Number of ports: test, learning and monitoring.
const PORTS: u8 = 3;
const TEST: usize = 0;
const LEARNING: usize = 1;

/// Time in which the station at the test port sends frames, and pause between the other parts of a trial.
const PAUSE: Nanos = Nanos::from_millis(20);

/// Rate of that station's frames, per second.
const ANNOUNCING_PPS: f64 = 500.0;

/// Rate of the frames to the learned stations, per second.
const TEST_PPS: f64 = 25_000.0;

/// Maximum number of stations in the search for the learning rate.
const STATIONS: u32 = 4096;

/// Minimum number of retries after a failure; otherwise, one lost frame would halve the result.
const VERIFICATIONS_MIN: u32 = 2;

/// Value that is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchedValue {
    Capacity,
    Rate,
}

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAME, shared::REPEATS_OF_SEARCHES];

/// Creates the address caching capacity method.
pub fn capacity(context: &Context) -> Box<dyn Method> {
    learner(context, SearchedValue::Capacity)
}

/// Creates the address learning rate method.
pub fn rate(context: &Context) -> Box<dyn Method> {
    learner(context, SearchedValue::Rate)
}

fn learner(context: &Context, sought: SearchedValue) -> Box<dyn Method> {
    Box::new(AddressSearches {
        context: context.clone(),
        sought,
        capacity: None,
        done: 0,
        number: 0,
        search: None,
        is_installed: false,
        findings: Vec::new(),
    })
}

/// Searches that run one after another.
struct AddressSearches {
    context: Context,
    sought: SearchedValue,
    /// Known capacity of the target.
    capacity: Option<f64>,
    /// Completed searches.
    done: u32,
    /// Number of started targets.
    number: u32,
    search: Option<BinarySearch>,
    is_installed: bool,
    findings: Vec<Finding>,
}

impl AddressSearches {
    fn goal(&self) -> Goal {
        let (least, most, resolution) = match self.sought {
            SearchedValue::Capacity => {
                (1.0, f64::from(self.context.parameters.methods.addresses), 1.0)
            }
            SearchedValue::Rate => {
                let most = self.context.most_pps(self.frame_bytes());
                (most * LOWEST_SHARE, most, most * self.context.parameters.resolution)
            }
        };
        Goal {
            loss_ratio: 0.0,
            rate_pps_min: least,
            rate_pps_max: most,
            resolution_pps: resolution,
            is_confirmed: false,
            verifications: self.context.parameters.verify.max(VERIFICATIONS_MIN),
        }
    }

    fn frame_bytes(&self) -> u16 {
        self.context.frame(&shared::FRAME)
    }

    /// Returns the number of stations for the learning rate: half of the capacity.
    fn stations(&self) -> u64 {
        let most = self.capacity.unwrap_or(self.context.parameters.methods.addresses.into());
        ((most / 2.0) as u64).clamp(1, STATIONS.into())
    }

    /// Creates a trial with this number of stations or this learning rate.
    fn trial(&self, tried: f64) -> Trial {
        let (stations, learning_pps) = match self.sought {
            SearchedValue::Capacity => (tried as u64, self.context.parameters.methods.learning_pps),
            SearchedValue::Rate => (self.stations(), tried),
        };
        let size = self.frame_bytes();
        let addresses = &self.context.addresses;
        let rates = [ANNOUNCING_PPS, learning_pps, TEST_PPS];
        let [announcing, learning, test] = rates.map(Rate::FramesPerSecond);
        let streams = vec![
            between(addresses, 1, (TEST, LEARNING), size, announcing),
            many(
                between(addresses, 2, (LEARNING, TEST), size, learning),
                Field::MacSource,
                stations,
            ),
            many(
                between(addresses, 3, (TEST, LEARNING), size, test),
                Field::MacDestination,
                stations,
            ),
        ];
        let frames = |pps: f64| Nanos::from_secs_f64((stations as f64 - 0.5) / pps);
        let taught = after(PAUSE, frames(learning_pps));
        let tested = after(taught.until.saturating_add(PAUSE), frames(TEST_PPS));
        let windows = vec![
            Window { from: Nanos::ZERO, until: PAUSE },
            Window { from: PAUSE, until: taught.until },
            tested,
        ];
        let trial = self.context.trial_of(streams);
        // Late frames are sent too: a missing learning frame would count against the target.
        let (warmup, duration, catch_up_frames) = (Nanos::ZERO, tested.until, u32::MAX);
        Trial { windows, warmup, duration, catch_up_frames, ..trial }
    }

    fn finish(&mut self, found: &SearchResult) {
        let is_limited = |it: &Irregularity| matches!(it, Irregularity::TesterLimited { .. });
        let is_disturbed = |it: &Irregularity| matches!(it, Irregularity::Disturbed { .. });
        let is_broken = |it: &Irregularity| !is_limited(it) && !is_disturbed(it);
        let (metric, value) = match self.sought {
            SearchedValue::Capacity => (Metric::MacAddressesLearned, found.rate_pps.floor()),
            SearchedValue::Rate => (Metric::AddressesLearnedPerS, found.rate_pps),
        };
        let x = f64::from(self.frame_bytes());
        // If the target learned the maximum number, or learned at the highest rate, it may be able to do more.
        let is_met = |it: &Irregularity| matches!(it, Irregularity::MaxLoadMet);
        let is_full = !found.irregular.iter().any(is_met);
        let open = Bound { side: BoundSide::Lower, cause: BoundCause::SearchLimit };
        let mut values = vec![(metric, value, (!is_full).then_some(open))];
        if self.sought == SearchedValue::Capacity {
            let metric = Metric::Named(Name::of("is_full_count"));
            values.push((metric, f64::from(u8::from(is_full)), None));
        }
        self.findings.extend(values.into_iter().map(|(metric, value, bound)| Finding {
            bound,
            irregular: found.irregular.iter().any(is_broken),
            tester_limited: found.irregular.iter().any(is_limited),
            disturbed: found.irregular.iter().any(is_disturbed),
            ..Finding::new(self.done + 1, AXIS, x, metric, value)
        }));
        (self.search, self.done) = (None, self.done + 1);
    }
}

/// Creates a stream whose frames use the addresses of all stations in turn.
fn many(stream: Stream, field: Field, stations: u64) -> Stream {
    let fields = vec![(field, Values::Range { first: FIRST_MAC, step: 1 })];
    let vary = vec![FieldVariation { count: stations, order: IndexOrder::Sequential, fields }];
    Stream { vary, ..stream }
}

fn after(from: Nanos, span: Nanos) -> Window {
    Window { from, until: from.saturating_add(span) }
}

/// Checks that all learning frames arrived, and that exactly the test frames returned.
fn learned(report: &TrialReport) -> MeasuredLoad {
    let is_learned = match &report.streams[..] {
        [_, taught, asked] => {
            let is_whole = |load: &tester::trial::Load| load.forwarded == load.intended;
            let is_stray = asked.classes.flooded + asked.classes.misrouted > 0;
            is_whole(&taught.load) && is_whole(&asked.load) && !is_stray
        }
        _ => false,
    };
    let measured = MeasuredLoad::from(report);
    MeasuredLoad { forwarded: if is_learned { measured.offered } else { 0 }, ..measured }
}

impl Procedure for AddressSearches {
    type Setup = Setup;

    fn next(&mut self, last: Option<&Outcome>) -> Step<Setup> {
        if let (Some(Outcome::Trial { report, .. }), Some(search)) = (last, &mut self.search) {
            search.record(learned(report));
            self.is_installed = false;
        }
        loop {
            if self.done == self.context.searches() {
                return Step::Done;
            }
            let goal = self.goal();
            match self.search.get_or_insert_with(|| BinarySearch::new(goal)).next() {
                SearchRequest::Found(found) => self.finish(&found),
                SearchRequest::Search { rate_pps: tried }
                | SearchRequest::Confirm { rate_pps: tried } => {
                    if !std::mem::replace(&mut self.is_installed, true) {
                        self.number += 1;
                        return Step::Install(Setup::empty(self.context.seed, PORTS, self.number));
                    }
                    let point = Point::new(&[(AXIS, f64::from(self.frame_bytes()))]);
                    return Step::Trial { point, trial: self.trial(tried) };
                }
            }
        }
    }
}

impl Method for AddressSearches {
    fn tag(&self) -> Tag {
        Tag { role: Role::Search, repeat: self.done + 1 }
    }

    fn allowed(&self) -> Vec<f64> {
        vec![0.0]
    }

    fn brackets(&self) -> Vec<Bracket> {
        let sought = match self.sought {
            SearchedValue::Capacity => ("learned addresses", "addresses"),
            SearchedValue::Rate => ("address learning rate", "addresses/s"),
        };
        let sought = bracket::SearchQuantity::new(sought.0, "all found", sought.1);
        self.search.as_ref().and_then(|search| search.bracket(sought)).into_iter().collect()
    }

    fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    fn inherit(&mut self, found: &record::Outcome) {
        if found.metric == Metric::MacAddressesLearned {
            let least = self.capacity.unwrap_or(f64::INFINITY);
            self.capacity = Some(least.min(found.value));
        }
    }
}
