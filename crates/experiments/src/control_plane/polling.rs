//! Periodic statistics requests while frames run, over one entry and over a nearly full table.
//!
//! Claim: the reply time of flow statistics grows with the number of entries, that of port statistics does not.
//! Load increases both on some switches.
//!
//! Method: the module fills the table until the switch rejects an entry or a limit is reached, then deletes entries
//! down to the requested share. Under each load in turn, it requests flow and port statistics periodically, each
//! halfway between two of the other. The load consists of frames of the first entry. They come from the tester's
//! port or from a program on a host there; in the latter case, two low-priority entries forward the program's other
//! frames by port.
//!
//! Source: costa2017, section IV-D.
//!
//! Invariants:
//!
//! - A reply time ends with the last part of a reply.
//! - A reply that does not end before the timeout is counted, and the next request is sent.

use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Match};
use openflow::version::Version;
use packet::time::Nanos;
use record::BoundCause;
use tester::module::host_tasks::{
    Host, HostTask, HostTaskResult, Load, Loaded, Program, payload_bytes,
};
use tester::module::{
    Ended, Event, EventKind, MeasuredValue, MessageRange, Module, ModuleContext,
    ModuleRequirements, SendSpan, TimerId,
};
use tester::stream::Stream;

use super::requests::{Answer, Delays, PendingRequests};
use super::round_trip::table_fill::{Fill, TableFill};
use super::statistics::Statistic;
use targets::flow_setup::{PORT_IN, PORT_OUT};

/// Time for which a load runs before the first request.
const LEAD: Nanos = Nanos::from_millis(20);

/// Types of statistics requested.
const KINDS: [Statistic; 2] = [Statistic::Flow, Statistic::Port];

/// Limit that ends a run if the load of a program does not begin.
pub const NO_LOAD: &str = "timeout for the start of a program's load";

/// Priority of entries that forward a program's other frames, above the table-miss entry.
const PRIORITY_BESIDE: u16 = 1;

/// Load that runs during the requests.
#[derive(Debug, Clone)]
pub struct BackgroundLoad {
    /// Name of the load in metric names.
    pub name: &'static str,
    /// Stream of frames.
    pub stream: Stream,
    /// Program that sends the frames, with its payload bytes per second unless it sends at its maximum rate.
    ///
    /// `None` if the tester's own port sends them.
    pub program: Option<(Program, Option<f64>)>,
}

/// Settings of the polling test.
#[derive(Debug, Clone)]
pub struct PollingSettings {
    /// Suffix of the names of series, after the load's name.
    pub name: &'static str,
    /// How the table is filled.
    pub fill: Fill,
    /// Loads, one after another; each stream has its own id.
    pub loads: Vec<BackgroundLoad>,
    /// Requests of each type under each load.
    pub requests: u32,
    /// Interval between two requests of a type.
    pub pace: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// Maximum time for a batch of entries or a reply.
    pub patience: Nanos,
}

/// State of the module.
pub struct Polling {
    settings: PollingSettings,
    version: Version,
    pending: PendingRequests,
    filled: TableFill,
    is_filled: bool,
    /// Outstanding messages, with the type of statistics if they are a request.
    asked: Option<MessageRange>,
    timer: Option<TimerId>,
    /// Sending reports of each load's program.
    loaded: Vec<Option<Loaded>>,
    /// Pending start or end of a program.
    awaits: Option<ExpectedReport>,
    /// Current load, and the number of requests under it.
    load: usize,
    count: usize,
    begun_at: Nanos,
    /// By load and by type.
    delays: Vec<[Delays; 2]>,
}

/// Expected report of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExpectedReport {
    Begin,
    End,
}

impl Polling {
    /// Creates the module.
    pub fn new(settings: PollingSettings) -> Polling {
        Polling {
            delays: vec![Default::default(); settings.loads.len()],
            loaded: vec![None; settings.loads.len()],
            awaits: None,
            settings,
            version: Version::V1_3,
            pending: PendingRequests::default(),
            filled: TableFill::default(),
            is_filled: false,
            asked: None,
            timer: None,
            load: 0,
            count: 0,
            begun_at: Nanos::ZERO,
        }
    }

    fn prepare(&mut self, version: Option<Version>, context: &mut ModuleContext) {
        self.version = version.unwrap_or(self.version);
        let own = self.settings.loads.iter().filter(|load| load.program.is_none());
        own.for_each(|load| context.prepare(load.stream.clone()));
        self.send(vec![Message::FlowMod(FlowMod::delete(0, Match::ANY))], context);
    }

    /// Sends messages, followed by a barrier request.
    fn send(&mut self, mut messages: Vec<Message>, context: &mut ModuleContext) {
        messages.push(Message::BarrierRequest);
        self.ask(messages, context);
    }

    fn ask(&mut self, messages: Vec<Message>, context: &mut ModuleContext) {
        self.asked = Some(self.pending.ask(context, 0, messages));
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_in(self.settings.patience));
    }

    /// Sends the next batch, deletes surplus entries, or begins the first load.
    fn fill(&mut self, context: &mut ModuleContext) {
        if let Some(batch) = self.filled.next(&self.settings.fill) {
            return self.send(batch, context);
        }
        self.is_filled = true;
        let mut messages = self.filled.relieve(&self.settings.fill);
        if self.settings.loads.iter().any(|load| load.program.is_some()) {
            messages.extend([(PORT_IN, PORT_OUT), (PORT_OUT, PORT_IN)].map(passing));
        }
        self.send(messages, context);
    }

    fn begin_load(&mut self, context: &mut ModuleContext) {
        let Some(BackgroundLoad { stream, program, .. }) = self.settings.loads.get(self.load)
        else {
            return context.end();
        };
        self.count = 0;
        let Some((program, bytes_per_s)) = *program else {
            context.begin(stream.id, SendSpan::OPEN);
            return self.begin_asking(context);
        };
        let from = Host::sending(stream);
        let headers = &stream.headers;
        let to = Host {
            port: stream.to,
            mac: headers.mac_destination,
            address: headers.ip_destination,
            udp_port: headers.port_destination,
            next_hop: headers.mac_source,
        };
        context.run_host_task(HostTask::Load(Load {
            program,
            hosts: [from, to],
            payload_bytes: payload_bytes(stream.frame_bytes),
            bytes_per_s,
            limit: self.span(),
        }));
        self.awaits = Some(ExpectedReport::Begin);
        self.timer = Some(context.timer_in(self.settings.patience));
    }

    /// Returns the maximum duration of a load.
    fn span(&self) -> Nanos {
        let PollingSettings { requests, pace, patience, .. } = &self.settings;
        Nanos(pace.0.max(2 * patience.0).saturating_mul(u64::from(*requests).max(1)))
    }

    /// Begins the requests when the load runs.
    fn begin_asking(&mut self, context: &mut ModuleContext) {
        self.begun_at = context.now().saturating_add(LEAD);
        self.timer.take().map(|timer| context.cancel(timer));
        self.timer = Some(context.timer_at(self.begun_at));
    }

    /// Processes the start or the end of a program, on request or after its duration.
    fn loaded(&mut self, done: &HostTaskResult, context: &mut ModuleContext) {
        match done {
            HostTaskResult::Loading if self.awaits == Some(ExpectedReport::Begin) => {
                self.awaits = None;
                self.begin_asking(context);
            }
            HostTaskResult::Loaded(loaded) => {
                self.loaded[self.load] = Some(loaded.clone());
                match self.awaits.take() {
                    Some(ExpectedReport::End) => self.next_load(context),
                    _ => context.fail("the program that generates the load ended early"),
                }
            }
            HostTaskResult::Failed(why) => context.fail(why.as_str()),
            _ => {}
        }
    }

    fn next_load(&mut self, context: &mut ModuleContext) {
        self.load += 1;
        self.begin_load(context);
    }

    /// Sends the next request, or begins the next load.
    fn go_on(&mut self, context: &mut ModuleContext) {
        if self.count >= KINDS.len() * self.settings.requests as usize {
            let load = &self.settings.loads[self.load];
            if load.program.is_some() {
                self.awaits = Some(ExpectedReport::End);
                return context.cancel_host_task();
            }
            context.stop(load.stream.id);
            return self.next_load(context);
        }
        let after = self.settings.pace.0 / KINDS.len() as u64 * self.count as u64;
        let due = self.begun_at.saturating_add(Nanos(after));
        if context.now() < due {
            self.timer = Some(context.timer_at(due));
            return;
        }
        let kind = KINDS[self.count % KINDS.len()];
        self.count += 1;
        self.ask(vec![kind.ask(self.version, Match::ANY)], context);
    }

    /// Returns the reply times of the last request's type.
    fn last(&mut self) -> &mut Delays {
        let place = (self.count - 1) % KINDS.len();
        &mut self.delays[self.load][place]
    }

    fn answered(&mut self, answer: &Answer, context: &mut ModuleContext) {
        if self.asked != Some(answer.said) {
            return;
        }
        self.asked = None;
        self.timer.take().map(|timer| context.cancel(timer));
        match self.count {
            0 if self.is_filled => self.begin_load(context),
            0 => {
                let rules = if self.filled.has_begun() { answer.said.count - 1 } else { 0 };
                self.filled.settle(rules);
                self.fill(context);
            }
            _ => {
                self.last().note(answer);
                self.go_on(context);
            }
        }
    }

    fn timed(&mut self, context: &mut ModuleContext) {
        self.timer = None;
        let given_up = self.asked.take();
        let has_begun = given_up.is_some_and(|said| self.pending.has_begun(0, said));
        if let Some(said) = given_up {
            self.pending.give_up(0, said);
        }
        match (given_up, self.count) {
            _ if self.awaits.is_some() => context.end_by_limit(NO_LOAD),
            (None, _) => self.go_on(context),
            (Some(_), 0) if self.is_filled => self.begin_load(context),
            (Some(_), 0) => {
                self.filled.give_up();
                self.fill(context);
            }
            (Some(_), _) => {
                let last = self.last();
                (last.endless, last.unanswered) = match has_begun {
                    true => (last.endless + 1, last.unanswered),
                    false => (last.endless, last.unanswered + 1),
                };
                self.go_on(context);
            }
        }
    }

    fn refuse(&mut self, xid: u32, why: &str) {
        let place = self.asked.and_then(|said| said.place(xid));
        if let Some(place) = place.filter(|_| !self.is_filled && self.filled.has_begun()) {
            self.filled.refuse(place, why);
        }
    }

    fn tell(&self, context: &mut ModuleContext) {
        let turn = context.poll_period().0 as f64;
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
        for (load, loaded) in self.settings.loads.iter().zip(&self.loaded) {
            tell_load(load.name, loaded.as_ref(), context);
        }
        for (BackgroundLoad { name: load, .. }, delays) in
            self.settings.loads.iter().zip(&self.delays)
        {
            for (kind, delays) in KINDS.iter().zip(delays) {
                let word = kind.word();
                if delays.asked() == 0 {
                    continue;
                }
                delays
                    .tell(&format!("{load}_{word}_reply_ns"), turn, &mut |it| context.measured(it));
                let mut say = |what: &str, unit: &'static str, value: f64| {
                    let told =
                        MeasuredValue::new(format!("{load}_{word}_{what}"), unit, value, 0.0);
                    context.measured(told.of(delays.asked()));
                };
                let ratio = delays.answered() as f64 / delays.asked() as f64;
                say("answered_ratio", "ratio", ratio);
                say("unknown_count", "count", delays.unknown as f64);
                say("endless_count", "count", delays.endless as f64);
                say("reply_rows", "rows", delays.rows as f64);
                if let Some(spread) = delays.spread() {
                    let name = format!("{load}_{}_{word}_share", self.settings.name);
                    context.series(spread.distribution(name, "answer_ns"));
                }
            }
        }
    }
}

/// Creates the entry that forwards unmatched frames from port to port.
fn passing((from, to): (u16, u16)) -> Message {
    let matching = Match::ANY.with(Field::InPort, from);
    let actions = vec![Action::output(to.into())];
    Message::FlowMod(FlowMod::add(matching, PRIORITY_BESIDE, actions))
}

/// Reports what a program sent.
fn tell_load(name: &str, loaded: Option<&Loaded>, context: &mut ModuleContext) {
    let Some(Loaded { program, sent, sent_bytes, seconds, lost }) = loaded else { return };
    let mut say = |what: &str, unit: &'static str, value: f64| {
        let told = MeasuredValue::new(format!("{name}_load_{what}"), unit, value, 0.0);
        context.measured(told.noting(format!("reported by {program}")));
    };
    say("frames", "frames", *sent as f64);
    say("pps", "pps", *sent as f64 / seconds);
    say("bytes_per_s", "per_s", *sent_bytes as f64 / seconds);
    if let Some(lost) = lost {
        say("lost_frames", "frames", *lost as f64);
    }
}

impl Module for Polling {
    fn needs(&self) -> ModuleRequirements {
        let PollingSettings { requests, pace, patience, loads, .. } = &self.settings;
        let each = pace.0.max(2 * patience.0) * u64::from(*requests) * loads.len() as u64;
        let filling = patience.0.saturating_mul(self.settings.fill.batches() + 4);
        let limit = Nanos(each.saturating_add(filling)).min(Nanos::from_secs(1800));
        ModuleRequirements::new(limit).in_versions(&self.settings.versions)
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => self.prepare(facts.version(0), context),
            EventKind::Timer(timer) if self.timer == Some(timer) => self.timed(context),
            EventKind::HostTask(done) => self.loaded(done, context),
            _ => {
                if let EventKind::Message { xid, message: Message::Error(error), .. } = event.what {
                    self.refuse(xid, &error.code.to_string());
                }
                if let Some(answer) = self.pending.note(event) {
                    self.answered(&answer, context);
                }
            }
        }
    }

    fn finish(&mut self, _ended: &Ended, context: &mut ModuleContext) {
        self.tell(context);
    }
}
