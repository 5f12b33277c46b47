//! Round trips: packets from a client through the target to a server, and back.
//!
//! Claim: the round trip time shows the cost of a switch per packet, once entries are installed and no packet goes
//! to the controller.
//!
//! Method: the module installs entries for both directions, over a prefilled table if requested. When packets
//! return, it sends a number of packets. They go one by one (the next when the last returned, as published) or at a
//! set rate. Client and server are the tester's two ports, or programs with sockets on hosts at the ends of its
//! links, which send the same headers. A packet-in marks the run as invalid. A target without a controller has its
//! entries already.
//!
//! Source: costa2017, section III.
//!
//! Invariants:
//!
//! - The measurement begins after the first packets returned as expected, or after a limit.
//! - A packet with inexact times counts as returned and has no round trip time.

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, Match, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use record::BoundCause;
use tester::module::host_tasks::{
    HostTask, HostTaskResult, RequestResponseReport, RequestResponseTest,
};
use tester::module::{
    Arrival, Ended, Event, EventKind, FrameFilter, Frames, MeasuredValue, MessageRange, Module,
    ModuleContext, ModuleRequirements, Probe, SendSpan, TestSetup, TimerId,
};
use tester::stream::Stream;

use super::forwarding_check::{CaseFrames, UNANSWERED, is_like};
use super::requests::hear_news;
use super::rules::{FAR, NEAR};
use super::verdict::{Activation, ActivationLimit, Verdict};
use table_fill::{Fill, TableFill};
use times::{RoundTripTimes, Times};

mod times;
pub mod table_fill;

/// Stream of the client.
pub const THERE: u16 = 1;

/// Stream of the server.
pub const BACK: u16 = 2;

/// Consecutive packets that must return as expected before the measurement begins.
const WARMING: u64 = 5;

/// After an incorrect packet, the next one waits for at least this time...
const PAUSE_MIN: Nanos = Nanos::from_micros(50);

/// ...or for this share of the time since the barrier reply, which sets the resolution of a late activation.
const PAUSE_SHARE: u64 = 50;

/// Maximum number of consecutive lost packets.
const LOST_MAX: u64 = 20;

/// Packets of each direction that are compared byte by byte, if they should leave changed.
const CHECKED_MAX: u64 = 256;

/// Limit that ends a run with packet-ins.
pub const ASKED: &str = "packet-ins during the measurement (none allowed)";

/// Limit that ends a run whose first packets did not return.
pub const NOTHING_BACK: &str = "timeout for the first packets to return";

/// Limit that ends a run with too many consecutive losses.
pub const LOST_IN_A_ROW: &str = "packets lost in a row";

/// Settings of a round trip test.
#[derive(Debug, Clone)]
pub struct RoundTripSettings {
    /// Name of its series; those at a set rate have the prefix `open_`.
    pub name: &'static str,
    /// Entries of both directions; `None` if the target has no controller.
    pub rules: Option<Vec<Message>>,
    /// Entries for OpenFlow versions before 1.2, if they differ.
    pub rules_early: Option<Vec<Message>>,
    /// How the table is prefilled.
    pub fill: Option<Fill>,
    /// Packets of the client and of the server.
    pub ways: [Stream; 2],
    /// Expected output packets, if they differ from those sent.
    pub comes_out: Option<[Stream; 2]>,
    /// Client and server.
    pub ends: EndpointKind,
    /// Number of packets.
    pub packets: u64,
    /// Packets per second; `None` for one by one.
    pub pps: Option<f64>,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time of the switch for a batch of entries, and for the first packets.
    pub patience: Nanos,
    /// Knowledge of activation times shared between repeats.
    pub bound: ActivationLimit,
    /// Time after which a packet counts as lost.
    pub wait: Nanos,
}

/// Types of client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndpointKind {
    /// The tester's two ports.
    #[default]
    Ports,
    /// Programs with sockets, each on its own host; their packets go one by one.
    Sockets,
}

/// State of the module.
pub struct RoundTrip {
    settings: RoundTripSettings,
    phase: Phase,
    version: Option<Version>,
    filled: TableFill,
    said: Option<MessageRange>,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    refused: Option<String>,
    deadline: Nanos,
    /// Number of the client's packets, and how many of them precede the measurement.
    sent: u64,
    sent_before: u64,
    lost_in_a_row: u64,
    /// Time of the barrier reply after the entries, and whether packets show that they are active.
    acknowledged_at: Nanos,
    activation: Activation,
    /// Whether the current packet was incorrect at the server.
    is_wrong: bool,
    /// Whether the next packet is delayed.
    is_pausing: bool,
    /// For each packet of the server, the client's packet that it replies to.
    answered: Vec<ServerPacket>,
    /// Replies that wait until the server's previous packet has left.
    owed: u64,
    is_answering: bool,
    returned: u64,
    returned_before: u64,
    times: Times,
    packet_ins: u64,
    expected: Option<[Frames; 2]>,
    seen: CaseFrames,
}

/// A packet of the client that arrived at the server.
#[derive(Debug, Clone, Copy)]
struct ServerPacket {
    number: u64,
    sent_at: Nanos,
    came_at: Nanos,
    is_known: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Filling,
    Ruling,
    Warming,
    Running,
}

impl RoundTrip {
    /// Creates the module.
    pub fn new(settings: RoundTripSettings) -> RoundTrip {
        RoundTrip {
            phase: Phase::Filling,
            version: None,
            filled: TableFill::default(),
            said: None,
            barrier: None,
            timer: None,
            refused: None,
            deadline: Nanos::MAX,
            sent: 0,
            sent_before: 0,
            lost_in_a_row: 0,
            acknowledged_at: Nanos::ZERO,
            activation: Activation::default(),
            is_wrong: false,
            is_pausing: false,
            answered: Vec::new(),
            owed: 0,
            is_answering: false,
            returned: 0,
            returned_before: 0,
            times: Times::new(settings.ends == EndpointKind::Sockets),
            packet_ins: 0,
            expected: None,
            seen: CaseFrames::default(),
            settings,
        }
    }

    fn prepare(&mut self, facts: &TestSetup, context: &mut ModuleContext) {
        self.version = facts.version(0);
        let comes_out = self.settings.comes_out.as_ref();
        self.expected = comes_out.map(|ways| ways.each_ref().map(|it| facts.signer.frames(it)));
        self.settings.ways.iter().for_each(|stream| context.prepare(stream.clone()));
        context.watch(FAR, FrameFilter::Streams(vec![THERE]));
        context.watch(NEAR, FrameFilter::Streams(vec![BACK]));
        if self.settings.rules.is_none() {
            return self.warm(context);
        }
        let mut messages = vec![hear_news(), Message::FlowMod(FlowMod::delete(0, Match::ANY))];
        // OpenFlow 1.0 sends unmatched frames to the controller by default; later versions require a table-miss
        // entry.
        if self.version != Some(Version::V1_0) {
            let ask = vec![Action::output(reserved::CONTROLLER)];
            messages.push(Message::FlowMod(FlowMod::add(Match::ANY, 0, ask)));
        }
        self.say(messages, context);
    }

    /// Sends messages, followed by a barrier request.
    fn say(&mut self, mut messages: Vec<Message>, context: &mut ModuleContext) {
        messages.push(Message::BarrierRequest);
        let said = context.send_all(0, messages);
        (self.said, self.barrier) = (Some(said), said.xids().last());
        self.wait(self.settings.patience, context);
    }

    fn wait(&mut self, span: Nanos, context: &mut ModuleContext) {
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(span));
    }

    /// Continues after the barrier reply.
    fn go_on(&mut self, context: &mut ModuleContext) {
        match self.phase {
            Phase::Filling => {
                // The first message clears the table.
                let count = self.said.map_or(0, |said| said.count.saturating_sub(1));
                self.filled.settle(if self.filled.has_begun() { count } else { 0 });
                self.fill(context);
            }
            Phase::Ruling if self.refused.is_some() => context.end(),
            Phase::Ruling => self.warm(context),
            Phase::Warming | Phase::Running => {}
        }
    }

    /// Sends the next batch that fills the table, or the entries.
    fn fill(&mut self, context: &mut ModuleContext) {
        let next = self.settings.fill.as_ref().and_then(|fill| self.filled.next(fill));
        if let Some(batch) = next {
            return self.say(batch, context);
        }
        self.phase = Phase::Ruling;
        let fill = self.settings.fill.as_ref();
        let mut messages = fill.map_or_else(Vec::new, |fill| self.filled.relieve(fill));
        let is_early = matches!(self.version, Some(Version::V1_0 | Version::V1_1));
        let early = self.settings.rules_early.as_ref().filter(|_| is_early);
        messages.extend(early.or(self.settings.rules.as_ref()).into_iter().flatten().cloned());
        self.say(messages, context);
    }

    fn refuse(&mut self, xid: Xid, why: &str) {
        let Some(place) = self.said.and_then(|said| said.place(xid)) else { return };
        match self.phase {
            Phase::Filling if self.filled.has_begun() => self.filled.refuse(place, why),
            Phase::Ruling => {
                self.refused.get_or_insert(why.into());
            }
            _ => {}
        }
    }

    /// Sends packets until some have returned.
    fn warm(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Warming;
        self.acknowledged_at = context.now();
        self.deadline =
            context.now().saturating_add(self.settings.bound.of(self.settings.patience));
        self.send(context);
    }

    /// Sends one packet.
    fn send(&mut self, context: &mut ModuleContext) {
        self.sent += 1;
        self.is_wrong = false;
        context.begin(THERE, SendSpan::frames(1));
        self.wait(self.settings.wait, context);
    }

    /// Sends the next packet after a pause, because the entries are not active yet.
    fn pause(&mut self, context: &mut ModuleContext) {
        self.is_pausing = true;
        let waited = context.now().since(self.acknowledged_at);
        self.wait(PAUSE_MIN.max(Nanos(waited.0 / PAUSE_SHARE)), context);
    }

    /// Ends the warm-up: the first packets did not return as expected within the limit.
    fn give_up(&mut self, context: &mut ModuleContext) {
        self.settings.bound.missed();
        match self.returned >= WARMING {
            true => self.run(context),
            false => context.end_by_limit(NOTHING_BACK),
        }
    }

    /// Begins the measurement.
    fn run(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Running;
        self.activation.settle(self.activation.has_in_a_row(WARMING));
        (self.sent_before, self.returned_before) = (self.sent, self.returned);
        if self.settings.ends == EndpointKind::Sockets {
            self.timer.take().map(|timer| context.cancel(timer));
            let talk = RequestResponseTest::of(
                &self.settings.ways,
                self.settings.packets,
                self.settings.wait,
            );
            let talk = RequestResponseTest { lost_in_a_row_max: LOST_MAX, ..talk };
            return context.run_host_task(HostTask::Talk(talk));
        }
        let Some(pps) = self.settings.pps else { return self.send(context) };
        self.sent += self.settings.packets;
        context.begin(THERE, SendSpan::frames(self.settings.packets));
        let span = Nanos::from_secs_f64(self.settings.packets as f64 / pps);
        self.wait(span.saturating_add(self.settings.wait), context);
    }

    fn is_single(&self) -> bool {
        self.phase == Phase::Warming || self.settings.pps.is_none()
    }

    /// Continues after a packet returned or was lost, if packets go one by one.
    fn next(&mut self, context: &mut ModuleContext) {
        match self.phase {
            Phase::Warming if self.activation.has_in_a_row(WARMING) => self.run(context),
            Phase::Warming if context.now() > self.deadline => self.give_up(context),
            Phase::Warming if self.activation.is_failing() => self.pause(context),
            Phase::Running if self.sent - self.sent_before >= self.settings.packets => {
                self.end(context)
            }
            Phase::Running if self.lost_in_a_row >= LOST_MAX => context.end_by_limit(LOST_IN_A_ROW),
            _ => self.send(context),
        }
    }

    /// Processes the results of the hosts.
    fn talked(&mut self, talked: &RequestResponseReport, context: &mut ModuleContext) {
        self.sent += talked.sent;
        self.returned += talked.returned.len() as u64;
        talked.returned.iter().for_each(|it| self.times.note(RoundTripTimes::from(*it)));
        match talked.is_given_up {
            true => context.end_by_limit(LOST_IN_A_ROW),
            false => self.end(context),
        }
    }

    fn end(&self, context: &mut ModuleContext) {
        match self.packet_ins {
            0 => context.end(),
            _ => context.end_by_limit(ASKED),
        }
    }

    /// Processes a packet at the server, which sends one back.
    fn reached(&mut self, probe: &Probe, arrival: &Arrival<'_>, context: &mut ModuleContext) {
        let is_new = self.answered.last().is_none_or(|last| last.number < probe.number);
        let is_awaited = !self.is_single() || probe.number + 1 == self.sent;
        if !(is_new && is_awaited) {
            return;
        }
        self.is_wrong = self.check(0, probe, arrival) == Some(false);
        if self.is_wrong && !self.is_single() {
            self.activation.note(probe.sent_at, false);
        }
        self.answered.push(ServerPacket {
            number: probe.number,
            sent_at: probe.sent_at,
            came_at: arrival.stamp.at,
            is_known: probe.is_delay_known,
        });
        self.owed += 1;
        self.answer(context);
    }

    fn answer(&mut self, context: &mut ModuleContext) {
        if !self.is_answering && self.owed > 0 {
            self.is_answering = true;
            context.begin(BACK, SendSpan::frames(std::mem::take(&mut self.owed)));
        }
    }

    /// Processes a packet-in: no entry matched the packet.
    fn asked(&mut self, probe: &Probe, context: &mut ModuleContext) {
        self.activation.note(probe.sent_at, false);
        let is_under_way = match probe.stream {
            THERE => probe.number + 1 == self.sent,
            _ => probe.number + 1 == self.answered.len() as u64,
        };
        if self.phase == Phase::Warming && !self.is_pausing && is_under_way {
            self.next(context);
        }
    }

    /// Processes a packet that returned to the client.
    fn came_back(&mut self, probe: &Probe, arrival: &Arrival<'_>, context: &mut ModuleContext) {
        let Some(there) = self.answered.get(probe.number as usize).copied() else { return };
        if self.is_pausing || self.is_single() && there.number + 1 != self.sent {
            return;
        }
        if let Some(is_right) = self.check(1, probe, arrival) {
            let was_wrong = self.is_single() && self.is_wrong;
            self.activation.note(there.sent_at, is_right && !was_wrong);
        }
        self.returned += 1;
        self.lost_in_a_row = 0;
        if there.number >= self.sent_before && self.phase == Phase::Running && there.is_known {
            let ServerPacket { number, sent_at, came_at, .. } = there;
            let (answered_at, back_at) = (probe.sent_at, arrival.stamp.at);
            if probe.is_delay_known {
                self.times.note(RoundTripTimes { number, sent_at, came_at, answered_at, back_at });
            }
        }
        if self.is_single() {
            self.next(context);
        }
    }

    /// Compares a packet with the expected one; `None` once enough were compared.
    fn check(&mut self, way: usize, probe: &Probe, arrival: &Arrival<'_>) -> Option<bool> {
        let Some(expected) = &self.expected else { return Some(true) };
        if self.phase == Phase::Running && self.seen.checked >= 2 * CHECKED_MAX {
            return None;
        }
        let frame = expected[way].frame(probe.number, probe.sent_at);
        Some(match self.phase {
            Phase::Running => self.seen.check(&frame, arrival.bytes),
            _ => is_like(&frame, arrival.bytes),
        })
    }

    fn timed(&mut self, context: &mut ModuleContext) {
        self.timer = None;
        match self.phase {
            Phase::Filling if self.filled.has_begun() => {
                self.filled.give_up();
                self.fill(context);
            }
            Phase::Filling | Phase::Ruling => context.end_by_limit(UNANSWERED),
            Phase::Running if !self.is_single() => self.end(context),
            Phase::Warming if std::mem::take(&mut self.is_pausing) => self.send(context),
            Phase::Warming | Phase::Running => {
                self.lost_in_a_row += 1;
                self.next(context);
            }
        }
    }

    fn tell(&self, context: &mut ModuleContext) {
        match (self.settings.name, self.settings.pps) {
            (name, None) => self.times.tell(name, context),
            (name, Some(_)) => self.times.tell(&format!("open_{name}"), context),
        }
        let count =
            |name: &'static str, value: u64| MeasuredValue::new(name, "count", value as f64, 0.0);
        if self.settings.fill.is_some() {
            let rules = |name: &'static str, value: u32| {
                MeasuredValue::new(name, "rules", f64::from(value), 0.0)
            };
            let taken = rules("taken_rules", self.filled.taken());
            context.measured(match self.filled.why() {
                Some(why) => taken.noting(why.to_string()),
                None => taken.at_least(
                    BoundCause::SearchLimit,
                    "the limit was reached before the table was full",
                ),
            });
            context.measured(rules("filling_rules", self.filled.there()));
            context.measured(count("is_full_count", self.filled.is_full().into()));
        }
        let refused = count("refused_count", self.refused.is_some().into());
        context.measured(match &self.refused {
            Some(why) => refused.noting(why.clone()),
            None => refused,
        });
        if self.sent == 0 {
            return;
        }
        let is_counted = self.phase == Phase::Running;
        let (sent, returned) = match is_counted {
            true => (self.sent - self.sent_before, self.returned - self.returned_before),
            false => (self.sent, 0),
        };
        let ratio = returned as f64 / sent.max(1) as f64;
        context.measured(MeasuredValue::new("returned_ratio", "ratio", ratio, 0.0).of(sent));
        context.measured(count("packet_ins_count", self.packet_ins).of(sent));
        context.measured(count("unknown_count", returned - self.times.count()).of(returned));
        if let Some(right) = self.seen.right_ratio() {
            let told = MeasuredValue::new("right_ratio", "ratio", right, 0.0).of(self.seen.checked);
            context.measured(match &self.seen.wrong {
                Some(wrong) => told.noting(wrong.clone()),
                None => told,
            });
        }
        if self.settings.rules.is_some() && self.refused.is_none() {
            self.tell_verdict(context);
        }
    }

    /// Reports whether the entries are active: shares of repeats, once there are several.
    fn tell_verdict(&self, context: &mut ModuleContext) {
        let verdict = self.activation.verdict();
        let share = |name: &'static str, is: bool| {
            MeasuredValue::new(name, "ratio", f64::from(u8::from(is)), 0.0)
        };
        context.measured(share("done_ratio", matches!(verdict, Verdict::Done | Verdict::Late)));
        context
            .measured(share("undone_ratio", matches!(verdict, Verdict::NotDone | Verdict::Unseen)));
        if let Some((value, half)) = self.activation.late_ns(self.acknowledged_at) {
            context.measured(MeasuredValue::new("late_ns", "ns", value, half));
        }
    }
}

impl Module for RoundTrip {
    fn needs(&self) -> ModuleRequirements {
        let RoundTripSettings { packets, pps, patience, wait, fill, rules, .. } = &self.settings;
        let each = pps.map_or(wait.0, |pps| (1e9 / pps) as u64);
        let batches = fill.as_ref().map_or(0, Fill::batches);
        let all = packets.saturating_mul(each).saturating_add(patience.0 * (batches + 4));
        let limit = Nanos(all).saturating_add(Nanos::from_secs(5)).min(Nanos::from_secs(1800));
        // The next packet waits for the previous one.
        let needs_immediate_frames = pps.is_none();
        let needs = ModuleRequirements {
            needs_immediate_frames,
            ..ModuleRequirements::new(limit).in_versions(&self.settings.versions)
        };
        match rules {
            Some(_) => needs,
            None => ModuleRequirements { connections: Vec::new(), ..needs },
        }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts, context),
            // A late frame of the tester does not matter while the hosts exchange packets.
            EventKind::Frame(_)
                if self.settings.ends == EndpointKind::Sockets && self.phase == Phase::Running => {}
            EventKind::Frame(arrival) => match &arrival.probe {
                Some(probe) if arrival.port == FAR => self.reached(probe, arrival, context),
                Some(probe) => self.came_back(probe, arrival, context),
                None => {}
            },
            EventKind::StreamEnded(BACK) => {
                self.is_answering = false;
                self.answer(context);
            }
            EventKind::HostTask(HostTaskResult::Talked(talked)) => self.talked(talked, context),
            EventKind::HostTask(HostTaskResult::Failed(why)) => context.fail(why.as_str()),
            // Packets that the hosts send are for each other.
            EventKind::Message { message: Message::PacketIn(_), probe, .. } => {
                let is_counted = probe.is_some() || self.settings.ends == EndpointKind::Sockets;
                self.packet_ins += u64::from(self.phase == Phase::Running && is_counted);
                if let Some(probe) = probe {
                    self.asked(&probe, context);
                }
            }
            EventKind::Message { xid, message: Message::Error(error), .. } => {
                self.refuse(xid, &error.to_string());
            }
            EventKind::SendFailed { said, why, .. } if Some(said) == self.said => {
                self.refused.get_or_insert(why.to_string());
                context.end();
            }
            EventKind::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.barrier = None;
                self.timer.take().map(|timer| context.cancel(timer));
                self.go_on(context);
            }
            EventKind::Timer(timer) if self.timer == Some(timer) => self.timed(context),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}
