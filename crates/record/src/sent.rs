//! Machine-readable output of `planimeter generate`: frames sent and received.

use serde::{Deserialize, Serialize};

use super::trial::{ClockSource, Distribution, Drop, Flag, FrameClasses, Jitter};

/// Frame accounting of traffic that belongs to no experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// Version of the schema.
    pub schema: u32,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// Sending time.
    pub duration_ns: u64,
    /// Each stream.
    pub streams: Vec<SentStream>,
    /// Each capture file.
    pub replays: Vec<SentReplay>,
    /// Each port.
    pub ports: Vec<SentPort>,
    /// Frames with a signature that were sent.
    pub account_frames_offered: u64,
    /// Of these, distinct frames received in any class.
    pub account_frames_received: u64,
    /// Of these, frames lost, as far as ports report it.
    pub drops: Vec<Drop>,
    /// Frames that remain unaccounted for.
    pub frames_unexplained: i64,
    /// Source of the receive timestamps.
    pub clock: ClockSource,
    /// Conditions that affect the validity.
    pub flags: Vec<Flag>,
}

/// A stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentStream {
    /// Its number.
    pub stream: u32,
    /// Port that sends the stream, from 1.
    pub port_out: u32,
    /// Port that should receive the stream, from 1.
    pub port_in: u32,
    /// Intended load in frames per second.
    pub rate_pps_intended: f64,
    /// Frames in the schedule.
    pub frames_intended: u64,
    /// Frames that the port accepted.
    pub frames_offered: u64,
    /// Frames not sent because the tester was too late.
    pub frames_unsent_late: u64,
    /// Frames not sent because the port rejected them until it was too late.
    pub frames_unsent_refused: u64,
    /// Received frames by class.
    pub classes: FrameClasses,
    /// Accuracy of the send times.
    pub pacing: SendAccuracy,
    /// Latency from the actual send time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// Latency variation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// A replayed capture file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentReplay {
    /// Its number.
    pub replay: u32,
    /// Port that sends the file, from 1.
    pub port_out: u32,
    /// Frames that the port accepted.
    pub frames: u64,
    /// Their bytes, without frame check sequence.
    pub bytes: u64,
    /// Of these, frames with a signature.
    pub frames_signed: u64,
    /// Number of complete passes over the file.
    pub passes: u64,
    /// Frames not sent because they are too long for the port.
    pub frames_refused_long: u64,
    /// Frames not sent because they are too short.
    pub frames_refused_short: u64,
    /// Frames not sent because the capture truncated them.
    pub frames_refused_cut: u64,
    /// Frames padded with zeros because they are too short.
    pub frames_padded: u64,
    /// Frames filled with zeros because the capture truncated them.
    pub frames_filled: u64,
    /// Number of times that the file was not read in time.
    pub starved: u64,
    /// Whether all passes completed.
    pub is_complete: bool,
    /// Accuracy of the send times.
    pub pacing: SendAccuracy,
    /// Received frames of the file, if its frames carry a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<ReceivedReplay>,
    /// Reason for an early end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Received frames of a capture file whose frames carry a signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceivedReplay {
    /// Port that should receive them, from 1.
    pub port_in: u32,
    /// Received frames by class.
    pub classes: FrameClasses,
    /// Latency from the actual send time.
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
    /// Frames sent.
    pub frames_sent: u64,
    /// Bytes of the frames sent.
    pub bytes_sent: u64,
    /// Frames received.
    pub frames_received: u64,
    /// Bytes of the frames received.
    pub bytes_received: u64,
    /// Received frames by protocol. A frame counts under each protocol that it carries.
    #[serde(default)]
    pub protocols: Vec<ProtocolCount>,
    /// Received frames that the tester did not send.
    pub frames_foreign: u64,
    /// Received damaged frames that cannot be attributed to a stream.
    pub frames_broken: u64,
}

/// Frames that carry a protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProtocolCount {
    /// Protocol: `vlan`, `mpls`, `arp`, `ipv4`, `ipv6`, `icmp`, `icmpv6`, `tcp`, `udp`, `sctp`,
    /// `other_ip` or `other`.
    pub protocol: String,
    /// Number of frames.
    pub frames: u64,
    /// Bytes of the frames, without frame check sequence.
    pub bytes: u64,
}

/// Accuracy of the send times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SendAccuracy {
    /// Actual minus scheduled send time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Distribution>,
    /// Actual time between successive frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Distribution>,
    /// Histogram of the gaps: upper limit of each bucket in nanoseconds, and the number of gaps in
    /// it.
    pub gap_buckets: Vec<(u64, u64)>,
    /// Difference between actual and intended gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_error: Option<Distribution>,
}
