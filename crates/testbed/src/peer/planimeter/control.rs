//! The control socket of planimeter processes: requests and replies are lines of JSON.
//!
//! The reply to `{"get": "counters"}` is `{"ok": ...}` or `{"error": "why"}`.
//!
//! Invariant: a reply is read up to a size limit and a timeout, for any behavior of the process.

use crate::LabError;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const ANSWER_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to a planimeter process.
#[derive(Debug)]
pub struct Control {
    stream: BufReader<UnixStream>,
    name: String,
}

impl Control {
    /// Connects to a control socket.
    pub fn connect(socket: &Path) -> Result<Control, LabError> {
        let name = socket.display().to_string();
        let connect = || {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        match connect() {
            Ok(stream) => Ok(Control { stream: BufReader::new(stream), name }),
            Err(error) => Err(LabError::system("connect to", name, error)),
        }
    }

    /// Sends one request and returns its reply.
    pub fn ask(&mut self, request: &Value) -> Result<Value, LabError> {
        let exchanged = self.exchange(request);
        let mut answer =
            exchanged.map_err(|error| LabError::system("ask", self.name.clone(), error))?;
        match answer.get_mut("ok") {
            Some(value) => Ok(value.take()),
            None => Err(LabError::Answer {
                from: self.name.clone(),
                request: request.to_string().chars().take(80).collect(),
                answer: answer.to_string().chars().take(300).collect(),
            }),
        }
    }

    /// Sends requests of one kind for many entries, at most `limit` per request.
    pub fn ask_all(
        &mut self,
        kind: &str,
        entries: impl Iterator<Item = Value>,
        limit: usize,
    ) -> Result<(), LabError> {
        let mut entries = entries.peekable();
        while entries.peek().is_some() {
            let part: Vec<Value> = entries.by_ref().take(limit).collect();
            let request = Map::from_iter([(kind.to_owned(), Value::Array(part))]);
            self.ask(&Value::Object(request))?;
        }
        Ok(())
    }

    fn exchange(&mut self, request: &Value) -> io::Result<Value> {
        let mut line = request.to_string();
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes())?;
        let mut answer = Vec::new();
        self.stream.by_ref().take(ANSWER_BYTES).read_until(b'\n', &mut answer)?;
        serde_json::from_slice(&answer).map_err(io::Error::from)
    }
}

/// Returns every number of a reply by its dotted name: `{"a": {"b": 1}}` is `a.b` = 1.
///
/// In lists, the name of an element is its "port", "name" or "reason" if it has one, else its
/// index.
pub fn flatten(value: &Value) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    flatten_into("", value, &mut found);
    found
}

fn flatten_into(name: &str, value: &Value, found: &mut BTreeMap<String, u64>) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| flatten_into(&below(key), value, found));
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                flatten_into(&below(&element_name(element, index)), element, found);
            }
        }
        other => found.extend(other.as_u64().map(|number| (name.to_owned(), number))),
    }
}

fn element_name(element: &Value, index: usize) -> String {
    let named = ["port", "name", "reason"].iter().find_map(|key| element.get(key));
    match named {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => index.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::net::UnixListener;

    #[test]
    fn counters_have_dotted_names() {
        let answer = json!({
            "ports": [{ "port": 3, "rx": { "frames": 5 } }, { "rx": 6 }],
            "drops": { "no_route": 7, "text": "x", "negative": -1, "none": null },
        });
        let expected = [("ports.3.port", 3), ("ports.3.rx.frames", 5), ("ports.1.rx", 6)];
        let expected = expected.into_iter().chain([("drops.no_route", 7)]);
        let expected: BTreeMap<String, u64> =
            expected.map(|(name, count)| (name.to_owned(), count)).collect();
        assert_eq!(flatten(&answer), expected);
    }

    #[test]
    fn long_requests_are_split_and_errors_are_returned() {
        let path = std::env::temp_dir().join(format!("planimeter-ask-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let stream = listener.accept().unwrap().0;
            let mut writer = stream.try_clone().unwrap();
            let mut lines = Vec::new();
            for line in BufReader::new(stream).lines() {
                let line = line.unwrap();
                let answer = if line.contains("bad") { r#"{"error":"no"}"# } else { r#"{"ok":1}"# };
                writeln!(writer, "{answer}").unwrap();
                lines.push(line);
            }
            lines
        });
        let mut control = Control::connect(&path).unwrap();
        control.ask_all("add", (0..5).map(Value::from), 2).unwrap();
        control.ask_all("add", std::iter::empty(), 2).unwrap();
        let refused = control.ask(&json!("bad")).unwrap_err();
        assert!(matches!(refused, LabError::Answer { answer, .. } if answer.contains("no")));
        drop(control);
        let lines = server.join().unwrap();
        let expected = [r#"{"add":[0,1]}"#, r#"{"add":[2,3]}"#, r#"{"add":[4]}"#, r#""bad""#];
        assert_eq!(lines, expected);
        std::fs::remove_file(&path).unwrap();
    }
}
