//! Rule activation: how long rules take to act on frames after they were sent, and what the barrier says.
//!
//! Claim: a switch may acknowledge rules long before they act, act on them in another order than they
//! were sent, in batches, or not before a frame asks for them. Method: so many rules are added, changed
//! or deleted at once, with a barrier behind them; probes visit every rule in turn, and the port at which
//! each comes back says how it was treated (see [`super::rules`]). The update begins when probes show
//! that every rule's frames are treated as they have to be before it: a barrier's answer is not believed
//! there either. Most probes go where rules come to act ([`super::focus`]). Probes run from before the update, or
//! only some time after the barrier's answer, which tells rules that wait for a frame from rules that are
//! late. Source: metrics C1 to C4 of the method; the OFLOPS-SUME paper, figures 7 and 8.

use instrument::module::{Desk, Ended, Event, Facts, Measured, Module, Needs, Said, Series, What};
use instrument::module::{Probe, TimerId};
use openflow::header::Xid;
use openflow::model::FlowMod;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;

use super::activation::{Activation, Moment, Order, order};
use super::batches::Batches;
use super::first_frames::FirstFrames;
use super::focus::Focus;
use super::moves::Costs;
use super::rules::{FAR, NEAR, Priorities, Rules};
use super::spread::Spread;

/// How long frames have run when the update begins, at least.
const LEAD: Nanos = Nanos::from_millis(50);

/// The name of the limit that [`Update::patience`] sets.
const PATIENCE_LIMIT: &str = "patience for rules to act and for the barrier";

/// The name of the limit that a switch reaches which refuses rules.
const REFUSAL_LIMIT: &str = "rules that the switch accepts";

/// Rules of which pairs are compared; of more, as many evenly spread.
const ORDER_RULES_MAX: usize = 4096;

/// What is done to the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// They are added.
    Add,
    /// They are there and send on, and are changed to send back.
    Modify,
    /// They are there and are deleted.
    Delete,
}

impl Deed {
    /// The deed of a word: `add`, `modify` or `delete`.
    pub fn of(word: &str) -> Deed {
        match word {
            "modify" => Deed::Modify,
            "delete" => Deed::Delete,
            _ => Deed::Add,
        }
    }
}

/// When probes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probing {
    /// From before the update.
    Before,
    /// From so long after the barrier's answer.
    After(Nanos),
}

/// How rules are changed and watched.
#[derive(Debug, Clone)]
pub struct Update {
    /// The rules and their frames.
    pub rules: Rules,
    /// What is done to them.
    pub deed: Deed,
    /// In which order priorities come.
    pub priorities: Priorities,
    /// When probes run.
    pub probing: Probing,
    /// Probes in a second, all rules together.
    pub probes_pps: f64,
    /// Size of a probe, frame check sequence counted.
    pub frame_bytes: usize,
    /// The versions that are offered.
    pub versions: Vec<Version>,
    /// How long is waited for rules to act after the last of them was sent.
    pub patience: Nanos,
    /// How long rules are watched after the first late probes, which may have brought them to work.
    pub late_watch: Nanos,
    /// How long rules are watched once all of them act.
    pub watch: Nanos,
}

/// The module.
pub struct RuleActivation {
    update: Update,
    priorities: Vec<u16>,
    phase: Phase,
    activation: Activation,
    probes: Focus,
    /// Late probes that came through.
    late: FirstFrames,
    /// The barrier that is waited for.
    barrier: Option<Xid>,
    said: Option<Said>,
    /// The first byte of the update left, and the last.
    sent: Option<[Nanos; 2]>,
    acknowledged_at: Option<Nanos>,
    errors: u64,
    /// The messages before the update.
    prepared: Option<Said>,
    /// Which rules the switch refused: nothing waits for them.
    refused: Vec<bool>,
    /// Whether the switch refused what the frames of all rules need before the update.
    is_base_refused: bool,
    timer: Option<TimerId>,
    /// Until when it is waited for what has to be there before the update.
    settles_until: Nanos,
    /// Rules that were not as they had to be when the update began all the same.
    unready: usize,
    /// When the first probe left, and how many came back that left before the update.
    probed_from: Nanos,
    back: u64,
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The tables are made ready.
    Preparing,
    /// Probes run until they show that all is as it has to be before the update.
    Settling,
    /// All is; nothing happens for a while.
    Quiet,
    /// The update was said.
    Updating,
    /// All rules act; whether one relapses is watched.
    Watching,
}

impl RuleActivation {
    /// The module for one update.
    pub fn new(update: Update) -> RuleActivation {
        let count = update.rules.count();
        RuleActivation {
            priorities: update.priorities.all(count),
            activation: Activation::new(count),
            probes: Focus::new(count, update.probes_pps),
            late: FirstFrames::new(count),
            update,
            phase: Phase::Preparing,
            barrier: None,
            said: None,
            sent: None,
            acknowledged_at: None,
            errors: 0,
            prepared: None,
            refused: vec![false; count as usize],
            is_base_refused: false,
            timer: None,
            settles_until: Nanos::MAX,
            unready: 0,
            probed_from: Nanos::MAX,
            back: 0,
        }
    }

    /// Empties the tables and puts in what is there before the update.
    fn prepare(&mut self, facts: &Facts, desk: &mut Desk) {
        debug_assert!(facts.ports.len() > FAR, "a rig has two ports");
        let rules = &self.update.rules;
        let mut messages = Rules::emptied();
        let before = |(place, &priority): (u32, &u16)| match self.update.deed {
            Deed::Add => None,
            // That they are at work shows by frames that are sent on; the rule below all others sends back too.
            Deed::Modify | Deed::Delete => Some(rules.add(place, priority)),
        };
        messages.extend((0..).zip(&self.priorities).filter_map(before).map(Message::FlowMod));
        messages.push(Message::BarrierRequest);
        let said = desk.send_all(0, messages);
        (self.prepared, self.barrier) = (Some(said), said.xids().last());
        self.timer = Some(desk.timer_in(self.update.patience));
        self.probes.prepare(rules, self.update.frame_bytes, &[NEAR, FAR], desk);
    }

    /// The switch says that all is ready: probes show whether it is.
    fn settle(&mut self, desk: &mut Desk) {
        self.phase = Phase::Settling;
        self.timer.take().map(|timer| desk.cancel(timer));
        self.settles_until = desk.now().saturating_add(self.update.patience);
        self.probes.begin(desk.now(), desk);
        self.timer = Some(desk.timer_in(self.round().saturating_add(LEAD)));
    }

    /// Goes on if every rule's frames are treated as before, or if it was waited long enough for that.
    fn settled(&mut self, desk: &mut Desk) {
        let unready = self.update.rules.count() as usize - self.activation.ready();
        let wait = if unready <= self.refused() {
            self.unready = unready;
            self.phase = Phase::Quiet;
            LEAD
        } else if desk.now() < self.settles_until {
            self.round().saturating_add(LEAD)
        } else {
            (self.phase, self.unready) = (Phase::Quiet, unready);
            LEAD
        };
        if self.phase == Phase::Quiet && matches!(self.update.probing, Probing::After(_)) {
            self.probes.stop(desk);
        }
        self.timer = Some(desk.timer_in(wait));
    }

    /// The time in which every rule is visited once.
    fn round(&self) -> Nanos {
        Nanos::from_secs_f64(f64::from(self.update.rules.count()) / self.update.probes_pps)
    }

    /// Says the update, with a barrier behind it.
    fn change(&mut self, desk: &mut Desk) {
        self.phase = Phase::Updating;
        let rules = &self.update.rules;
        let change: fn(&Rules, u32, u16) -> FlowMod = match self.update.deed {
            Deed::Add => Rules::add,
            Deed::Modify => Rules::modify_back,
            Deed::Delete => Rules::delete,
        };
        let flow_mods = (0..).zip(&self.priorities);
        let mut messages: Vec<Message> = flow_mods
            .map(|(place, &priority)| Message::FlowMod(change(rules, place, priority)))
            .collect();
        messages.push(Message::BarrierRequest);
        let said = desk.send_all(0, messages);
        (self.said, self.barrier) = (Some(said), said.xids().last());
        self.timer = Some(desk.timer_in(self.update.patience));
    }

    fn acknowledged(&mut self, at: Nanos, desk: &mut Desk) {
        self.acknowledged_at = Some(at);
        self.activation.acknowledge(at);
        if let Probing::After(span) = self.update.probing {
            self.probes.begin(at.saturating_add(span), desk);
        }
        self.look(desk);
    }

    /// Whether that was all: then whatever still comes is watched for a while.
    fn look(&mut self, desk: &mut Desk) {
        let waits_for = self.update.rules.count() as usize - self.refused();
        let is_done = self.activation.active() >= waits_for && self.acknowledged_at.is_some();
        if self.phase == Phase::Updating && is_done {
            self.phase = Phase::Watching;
            self.timer.take().map(|timer| desk.cancel(timer));
            let longer = match self.update.probing {
                Probing::Before => self.update.watch,
                Probing::After(_) => self.update.late_watch.max(LEAD),
            };
            self.timer = Some(desk.timer_in(self.round().saturating_add(longer)));
        }
    }

    /// A probe that came back: at the far port it was sent on.
    fn probed(&mut self, probe: &Probe, at: Nanos, port: usize, desk: &mut Desk) {
        let (rule, sent_at) = (self.probes.rule(probe), probe.sent_at);
        let is_sent_on = port == FAR;
        let is_new = is_sent_on == (self.update.deed == Deed::Add);
        // What left before the update says how it was, and cannot be the update's doing.
        if self.phase < Phase::Updating || self.sent.is_some_and(|[first, _]| sent_at < first) {
            self.activation.note_before(rule, sent_at, is_new);
            self.probed_from = self.probed_from.min(sent_at);
            // What still waits in the switch when the update begins has not come back before it.
            self.back += u64::from(self.phase < Phase::Updating);
            return;
        }
        let is_late = matches!(self.update.probing, Probing::After(_));
        if is_late && is_new && !self.late.note(rule, sent_at, at.since(sent_at)) {
            desk.leave_out("FRAMES_MAX", 1);
        }
        if self.activation.note(rule, sent_at, at, is_new) {
            if self.update.probing == Probing::Before {
                self.probes.acts(rule, desk);
            }
            self.look(desk);
        }
    }

    fn timed(&mut self, timer: TimerId, desk: &mut Desk) {
        if self.timer != Some(timer) {
            return;
        }
        match self.phase {
            Phase::Preparing => desk.end_by_limit(PATIENCE_LIMIT),
            Phase::Settling => self.settled(desk),
            Phase::Quiet => self.change(desk),
            Phase::Updating => desk.end_by_limit(PATIENCE_LIMIT),
            Phase::Watching if self.refused() > 0 => desk.end_by_limit(REFUSAL_LIMIT),
            Phase::Watching => desk.end(),
        }
    }

    fn heard(&mut self, xid: Xid, message: &Message, at: Nanos, desk: &mut Desk) {
        match message {
            Message::BarrierReply if self.barrier == Some(xid) => {
                self.barrier = None;
                match self.phase {
                    Phase::Preparing if self.is_base_refused => desk.end_by_limit(REFUSAL_LIMIT),
                    Phase::Preparing => self.settle(desk),
                    _ => self.acknowledged(at, desk),
                }
            }
            Message::Error(_) => {
                self.errors += 1;
                self.refuse(xid);
                self.look(desk);
            }
            _ => {}
        }
    }

    /// Notes which rule an error is about.
    fn refuse(&mut self, xid: Xid) {
        let place = |said: Option<Said>| said.and_then(|said| said.place(xid));
        let base = Rules::emptied().len() as u32;
        let rule = match (place(self.said), place(self.prepared)) {
            (Some(rule), _) => rule,
            (None, Some(at)) if at < base => return self.is_base_refused = true,
            (None, Some(at)) => at - base,
            (None, None) => return,
        };
        self.refused.get_mut(rule as usize).into_iter().for_each(|refused| *refused = true);
    }

    /// How many rules the switch refused.
    fn refused(&self) -> usize {
        self.refused.iter().filter(|refused| **refused).count()
    }

    /// The values, as far as there are any.
    fn tell(&mut self, desk: &mut Desk) {
        let Some([first, _]) = self.sent else { return };
        let count = u64::from(self.update.rules.count());
        let turn = desk.turn();
        let mut tell = |measured: Measured| desk.measured(measured);
        let acknowledged = self.acknowledged_at.map(|at| at.since(first));
        if let Some(span) = acknowledged {
            let (span, half) = (span.0 as f64, turn.0 as f64);
            tell(Measured::new("control_plane_ns", "ns", span, half).of(count));
        }
        let mut moments: Vec<(usize, Moment)> = self.activation.moments().collect();
        let share = moments.len() as f64 / count as f64;
        tell(Measured::new("rules_active_ratio", "ratio", share, 0.0).of(count));
        tell(Measured::new("errors_count", "count", self.errors as f64, 0.0));
        let unready = self.unready as f64 / count as f64;
        tell(Measured::new("rules_unready_ratio", "ratio", unready, 0.0).of(count));
        self.tell_truth(&mut tell);
        match self.update.probing {
            Probing::Before => {
                self.tell_ways(first, &mut tell);
                self.tell_moments([first, turn], acknowledged, &moments, &mut tell);
            }
            Probing::After(_) => return self.tell_first_probes(&mut tell),
        }
        let found = order(&thinned(&moments));
        if let Some(found) = found {
            tell(tau("order_tau_index", &found));
            let inversions = found.inversions as f64;
            tell(Measured::new("inversions_count", "count", inversions, 0.0).of(found.decided));
        }
        let as_sent: Vec<Moment> = moments.iter().map(|(_, moment)| *moment).collect();
        moments.sort_by_key(|(_, moment)| moment.at);
        // With rules missing a batch is not known, and neither is what was moved.
        let batches = Batches::of(&moments).filter(|_| self.activation.is_complete());
        if let Some(batches) = &batches {
            batches.tell(&mut tell);
            batches.order().into_iter().for_each(|it| tell(tau("batch_order_tau_index", &it)));
        } else if self.activation.is_complete() && found.is_some_and(|it| it.inversions == 0) {
            self.costs(&as_sent).into_iter().for_each(|costs| costs.tell(&mut tell));
        }
        for measured in longest_pause(first, &moments) {
            desk.measured(measured);
        }
        desk.series(acting_over_time(first, &moments));
        desk.series(known_over_place(&moments));
        desk.series(place_over_place(&moments));
    }

    /// What insertions cost, where the priorities tell what each had to move: those of rising priority the entries
    /// below, the one below all rules among them, and those of falling priority the ones above.
    fn costs(&self, moments: &[Moment]) -> Option<Costs> {
        let others = match (self.update.deed, self.update.priorities) {
            (Deed::Add, Priorities::Ascending) => 1,
            (Deed::Add, Priorities::Descending) => 0,
            _ => return None,
        };
        Costs::of(moments, others)
    }

    /// What the switch said against what it did.
    fn tell_truth(&self, tell: &mut impl FnMut(Measured)) {
        if self.acknowledged_at.is_none() {
            return;
        }
        let count = u64::from(self.update.rules.count());
        let premature = self.activation.premature() as f64 / count as f64;
        tell(Measured::new("rules_premature_ratio", "ratio", premature, 0.0).of(count));
        let stale = self.activation.stale() as f64;
        tell(Measured::new("stale_frames", "frames", stale, 0.0));
        let relapsed = self.activation.relapsed() as f64;
        tell(Measured::new("relapsed_frames", "frames", relapsed, 0.0));
    }

    /// What a rule's first frames took and its last ones, and what share of frames came back before.
    fn tell_ways(&self, first: Nanos, tell: &mut impl FnMut(Measured)) {
        let names = ["first_frame_ns", "last_frame_ns"];
        for (name, took) in names.into_iter().zip(self.activation.took()) {
            if let Some(took) = Spread::of(took) {
                took.tell(name, 0.0, tell);
            }
        }
        let sent = self.update.probes_pps * first.since(self.probed_from).as_secs_f64();
        if self.back > 0 && sent >= 1.0 {
            let back = (self.back as f64 / sent).min(1.0);
            tell(Measured::new("probes_back_ratio", "ratio", back, 0.0).of(self.back));
        }
    }

    /// How long rules took, from the first byte of the update on.
    fn tell_moments(
        &self,
        [first, turn]: [Nanos; 2],
        acknowledged: Option<Nanos>,
        moments: &[(usize, Moment)],
        tell: &mut impl FnMut(Measured),
    ) {
        let span = |moment: &Moment| moment.at.0 as f64 - first.0 as f64;
        let spans = moments.iter().map(|(_, moment)| span(moment)).collect();
        let halves = moments.iter().map(|(_, moment)| moment.half.0 as f64).collect();
        let last = moments.iter().map(|(_, moment)| *moment).max_by_key(|moment| moment.at);
        let (Some(spans), Some(halves), Some(last)) = (Spread::of(spans), Spread::of(halves), last)
        else {
            return;
        };
        let half = halves.quantile(0.5);
        let count = moments.len() as u64;
        let value = |name: &'static str, value: f64, half: f64| {
            Measured::new(name, "ns", value, half).of(count)
        };
        spans.tell("activation_ns", half, tell);
        tell(value("resolution_ns_p50", half, 0.0));
        let (greatest, last_half) = (span(&last), last.half.0 as f64);
        // With rules missing the last is not known.
        if self.activation.is_complete() {
            tell(value("data_plane_ns", greatest, last_half));
            let seconds = greatest.max(1.0) / 1e9;
            let rate = count as f64 / seconds;
            let off = rate * last_half / greatest.max(1.0);
            tell(Measured::new("rules_per_s", "per_s", rate, off));
        }
        if let Some(said) = acknowledged {
            // The answer may have waited for a turn before it was read.
            let (gap, turn) = (|span: f64| span - said.0 as f64, turn.0 as f64);
            tell(value("barrier_gap_ns_p50", gap(spans.quantile(0.5)), half + turn));
            tell(value("barrier_gap_ns_max", gap(greatest), last_half + turn));
        }
    }

    /// Whether rules waited for a frame: with probes only long after the barrier's answer.
    fn tell_first_probes(&mut self, tell: &mut impl FnMut(Measured)) {
        self.late.tell(tell);
        let (probed, at_work) = self.activation.first_probes();
        if probed == 0 {
            return;
        }
        let share = at_work as f64 / probed as f64;
        let named = Measured::new("first_probe_active_ratio", "ratio", share, 0.0);
        tell(named.of(probed as u64));
        let waits: Vec<f64> =
            self.activation.after_first_probe().map(|span| span.0 as f64).collect();
        if let Some(waits) = Spread::of(waits) {
            waits.tell("after_first_probe_ns", self.round().0 as f64, tell);
        }
    }
}

impl Module for RuleActivation {
    fn needs(&self) -> Needs {
        let after = match self.update.probing {
            Probing::After(span) => span.saturating_add(self.update.late_watch),
            Probing::Before => Nanos(0),
        };
        let patience = self.update.patience;
        // Tables are made ready, are seen to be, and then change.
        let waits = [patience, patience, patience, after, self.update.watch, Nanos::from_secs(10)];
        let rounds = Nanos(self.round().0.saturating_mul(4));
        let limit = waits.into_iter().fold(rounds, Nanos::saturating_add);
        Needs::new(limit).in_versions(&self.update.versions)
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(facts) => self.prepare(facts, desk),
            What::Frame(arrival) => {
                // One that left later than it says, or came while nobody looked, shows no moment.
                if let Some(probe) = arrival.probe.filter(|probe| probe.is_delay_known) {
                    self.probed(&probe, event.at, arrival.port, desk);
                }
            }
            What::Message { xid, message, .. } => self.heard(xid, message, event.at, desk),
            What::Sent { said, first, last, .. } if Some(said) == self.said => {
                self.sent = Some([first, last]);
                self.activation.begin(first);
            }
            What::Timer(timer) => self.timed(timer, desk),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, desk: &mut Desk) {
        self.tell(desk);
    }
}

/// An order as a number.
fn tau(name: &'static str, found: &Order) -> Measured {
    Measured::new(name, "index", found.tau, found.half()).of(found.decided)
}

/// Some of the moments, evenly spread over the rules, if there are too many to compare all.
fn thinned(moments: &[(usize, Moment)]) -> Vec<(usize, Moment)> {
    let step = moments.len().div_ceil(ORDER_RULES_MAX).max(1);
    moments.iter().step_by(step).copied().collect()
}

/// The longest time in which no rule began to act, and when it began; none of fewer than two rules.
fn longest_pause(first: Nanos, moments: &[(usize, Moment)]) -> Vec<Measured> {
    let pairs = moments.windows(2).map(|pair| (pair[0].1, pair[1].1));
    let Some((from, to)) = pairs.max_by_key(|(from, to)| to.at.since(from.at)) else {
        return Vec::new();
    };
    let half = from.half.saturating_add(to.half).0 as f64;
    let begins = from.at.0 as f64 - first.0 as f64;
    vec![
        Measured::new("pause_ns_max", "ns", to.at.since(from.at).0 as f64, half),
        Measured::new("pause_begins_ns", "ns", begins, from.half.0 as f64),
    ]
}

/// How many rules act over time, from the update's first byte (figure 8a).
fn acting_over_time(first: Nanos, moments: &[(usize, Moment)]) -> Series {
    let point = |(acting, (_, moment)): (usize, &(usize, Moment))| {
        (moment.at.0 as f64 - first.0 as f64, acting as f64 + 1.0)
    };
    Series {
        name: "rules_acting".into(),
        unit: "rules".into(),
        x_name: "time_ns".into(),
        x_unit: "ns".into(),
        points: moments.iter().enumerate().map(point).collect(),
    }
}

/// How well the moment of each rule is known, by its place among those that began to act.
fn known_over_place(moments: &[(usize, Moment)]) -> Series {
    let point = |(place, (_, moment)): (usize, &(usize, Moment))| {
        (place as f64 + 1.0, moment.half.0 as f64)
    };
    Series {
        name: "resolution_ns".into(),
        unit: "ns".into(),
        x_name: "place_acting".into(),
        x_unit: "".into(),
        points: moments.iter().enumerate().map(point).collect(),
    }
}

/// The place at which each rule began to act over the place at which it was sent (figure 8b).
fn place_over_place(moments: &[(usize, Moment)]) -> Series {
    let mut points: Vec<(f64, f64)> =
        moments.iter().enumerate().map(|(at, (rule, _))| (*rule as f64, at as f64)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Series {
        name: "place_acting".into(),
        unit: "".into(),
        x_name: "place_sent".into(),
        x_unit: "".into(),
        points,
    }
}
