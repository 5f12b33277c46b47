//! A stream: frames alike but for a few varying fields, sent at a constant rate from one port and
//! expected at another.
//!
//! Frame sizes count the frame check sequence, as the standards do: 64 bytes are 60 in memory.
//! Line rate is C / (8 (L + 20)): preamble and gap cost 20 bytes for each frame (RFC 2544, 20).
//! What a frame of a stream looks like is a pure function of the stream and the frame's sequence
//! number, so that the monitor can tell every byte that a received frame ought to have.

use std::net::Ipv4Addr;

use packet::frame::FCS_BYTES;

use crate::mix::{below, mix};
use crate::signature::SIGNATURE_BYTES;

/// What is wrong with a stream.
mod problem;
/// Streams from a TOML file.
pub mod file;

pub use problem::{Problem, validate};

/// Bytes that a frame costs on a link besides its own: preamble, start delimiter and gap.
pub const GAP_BYTES: usize = 20;

/// Bytes of Ethernet, IPv4 and UDP headers before the signature, in an untagged frame.
pub const HEADER_BYTES: usize = 14 + 20 + 8;

/// Bytes that an 802.1Q tag adds.
pub const TAG_BYTES: usize = 4;

/// Values in one list of a varying field.
pub const LIST_VALUES_MAX: usize = 1 << 20;

/// Groups of varying fields in one stream.
pub const VARY_GROUPS_MAX: usize = 8;

/// Frames that are alike but for varying fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// The number that its frames carry; unique within a trial.
    pub id: u16,
    /// The rig's port that it leaves from, counted from 0.
    pub from: usize,
    /// The rig's port where its frames should arrive, counted from 0.
    pub to: usize,
    /// Frame size in bytes, frame check sequence included.
    pub frame_bytes: usize,
    /// The headers of a frame, before any field varies.
    pub headers: Headers,
    /// What differs from frame to frame.
    pub vary: Vec<Vary>,
    /// How many frames per second.
    pub rate: Rate,
    /// How a frame ought to look when it arrives.
    pub arrival: Arrival,
}

/// The header fields of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// Ethernet source.
    pub mac_source: [u8; 6],
    /// Ethernet destination.
    pub mac_destination: [u8; 6],
    /// 802.1Q tag, if the frame has one.
    pub vlan: Option<Vlan>,
    /// IPv4 source.
    pub ip_source: Ipv4Addr,
    /// IPv4 destination.
    pub ip_destination: Ipv4Addr,
    /// IPv4 time to live.
    pub ttl: u8,
    /// IPv4 type of service, the whole octet.
    pub tos: u8,
    /// IPv4 protocol. Whatever it says, a UDP header follows: the ports are where TCP has its own, and
    /// type and code of ICMP are the source port's bytes.
    pub ip_protocol: u8,
    /// UDP source port.
    pub port_source: u16,
    /// UDP destination port.
    pub port_destination: u16,
}

/// An 802.1Q tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vlan {
    /// VLAN identifier, 0 to 4095.
    pub id: u16,
    /// Priority, 0 to 7.
    pub priority: u8,
}

/// Fields that vary together: one index is drawn for each frame, and sets all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vary {
    /// The index runs from 0 to below this.
    pub count: u64,
    /// How the index goes from frame to frame.
    pub order: Order,
    /// Each field, and its value for each index.
    pub fields: Vec<(Field, Values)>,
}

/// How an index goes from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// 0, 1, 2 ... count - 1, 0, 1 ...
    Sequential,
    /// Uniform and independent, from this seed.
    Random {
        /// Equal seeds give equal draws.
        seed: u64,
    },
    /// Independent, from this seed, the index `i` about as often as `1 / (i + 1)` says (Zipf's law): of
    /// any two octaves of indices one is drawn as often as the other.
    Zipf {
        /// Equal seeds give equal draws.
        seed: u64,
    },
}

/// A header field that can vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// Ethernet source, 48 bits.
    MacSource,
    /// Ethernet destination, 48 bits.
    MacDestination,
    /// VLAN identifier, 12 bits; only in tagged streams.
    VlanId,
    /// IPv4 protocol, 8 bits.
    IpProtocol,
    /// IPv4 source, 32 bits.
    IpSource,
    /// IPv4 destination, 32 bits.
    IpDestination,
    /// UDP source port, 16 bits.
    PortSource,
    /// UDP destination port, 16 bits.
    PortDestination,
}

/// The value that a field takes for each index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// The index chooses from a list of `count` values.
    List(Vec<u64>),
    /// `first + index * step`, cut to the field's width.
    Range {
        /// Value at index 0.
        first: u64,
        /// Added for each index.
        step: u64,
    },
    /// A value that looks random but is the same for the same seed and index. Addresses stay
    /// sane: a MAC is unicast and locally administered, an IPv4 address lies in 10.0.0.0/8, a
    /// port is not 0, a protocol is one for experiments.
    Scattered {
        /// Equal seeds give equal values.
        seed: u64,
    },
}

/// How many frames per second a stream sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Frames per second, kept to a millionth of a frame.
    FramesPerSecond(f64),
    /// Percent of what a link of this capacity carries at the stream's frame size.
    LinkPercent {
        /// 100 is line rate; more is allowed.
        percent: f64,
        /// Nominal capacity, bit/s.
        link_bits_per_second: u64,
    },
}

/// How a frame ought to look when it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

impl Stream {
    /// The smallest frame that can carry this stream's headers and signature, frame check
    /// sequence included.
    pub fn frame_bytes_min(&self) -> usize {
        self.signature_offset() + SIGNATURE_BYTES + FCS_BYTES
    }

    /// Where the signature begins in a frame as it is sent.
    pub fn signature_offset(&self) -> usize {
        HEADER_BYTES + if self.headers.vlan.is_some() { TAG_BYTES } else { 0 }
    }

    /// Frames per second that the stream intends.
    pub fn rate_pps(&self) -> f64 {
        self.rate.pps(self.frame_bytes)
    }

    /// How many different headers its frames can have.
    pub fn flow_count(&self) -> u64 {
        self.vary.iter().fold(1u64, |product, group| product.saturating_mul(group.count.max(1)))
    }

    /// The headers of flow number `flow`, below [`Stream::flow_count`]: what to install so that
    /// every frame of the stream is known.
    pub fn flow(&self, flow: u64) -> Headers {
        let mut headers = self.headers;
        let mut rest = flow;
        for group in &self.vary {
            let count = group.count.max(1);
            group.apply(rest % count, &mut headers);
            rest /= count;
        }
        headers
    }

    /// The headers of the frame with this sequence number.
    pub fn headers_at(&self, sequence: u64) -> Headers {
        let mut headers = self.headers;
        for group in &self.vary {
            group.apply(group.index_at(sequence), &mut headers);
        }
        headers
    }
}

impl Headers {
    /// Sets one field; bits beyond its width are ignored.
    pub fn set(&mut self, field: Field, value: u64) {
        let mac = || -> [u8; 6] { value.to_be_bytes()[2..].try_into().expect("six bytes") };
        match field {
            Field::MacSource => self.mac_source = mac(),
            Field::MacDestination => self.mac_destination = mac(),
            Field::VlanId => {
                if let Some(vlan) = &mut self.vlan {
                    vlan.id = value as u16 & 0xfff;
                }
            }
            Field::IpProtocol => self.ip_protocol = value as u8,
            Field::IpSource => self.ip_source = Ipv4Addr::from(value as u32),
            Field::IpDestination => self.ip_destination = Ipv4Addr::from(value as u32),
            Field::PortSource => self.port_source = value as u16,
            Field::PortDestination => self.port_destination = value as u16,
        }
    }
}

impl Vary {
    /// The index that the frame with this sequence number draws.
    #[inline]
    pub fn index_at(&self, sequence: u64) -> u64 {
        self.order.index_at(sequence, self.count)
    }

    fn apply(&self, index: u64, headers: &mut Headers) {
        for (field, values) in &self.fields {
            headers.set(*field, values.at(*field, index));
        }
    }
}

impl Order {
    /// The index below `count` that the frame with this sequence number draws.
    #[inline]
    pub fn index_at(self, sequence: u64, count: u64) -> u64 {
        match self {
            Order::Sequential => sequence % count.max(1),
            Order::Random { seed } => below(mix(seed ^ mix(sequence)), count.max(1)),
            Order::Zipf { seed } => zipf(mix(seed ^ mix(sequence)), count.max(1)),
        }
    }
}

impl Values {
    /// The value at `index`, within the field's width. An index past a list's end wraps.
    #[inline]
    pub fn at(&self, field: Field, index: u64) -> u64 {
        match self {
            Values::List(list) if list.is_empty() => 0,
            Values::List(list) => list[(index % list.len() as u64) as usize],
            Values::Range { first, step } => {
                first.wrapping_add(index.wrapping_mul(*step)) & field.mask()
            }
            Values::Scattered { seed } => Values::scattered(field, *seed, mix(index)),
        }
    }

    /// The scattered value at the index that is `stirred`.
    #[inline]
    pub(crate) fn scattered(field: Field, seed: u64, stirred: u64) -> u64 {
        field.sane(mix(seed ^ stirred))
    }
}

impl Field {
    /// Ones where the field has bits.
    pub fn mask(self) -> u64 {
        match self {
            Field::MacSource | Field::MacDestination => 0xffff_ffff_ffff,
            Field::IpSource | Field::IpDestination => 0xffff_ffff,
            Field::PortSource | Field::PortDestination => 0xffff,
            Field::VlanId => 0xfff,
            Field::IpProtocol => 0xff,
        }
    }

    /// A value that no network refuses, made from random bits.
    fn sane(self, bits: u64) -> u64 {
        match self {
            Field::MacSource | Field::MacDestination => bits & 0xfcff_ffff_ffff | 0x0200_0000_0000,
            Field::IpSource | Field::IpDestination => 0x0a00_0001 + below(bits, 0xff_fffe),
            Field::PortSource | Field::PortDestination => below(bits, 0xffff) + 1,
            Field::VlanId => below(bits, 4094) + 1,
            // Those set aside for experiments (RFC 3692, section 2.1).
            Field::IpProtocol => 253 + below(bits, 2),
        }
    }
}

impl Rate {
    /// Frames per second for frames of this size (frame check sequence included).
    pub fn pps(self, frame_bytes: usize) -> f64 {
        match self {
            Rate::FramesPerSecond(pps) => pps,
            Rate::LinkPercent { percent, link_bits_per_second } => {
                percent / 100.0 * line_rate_pps(link_bits_per_second, frame_bytes)
            }
        }
    }
}

/// An index below `count` by Zipf's law, from random bits: the power of two of an exponent that is
/// uniform up to the logarithm of `count + 1`, less one.
#[inline]
fn zipf(bits: u64, count: u64) -> u64 {
    let uniform = (bits >> 11) as f64 / (1u64 << 53) as f64;
    let exponent = uniform * ((count + 1) as f64).log2();
    let (octave, part) = (exponent as u32, exponent.fract());
    // Two to the power of a number from 0 to 1, to a part in 500.
    let power = 1.0 + part * (0.6565 + 0.3435 * part);
    let index = (power * (1u64 << octave.min(62)) as f64) as u64 - 1;
    index.min(count - 1)
}

/// Frames per second that a link of `link_bits_per_second` carries, C / (8 (L + 20)).
pub fn line_rate_pps(link_bits_per_second: u64, frame_bytes: usize) -> f64 {
    link_bits_per_second as f64 / (8 * (frame_bytes + GAP_BYTES)) as f64
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Field::MacSource => "mac_source",
            Field::MacDestination => "mac_destination",
            Field::VlanId => "vlan_id",
            Field::IpProtocol => "ip_protocol",
            Field::IpSource => "ip_source",
            Field::IpDestination => "ip_destination",
            Field::PortSource => "port_source",
            Field::PortDestination => "port_destination",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_draws_small_indices_as_often_as_its_law_says() {
        for count in [1u64, 2, 1000, 131_072] {
            let order = Order::Zipf { seed: 3 };
            let drawn = |frame| order.index_at(frame, count);
            assert!((0..100_000).all(|frame| drawn(frame) < count));
            let of_first = |places: u64| {
                let hits = (0..100_000).filter(|&frame| drawn(frame) < places).count() as f64;
                let wanted = ((places.min(count) + 1) as f64).ln() / ((count + 1) as f64).ln();
                assert!((hits / 1e5 - wanted).abs() < 0.01, "{hits} of the first {places}");
            };
            [1, 7, 100, 10_000].into_iter().for_each(of_first);
        }
    }
}
