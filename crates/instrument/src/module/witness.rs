//! Modules that ask an agent: one that does nothing else, and one around another while that measures.
//!
//! Interfaces are asked for when nothing moves, before and after; the load of processors meanwhile too, once
//! each [`LOAD_INTERVAL`]. Invariant: the module inside is told what it would be told without, and nothing else.

use packet::time::Nanos;
use snmp::mib::{self, Column, Interface};
use snmp::{Binding, Oid, Question};

use super::{Answer, Desk, Ended, Event, Module, Needs, SnmpId, TimerId, What};

/// How often the load is asked for.
pub const LOAD_INTERVAL: Nanos = Nanos::from_secs(1);

/// The longest that an agent may take for everything; each of its answers has a limit of its own.
pub const LOOK_NS_MAX: Nanos = Nanos::from_secs(30);

/// Loads that are kept of one measurement.
const LOADS_MAX: usize = 100_000;

/// The agent that is asked.
const AGENT: usize = 0;

/// What an agent said at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Where the agent is, and how we are believed.
    pub agent: String,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    /// The load of its processors over their last minute, in percent.
    pub loads: Vec<u64>,
    /// What else was asked for and is a number.
    pub values: Vec<(Oid, u64)>,
    /// How long the first answer took.
    pub round_trip: Option<Nanos>,
    /// Why something is not known.
    pub problems: Vec<String>,
}

/// Asks for everything, and ends.
#[derive(Debug, Default)]
pub struct Look {
    oids: Vec<Oid>,
    after: Nanos,
    asked: Vec<SnmpId>,
    seen: Seen,
}

impl Look {
    /// Asks for interfaces, load and these objects, after so long.
    pub fn new(oids: Vec<Oid>, after: Nanos) -> Look {
        Look { oids, after, ..Look::default() }
    }

    /// What the agent said.
    pub fn seen(self) -> Seen {
        self.seen
    }

    fn take(&mut self, at: Nanos, answer: &Answer) {
        let bindings = match &answer.bindings {
            Ok(bindings) => bindings,
            Err(why) => return self.seen.problems.push(why.to_string()),
        };
        let round_trip = answer.sent.filter(|_| answer.rounds == 1).map(|sent| at.since(sent));
        self.seen.round_trip = self.seen.round_trip.or(round_trip);
        let interfaces = mib::interfaces(bindings);
        if !interfaces.is_empty() {
            self.seen.interfaces = interfaces;
        }
        let loads = loads(bindings);
        if !loads.is_empty() {
            self.seen.loads = loads;
        }
        for binding in bindings.iter().filter(|binding| self.oids.contains(&binding.name)) {
            match binding.value.count() {
                Some(count) => self.seen.values.push((binding.name.clone(), count)),
                None => {
                    let Binding { name, value } = binding;
                    self.seen.problems.push(format!("{name} is no number: {value}"));
                }
            }
        }
    }
}

/// Loads of processors among what an agent said.
fn loads(bindings: &[Binding]) -> Vec<u64> {
    let root = mib::processor_load();
    let of = bindings.iter().filter(|binding| binding.name.below(&root).is_some());
    of.filter_map(|binding| binding.value.count()).collect()
}

impl Module for Look {
    fn needs(&self) -> Needs {
        let needs = Needs::new(LOOK_NS_MAX);
        Needs { connections: Vec::new(), drain: Nanos::ZERO, ..needs }
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(facts) => {
                self.seen.agent = facts.agents.get(AGENT).cloned().unwrap_or_default();
                desk.timer_in(self.after);
            }
            What::Timer(_) => {
                let columns = Column::ALL.iter().map(|column| column.root()).collect();
                self.asked.push(desk.snmp(AGENT, Question::Walk(columns)));
                let load = Question::Walk(vec![mib::processor_load()]);
                self.asked.push(desk.snmp(AGENT, load));
                let oids = [vec![mib::up_time()], self.oids.clone()].concat();
                self.asked.push(desk.snmp(AGENT, Question::Get(oids)));
            }
            What::Snmp { asked, answer, .. } => {
                self.take(event.at, answer);
                self.asked.retain(|open| *open != asked);
                if self.asked.is_empty() {
                    desk.end();
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, ended: &Ended, _: &mut Desk) {
        if *ended != Ended::Said {
            self.seen.problems.push(ended.to_string());
        }
        self.seen.problems.sort();
        self.seen.problems.dedup();
    }
}

/// Asks for the load while another module measures.
pub struct Beside<'a> {
    module: &'a mut dyn Module,
    timer: Option<TimerId>,
    asked: Option<SnmpId>,
    /// Mean load of the processors at each answer, in percent.
    pub loads: Vec<f64>,
    /// Why one was not answered.
    pub problem: Option<String>,
}

impl<'a> Beside<'a> {
    /// Around a module that has not been started.
    pub fn new(module: &'a mut dyn Module) -> Beside<'a> {
        Beside { module, timer: None, asked: None, loads: Vec::new(), problem: None }
    }

    fn again(&mut self, desk: &mut Desk) {
        self.timer = Some(desk.timer_in(LOAD_INTERVAL));
    }
}

impl Module for Beside<'_> {
    fn needs(&self) -> Needs {
        self.module.needs()
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut Desk) {
        match event.what {
            What::Start(_) => {
                self.again(desk);
                self.module.react(event, desk);
            }
            What::Timer(timer) if Some(timer) == self.timer => {
                // One that is silent is not asked more and more.
                if self.asked.is_none() {
                    let question = Question::Walk(vec![mib::processor_load()]);
                    self.asked = Some(desk.snmp(AGENT, question));
                }
                self.again(desk);
            }
            What::Snmp { asked, answer, .. } if Some(asked) == self.asked => {
                self.asked = None;
                match &answer.bindings {
                    Ok(bindings) => {
                        let loads = loads(bindings);
                        if !loads.is_empty() && self.loads.len() < LOADS_MAX {
                            let sum: u64 = loads.iter().sum();
                            self.loads.push(sum as f64 / loads.len() as f64);
                        }
                    }
                    Err(why) => self.problem = Some(why.to_string()),
                }
            }
            _ => self.module.react(event, desk),
        }
    }

    fn finish(&mut self, ended: &Ended, desk: &mut Desk) {
        self.module.finish(ended, desk);
    }
}
