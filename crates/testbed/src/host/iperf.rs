//! iperf3 between two hosts: a load used by published studies, sent for a bounded time.
//!
//! As a load, the client sends UDP datagrams from a fixed port to a fixed port, so that a rule can
//! match them. It also has a TCP connection to its server, and the server returns one datagram at
//! the start. Therefore both directions must be open. iperf3 itself reports what it sent, as JSON.
//!
//! Source: `iperf3(1)`.
//!
//! Invariants:
//! - The client ends by itself after its duration.
//! - Dropping this kills both programs and waits for them.

pub mod transfer;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Host;
use crate::process::{Process, ProcessSpec};
use crate::{LabError, RunFolder, requirement};

/// Timeout for the server to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Timeout for the client to end and print its report.
const PATIENCE_END: Duration = Duration::from_secs(5);

/// Number of sent frames from which the client counts as sending; its connection setup and first
/// datagrams are fewer.
const FRAMES_BEGUN: u64 = 30;

/// File name of the client's output.
const SAID: &str = "iperf3-client.json";

/// Characters of invalid output in an error.
const SHOWN_CHARS: usize = 200;

/// Maximum number of bytes of output that are read.
const OUTPUT_BYTES: u64 = 4 << 20;

/// Parameters of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadSettings {
    /// Bytes of a datagram's payload.
    pub payload_bytes: usize,
    /// Payload bytes per second; `None` for the maximum.
    pub bytes_per_s: Option<f64>,
    /// Maximum duration.
    pub limit: Duration,
}

/// Resources of the programs: files, process records and cores.
#[derive(Debug, Clone)]
pub struct IperfResources {
    /// Directory of the files.
    pub path: PathBuf,
    /// The run's folder, which records the processes.
    pub folder: RunFolder,
    /// Cores of the programs.
    pub cores: Vec<usize>,
}

/// The client's report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Program and version.
    pub program: String,
    /// Sent datagrams.
    pub sent: u64,
    /// Sent payload bytes.
    pub sent_bytes: u64,
    /// Duration of sending in seconds.
    pub seconds: f64,
    /// Datagrams lost according to the server, if reported.
    pub lost: Option<u64>,
}

/// A load in progress.
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
        terms: &LoadSettings,
        place: &IperfResources,
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

    /// Like [`Iperf::start`], with these arguments for the client in addition to the server's
    /// address.
    fn launch(
        from: &'a Host,
        to: &Host,
        more: &str,
        place: &IperfResources,
    ) -> Result<Iperf<'a>, LabError> {
        let program = requirement::tool("iperf3", "iperf3")?;
        let said = place.path.join(SAID);
        // Remove the output of an earlier client, which would precede the new one.
        match fs::remove_file(&said) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(LabError::system("remove", said.display().to_string(), error));
            }
            _ => {}
        }
        let launch = |host: &Host, words: &str, log: &str| {
            let launch = ProcessSpec {
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

    /// Returns whether datagrams are being sent.
    pub fn is_sending(&self) -> Result<bool, LabError> {
        Ok(frames_sent(self.from)?.saturating_sub(self.frames_before) >= FRAMES_BEGUN)
    }

    /// Returns the report once the client has ended by itself, or an error if it failed.
    pub fn ended(&mut self) -> Result<Option<Report>, LabError> {
        self.is_over(parse)?.then(|| self.report(parse)).transpose()
    }

    /// Ends the client and returns its report up to then.
    pub fn stop(&mut self) -> Result<Report, LabError> {
        self.client.stop(PATIENCE_END)?;
        self.report(parse)
    }

    /// Returns whether the client has ended by itself; its output gives the error if it failed.
    fn is_over<T>(&mut self, parse: Parse<T>) -> Result<bool, LabError> {
        match self.client.check() {
            Ok(()) => Ok(false),
            Err(LabError::Exited { status, .. }) if status.success() => Ok(true),
            // The output describes a failure better than the exit status.
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
        let request = format!("a load for {}", self.from.socket_address());
        LabError::Answer { from: "iperf3".into(), request, answer }
    }
}

/// Parses the client's output.
type Parse<T> = fn(&[u8]) -> Result<T, String>;

/// Rounds up to whole seconds; 0 would mean no limit.
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs_f64().ceil().max(1.0) as u64
}

fn said(path: &Path) -> Result<Vec<u8>, LabError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(OUTPUT_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| LabError::system("read", path.display().to_string(), error))?;
    Ok(bytes)
}

/// Returns the number of frames sent by a host.
fn frames_sent(host: &Host) -> Result<u64, LabError> {
    let link = host.namespace().netlink()?.link(&host.interface.name)?;
    Ok(link.counters.transmitted)
}

/// Returns whether a program listens on the host's TCP port.
fn listens(host: &Host) -> bool {
    let address = host.socket_address();
    // The kernel's format: the address in the machine's byte order, and the state LISTEN.
    let number = u32::from_ne_bytes(address.ip().octets());
    let wanted = format!("{number:08X}:{:04X} 00000000:0000 0A", address.port());
    let read = || fs::read_to_string("/proc/thread-self/net/tcp");
    let read = host.namespace().run(read);
    read.is_ok_and(|read| read.is_ok_and(|text| text.lines().any(|line| line.contains(&wanted))))
}

/// Parses the program's output as JSON.
fn told(said: &[u8]) -> Result<Value, String> {
    // A warning may precede it, when datagrams are larger than the TCP MSS.
    let begins = said.iter().position(|byte| *byte == b'{').unwrap_or(0);
    serde_json::from_slice(&said[begins..]).map_err(|error| {
        let begins: String = String::from_utf8_lossy(said).chars().take(SHOWN_CHARS).collect();
        format!("invalid JSON ({error}): {begins:?}")
    })
}

/// Returns the program and its version.
fn program(told: &Value) -> String {
    told["start"]["version"].as_str().unwrap_or("iperf3").to_owned()
}

/// Parses the client's report. A client that was stopped reports an error along with what it sent.
fn parse(said: &[u8]) -> Result<Report, String> {
    let told = told(said)?;
    let end = &told["end"];
    // Since 3.17, sent and received sums are separate.
    let sum = if end["sum_sent"].is_object() { &end["sum_sent"] } else { &end["sum"] };
    let why = || told["error"].as_str().unwrap_or("no sent packets in the report").to_owned();
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
    fn both_formats_of_the_output_are_parsed() {
        let old = r#"{"start":{"version":"iperf 3.12"},"end":{"sum":{"seconds":2.0,"bytes":2940,"packets":2,
            "lost_packets":1}}}"#;
        let new = r#"{"start":{"version":"iperf 3.18"},"end":{"sum":{"packets":9,"lost_packets":7},
            "sum_sent":{"seconds":2.0,"bytes":2940,"packets":2},"sum_received":{"lost_packets":1}}}"#;
        for (text, program) in [(old, "iperf 3.12"), (new, "iperf 3.18")] {
            let program = program.to_owned();
            let wanted = Report { program, sent: 2, sent_bytes: 2940, seconds: 2.0, lost: Some(1) };
            assert_eq!(parse(text.as_bytes()), Ok(wanted));
        }
        // The server had no time to report losses.
        let ended = old.replace("\"start\"", "\"error\":\"interrupt\",\"start\"");
        let ended = format!("warning: UDP block size 1466 exceeds TCP MSS 1448\n{ended}");
        assert_eq!(parse(ended.as_bytes()).map(|it| (it.sent, it.lost)), Ok((2, None)));
    }

    #[test]
    fn missing_output_is_an_error_with_its_text() {
        let refused = br#"{"start":{},"end":{},"error":"unable to connect to server"}"#;
        assert_eq!(parse(refused), Err("unable to connect to server".into()));
        for text in [&b"iperf3: interrupt"[..], b"{}", b"", br#"{"end":{"sum":{"packets":-1}}}"#] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
