//! Replay of a capture file's frames from a port.
//!
//! Frames are sent unchanged, byte by byte, at the file's times or at other times. Without a
//! signature, the monitor counts them as foreign, and only the ports' counters show what happened
//! to them. With a mark, a signature replaces twenty bytes of payload without changing any Internet
//! checksum, and the monitor identifies the frames. Frames with less payload remain unchanged.
//!
//! A replay is open loop like all traffic. But a late frame is sent late and not skipped, because a
//! trace with gaps is another trace.

use std::path::PathBuf;
use std::sync::Arc;

use netio::capture::CaptureError;
use packet::frame::FCS_BYTES;
use packet::time::Nanos;

use crate::stream::Problem;

/// Minimum Ethernet frame size, in bytes without frame check sequence.
pub const FRAME_BYTES_MIN: usize = 64 - FCS_BYTES;

/// Parameters of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Id in reports, unique among the replays and streams of a trial.
    pub id: u16,
    /// Index of the rig's port to send from.
    pub from: usize,
    /// Capture file: pcap or pcapng, Ethernet.
    pub file: PathBuf,
    /// When frames are due.
    pub timing: Timing,
    /// Number of times to send the file. None for until the trial ends.
    pub passes: Option<u64>,
    /// How to treat frames shorter than [`FRAME_BYTES_MIN`].
    pub short: ShortFrames,
    /// How to treat frames that were truncated in the capture.
    pub cut: Cut,
    /// Whether and how to mark frames with a signature.
    pub mark: Option<FrameMark>,
}

/// How to mark the frames of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMark {
    /// Index of the expected receiving port.
    pub to: usize,
    /// Number of bytes after the signature and its compensating word. It is counted from the
    /// frame's end, so that pushed or popped tags do not move it.
    pub before_end: usize,
}

/// When a replay's frames are due.
///
/// In a repeated file, the first frame of a pass follows the last one of the previous pass after a
/// regular gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timing {
    /// At their captured times, relative to the first frame. A frame older than an earlier one is
    /// sent together with it. The gap between two passes is the file's mean gap.
    Original,
    /// At their captured times, with all gaps multiplied by this factor.
    Scaled(f64),
    /// With this constant gap.
    Gap(Nanos),
    /// At this constant rate in frames per second.
    FramesPerSecond(f64),
    /// Back to back at the speed of a link with this bit rate, preamble, gap and frame check
    /// sequence included.
    Link(u64),
    /// As fast as the port accepts them.
    Unpaced,
}

/// How to treat frames shorter than the Ethernet minimum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShortFrames {
    /// Pad them with zeros, as a sender's interface does.
    #[default]
    Pad,
    /// Skip them.
    Refuse,
    /// Send them unchanged.
    Send,
}

/// How to treat frames that were truncated in the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cut {
    /// Send them at their original length, filled with zeros.
    #[default]
    Fill,
    /// Skip them.
    Refuse,
    /// Send the captured part.
    Send,
}

/// Frame counts of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Frames that the port accepted.
    pub frames: u64,
    /// Their bytes, without frame check sequence.
    pub bytes: u64,
    /// Number of complete passes.
    pub passes: u64,
    /// Frames skipped because they are too long for the port.
    pub refused_long: u64,
    /// Frames skipped because they are too short.
    pub refused_short: u64,
    /// Frames skipped because they were truncated in the capture.
    pub refused_cut: u64,
    /// Frames padded with zeros because they are too short.
    pub padded: u64,
    /// Frames filled with zeros because they were truncated in the capture.
    pub filled: u64,
    /// Number of times the file was not read in time.
    pub starved: u64,
    /// Frames sent with a signature. The monitor counts the others as foreign.
    pub signed: u64,
}

/// Why a replay ended early.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Failure {
    /// The file cannot be read further.
    File(Arc<CaptureError>),
    /// The timing needs captured times, and a frame has none. Holds its index in the file.
    NoTime(u64),
    /// The timing needs captured times for several passes, and all frames have the same time.
    NoGaps,
    /// No frame can be sent.
    NothingFits,
}

impl Replay {
    /// A replay of the whole file once, at its captured times.
    pub fn once(id: u16, from: usize, file: PathBuf) -> Self {
        let (short, cut, mark) = (ShortFrames::default(), Cut::default(), None);
        Replay { id, from, file, timing: Timing::Original, passes: Some(1), short, cut, mark }
    }

    /// Returns all problems of the replay in a rig of `ports` ports.
    pub fn validate(&self, ports: usize) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.from >= ports {
            problems.push(Problem::NoSuchPort { port: self.from, ports });
        }
        if let Some(FrameMark { to, .. }) = self.mark
            && to >= ports
        {
            problems.push(Problem::NoSuchPort { port: to, ports });
        }
        match self.timing {
            Timing::Scaled(factor) if !(1e-6..=1e6).contains(&factor) => {
                problems.push(Problem::BadGapFactor(factor));
            }
            Timing::FramesPerSecond(pps) if !(1e-6..=1e9).contains(&pps) => {
                problems.push(Problem::BadRate(pps));
            }
            Timing::Link(0) => problems.push(Problem::BadLink(0)),
            _ => {}
        }
        problems
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::File(error) => write!(f, "{error}"),
            Failure::NoTime(number) => write!(
                f,
                "frame {number} has no timestamp (hint: set a gap or a rate for the replay)"
            ),
            Failure::NoGaps => f.write_str(
                "all frames have the same timestamp (hint: set a gap or a rate for the replay)",
            ),
            Failure::NothingFits => f.write_str(
                "no frame can be sent: all are too long for the port, too short, or truncated",
            ),
        }
    }
}
