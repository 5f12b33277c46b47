//! Packet-out: the delay from the control channel to a port, and the number of packet-outs per second.
//!
//! Claim: a packet-out goes through the slowest part of the switch.
//!
//! Method: the module sends signed frames in packet-outs. First, single frames at a low rate give the delays: from
//! before the socket takes the first byte of the message until the frame arrives. Steps then give the highest rates
//! (see [`super::rate_search`]).
//!
//! Source: metric C9 of the method; OFLOPS's module `packet_out`.

use openflow::header::Xid;
use openflow::model::message::Message;
use openflow::model::packet_io::PacketOut;
use openflow::model::{Action, Match, reserved};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, FrameFilter, Frames, MeasuredValue, MessageRange, Module,
    ModuleContext, ModuleRequirements, TestSetup, TimerId,
};

use super::pacer::{Pacer, TICK};
use super::packets::{RATE_MAX, RATE_MIN, SAMPLES, SLOW_PPS, STEP};
use super::rate_search::{RateSearch, Step};
use super::requests::PATIENCE_LIMIT;
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{FAR, Rules};
use super::summary::Summary;
use super::unexpected_errors::UnexpectedErrors;
use super::updates::{VERSION, versions};
use crate::show::Chart;
use crate::{Context, Method};
use targets::flow_setup::PORT_OUT;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Default frame sizes.
const FRAMES: Parameter = shared::FRAMES.with_default("96,512,1472");

/// Stream id in the frames.
const STREAM: u16 = 1;

/// Time without arrivals after which outstanding frames count as lost.
const QUIET: Nanos = Nanos::from_millis(50);

/// Maximum time to wait for sent messages.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES, SAMPLES, SLOW_PPS, RATE_MAX, STEP, VERSION];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart::values(
        "Packet-out delay by frame size",
        &["packet_out_ns_p50", "packet_out_ns_p90"],
        &["packet_out_ns_min", "packet_out_ns_max", "lost_ratio"],
    ),
    Chart::values(
        "Packet-out rate by frame size",
        &["packet_outs_per_s_lossfree", "packet_outs_per_s_peak"],
        &["errors_count"],
    ),
    Chart::series("Completed over requested packet-out rate", &["done_per_s"]),
];

/// Settings of the packet-out test.
#[derive(Debug, Clone)]
pub struct PacketOutSettings {
    /// Frames.
    pub flows: Rules,
    /// Size of a frame in bytes, including the frame check sequence.
    pub frame_bytes: usize,
    /// Number of frames for the delays.
    pub samples: u64,
    /// Rate of those frames, per second.
    pub slow_pps: f64,
    /// Lowest and highest rate of a step.
    pub rates_pps: (f64, f64),
    /// Duration of a step.
    pub step: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
}

/// State of the module.
pub struct PacketOuts {
    settings: PacketOutSettings,
    frames: Option<Frames>,
    in_port: u32,
    barrier: Option<Xid>,
    timer: Option<TimerId>,
    search: RateSearch,
    paced: Option<Pacer>,
    /// Sequence number of the round's first frame.
    base: u64,
    /// Sent packet-outs: first transaction id, and position of their frames in the round.
    said: Vec<(Xid, u64)>,
    /// Sending time of each frame of the round...
    went: Vec<Option<Nanos>>,
    /// ...and arrival time, with whether it is exact.
    came: Vec<Option<(Nanos, bool)>>,
    is_slow: bool,
    is_disturbed: bool,
    delays: Vec<f64>,
    slow: (u64, u64),
    refusals: UnexpectedErrors,
}

impl PacketOuts {
    /// Creates the module for frames of one size.
    pub fn new(settings: PacketOutSettings) -> PacketOuts {
        let (least, most) = settings.rates_pps;
        PacketOuts {
            frames: None,
            in_port: reserved::NONE,
            barrier: None,
            timer: None,
            search: RateSearch::new(least, most),
            paced: None,
            base: 0,
            said: Vec::new(),
            went: Vec::new(),
            came: Vec::new(),
            is_slow: true,
            is_disturbed: false,
            delays: Vec::new(),
            slow: (0, 0),
            refusals: UnexpectedErrors::default(),
            settings,
        }
    }

    fn prepare(&mut self, facts: &TestSetup, context: &mut ModuleContext) {
        let stream = self.settings.flows.probes(STREAM, self.settings.frame_bytes, 1.0);
        self.frames = Some(facts.signer.frames(&stream));
        if facts.version(0) != Some(Version::V1_0) {
            self.in_port = reserved::CONTROLLER;
        }
        context.prepare(stream);
        context.watch(FAR, FrameFilter::Streams(vec![STREAM]));
        let empty = Message::FlowMod(Rules::cleared(facts.version(0)));
        self.barrier = context.send_all(0, vec![empty, Message::BarrierRequest]).xids().last();
        self.timer = Some(context.timer_in(PATIENCE));
    }

    /// Begins the next round, if there is one.
    fn begin(&mut self, context: &mut ModuleContext) {
        let now = context.now();
        if !self.is_slow {
            context.report_search(self.search.bracket("packet-out rate", "packet-outs/s"));
        }
        let paced = match (self.is_slow, self.search.next()) {
            (true, _) => Pacer::new(self.settings.slow_pps, self.settings.samples, now),
            (false, Some(rate)) => Pacer::over(rate, self.settings.step, now),
            (false, None) if self.search.ended_in_silence() => {
                return context.end_by_limit(PATIENCE_LIMIT);
            }
            (false, None) => return context.end(),
        };
        self.base += self.came.len() as u64;
        self.said.clear();
        self.went.clear();
        self.came.clear();
        self.is_disturbed = false;
        self.paced = Some(paced);
        self.send(context);
    }

    /// Sends the messages that are due and sets the next timer.
    fn send(&mut self, context: &mut ModuleContext) {
        let (Some(paced), Some(frames)) = (&mut self.paced, &self.frames) else { return };
        let now = context.now();
        let due = paced.due(now);
        let out = |place: u64| {
            Message::PacketOut(PacketOut {
                buffer_id: None,
                in_port: self.in_port,
                fields: Match::ANY,
                actions: vec![Action::output(PORT_OUT.into())],
                data: frames.frame(self.base + place, now),
            })
        };
        if !due.is_empty() {
            let first = due.start;
            let said = context.send_all(0, due.map(out).collect());
            self.said.push((said.xid, first));
            self.went.resize(paced.given() as usize, None);
            self.came.resize(paced.given() as usize, None);
        }
        let next = if paced.is_over() { QUIET } else { TICK };
        self.timer = Some(context.timer_in(next));
    }

    fn sent(&mut self, said: MessageRange, first: Nanos) {
        let Ok(place) = self.said.binary_search_by_key(&said.xid, |(xid, _)| *xid) else { return };
        let begin = self.said[place].1 as usize;
        for went in self.went.iter_mut().skip(begin).take(said.count as usize) {
            *went = Some(first);
        }
    }

    fn came(&mut self, number: u64, at: Nanos, is_known: bool, context: &mut ModuleContext) {
        let place = number.checked_sub(self.base).map(|place| place as usize);
        let Some(came) = place.and_then(|place| self.came.get_mut(place)) else { return };
        came.get_or_insert((at, is_known));
        self.is_disturbed |= !is_known;
        let is_given = self.paced.is_some_and(|paced| paced.is_over());
        if is_given && self.came.last().is_some_and(Option::is_some) {
            // The sent events of all earlier messages arrive before this timer.
            self.timer.take().map(|timer| context.cancel(timer));
            self.timer = Some(context.timer_in(TICK));
        }
    }

    /// Checks whether the round is over.
    fn look(&mut self, context: &mut ModuleContext) {
        let Some(paced) = self.paced else { return };
        if !paced.is_over() {
            return self.send(context);
        }
        let done = self.came.iter().flatten().count() as u64;
        let last = self.came.iter().flatten().map(|(at, _)| *at).max().unwrap_or(Nanos::ZERO);
        let given_at = paced.begun_at().saturating_add(paced.span());
        let is_quiet = context.now().since(last.max(given_at)) >= QUIET;
        let is_late = context.now().since(given_at) >= PATIENCE;
        if done < paced.given() && !is_quiet && !is_late {
            self.timer = Some(context.timer_in(QUIET));
            return;
        }
        self.note(paced, done);
        self.begin(context);
    }

    fn note(&mut self, paced: Pacer, done: u64) {
        if std::mem::take(&mut self.is_slow) {
            self.slow = (paced.given(), done);
            let pairs = self.went.iter().zip(&self.came);
            self.delays = pairs
                .filter_map(|(went, came)| Some((*went)?).zip(*came))
                .filter(|(_, (_, is_known))| *is_known)
                .map(|(went, (came, _))| came.since(went).0 as f64)
                .collect();
            return;
        }
        let moments = || self.came.iter().flatten().map(|(at, _)| *at);
        let first = moments().min().unwrap_or(Nanos::ZERO);
        let last = moments().max().unwrap_or(Nanos::ZERO);
        self.search.note(Step {
            asked: paced.given(),
            done,
            asked_in: paced.span(),
            done_in: last.since(first),
            is_disturbed: self.is_disturbed,
        });
    }
}

impl Module for PacketOuts {
    fn needs(&self) -> ModuleRequirements {
        ModuleRequirements::new(Nanos::from_secs(120)).in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts, context),
            EventKind::Message { xid, message: Message::BarrierReply, .. }
                if self.barrier == Some(xid) =>
            {
                self.barrier = None;
                self.timer.take().map(|timer| context.cancel(timer));
                self.begin(context);
            }
            EventKind::Message { message: Message::Error(error), .. } => self.refusals.note(error),
            EventKind::Sent { said, first, .. } => self.sent(said, first),
            EventKind::Frame(arrival) => {
                if let Some(probe) = arrival.probe {
                    self.came(probe.number, event.at, arrival.is_timestamp_valid, context);
                }
            }
            EventKind::Timer(timer) if self.timer == Some(timer) => match self.paced {
                None => context.end_by_limit(PATIENCE_LIMIT),
                Some(_) => self.look(context),
            },
            _ => {}
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        let turn = context.frame_poll_period().0 as f64;
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        self.search.tell("packet_outs", "per_s", &mut tell);
        if let Some(delays) = Summary::of(self.delays.clone()) {
            delays.tell("packet_out_ns", turn, &mut tell);
        }
        let (asked, done) = self.slow;
        if asked > 0 {
            let lost = 1.0 - done as f64 / asked as f64;
            tell(MeasuredValue::new("lost_ratio", "ratio", lost, 0.0).of(asked));
        }
        self.refusals.tell(&mut tell);
        context.series(self.search.series("done_per_s"));
    }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let spot = |frame_bytes: u16| {
        let settings = PacketOutSettings {
            flows: Rules::new(context, 1),
            frame_bytes: frame_bytes.into(),
            samples: own.integer(&SAMPLES),
            slow_pps: own.number(&SLOW_PPS),
            rates_pps: (RATE_MIN, own.number(&RATE_MAX)),
            step: Nanos::from_secs_f64(own.number(&STEP)),
            versions: versions(context),
        };
        let make = move |_| Box::new(PacketOuts::new(settings.clone())) as Box<_>;
        ModulePoint::new(frame_bytes.into(), 0.7, make)
    };
    let spots = context.frames(&FRAMES).into_iter().map(spot).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}
