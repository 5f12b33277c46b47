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
//!
//! The update is repeated from empty tables: with denser probes where the first ones do not resolve batches or
//! the end of the update, and then until a rule acts after the barrier's answer or the budget ends
//! ([`passes`]). Values come from the pass with the best resolution ([`values`]).

use instrument::module::{Desk, Ended, Event, Facts, Module, Needs, Said, What};
use instrument::module::{Probe, TimerId};
use openflow::header::Xid;
use openflow::model::FlowMod;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;

use super::first_frames::FirstFrames;
use super::focus::{Focus, STREAMS};
use super::rules::{FAR, NEAR, Priorities, Rules};
pub use passes::DENSER;
use passes::{BUDGET, Pass};

/// Updates of one trial, and which of them tells the values.
mod passes;
/// The values of a trial.
mod values;

/// How long frames have run when the update begins, at least.
const LEAD: Nanos = Nanos::from_millis(50);

/// The name of the limit that [`Update::patience`] sets.
const PATIENCE_LIMIT: &str = "patience for rules to act and for the barrier";

/// The name of the limit that a switch reaches which refuses rules.
const REFUSAL_LIMIT: &str = "rules that the switch accepts";

/// The number of the first stream of probes.
const STREAM: u16 = 1;

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
    /// The same of a pass that resolves more, at most.
    pub probes_pps_max: f64,
    /// Updates of one trial at most.
    pub updates_max: usize,
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
    /// The update at hand.
    pass: Pass,
    /// Those before it.
    earlier: Vec<Pass>,
    probes: Focus,
    /// Those of the first update while denser ones are sent.
    sparse: Option<Focus>,
    /// Late probes that came through.
    late: FirstFrames,
    /// The barrier that is waited for.
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    /// Until when it is waited for what has to be there before the update.
    settles_until: Nanos,
    /// When the first update was prepared.
    begun_at: Nanos,
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
            pass: Pass::new(count, update.probes_pps, Nanos::ZERO),
            earlier: Vec::new(),
            probes: Focus::new(count, update.probes_pps, STREAM),
            sparse: None,
            late: FirstFrames::new(count),
            update,
            phase: Phase::Preparing,
            barrier: None,
            timer: None,
            settles_until: Nanos::MAX,
            begun_at: Nanos::ZERO,
        }
    }

    fn begin(&mut self, facts: &Facts, desk: &mut Desk) {
        debug_assert!(facts.ports.len() > FAR, "a rig has two ports");
        self.begun_at = desk.now();
        self.probes.prepare(&self.update.rules, self.update.frame_bytes, desk);
        self.probes.watch(&[NEAR, FAR], desk);
        self.prepare(desk);
    }

    /// Empties the tables and puts in what is there before the update.
    fn prepare(&mut self, desk: &mut Desk) {
        self.phase = Phase::Preparing;
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
        (self.pass.prepared, self.barrier) = (Some(said), said.xids().last());
        self.timer = Some(desk.timer_in(self.update.patience));
    }

    /// The update is over: repeats it if that tells more.
    fn conclude(&mut self, desk: &mut Desk) {
        let Some(pps) = self.next_pps(desk.now()) else { return desk.end() };
        let count = self.update.rules.count();
        let pass = std::mem::replace(&mut self.pass, Pass::new(count, pps, desk.now()));
        self.probes.stop(desk);
        if pps > self.update.probes_pps {
            let dense = Focus::new(count, pps, STREAM + STREAMS).ahead(pass.rules_ahead());
            dense.prepare(&self.update.rules, self.update.frame_bytes, desk);
            self.sparse = Some(std::mem::replace(&mut self.probes, dense));
        } else {
            self.probes = self.sparse.take().unwrap_or_else(|| self.probes.clone());
            self.probes.reset(desk);
        }
        self.probes.watch(&[NEAR, FAR], desk);
        self.earlier.push(pass);
        self.prepare(desk);
    }

    /// Probes in a second of the next update; none if another one tells no more.
    fn next_pps(&self, now: Nanos) -> Option<f64> {
        let updates = self.earlier.len() + 1;
        let is_early = |pass: &Pass| pass.activation.premature() > 0;
        let is_over = self.update.probing != Probing::Before
            || updates >= self.update.updates_max
            || !self.pass.activation.is_complete();
        if is_over {
            return None;
        }
        let (pps, most) = (self.update.probes_pps, self.update.probes_pps_max);
        let was_dense = self.earlier.iter().chain([&self.pass]).any(|pass| pass.probes_pps >= most);
        if !was_dense && !self.pass.is_resolved() {
            return Some(most);
        }
        let is_decided = is_early(&self.pass) || self.earlier.iter().any(is_early);
        let is_affordable = now.since(self.begun_at) < BUDGET;
        (!is_decided && is_affordable).then_some(pps)
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
        let unready = self.update.rules.count() as usize - self.pass.activation.ready();
        let wait = if unready <= self.refused() {
            self.pass.unready = unready;
            self.phase = Phase::Quiet;
            LEAD
        } else if desk.now() < self.settles_until {
            self.round().saturating_add(LEAD)
        } else {
            (self.phase, self.pass.unready) = (Phase::Quiet, unready);
            LEAD
        };
        if self.phase == Phase::Quiet && matches!(self.update.probing, Probing::After(_)) {
            self.probes.stop(desk);
        }
        self.timer = Some(desk.timer_in(wait));
    }

    /// The time in which every rule is visited once.
    fn round(&self) -> Nanos {
        Nanos::from_secs_f64(f64::from(self.update.rules.count()) / self.pass.probes_pps)
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
        (self.pass.said, self.barrier) = (Some(said), said.xids().last());
        self.timer = Some(desk.timer_in(self.update.patience));
    }

    fn acknowledged(&mut self, at: Nanos, desk: &mut Desk) {
        self.pass.acknowledged_at = Some(at);
        self.pass.activation.acknowledge(at);
        if let Probing::After(span) = self.update.probing {
            self.probes.begin(at.saturating_add(span), desk);
        }
        self.look(desk);
    }

    /// Whether that was all: then whatever still comes is watched for a while.
    fn look(&mut self, desk: &mut Desk) {
        let waits_for = self.update.rules.count() as usize - self.refused();
        let is_done =
            self.pass.activation.active() >= waits_for && self.pass.acknowledged_at.is_some();
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
        // What an earlier update left on its way shows nothing of this one.
        if probe.sent_at < self.pass.begun_at {
            return;
        }
        let (rule, sent_at) = (self.probes.rule(probe), probe.sent_at);
        let is_sent_on = port == FAR;
        let is_new = is_sent_on == (self.update.deed == Deed::Add);
        // What left before the update says how it was, and cannot be the update's doing.
        if self.phase < Phase::Updating || self.pass.sent.is_some_and(|first| sent_at < first) {
            self.pass.activation.note_before(rule, sent_at, is_new);
            self.pass.probed_from = self.pass.probed_from.min(sent_at);
            // What still waits in the switch when the update begins has not come back before it.
            self.pass.back += u64::from(self.phase < Phase::Updating);
            return;
        }
        let is_late = matches!(self.update.probing, Probing::After(_));
        if is_late && is_new && !self.late.note(rule, sent_at, at.since(sent_at)) {
            desk.leave_out("FRAMES_MAX", 1);
        }
        if self.pass.activation.note(rule, sent_at, at, is_new) {
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
            Phase::Watching => self.conclude(desk),
        }
    }

    fn heard(&mut self, xid: Xid, message: &Message, at: Nanos, desk: &mut Desk) {
        match message {
            Message::BarrierReply if self.barrier == Some(xid) => {
                self.barrier = None;
                match self.phase {
                    Phase::Preparing if self.pass.is_base_refused => {
                        desk.end_by_limit(REFUSAL_LIMIT)
                    }
                    Phase::Preparing => self.settle(desk),
                    _ => self.acknowledged(at, desk),
                }
            }
            Message::Error(_) => {
                self.pass.errors += 1;
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
        let rule = match (place(self.pass.said), place(self.pass.prepared)) {
            (Some(rule), _) => rule,
            (None, Some(at)) if at < base => return self.pass.is_base_refused = true,
            (None, Some(at)) => at - base,
            (None, None) => return,
        };
        self.pass.refused.get_mut(rule as usize).into_iter().for_each(|refused| *refused = true);
    }

    /// How many rules the switch refused.
    fn refused(&self) -> usize {
        self.pass.refused.iter().filter(|refused| **refused).count()
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
        let once = waits.into_iter().fold(rounds, Nanos::saturating_add);
        // One that resolves more, and those that fit the budget, of which the last may take as long as any.
        let limit = match self.update.updates_max {
            0 | 1 => once,
            _ => Nanos(once.0.saturating_mul(3)).saturating_add(BUDGET),
        };
        Needs::new(limit).in_versions(&self.update.versions)
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(facts) => self.begin(facts, desk),
            What::Frame(arrival) => {
                // One that left later than it says, or came while nobody looked, shows no moment.
                if let Some(probe) = arrival.probe.filter(|probe| probe.is_delay_known) {
                    self.probed(&probe, event.at, arrival.port, desk);
                }
            }
            What::Message { xid, message, .. } => self.heard(xid, message, event.at, desk),
            What::Sent { said, first, .. } if Some(said) == self.pass.said => {
                self.pass.sent = Some(first);
                self.pass.activation.begin(first);
            }
            What::Timer(timer) => self.timed(timer, desk),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, desk: &mut Desk) {
        self.tell(desk);
    }
}
