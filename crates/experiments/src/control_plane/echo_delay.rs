//! Echo delay: the echo reply time of the switch, idle and under load.
//!
//! Claim: the echo reply time includes the control channel and the process that serves it, and grows with the other
//! work of the switch.
//!
//! Method: the module sends echo requests of one size at a constant rate. The time of each starts before the socket
//! takes its first byte and ends when the reply was read. Meanwhile the switch is idle, forwards frames, or adds
//! and deletes entries on the same connection.
//!
//! Source: metric C16 of the method; OFLOPS's module `echo_delay`, which had no load.

use std::collections::BTreeMap;

use openflow::header::Xid;
use openflow::model::flow::FlowModCommand;
use openflow::model::message::Message;
use openflow::model::{Action, FlowMod, PRIORITY_DEFAULT};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, SendSpan, TimerId,
};
use tester::stream::Rate;

use super::pacer::{Pacer, TICK};
use super::requests::PATIENCE_LIMIT;
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{FAR, Rules};
use super::summary::Summary;
use super::unexpected_errors::UnexpectedErrors;
use super::updates::{VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::PORT_OUT;
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "payload_bytes";

/// The stream of frames.
const FRAMES: u16 = 1;

/// Number of entries that are added and deleted in turn.
const RULES: u32 = 100;

/// Time for which the load runs before the first echo request.
const LEAD: Nanos = Nanos::from_millis(10);

/// Maximum time to wait for replies.
const PATIENCE: Nanos = Nanos::from_secs(2);

const PAYLOAD: Parameter = Parameter {
    key: "payload",
    takes: ValueType::Integers(0, 65_000),
    default: "0,64,1400,16000",
    unit: "bytes",
    help: "payload of an echo request",
};

const LOADS: Parameter = Parameter {
    key: "loads",
    takes: ValueType::Words(&["none", "frames", "flow_mods"]),
    default: "none,frames,flow_mods",
    unit: "",
    help: "load of the switch during the requests",
};

const ECHOES: Parameter = Parameter {
    key: "echoes",
    takes: ValueType::Integer(2, 100_000),
    default: "200",
    unit: "messages",
    help: "number of echo requests",
};

const ECHOES_PER_S: Parameter = Parameter {
    key: "echoes_per_s",
    takes: ValueType::Number(0.1, 1e6),
    default: "1000",
    unit: "messages/s",
    help: "rate of the echo requests",
};

const LOAD_PPS: Parameter = Parameter {
    key: "load_pps",
    takes: ValueType::Number(1.0, 2e7),
    default: "100000",
    unit: "frames/s",
    help: "rate of the 64-byte frames that the switch forwards under load",
};

const LOAD_PER_S: Parameter = Parameter {
    key: "load_flow_mods_per_s",
    takes: ValueType::Number(1.0, 1e7),
    default: "5000",
    unit: "flow-mods/s",
    help: "rate of flow-mods that add and delete entries under load, on the same connection",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[PAYLOAD, LOADS, ECHOES, ECHOES_PER_S, LOAD_PPS, LOAD_PER_S, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[Chart::values(
    "Echo delay by payload: idle, under frames, under flow-mods",
    &["echo_ns_p50", "under_frames_echo_ns_p50", "under_flow_mods_echo_ns_p50"],
    &[
        "echo_ns_min",
        "echo_ns_max",
        "under_frames_echo_ns_max",
        "under_flow_mods_echo_ns_max",
        "unanswered_ratio",
    ],
)];

/// Other load of the switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Nothing.
    Nothing,
    /// Forwards this many frames per second.
    Frames(f64),
    /// Changes this many entries per second.
    FlowMods(f64),
}

/// Settings of the echo test.
#[derive(Debug, Clone)]
pub struct EchoSettings {
    /// Payload size of each request, in bytes.
    pub payload_bytes: usize,
    /// Number of requests.
    pub echoes: u64,
    /// Requests per second.
    pub per_s: f64,
    /// Other load of the switch.
    pub load: Load,
    /// Entries and frames.
    pub flows: Rules,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// State of the module.
pub struct EchoDelay {
    settings: EchoSettings,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    echoes: Option<Pacer>,
    changes: Option<Pacer>,
    /// Outstanding echo requests, with the time of sending.
    open: BTreeMap<Xid, Option<Nanos>>,
    delays: Vec<f64>,
    answered: u64,
    /// Replies with a different payload, or without a matching request.
    wrong: u64,
    refusals: UnexpectedErrors,
}

impl EchoDelay {
    /// Creates the module for echo requests of one size.
    pub fn new(settings: EchoSettings) -> EchoDelay {
        EchoDelay {
            settings,
            barrier: None,
            timer: None,
            echoes: None,
            changes: None,
            open: BTreeMap::new(),
            delays: Vec::new(),
            answered: 0,
            wrong: 0,
            refusals: UnexpectedErrors::default(),
        }
    }

    /// Installs the entry that forwards frames.
    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        let settings = &self.settings;
        let on = FlowMod::add(settings.flows.exact(0), PRIORITY_DEFAULT, onward());
        let empty = Rules::cleared(version);
        let mut messages: Vec<Message> = [empty, on].map(Message::FlowMod).into();
        messages.push(Message::BarrierRequest);
        self.barrier = context.send_all(0, messages).xids().last();
        self.timer = Some(context.timer_in(PATIENCE));
        if let Load::Frames(pps) = settings.load {
            let mut stream = settings.flows.probes(FRAMES, 64, 1.0);
            (stream.rate, stream.vary) = (Rate::FramesPerSecond(pps), Vec::new());
            context.prepare(stream);
            context.watch(FAR, FrameFilter::None);
        }
    }

    fn begin(&mut self, context: &mut ModuleContext) {
        let from = context.now().saturating_add(LEAD);
        match self.settings.load {
            Load::Nothing => {}
            Load::Frames(_) => context.begin(FRAMES, SendSpan::OPEN),
            Load::FlowMods(per_s) => {
                self.changes = Some(Pacer::new(per_s, u64::MAX, context.now()))
            }
        }
        self.echoes = Some(Pacer::new(self.settings.per_s, self.settings.echoes, from));
        self.timer = Some(context.timer_in(TICK));
    }

    /// Sends the requests that are due and sets the next timer.
    fn send(&mut self, context: &mut ModuleContext) {
        let now = context.now();
        if let Some(changes) = &mut self.changes {
            let flows = &self.settings.flows;
            let messages: Vec<Message> =
                changes.due(now).map(|number| change(flows, number)).collect();
            if !messages.is_empty() {
                context.send_all(0, messages);
            }
        }
        let Some(echoes) = self.echoes.as_mut().filter(|echoes| now >= echoes.begun_at()) else {
            self.timer = Some(context.timer_in(TICK));
            return;
        };
        for number in echoes.due(now) {
            let xid =
                context.send(0, Message::EchoRequest(payload(number, self.settings.payload_bytes)));
            self.open.insert(xid, None);
        }
        let given_at = echoes.begun_at().saturating_add(echoes.span());
        let is_late = now.since(given_at) >= PATIENCE;
        if echoes.is_over() && self.open.is_empty() {
            return context.end();
        }
        if echoes.is_over() && is_late {
            return context.end_by_limit(PATIENCE_LIMIT);
        }
        self.timer = Some(context.timer_in(TICK));
    }

    fn answered(&mut self, xid: Xid, bytes: usize, at: Nanos, is_known: bool) {
        match self.open.remove(&xid) {
            Some(sent) if bytes == self.settings.payload_bytes => {
                self.answered += 1;
                let delay = sent.map(|first| at.since(first).0 as f64);
                self.delays.extend(delay.filter(|_| is_known));
            }
            _ => self.wrong += 1,
        }
    }

    fn sent(&mut self, said: MessageRange, first: Nanos) {
        if let Some(sent) = self.open.get_mut(&said.xid) {
            *sent = Some(first);
        }
    }
}

/// Returns the actions that forward frames.
fn onward() -> Vec<Action> {
    vec![Action::output(PORT_OUT.into())]
}

/// Builds change `number`: all entries are added, then all deleted, repeatedly. No sent frame matches them.
fn change(flows: &Rules, number: u64) -> Message {
    let place = 1 + (number % u64::from(RULES)) as u32;
    let rule = FlowMod::add(flows.exact(place), PRIORITY_DEFAULT, onward());
    let is_deleted = (number / u64::from(RULES)) % 2 == 1;
    Message::FlowMod(match is_deleted {
        false => rule,
        true => {
            let command = FlowModCommand::DeleteStrict;
            FlowMod { command, instructions: Vec::new(), ..rule }
        }
    })
}

/// Returns the payload of an echo request, which differs for each request.
fn payload(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|place| (number + place) as u8).collect()
}

impl Module for EchoDelay {
    fn needs(&self) -> ModuleRequirements {
        let span = Nanos::from_secs_f64(self.settings.echoes as f64 / self.settings.per_s);
        ModuleRequirements::new(span.saturating_add(Nanos::from_secs(10)))
            .in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts.version(0), context),
            EventKind::Sent { said, first, .. } => self.sent(said, first),
            EventKind::Message { xid, message, is_timestamp_valid, .. } => match message {
                Message::EchoReply(data) => {
                    self.answered(xid, data.len(), event.at, is_timestamp_valid);
                }
                Message::BarrierReply if self.barrier == Some(xid) => {
                    self.barrier = None;
                    self.timer.take().map(|timer| context.cancel(timer));
                    self.begin(context);
                }
                Message::Error(error) => self.refusals.note(error),
                _ => {}
            },
            EventKind::Timer(timer) if self.timer == Some(timer) => match self.echoes {
                None => context.end_by_limit(PATIENCE_LIMIT),
                Some(_) => self.send(context),
            },
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let asked = self.echoes.map_or(0, |echoes| echoes.given());
        let turn = context.poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        if let Some(delays) = Summary::of(std::mem::take(&mut self.delays)) {
            delays.tell("echo_ns", turn, &mut tell);
        }
        if asked > 0 {
            let missing = 1.0 - self.answered as f64 / asked as f64;
            tell(MeasuredValue::new("unanswered_ratio", "ratio", missing, 0.0).of(asked));
        }
        tell(MeasuredValue::new("wrong_count", "count", self.wrong as f64, 0.0));
        self.refusals.tell(&mut tell);
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let mut spots = Vec::new();
    for payload_bytes in own.integers(&PAYLOAD) {
        for load in own.words(&LOADS) {
            let (load, prefix) = match load {
                "frames" => (Load::Frames(own.number(&LOAD_PPS)), "under_frames_"),
                "flow_mods" => (Load::FlowMods(own.number(&LOAD_PER_S)), "under_flow_mods_"),
                _ => (Load::Nothing, ""),
            };
            let settings = EchoSettings {
                payload_bytes: payload_bytes as usize,
                echoes: own.integer(&ECHOES),
                per_s: own.number(&ECHOES_PER_S),
                load,
                flows: Rules::new(context, RULES + 1),
                versions: versions(context),
            };
            let seconds = settings.echoes as f64 / settings.per_s;
            let make = move |_| Box::new(EchoDelay::new(settings.clone())) as Box<_>;
            spots.push(ModulePoint::new(payload_bytes as f64, seconds, make).named(prefix));
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
