//! Control message rate: messages per second, with a fixed number outstanding and as fast as they can be sent.
//!
//! Claim: the software of the switch, not its data plane, limits its message rate.
//!
//! Method: in the closed loop, a fixed number of messages is outstanding and each completion triggers the next. In
//! the open loop, messages come at a rate independent of completions, for the loss-free and the highest rate (see
//! [`super::rate_search`]). A message is complete when its reply was read: the echo reply, the barrier reply or the
//! last part of statistics. A flow-mod and a packet-out complete with the barrier request after them.
//!
//! Source: metrics C5 and C6 of the method; RFC 8456, section 5.1.3.

use std::collections::HashSet;

use openflow::header::Xid;
use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::multipart::MultipartRequestBody;
use openflow::model::packet_io::PacketOut;
use openflow::model::{Action, FlowMod, PRIORITY_DEFAULT, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, Module, ModuleContext, ModuleRequirements, TimerId,
};

use super::pacer::{Pacer, TICK};
use super::packets::{RATE_MAX, RATE_MIN, STEP};
use super::rate_search::{RateSearch, Step};
use super::requests::PATIENCE_LIMIT;
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::Rules;
use super::unexpected_errors::UnexpectedErrors;
use super::updates::{VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::PORT_OUT;
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis: outstanding messages; 0 for the open loop.
pub const AXIS: &str = "messages_under_way";

/// Number of entries that are added and then deleted repeatedly.
const RULES: u32 = 100;

/// Size of the frame in a packet-out, in bytes.
const FRAME_BYTES: usize = 60;

/// Time to wait for replies after the last message.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// Time without replies after which outstanding messages count as lost.
const QUIET: Nanos = Nanos::from_millis(50);

/// Number of replies without elapsed time after which a round ends (virtual time).
const TIMELESS: u64 = 1000;

const MESSAGES: Parameter = Parameter {
    key: "messages",
    takes: ValueType::Words(&["echo", "barrier", "flow_mod", "packet_out", "port_stats"]),
    default: "echo,barrier,flow_mod,packet_out,port_stats",
    unit: "",
    help: "types of messages; flow-mods add entries and delete them again",
};

const WINDOWS: Parameter = Parameter {
    key: "in_flight",
    takes: ValueType::Integers(0, 10_000),
    default: "1,4,16,64,0",
    unit: "messages",
    help: "outstanding messages, each reply triggers the next; 0 means not to wait for replies",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[MESSAGES, WINDOWS, RATE_MAX, STEP, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Message rate by number of outstanding messages",
        &[
            "echo_done_per_s",
            "barrier_done_per_s",
            "flow_mod_done_per_s",
            "packet_out_done_per_s",
            "port_stats_done_per_s",
        ],
        &[],
    ),
    Chart::values(
        "Highest loss-free message rate, independent of replies",
        &[
            "echo_messages_per_s_lossfree",
            "barrier_messages_per_s_lossfree",
            "flow_mod_messages_per_s_lossfree",
            "packet_out_messages_per_s_lossfree",
            "port_stats_messages_per_s_lossfree",
        ],
        &[
            "echo_messages_per_s_peak",
            "barrier_messages_per_s_peak",
            "flow_mod_messages_per_s_peak",
            "packet_out_messages_per_s_peak",
            "port_stats_messages_per_s_peak",
        ],
    ),
];

/// Types of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An echo request.
    Echo,
    /// A barrier.
    Barrier,
    /// A flow-mod that adds or deletes an exact-match entry, and a barrier request.
    FlowMod,
    /// A packet-out and a barrier request.
    PacketOut,
    /// A statistics request for all ports.
    PortStats,
}

/// Settings of the control rate test.
#[derive(Debug, Clone)]
pub struct ControlRateSettings {
    /// Type of message.
    pub kind: Kind,
    /// Number of outstanding messages; 0 for the open loop.
    pub under_way: u64,
    /// Duration of a step.
    pub step: Nanos,
    /// Lowest and highest rate of a step.
    pub rates_per_s: (f64, f64),
    /// Entries of the flow-mods.
    pub flows: Rules,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// State of the module.
pub struct ControlRate {
    settings: ControlRateSettings,
    version: Option<Version>,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    search: RateSearch,
    round: Option<Round>,
    /// Messages sent since the start.
    number: u64,
    refusals: UnexpectedErrors,
}

/// A series of messages.
#[derive(Debug)]
struct Round {
    begun_at: Nanos,
    paced: Option<Pacer>,
    /// Transaction ids of the outstanding replies.
    open: HashSet<Xid>,
    said: u64,
    done: u64,
    first: Option<Nanos>,
    last: Nanos,
    is_disturbed: bool,
}

impl ControlRate {
    /// Creates the module for one type of message.
    pub fn new(settings: ControlRateSettings) -> ControlRate {
        let (least, most) = settings.rates_per_s;
        ControlRate {
            version: None,
            barrier: None,
            timer: None,
            search: RateSearch::new(least, most),
            round: None,
            number: 0,
            refusals: UnexpectedErrors::default(),
            settings,
        }
    }

    /// Sends `count` messages.
    fn send(&mut self, count: u64, context: &mut ModuleContext) {
        let numbers = self.number..self.number + count;
        let all: Vec<Message> = numbers
            .flat_map(|number| {
                messages(self.settings.kind, number, &self.settings.flows, self.version)
            })
            .collect();
        self.number += count;
        let Some(round) = self.round.as_mut().filter(|_| !all.is_empty()) else { return };
        let each = all.len() / count as usize;
        let said = context.send_all(0, all);
        let answers = said.xids().skip(each - 1).step_by(each);
        round.open.extend(answers);
        round.said += count;
    }

    /// Begins the next round, if there is one.
    fn begin(&mut self, context: &mut ModuleContext) {
        let now = context.now();
        let is_open = self.settings.under_way == 0;
        if is_open {
            context.report_search(self.search.bracket("message rate", "messages/s"));
        }
        let paced = match (is_open, self.search.next()) {
            (true, Some(rate)) => Some(Pacer::over(rate, self.settings.step, now)),
            (true, None) if self.search.ended_in_silence() => {
                return context.end_by_limit(PATIENCE_LIMIT);
            }
            (true, None) => return context.end(),
            (false, _) => None,
        };
        self.round = Some(Round {
            begun_at: now,
            paced,
            open: HashSet::new(),
            said: 0,
            done: 0,
            first: None,
            last: Nanos::ZERO,
            is_disturbed: false,
        });
        match is_open {
            true => self.look(context),
            false => {
                self.send(self.settings.under_way, context);
                self.timer = Some(context.timer_in(self.settings.step.saturating_add(PATIENCE)));
            }
        }
    }

    /// Processes a reply.
    fn answered(&mut self, xid: Xid, at: Nanos, is_known: bool, context: &mut ModuleContext) {
        let under_way = self.settings.under_way;
        let end_at = self.settings.step;
        let Some(round) = &mut self.round else { return };
        if !round.open.remove(&xid) {
            return;
        }
        round.done += 1;
        round.first.get_or_insert(at);
        round.last = at;
        round.is_disturbed |= !is_known;
        if under_way > 0 {
            let span = at.since(round.begun_at);
            // In virtual time, replies may take no time.
            let takes_time = span > Nanos::ZERO || round.done < TIMELESS;
            match span < end_at && takes_time {
                true => self.send(1, context),
                false => context.end(),
            }
        }
    }

    /// Sends the messages that are due, or checks whether the round is over.
    fn look(&mut self, context: &mut ModuleContext) {
        let now = context.now();
        let Some(paced) = self.round.as_mut().and_then(|round| round.paced.as_mut()) else {
            // The outstanding messages never got a reply.
            return context.end_by_limit(PATIENCE_LIMIT);
        };
        let due = paced.due(now);
        let (is_over, span, given_at) =
            (paced.is_over(), paced.span(), paced.begun_at().saturating_add(paced.span()));
        self.send(due.end - due.start, context);
        let Some(round) = &self.round else { return };
        let is_quiet = now.since(round.last.max(given_at)) >= QUIET;
        let is_late = now.since(given_at) >= PATIENCE;
        if is_over && (round.open.is_empty() || is_quiet || is_late) {
            self.search.note(Step {
                asked: round.said,
                done: round.done,
                asked_in: span,
                done_in: round.first.map_or(Nanos::ZERO, |first| round.last.since(first)),
                is_disturbed: round.is_disturbed,
            });
            return self.begin(context);
        }
        self.timer = Some(context.timer_in(TICK));
    }
}

/// Builds message `number` of a type, with the messages after it; the reply shows that all are complete.
pub fn messages(kind: Kind, number: u64, flows: &Rules, version: Option<Version>) -> Vec<Message> {
    match kind {
        Kind::Echo => vec![Message::EchoRequest(number.to_be_bytes().to_vec())],
        Kind::Barrier => vec![Message::BarrierRequest],
        Kind::FlowMod => {
            let place = (number % u64::from(RULES)) as u32;
            let on = vec![Action::output(PORT_OUT.into())];
            let rule = FlowMod::add(flows.exact(place), PRIORITY_DEFAULT, on);
            let rule = match (number / u64::from(RULES)) % 2 {
                0 => rule,
                _ => FlowMod {
                    command: FlowModCommand::DeleteStrict,
                    instructions: Vec::new(),
                    ..rule
                },
            };
            vec![Message::FlowMod(rule), Message::BarrierRequest]
        }
        Kind::PacketOut => {
            let is_first = version == Some(Version::V1_0);
            let out = PacketOut {
                in_port: if is_first { reserved::NONE } else { reserved::CONTROLLER },
                actions: vec![Action::output(PORT_OUT.into())],
                data: vec![0xff; FRAME_BYTES],
                ..PacketOut::default()
            };
            vec![Message::PacketOut(out), Message::BarrierRequest]
        }
        Kind::PortStats => vec![Message::ask(MultipartRequestBody::Port(reserved::NONE))],
    }
}

impl Module for ControlRate {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(Nanos::from_secs(120)).in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                self.version = facts.version(0);
                let cleared = Message::FlowMod(Rules::cleared(self.version));
                let said = context.send_all(0, vec![cleared, Message::BarrierRequest]);
                self.barrier = said.xids().last();
                self.timer = Some(context.timer_in(PATIENCE));
            }
            EventKind::Message { xid, message, is_timestamp_valid, .. } => match message {
                Message::BarrierReply if self.barrier == Some(xid) => {
                    self.barrier = None;
                    self.timer.take().map(|timer| context.cancel(timer));
                    self.begin(context);
                }
                Message::EchoReply(_) | Message::BarrierReply => {
                    self.answered(xid, event.at, is_timestamp_valid, context);
                }
                Message::MultipartReply(part) if !part.more => {
                    self.answered(xid, event.at, is_timestamp_valid, context);
                }
                Message::Error(error) => self.refusals.note(error),
                _ => {}
            },
            EventKind::Timer(timer) if self.timer == Some(timer) => self.look(context),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        match &self.round {
            Some(round) if self.settings.under_way > 0 => {
                let span = round.last.since(round.begun_at).0 as f64;
                if span == 0.0 {
                    return;
                }
                let rate = round.done as f64 * 1e9 / span;
                // Messages outstanding at the end count neither way.
                let half = rate * self.settings.under_way as f64 / round.done as f64;
                tell(MeasuredValue::new("done_per_s", "per_s", rate, half).of(round.done));
            }
            _ => self.search.tell("messages", "per_s", &mut tell),
        }
        self.refusals.tell(&mut tell);
        if self.settings.under_way == 0 {
            context.series(self.search.series("done_per_s"));
        }
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let mut spots = Vec::new();
    for under_way in own.integers(&WINDOWS) {
        for message in own.words(&MESSAGES) {
            let (kind, prefix) = match message {
                "barrier" => (Kind::Barrier, "barrier_"),
                "flow_mod" => (Kind::FlowMod, "flow_mod_"),
                "packet_out" => (Kind::PacketOut, "packet_out_"),
                "port_stats" => (Kind::PortStats, "port_stats_"),
                _ => (Kind::Echo, "echo_"),
            };
            let settings = ControlRateSettings {
                kind,
                under_way,
                step: Nanos::from_secs_f64(own.number(&STEP)),
                rates_per_s: (RATE_MIN, own.number(&RATE_MAX)),
                flows: Rules::new(context, RULES),
                versions: versions(context),
            };
            let seconds = if under_way == 0 { 0.5 } else { 0.05 };
            let make = move |_| Box::new(ControlRate::new(settings.clone())) as Box<_>;
            spots.push(ModulePoint::new(under_way as f64, seconds, make).named(prefix));
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
