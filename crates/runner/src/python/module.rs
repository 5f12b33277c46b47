//! A script's class as a measurement module: events go to its process, commands come back.
//!
//! The process starts when the event loop requests the module's needs, before any clock runs, and
//! ends after its last commands. Invariant: in real time no reaction waits for Python. In virtual
//! time every batch waits for its reply, so that one seed gives one result regardless of the
//! machine's load.

use std::cell::RefCell;
use std::time::Duration;

use openflow::version::Version;
use packet::time::Nanos;
use serde::Deserialize;
use serde_json::{Value, json};
use tester::module::{
    Connection, Ended, Event, Measured, Module, ModuleContext, ModuleRequirements,
};
use tester::stream::Rate;

use super::conversation::{Conversation, POLL_NS, Wants};
use super::script::{Fault, Script};
use experiments::Context;
use workload::Technology;

/// Size limit of a traceback in the record, in bytes; the log has all of it.
const DETAILS_BYTES_MAX: usize = 4096;

/// Limit of a module's output lines in its log.
const PRINTED_LINES_MAX: usize = 1000;

/// Time limit for the process to end after its last commands.
const END: Duration = Duration::from_secs(2);

/// A module that runs in a Python process.
pub struct PythonModule {
    script: &'static Script,
    /// The arguments of the class.
    init: Value,
    /// `None` before the event loop requested the needs.
    conversation: RefCell<Option<Result<Conversation, Fault>>>,
}

/// From this waiting time of frames on, in milliseconds, frames are delivered in batches and not
/// individually.
const FRAMES_WAIT_MS_BATCHED: f64 = 1.0;

/// The needs of a class, as it declares them.
#[derive(Deserialize)]
struct NeedsTold {
    limit_s: f64,
    connections: Vec<ConnectionTold>,
    drain_s: f64,
    #[serde(rename = "ends_when_lost")]
    stops_on_disconnect: bool,
    frames_wait_ms: f64,
    frame_data: bool,
    answer_s: f64,
}

#[derive(Deserialize)]
struct ConnectionTold {
    switch: usize,
    versions: Vec<String>,
    opens: bool,
    #[serde(rename = "asks_features")]
    requests_features: bool,
    miss_send_len: Option<u16>,
}

/// Returns the addresses that reach a target, in the syntax of a stream file.
pub fn stream_of(context: &Context) -> Value {
    let rate = Rate::FramesPerSecond(1.0);
    let stream = context.setup().stream(Technology::OpenFlow, &context.addresses, 64, rate);
    let headers = stream.headers;
    let mac = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    json!({
        "from": 1,
        "to": 2,
        "mac_source": mac(headers.mac_source),
        "mac_destination": mac(headers.mac_destination),
        "ip_source": headers.ip_source.to_string(),
        "ip_destination": headers.ip_destination.to_string(),
        "port_source": headers.port_source,
        "port_destination": headers.port_destination,
    })
}

impl PythonModule {
    /// Creates a module of this script's class with these values; it starts no process.
    pub fn new(script: &'static Script, init: Value) -> PythonModule {
        PythonModule { script, init, conversation: RefCell::new(None) }
    }

    /// Starts the process and reads the module's needs.
    fn open(&self) -> Result<(Conversation, ModuleRequirements), Fault> {
        let (talk, folder) = self.script.talk()?;
        let mut conversation = Conversation::new(&self.script.path, talk, folder);
        let told = conversation.introduce(&self.init)?;
        let said = |why: String| Fault::Said { path: self.script.path.clone(), line: None, why };
        let told: NeedsTold = serde_json::from_value(told)
            .map_err(|error| said(format!("invalid needs: {error}")))?;
        conversation.wants(Wants {
            frames_wait: Nanos::from_secs_f64(told.frames_wait_ms.clamp(0.0, 1e6) / 1e3),
            frame_data: told.frame_data,
            answer: Duration::from_secs_f64(told.answer_s.clamp(0.001, 3600.0)),
        });
        let connection = |it: &ConnectionTold| {
            let version = |text: &String| {
                let known = Version::SUPPORTED.iter().copied().find(|it| it.to_string() == *text);
                known.ok_or_else(|| {
                    said(format!("invalid needs: unknown OpenFlow version {text:?}"))
                })
            };
            Ok(Connection {
                versions: it.versions.iter().map(version).collect::<Result<_, _>>()?,
                opens: it.opens,
                requests_features: it.requests_features,
                miss_send_bytes: it.miss_send_len,
                ..Connection::new(it.switch)
            })
        };
        let needs = ModuleRequirements {
            connections: told.connections.iter().map(connection).collect::<Result<_, Fault>>()?,
            drain: Nanos::from_secs_f64(told.drain_s.clamp(0.0, 60.0)),
            stops_on_disconnect: told.stops_on_disconnect,
            is_prompt: told.frames_wait_ms < FRAMES_WAIT_MS_BATCHED,
            ..ModuleRequirements::new(Nanos::from_secs_f64(told.limit_s.clamp(0.0, 1e6)))
        };
        Ok((conversation, needs))
    }
}

impl Module for PythonModule {
    fn needs(&self) -> ModuleRequirements {
        let opened = self.open();
        let needs = match &opened {
            Ok((_, needs)) => needs.clone(),
            // The fault is reported at the start, which needs no connections.
            Err(_) => ModuleRequirements {
                connections: Vec::new(),
                ..ModuleRequirements::new(Nanos::from_secs(1))
            },
        };
        *self.conversation.borrow_mut() = Some(opened.map(|(conversation, _)| conversation));
        needs
    }

    fn react(&mut self, event: &Event<'_>, desk: &mut ModuleContext) {
        let went = match self.conversation.get_mut() {
            Some(Ok(conversation)) => conversation.react(event, desk),
            Some(Err(fault)) => Err(fault.clone()),
            None => return,
        };
        if let Err(fault) = went {
            desk.fail(told(&fault));
            if let Some(Err(_)) = self.conversation.get_mut() {
                log_fault(&fault, desk);
            }
        }
    }

    fn finish(&mut self, ended: &Ended, desk: &mut ModuleContext) {
        let Some(Ok(mut conversation)) = self.conversation.get_mut().take() else { return };
        if *ended == Ended::Interrupted {
            return;
        }
        let reason = match ended {
            Ended::Completed => Value::Null,
            other => other.to_string().into(),
        };
        if let Err(fault) = conversation.finish(reason, desk) {
            desk.fail(told(&fault));
        }
        conversation.end(END);
        if let Some(fault) = conversation.fault() {
            log_fault(fault, desk);
        }
        let (printed, left_out) = conversation.printed();
        let lines: Vec<&str> = printed.lines().collect();
        let beyond = lines.len().saturating_sub(PRINTED_LINES_MAX) as u64;
        for line in lines.iter().rev().take(PRINTED_LINES_MAX).rev() {
            desk.log("python_printed", &[("line", (*line).to_string().into())]);
        }
        if beyond + left_out > 0 {
            desk.log(
                "python_printed_beyond",
                &[("lines", beyond.into()), ("bytes", left_out.into())],
            );
        }
        tell_costs(&conversation, desk);
    }
}

/// Records the cost of the exchange. In virtual time Python takes no time.
fn tell_costs(conversation: &Conversation, desk: &mut ModuleContext) {
    let costs = conversation.costs();
    let exactly = |name: &'static str, unit: &'static str, value: u64| {
        Measured::new(name, unit, value as f64, 0.0).of(costs.batches)
    };
    desk.measured(exactly("python_events_count", "count", costs.events));
    desk.measured(exactly("python_batches_count", "count", costs.batches));
    desk.measured(exactly("python_bytes", "bytes", costs.bytes));
    if !conversation.is_simulated() {
        let half = POLL_NS.0 as f64;
        let timed = |name: &'static str, value: u64| {
            Measured::new(name, "ns", value as f64, half).of(costs.batches)
        };
        desk.measured(timed("python_answer_ns_total", costs.answer_ns_total));
        desk.measured(timed("python_answer_ns_max", costs.answer_ns_longest));
        if let Some(cpu_ns) = costs.cpu_ns {
            desk.measured(exactly("python_cpu_ns", "ns", cpu_ns));
        }
    }
}

/// Formats a fault and its location, for the record.
fn told(fault: &Fault) -> String {
    let details = fault.details().trim_end();
    let mut from = details.len().saturating_sub(DETAILS_BYTES_MAX);
    while !details.is_char_boundary(from) {
        from += 1;
    }
    match &details[from..] {
        "" => fault.to_string(),
        details => format!("{fault}\n{details}"),
    }
}

fn log_fault(fault: &Fault, desk: &mut ModuleContext) {
    let details = fault.details().to_string();
    desk.log("python_fault", &[("what", fault.to_string().into()), ("traceback", details.into())]);
}
