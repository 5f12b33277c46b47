//! Sends commands to a running Open vSwitch daemon, like `ovs-appctl`, without starting a program.
//!
//! Source: `ovs-appctl(8)`; the socket uses JSON-RPC 1.0 (one object per direction).
//!
//! Invariant: a reply is read up to a size limit and a timeout, for any behavior of the daemon.

use crate::LabError;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const ANSWER_BYTES: u64 = 1 << 22;
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends one command and returns the text of its reply.
pub(super) fn ask(socket: &Path, command: &str, arguments: &[&str]) -> Result<String, LabError> {
    let request = json!({ "id": 0, "method": command, "params": arguments });
    let answer = exchange(socket, &request).map_err(|error| {
        LabError::system("query Open vSwitch", format!("{command} at {}", socket.display()), error)
    })?;
    match (answer.get("result"), answer.get("error")) {
        (Some(Value::String(text)), None | Some(Value::Null)) => Ok(text.clone()),
        _ => Err(LabError::Answer {
            from: "Open vSwitch".to_owned(),
            request: command.to_owned(),
            answer: answer.to_string().chars().take(300).collect(),
        }),
    }
}

fn exchange(socket: &Path, request: &Value) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(request.to_string().as_bytes())?;
    let mut answers = serde_json::Deserializer::from_reader(stream.take(ANSWER_BYTES)).into_iter();
    match answers.next() {
        Some(answer) => answer.map_err(io::Error::from),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
