//! iperf3 between two hosts: the load that studies used, sent for a bounded time and never left behind.
//!
//! As a load its client sends datagrams from a set port to a set port, so that a rule can name them; beside them it has
//! a connection by TCP to its server, and the server returns one datagram at the beginning, so that both ways have to be
//! open for it. What it sent is what it says itself, as JSON.
//!
//! Source: `iperf3(1)`. Invariants: it ends by itself when its time is over; dropped, both programs are dead and waited for.

/// A connection by TCP.
pub mod transfer;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Host;
use crate::process::{Launch, Process};
use crate::{LabError, RunFolder, need};

/// How long its server may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to end and say what it did.
const PATIENCE_END: Duration = Duration::from_secs(5);

/// Frames after which it counts as sending: its connection and the first datagrams are not it.
const FRAMES_BEGUN: u64 = 30;

/// The file of what it says.
const SAID: &str = "iperf3-client.json";

/// Characters that are shown of what is no JSON.
const SHOWN_CHARS: usize = 200;

/// Bytes of what it says that are read at most.
const OUTPUT_BYTES: u64 = 4 << 20;

/// What is to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Bytes of a datagram.
    pub payload_bytes: usize,
    /// Bytes of payload a second; none for as many as it can.
    pub bytes_per_s: Option<f64>,
    /// The longest that it sends.
    pub limit: Duration,
}

/// Where its files are, who is told of its processes, and the cores that they may use.
#[derive(Debug, Clone)]
pub struct Place {
    /// A folder.
    pub path: PathBuf,
    /// The run's folder.
    pub folder: RunFolder,
    /// The cores.
    pub cores: Vec<usize>,
}

/// What it says that it did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Itself and its version.
    pub program: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of payload sent.
    pub sent_bytes: u64,
    /// How long it sent, in seconds.
    pub seconds: f64,
    /// Datagrams that its server missed, where it says.
    pub lost: Option<u64>,
}

/// A load that is being sent.
#[derive(Debug)]
pub struct Iperf<'a> {
    client: Process,
    _server: Process,
    from: &'a Host,
    frames_before: u64,
    said: PathBuf,
}

impl<'a> Iperf<'a> {
    /// Starts a server on one host and a client on the other.
    pub fn start(
        from: &'a Host,
        to: &Host,
        terms: &Terms,
        place: &Place,
    ) -> Result<Iperf<'a>, LabError> {
        let bits = terms.bytes_per_s.map_or(0, |bytes| (bytes * 8.0).max(1.0) as u64);
        let words = format!(
            "--cport {} --udp --length {} --bitrate {bits} --time {}",
            from.socket_address().port(),
            terms.payload_bytes,
            whole_seconds(terms.limit),
        );
        Iperf::launch(from, to, &words, place)
    }

    /// The same with these words for the client, beside those that say where its server is.
    fn launch(from: &'a Host, to: &Host, more: &str, place: &Place) -> Result<Iperf<'a>, LabError> {
        let program = need::tool("iperf3", "iperf3")?;
        let said = place.path.join(SAID);
        // What an earlier one said would stand before.
        match fs::remove_file(&said) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(LabError::system("remove", said.display().to_string(), error));
            }
            _ => {}
        }
        let launch = |host: &Host, words: &str, log: &str| {
            let launch = Launch {
                program: program.clone(),
                arguments: words.split(' ').map(OsString::from).collect(),
                environment: Vec::new(),
                log: place.path.join(log),
                namespace: Some(host.namespace().clone()),
                cores: place.cores.clone(),
            };
            Process::start(launch, &place.folder)
        };
        let (near, far) = (from.socket_address(), to.socket_address());
        let serve = format!("--server --one-off --bind {} --port {}", far.ip(), far.port());
        let mut server = launch(to, &serve, "iperf3-server.log")?;
        server.wait_ready(PATIENCE, || listens(to))?;
        let frames_before = frames_sent(from)?;
        let send = format!(
            "--client {} --port {} --bind {} {more} --connect-timeout 5000 --json",
            far.ip(),
            far.port(),
            near.ip(),
        );
        let client = launch(from, &send, SAID)?;
        Ok(Iperf { client, _server: server, from, frames_before, said })
    }

    /// Whether its datagrams are on their way.
    pub fn is_sending(&self) -> Result<bool, LabError> {
        Ok(frames_sent(self.from)?.saturating_sub(self.frames_before) >= FRAMES_BEGUN)
    }

    /// What it did, once it has ended by itself; an error where it failed.
    pub fn ended(&mut self) -> Result<Option<Report>, LabError> {
        self.is_over(parse)?.then(|| self.report(parse)).transpose()
    }

    /// Ends it; what it did until then.
    pub fn stop(&mut self) -> Result<Report, LabError> {
        self.client.stop(PATIENCE_END)?;
        self.report(parse)
    }

    /// Whether it has ended by itself; an error, read so, where it failed.
    fn is_over<T>(&mut self, parse: Parse<T>) -> Result<bool, LabError> {
        match self.client.check() {
            Ok(()) => Ok(false),
            Err(LabError::Exited { status, .. }) if status.success() => Ok(true),
            // What it says of a failure, rather than its exit status.
            Err(error) => {
                let why = said(&self.said).ok().and_then(|bytes| parse(&bytes).err());
                Err(why.map_or(error, |why| self.answered(why)))
            }
        }
    }

    fn report<T>(&self, parse: Parse<T>) -> Result<T, LabError> {
        parse(&said(&self.said)?).map_err(|answer| self.answered(answer))
    }

    fn answered(&self, answer: String) -> LabError {
        let request = format!("a load to {}", self.from.socket_address());
        LabError::Answer { from: "iperf3".into(), request, answer }
    }
}

/// Reads what it says.
type Parse<T> = fn(&[u8]) -> Result<T, String>;

/// Whole seconds, and no fewer than were asked for; 0 would be for ever.
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs_f64().ceil().max(1.0) as u64
}

fn said(path: &Path) -> Result<Vec<u8>, LabError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(OUTPUT_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| LabError::system("read", path.display().to_string(), error))?;
    Ok(bytes)
}

/// Frames that have left a host.
fn frames_sent(host: &Host) -> Result<u64, LabError> {
    let link = host.namespace().netlink()?.link(&host.interface.name)?;
    Ok(link.counters.transmitted)
}

/// Whether a program listens by TCP at a host's port.
fn listens(host: &Host) -> bool {
    let address = host.socket_address();
    // As the kernel lists it: the address in the machine's order of bytes, and the state of one that listens.
    let number = u32::from_ne_bytes(address.ip().octets());
    let wanted = format!("{number:08X}:{:04X} 00000000:0000 0A", address.port());
    let read = || fs::read_to_string("/proc/thread-self/net/tcp");
    let read = host.namespace().run(read);
    read.is_ok_and(|read| read.is_ok_and(|text| text.lines().any(|line| line.contains(&wanted))))
}

/// What the program says, as a value.
fn told(said: &[u8]) -> Result<Value, String> {
    // A warning may stand before: that datagrams are larger than TCP's segments.
    let begins = said.iter().position(|byte| *byte == b'{').unwrap_or(0);
    serde_json::from_slice(&said[begins..]).map_err(|error| {
        let begins: String = String::from_utf8_lossy(said).chars().take(SHOWN_CHARS).collect();
        format!("no JSON ({error}): {begins:?}")
    })
}

/// The program and its version.
fn program(told: &Value) -> String {
    told["start"]["version"].as_str().unwrap_or("iperf3").to_owned()
}

/// What the program says of itself. One that was ended early says so as an error, and what it sent all the same.
fn parse(said: &[u8]) -> Result<Report, String> {
    let told = told(said)?;
    let end = &told["end"];
    // Since 3.17 what was sent stands apart from what was received.
    let sum = if end["sum_sent"].is_object() { &end["sum_sent"] } else { &end["sum"] };
    let why = || told["error"].as_str().unwrap_or("it does not say what it sent").to_owned();
    let count = |name: &str| sum[name].as_u64();
    let (sent, sent_bytes) = count("packets").zip(count("bytes")).ok_or_else(why)?;
    let seconds = sum["seconds"].as_f64().filter(|it| *it > 0.0).ok_or_else(why)?;
    let received = &end["sum_received"]["lost_packets"];
    let lost = received.as_u64().or(end["sum"]["lost_packets"].as_u64());
    let is_whole = told["error"].is_null();
    let program = program(&told);
    Ok(Report { program, sent, sent_bytes, seconds, lost: lost.filter(|_| is_whole) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_is_read_in_both_shapes() {
        let old = r#"{"start":{"version":"iperf 3.12"},"end":{"sum":{"seconds":2.0,"bytes":2940,"packets":2,
            "lost_packets":1}}}"#;
        let new = r#"{"start":{"version":"iperf 3.18"},"end":{"sum":{"packets":9,"lost_packets":7},
            "sum_sent":{"seconds":2.0,"bytes":2940,"packets":2},"sum_received":{"lost_packets":1}}}"#;
        for (text, program) in [(old, "iperf 3.12"), (new, "iperf 3.18")] {
            let program = program.to_owned();
            let wanted = Report { program, sent: 2, sent_bytes: 2940, seconds: 2.0, lost: Some(1) };
            assert_eq!(parse(text.as_bytes()), Ok(wanted));
        }
        // Its server had no time to say what it missed.
        let ended = old.replace("\"start\"", "\"error\":\"interrupt\",\"start\"");
        let ended = format!("warning: UDP block size 1466 exceeds TCP MSS 1448\n{ended}");
        assert_eq!(parse(ended.as_bytes()).map(|it| (it.sent, it.lost)), Ok((2, None)));
    }

    #[test]
    fn what_it_does_not_say_is_an_error_with_its_words() {
        let refused = br#"{"start":{},"end":{},"error":"unable to connect to server"}"#;
        assert_eq!(parse(refused), Err("unable to connect to server".into()));
        for text in [&b"iperf3: interrupt"[..], b"{}", b"", br#"{"end":{"sum":{"packets":-1}}}"#] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
