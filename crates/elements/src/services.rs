//! Protocol agents of a ProGFE element, and its events for clients that watch.
//!
//! Agents receive frames and the time whenever the node is served. Frames that they send enter the
//! graph immediately. Events of blocks and of agents are reported as JSON values.

use std::os::fd::RawFd;

use ::forces::association::Happening;
use dataplane::forwarder::Outputs;
use packet::frame::PortNo;
use packet::header::ethernet::Mac;
use packet::time::Nanos;
use progfe::agent::{AgentRequest, StatusValue};
use progfe::control::notifications;
use progfe::dispatcher::Dispatcher;
use progfe::element::Report;
use progfe::lfb::DivertDestination;
use progfe::program::Program;
use serde_json::{Map, Value, json};

use crate::config::ProGfeConfig;
use crate::datapath::Element;

pub mod ethernet;
pub mod http;
mod processes;

use processes::Processes;

/// An event for clients that watch.
pub struct ServiceEvent {
    /// The event for clients of the control socket.
    pub told: Value,
    /// The event for control elements, if an agent reported it. Control elements watch blocks
    /// themselves.
    pub of_agent: Option<Happening>,
}

/// Protocol agents of an element.
pub struct Services {
    dispatcher: Dispatcher,
    processes: Option<Processes>,
    /// Frames for a control element that were dropped because none exists.
    no_control: u64,
    /// Counters of the Ethernet agent, if there is one, and frames that exceeded its queue.
    pub ethernet: Option<(ethernet::Counters, u64)>,
}

impl Services {
    /// Creates the agents of an element with these ports. `seed` is a secret.
    pub fn new(config: &ProGfeConfig, ports: Vec<(PortNo, Mac)>, seed: u64) -> Services {
        let mut dispatcher = Dispatcher::new(seed);
        dispatcher.set_hardware(ports);
        let processes = config.agents.as_deref().map(Processes::new);
        Services { dispatcher, processes, no_control: 0, ethernet: None }
    }

    /// Sets the time of day.
    pub fn set_date(&mut self, since_1970: Nanos, now: Nanos) {
        self.dispatcher.set_date(since_1970, now);
    }

    /// Runs the agents.
    pub fn serve(&mut self, element: &mut Element, out: &mut Outputs, now: Nanos) {
        self.dispatcher.serve(element, now, out);
        if let Some(processes) = &mut self.processes {
            processes.turn(&mut self.dispatcher, (element, out), now);
        }
    }

    /// Returns the descriptors to poll for reading.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.processes.iter().flat_map(Processes::descriptors)
    }

    /// Returns the time of the next work that does not depend on received data.
    pub fn due(&self, now: Nanos) -> Option<Nanos> {
        let processes = self.processes.as_ref().and_then(|processes| processes.due(now));
        self.dispatcher.due().into_iter().chain(processes).min()
    }

    /// Drops frames for control elements where none exists, so that they do not block frames for
    /// agents.
    pub fn take_control_elements_part(&mut self, element: &mut Element) {
        while element.next_told_to(|to| *to == DivertDestination::Control).is_some() {
            self.no_control += 1;
        }
    }

    /// Returns the next event for clients that watch.
    pub fn next_event(&mut self, element: &mut Element) -> Option<ServiceEvent> {
        if let Some(report) = element.next_report() {
            let told = json!({ "event": of_block(&report, element.program()) });
            return Some(ServiceEvent { told, of_agent: None });
        }
        let report = self.dispatcher.next_report()?;
        let facts = value_of(&report.occurred.facts);
        let happening = notifications::agent(&report, &facts.to_string());
        let told = json!({ "event": {
            "agent": report.agent,
            "event": report.occurred.event,
            "at_ns": report.occurred.at.0,
            "untold": report.untold,
            "facts": facts,
        } });
        Some(ServiceEvent { told, of_agent: Some(happening) })
    }

    /// Returns the facts and counters of all agents.
    pub fn agents(&self, now: Nanos) -> Value {
        let facts = self.dispatcher.facts(now).into_iter();
        let agents: Map<String, Value> =
            facts.map(|(name, facts)| (name, value_of(&facts))).collect();
        let counters = self.dispatcher.counters();
        let mut told = json!({
            "agents": agents,
            "no_agent": counters.no_agent,
            "no_control": self.no_control,
            "reports_lost": counters.reports_lost,
        });
        if let Some((counters, lost)) = self.ethernet {
            told["ethernet"] = json!({
                "chunks": counters.chunks,
                "repeated": counters.repeated,
                "accepted": counters.accepted,
                "refused": counters.refused,
                "malformed": counters.malformed,
                "busy": counters.busy,
                "mailbox_full": lost,
            });
        }
        told
    }

    /// Sends a command to an agent and returns its result.
    pub fn ask(
        &mut self,
        agent: &str,
        ask: &AgentRequest,
        (element, out): (&mut Element, &mut Outputs),
        now: Nanos,
    ) -> Result<Value, String> {
        let facts = self.dispatcher.ask((agent, ask), element, now, out)?;
        Ok(value_of(&facts))
    }
}

fn of_block(report: &Report, program: &Program) -> Value {
    let happening = &report.happening;
    let class = program.class_of(happening.instance);
    let event = class.events.iter().find(|event| event.id == happening.event);
    let reports = happening.reports.iter().map(|(path, value)| {
        let shown = match class.target(path) {
            Ok(forces::model::Target::Value { data_type, .. }) => data_type.show(value).to_string(),
            _ => format!("{value:?}"),
        };
        json!({ "path": class.show_path(path).to_string(), "value": shown })
    });
    json!({
        "instance": program.instances[happening.instance].name,
        "event": event.map_or("", |event| event.name.as_str()),
        "at_ns": happening.at.0,
        "untold": report.untold,
        "rows": happening.rows,
        "reports": reports.collect::<Vec<_>>(),
    })
}

/// Converts a fact to JSON.
fn value_of(fact: &StatusValue) -> Value {
    match fact {
        StatusValue::Unknown => Value::Null,
        StatusValue::Flag(flag) => (*flag).into(),
        StatusValue::Number(number) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => u64::try_from(*number).map_or(Value::Null, Value::from),
        },
        StatusValue::Text(text) => text.as_str().into(),
        StatusValue::List(all) => all.iter().map(value_of).collect(),
        StatusValue::Named(all) => {
            Value::Object(all.iter().map(|(name, it)| ((*name).to_owned(), value_of(it))).collect())
        }
    }
}
