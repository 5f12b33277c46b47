//! Asking a running daemon of Open vSwitch what `ovs-appctl` would, without starting a program.
//!
//! Source: `ovs-appctl(8)`; the socket speaks JSON-RPC 1.0 (one object each way).
//! Invariant: an answer is read up to a limit and a time, whatever the daemon does.

use crate::LabError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const ANSWER_BYTES: u64 = 1 << 22;
const PATIENCE: Duration = Duration::from_secs(5);

/// One command, answered by text.
pub(super) fn ask(socket: &Path, command: &str, arguments: &[&str]) -> Result<String, LabError> {
    let request = json!({ "id": 0, "method": command, "params": arguments });
    let answer = exchange(socket, &request).map_err(|error| {
        LabError::system("ask Open vSwitch", format!("{command} at {}", socket.display()), error)
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

/// The totals of `coverage/show`, as `coverage.NAME`: lines like
/// "netdev_sent  0.0/sec 1.2/sec 0.3/sec  total: 1234". Open vSwitch gathers them from its threads
/// now and then, so they may lag.
pub(super) fn parse_coverage(text: &str) -> BTreeMap<String, u64> {
    let parse = |line: &str| {
        let (head, total) = line.split_once("total:")?;
        let name = head.split_ascii_whitespace().next()?;
        Some((format!("coverage.{name}"), total.trim().parse().ok()?))
    };
    text.lines().filter_map(parse).collect()
}

/// The counts of `dpif-netdev/pmd-stats-show`, added over the threads, as `datapath.NAME`: lines
/// like "  miss with failed upcall: 5". Averages are left out.
pub(super) fn parse_datapath(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for line in text.lines() {
        let Some((name, Ok(count))) =
            line.split_once(':').map(|(name, value)| (name.trim(), value.trim().parse::<u64>()))
        else {
            continue;
        };
        let name = format!("datapath.{}", name.replace(' ', "_"));
        let total: &mut u64 = counters.entry(name).or_default();
        *total = total.saturating_add(count);
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_totals() {
        let text = "Event coverage, avg rate over last: 5 seconds, last minute, last hour, hash=1\n\
            netdev_sent                0.0/sec     1.500/sec        0.0250/sec   total: 1234\n\
            datapath_drop_upcall_error 0.0/sec     0.000/sec        0.0000/sec   total: 5\n\
            odd total: x\n total: 7\n97 events never hit\n";
        let expected = [("coverage.netdev_sent", 1234), ("coverage.datapath_drop_upcall_error", 5)];
        assert_eq!(parse_coverage(text), expected.map(|(name, n)| (name.to_owned(), n)).into());
    }

    #[test]
    fn datapath_counts_over_threads() {
        let text = "main thread:\n  packets received: 6\n  avg. packets per output batch: 0.50\n\
            pmd thread numa_id 0 core_id 1:\n  packets received: 4\n  emc hits: 3\nodd\nx: -1\n";
        let expected = [("datapath.packets_received", 10), ("datapath.emc_hits", 3)];
        assert_eq!(parse_datapath(text), expected.map(|(name, n)| (name.to_owned(), n)).into());
    }
}
