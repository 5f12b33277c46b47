//! Streams and replays from a TOML file, with the line number of every problem.
//!
//! ```
//! let text = r#"
//!     [[stream]]
//!     id = 1
//!     from = 1                      # the rig's ports, counted from 1
//!     to = 2
//!     frame_bytes = 64              # frame check sequence included
//!     rate_percent = 50.0           # or rate_pps = 1000.0
//!     link_bits_per_second = 1_000_000_000
//!     mac_source = "02:00:00:00:00:01"
//!     mac_destination = "02:00:00:00:00:02"
//!     ip_source = "10.0.0.1"
//!     ip_destination = "10.0.1.1"
//!
//!     [[stream.vary]]               # fields of one group vary together
//!     count = 1000
//!     order = "random"              # or "sequential", "zipf", "odometer", or weights = [...]
//!     seed = 1
//!     ip_destination = { first = "10.0.1.1", step = 1 }
//!     port_source = { scattered = 7 }
//! "#;
//! let streams = tester::stream::file::read(text, 2).unwrap();
//! assert_eq!(streams[0].flow_count(), 1000);
//! ```
//!
//! A file can also list capture files to replay in addition to the streams ([`read_all`]):
//!
//! ```
//! let text = r#"
//!     [[replay]]
//!     id = 2
//!     from = 1
//!     file = "office.pcapng"        # pcap or pcapng, Ethernet; relative to the working directory
//!     gap_factor = 0.5              # or gap_ns, rate_pps, link_bits_per_second, unpaced = true; or none
//!     passes = 10                   # default 1; 0 for until the trial ends
//!     short = "pad"                 # frames below 64 bytes: or "refuse" or "send"
//!     cut = "fill"                  # frames truncated in the capture: or "refuse" or "send"
//! "#;
//! let contents = tester::stream::file::read_all(text, 2).unwrap();
//! assert_eq!(contents.replays[0].passes, Some(10));
//! ```
//!
//! Defaults:
//!
//! - A replay's gaps are those of the file.
//! - A stream has `schedule` "constant", `transport` "udp", `ttl` 64, `tos` 0 and `arrival`
//!   "unchanged".
//! - Its `ip_protocol` is that of the transport, its `port_source` 49152, and its
//!   `port_destination` 9 (discard).
//!
//! An unknown key is an error, because a misspelled key would change the measurement. The user
//! guide lists all keys.

use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use crate::stream::replay::Replay;
use crate::stream::{Problem, Stream, validate};

mod entry;
mod headers;
mod pace;
mod vary;
mod literal;
mod replay;

use entry::Entry;
use replay::ReplayEntry;

/// Maximum size of a stream file in bytes.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// Error in a stream file.
#[derive(Debug, Clone, PartialEq)]
pub enum FileError {
    /// Invalid TOML or an unknown key.
    Text {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Error message.
        message: String,
    },
    /// Invalid streams, with all problems.
    Streams(Vec<StreamFault>),
    /// The file exceeds [`FILE_BYTES_MAX`] bytes. Holds its size.
    TooLong(usize),
}

/// A problem of one stream in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamFault {
    /// Line where the stream starts, from 1.
    pub line: usize,
    /// Stream id.
    pub stream: u16,
    /// The problem.
    pub problem: Problem,
}

/// Contents of a stream file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamFile {
    /// Streams.
    pub streams: Vec<Stream>,
    /// Replays.
    pub replays: Vec<Replay>,
}

/// Reads the streams of a file without replays, for a rig of `ports` ports.
pub fn read(text: &str, ports: usize) -> Result<Vec<Stream>, FileError> {
    let (contents, lines) = read_with_lines(text, ports)?;
    let of_replay = lines.iter().skip(contents.streams.len());
    let faults: Vec<StreamFault> = of_replay
        .map(|&(stream, line)| StreamFault { line, stream, problem: Problem::UnsignedReplay })
        .collect();
    if faults.is_empty() { Ok(contents.streams) } else { Err(FileError::Streams(faults)) }
}

/// Reads the streams and replays of a file, for a rig of `ports` ports.
pub fn read_all(text: &str, ports: usize) -> Result<StreamFile, FileError> {
    read_with_lines(text, ports).map(|(contents, _)| contents)
}

/// Reads a file, with the id and line of each stream and then of each replay.
fn read_with_lines(text: &str, ports: usize) -> Result<(StreamFile, Vec<(u16, usize)>), FileError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(FileError::TooLong(text.len()));
    }
    let file: File = toml::from_str(text).map_err(|error| {
        let (line, column) = place(text, error.span().map_or(0, |span| span.start));
        FileError::Text { line, column, message: error.message().replace('\n', "; ") }
    })?;
    let mut faults = Vec::new();
    let mut streams = Vec::new();
    let mut lines = Vec::new();
    for entry in file.stream {
        let (line, _) = place(text, entry.span().start);
        let entry = entry.into_inner();
        let id = entry.id;
        lines.push((id, line));
        let mut problems = Vec::new();
        streams.push(entry.stream(&mut problems));
        faults.extend(problems.into_iter().map(|problem| StreamFault {
            line,
            stream: id,
            problem,
        }));
    }
    let mut replays = Vec::new();
    for entry in file.replay {
        let (line, _) = place(text, entry.span().start);
        let entry = entry.into_inner();
        let id = entry.id;
        let mut problems = Vec::new();
        let replay = entry.replay(&mut problems);
        problems.extend(replay.validate(ports));
        if lines.iter().any(|(other, _)| *other == id) {
            problems.push(Problem::DuplicateId(id));
        }
        lines.push((id, line));
        replays.push(replay);
        faults.extend(problems.into_iter().map(|problem| StreamFault {
            line,
            stream: id,
            problem,
        }));
    }
    for (id, problem) in validate(&streams, ports) {
        let is_duplicate = matches!(problem, Problem::DuplicateId(_));
        let of_id = |&&(other, _): &&(u16, usize)| other == id;
        let named =
            if is_duplicate { lines.iter().rev().find(of_id) } else { lines.iter().find(of_id) };
        let line = named.map_or(1, |&(_, line)| line);
        let fault = StreamFault { line, stream: id, problem };
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let contents = StreamFile { streams, replays };
    if faults.is_empty() { Ok((contents, lines)) } else { Err(FileError::Streams(faults)) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    stream: Vec<Spanned<Entry>>,
    #[serde(default)]
    replay: Vec<Spanned<ReplayEntry>>,
}

/// Returns line and column, from 1, of a byte offset.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    (line, column)
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Text { line, column, message } => {
                write!(f, "line {line}, column {column}: {message}")
            }
            FileError::Streams(faults) => {
                let lines = faults.iter().map(|fault| {
                    format!("line {}, stream {}: {}", fault.line, fault.stream, fault.problem)
                });
                f.write_str(&lines.collect::<Vec<_>>().join("; "))
            }
            FileError::TooLong(bytes) => {
                write!(f, "the file has {bytes} bytes, at most {FILE_BYTES_MAX} are allowed")
            }
        }
    }
}

impl std::error::Error for FileError {}

#[cfg(test)]
mod tests;
