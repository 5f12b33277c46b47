//! Frames that match no entry.
//!
//! The switch sends a packet-in for each frame. The controller ignores it, sends the frame out, or installs an
//! entry for its flow. The same frames can go to a target without a controller that does this work itself.
//!
//! Claim: packet-ins and packet-outs go through the slowest part of a switch, at rates far below its data plane.
//!
//! Method: a table-miss entry sends frames to the controller. The first frames come slowly, for the delays; then
//! frames come in steps, for the highest rates (see [`super::rate_search`]). A frame is complete when its packet-in
//! arrives or when it leaves port 2. Each frame of a step belongs to a different flow. The tester's own reply time
//! is reported too: from reading the packet-in until the socket took the reply.
//!
//! Source: metrics C8, C9, C12 and C13 of the method; OFLOPS modules `packet_in`, `packet_in_out` and `reactive`;
//! RFC 8456, sections 5.1.3 to 5.1.6.

pub mod reactive_controller;

use std::collections::{HashSet, VecDeque};

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::packet_io::{PacketIn, PacketOut};
use openflow::model::switch::SwitchConfig;
use openflow::model::{Action, FlowMod, Match, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, Probe, SendSpan, TimerId,
};
use tester::stream::{Rate, Stream};

use reactive_controller::{ControllerTask, Decision, ReactiveController};

use super::rate_search::{RateSearch, Step};
use super::rules::{NEAR, Rules};
use super::summary::Summary;
use super::sustained_rate::Sustained;
use super::unexpected_errors::UnexpectedErrors;
use targets::flow_setup::PORT_OUT;

/// Id of the stream of frames.
pub const FRAMES: u16 = 1;

/// Minimum time without arrivals after which a round is complete or its remaining frames are lost.
const QUIET: Nanos = Nanos::from_millis(20);

/// Value of [`QUIET`] for the first round, in which latencies are still unknown.
const QUIET_FIRST: Nanos = Nanos::from_millis(200);

/// Time after which a port counts all frames that it took.
const SETTLES: Nanos = Nanos::from_millis(1);

/// Name of the limit that [`PATIENCE`] sets for the barrier reply after the tables are cleared.
const PATIENCE_LIMIT: &str = "timeout for the barrier reply after the tables are cleared";

/// Maximum time to wait for the end of a round after its last frame, and for a barrier reply.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// Reaction of the controller to a packet-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Does nothing.
    Nothing,
    /// Sends a packet-out.
    Send,
    /// Installs an entry for the flow and sends a packet-out.
    Rule,
    /// Sends the frame where this task decides.
    Decide(ControllerTask),
    /// There is no controller: the target does the work itself.
    Target,
}

impl Answer {
    /// Returns the description of the highest rate.
    fn sought(&self) -> &'static str {
        match self {
            Answer::Nothing => "packet-in rate",
            Answer::Send => "rate of frames through the controller",
            Answer::Rule => "flow setup rate",
            Answer::Decide(_) | Answer::Target => "rate of completed frames",
        }
    }
}

/// Frames that are sent, and the reaction to them.
#[derive(Debug, Clone)]
pub struct PacketInSettings {
    /// Reaction of the controller.
    pub answer: Answer,
    /// Flows that get entries.
    pub flows: Rules,
    /// Stream of frames.
    pub frames: Stream,
    /// Frame that the station on the other side sends first, so that its address can be learned.
    pub greeting: Option<Stream>,
    /// Bytes of a frame in a packet-in; the switch buffers the frame if this is less than the whole.
    pub told_bytes: u16,
    /// Number of frames for the delays.
    pub samples: u64,
    /// Rate of those frames per second.
    pub slow_pps: f64,
    /// Lowest and highest rate of a step.
    pub rates_pps: (f64, f64),
    /// Duration of a step.
    pub step: Nanos,
    /// Maximum number of frames of a step.
    pub step_frames_max: u64,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// State of the module.
pub struct Misses {
    settings: PacketInSettings,
    version: Option<Version>,
    phase: Phase,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    search: RateSearch,
    /// Sustained rate of completions under overload.
    sustained: Option<Sustained>,
    round: Round,
    /// Replies that are not sent yet, with the time at which their packet-ins were read, oldest first.
    answers: VecDeque<(Xid, Nanos)>,
    thinking: Vec<f64>,
    delays: Vec<f64>,
    /// Requested and completed slow frames.
    slow: (u64, u64),
    told: PacketInProperties,
    deciding: ReactiveController,
    /// Packet-outs sent.
    outs: u64,
    /// Frames completed in all rounds.
    frames_done: u64,
    refusals: UnexpectedErrors,
}

/// Properties of the packet-ins.
#[derive(Debug, Clone, Copy, Default)]
struct PacketInProperties {
    messages: u64,
    buffered: u64,
    bytes: u64,
}

/// Phases of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The tables are being cleared for the next round.
    Emptying,
    /// Frames are sent, and the module waits for their effects.
    Asking,
}

/// A series of frames.
#[derive(Debug, Default)]
struct Round {
    /// Whether the frames are for the delays.
    is_slow: bool,
    begun_at: Nanos,
    /// Port counter of sent frames before the round and after it.
    sent: [Option<u64>; 2],
    /// Time at which all frames were sent.
    over_at: Nanos,
    seen: HashSet<u64>,
    /// Completion time of each frame.
    done_at: Vec<Nanos>,
    first: Option<Nanos>,
    last: Nanos,
    is_disturbed: bool,
}

impl Misses {
    /// Creates the module for this stream of frames.
    pub fn new(settings: PacketInSettings) -> Misses {
        let (least, most) = settings.rates_pps;
        Misses {
            version: None,
            phase: Phase::Emptying,
            barrier: None,
            timer: None,
            search: RateSearch::new(least, most),
            sustained: None,
            round: Round { is_slow: true, ..Round::default() },
            answers: VecDeque::new(),
            thinking: Vec::new(),
            delays: Vec::new(),
            slow: (0, 0),
            told: PacketInProperties::default(),
            deciding: ReactiveController::default(),
            outs: 0,
            frames_done: 0,
            refusals: UnexpectedErrors::default(),
            settings,
        }
    }

    /// Prepares the target for the next round: clears the tables of a switch.
    fn make_ready(&mut self, context: &mut ModuleContext) {
        match self.settings.answer {
            Answer::Target => self.ask(context),
            _ => self.empty(context),
        }
    }

    /// Deletes all entries except the table-miss entry.
    fn empty(&mut self, context: &mut ModuleContext) {
        let bytes_max = self.settings.told_bytes;
        let tell = vec![Action::Output { port: reserved::CONTROLLER, bytes_max }];
        let mut messages = vec![
            Message::FlowMod(Rules::cleared(self.version)),
            Message::FlowMod(FlowMod::add(Match::ANY, 0, tell)),
        ];
        messages.push(Message::BarrierRequest);
        self.phase = Phase::Emptying;
        self.barrier = context.send_all(0, messages).xids().last();
        self.timer = Some(context.timer_in(PATIENCE));
    }

    /// Sends the frames of the next round, if there is one.
    fn ask(&mut self, context: &mut ModuleContext) {
        if !self.round.is_slow {
            context.report_search(self.search.bracket(self.settings.answer.sought(), "frames/s"));
        }
        let (rate, frames) = match (self.round.is_slow, self.search.next()) {
            (true, _) => (self.settings.slow_pps, self.settings.samples),
            (false, Some(rate)) => {
                let frames = (rate * self.settings.step.as_secs_f64()).round() as u64;
                (rate, frames.clamp(2, self.settings.step_frames_max))
            }
            (false, None) => return context.end(),
        };
        self.phase = Phase::Asking;
        self.round =
            Round { is_slow: self.round.is_slow, begun_at: context.now(), ..Round::default() };
        self.answers.clear();
        if let Some(greeting) = self.settings.greeting.take() {
            context.start(greeting, SendSpan::frames(1));
        }
        context.counters();
        context.change_rate(FRAMES, Rate::FramesPerSecond(rate));
        context.begin(FRAMES, SendSpan::frames(frames));
    }

    /// Records that a frame is complete.
    fn done(&mut self, probe: Probe, at: Nanos) {
        let round = &mut self.round;
        if self.phase != Phase::Asking || probe.sent_at < round.begun_at {
            return;
        }
        if !round.seen.insert(probe.number) {
            return;
        }
        round.done_at.push(at);
        round.first.get_or_insert(at);
        round.last = round.last.max(at);
        round.is_disturbed |= !probe.is_delay_known;
        if round.is_slow && probe.is_delay_known {
            self.delays.push(at.since(probe.sent_at).0 as f64);
        }
    }

    /// Replies to a packet-in.
    fn answer(
        &mut self,
        packet_in: &PacketIn,
        probe: Probe,
        at: Nanos,
        context: &mut ModuleContext,
    ) {
        self.told.messages += 1;
        self.told.buffered += u64::from(packet_in.buffer_id.is_some());
        self.told.bytes += packet_in.data.len() as u64;
        let output = || vec![Action::output(PORT_OUT.into())];
        let out = |actions: Vec<Action>, buffer_id: Option<u32>, data: Vec<u8>| {
            let (in_port, fields) = (packet_in.in_port, Match::ANY);
            Message::PacketOut(PacketOut { buffer_id, in_port, fields, actions, data })
        };
        let send = |actions: Vec<Action>| match packet_in.buffer_id {
            Some(kept) => out(actions, Some(kept), Vec::new()),
            None => out(actions, None, packet_in.data.clone()),
        };
        let messages = match self.settings.answer {
            Answer::Nothing | Answer::Target => return,
            Answer::Send => vec![send(output())],
            Answer::Decide(task) => {
                let onward = PORT_OUT.into();
                let data = &packet_in.data;
                let decided = self.deciding.decide(task, data, packet_in.in_port, onward);
                let Some(Decision { port, instead }) = decided else { return };
                let actions = vec![Action::output(port)];
                vec![match instead {
                    Some(bytes) => out(actions, None, bytes),
                    None => send(actions),
                }]
            }
            Answer::Rule => {
                let matching = self.settings.flows.exact(probe.place as u32);
                let buffer_id = packet_in.buffer_id;
                let rule = FlowMod::add(matching, openflow::model::PRIORITY_DEFAULT, output());
                let rule = Message::FlowMod(FlowMod { buffer_id, ..rule });
                if buffer_id.is_some() { vec![rule] } else { vec![rule, send(output())] }
            }
        };
        self.outs += messages.len() as u64;
        let said = context.send_all(0, messages);
        self.answers.push_back((said.xid, at));
    }

    /// Records that a reply was sent.
    fn sent(&mut self, said: MessageRange, last: Nanos) {
        let Some(place) = self.answers.iter().position(|(xid, _)| *xid == said.xid) else { return };
        let answered = self.answers.drain(..=place).next_back();
        if let Some((_, read_at)) = answered.filter(|_| self.round.is_slow) {
            self.thinking.push(last.since(read_at).0 as f64);
        }
    }

    /// Checks whether the round is over.
    fn look(&mut self, context: &mut ModuleContext) {
        let [Some(before), Some(after)] = self.round.sent else { return };
        let (sent, now) = (after.saturating_sub(before), context.now());
        let done = self.round.seen.len() as u64;
        let is_quiet = now.since(self.round.last.max(self.round.over_at)) >= self.quiet();
        let is_late = now.since(self.round.begun_at) >= self.limit();
        if done >= sent || is_quiet || is_late {
            self.note(sent, done);
            return self.make_ready(context);
        }
        self.timer = Some(context.timer_in(QUIET));
    }

    /// Returns the idle time after which the round is over: far longer than the latency of a slow frame.
    fn quiet(&self) -> Nanos {
        let greatest = self.delays.iter().copied().fold(0.0, f64::max);
        if self.round.is_slow { QUIET_FIRST } else { QUIET.max(Nanos(4 * greatest as u64)) }
    }

    /// Returns the maximum duration of a round.
    fn limit(&self) -> Nanos {
        self.span().saturating_add(PATIENCE)
    }

    /// Returns the time for which frames are sent in a round.
    fn span(&self) -> Nanos {
        let slow = self.settings.samples as f64 / self.settings.slow_pps;
        if self.round.is_slow { Nanos::from_secs_f64(slow) } else { self.settings.step }
    }

    /// Ends the round.
    fn note(&mut self, sent: u64, done: u64) {
        self.frames_done += done;
        let round = &mut self.round;
        if std::mem::take(&mut round.is_slow) {
            self.slow = (sent, done);
            return;
        }
        let step = Step {
            asked: sent,
            done,
            asked_in: round.over_at.since(round.begun_at),
            done_in: round.first.map_or(Nanos::ZERO, |first| round.last.since(first)),
            is_disturbed: round.is_disturbed,
        };
        if !step.is_disturbed {
            let found = Sustained::of(&mut round.done_at, sent);
            self.sustained = self.sustained.into_iter().chain(found).reduce(Sustained::surer);
        }
        self.search.note(step);
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        if self.timer == Some(timer) {
            match self.phase {
                // The switch does not reply; the module reports what it observed.
                Phase::Emptying => context.end_by_limit(PATIENCE_LIMIT),
                Phase::Asking if self.round.sent[1].is_none() => context.counters(),
                Phase::Asking => self.look(context),
            }
        }
    }

    /// Reports the controller messages per completed frame.
    fn tell_messages(&self, tell: &mut impl FnMut(MeasuredValue)) {
        if self.frames_done == 0 {
            return;
        }
        let messages = (self.told.messages + self.outs) as f64;
        let each = messages / self.frames_done as f64;
        let for_frame =
            MeasuredValue::new("controller_messages_for_frame_count", "count", each, 0.0);
        tell(for_frame.of(self.frames_done));
        if let Some(rate) = self.search.kept_per_s() {
            let per_s = MeasuredValue::new("controller_messages_per_s", "per_s", each * rate, 0.0);
            tell(per_s.noting("at the highest loss-free rate"));
        }
    }

    fn tell(&self, context: &mut ModuleContext) {
        let (what, rate) = match self.settings.answer {
            Answer::Nothing => ("packet_in", "packet_ins"),
            Answer::Send => ("round_trip", "packets"),
            Answer::Rule => ("setup", "setups"),
            Answer::Decide(_) | Answer::Target => ("done", "frames"),
        };
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        self.search.tell(rate, "per_s", &mut tell);
        if matches!(self.settings.answer, Answer::Decide(_) | Answer::Target) {
            self.tell_messages(&mut tell);
        }
        if let Some(sustained) = self.sustained {
            let name = format!("{rate}_per_s_sustained");
            tell(
                MeasuredValue::new(name, "per_s", sustained.per_s, sustained.half)
                    .of(sustained.count),
            );
        }
        if let Some(delays) = Summary::of(self.delays.clone()) {
            delays.tell(&format!("{what}_ns"), turn, &mut tell);
        }
        if let Some(thinking) = Summary::of(self.thinking.clone()) {
            thinking.tell("think_ns", turn, &mut tell);
        }
        let (sent, done) = self.slow;
        if sent > 0 {
            let lost = 1.0 - done.min(sent) as f64 / sent as f64;
            tell(MeasuredValue::new("lost_ratio", "ratio", lost, 0.0).of(sent));
        }
        if self.told.messages > 0 {
            let count = self.told.messages;
            let share = self.told.buffered as f64 / count as f64;
            tell(MeasuredValue::new("buffered_ratio", "ratio", share, 0.0).of(count));
            let bytes = self.told.bytes as f64 / count as f64;
            tell(MeasuredValue::new("carried_bytes_mean", "bytes", bytes, 0.0).of(count));
        }
        self.refusals.tell(&mut tell);
        context.series(self.search.series("done_per_s"));
    }
}

impl Module for Misses {
    fn needs(&self) -> ModuleRequirements {
        let needs =
            ModuleRequirements::new(Nanos::from_secs(120)).in_versions(&self.settings.versions);
        match self.settings.answer {
            Answer::Target => ModuleRequirements { connections: Vec::new(), ..needs },
            _ => needs,
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                self.version = facts.version(0);
                let settings = &self.settings;
                context.prepare(settings.frames.clone());
                if settings.answer != Answer::Nothing {
                    context.watch(settings.frames.to, FrameFilter::Streams(vec![FRAMES]));
                }
                if settings.answer == Answer::Target {
                    return self.ask(context);
                }
                let miss_send_bytes = settings.told_bytes;
                let config = SwitchConfig { miss_send_bytes, ..SwitchConfig::default() };
                context.send(0, Message::SetConfig(config));
                self.empty(context);
            }
            EventKind::Message {
                message: Message::PacketIn(packet_in),
                probe: Some(probe),
                ..
            } => {
                if self.settings.answer == Answer::Nothing {
                    self.done(probe, event.at);
                }
                self.answer(packet_in, probe, event.at, context);
            }
            EventKind::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.barrier = None;
                self.timer.take().map(|timer| context.cancel(timer));
                self.ask(context);
            }
            EventKind::Message { message: Message::Error(error), .. } => self.refusals.note(error),
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.done(probe, event.at);
                }
            }
            EventKind::Sent { said, last, .. } => self.sent(said, last),
            EventKind::StreamEnded(FRAMES) => {
                self.round.over_at = event.at;
                self.timer = Some(context.timer_in(SETTLES));
            }
            EventKind::Counters(counters) => {
                let sent = counters.get(NEAR).map(|it| it.tx_frames);
                let place = usize::from(self.round.sent[0].is_some());
                self.round.sent[place] = sent;
                if place == 1 {
                    self.look(context);
                }
            }
            EventKind::Timer(timer) => self.timed(timer, context),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}
