//! Rule activation: the time from sending flow entries until they act on frames, compared with the barrier reply.
//!
//! Claim: a switch may acknowledge entries long before they act. It may activate them in another order than they
//! were sent, in batches, or only when a frame needs them.
//!
//! Method: the module adds, modifies or deletes many entries in one update, followed by a barrier request. Probes
//! visit every entry in turn. The port at which a probe returns shows which entry applied (see [`super::rules`]).
//! The update begins when probes show that all entries are in their initial state; a barrier reply is not
//! sufficient there either. Most probes go to entries that are about to activate ([`super::adaptive_probing`]). Probes run
//! from before the update, or only some time after the barrier reply. The latter distinguishes entries that wait
//! for a frame from entries that are late.
//!
//! Source: metrics C1 to C4 of the method; the OFLOPS-SUME paper, figures 7 and 8.
//!
//! Before an update, the probe rate decreases until the path carries it ([`pace`]).
//!
//! The update is repeated from empty tables ([`passes`]): first with denser probes if the first ones do not resolve
//! batches or the end of the update. It is then repeated until an entry activates after the barrier reply or the
//! budget ends. Values come from the pass with the best resolution ([`values`]).

use openflow::header::Xid;
use openflow::model::FlowMod;
use openflow::model::message::Message;
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MessageRange, Module, ModuleContext, ModuleRequirements, TestSetup,
};
use tester::module::{Probe, TimerId};

use super::adaptive_probing::{ProbeSchedule, STREAMS};
use super::first_packet::FirstFrames;
use super::rules::{FAR, NEAR, Priorities, Rules};
use pace::{Finding, Pace};
pub use passes::DENSER;
use passes::{BUDGET, UpdateObservations};

mod duration;
mod pace;
mod passes;
mod values;

/// Minimum time for which frames run before the update begins, and length of a window that shows whether the path
/// carries them.
const LEAD: Nanos = Nanos::from_millis(50);

/// Name of the limit that [`Update::patience`] sets.
const PATIENCE_LIMIT: &str = "timeout for activation and the barrier reply";

/// Name of the limit reached when the switch rejects entries.
const REFUSAL_LIMIT: &str = "rejected entries (none allowed)";

/// Id of the first stream of probes.
const STREAM: u16 = 1;

/// Operation on the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowModCommand {
    /// Adds entries.
    Add,
    /// Modifies entries that forward frames so that they send frames back.
    Modify,
    /// Deletes entries.
    Delete,
}

impl FlowModCommand {
    /// Parses `add`, `modify` or `delete`.
    pub fn of(word: &str) -> FlowModCommand {
        match word {
            "modify" => FlowModCommand::Modify,
            "delete" => FlowModCommand::Delete,
            _ => FlowModCommand::Add,
        }
    }
}

/// Time at which probes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probing {
    /// From before the update.
    Before,
    /// From this time after the barrier reply.
    After(Nanos),
}

/// Settings of an update.
#[derive(Debug, Clone)]
pub struct Update {
    /// Prefix of the names of the series for figures.
    pub prefix: &'static str,
    /// Entries and their frames.
    pub rules: Rules,
    /// Operation on the entries.
    pub deed: FlowModCommand,
    /// Order of the priorities.
    pub priorities: Priorities,
    /// Time at which probes run.
    pub probing: Probing,
    /// Probes per second, over all entries.
    pub probes_pps: f64,
    /// Maximum probes per second of a pass with higher resolution.
    pub probes_pps_max: f64,
    /// Maximum number of updates of one trial.
    pub updates_max: usize,
    /// Size of a probe in bytes, including the frame check sequence.
    pub frame_bytes: usize,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait for activation after the last entry was sent.
    pub patience: Nanos,
    /// Time to observe entries after the first late probes, which may have activated them.
    pub late_watch: Nanos,
    /// Time to observe entries after all of them are active.
    pub watch: Nanos,
}

/// State of the module.
pub struct RuleActivation {
    update: Update,
    priorities: Vec<u16>,
    phase: Phase,
    /// Current update.
    pass: UpdateObservations,
    /// Earlier updates.
    earlier: Vec<UpdateObservations>,
    probes: ProbeSchedule,
    /// Probes that returned before the update.
    pace: Pace,
    /// Focus of the first update while denser probes run.
    sparse: Option<ProbeSchedule>,
    /// Late probes that passed.
    late: FirstFrames,
    /// Outstanding barrier request.
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    /// Deadline for the initial state before the update.
    settles_until: Nanos,
    /// Time at which the preparation of the first update began.
    begun_at: Nanos,
}

/// Phases of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The tables are being prepared.
    Preparing,
    /// Probes run until they show the initial state.
    Settling,
    /// Every entry is in its initial state; probes show whether the path carries them.
    Pacing,
    /// The module waits without probes.
    Quiet,
    /// The update was sent.
    Updating,
    /// All entries are active; the module watches for relapses.
    Watching,
}

impl RuleActivation {
    /// Creates the module for one update.
    pub fn new(update: Update) -> RuleActivation {
        let count = update.rules.count();
        RuleActivation {
            priorities: update.priorities.all(count),
            pass: UpdateObservations::new(count, update.probes_pps, Nanos::ZERO),
            earlier: Vec::new(),
            probes: ProbeSchedule::new(count, update.probes_pps, STREAM),
            pace: Pace::default(),
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

    fn begin(&mut self, facts: &TestSetup, context: &mut ModuleContext) {
        debug_assert!(facts.ports.len() > FAR, "a target has two ports");
        self.begun_at = context.now();
        self.probes.prepare(&self.update.rules, self.update.frame_bytes, context);
        self.probes.watch(&[NEAR, FAR], context);
        self.prepare(context);
    }

    /// Clears the tables and installs the initial entries.
    fn prepare(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Preparing;
        let rules = &self.update.rules;
        let mut messages = Rules::emptied();
        let before = |(place, &priority): (u32, &u16)| match self.update.deed {
            FlowModCommand::Add => None,
            // Forwarded frames show that these entries are active; the lowest entry also sends frames back.
            FlowModCommand::Modify | FlowModCommand::Delete => Some(rules.add(place, priority)),
        };
        messages.extend((0..).zip(&self.priorities).filter_map(before).map(Message::FlowMod));
        messages.push(Message::BarrierRequest);
        let said = context.send_all(0, messages);
        (self.pass.prepared, self.barrier) = (Some(said), said.xids().last());
        self.timer = Some(context.timer_in(self.update.patience));
    }

    /// Ends the update, and repeats it if another one adds information.
    fn conclude(&mut self, context: &mut ModuleContext) {
        let Some(pps) = self.next_pps(context.now()) else { return context.end() };
        let count = self.update.rules.count();
        let pass =
            std::mem::replace(&mut self.pass, UpdateObservations::new(count, pps, context.now()));
        self.probes.stop(context);
        if pps > self.update.probes_pps {
            let dense = ProbeSchedule::new(count, pps, STREAM + STREAMS).ahead(pass.rules_ahead());
            dense.prepare(&self.update.rules, self.update.frame_bytes, context);
            self.sparse = Some(std::mem::replace(&mut self.probes, dense));
        } else {
            self.probes = self.sparse.take().unwrap_or_else(|| self.probes.clone());
            self.probes.reset(context);
        }
        self.probes.watch(&[NEAR, FAR], context);
        self.earlier.push(pass);
        self.prepare(context);
    }

    /// Returns the probes per second of the next update; `None` if another update adds no information.
    fn next_pps(&self, now: Nanos) -> Option<f64> {
        let updates = self.earlier.len() + 1;
        let is_early = |pass: &UpdateObservations| pass.activation.premature() > 0;
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

    /// Starts probes that verify the initial state after the barrier reply.
    fn settle(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Settling;
        self.timer.take().map(|timer| context.cancel(timer));
        self.settles_until = context.now().saturating_add(self.update.patience);
        self.probes.begin(context.now(), context);
        self.timer = Some(context.timer_in(self.round().saturating_add(LEAD)));
    }

    /// Continues when every entry is in its initial state, or after the deadline.
    fn settled(&mut self, context: &mut ModuleContext) {
        let unready = self.update.rules.count() as usize - self.pass.activation.ready();
        let is_ready = unready <= self.refused();
        if !is_ready && context.now() < self.settles_until {
            self.timer = Some(context.timer_in(self.round().saturating_add(LEAD)));
            return;
        }
        self.pass.unready = unready;
        self.phase = Phase::Pacing;
        self.pace = Pace::default();
        self.pace.begin(context.now());
        self.timer = Some(context.timer_in(LEAD));
    }

    /// Sends the update when the path carries the probes, and lowers their rate until it does.
    fn paced(&mut self, context: &mut ModuleContext) {
        // Without the initial state, probes may be missing for other reasons. A single update keeps the rate that
        // the user set.
        let may_slow = self.pass.unready <= self.refused() && self.update.updates_max > 1;
        let finding = self.pace.end(self.pass.probes_pps, context.now());
        match finding {
            Finding::Unclear if may_slow => {}
            Finding::Try(pps) if may_slow => self.change_pps(pps, context),
            _ => {
                self.pass.is_carried = finding == Finding::Carried;
                return self.quiet(context);
            }
        }
        self.pace.begin(context.now());
        self.timer = Some(context.timer_in(LEAD));
    }

    /// Changes the probe rate, of this update and of those that follow.
    fn change_pps(&mut self, pps: f64, context: &mut ModuleContext) {
        if self.pass.probes_pps <= self.update.probes_pps {
            self.update.probes_pps = pps;
        }
        self.update.probes_pps_max = pps;
        (self.pass.probes_pps, self.pass.begun_at) = (pps, context.now());
        (self.pass.probed_from, self.pass.back) = (Nanos::MAX, 0);
        self.probes.change_rate(pps, context);
        // The search for the rate does not take from the time for updates.
        self.begun_at = context.now();
    }

    /// Sends the update, some time after the last probe if probes follow the barrier reply.
    fn quiet(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Quiet;
        match self.update.probing {
            Probing::Before => self.change(context),
            Probing::After(_) => {
                self.probes.stop(context);
                self.timer = Some(context.timer_in(LEAD));
            }
        }
    }

    /// Returns the time in which the probes visit every entry once.
    fn round(&self) -> Nanos {
        Nanos::from_secs_f64(f64::from(self.update.rules.count()) / self.pass.probes_pps)
    }

    /// Sends the update, followed by a barrier request.
    fn change(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Updating;
        let rules = &self.update.rules;
        let change: fn(&Rules, u32, u16) -> FlowMod = match self.update.deed {
            FlowModCommand::Add => Rules::add,
            FlowModCommand::Modify => Rules::modify_back,
            FlowModCommand::Delete => Rules::delete,
        };
        let flow_mods = (0..).zip(&self.priorities);
        let mut messages: Vec<Message> = flow_mods
            .map(|(place, &priority)| Message::FlowMod(change(rules, place, priority)))
            .collect();
        messages.push(Message::BarrierRequest);
        let said = context.send_all(0, messages);
        (self.pass.said, self.barrier) = (Some(said), said.xids().last());
        self.timer = Some(context.timer_in(self.update.patience));
    }

    fn acknowledged(&mut self, at: Nanos, context: &mut ModuleContext) {
        self.pass.acknowledged_at = Some(at);
        self.pass.activation.acknowledge(at);
        if let Probing::After(span) = self.update.probing {
            self.probes.begin(at.saturating_add(span), context);
        }
        self.look(context);
    }

    /// Checks whether the update is complete; then the module watches further arrivals for a while.
    fn look(&mut self, context: &mut ModuleContext) {
        let waits_for = self.update.rules.count() as usize - self.refused();
        let is_done =
            self.pass.activation.active() >= waits_for && self.pass.acknowledged_at.is_some();
        if self.phase == Phase::Updating && is_done {
            self.phase = Phase::Watching;
            self.timer.take().map(|timer| context.cancel(timer));
            let longer = match self.update.probing {
                Probing::Before => self.update.watch,
                Probing::After(_) => self.update.late_watch.max(LEAD),
            };
            self.timer = Some(context.timer_in(self.round().saturating_add(longer)));
        }
    }

    /// Processes a returned probe; a probe at the far port was forwarded.
    fn probed(&mut self, probe: &Probe, at: Nanos, port: usize, context: &mut ModuleContext) {
        // Probes of an earlier update show nothing about this one.
        if probe.sent_at < self.pass.begun_at {
            return;
        }
        let (rule, sent_at) = (self.probes.rule(probe), probe.sent_at);
        let is_sent_on = port == FAR;
        let is_new = is_sent_on == (self.update.deed == FlowModCommand::Add);
        // A probe sent before the update shows the initial state and cannot be an effect of the update.
        if self.phase < Phase::Updating || self.pass.sent.is_some_and(|first| sent_at < first) {
            self.pass.activation.note_before(rule, sent_at, is_new);
            self.pass.probed_from = self.pass.probed_from.min(sent_at);
            // A probe that is queued in the switch when the update begins did not return before it.
            self.pass.back += u64::from(self.phase < Phase::Updating);
            self.pace.note(sent_at);
            return;
        }
        let is_late = matches!(self.update.probing, Probing::After(_));
        if is_late && is_new && !self.late.note(rule, sent_at, at.since(sent_at)) {
            context.count_left_out("FRAMES_MAX", 1);
        }
        if self.pass.activation.note(rule, sent_at, at, is_new) {
            if self.update.probing == Probing::Before {
                self.probes.acts(rule, context);
            }
            self.look(context);
        }
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        if self.timer != Some(timer) {
            return;
        }
        match self.phase {
            Phase::Preparing => context.end_by_limit(PATIENCE_LIMIT),
            Phase::Settling => self.settled(context),
            Phase::Pacing => self.paced(context),
            Phase::Quiet => self.change(context),
            Phase::Updating => context.end_by_limit(PATIENCE_LIMIT),
            Phase::Watching if self.refused() > 0 => context.end_by_limit(REFUSAL_LIMIT),
            Phase::Watching => self.conclude(context),
        }
    }

    fn heard(&mut self, xid: Xid, message: &Message, at: Nanos, context: &mut ModuleContext) {
        match message {
            Message::BarrierReply if self.barrier == Some(xid) => {
                self.barrier = None;
                match self.phase {
                    Phase::Preparing if self.pass.is_base_refused => {
                        context.end_by_limit(REFUSAL_LIMIT)
                    }
                    Phase::Preparing => self.settle(context),
                    _ => self.acknowledged(at, context),
                }
            }
            Message::Error(_) => {
                self.pass.errors += 1;
                self.refuse(xid);
                self.look(context);
            }
            _ => {}
        }
    }

    /// Records the entry that an error refers to.
    fn refuse(&mut self, xid: Xid) {
        let place = |said: Option<MessageRange>| said.and_then(|said| said.place(xid));
        let base = Rules::emptied().len() as u32;
        let rule = match (place(self.pass.said), place(self.pass.prepared)) {
            (Some(rule), _) => rule,
            (None, Some(at)) if at < base => return self.pass.is_base_refused = true,
            (None, Some(at)) => at - base,
            (None, None) => return,
        };
        self.pass.refused.get_mut(rule as usize).into_iter().for_each(|refused| *refused = true);
    }

    /// Returns the number of entries that the switch rejected.
    fn refused(&self) -> usize {
        self.pass.refused.iter().filter(|refused| **refused).count()
    }
}

impl Module for RuleActivation {
    fn needs(&self) -> ModuleRequirements {
        let after = match self.update.probing {
            Probing::After(span) => span.saturating_add(self.update.late_watch),
            Probing::Before => Nanos(0),
        };
        let patience = self.update.patience;
        // Phases: prepare the tables, verify them, update.
        let waits = [patience, patience, patience, after, self.update.watch, Nanos::from_secs(10)];
        let rounds = Nanos(self.round().0.saturating_mul(4));
        let once = waits.into_iter().fold(rounds, Nanos::saturating_add);
        // One pass with higher resolution, and those that fit the budget; the last one may use its full time.
        let limit = match self.update.updates_max {
            0 | 1 => once,
            _ => Nanos(once.0.saturating_mul(3)).saturating_add(BUDGET),
        };
        ModuleRequirements::new(limit).in_versions(&self.update.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.begin(facts, context),
            EventKind::Frame(arrival) => {
                // A probe with an inexact departure or arrival time gives no time of activation.
                if let Some(probe) = arrival.probe.filter(|probe| probe.is_delay_known) {
                    self.probed(&probe, event.at, arrival.port, context);
                }
            }
            EventKind::Message { xid, message, .. } => self.heard(xid, message, event.at, context),
            EventKind::Sent { said, first, .. } if Some(said) == self.pass.said => {
                self.pass.sent = Some(first);
                self.pass.activation.begin(first);
            }
            EventKind::Timer(timer) => self.timed(timer, context),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}
