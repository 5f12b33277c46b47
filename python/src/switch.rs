//! The project's OpenFlow switch in memory and in virtual time. Messages and frames go in and come
//! out.
//!
//! Invariants: time and state change only through calls, and the same calls give the same results;
//! controller messages are JSON in the format of Python measurement modules.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ::elements::config::{Config, Kind, OpenFlowConfig, PortConfig};
use ::elements::node::Node;
use channel::{Channel, memory};
use netio::memory::{MemoryPort, pair_stamped};
use netio::port::Port;
use openflow::model::Message;
use openflow::session::{Event, Session, Settings};
use openflow::version::{End, Version};
use packet::frame::Batch;
use packet::time::{Clock, Nanos};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

use crate::failure::usage;

/// Maximum number of ports.
const PORTS_MAX: u32 = 64;

/// Queue limit of a port in frames. Further frames are dropped, as by a full receiver.
const FRAMES_MAX: usize = 1024;

/// Buffer size between controller and switch in bytes.
const CHANNEL_BYTES: usize = 1 << 20;

/// Number of turns after which all pending messages have arrived.
const TURNS: usize = 50;

/// Time advances in steps that are short enough for every timeout.
const STEP: Nanos = Nanos::from_millis(100);

/// The largest Ethernet frame without its frame check sequence.
const FRAME_BYTES_MAX: usize = 9216;

/// The longest time that one call may advance: a day.
const PASS_MAX: Nanos = Nanos::from_secs(86_400);

/// Hash seed, equal for all switches so that they behave identically.
const SEED: u64 = 1;

/// A switch and its controller. The lock allows one Python thread at a time.
#[pyclass(frozen, module = "planimeter._native")]
pub struct Switch(Mutex<Bench>);

/// State of the switch.
struct Bench {
    node: Node,
    wires: Vec<MemoryPort>,
    session: Session,
    channel: memory::MemoryChannel,
    /// Messages from the switch that have not been read.
    said: Vec<Value>,
    now: Nanos,
}

#[pymethods]
impl Switch {
    /// Creates a switch with ports 1 to `ports`. Its controller uses this version.
    #[new]
    fn new(ports: u32, version: &str) -> PyResult<Switch> {
        if !(1..=PORTS_MAX).contains(&ports) {
            return Err(usage(format!(
                "a switch in memory has 1 to {PORTS_MAX} ports, not {ports}"
            )));
        }
        let version = ::elements::config::versions_from_text(version).map_err(usage)?;
        let mut config = Config::new(Kind::OpenFlow(OpenFlowConfig::default()));
        let (mut near, mut wires) = (Vec::new(), Vec::new());
        for number in 1..=ports {
            config.ports.push(PortConfig { number, spec: format!("memory:{number}") });
            let (ours, theirs) = pair_stamped(FRAMES_MAX, &format!("p{number}"), Clock::Virtual);
            near.push((number, Box::new(ours) as Box<dyn Port>));
            wires.push(theirs);
        }
        let now = Nanos::from_secs(1);
        let mut node = Node::open(&config, near, SEED, now)
            .map_err(|error| usage(format!("the switch cannot be set up: {error:?}")))?;
        let (ours, theirs) = memory::pair(CHANNEL_BYTES, "controller");
        node.adopt(Box::new(ours), now);
        let settings = settings(version);
        let session = Session::new(settings, now);
        let mut bench = Bench { node, wires, session, channel: theirs, said: Vec::new(), now };
        bench.settle()?;
        Ok(Switch(Mutex::new(bench)))
    }

    /// The negotiated version.
    #[getter]
    fn version(&self) -> Option<String> {
        self.bench().session.version().map(|it| it.to_string())
    }

    /// Its virtual time in nanoseconds.
    #[getter]
    fn now(&self) -> u64 {
        self.bench().now.0
    }

    /// Sends a message (JSON) and delivers it. Returns the xid of the replies.
    fn send(&self, message: &str) -> PyResult<u32> {
        let value: Value =
            serde_json::from_str(message).map_err(|error| usage(error.to_string()))?;
        let message = runner::python::message(&value).map_err(usage)?;
        let mut bench = self.bench();
        let now = bench.now;
        let xid = bench.session.send(&message, now).map_err(|error| usage(error.to_string()))?;
        bench.settle()?;
        Ok(xid)
    }

    /// Messages from the switch since the last call (JSON).
    fn said(&self) -> String {
        Value::Array(std::mem::take(&mut self.bench().said)).to_string()
    }

    /// Sends a frame without frame check sequence to a port and delivers it.
    fn put(&self, port: u32, frame: &[u8]) -> PyResult<()> {
        if frame.len() > FRAME_BYTES_MAX {
            return Err(usage(format!(
                "a frame has at most {FRAME_BYTES_MAX} bytes, not {}",
                frame.len()
            )));
        }
        let mut bench = self.bench();
        let now = bench.now;
        let mut batch = Batch::new(1);
        batch.push_bytes(frame);
        let sent = bench.wire(port)?.transmit(&mut batch, now);
        sent.map_err(|error| usage(format!("port {port}: {error}")))?;
        bench.settle()
    }

    /// Frames that a port sent since the last call.
    fn take<'py>(&self, py: Python<'py>, port: u32) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut bench = self.bench();
        let now = bench.now;
        let mut batch = Batch::new(FRAMES_MAX);
        let received = bench.wire(port)?.receive(&mut batch, now);
        received.map_err(|error| usage(format!("port {port}: {error}")))?;
        Ok(batch.frames().iter().map(|frame| PyBytes::new(py, frame.bytes())).collect())
    }

    /// Advances the time.
    fn pass_ns(&self, span: u64) -> PyResult<()> {
        if span > PASS_MAX.0 {
            return Err(usage("cannot advance by more than a day in one call"));
        }
        let mut bench = self.bench();
        let until = bench.now + Nanos(span);
        while bench.now < until {
            bench.now = until.min(bench.now + STEP);
            for _ in 0..3 {
                bench.turn()?;
            }
        }
        bench.settle()
    }
}

/// Settings of the controller.
fn settings(versions: Vec<Version>) -> Settings {
    Settings { echo_idle: None, versions, ..Settings::new(End::Controller) }
}

impl Switch {
    fn bench(&self) -> MutexGuard<'_, Bench> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bench {
    fn wire(&mut self, port: u32) -> PyResult<&mut MemoryPort> {
        let ports = self.wires.len();
        let place = (port as usize).checked_sub(1);
        let wire = place.and_then(|place| self.wires.get_mut(place));
        wire.ok_or_else(|| usage(format!("there is no port {port} (hint: use 1 to {ports})")))
    }

    fn settle(&mut self) -> PyResult<()> {
        (0..TURNS).try_for_each(|_| self.turn())
    }

    /// Processes everything that has arrived.
    fn turn(&mut self) -> PyResult<()> {
        self.node.turn(self.now);
        self.node.serve(self.now);
        self.node.events.clear();
        let lost = |why: String| usage(format!("controller connection lost: {why}"));
        let mut buffer = [0; 60_000];
        let count = self.channel.receive(&mut buffer).map_err(|error| lost(error.to_string()))?;
        if self.session.receive(&buffer[..count], self.now) < count {
            return Err(lost("the switch sent more than the receive buffer holds".into()));
        }
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Message { xid, message, .. } => self.said.push(told(xid, &message)),
                Event::Refused(error) => return Err(lost(error.to_string())),
                Event::Down { .. } => return Err(lost("the session ended".into())),
                Event::Up { .. } => {}
            }
        }
        let count = self.channel.transmit(self.session.transmit()).unwrap_or(0);
        self.session.transmitted(count);
        Ok(())
    }
}

/// A message in the format of measurement modules.
fn told(xid: u32, message: &Message) -> Value {
    let mut value = json!({ "type": message.kind().to_string(), "xid": xid });
    if let (Value::Object(all), Value::Object(body)) = (&mut value, runner::python::told(message)) {
        all.extend(body);
    }
    value
}
