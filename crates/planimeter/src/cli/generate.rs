//! `planimeter generate`: sends frames from a stream file or a capture file, and prints a summary.
//!
//! Received frames are counted too: a stream's at the port that expects them, a capture file's
//! likewise if they are marked, and otherwise by the ports' own counters. The summary goes to
//! stdout, as text or as JSON. An interrupted command prints the summary up to that time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use netio::afpacket::Options;
use netio::port::Port;
use packet::time::Nanos;
use tester::rig::RigError;
use tester::rig::live::LiveRig;
use tester::stream::file::{StreamFile, read_all};
use tester::stream::replay::{Cut, FrameMark, Replay, ShortFrames, Timing};
use tester::trial::Trial;

use super::element::{port_refused, read};
use super::failure::{Failure, FailureKind};
use super::output::say;

mod summary;
mod recorded;

/// Default duration of streams, in seconds.
const SECONDS: f64 = 10.0;

/// Seconds in a year: a capture file that is sent once ends earlier.
const YEAR_SECONDS: f64 = 31_557_600.0;

/// Wait for frames that return.
const DRAIN: Nanos = Nanos::from_millis(100);

/// Arguments of `planimeter generate`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Port, such as afpacket:eth1; the first is port 1 of a stream file
    #[arg(long = "port", value_name = "SPEC", required = true)]
    ports: Vec<String>,
    /// Send the streams and capture files that this TOML file describes
    #[arg(long, value_name = "FILE", conflicts_with = "pcap", required_unless_present = "pcap")]
    stream: Option<PathBuf>,
    /// Send the frames of this pcap or pcapng file from the first port
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Stop after this time [default: 10 for streams]
    #[arg(long = "duration", value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Number of passes over the capture file; 0 repeats it until --duration
    #[arg(long = "loop", value_name = "N", requires = "pcap", default_value_t = 1)]
    passes: u64,
    /// Sign the frames of the capture file, and count those that arrive at this port (from 1)
    #[arg(long, value_name = "PORT", requires = "pcap")]
    to: Option<usize>,
    /// Skip frames shorter than 64 bytes, instead of padding them
    #[arg(long = "skip-runts", requires = "pcap")]
    refuse_short: bool,
    /// Skip frames that were captured in part, instead of filling them with zeros
    #[arg(long = "skip-truncated", requires = "pcap")]
    refuse_cut: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Pacing of a capture file [default: as captured]")]
    pace: Pace,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter generate --port afpacket:eth1 --port afpacket:eth2 --stream streams.toml --duration 30
  planimeter generate --port afpacket:eth1 --pcap frames.pcapng --rate-pps 10000
  planimeter generate --port afpacket:eth1 --port afpacket:eth2 --pcap frames.pcapng --to 2";

/// Schedule of a capture file's frames; by default the captured one.
#[derive(clap::Args)]
#[group(multiple = false, requires = "pcap")]
struct Pace {
    /// Multiply the captured gaps by this factor
    #[arg(long = "multiplier", value_name = "FACTOR")]
    gap_factor: Option<f64>,
    /// Constant time from frame to frame
    #[arg(long, value_name = "NANOSECONDS")]
    gap_ns: Option<u64>,
    /// Constant rate in frames per second
    #[arg(long, value_name = "RATE")]
    rate_pps: Option<f64>,
    /// Back to back on a link of this rate, in bit/s
    #[arg(long = "rate-bps", value_name = "RATE")]
    link_bits_per_second: Option<u64>,
    /// As fast as the port accepts frames
    #[arg(long = "topspeed")]
    unpaced: bool,
}

/// Sends, and prints the summary.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let contents = contents(arguments)?;
    let stop = super::signals::flag()?;
    let open = |(place, spec): (usize, &String)| -> Result<Box<dyn Port>, Failure> {
        let opened = netio::open::open(spec, &Options::monitor());
        opened.map_err(|error| port_refused(place as u64 + 1, &error))
    };
    let ports = arguments.ports.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
    let trial = trial(arguments, contents);
    let key = os::clock::since_1970().0;
    let mut rig = LiveRig::new(ports, key, stop);
    let (report, is_stopped, broken) = match rig.trial_until_stopped(&trial) {
        Ok((report, is_stopped)) => (report, is_stopped, None),
        Err(RigError::Broken(port, error, report)) => {
            (*report, false, Some(RigError::Port(port, error)))
        }
        Err(error) => return Err(failure(error)),
    };
    if arguments.json {
        say!("{}", recorded::json(&report, is_stopped));
    } else {
        summary::print(&report);
    }
    if let Some(error) = broken {
        return Err(failure(error));
    }
    if is_stopped {
        return Err(failure(RigError::Interrupted));
    }
    let failed =
        report.replays.iter().find_map(|replay| Some((replay.id, replay.failure.as_ref()?)));
    match failed {
        None => Ok(ExitCode::SUCCESS),
        Some((id, failure)) => Err(Failure::usage(format!("replay {id}: {failure}"))),
    }
}

fn contents(arguments: &Arguments) -> Result<StreamFile, Failure> {
    let ports = arguments.ports.len();
    if let Some(file) = &arguments.stream {
        let usage = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        return read_all(&read(file)?, ports).map_err(|error| usage(error.to_string()));
    }
    let file = arguments.pcap.as_deref().unwrap_or(Path::new(""));
    let replay = Replay {
        timing: arguments.pace.timing(),
        passes: (arguments.passes > 0).then_some(arguments.passes),
        short: if arguments.refuse_short { ShortFrames::Refuse } else { ShortFrames::Pad },
        cut: if arguments.refuse_cut { Cut::Refuse } else { Cut::Fill },
        mark: arguments.to.map(|to| FrameMark { to: to.wrapping_sub(1), before_end: 0 }),
        ..Replay::once(1, 0, file.to_path_buf())
    };
    Ok(StreamFile { streams: Vec::new(), replays: vec![replay] })
}

fn trial(arguments: &Arguments, contents: StreamFile) -> Trial {
    let is_endless = contents.replays.iter().any(|replay| replay.passes.is_none());
    let usual = if contents.streams.is_empty() && !is_endless { YEAR_SECONDS } else { SECONDS };
    let seconds = arguments.seconds.unwrap_or(usual);
    let duration = Nanos::from_secs_f64(seconds.clamp(0.0, YEAR_SECONDS));
    let replays = contents.replays;
    Trial { replays, ..Trial::new(contents.streams, Nanos::ZERO, duration, DRAIN) }
}

impl Pace {
    fn timing(&self) -> Timing {
        let said = [
            self.gap_factor.map(Timing::Scaled),
            self.gap_ns.map(|gap| Timing::Gap(Nanos(gap))),
            self.rate_pps.map(Timing::FramesPerSecond),
            self.link_bits_per_second.map(Timing::Link),
            self.unpaced.then_some(Timing::Unpaced),
        ];
        said.into_iter().flatten().next().unwrap_or(Timing::Original)
    }
}

fn failure(error: RigError) -> Failure {
    match error {
        RigError::Interrupted => {
            Failure { kind: FailureKind::Interrupted, line: "interrupted".into() }
        }
        other => Failure::usage(other.to_string()),
    }
}
