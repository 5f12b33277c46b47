//! What `planimeter generate` sent and what came back, as it prints it for programs.

use serde::{Deserialize, Serialize};

use super::trial::{ClockSource, Distribution, Drop, Flag, FrameClasses, Jitter};

/// An account of frames that were sent without an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Version of the schema.
    pub schema: u32,
    /// Whether it was ended before its time.
    pub interrupted: bool,
    /// How long frames were sent.
    pub duration_ns: u64,
    /// Each stream.
    pub streams: Vec<SentStream>,
    /// Each capture file.
    pub replays: Vec<SentReplay>,
    /// Each port.
    pub ports: Vec<SentPort>,
    /// Frames with a signature that were sent.
    pub account_frames_offered: u64,
    /// Of these, how many came back in whatever state.
    pub account_frames_received: u64,
    /// Of these, how many were lost, as far as ports tell.
    pub drops: Vec<Drop>,
    /// What is left over.
    pub frames_unexplained: i64,
    /// Who stamped received frames.
    pub clock: ClockSource,
    /// What is remarkable.
    pub flags: Vec<Flag>,
}

/// A stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentStream {
    /// Its number.
    pub stream: u32,
    /// Port that it left by, from 1.
    pub port_out: u32,
    /// Port that it belongs to, from 1.
    pub port_in: u32,
    /// Frames a second that its schedule called for.
    pub rate_pps_intended: f64,
    /// Frames that its schedule called for.
    pub frames_intended: u64,
    /// Frames that the port took.
    pub frames_offered: u64,
    /// Frames that the tester came too late for.
    pub frames_unsent_late: u64,
    /// Frames that the port refused until it was too late.
    pub frames_unsent_refused: u64,
    /// What received frames were.
    pub classes: FrameClasses,
    /// How well its moments were kept.
    pub pacing: Kept,
    /// Latency from the moment that a frame really left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// Its variation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// A capture file that was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentReplay {
    /// Its number.
    pub replay: u32,
    /// Port that it left by, from 1.
    pub port_out: u32,
    /// Frames that the port took.
    pub frames: u64,
    /// Their bytes, without frame check sequence.
    pub bytes: u64,
    /// Of these, how many carry a signature.
    pub frames_signed: u64,
    /// How often it was sent to its end.
    pub passes: u64,
    /// Frames that are too long for the port and were not sent.
    pub frames_refused_long: u64,
    /// Frames that are too short and were not sent.
    pub frames_refused_short: u64,
    /// Frames of which a part was captured, not sent.
    pub frames_refused_cut: u64,
    /// Frames that were given zeros because they are too short.
    pub frames_padded: u64,
    /// Frames that were given zeros because a part of them was captured.
    pub frames_filled: u64,
    /// How often the file was not read in time.
    pub starved: u64,
    /// Whether all passes were sent to their end.
    pub is_complete: bool,
    /// How well its moments were kept.
    pub pacing: Kept,
    /// What became of the frames that carry a signature, if any are to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<SentBack>,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What came back of a capture file's frames that carry a signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentBack {
    /// Port that they belong to, from 1.
    pub port_in: u32,
    /// What they were.
    pub classes: FrameClasses,
    /// Latency from the moment that a frame really left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
}

/// A port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentPort {
    /// Its number, from 1.
    pub port: u32,
    /// Interface or label.
    pub name: String,
    /// Frames out.
    pub frames_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Frames in.
    pub frames_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Of the frames in, those that carry a protocol: each protocol that occurred, and a frame under each that it
    /// carries.
    #[serde(default)]
    pub protocols: Vec<ProtocolCount>,
    /// Of the frames in, those that are nobody's.
    pub frames_foreign: u64,
    /// Of the frames in, damaged ones of which nobody can tell whose they are.
    pub frames_broken: u64,
}

/// Frames that carry a protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProtocolCount {
    /// Which: `vlan`, `mpls`, `arp`, `ipv4`, `ipv6`, `icmp`, `icmpv6`, `tcp`, `udp`, `sctp`, `other_ip` or `other`.
    pub protocol: String,
    /// Frames.
    pub frames: u64,
    /// Their bytes, without frame check sequence.
    pub bytes: u64,
}

/// How well a schedule was kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Sending time less scheduled time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Distribution>,
    /// Time from frame to frame, as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Distribution>,
    /// The whole of that: longest time of a bucket in nanoseconds, and how many gaps are in it.
    pub gap_buckets: Vec<(u64, u64)>,
    /// How far a gap was from the one that was intended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_error: Option<Distribution>,
}
