//! `planimeter generate`: sends frames from a stream file or a capture file, and prints a summary.
//!
//! Received frames are counted too: a stream's at the port that expects them, a capture file's likewise if they are
//! marked, and otherwise by the ports' own counters. The summary goes to stdout, as text or as JSON. An interrupted
//! command prints the summary up to that time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use instrument::replay::{Cut, Mark, Replay, Short, Timing};
use instrument::rig::RigError;
use instrument::rig::live::LiveRig;
use instrument::stream::file::{Contents, read_all};
use instrument::trial::Trial;
use packet::time::Nanos;
use ports::afpacket::Options;
use ports::port::Port;

use super::element::port_refused;
use super::failure::{Failure, FailureKind};
use super::out::say;

mod told;
mod recorded;

/// Default duration of streams, in seconds.
const SECONDS: f64 = 10.0;

/// Seconds in a year: a capture file that is sent once ends earlier.
const YEAR_SECONDS: f64 = 31_557_600.0;

/// Wait for frames that return.
const DRAIN: Nanos = Nanos::from_millis(100);

/// Arguments of `planimeter generate`.
#[derive(clap::Args)]
pub struct Arguments {
    /// A port, such as afpacket:eth1; the first is number 1 in a stream file
    #[arg(long = "port", value_name = "SPEC", required = true)]
    ports: Vec<String>,
    /// Send the streams and capture files that this file describes
    #[arg(long, value_name = "FILE", conflicts_with = "pcap", required_unless_present = "pcap")]
    stream: Option<PathBuf>,
    /// Send the frames of this pcap or pcapng file from the first port
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// End after this time; streams otherwise after 10 seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Send the capture file so many times; 0 for until --seconds are over
    #[arg(long, value_name = "N", requires = "pcap", default_value_t = 1)]
    passes: u64,
    #[command(flatten)]
    pace: Pace,
    /// Do not send frames of the capture file that are shorter than 64 bytes, instead of padding them
    #[arg(long, requires = "pcap")]
    refuse_short: bool,
    /// Do not send frames that were captured in part, instead of filling them up with zeros
    #[arg(long, requires = "pcap")]
    refuse_cut: bool,
    /// Put a signature into the payload of the capture file's frames, and count those that arrive at
    /// this port, from 1
    #[arg(long, value_name = "PORT", requires = "pcap")]
    to: Option<usize>,
    /// Print what was sent and what came back as JSON
    #[arg(long)]
    json: bool,
}

/// When the frames of a capture file are due; with nothing said, as they were captured.
#[derive(clap::Args)]
#[group(multiple = false, requires = "pcap")]
struct Pace {
    /// With the capture file's gaps, longer by this factor
    #[arg(long, value_name = "FACTOR")]
    gap_factor: Option<f64>,
    /// With so many nanoseconds from frame to frame
    #[arg(long, value_name = "NANOSECONDS")]
    gap_ns: Option<u64>,
    /// So many frames a second
    #[arg(long, value_name = "RATE")]
    rate_pps: Option<f64>,
    /// As a link of so many bit/s carries them
    #[arg(long, value_name = "RATE")]
    link_bits_per_second: Option<u64>,
    /// As fast as the port takes them
    #[arg(long)]
    unpaced: bool,
}

/// Sends, and prints the summary.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let contents = contents(arguments)?;
    let stop = super::stop::flag()?;
    let open = |(place, spec): (usize, &String)| -> Result<Box<dyn Port>, Failure> {
        let opened = ports::open::open(spec, &Options::monitor());
        opened.map_err(|error| port_refused(place as u64 + 1, &error))
    };
    let ports = arguments.ports.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
    let trial = trial(arguments, contents);
    let key = ports::clock::since_1970().0;
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
        told::print(&report);
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

fn contents(arguments: &Arguments) -> Result<Contents, Failure> {
    let ports = arguments.ports.len();
    if let Some(file) = &arguments.stream {
        let usage = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        let text = std::fs::read_to_string(file)
            .map_err(|error| usage(format!("cannot read: {error}")))?;
        return read_all(&text, ports).map_err(|error| usage(error.to_string()));
    }
    let file = arguments.pcap.as_deref().unwrap_or(Path::new(""));
    let replay = Replay {
        timing: arguments.pace.timing(),
        passes: (arguments.passes > 0).then_some(arguments.passes),
        short: if arguments.refuse_short { Short::Refuse } else { Short::Pad },
        cut: if arguments.refuse_cut { Cut::Refuse } else { Cut::Fill },
        mark: arguments.to.map(|to| Mark { to: to.wrapping_sub(1), before_end: 0 }),
        ..Replay::once(1, 0, file.to_path_buf())
    };
    Ok(Contents { streams: Vec::new(), replays: vec![replay] })
}

fn trial(arguments: &Arguments, contents: Contents) -> Trial {
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
