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
    Connection, Ended, Event, MeasuredValue, Module, ModuleContext, ModuleRequirements,
};
use tester::stream::Rate;

use super::exchange::{EventPreferences, Exchange, POLL_NS};
use super::script::{Script, ScriptFault};
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
    exchange: RefCell<Option<Result<Exchange, ScriptFault>>>,
}

/// From this waiting time of frames on, in milliseconds, frames are delivered in batches and not
/// individually.
const FRAMES_WAIT_MS_BATCHED: f64 = 1.0;

/// The needs of a class, as it declares them.
#[derive(Deserialize)]
struct DeclaredNeeds {
    limit_s: f64,
    connections: Vec<DeclaredConnection>,
    drain_s: f64,
    #[serde(rename = "stop_on_disconnect")]
    stops_on_disconnect: bool,
    frames_wait_ms: f64,
    frame_data: bool,
    callback_timeout_s: f64,
}

#[derive(Deserialize)]
struct DeclaredConnection {
    switch: usize,
    versions: Vec<String>,
    #[serde(rename = "open_at_start")]
    opens: bool,
    #[serde(rename = "request_features")]
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
        PythonModule { script, init, exchange: RefCell::new(None) }
    }

    /// Starts the process and reads the module's needs.
    fn open(&self) -> Result<(Exchange, ModuleRequirements), ScriptFault> {
        let (talk, folder) = self.script.talk()?;
        let mut exchange = Exchange::new(&self.script.path, talk, folder);
        let told = exchange.introduce(&self.init)?;
        let said =
            |why: String| ScriptFault::Said { path: self.script.path.clone(), line: None, why };
        let told: DeclaredNeeds = serde_json::from_value(told)
            .map_err(|error| said(format!("invalid needs: {error}")))?;
        exchange.wants(EventPreferences {
            frames_wait: Nanos::from_secs_f64(told.frames_wait_ms.clamp(0.0, 1e6) / 1e3),
            frame_data: told.frame_data,
            answer: Duration::from_secs_f64(told.callback_timeout_s.clamp(0.001, 3600.0)),
        });
        let connection = |it: &DeclaredConnection| {
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
            connections: told
                .connections
                .iter()
                .map(connection)
                .collect::<Result<_, ScriptFault>>()?,
            drain: Nanos::from_secs_f64(told.drain_s.clamp(0.0, 60.0)),
            stops_on_disconnect: told.stops_on_disconnect,
            needs_immediate_frames: told.frames_wait_ms < FRAMES_WAIT_MS_BATCHED,
            ..ModuleRequirements::new(Nanos::from_secs_f64(told.limit_s.clamp(0.0, 1e6)))
        };
        Ok((exchange, needs))
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
        *self.exchange.borrow_mut() = Some(opened.map(|(exchange, _)| exchange));
        needs
    }

    fn react(&mut self, event: &Event<'_>, context: &mut ModuleContext) {
        let went = match self.exchange.get_mut() {
            Some(Ok(exchange)) => exchange.react(event, context),
            Some(Err(fault)) => Err(fault.clone()),
            None => return,
        };
        if let Err(fault) = went {
            context.fail(told(&fault));
            if let Some(Err(_)) = self.exchange.get_mut() {
                log_fault(&fault, context);
            }
        }
    }

    fn finish(&mut self, ended: &Ended, context: &mut ModuleContext) {
        let Some(Ok(mut exchange)) = self.exchange.get_mut().take() else { return };
        if *ended == Ended::Interrupted {
            return;
        }
        let reason = match ended {
            Ended::Completed => Value::Null,
            other => other.to_string().into(),
        };
        if let Err(fault) = exchange.finish(reason, context) {
            context.fail(told(&fault));
        }
        exchange.end(END);
        if let Some(fault) = exchange.fault() {
            log_fault(fault, context);
        }
        let (printed, left_out) = exchange.printed();
        let lines: Vec<&str> = printed.lines().collect();
        let beyond = lines.len().saturating_sub(PRINTED_LINES_MAX) as u64;
        for line in lines.iter().rev().take(PRINTED_LINES_MAX).rev() {
            context.log("python_printed", &[("line", (*line).to_string().into())]);
        }
        if beyond + left_out > 0 {
            context.log(
                "python_printed_beyond",
                &[("lines", beyond.into()), ("bytes", left_out.into())],
            );
        }
        tell_costs(&exchange, context);
    }
}

/// Records the cost of the exchange. In virtual time Python takes no time.
fn tell_costs(exchange: &Exchange, context: &mut ModuleContext) {
    let costs = exchange.costs();
    let exactly = |name: &'static str, unit: &'static str, value: u64| {
        MeasuredValue::new(name, unit, value as f64, 0.0).of(costs.batches)
    };
    context.measured(exactly("python_events_count", "count", costs.events));
    context.measured(exactly("python_batches_count", "count", costs.batches));
    context.measured(exactly("python_bytes", "bytes", costs.bytes));
    if !exchange.is_simulated() {
        let half = POLL_NS.0 as f64;
        let timed = |name: &'static str, value: u64| {
            MeasuredValue::new(name, "ns", value as f64, half).of(costs.batches)
        };
        context.measured(timed("python_answer_ns_total", costs.answer_ns_total));
        context.measured(timed("python_answer_ns_max", costs.answer_ns_longest));
        if let Some(cpu_ns) = costs.cpu_ns {
            context.measured(exactly("python_cpu_ns", "ns", cpu_ns));
        }
    }
}

/// Formats a fault and its location, for the record.
fn told(fault: &ScriptFault) -> String {
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

fn log_fault(fault: &ScriptFault, context: &mut ModuleContext) {
    let details = fault.details().to_string();
    context
        .log("python_fault", &[("what", fault.to_string().into()), ("traceback", details.into())]);
}
