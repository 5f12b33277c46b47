//! Statistics that a controller asks for again and again while frames run, over one rule and over a table that
//! is nearly full.
//!
//! Claim: flow statistics take as long as there are rules, port statistics do not, and load delays both on some
//! switches. Method: the table is filled until the switch refuses a rule or a bound is reached, and relieved to the
//! share that is asked for; then under each load in turn flow and port statistics are asked for at a pace, each
//! halfway between two of the other. The load is frames of the first rule. Source: costa2017, section IV-D.
//! Invariants: a delay goes to the last part of an answer; an answer that does not end within the patience is
//! counted, and the next question is put all the same.

use instrument::module::{Desk, Ended, Event, Measured, Module, Needs, Said, Span, TimerId, What};
use instrument::stream::Stream;
use openflow::model::message::Message;
use openflow::model::{FlowMod, Match};
use openflow::version::Version;
use packet::time::Nanos;

use super::asking::{Answer, Asking, Delays};
use super::round_trip::filling::{Fill, Filled};
use super::statistics::Statistic;

/// How long a load runs before the first question.
const LEAD: Nanos = Nanos::from_millis(20);

/// What is asked for.
const KINDS: [Statistic; 2] = [Statistic::Flow, Statistic::Port];

/// What is asked, over what, and beside what.
#[derive(Debug, Clone)]
pub struct Poll {
    /// What its series are named by, behind the load's name.
    pub name: &'static str,
    /// The table.
    pub fill: Fill,
    /// The loads by their names, each with a number of its own; one after the other.
    pub loads: Vec<(&'static str, Stream)>,
    /// Questions of each kind under each load.
    pub requests: u32,
    /// Time between two questions of a kind.
    pub pace: Nanos,
    /// The versions that are offered.
    pub versions: Vec<Version>,
    /// How long a batch of rules, or an answer, may take.
    pub patience: Nanos,
}

/// The module.
pub struct Polling {
    poll: Poll,
    version: Version,
    asking: Asking,
    filled: Filled,
    is_filled: bool,
    /// What is under way, and of what kind it is where it is a question.
    asked: Option<Said>,
    timer: Option<TimerId>,
    /// The load, and how many questions were put under it.
    load: usize,
    count: usize,
    begun_at: Nanos,
    /// By load, and by kind.
    delays: Vec<[Delays; 2]>,
}

impl Polling {
    /// The module for such questions.
    pub fn new(poll: Poll) -> Polling {
        Polling {
            delays: vec![Default::default(); poll.loads.len()],
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
        self.poll.loads.iter().for_each(|(_, stream)| desk.prepare(stream.clone()));
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
        let gone = self.filled.relieve(&self.poll.fill);
        self.say(gone, desk);
    }

    fn begin_load(&mut self, desk: &mut Desk) {
        let Some((_, stream)) = self.poll.loads.get(self.load) else { return desk.end() };
        desk.begin(stream.id, Span::OPEN);
        (self.count, self.begun_at) = (0, desk.now().saturating_add(LEAD));
        self.timer = Some(desk.timer_at(self.begun_at));
    }

    /// Puts the next question, or goes on to the next load.
    fn go_on(&mut self, desk: &mut Desk) {
        if self.count >= KINDS.len() * self.poll.requests as usize {
            desk.stop(self.poll.loads[self.load].1.id);
            self.load += 1;
            return self.begin_load(desk);
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
        if let Some(said) = given_up {
            self.asking.give_up(0, said);
        }
        match (given_up, self.count) {
            (None, _) => self.go_on(desk),
            (Some(_), 0) if self.is_filled => self.begin_load(desk),
            (Some(_), 0) => {
                self.filled.give_up();
                self.fill(desk);
            }
            (Some(_), _) => {
                self.last().unanswered += 1;
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
            None => taken.noting("the bound was reached, the table was not full"),
        });
        desk.measured(rules("filling_rules", self.filled.there()));
        for ((load, _), delays) in self.poll.loads.iter().zip(&self.delays) {
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
                say("reply_rows", "rows", delays.rows as f64);
                if let Some(spread) = delays.spread() {
                    let name = format!("{load}_{}_{word}_share", self.poll.name);
                    desk.series(spread.distribution(name, "answer_ns"));
                }
            }
        }
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
