//! Statistics that a controller asks for again and again while frames run, over one rule and over a table that
//! is nearly full.
//!
//! Claim: flow statistics take as long as there are rules, port statistics do not, and load delays both on some
//! switches. Method: the table is filled until the switch refuses a rule or a bound is reached, and relieved to the
//! share that is asked for; then under each load in turn flow and port statistics are asked for at a pace, each
//! halfway between two of the other. The load is frames of the first rule, from the tester's port or from a program on a host
//! there, for which two rules below all others pass on by port what else it says. Source: costa2017, section IV-D.
//! Invariants: a delay goes to the last part of an answer; an answer that does not end within the patience is
//! counted, and the next question is put all the same.

use instrument::module::hosts::{Done, Errand, Host, Load, Loaded, Program, payload_bytes};
use instrument::module::{Desk, Ended, Event, Measured, Module, Needs, Said, Span, TimerId, What};
use instrument::stream::Stream;
use openflow::model::message::Message;
use openflow::model::{Action, Field, FlowMod, Match};
use openflow::version::Version;
use packet::time::Nanos;
use results::record::BoundCause;

use super::asking::{Answer, Asking, Delays};
use super::round_trip::filling::{Fill, Filled};
use super::statistics::Statistic;
use crate::target::program::{PORT_IN, PORT_OUT};

/// How long a load runs before the first question.
const LEAD: Nanos = Nanos::from_millis(20);

/// What is asked for.
const KINDS: [Statistic; 2] = [Statistic::Flow, Statistic::Port];

/// The limit by which a load of a program ends that does not begin.
pub const NO_LOAD: &str = "patience for a program's load to begin";

/// The priority of rules that pass on what a program says beside its datagrams, above that for all else.
const PRIORITY_BESIDE: u16 = 1;

/// Frames that run while questions are asked.
#[derive(Debug, Clone)]
pub struct Burden {
    /// What is measured under it is named by this.
    pub name: &'static str,
    /// The frames.
    pub stream: Stream,
    /// The program that sends them, and how many bytes of payload a second where it is not to send all that it can; else
    /// the tester's own port does.
    pub program: Option<(Program, Option<f64>)>,
}

/// What is asked, over what, and beside what.
#[derive(Debug, Clone)]
pub struct Poll {
    /// What its series are named by, behind the load's name.
    pub name: &'static str,
    /// The table.
    pub fill: Fill,
    /// The loads, each stream with a number of its own; one after the other.
    pub loads: Vec<Burden>,
    /// Questions of each kind under each load.
    pub requests: u32,
    /// Time between two questions of a kind.
    pub pace: Nanos,
    /// OpenFlow versions offered.
    pub versions: Vec<Version>,
    /// How long a batch of rules, or an answer, may take.
    pub patience: Nanos,
}

/// State of the module.
pub struct Polling {
    poll: Poll,
    version: Version,
    asking: Asking,
    filled: Filled,
    is_filled: bool,
    /// What is under way, and of what kind it is where it is a question.
    asked: Option<Said>,
    timer: Option<TimerId>,
    /// What each load's program says that it sent.
    loaded: Vec<Option<Loaded>>,
    /// A program is to begin, or has been told to end.
    awaits: Option<Awaits>,
    /// The load, and how many questions were put under it.
    load: usize,
    count: usize,
    begun_at: Nanos,
    /// By load, and by kind.
    delays: Vec<[Delays; 2]>,
}

/// What is awaited of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Begin,
    End,
}

impl Polling {
    /// The module for such questions.
    pub fn new(poll: Poll) -> Polling {
        Polling {
            delays: vec![Default::default(); poll.loads.len()],
            loaded: vec![None; poll.loads.len()],
            awaits: None,
            poll,
            version: Version::V1_3,
            asking: Asking::default(),
            filled: Filled::default(),
            is_filled: false,
            asked: None,
            timer: None,
            load: 0,
            count: 0,
            begun_at: Nanos::ZERO,
        }
    }

    fn prepare(&mut self, version: Option<Version>, desk: &mut Desk) {
        self.version = version.unwrap_or(self.version);
        let own = self.poll.loads.iter().filter(|load| load.program.is_none());
        own.for_each(|load| desk.prepare(load.stream.clone()));
        self.say(vec![Message::FlowMod(FlowMod::delete(0, Match::ANY))], desk);
    }

    /// Says messages with a barrier behind.
    fn say(&mut self, mut messages: Vec<Message>, desk: &mut Desk) {
        messages.push(Message::BarrierRequest);
        self.ask(messages, desk);
    }

    fn ask(&mut self, messages: Vec<Message>, desk: &mut Desk) {
        self.asked = Some(self.asking.ask(desk, 0, messages));
        self.timer.take().map(|timer| desk.cancel(timer));
        self.timer = Some(desk.timer_in(self.poll.patience));
    }

    /// The next batch, or what is too many again, or the first load.
    fn fill(&mut self, desk: &mut Desk) {
        if let Some(batch) = self.filled.next(&self.poll.fill) {
            return self.say(batch, desk);
        }
        self.is_filled = true;
        let mut messages = self.filled.relieve(&self.poll.fill);
        if self.poll.loads.iter().any(|load| load.program.is_some()) {
            messages.extend([(PORT_IN, PORT_OUT), (PORT_OUT, PORT_IN)].map(passing));
        }
        self.say(messages, desk);
    }

    fn begin_load(&mut self, desk: &mut Desk) {
        let Some(Burden { stream, program, .. }) = self.poll.loads.get(self.load) else {
            return desk.end();
        };
        self.count = 0;
        let Some((program, bytes_per_s)) = *program else {
            desk.begin(stream.id, Span::OPEN);
            return self.begin_asking(desk);
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
        desk.errand(Errand::Load(Load {
            program,
            hosts: [from, to],
            payload_bytes: payload_bytes(stream.frame_bytes),
            bytes_per_s,
            limit: self.span(),
        }));
        self.awaits = Some(Awaits::Begin);
        self.timer = Some(desk.timer_in(self.poll.patience));
    }

    /// The longest that a load may have to last.
    fn span(&self) -> Nanos {
        let Poll { requests, pace, patience, .. } = &self.poll;
        Nanos(pace.0.max(2 * patience.0).saturating_mul(u64::from(*requests).max(1)))
    }

    /// The load runs.
    fn begin_asking(&mut self, desk: &mut Desk) {
        self.begun_at = desk.now().saturating_add(LEAD);
        self.timer.take().map(|timer| desk.cancel(timer));
        self.timer = Some(desk.timer_at(self.begun_at));
    }

    /// A program has begun, or ended: the one that was told to, or one whose time was over.
    fn loaded(&mut self, done: &Done, desk: &mut Desk) {
        match done {
            Done::Loading if self.awaits == Some(Awaits::Begin) => {
                self.awaits = None;
                self.begin_asking(desk);
            }
            Done::Loaded(loaded) => {
                self.loaded[self.load] = Some(loaded.clone());
                match self.awaits.take() {
                    Some(Awaits::End) => self.next_load(desk),
                    _ => desk.fail("the program that was to make load ended before its time"),
                }
            }
            Done::Failed(why) => desk.fail(why.as_str()),
            _ => {}
        }
    }

    fn next_load(&mut self, desk: &mut Desk) {
        self.load += 1;
        self.begin_load(desk);
    }

    /// Puts the next question, or goes on to the next load.
    fn go_on(&mut self, desk: &mut Desk) {
        if self.count >= KINDS.len() * self.poll.requests as usize {
            let load = &self.poll.loads[self.load];
            if load.program.is_some() {
                self.awaits = Some(Awaits::End);
                return desk.end_errand();
            }
            desk.stop(load.stream.id);
            return self.next_load(desk);
        }
        let after = self.poll.pace.0 / KINDS.len() as u64 * self.count as u64;
        let due = self.begun_at.saturating_add(Nanos(after));
        if desk.now() < due {
            self.timer = Some(desk.timer_at(due));
            return;
        }
        let kind = KINDS[self.count % KINDS.len()];
        self.count += 1;
        self.ask(vec![kind.ask(self.version, Match::ANY)], desk);
    }

    /// What came of the question that was put last.
    fn last(&mut self) -> &mut Delays {
        let place = (self.count - 1) % KINDS.len();
        &mut self.delays[self.load][place]
    }

    fn answered(&mut self, answer: &Answer, desk: &mut Desk) {
        if self.asked != Some(answer.said) {
            return;
        }
        self.asked = None;
        self.timer.take().map(|timer| desk.cancel(timer));
        match self.count {
            0 if self.is_filled => self.begin_load(desk),
            0 => {
                let rules = if self.filled.has_begun() { answer.said.count - 1 } else { 0 };
                self.filled.settle(rules);
                self.fill(desk);
            }
            _ => {
                self.last().note(answer);
                self.go_on(desk);
            }
        }
    }

    fn timed(&mut self, desk: &mut Desk) {
        self.timer = None;
        let given_up = self.asked.take();
        let has_begun = given_up.is_some_and(|said| self.asking.has_begun(0, said));
        if let Some(said) = given_up {
            self.asking.give_up(0, said);
        }
        match (given_up, self.count) {
            _ if self.awaits.is_some() => desk.end_by_limit(NO_LOAD),
            (None, _) => self.go_on(desk),
            (Some(_), 0) if self.is_filled => self.begin_load(desk),
            (Some(_), 0) => {
                self.filled.give_up();
                self.fill(desk);
            }
            (Some(_), _) => {
                let last = self.last();
                (last.endless, last.unanswered) = match has_begun {
                    true => (last.endless + 1, last.unanswered),
                    false => (last.endless, last.unanswered + 1),
                };
                self.go_on(desk);
            }
        }
    }

    fn refuse(&mut self, xid: u32, why: &str) {
        let place = self.asked.and_then(|said| said.place(xid));
        if let Some(place) = place.filter(|_| !self.is_filled && self.filled.has_begun()) {
            self.filled.refuse(place, why);
        }
    }

    fn tell(&self, desk: &mut Desk) {
        let turn = desk.turn().0 as f64;
        let rules =
            |name: &'static str, value: u32| Measured::new(name, "rules", f64::from(value), 0.0);
        let taken = rules("taken_rules", self.filled.taken());
        desk.measured(match self.filled.why() {
            Some(why) => taken.noting(why.to_string()),
            None => taken
                .at_least(BoundCause::SearchLimit, "the bound was reached, the table was not full"),
        });
        desk.measured(rules("filling_rules", self.filled.there()));
        for (load, loaded) in self.poll.loads.iter().zip(&self.loaded) {
            tell_load(load.name, loaded.as_ref(), desk);
        }
        for (Burden { name: load, .. }, delays) in self.poll.loads.iter().zip(&self.delays) {
            for (kind, delays) in KINDS.iter().zip(delays) {
                let word = kind.word();
                if delays.asked() == 0 {
                    continue;
                }
                delays.tell(&format!("{load}_{word}_reply_ns"), turn, &mut |it| desk.measured(it));
                let mut say = |what: &str, unit: &'static str, value: f64| {
                    let told = Measured::new(format!("{load}_{word}_{what}"), unit, value, 0.0);
                    desk.measured(told.of(delays.asked()));
                };
                let ratio = delays.answered() as f64 / delays.asked() as f64;
                say("answered_ratio", "ratio", ratio);
                say("unknown_count", "count", delays.unknown as f64);
                say("endless_count", "count", delays.endless as f64);
                say("reply_rows", "rows", delays.rows as f64);
                if let Some(spread) = delays.spread() {
                    let name = format!("{load}_{}_{word}_share", self.poll.name);
                    desk.series(spread.distribution(name, "answer_ns"));
                }
            }
        }
    }
}

/// The rule that passes on from port to port what no other takes.
fn passing((from, to): (u16, u16)) -> Message {
    let matching = Match::ANY.with(Field::InPort, from);
    let actions = vec![Action::output(to.into())];
    Message::FlowMod(FlowMod::add(matching, PRIORITY_BESIDE, actions))
}

/// What a program says that it sent.
fn tell_load(name: &str, loaded: Option<&Loaded>, desk: &mut Desk) {
    let Some(Loaded { program, sent, sent_bytes, seconds, lost }) = loaded else { return };
    let mut say = |what: &str, unit: &'static str, value: f64| {
        let told = Measured::new(format!("{name}_load_{what}"), unit, value, 0.0);
        desk.measured(told.noting(format!("as {program} says")));
    };
    say("frames", "frames", *sent as f64);
    say("pps", "pps", *sent as f64 / seconds);
    say("bytes_per_s", "per_s", *sent_bytes as f64 / seconds);
    if let Some(lost) = lost {
        say("lost_frames", "frames", *lost as f64);
    }
}

impl Module for Polling {
    fn needs(&self) -> Needs {
        let Poll { requests, pace, patience, loads, .. } = &self.poll;
        let each = pace.0.max(2 * patience.0) * u64::from(*requests) * loads.len() as u64;
        let filling = patience.0.saturating_mul(self.poll.fill.batches() + 4);
        let limit = Nanos(each.saturating_add(filling)).min(Nanos::from_secs(1800));
        Needs::new(limit).in_versions(&self.poll.versions)
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(facts) => self.prepare(facts.version(0), desk),
            What::Timer(timer) if self.timer == Some(timer) => self.timed(desk),
            What::Errand(done) => self.loaded(done, desk),
            _ => {
                if let What::Message { xid, message: Message::Error(error), .. } = event.what {
                    self.refuse(xid, &error.code.to_string());
                }
                if let Some(answer) = self.asking.note(event) {
                    self.answered(&answer, desk);
                }
            }
        }
    }

    fn finish(&mut self, _ended: &Ended, desk: &mut Desk) {
        self.tell(desk);
    }
}
