//! `planimeter capture`: captures frames from ports, filters and counts them, and writes them to a
//! file.
//!
//! The summary goes to stdout, as text or as JSON; progress goes to stderr. The file is complete
//! however the capture ends: by time, by number, by size, by Ctrl-C, or because the last port
//! failed.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use netio::afpacket::Options;
use netio::capture::{CaptureError, Format};
use netio::port::Port;
use os::clock::{self, WaitSet};
use packet::capture::CAPTURED_BYTES_MAX;
use packet::filter::{Entry, Verdict, overlap, text};
use packet::time::Nanos;
use tester::capture::{Capture, CaptureSnapshot, Settings};

use super::element::{port_refused, read};
use super::failure::Failure;
use super::output::{remark, say, to_stderr, to_stdout};

mod account;

/// Longest wait for a frame, after which flag and time are checked again.
const WAIT_MAX: Nanos = Nanos::from_millis(100);

/// Interval between polls of ports that do not support waiting.
const POLL_PAUSE: Nanos = Nanos::from_micros(50);

/// At the end, ports are polled until they are silent for this time: the kernel delivers a block of
/// its ring one millisecond after the block's first frame.
const DRAIN_QUIET: Nanos = Nanos::from_millis(5);

/// Time limit of these polls.
const DRAIN_MAX: Nanos = Nanos::from_millis(100);

/// Number of rounds between checks of the time while frames keep arriving.
const ROUNDS: u32 = 16;

/// Arguments of `planimeter capture`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Port, such as afpacket:eth1, xdp:eth1,stamps=kernel or pcap:FILE
    #[arg(long = "port", value_name = "SPEC", required = true)]
    ports: Vec<String>,
    /// Filter entry such as src=10.0.0.0/8,proto=udp,dport=53; the first entry that matches decides
    #[arg(long = "filter", value_name = "ENTRY")]
    filters: Vec<String>,
    /// File with filter entries, one per line, that follow those of --filter
    #[arg(long, value_name = "FILE")]
    filter_file: Option<PathBuf>,
    /// Write frames to this file: nanosecond pcap if its name ends in .pcap, otherwise pcapng
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Stop after this time
    #[arg(long = "duration", value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Stop after this number of captured frames
    #[arg(long = "count", value_name = "N")]
    frames: Option<u64>,
    /// Stop when the file has this size
    #[arg(long, value_name = "BYTES", requires = "write")]
    file_bytes: Option<u64>,
    /// Store at most this many bytes of each frame; pcapng has a checksum of the rest
    #[arg(long = "snaplen", value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=CAPTURED_BYTES_MAX as i64))]
    snap: Option<u32>,
    /// Leave out the checksum of the bytes that --snaplen cuts off
    #[arg(long = "no-digest", requires = "snap")]
    no_sum: bool,
    /// Comment for the whole file (pcapng)
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Print rates on stderr at this interval
    #[arg(long = "interval", value_name = "SECONDS")]
    every: Option<f64>,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter capture --port afpacket:eth1 --write frames.pcapng --duration 10
  planimeter capture --port afpacket:eth1 --filter proto=udp,dport=53 --interval 1
  planimeter capture --port pcap:frames.pcapng --json";

/// Captures, and prints the summary.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let entries = entries(arguments)?;
    for overlap in overlap::find(&entries) {
        remark!("{}", overlap.describe(&entries));
    }
    if entries.iter().all(|entry| entry.verdict == Verdict::Drop) {
        remark!(
            "warning: no filter entry captures frames (hint: add --filter any as the last entry)"
        );
    }
    let stop = super::signals::flag()?;
    let ports = open_ports(arguments)?;
    let mut capture = open(arguments, ports)?;
    let loaded = capture.load(&entries);
    loaded.map_err(|error| Failure::usage(format!("cannot load the filter: {error}")))?;
    let begun = clock::now();
    remark!("capturing from {}; stop with Ctrl-C", arguments.ports.join(", "));
    let driven = drive(&mut capture, arguments, begun, &stop).and_then(|()| drain(&mut capture));
    let is_dead = capture.working().next().is_none();
    let (frozen, ended) = capture.finish(clock::now());
    if arguments.json {
        say!("{}", account::json(&frozen, begun, &entries));
    } else {
        to_stdout(format_args!("{}", account::words(&frozen, begun, &entries)));
    }
    driven.and(ended).map_err(|error| file_failure(arguments, &error))?;
    for (place, port) in frozen.ports.iter().enumerate() {
        if let Some(why) = &port.failure {
            remark!("port {} failed: {why}; earlier frames are kept", place + 1);
        }
    }
    let is_file = frozen.ports.iter().any(|port| port.failure.is_some() && port.kind == "pcap");
    match is_dead {
        false => Ok(ExitCode::SUCCESS),
        true if is_file => Err(Failure::usage("cannot read the rest of the capture file")),
        true => Err(Failure::need("all ports failed")),
    }
}

fn entries(arguments: &Arguments) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for (place, entry) in arguments.filters.iter().enumerate() {
        let wrong = |error| Failure::usage(format!("--filter {}: {error}", place + 1));
        entries.push(text::entry(entry).map_err(wrong)?);
    }
    if let Some(file) = &arguments.filter_file {
        let usage = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        entries.extend(text::file(&read(file)?).map_err(|error| usage(error.to_string()))?);
    } else if entries.is_empty() {
        entries.push(Entry::any(Verdict::Capture));
    }
    Ok(entries)
}

fn open_ports(arguments: &Arguments) -> Result<Vec<Box<dyn Port>>, Failure> {
    let open = |(place, spec): (usize, &String)| -> Result<Box<dyn Port>, Failure> {
        let opened = netio::open::open(spec, &Options::monitor());
        opened.map_err(|error| port_refused(place as u64 + 1, &error))
    };
    arguments.ports.iter().enumerate().map(open).collect()
}

fn open(arguments: &Arguments, ports: Vec<Box<dyn Port>>) -> Result<Capture<File>, Failure> {
    let settings = Settings {
        format: arguments.write.as_deref().map_or(Format::PcapNg, Format::of),
        snap_bytes: arguments.snap.map_or(CAPTURED_BYTES_MAX, |bytes| bytes as usize),
        sums: !arguments.no_sum,
        frames_max: arguments.frames.unwrap_or(u64::MAX),
        bytes_max: arguments.file_bytes.unwrap_or(u64::MAX),
        comment: arguments.comment.clone(),
    };
    let create = |path: &PathBuf| File::create(path).map_err(CaptureError::from);
    let output = arguments.write.as_ref().map(create).transpose();
    output
        .and_then(|output| Capture::new(ports, settings, output))
        .map_err(|error| file_failure(arguments, &error))
}

fn file_failure(arguments: &Arguments, error: &CaptureError) -> Failure {
    let path = arguments.write.clone().unwrap_or_default();
    Failure::usage(format!("{}: {error}", path.display()))
}

/// Captures frames until there is a reason to end.
fn drive(
    capture: &mut Capture<File>,
    arguments: &Arguments,
    begun: Nanos,
    stop: &AtomicBool,
) -> Result<(), CaptureError> {
    let after = |seconds: Option<f64>, from: Nanos| {
        seconds.map_or(Nanos::MAX, |seconds| from.saturating_add(Nanos::from_secs_f64(seconds)))
    };
    let ends_at = after(arguments.seconds, begun);
    let frames_max = arguments.frames.unwrap_or(u64::MAX);
    let mut told = capture.freeze(begun);
    let mut tell_at = after(arguments.every, begun);
    let mut wait = WaitSet::new();
    loop {
        let mut count = 0;
        for _ in 0..ROUNDS {
            count = capture.step(clock::now())?;
            let is_enough = capture.is_full() || capture.frames_captured() >= frames_max;
            if is_enough || count == 0 {
                break;
            }
        }
        let now = clock::now();
        let is_enough = capture.is_full() || capture.frames_captured() >= frames_max;
        let has_ended = count == 0 && capture.is_over();
        if now >= ends_at || is_enough || has_ended || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        if now >= tell_at {
            let frozen = capture.freeze(now);
            to_stderr(format_args!("{}", account::rates(&frozen, &told, begun)));
            (told, tell_at) = (frozen, after(arguments.every, now));
        }
        if count == 0 {
            rest(capture, &mut wait, ends_at.min(tell_at).min(now.saturating_add(WAIT_MAX)), now);
        }
    }
}

/// Reads the frames that the ports hold but have not delivered yet.
fn drain(capture: &mut Capture<File>) -> Result<(), CaptureError> {
    let until = clock::now().saturating_add(DRAIN_MAX);
    let mut quiet_at = clock::now().saturating_add(DRAIN_QUIET);
    while !capture.is_full() && clock::now() < quiet_at.min(until) {
        if capture.step(clock::now())? > 0 {
            quiet_at = clock::now().saturating_add(DRAIN_QUIET);
        } else {
            clock::sleep_until(clock::now().saturating_add(POLL_PAUSE));
        }
    }
    Ok(())
}

/// Waits for a frame.
fn rest(capture: &Capture<File>, wait: &mut WaitSet, until: Nanos, now: Nanos) {
    wait.clear();
    let mut pollable = true;
    for port in capture.working() {
        match port.descriptor() {
            Some(descriptor) => drop(wait.add(descriptor, false)),
            None => pollable = false,
        }
    }
    let until = if pollable { until } else { until.min(now.saturating_add(POLL_PAUSE)) };
    // If waiting fails, the loop still needs a pause.
    if wait.until(Some(until)).is_err() {
        clock::sleep_until(until.min(now.saturating_add(POLL_PAUSE)));
    }
}

/// Returns the time since the beginning, in seconds.
fn since(frozen: &CaptureSnapshot, begun: Nanos) -> f64 {
    frozen.at.since(begun).as_secs_f64()
}
