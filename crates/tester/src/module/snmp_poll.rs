//! Modules that query an SNMP agent: a standalone one, and a wrapper around another module.
//!
//! Interfaces are read before and after a measurement. The wrapper reads only the processor load,
//! once per [`LOAD_INTERVAL`].
//!
//! Invariant: the wrapped module receives the same events as without the wrapper.

use packet::time::Nanos;
use snmp::mib::{self, Column, Interface};
use snmp::{Binding, Oid, SnmpRequest};

use super::{
    Ended, Event, EventKind, Module, ModuleContext, ModuleRequirements, SnmpId, SnmpReply, TimerId,
};

/// Interval between requests for the processor load.
pub const LOAD_INTERVAL: Nanos = Nanos::from_secs(1);

/// Time limit for all of an agent's replies. Each reply has its own limit too.
pub const LOOK_NS_MAX: Nanos = Nanos::from_secs(30);

/// Maximum number of load samples of a measurement.
const LOADS_MAX: usize = 100_000;

/// Index of the agent.
const AGENT: usize = 0;

/// Values that an agent reported at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnmpReading {
    /// Address and authentication of the agent.
    pub agent: String,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    /// Processor load over the last minute, in percent.
    pub loads: Vec<u64>,
    /// Other requested objects with numeric values.
    pub values: Vec<(Oid, u64)>,
    /// Round-trip time of the first reply.
    pub round_trip: Option<Nanos>,
    /// Reasons for missing values.
    pub problems: Vec<String>,
}

/// Module that reads all objects once and ends.
#[derive(Debug, Default)]
pub struct SnmpRead {
    oids: Vec<Oid>,
    after: Nanos,
    asked: Vec<SnmpId>,
    seen: SnmpReading,
}

impl SnmpRead {
    /// Requests interfaces, load and these objects after the given delay.
    pub fn new(oids: Vec<Oid>, after: Nanos) -> SnmpRead {
        SnmpRead { oids, after, ..SnmpRead::default() }
    }

    /// Returns what the agent reported.
    pub fn seen(self) -> SnmpReading {
        self.seen
    }

    fn take(&mut self, at: Nanos, answer: &SnmpReply) {
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
                    self.seen.problems.push(format!("{name} is not a number: {value}"));
                }
            }
        }
    }
}

/// Returns the processor loads among these bindings.
fn loads(bindings: &[Binding]) -> Vec<u64> {
    let root = mib::processor_load();
    let of = bindings.iter().filter(|binding| binding.name.below(&root).is_some());
    of.filter_map(|binding| binding.value.count()).collect()
}

impl Module for SnmpRead {
    fn needs(&self) -> ModuleRequirements {
        let needs = ModuleRequirements::new(LOOK_NS_MAX);
        ModuleRequirements { connections: Vec::new(), drain: Nanos::ZERO, ..needs }
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(facts) => {
                self.seen.agent = facts.agents.get(AGENT).cloned().unwrap_or_default();
                context.timer_in(self.after);
            }
            EventKind::Timer(_) => {
                let columns = Column::ALL.iter().map(|column| column.root()).collect();
                self.asked.push(context.snmp(AGENT, SnmpRequest::Walk(columns)));
                let load = SnmpRequest::Walk(vec![mib::processor_load()]);
                self.asked.push(context.snmp(AGENT, load));
                let oids = [vec![mib::up_time()], self.oids.clone()].concat();
                self.asked.push(context.snmp(AGENT, SnmpRequest::Get(oids)));
            }
            EventKind::Snmp { asked, answer, .. } => {
                self.take(event.at, answer);
                self.asked.retain(|open| *open != asked);
                if self.asked.is_empty() {
                    context.end();
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, ended: &Ended, _: &mut ModuleContext) {
        if *ended != Ended::Completed {
            self.seen.problems.push(ended.to_string());
        }
        self.seen.problems.sort();
        self.seen.problems.dedup();
    }
}

/// Wrapper that polls the processor load while another module measures.
pub struct LoadPoller<'a> {
    module: &'a mut dyn Module,
    timer: Option<TimerId>,
    asked: Option<SnmpId>,
    /// Mean load of the processors in each reply, in percent.
    pub loads: Vec<f64>,
    /// Reason of the last failed request.
    pub problem: Option<String>,
}

impl<'a> LoadPoller<'a> {
    /// Wraps a module that has not been started.
    pub fn new(module: &'a mut dyn Module) -> LoadPoller<'a> {
        LoadPoller { module, timer: None, asked: None, loads: Vec::new(), problem: None }
    }

    fn again(&mut self, context: &mut ModuleContext) {
        self.timer = Some(context.timer_in(LOAD_INTERVAL));
    }
}

impl Module for LoadPoller<'_> {
    fn needs(&self) -> ModuleRequirements {
        self.module.needs()
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        match event.what {
            EventKind::Start(_) => {
                self.again(context);
                self.module.react(event, context);
            }
            EventKind::Timer(timer) if Some(timer) == self.timer => {
                // Keeps one request outstanding, so that a silent agent gets no pile of requests.
                if self.asked.is_none() {
                    let question = SnmpRequest::Walk(vec![mib::processor_load()]);
                    self.asked = Some(context.snmp(AGENT, question));
                }
                self.again(context);
            }
            EventKind::Snmp { asked, answer, .. } if Some(asked) == self.asked => {
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
            _ => self.module.react(event, context),
        }
    }

    fn finish(&mut self, ended: &Ended, context: &mut ModuleContext) {
        self.module.finish(ended, context);
    }
}
