//! Counter staleness: the delay until sent frames appear in the counters of a switch.
//!
//! Claim: if a switch reads data plane counters only from time to time, frames appear in them long after they
//! passed.
//!
//! Method: the module reads the counters once and sends K frames through one entry. It polls the
//! counters of that entry, the aggregate, the tables and the output port. The counter reached its
//! final value between two events. The first is the last request whose reply did not contain all
//! frames, or the sending of the last frame if that was later. The second is the first reply that
//! contained all frames. The value is the middle of that interval, with half of its width as the
//! uncertainty.
//!
//! Source: metric C10 of the method.
//!
//! Invariant: the module does not wait for lost frames.

use openflow::model::message::Message;
use openflow::model::{Match, PRIORITY_DEFAULT};
use openflow::version::Version;
use packet::time::Nanos;
use tester::module::{
    Ended, Event, EventKind, FrameFilter, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, SendSpan, TimerId,
};

use super::activation::UncertainTime;
use super::requests::{Answer, PATIENCE_LIMIT, PendingRequests};
use super::rounds::{ModulePoint, RepeatedModule};
use super::rules::{FAR, NEAR, Rules};
use super::statistics::Statistic;
use super::updates;
use crate::show::Chart;
use crate::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};

/// Name of the axis.
pub const AXIS: &str = "frames";

/// Id of the stream of counted frames.
const COUNTED: u16 = 1;

/// Time to wait for frames in flight after the last frame left.
const ARRIVING: Nanos = Nanos::from_millis(50);

/// Maximum time to prepare the table.
const READY: Nanos = Nanos::from_secs(5);

/// Settings of the counter test.
#[derive(Debug, Clone)]
pub struct CounterSettings {
    /// Entry.
    pub rules: Rules,
    /// Number of frames.
    pub frames: u64,
    /// Frames per second.
    pub frames_pps: f64,
    /// Size of a frame in bytes, including the frame check sequence.
    pub frame_bytes: usize,
    /// Types of statistics that contain the counters.
    pub statistics: Vec<Statistic>,
    /// Minimum interval between two requests for the same counter.
    pub poll: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time to wait after the last frame.
    pub patience: Nanos,
}

/// State of the module.
pub struct CounterStaleness {
    settings: CounterSettings,
    version: Version,
    pending: PendingRequests,
    ready: Option<MessageRange>,
    watches: Vec<WatchedCounter>,
    phase: Phase,
    arrived: u64,
    /// Departure time of the last of the arrived frames.
    last_sent_at: Nanos,
    /// Timers of the next round of requests, and of the end of waiting for frames or counters.
    poll: Option<TimerId>,
    end: Option<TimerId>,
}

/// Phases of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// The table is being prepared, and the initial counters are read.
    Before,
    /// Frames are sent.
    Sending,
    /// All frames have left; some may be in flight.
    Arriving,
    /// All frames that were not lost have arrived.
    Waiting,
}

/// A counter and its readings.
#[derive(Debug)]
struct WatchedCounter {
    statistic: Statistic,
    asked: Option<MessageRange>,
    /// Initial value; `None` until it is read.
    before: Option<u64>,
    is_refused: bool,
    readings: Vec<Reading>,
}

/// Increase of a counter over its initial value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    asked_at: Nanos,
    read_at: Nanos,
    frames: u64,
}

impl CounterStaleness {
    /// Creates the module.
    pub fn new(settings: CounterSettings) -> CounterStaleness {
        let watched = |&statistic: &Statistic| WatchedCounter {
            statistic,
            asked: None,
            before: None,
            is_refused: false,
            readings: Vec::new(),
        };
        CounterStaleness {
            watches: settings.statistics.iter().map(watched).collect(),
            settings,
            version: Version::V1_3,
            pending: PendingRequests::default(),
            ready: None,
            phase: Phase::Before,
            arrived: 0,
            last_sent_at: Nanos::ZERO,
            poll: None,
            end: None,
        }
    }

    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        self.version = version.unwrap_or(self.version);
        let settings = &self.settings;
        context.prepare(settings.rules.probes(COUNTED, settings.frame_bytes, settings.frames_pps));
        for port in [NEAR, FAR] {
            context.watch(port, FrameFilter::Streams(vec![COUNTED]));
        }
        let mut messages = Rules::emptied();
        messages.push(Message::FlowMod(settings.rules.add(0, PRIORITY_DEFAULT)));
        messages.push(Message::BarrierRequest);
        self.ready = Some(self.pending.ask(context, 0, messages));
        self.end = Some(context.timer_in(READY));
    }

    /// Requests every counter that lacks frames and has no outstanding request.
    fn look(&mut self, context: &mut ModuleContext) {
        self.poll = Some(context.timer_in(self.settings.poll));
        let arrived = self.arrived;
        let is_settled = self.phase == Phase::Waiting;
        for watched in &mut self.watches {
            let has_all = is_settled && watched.has(arrived);
            if watched.asked.is_none() && !watched.is_refused && !has_all {
                let matching = self.settings.rules.matching(0);
                let whole = matches!(watched.statistic, Statistic::Aggregate);
                let matching = if whole { Match::ANY } else { matching };
                let message = watched.statistic.ask(self.version, matching);
                watched.asked = Some(self.pending.ask(context, 0, vec![message]));
            }
        }
    }

    fn answered(&mut self, answer: &Answer, context: &mut ModuleContext) {
        if self.ready == Some(answer.said) {
            self.ready = None;
            return self.look(context);
        }
        let is_it = |watched: &&mut WatchedCounter| watched.asked == Some(answer.said);
        let Some(watched) = self.watches.iter_mut().find(is_it) else { return };
        watched.take(answer);
        match self.phase {
            Phase::Before if self.watches.iter().all(WatchedCounter::is_ready) => {
                self.send(context)
            }
            Phase::Waiting => self.finish_if_seen(context),
            _ => {}
        }
    }

    fn send(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Sending;
        self.end.take().map(|timer| context.cancel(timer));
        context.begin(COUNTED, SendSpan::frames(self.settings.frames));
    }

    /// Records a frame that the entry forwarded.
    fn arrived(&mut self, sent_at: Nanos, context: &mut ModuleContext) {
        self.arrived += 1;
        self.last_sent_at = self.last_sent_at.max(sent_at);
        if self.arrived == self.settings.frames {
            self.wait(context);
        }
    }

    /// Ends the arrival of frames.
    fn wait(&mut self, context: &mut ModuleContext) {
        self.phase = Phase::Waiting;
        self.end.take().map(|timer| context.cancel(timer));
        self.end = Some(context.timer_in(self.settings.patience));
        self.finish_if_seen(context);
    }

    fn finish_if_seen(&mut self, context: &mut ModuleContext) {
        let arrived = self.arrived;
        if self.watches.iter().all(|watched| watched.is_refused || watched.has(arrived)) {
            context.end();
        }
    }

    fn timed(&mut self, timer: TimerId, context: &mut ModuleContext) {
        if self.poll == Some(timer) {
            return self.look(context);
        }
        if self.end != Some(timer) {
            return;
        }
        match self.phase {
            Phase::Arriving => self.wait(context),
            Phase::Sending => {}
            Phase::Before | Phase::Waiting => context.end_by_limit(PATIENCE_LIMIT),
        }
    }
}

impl WatchedCounter {
    fn is_ready(&self) -> bool {
        self.is_refused || self.before.is_some()
    }

    /// Returns whether a reading contains this many frames.
    fn has(&self, frames: u64) -> bool {
        self.readings.last().is_some_and(|reading| reading.frames >= frames)
    }

    fn take(&mut self, answer: &Answer) {
        self.asked = None;
        if answer.is_refused {
            self.is_refused = true;
            return;
        }
        match self.before {
            None => self.before = Some(answer.frames),
            Some(before) => self.readings.push(Reading {
                asked_at: answer.sent_at,
                read_at: answer.last_at,
                frames: answer.frames.saturating_sub(before),
            }),
        }
    }

    /// Returns the time from the departure of the last frame until the counter contained all of them, if it did.
    fn staleness(&self, frames: u64, last_sent_at: Nanos) -> Option<UncertainTime> {
        let place = self.readings.iter().position(|reading| reading.frames >= frames)?;
        let lacked = place.checked_sub(1).map_or(last_sent_at, |it| self.readings[it].asked_at);
        let from = lacked.max(last_sent_at).since(last_sent_at);
        let until = self.readings[place].read_at.since(last_sent_at).max(from);
        let half = Nanos(until.since(from).0 / 2);
        Some(UncertainTime { at: from.saturating_add(half), half })
    }
}

impl Module for CounterStaleness {
    fn needs(&self) -> ModuleRequirements {
        let sending = Nanos::from_secs_f64(self.settings.frames as f64 / self.settings.frames_pps);
        let all = [READY, sending, sending, ARRIVING, self.settings.patience, Nanos::from_secs(1)];
        let limit = all.into_iter().fold(Nanos::ZERO, Nanos::saturating_add);
        ModuleRequirements::new(limit).in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts.version(0), context),
            EventKind::Timer(timer) => self.timed(timer, context),
            EventKind::Frame(arrival) => {
                if let (FAR, Some(probe)) = (arrival.port, arrival.probe) {
                    self.arrived(probe.sent_at, context);
                }
            }
            EventKind::StreamEnded(_) if self.phase == Phase::Sending => {
                self.phase = Phase::Arriving;
                self.end = Some(context.timer_in(ARRIVING));
            }
            _ => {
                if let Some(answer) = self.pending.note(event) {
                    self.answered(&answer, context);
                }
            }
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        if self.phase == Phase::Before || self.arrived == 0 {
            return;
        }
        let missing = self.settings.frames.saturating_sub(self.arrived);
        context.measured(MeasuredValue::new("missing_frames", "frames", missing as f64, 0.0));
        for watched in self.watches.iter().filter(|watched| !watched.is_refused) {
            let word = watched.statistic.word();
            let seen = watched.readings.last().map_or(0, |reading| reading.frames);
            let share = seen.min(self.arrived) as f64 / self.arrived as f64;
            let ratio = MeasuredValue::new(format!("{word}_visible_ratio"), "ratio", share, 0.0);
            context.measured(ratio.of(self.arrived));
            if let Some(stale) = watched.staleness(self.arrived, self.last_sent_at) {
                let (value, half) = (stale.at.0 as f64, stale.half.0 as f64);
                let mut told = MeasuredValue::new(format!("{word}_stale_ns"), "ns", value, half);
                if missing > 0 {
                    told = told.noting("some frames did not arrive, and counters may include them");
                }
                context.measured(told.of(self.arrived));
            }
        }
    }
}

const FRAMES: Parameter = Parameter {
    key: "frames_count",
    takes: ValueType::Integers(1, 10_000_000),
    default: "1,1000",
    unit: "frames",
    help: "number of frames to send",
};

const FRAMES_PPS: Parameter = Parameter {
    key: "frames_pps",
    takes: ValueType::Number(1.0, 2e7),
    default: "100000",
    unit: "frames/s",
    help: "rate of these frames",
};

const FRAME: Parameter = Parameter {
    key: "probe_bytes",
    takes: ValueType::Integer(64, 1518),
    default: "96",
    unit: "bytes",
    help: "frame size, including the frame check sequence",
};

const STATISTICS: Parameter = Parameter {
    key: "statistics",
    takes: ValueType::Words(&["flow", "aggregate", "table", "port"]),
    default: "flow,aggregate,table,port",
    unit: "",
    help: "counters to poll",
};

const POLL: Parameter = Parameter {
    key: "poll_ms",
    takes: ValueType::Number(0.01, 10_000.0),
    default: "1",
    unit: "ms",
    help: "interval between two requests for the same counter; half of it is the uncertainty",
};

const PATIENCE: Parameter = Parameter {
    key: "timeout_s",
    takes: ValueType::Number(0.1, 600.0),
    default: "3",
    unit: "s",
    help: "timeout for the counters after the last frame",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] =
    &[FRAMES, FRAMES_PPS, FRAME, STATISTICS, POLL, updates::VERSION, PATIENCE];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[Chart::values(
    "Time until counters include all frames, by number of frames",
    &["flow_stale_ns", "aggregate_stale_ns", "table_stale_ns", "port_stale_ns"],
    &["flow_visible_ratio", "table_visible_ratio", "port_visible_ratio", "missing_frames"],
)];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let own = &context.parameters.own;
    let spot = |frames: u64| {
        let settings = CounterSettings {
            rules: Rules::new(context, 1),
            frames,
            frames_pps: own.number(&FRAMES_PPS),
            frame_bytes: own.integer(&FRAME) as usize,
            statistics: own.words(&STATISTICS).filter_map(Statistic::of).collect(),
            poll: Nanos::from_secs_f64(own.number(&POLL) / 1e3),
            versions: updates::versions(context),
            patience: Nanos::from_secs_f64(own.number(&PATIENCE)),
        };
        let make = move |_| Box::new(CounterStaleness::new(settings.clone())) as Box<_>;
        ModulePoint::new(frames as f64, 0.5, make)
    };
    let spots = own.integers(&FRAMES).into_iter().map(spot).collect();
    Box::new(RepeatedModule::new(context, AXIS, spots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_appear_between_two_requests() {
        let reading = |asked_at, read_at, frames| Reading {
            asked_at: Nanos(asked_at),
            read_at: Nanos(read_at),
            frames,
        };
        let mut watched = WatchedCounter {
            statistic: Statistic::Flow,
            asked: None,
            before: Some(0),
            is_refused: false,
            readings: vec![reading(100, 110, 2), reading(200, 210, 4), reading(300, 310, 9)],
        };
        // Neither before the last frame left, nor before a request whose reply did not contain all
        // frames.
        let at = |at, half| Some(UncertainTime { at: Nanos(at), half: Nanos(half) });
        assert_eq!(watched.staleness(9, Nanos(250)), at(30, 30));
        assert_eq!(watched.staleness(9, Nanos(190)), at(65, 55));
        assert_eq!(watched.staleness(10, Nanos(190)), None);
        watched.readings.remove(0);
        assert_eq!(
            watched.staleness(4, Nanos(190)),
            at(10, 10),
            "the first reply counts all frames"
        );
    }
}
