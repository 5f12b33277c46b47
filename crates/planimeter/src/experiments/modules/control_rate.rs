//! Rates of control messages: how many a second the switch does, one by one and as fast as they come.
//!
//! Claim: the switch's software, not its data plane, sets how many messages it does in a second. Method:
//! closed loop, so many messages under way and the next when one is done, by the number under way; and open
//! loop, at a rate whatever is done, for the loss-free and the highest rate (see [`super::highest`]).
//! A message is done when its answer was read: an echo's, a barrier's, the last part of
//! statistics; a flow-mod and a packet-out have a barrier behind them, which is done with them.
//! Source: metrics C5 and C6 of the method; RFC 8456, section 5.1.3.

use std::collections::HashSet;

use instrument::module::{Desk, Ended, Event, Measured, Module, Needs, TimerId, What};
use openflow::header::Xid;
use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::multipart::MultipartRequestBody;
use openflow::model::packet_io::PacketOut;
use openflow::model::{Action, FlowMod, PRIORITY_DEFAULT, reserved};
use openflow::version::Version;
use packet::time::Nanos;

use super::asking::PATIENCE_LIMIT;
use super::highest::{Highest, Step};
use super::paced::{Paced, TICK};
use super::packets::{RATE_MAX, RATE_MIN, STEP};
use super::refusals::Refusals;
use super::rounds::{Rounds, Spot};
use super::rules::Rules;
use super::updates::{VERSION, versions};
use crate::catalog::Show;
use crate::experiments::{Context, Method};
use crate::parameter::own::{Declared, Takes};
use crate::target::program::PORT_OUT;

/// Name of the axis: messages under way, 0 for as fast as they come.
pub const AXIS: &str = "messages_under_way";

/// Rules that are added and then deleted, again and again.
const RULES: u32 = 100;

/// Bytes of the frame in a packet-out.
const FRAME_BYTES: usize = 60;

/// How long answers are waited for when nothing more is said.
const PATIENCE: Nanos = Nanos::from_secs(1);

/// Nothing has come for so long: the others are lost.
const QUIET: Nanos = Nanos::from_millis(50);

/// After so many that took no time none will.
const TIMELESS: u64 = 1000;

const MESSAGES: Declared = Declared {
    key: "messages",
    takes: Takes::Words(&["echo", "barrier", "flow_mod", "packet_out", "port_stats"]),
    default: "echo,barrier,flow_mod,packet_out,port_stats",
    unit: "",
    help: "which messages; flow-mods add rules and delete them again",
};

const WINDOWS: Declared = Declared {
    key: "under_way",
    takes: Takes::Integers(0, 10_000),
    default: "1,4,16,64,0",
    unit: "messages",
    help: "how many are under way at a time, each answer bringing the next; 0 for rates at which they come \
           whatever is done",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Declared] = &[MESSAGES, WINDOWS, RATE_MAX, STEP, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Show] = &[
    Show::values(
        "Messages done in a second, by how many are under way",
        &[
            "echo_done_per_s",
            "barrier_done_per_s",
            "flow_mod_done_per_s",
            "packet_out_done_per_s",
            "port_stats_done_per_s",
        ],
        &[],
    ),
    Show::values(
        "Highest rates at which all are done (0: messages come whatever is done)",
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

/// Which message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An echo request.
    Echo,
    /// A barrier.
    Barrier,
    /// A flow-mod that adds or deletes an exact rule, and a barrier.
    FlowMod,
    /// A packet-out, and a barrier.
    PacketOut,
    /// The statistics of all ports.
    PortStats,
}

/// How messages are said.
#[derive(Debug, Clone)]
pub struct Saying {
    /// Which.
    pub kind: Kind,
    /// How many are under way; 0 for rates.
    pub under_way: u64,
    /// How long a step is.
    pub step: Nanos,
    /// The least and the greatest rate of a step.
    pub rates_per_s: (f64, f64),
    /// The rules of flow-mods.
    pub flows: Rules,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// State of the module.
pub struct ControlRate {
    saying: Saying,
    version: Option<Version>,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    search: Highest,
    round: Option<Round>,
    /// Messages that were said since the start.
    number: u64,
    refusals: Refusals,
}

/// Messages that are said in one go.
#[derive(Debug)]
struct Round {
    begun_at: Nanos,
    paced: Option<Paced>,
    /// Numbers of the answers that are waited for.
    open: HashSet<Xid>,
    said: u64,
    done: u64,
    first: Option<Nanos>,
    last: Nanos,
    is_disturbed: bool,
}

impl ControlRate {
    /// The module for one kind of message.
    pub fn new(saying: Saying) -> ControlRate {
        let (least, most) = saying.rates_per_s;
        ControlRate {
            version: None,
            barrier: None,
            timer: None,
            search: Highest::new(least, most),
            round: None,
            number: 0,
            refusals: Refusals::default(),
            saying,
        }
    }

    /// Says so many.
    fn say(&mut self, count: u64, desk: &mut Desk) {
        let numbers = self.number..self.number + count;
        let all: Vec<Message> = numbers
            .flat_map(|number| messages(self.saying.kind, number, &self.saying.flows, self.version))
            .collect();
        self.number += count;
        let Some(round) = self.round.as_mut().filter(|_| !all.is_empty()) else { return };
        let each = all.len() / count as usize;
        let said = desk.send_all(0, all);
        let answers = said.xids().skip(each - 1).step_by(each);
        round.open.extend(answers);
        round.said += count;
    }

    /// Begins the next round, if there is one.
    fn begin(&mut self, desk: &mut Desk) {
        let now = desk.now();
        let is_open = self.saying.under_way == 0;
        if is_open {
            desk.searching(self.search.bracket("messages that are done", "messages/s"));
        }
        let paced = match (is_open, self.search.next()) {
            (true, Some(rate)) => Some(Paced::over(rate, self.saying.step, now)),
            (true, None) if self.search.ended_in_silence() => {
                return desk.end_by_limit(PATIENCE_LIMIT);
            }
            (true, None) => return desk.end(),
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
            true => self.look(desk),
            false => {
                self.say(self.saying.under_way, desk);
                self.timer = Some(desk.timer_in(self.saying.step.saturating_add(PATIENCE)));
            }
        }
    }

    /// An answer was read.
    fn answered(&mut self, xid: Xid, at: Nanos, is_known: bool, desk: &mut Desk) {
        let under_way = self.saying.under_way;
        let end_at = self.saying.step;
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
            // In virtual time a switch may take none.
            let takes_time = span > Nanos::ZERO || round.done < TIMELESS;
            match span < end_at && takes_time {
                true => self.say(1, desk),
                false => desk.end(),
            }
        }
    }

    /// Says what is due, or looks whether the round is over.
    fn look(&mut self, desk: &mut Desk) {
        let now = desk.now();
        let Some(paced) = self.round.as_mut().and_then(|round| round.paced.as_mut()) else {
            // What was under way was never answered.
            return desk.end_by_limit(PATIENCE_LIMIT);
        };
        let due = paced.due(now);
        let (is_over, span, given_at) =
            (paced.is_over(), paced.span(), paced.begun_at().saturating_add(paced.span()));
        self.say(due.end - due.start, desk);
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
            return self.begin(desk);
        }
        self.timer = Some(desk.timer_in(TICK));
    }
}

/// Message `number` of a kind with what is behind it, which is answered when both are done.
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
    fn needs(&self) -> Needs {
        Needs::new(Nanos::from_secs(120)).in_versions(&self.saying.versions)
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(facts) => {
                self.version = facts.version(0);
                let cleared = Message::FlowMod(Rules::cleared(self.version));
                let said = desk.send_all(0, vec![cleared, Message::BarrierRequest]);
                self.barrier = said.xids().last();
                self.timer = Some(desk.timer_in(PATIENCE));
            }
            What::Message { xid, message, is_moment_known, .. } => match message {
                Message::BarrierReply if self.barrier == Some(xid) => {
                    self.barrier = None;
                    self.timer.take().map(|timer| desk.cancel(timer));
                    self.begin(desk);
                }
                Message::EchoReply(_) | Message::BarrierReply => {
                    self.answered(xid, event.at, is_moment_known, desk);
                }
                Message::MultipartReply(part) if !part.more => {
                    self.answered(xid, event.at, is_moment_known, desk);
                }
                Message::Error(error) => self.refusals.note(error),
                _ => {}
            },
            What::Timer(timer) if self.timer == Some(timer) => self.look(desk),
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, desk: &mut Desk) {
        let mut tell = |measured: Measured| desk.measured(measured);
        match &self.round {
            Some(round) if self.saying.under_way > 0 => {
                let span = round.last.since(round.begun_at).0 as f64;
                if span == 0.0 {
                    return;
                }
                let rate = round.done as f64 * 1e9 / span;
                // Those under way when it was over are counted neither way.
                let half = rate * self.saying.under_way as f64 / round.done as f64;
                tell(Measured::new("done_per_s", "per_s", rate, half).of(round.done));
            }
            _ => self.search.tell("messages", "per_s", &mut tell),
        }
        self.refusals.tell(&mut tell);
        if self.saying.under_way == 0 {
            desk.series(self.search.series("done_per_s"));
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
            let saying = Saying {
                kind,
                under_way,
                step: Nanos::from_secs_f64(own.number(&STEP)),
                rates_per_s: (RATE_MIN, own.number(&RATE_MAX)),
                flows: Rules::new(context, RULES),
                versions: versions(context),
            };
            let seconds = if under_way == 0 { 0.5 } else { 0.05 };
            let make = move |_| Box::new(ControlRate::new(saying.clone())) as Box<_>;
            spots.push(Spot::new(under_way as f64, seconds, make).named(prefix));
        }
    }
    Box::new(Rounds::new(context, AXIS, spots))
}
