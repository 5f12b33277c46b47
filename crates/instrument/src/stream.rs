//! A stream: frames alike but for a few varying fields and sizes, sent from one port on a schedule and
//! expected at another.
//!
//! Frame sizes count the frame check sequence, as the standards do: 64 bytes are 60 in memory.
//! Line rate is C / (8 (L + 20)): preamble and gap cost 20 bytes for each frame (RFC 2544, 20).
//! What a frame of a stream looks like is a pure function of the stream and the frame's sequence
//! number, so that the monitor can tell every byte that a received frame ought to have.

use packet::frame::FCS_BYTES;

use crate::signature::SIGNATURE_BYTES;

/// The headers of frames.
pub mod headers;
/// What differs from frame to frame.
pub mod vary;
/// When frames leave.
pub mod shape;
/// Sequences of frame sizes.
pub mod genome;
/// What is wrong with a stream.
mod problem;
/// Streams from a TOML file.
pub mod file;

pub use genome::Genome;
pub use headers::{HEADER_BYTES, Headers, Label, Layout, Network, TAG_BYTES, Transport, Vlan};
pub use problem::{Problem, validate};
pub use shape::Shape;
pub use vary::{Field, LIST_VALUES_MAX, Order, VARY_GROUPS_MAX, Values, Vary, Weights};

/// Bytes that a frame costs on a link besides its own: preamble, start delimiter and gap.
pub const GAP_BYTES: usize = 20;

/// Frames that are alike but for varying fields and sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// The number that its frames carry; unique within a trial.
    pub id: u16,
    /// The rig's port that it leaves from, counted from 0.
    pub from: usize,
    /// The rig's port where its frames should arrive, counted from 0.
    pub to: usize,
    /// Frame size in bytes, frame check sequence included; of a stream with a genome the largest.
    pub frame_bytes: usize,
    /// The sizes of its frames, one after the other, if they differ.
    pub genome: Option<Genome>,
    /// The headers of a frame, before any field varies.
    pub headers: Headers,
    /// What differs from frame to frame.
    pub vary: Vec<Vary>,
    /// How many frames per second.
    pub rate: Rate,
    /// How the rate becomes moments.
    pub shape: Shape,
    /// Where the signature begins in a frame as it is sent, in bytes from the frame's beginning; left out
    /// behind the headers.
    pub signature_at: Option<usize>,
    /// How a frame ought to look when it arrives.
    pub arrival: Arrival,
}

/// How many frames per second a stream sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Frames per second, kept to a millionth of a frame.
    FramesPerSecond(f64),
    /// Percent of what a link of this capacity carries at the stream's frame size, or at the mean of
    /// its sizes.
    LinkPercent {
        /// 100 is line rate; more is allowed.
        percent: f64,
        /// Nominal capacity, bit/s.
        link_bits_per_second: u64,
    },
}

/// How a frame ought to look when it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// As it left.
    Unchanged,
    /// As a router sends it on: new Ethernet addresses, TTL one less, header checksum to match.
    Routed {
        /// Ethernet source that the router puts in.
        mac_source: [u8; 6],
        /// Ethernet destination that the router puts in.
        mac_destination: [u8; 6],
    },
    /// With a VLAN tag behind its addresses, which it left without: all with this one, or, of several of one
    /// kind, with that of the index that the frame draws in the stream's first group.
    Tagged(Vec<Vlan>),
    /// Without the VLAN tag that it left with.
    Untagged,
    /// A loopback message as whom it asked sends it back: from there, with all that it carries.
    Answered,
}

impl Stream {
    /// A stream from port 0 to port 1 that is as plain as can be: one size, one header, evenly sent.
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
            shape: Shape::Constant,
            signature_at: None,
            arrival: Arrival::Unchanged,
        }
    }

    /// The same with the sizes of this genome.
    #[must_use]
    pub fn with_genome(self, genome: Genome) -> Self {
        let frame_bytes = genome.sizes().iter().copied().max().unwrap_or(self.frame_bytes);
        Stream { frame_bytes, genome: Some(genome), ..self }
    }

    /// The smallest frame that can carry this stream's headers and signature, frame check
    /// sequence included.
    pub fn frame_bytes_min(&self) -> usize {
        let end = self.signature_offset() + SIGNATURE_BYTES;
        let end = match self.headers.transport {
            _ if !self.headers.network.has_transport() => {
                end + self.headers.network.trailer_bytes()
            }
            // What is behind a packet of whole words is padding, and the signature is not to lie there.
            Transport::Sctp { .. } => {
                let at = self.headers.layout().transport_at;
                at + (end - at).next_multiple_of(4)
            }
            _ => end,
        };
        end + FCS_BYTES
    }

    /// The sizes of its frames, each once.
    pub fn sizes(&self) -> &[usize] {
        self.genome.as_ref().map_or(std::slice::from_ref(&self.frame_bytes), Genome::sizes)
    }

    /// Where the signature begins in a frame as it is sent.
    pub fn signature_offset(&self) -> usize {
        self.signature_at.unwrap_or_else(|| self.headers.layout().payload_at)
    }

    /// Frames per second that the stream intends; of one that is on and off while it is on, of a ramp at
    /// its beginning.
    pub fn rate_pps(&self) -> f64 {
        self.rate.pps_of(self.mean_bytes())
    }

    /// The mean of its frames' sizes, frame check sequence included.
    pub fn frame_bytes_mean(&self) -> f64 {
        let (bytes, frames) = self.mean_bytes();
        bytes as f64 / frames as f64
    }

    /// How many bytes so many of its frames have together, frame check sequences included.
    pub(crate) fn mean_bytes(&self) -> (u64, u64) {
        match &self.genome {
            None => (self.frame_bytes as u64, 1),
            Some(genome) => (genome.bytes(), genome.frames()),
        }
    }

    /// How many different headers its frames can have.
    pub fn flow_count(&self) -> u64 {
        self.vary.iter().fold(1u64, |product, group| product.saturating_mul(group.count.max(1)))
    }

    /// The headers of flow number `flow`, below [`Stream::flow_count`]: what to install so that
    /// every frame of the stream is known.
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

    /// The stream whose frames are as those of this one with these tags put on.
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

    /// The stream whose frames are as those of this one with their tag taken off.
    pub(crate) fn untagged(&self) -> Stream {
        let mut stream = self.clone();
        stream.signature_at = Some(self.signature_offset().saturating_sub(TAG_BYTES));
        stream.headers.vlans.clear();
        stream
    }

    /// The headers of what answers its frames.
    pub(crate) fn answer(&self) -> Headers {
        let mut answer = self.headers.clone();
        std::mem::swap(&mut answer.mac_source, &mut answer.mac_destination);
        if let Network::Loopback { answers, .. } = &mut answer.network {
            *answers = true;
        }
        answer
    }

    /// The headers of the frame with this sequence number.
    pub fn headers_at(&self, sequence: u64) -> Headers {
        let mut headers = self.headers.clone();
        for group in &self.vary {
            headers.vary(group, group.index_at(sequence));
        }
        headers
    }
}

impl Headers {
    fn vary(&mut self, group: &Vary, index: u64) {
        for (field, values) in &group.fields {
            self.set(*field, values.at(*field, index));
        }
    }
}

impl Rate {
    /// Frames per second for frames of this size (frame check sequence included).
    pub fn pps(self, frame_bytes: usize) -> f64 {
        self.pps_of((frame_bytes as u64, 1))
    }

    /// Frames per second where so many frames have so many bytes together.
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

/// Frames per second that a link of `link_bits_per_second` carries, C / (8 (L + 20)).
pub fn line_rate_pps(link_bits_per_second: u64, frame_bytes: usize) -> f64 {
    link_bits_per_second as f64 / (8 * (frame_bytes + GAP_BYTES)) as f64
}
