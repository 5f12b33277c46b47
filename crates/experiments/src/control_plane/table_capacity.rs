//! Table capacity: the number of entries that a switch accepts, whether each is active, and its behaviour when
//! full.
//!
//! Claim: a switch may accept more entries than its hardware has room for, accept entries that never become active,
//! or fail when it is full.
//!
//! Method:
//!
//! 1. The module adds entries in batches, each followed by a barrier request. This ends when the switch rejects an
//!    entry or disconnects, when a batch times out, or at a limit.
//! 2. Probes visit each entry or a sample. The port at which they return shows whether the entry is active.
//!    Inactive ones are visited again until the timeout, so that a late entry does not count as missing.
//! 3. A lasting change of the time per entry begins a new tier.
//! 4. If the table is full, the module deletes one entry and adds another. It finally deletes all entries.
//!
//! Source: metric C7 of the method; Tango (CoNEXT 2014) for tiers.

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::{FlowMod, FlowModCommand, Match};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, SendSpan, Series, TimerId,
};
use tester::search::bracket::{Bracket, SearchQuantity};

use record::BoundCause;

use super::forwarding_check::UNANSWERED;
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{FAR, NEAR, Priorities, RULES_MAX, Rules};
use super::summary::Summary;
use super::updates::{VERSION, versions};
use super::verdict::ActivationLimit;
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Maximum number of further visits to entries whose frames did not arrive.
const ROUNDS_MAX: u16 = 5;

/// Time to wait for frames in flight.
const DRAIN: Nanos = Nanos::from_millis(50);

/// The pause between two visits is the time for which entries have been inactive, divided by this.
const PAUSE_SHARE: u64 = 10;

/// Number of visits to each entry.
const VISITS: u64 = 4;

/// Minimum number of values in a tier, in the series that is searched for tiers.
const TIER_MIN: usize = 4;

/// Maximum number of values that are searched for tiers; longer series use medians of neighbours.
const TIER_VALUES_MAX: usize = 400;

/// Minimum factor between the medians of successive tiers.
const TIER_FACTOR: f64 = 1.5;

/// Name of the axis.
pub const AXIS: &str = "rules_bound";

const BOUND: Parameter = Parameter {
    key: "rules_bound",
    takes: ValueType::Integers(1, RULES_MAX),
    default: "4096",
    unit: "rules",
    help: "maximum number of entries to add",
};

/// Number of entries before each barrier request.
pub const BATCH: Parameter = Parameter {
    key: "batch",
    takes: ValueType::Integer(1, 1000),
    default: "32",
    unit: "rules",
    help: "entries before each barrier request",
};

/// The order of priorities.
pub const ORDER: Parameter = Parameter {
    key: "priority_order",
    takes: ValueType::Word(Priorities::WORDS),
    default: "same",
    unit: "",
    help: "order of the priorities of the entries",
};

/// Number of entries that probes visit.
pub const SAMPLE: Parameter = Parameter {
    key: "sample",
    takes: ValueType::Integer(1, RULES_MAX),
    default: "4096",
    unit: "rules",
    help: "maximum number of entries to verify in the data plane; a larger table is sampled evenly \
           from a random start",
};

/// Rate of these probes.
pub const PROBES_PPS: Parameter = Parameter {
    key: "probes_pps",
    takes: ValueType::Number(1.0, 1e6),
    default: "50000",
    unit: "frames/s",
    help: "probe rate, all entries together",
};

/// Maximum time of the switch.
pub const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "10",
    unit: "s",
    help: "timeout of a batch, and of the activation of entries",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[BOUND, BATCH, ORDER, SAMPLE, PROBES_PPS, PATIENCE, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Accepted and active entries",
        &["accepted_rules", "acting_rules"],
        &[
            "is_full_count",
            "is_silent_count",
            "missing_rules",
            "late_rules",
            "late_ns_max",
            "unstable_rules",
            "unseen_rules",
            "reused_ratio",
        ],
    ),
    Chart::values(
        "Time per entry while the table fills",
        &["rule_ns_p50"],
        &["rule_ns_min", "rule_ns_max", "tiers_count", "forwarding_tiers_count"],
    ),
    Chart::series("Time per entry by number of entries", &["rule_time_ns"]),
    Chart::series("Latency of frames by position of their entry", &["forwarding_time_ns"]),
];

/// Settings for filling a table.
#[derive(Debug, Clone)]
pub struct CapacitySettings {
    rules: Rules,
    /// Whether the entries match on every field.
    is_exact: bool,
    priorities: Vec<u16>,
    batch: usize,
    sample: u32,
    seed: u64,
    probes_pps: f64,
    patience: Nanos,
    /// Knowledge of activation times shared between repeats.
    bound: ActivationLimit,
    versions: Vec<Version>,
}

/// State of the module.
pub struct TableCapacity {
    filling: CapacitySettings,
    phase: Phase,
    barrier: Option<Xid>,
    said: Option<MessageRange>,
    said_at: Nanos,
    /// Time of the last barrier reply, from which probes search for entries.
    looks_from: Nanos,
    timer: Option<TimerId>,
    /// For each sent entry, whether it was rejected.
    refused: Vec<bool>,
    error: Option<String>,
    /// Whether the switch stopped replying or disconnected.
    is_silent: bool,
    is_reused: Option<bool>,
    /// Middle of each batch, and nanoseconds per entry in it.
    times: Vec<(f64, f64)>,
    /// Observations of each visited entry: position, frames forwarded and returned, and shortest delay.
    seen: Vec<ProbeResult>,
    /// Entries to visit, by their position in that list.
    visited: Vec<usize>,
    /// Number of probe rounds, which is also the id of the stream.
    round: u16,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct ProbeResult {
    place: u32,
    on: u32,
    back: u32,
    least_ns: f64,
    /// Departure time of the first forwarded frame, if others had returned before.
    late_at: Option<Nanos>,
    /// Whether frames returned after others had been forwarded.
    is_unstable: bool,
}

impl ProbeResult {
    fn new(place: u32) -> ProbeResult {
        let (on, back, least_ns) = (0, 0, f64::INFINITY);
        ProbeResult { place, on, back, least_ns, late_at: None, is_unstable: false }
    }

    /// Records a frame that was forwarded with this delay, or returned.
    fn note(&mut self, is_on: bool, sent_at: Nanos, delay: Option<Nanos>) {
        if !is_on {
            self.back += 1;
            self.is_unstable |= self.on > 0;
            return;
        }
        if self.back > 0 && self.on == 0 {
            self.late_at = Some(sent_at);
        }
        self.on += 1;
        self.least_ns = self.least_ns.min(delay.map_or(f64::INFINITY, |it| it.0 as f64));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preparing,
    Filling,
    Looking,
    Draining,
    Reusing,
    Emptying,
}

impl CapacitySettings {
    /// Builds the flow-mod that adds the entry at this position.
    fn add(&self, place: usize) -> FlowMod {
        let add = self.rules.add(place as u32, self.priorities[place]);
        match self.is_exact {
            true => FlowMod { matching: self.rules.exact(place as u32), ..add },
            false => add,
        }
    }
}

impl TableCapacity {
    /// Creates the module.
    pub fn new(filling: CapacitySettings) -> TableCapacity {
        TableCapacity {
            filling,
            phase: Phase::Preparing,
            barrier: None,
            said: None,
            said_at: Nanos(0),
            looks_from: Nanos(0),
            timer: None,
            refused: Vec::new(),
            error: None,
            is_silent: false,
            is_reused: None,
            times: Vec::new(),
            seen: Vec::new(),
            visited: Vec::new(),
            round: 0,
        }
    }

    /// Returns whether an entry was rejected.
    fn is_full(&self) -> bool {
        self.refused.contains(&true)
    }

    fn wait(&mut self, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(self.filling.patience));
    }

    fn send(&mut self, mut messages: Vec<Message>, context: &mut ModuleContext) {
        messages.push(Message::BarrierRequest);
        let said = context.send_all(0, messages);
        (self.said, self.barrier) = (Some(said), said.xids().last());
        self.said_at = context.now();
        self.wait(context);
    }

    /// Returns the progress of the filling, for progress display.
    fn bracket(&self, tried: usize) -> Bracket {
        let refused = self.refused.iter().position(|is| *is).map(|first| first as f64 + 1.0);
        let taken = self.refused.iter().filter(|is| !**is).count() as f64;
        Bracket {
            sought: SearchQuantity::new("table capacity", "none rejected", "rules"),
            tried: tried as f64,
            met: (taken > 0.0).then_some(taken),
            missed: refused,
            most: self.filling.priorities.len() as f64,
            width: None,
        }
    }

    /// Adds the next entries, or starts the probes.
    fn fill(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Filling;
        let first = self.refused.len();
        let all = self.filling.priorities.len();
        let last = (first + self.filling.batch).min(all);
        context.report_search(Some(self.bracket(last)));
        if self.is_full() || first == all {
            return self.look(context);
        }
        let add = |place: usize| Message::FlowMod(self.filling.add(place));
        let messages = (first..last).map(add).collect();
        self.refused.resize(last, false);
        self.send(messages, context);
    }

    /// Processes the barrier reply after a batch.
    fn filled(&mut self, at: Nanos, context: &mut ModuleContext) {
        let count = self.said.map_or(1, |said| said.count.saturating_sub(1)).max(1);
        let middle = self.refused.len() as f64 - f64::from(count) / 2.0;
        if !self.is_full() {
            self.times.push((middle, at.since(self.said_at).0 as f64 / f64::from(count)));
        }
        self.fill(context);
    }

    /// Sends frames to each accepted entry, or to a sample.
    fn look(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Looking;
        self.looks_from = context.now();
        let taken = (0..).zip(&self.refused).filter(|(_, is)| !**is).map(|(place, _)| place);
        let taken: Vec<u32> = taken.collect();
        let step = taken.len().div_ceil(self.filling.sample as usize).max(1);
        let from = self.filling.seed as usize % step;
        let some = taken.into_iter().skip(from).step_by(step);
        self.seen = some.map(ProbeResult::new).collect();
        for port in [NEAR, FAR] {
            context.watch(port, FrameFilter::Probes);
        }
        self.visit(context);
    }

    /// Sends frames to entries that are still inactive, and for a few rounds to those whose frames did not arrive.
    fn visit(&mut self, context: &mut ModuleContext) {
        let waited = context.now().since(self.looks_from);
        let is_patient = waited < self.filling.bound.of(self.filling.patience);
        let awaited = |(_, seen): &(usize, &ProbeResult)| match seen.back {
            0 => seen.on == 0 && self.round < ROUNDS_MAX,
            _ => seen.on == 0 && is_patient,
        };
        let visited = (0..).zip(&self.seen).filter(awaited).map(|(at, _)| at).collect();
        self.visited = visited;
        if self.visited.is_empty() {
            if self.seen.iter().any(|seen| seen.on == 0 && seen.back > 0) {
                self.filling.bound.missed();
            }
            return self.reuse(context);
        }
        self.phase = Phase::Looking;
        self.round += 1;
        let places: Vec<u64> = self.visited.iter().map(|at| self.seen[*at].place.into()).collect();
        let mut stream = self.filling.rules.probes(self.round, 96, self.filling.probes_pps);
        super::forwarding::visit(&mut stream, &places);
        context.start(stream, SendSpan::frames(VISITS * places.len() as u64));
        let ran = (VISITS * places.len() as u64) as f64 / self.filling.probes_pps;
        let ran = Nanos::from_secs_f64(ran).saturating_add(self.filling.patience);
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(ran));
    }

    fn probed(&mut self, place: u64, port: usize, sent_at: Nanos, delay: Option<Nanos>) {
        if let Some(at) = self.visited.get(place as usize) {
            self.seen[*at].note(port == FAR, sent_at, delay);
        }
    }

    /// If the table is full, deletes an entry and adds another.
    fn reuse(&mut self, context: &mut ModuleContext) {
        let refused = self.refused.iter().position(|is| *is);
        let Some((refused, last)) = refused.zip(self.seen.last()) else {
            return self.empty(context);
        };
        self.phase = Phase::Reusing;
        let gone = FlowMod {
            command: FlowModCommand::DeleteStrict,
            instructions: Vec::new(),
            ..self.filling.add(last.place as usize)
        };
        let again = self.filling.add(refused);
        self.is_reused = Some(true);
        self.send([gone, again].map(Message::FlowMod).into(), context);
    }

    /// Deletes all entries.
    fn empty(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Emptying;
        self.send(vec![Message::FlowMod(FlowMod::delete(0, Match::ANY))], context);
    }

    fn answered(&mut self, at: Nanos, context: &mut ModuleContext) {
        match self.phase {
            Phase::Preparing => self.fill(context),
            Phase::Filling => self.filled(at, context),
            Phase::Looking | Phase::Draining => {}
            Phase::Reusing => self.empty(context),
            Phase::Emptying => context.end(),
        }
    }

    fn refuse(&mut self, xid: Xid, why: String) {
        let Some(place) = self.said.and_then(|said| said.place(xid)) else { return };
        let first = self.refused.len() + 1 - self.said.map_or(1, |said| said.count as usize);
        match self.phase {
            Phase::Filling => {
                if let Some(is) = self.refused.get_mut(first + place as usize) {
                    *is = true;
                    self.error.get_or_insert(why);
                }
            }
            Phase::Reusing => self.is_reused = Some(false),
            _ => {}
        }
    }

    fn timed(&mut self, context: &mut ModuleContext) {
        self.timer = None;
        match self.phase {
            Phase::Draining => self.visit(context),
            Phase::Looking => self.look_over(context),
            // The barrier request timed out: the last batch may not be installed.
            Phase::Filling => {
                let count = self.said.map_or(0, |said| said.count.saturating_sub(1) as usize);
                self.refused.truncate(self.refused.len() - count);
                self.error.get_or_insert("no barrier reply for a batch before the timeout".into());
                self.is_silent = true;
                self.barrier = None;
                self.look(context);
            }
            Phase::Preparing | Phase::Reusing | Phase::Emptying => context.end_by_limit(UNANSWERED),
        }
    }

    /// Ends a round of visits.
    fn look_over(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Draining;
        self.timer.take().map(|timer| context.cancel(timer));
        let waited = context.now().since(self.looks_from);
        self.timer = Some(context.timer_in(DRAIN.max(Nanos(waited.0 / PAUSE_SHARE))));
    }

    fn tell(&self, context: &mut ModuleContext) {
        let rules =
            |name: &'static str, count: usize| MeasuredValue::new(name, "rules", count as f64, 0.0);
        let refused = self.refused.iter().filter(|is| **is).count();
        let accepted = rules("accepted_rules", self.refused.len() - refused);
        context.measured(match (&self.error, self.is_full()) {
            (Some(error), _) => accepted.noting(error.clone()),
            (None, true) => accepted,
            (None, false) => accepted.at_least(
                BoundCause::SearchLimit,
                "the limit was reached before the table was full",
            ),
        });
        let full = f64::from(u8::from(self.is_full()));
        context.measured(MeasuredValue::new("is_full_count", "count", full, 0.0));
        let silent = f64::from(u8::from(self.is_silent));
        context.measured(MeasuredValue::new("is_silent_count", "count", silent, 0.0));
        if !self.seen.is_empty() {
            let count = |is: fn(&ProbeResult) -> bool| self.seen.iter().filter(|it| is(it)).count();
            let all = self.seen.len() as u64;
            context
                .measured(rules("acting_rules", count(|it| it.on > 0 && !it.is_unstable)).of(all));
            context.measured(rules("unstable_rules", count(|it| it.is_unstable)).of(all));
            let late = |it: &ProbeResult| it.late_at.filter(|_| !it.is_unstable);
            let late = self.seen.iter().filter_map(late).collect::<Vec<Nanos>>();
            context.measured(rules("late_rules", late.len()).of(all));
            if let Some(last) = late.iter().max() {
                let most = last.since(self.looks_from).0 as f64;
                let half = (most / PAUSE_SHARE as f64).max(DRAIN.0 as f64);
                context.measured(MeasuredValue::new("late_ns_max", "ns", most, half));
            }
            context.measured(rules("missing_rules", count(|it| it.on == 0 && it.back > 0)).of(all));
            context.measured(rules("unseen_rules", count(|it| it.on + it.back == 0)).of(all));
        }
        if let Some(is_reused) = self.is_reused {
            let ratio = f64::from(u8::from(is_reused));
            context.measured(MeasuredValue::new("reused_ratio", "ratio", ratio, 0.0));
        }
        let delays = self.seen.iter().filter(|it| it.least_ns.is_finite());
        let delays: Vec<(f64, f64)> = delays.map(|it| (it.place.into(), it.least_ns)).collect();
        let turn = context.poll_period().0 as f64 / self.filling.batch as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        if let Some(spread) = Summary::of(self.times.iter().map(|(_, ns)| *ns).collect()) {
            spread.tell("rule_ns", turn, &mut tell);
        }
        for (name, row) in [("tiers_count", &self.times), ("forwarding_tiers_count", &delays)] {
            let begins = tiers(row);
            let told =
                MeasuredValue::new(name, "count", begins.len() as f64, 0.0).of(row.len() as u64);
            let at: Vec<String> = begins.iter().skip(1).map(|at| format!("{at:.0}")).collect();
            let is_many = begins.len() > 1;
            let note = format!("further tiers begin at entry {}", at.join(", "));
            tell(if is_many { told.noting(note) } else { told });
        }
        context.series(series("rule_time_ns", self.times.clone()));
        context.series(series("forwarding_time_ns", delays));
    }
}

fn series(name: &'static str, points: Vec<(f64, f64)>) -> Series {
    let (unit, x_name, x_unit) = ("ns".into(), "rules".into(), "rules".into());
    Series { name: name.into(), unit, x_name, x_unit, points }
}

fn median(values: &[(f64, f64)]) -> f64 {
    let mut values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the sum of the deviations from the median.
fn off(values: &[(f64, f64)]) -> f64 {
    let middle = median(values);
    values.iter().map(|(_, value)| (value - middle).abs()).sum()
}

/// Finds where tiers begin.
///
/// The function splits the series where the values are closest to the medians of both parts. The medians must
/// differ by [`TIER_FACTOR`]. It then splits both parts in the same way.
fn tiers(row: &[(f64, f64)]) -> Vec<f64> {
    let step = row.len().div_ceil(TIER_VALUES_MAX).max(1);
    let row: Vec<(f64, f64)> = row.chunks(step).map(|some| (some[0].0, median(some))).collect();
    let mut begins = Vec::new();
    split(&row, &mut begins);
    begins.extend(row.first().map(|(at, _)| *at));
    begins.sort_by(f64::total_cmp);
    begins
}

fn split(row: &[(f64, f64)], begins: &mut Vec<f64>) {
    if row.len() < 2 * TIER_MIN {
        return;
    }
    let cost = |cut: &usize| off(&row[..*cut]) + off(&row[*cut..]);
    let cuts = TIER_MIN..=row.len() - TIER_MIN;
    let best = cuts.min_by(|a, b| cost(a).total_cmp(&cost(b)));
    let cut = best.expect("a row of this length can be split");
    let (left, right) = row.split_at(cut);
    let (a, b) = (median(left), median(right));
    let is_step = a.max(b) >= TIER_FACTOR * a.min(b) && cost(&cut) <= 0.5 * off(row);
    if is_step {
        split(left, begins);
        begins.push(right[0].0);
        split(right, begins);
    }
}

impl Module for TableCapacity {
    fn needs(&self) -> ModuleRequirements {
        let batches = self.filling.priorities.len().div_ceil(self.filling.batch) as u64 + 4;
        let most = self.filling.patience.0.saturating_mul(batches);
        let looks = self.filling.sample as f64 * VISITS as f64 / self.filling.probes_pps;
        let limit = Nanos(most).saturating_add(Nanos::from_secs_f64(looks * f64::from(ROUNDS_MAX)));
        ModuleRequirements::new(limit.min(Nanos::from_secs(1800)))
            .in_versions(&self.filling.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => self.send(Rules::emptied(), context),
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe.filter(|it| it.stream == self.round) {
                    let delay = arrival.stamp.at.since(probe.sent_at);
                    let delay = probe.is_delay_known.then_some(delay);
                    self.probed(probe.place, arrival.port, probe.sent_at, delay);
                }
            }
            EventKind::Message { xid, message: Message::Error(error), .. } => {
                self.refuse(xid, error.code.to_string());
            }
            EventKind::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.barrier = None;
                self.answered(event.at, context);
            }
            EventKind::StreamEnded(stream) if stream == self.round => self.look_over(context),
            EventKind::Timer(timer) if self.timer == Some(timer) => self.timed(context),
            _ => {}
        }
    }

    fn finish(&mut self, ended: &Ended, context: &mut ModuleContext) {
        self.is_silent |= matches!(ended, Ended::Lost { .. });
        if !self.refused.is_empty() {
            self.tell(context);
        }
    }
}

/// Returns the settings for filling a table with up to `bound` entries.
pub fn filling(context: &Context, bound: u32, is_exact: bool) -> CapacitySettings {
    let own = &context.parameters.own;
    CapacitySettings {
        rules: Rules::new(context, bound),
        is_exact,
        priorities: Priorities::of(own.text(&ORDER), context.seed).all(bound),
        batch: own.integer(&BATCH) as usize,
        sample: own.integer(&SAMPLE) as u32,
        seed: context.seed,
        probes_pps: own.number(&PROBES_PPS),
        patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        bound: ActivationLimit::default(),
        versions: versions(context),
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let at = |bound: u64| {
        let filling = filling(context, bound as u32, false);
        let make = move |_| Box::new(TableCapacity::new(filling.clone())) as Box<dyn Module>;
        ModulePoint::new(bound as f64, 2.0, make)
    };
    let spots = own.integers(&BOUND).into_iter().map(at).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_begins_at_a_lasting_change_of_times() {
        let row = |values: &[f64]| -> Vec<(f64, f64)> {
            values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect()
        };
        let noisy = |level: f64, count: usize| (0..count).map(move |at| level + (at % 3) as f64);
        let one: Vec<f64> = noisy(100.0, 60).collect();
        assert_eq!(tiers(&row(&one)), [0.0]);
        let three: Vec<f64> =
            noisy(100.0, 60).chain(noisy(300.0, 40)).chain(noisy(900.0, 50)).collect();
        assert_eq!(tiers(&row(&three)), [0.0, 60.0, 100.0]);
        let mut peak = one.clone();
        peak[30] = 5000.0;
        assert_eq!(tiers(&row(&peak)), [0.0], "one late batch is not a tier");
        assert!(tiers(&[]).is_empty());
    }
}
