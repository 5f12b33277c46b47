//! Streams: similar frames sent from one port on a schedule and expected on another.
//!
//! Only a few fields and the sizes vary between the frames of a stream.
//!
//! - Frame sizes include the frame check sequence, as in the standards: 64 bytes are 60 in memory.
//! - Line rate is C / (8 (L + 20)): preamble and gap add 20 bytes per frame (RFC 2544, section 20).
//! - A frame is a pure function of the stream and the frame's sequence number, so that the monitor
//!   knows every expected byte.

use packet::frame::FCS_BYTES;

use crate::signature::SIGNATURE_BYTES;

pub mod headers;
pub mod field_variation;
pub mod burst_profile;
pub mod imix_genome;
mod problem;
pub mod file;
pub mod replay;

pub use burst_profile::BurstProfile;
pub use field_variation::{
    Field, FieldVariation, IndexOrder, LIST_VALUES_MAX, VARY_GROUPS_MAX, Values, Weights,
};
pub use headers::{HEADER_BYTES, Headers, Label, Layout, Network, TAG_BYTES, Transport, Vlan};
pub use imix_genome::Genome;
pub use problem::{Problem, validate};

/// Overhead of a frame on a link in bytes: preamble, start delimiter and gap.
pub const GAP_BYTES: usize = 20;

/// Similar frames with varying fields and sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Stream id in its frames, unique within a trial.
    pub id: u16,
    /// Index of the rig's port to send from.
    pub from: usize,
    /// Index of the rig's port that should receive the frames.
    pub to: usize,
    /// Frame size in bytes, frame check sequence included. With a genome, the largest size.
    pub frame_bytes: usize,
    /// Sequence of frame sizes, if they differ.
    pub genome: Option<Genome>,
    /// Headers of a frame, without variation.
    pub headers: Headers,
    /// Groups of varying fields.
    pub vary: Vec<FieldVariation>,
    /// Frame rate.
    pub rate: Rate,
    /// Schedule shape for the rate.
    pub shape: BurstProfile,
    /// Offset of the signature in a sent frame, in bytes. None for directly after the headers.
    pub signature_at: Option<usize>,
    /// Expected form of received frames.
    pub arrival: Arrival,
}

/// Frame rate of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Frames per second, with a resolution of a millionth.
    FramesPerSecond(f64),
    /// Percentage of line rate at the stream's frame size, or at its mean frame size.
    LinkPercent {
        /// 100 is line rate. Higher values are allowed.
        percent: f64,
        /// Nominal capacity in bit/s.
        link_bits_per_second: u64,
    },
}

/// Expected form of received frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// Unchanged.
    Unchanged,
    /// Routed: new Ethernet addresses, TTL decremented, header checksum updated.
    Routed {
        /// Ethernet source that the router sets.
        mac_source: [u8; 6],
        /// Ethernet destination that the router sets.
        mac_destination: [u8; 6],
    },
    /// With a VLAN tag after the addresses of an untagged frame.
    ///
    /// A single tag applies to all frames. Of several tags of one type, each frame has the one at
    /// the index that it draws in the stream's first group.
    Tagged(Vec<Vlan>),
    /// Without the VLAN tag that it was sent with.
    Untagged,
    /// A loopback reply to a loopback message: from its destination, with the same data.
    Answered,
}

impl Stream {
    /// A plain stream from port 0 to port 1: one size, one header, constant rate.
    pub fn plain(id: u16, frame_bytes: usize, headers: Headers, rate: Rate) -> Self {
        Stream {
            id,
            from: 0,
            to: 1,
            frame_bytes,
            genome: None,
            headers,
            vary: Vec::new(),
            rate,
            shape: BurstProfile::Constant,
            signature_at: None,
            arrival: Arrival::Unchanged,
        }
    }

    /// Sets the sizes of this genome.
    #[must_use]
    pub fn with_genome(self, genome: Genome) -> Self {
        let frame_bytes = genome.sizes().iter().copied().max().unwrap_or(self.frame_bytes);
        Stream { frame_bytes, genome: Some(genome), ..self }
    }

    /// Returns the minimum size for this stream's headers and signature, frame check sequence
    /// included.
    pub fn frame_bytes_min(&self) -> usize {
        let end = self.signature_offset() + SIGNATURE_BYTES;
        let end = match self.headers.transport {
            _ if !self.headers.network.has_transport() => {
                end + self.headers.network.trailer_bytes()
            }
            // Bytes after a packet of whole words are padding, which must not contain the
            // signature.
            Transport::Sctp { .. } => {
                let at = self.headers.layout().transport_at;
                at + (end - at).next_multiple_of(4)
            }
            _ => end,
        };
        end + FCS_BYTES
    }

    /// Returns the frame sizes, each once.
    pub fn sizes(&self) -> &[usize] {
        self.genome.as_ref().map_or(std::slice::from_ref(&self.frame_bytes), Genome::sizes)
    }

    /// Returns the offset of the signature in a sent frame.
    pub fn signature_offset(&self) -> usize {
        self.signature_at.unwrap_or_else(|| self.headers.layout().payload_at)
    }

    /// Returns the intended rate in frames per second.
    ///
    /// For on-off streams it is the rate while on, for ramps the initial rate.
    pub fn rate_pps(&self) -> f64 {
        self.rate.pps_of(self.mean_bytes())
    }

    /// Returns the mean frame size, frame check sequence included.
    pub fn frame_bytes_mean(&self) -> f64 {
        let (bytes, frames) = self.mean_bytes();
        bytes as f64 / frames as f64
    }

    /// Returns the total size of a number of frames, frame check sequences included, and that
    /// number.
    pub(crate) fn mean_bytes(&self) -> (u64, u64) {
        match &self.genome {
            None => (self.frame_bytes as u64, 1),
            Some(genome) => (genome.bytes(), genome.frames()),
        }
    }

    /// Returns the number of different headers.
    pub fn flow_count(&self) -> u64 {
        self.vary.iter().fold(1u64, |product, group| product.saturating_mul(group.count.max(1)))
    }

    /// Returns the headers of flow number `flow`, below [`Stream::flow_count`].
    ///
    /// A target that knows all flows matches every frame of the stream.
    pub fn flow(&self, flow: u64) -> Headers {
        let mut headers = self.headers.clone();
        let mut rest = flow;
        for group in &self.vary {
            let count = group.count.max(1);
            headers.vary(group, rest % count);
            rest /= count;
        }
        headers
    }

    /// Returns the stream whose frames are those of this one with these tags pushed.
    pub(crate) fn tagged(&self, tags: &[Vlan]) -> Stream {
        let mut stream = self.clone();
        stream.signature_at = Some(self.signature_offset() + TAG_BYTES);
        stream.headers.vlans.extend(tags.first());
        if let (Some(group), [_, _, ..]) = (stream.vary.first_mut(), tags) {
            let words = tags.iter().map(|tag| u64::from(tag.word()));
            group.fields.push((Field::VlanTag, Values::List(words.collect())));
        }
        stream
    }

    /// Returns the stream whose frames are those of this one with their tag popped.
    pub(crate) fn untagged(&self) -> Stream {
        let mut stream = self.clone();
        stream.signature_at = Some(self.signature_offset().saturating_sub(TAG_BYTES));
        stream.headers.vlans.clear();
        stream
    }

    /// Returns the headers of the reply to a frame.
    pub(crate) fn answer(&self) -> Headers {
        let mut answer = self.headers.clone();
        std::mem::swap(&mut answer.mac_source, &mut answer.mac_destination);
        if let Network::Loopback { answers, .. } = &mut answer.network {
            *answers = true;
        }
        answer
    }

    /// Returns the headers of the frame with this sequence number.
    pub fn headers_at(&self, sequence: u64) -> Headers {
        let mut headers = self.headers.clone();
        for group in &self.vary {
            headers.vary(group, group.index_at(sequence));
        }
        headers
    }
}

impl Headers {
    fn vary(&mut self, group: &FieldVariation, index: u64) {
        for (field, values) in &group.fields {
            self.set(*field, values.at(*field, index));
        }
    }
}

impl Rate {
    /// Returns the frames per second for this frame size (frame check sequence included).
    pub fn pps(self, frame_bytes: usize) -> f64 {
        self.pps_of((frame_bytes as u64, 1))
    }

    /// Returns the frames per second for this total size of a number of frames.
    pub(crate) fn pps_of(self, (bytes, frames): (u64, u64)) -> f64 {
        match self {
            Rate::FramesPerSecond(pps) => pps,
            Rate::LinkPercent { percent, link_bits_per_second } => {
                let cost = bytes as f64 / frames as f64 + GAP_BYTES as f64;
                percent / 100.0 * link_bits_per_second as f64 / (8.0 * cost)
            }
        }
    }
}

/// Returns the line rate in frames per second, C / (8 (L + 20)).
pub fn line_rate_pps(link_bits_per_second: u64, frame_bytes: usize) -> f64 {
    link_bits_per_second as f64 / (8 * (frame_bytes + GAP_BYTES)) as f64
}
