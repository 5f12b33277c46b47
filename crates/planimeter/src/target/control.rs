//! The control socket of our own bridge, router and switch: lines of JSON, asked and answered.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use lab::peer::Plan;
use serde_json::{Value, json};

use super::{LossPlace, Snapshot, TargetError};

/// How long an answer may take: a table of 131,072 routes is filled in far less.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

/// A connection to a control socket.
pub struct ControlClient {
    stream: BufReader<UnixStream>,
}

impl ControlClient {
    /// Connects to the socket `file`.
    pub fn connect(file: &Path) -> Result<Self, TargetError> {
        let failed = |error| TargetError::failed(format!("connecting to {}", file.display()), error);
        let stream = UnixStream::connect(file).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER_WAIT)).map_err(failed)?;
        stream.set_write_timeout(Some(ANSWER_WAIT)).map_err(failed)?;
        Ok(ControlClient { stream: BufReader::new(stream) })
    }

    /// Asks, and returns what stands under `ok`.
    pub fn ask(&mut self, request: &Value) -> Result<Value, TargetError> {
        let failed = |error| TargetError::failed("asking a control socket", error);
        let mut line = request.to_string();
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes()).map_err(failed)?;
        line.clear();
        self.stream.read_line(&mut line).map_err(failed)?;
        let mut answer: Value = serde_json::from_str(&line)
            .map_err(|error| TargetError::failed("reading a control socket's answer", error))?;
        match answer.get_mut("ok") {
            Some(ok) => Ok(ok.take()),
            None => {
                let said = answer["error"].as_str().unwrap_or("no answer").to_string();
                Err(TargetError::failed("asking a control socket", said))
            }
        }
    }

    /// Adds what a plan holds. Addresses of a router's interfaces come from its file.
    pub fn install(&mut self, plan: &Plan) -> Result<(), TargetError> {
        for request in requests(plan) {
            self.ask(&request)?;
        }
        Ok(())
    }

    /// Adds the counters to a snapshot: every number by its dotted name, and drops by reason.
    pub fn counters(&mut self, snapshot: &mut Snapshot) -> Result<(), TargetError> {
        let answer = self.ask(&json!({ "get": "counters" }))?;
        add_counters(&answer, snapshot);
        Ok(())
    }
}

/// The requests that a plan makes.
pub fn requests(plan: &Plan) -> Vec<Value> {
    let mac = |mac: &[u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    let mut requests = Vec::new();
    if !plan.stations.is_empty() {
        let macs = plan.stations.iter();
        let macs = macs.map(|it| json!({ "mac": mac(&it.mac), "port": it.port }));
        requests.push(json!({ "add_macs": macs.collect::<Vec<_>>() }));
    }
    if !plan.neighbors.is_empty() {
        let all = plan.neighbors.iter().map(
            |it| json!({ "port": it.port, "address": it.address.to_string(), "mac": mac(&it.mac) }),
        );
        requests.push(json!({ "add_neighbours": all.collect::<Vec<_>>() }));
    }
    if !plan.routes.is_empty() {
        let all = plan.routes.iter().map(|it| {
            let to = format!("{}/{}", it.prefix, it.length);
            json!({ "to": to, "via": it.via.to_string(), "port": it.port })
        });
        requests.push(json!({ "add_routes": all.collect::<Vec<_>>() }));
    }
    requests
}

/// Flattens a counters answer: numbers under `drops` objects are losses, all others counters.
pub fn add_counters(answer: &Value, snapshot: &mut Snapshot) {
    flatten("", answer, snapshot);
}

fn flatten(path: &str, value: &Value, snapshot: &mut Snapshot) {
    let join = |name: &str| if path.is_empty() { name.into() } else { format!("{path}.{name}") };
    match value {
        Value::Number(number) => {
            let number = number.as_u64().unwrap_or(0);
            let parts: Vec<&str> = path.rsplitn(3, '.').collect();
            if let [reason, "drops", rest @ ..] = parts.as_slice() {
                let at = rest.first().copied().unwrap_or("forwarder").to_string();
                let key = (LossPlace::Target, at, reason.to_string());
                snapshot.drops.insert(key, number);
            } else {
                snapshot.counters.insert(path.into(), number);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&join(name), value, snapshot);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let number = item.get("number").and_then(Value::as_u64);
                flatten(&join(&number.unwrap_or(index as u64).to_string()), item, snapshot);
            }
        }
        _ => {}
    }
}
