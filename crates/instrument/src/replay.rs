//! A replay: the frames of a capture file, sent again from a port.
//!
//! They leave as they were captured, byte for byte, at moments that the file or somebody else says.
//! They carry no signature, so the monitor counts them as frames of somebody else, and what became
//! of them the ports' counters tell; unless they are to be marked: then a signature takes the place of
//! twenty bytes of payload, such that no Internet checksum changes, and the monitor knows them again. A
//! frame without so much payload leaves as it is. A replay is open loop like everything that is sent, but a frame
//! that comes late leaves late and is not left out: a trace with holes is another trace.

use std::path::PathBuf;
use std::sync::Arc;

use packet::capture::fault::Warning;
use packet::frame::FCS_BYTES;
use packet::time::Nanos;
use ports::capture::CaptureError;

use crate::stream::Problem;
use crate::trial::{Classes, Jitter, Latency, Pacing};

/// The shortest frame on Ethernet, in bytes without frame check sequence.
pub const FRAME_BYTES_MIN: usize = 64 - FCS_BYTES;

/// What is to be replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The number by which reports name it; unique within a trial, streams included.
    pub id: u16,
    /// The rig's port that its frames leave from, counted from 0.
    pub from: usize,
    /// The capture file: pcap or pcapng, Ethernet.
    pub file: PathBuf,
    /// When its frames are due.
    pub timing: Timing,
    /// How often the file is sent; without a number until the trial ends.
    pub passes: Option<u64>,
    /// What becomes of frames shorter than [`FRAME_BYTES_MIN`].
    pub short: Short,
    /// What becomes of frames of which only a part was captured.
    pub cut: Cut,
    /// Whether its frames are to be known again, and how.
    pub mark: Option<Mark>,
}

/// How the frames of a replay are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The rig's port where they should arrive, counted from 0.
    pub to: usize,
    /// How many bytes of the frame follow the signature and the word that makes up for it. It is counted
    /// from the end, so that tags which a target puts in or takes out move nothing.
    pub before_end: usize,
}

/// When a replay's frames are due. Where the file is sent more than once, the first frame of a pass
/// follows the last of the pass before like any other: no gap is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timing {
    /// As they were captured, each after the first one. A frame that is older than one before it
    /// leaves together with that. Between two passes lies the file's mean gap.
    Original,
    /// As they were captured, with all gaps longer by this factor (shorter, if it is below 1).
    Scaled(f64),
    /// One after the other, so far apart.
    Gap(Nanos),
    /// So many frames a second.
    FramesPerSecond(f64),
    /// As a link of so many bit/s would carry them one after the other, preamble, gap and frame check
    /// sequence included.
    Link(u64),
    /// As fast as the port takes them.
    Unpaced,
}

/// What becomes of frames shorter than Ethernet allows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Short {
    /// Zeros are added, as a sender's interface does.
    #[default]
    Pad,
    /// They are not sent.
    Refuse,
    /// They are sent as they are.
    Send,
}

/// What becomes of frames of which only a part was captured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cut {
    /// They are sent as long as they were, with zeros for what is missing.
    #[default]
    Fill,
    /// They are not sent.
    Refuse,
    /// The part is sent.
    Send,
}

/// What came of a replay.
#[derive(Debug, Clone)]
pub struct ReplayReport {
    /// The replay's number.
    pub id: u16,
    /// The port it was sent from.
    pub from: usize,
    /// What was sent, and what was not.
    pub counts: ReplayCounts,
    /// Whether all passes were sent to their end.
    pub is_complete: bool,
    /// Whether frames were still due when the trial ended: the port or the file was too slow.
    pub is_behind: bool,
    /// How well the moments were kept; empty if there were none to keep.
    pub pacing: Pacing,
    /// What was odd in the file, once it was read to its end.
    pub warnings: Vec<Warning>,
    /// Why it ended early.
    pub failure: Option<Failure>,
    /// What came back of the frames that carry a signature, if any are to.
    pub back: Option<Back>,
}

/// What came back of the marked frames of a replay. That a frame is correct says that its signature
/// is whole and on the right port: of the rest of it nothing is known.
#[derive(Debug, Clone)]
pub struct Back {
    /// The port where they should arrive.
    pub to: usize,
    /// What became of them.
    pub classes: Classes,
    /// Different frames that came back in whatever state.
    pub received: u64,
    /// Latency of the correct ones, from when they were sent.
    pub latency: Latency,
    /// Variation of that latency.
    pub jitter: Jitter,
}

/// Frames of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    /// Frames that the port took.
    pub frames: u64,
    /// Their bytes, without frame check sequence.
    pub bytes: u64,
    /// How often the file was sent to its end.
    pub passes: u64,
    /// Frames not sent because the port does not take frames so long.
    pub refused_long: u64,
    /// Frames not sent because they are too short.
    pub refused_short: u64,
    /// Frames not sent because only a part of them was captured.
    pub refused_cut: u64,
    /// Frames that were given zeros because they are too short.
    pub padded: u64,
    /// Frames that were given zeros because only a part of them was captured.
    pub filled: u64,
    /// How often the file was not read in time.
    pub starved: u64,
    /// Frames that were sent with a signature; those without are foreign to the monitor.
    pub signed: u64,
}

/// Why a replay ended early.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Failure {
    /// The file cannot be read on.
    File(Arc<CaptureError>),
    /// Its frames' own gaps were asked for, and a frame has no time: its place in the file, from 0.
    NoTime(u64),
    /// Its frames' own gaps were asked for more than once, and there are none.
    NoGaps,
    /// None of its frames can be sent.
    NothingFits,
}

impl Replay {
    /// The whole file once, with its own gaps.
    pub fn once(id: u16, from: usize, file: PathBuf) -> Self {
        let (short, cut, mark) = (Short::default(), Cut::default(), None);
        Replay { id, from, file, timing: Timing::Original, passes: Some(1), short, cut, mark }
    }

    /// Everything that is wrong with it in a rig of `ports` ports.
    pub fn validate(&self, ports: usize) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.from >= ports {
            problems.push(Problem::NoSuchPort { port: self.from, ports });
        }
        if let Some(Mark { to, .. }) = self.mark
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
                "frame {number} has no time, so it has no gap: set a gap or a rate for the replay"
            ),
            Failure::NoGaps => f.write_str(
                "all its frames have the same time, so passes have no length: \
                 set a gap or a rate for the replay",
            ),
            Failure::NothingFits => f.write_str(
                "none of its frames can be sent: all are too long for the port, too short, or cut",
            ),
        }
    }
}
