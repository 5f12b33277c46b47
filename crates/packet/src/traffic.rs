//! Traffic counters by protocol and size, for a port or a stream.
//!
//! - A frame counts under each protocol that it carries. A VLAN-tagged UDP datagram counts under
//!   `vlan`, `ipv4` and `udp`.
//! - Frames without ARP, MPLS or IP count under `other`.
//! - IP packets with another protocol, and fragments other than the first, count under `other_ip`.
//! - Bytes exclude the FCS. The size classes are those of RFC 2819 (`etherStatsPkts64Octets` etc.),
//!   which include it.

use crate::frame::FCS_BYTES;
use crate::header::ethernet;
use crate::parse::{Layers, Network, Transport};

/// Maximum number of EtherTypes with a counter of their own. Further ones share a counter.
pub const TYPES_MAX: usize = 32;

/// Number of protocols.
const PROTOCOLS: usize = Protocol::ALL.len();

/// Number of size classes.
pub const SIZES: usize = 7;

/// Names of the size classes, in bytes including FCS.
pub const SIZE_NAMES: [&str; SIZES] =
    ["to_64", "65_to_127", "128_to_255", "256_to_511", "512_to_1023", "1024_to_1518", "from_1519"];

/// Upper limit of each size class except the last.
const SIZE_ENDS: [usize; SIZES - 1] = [64, 127, 255, 511, 1023, 1518];

/// Counted protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// IEEE 802.1Q or 802.1ad: at least one tag.
    Vlan,
    /// MPLS, unicast or multicast.
    Mpls,
    /// ARP.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// ICMP.
    Icmp,
    /// ICMPv6.
    Icmpv6,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// Any other protocol in IP.
    OtherIp,
    /// Any other protocol in Ethernet.
    Other,
}

/// Number of frames and of their bytes, without FCS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Frames.
    pub frames: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Classification of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Bit mask of the protocols.
    protocols: u16,
    ether_type: u16,
    size: u8,
    bytes: u32,
}

/// Traffic counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// All frames.
    pub total: Count,
    protocols: [Count; PROTOCOLS],
    sizes: [u64; SIZES],
    /// Counters by EtherType, in the order of their first frames.
    types: Vec<(u16, Count)>,
    /// Counter of frames with further EtherTypes.
    pub further_types: Count,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Protocol; 12] = [
        Protocol::Vlan,
        Protocol::Mpls,
        Protocol::Arp,
        Protocol::Ipv4,
        Protocol::Ipv6,
        Protocol::Icmp,
        Protocol::Icmpv6,
        Protocol::Tcp,
        Protocol::Udp,
        Protocol::Sctp,
        Protocol::OtherIp,
        Protocol::Other,
    ];

    /// Returns the name in lists.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Vlan => "vlan",
            Protocol::Mpls => "mpls",
            Protocol::Arp => "arp",
            Protocol::Ipv4 => "ipv4",
            Protocol::Ipv6 => "ipv6",
            Protocol::Icmp => "icmp",
            Protocol::Icmpv6 => "icmpv6",
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
            Protocol::OtherIp => "other_ip",
            Protocol::Other => "other",
        }
    }
}

impl Count {
    /// Adds frames and their total bytes.
    pub fn add(&mut self, frames: u64, bytes: u64) {
        self.frames += frames;
        self.bytes += bytes;
    }

    /// Returns the difference since `earlier`.
    pub fn since(self, earlier: Count) -> Count {
        Count {
            frames: self.frames.saturating_sub(earlier.frames),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

impl Class {
    /// Classifies a frame. `bytes_original` is its length, if `bytes` are truncated.
    #[inline]
    pub fn of(bytes: &[u8], bytes_original: usize) -> Self {
        let layers = Layers::of(bytes);
        let mut protocols = 0;
        let mut set = |protocol: Protocol| protocols |= 1 << protocol as u16;
        if layers.tags > 0 {
            set(Protocol::Vlan);
        }
        match layers.network {
            Network::Arp => set(Protocol::Arp),
            Network::Ipv4 => set(Protocol::Ipv4),
            Network::Ipv6 => set(Protocol::Ipv6),
            Network::None if is_mpls(layers.ether_type) => set(Protocol::Mpls),
            Network::None => set(Protocol::Other),
        }
        match layers.transport {
            Transport::Icmp => set(Protocol::Icmp),
            Transport::Icmpv6 => set(Protocol::Icmpv6),
            Transport::Tcp => set(Protocol::Tcp),
            Transport::Udp => set(Protocol::Udp),
            Transport::Sctp => set(Protocol::Sctp),
            Transport::None if matches!(layers.network, Network::Ipv4 | Network::Ipv6) => {
                set(Protocol::OtherIp);
            }
            Transport::None => {}
        }
        let with_fcs = bytes_original + FCS_BYTES;
        let size = SIZE_ENDS.iter().filter(|&&end| with_fcs > end).count() as u8;
        let bytes = u32::try_from(bytes_original).unwrap_or(u32::MAX);
        Class { protocols, ether_type: layers.ether_type, size, bytes }
    }
}

fn is_mpls(ether_type: u16) -> bool {
    matches!(ether_type, ethernet::TYPE_MPLS | ethernet::TYPE_MPLS_MULTICAST)
}

impl Traffic {
    /// Creates counters at zero.
    pub fn new() -> Self {
        Traffic::default()
    }

    /// Counts a frame.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        self.add_alike(Class::of(bytes, bytes.len()), 1);
    }

    /// Counts several frames of the same class.
    #[inline]
    pub fn add_alike(&mut self, class: Class, frames: u64) {
        if frames == 0 {
            return;
        }
        let bytes = frames * u64::from(class.bytes);
        self.total.add(frames, bytes);
        let mut left = class.protocols;
        while left != 0 {
            self.protocols[left.trailing_zeros() as usize].add(frames, bytes);
            left &= left - 1;
        }
        self.sizes[usize::from(class.size)] += frames;
        self.of_type(class.ether_type).add(frames, bytes);
    }

    #[inline]
    fn of_type(&mut self, ether_type: u16) -> &mut Count {
        let known = self.types.iter().position(|(known, _)| *known == ether_type);
        match known {
            Some(place) => &mut self.types[place].1,
            None if self.types.len() < TYPES_MAX => {
                self.types.push((ether_type, Count::default()));
                &mut self.types.last_mut().expect("an element was added above").1
            }
            None => &mut self.further_types,
        }
    }

    /// Returns the counter of a protocol.
    pub fn protocol(&self, protocol: Protocol) -> Count {
        self.protocols[protocol as usize]
    }

    /// Returns the frames of each size class, in the order of [`SIZE_NAMES`].
    pub fn sizes(&self) -> &[u64; SIZES] {
        &self.sizes
    }

    /// Returns the counters by EtherType after the tags. Type 0 counts IEEE 802.3 frames without
    /// one.
    pub fn types(&self) -> &[(u16, Count)] {
        &self.types
    }

    /// Adds the counters of `other`.
    pub fn merge(&mut self, other: &Traffic) {
        self.total.add(other.total.frames, other.total.bytes);
        for (own, other) in self.protocols.iter_mut().zip(&other.protocols) {
            own.add(other.frames, other.bytes);
        }
        for (own, other) in self.sizes.iter_mut().zip(&other.sizes) {
            *own += other;
        }
        for (ether_type, count) in &other.types {
            self.of_type(*ether_type).add(count.frames, count.bytes);
        }
        self.further_types.add(other.further_types.frames, other.further_types.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Builder;
    use crate::header::{ipv4, mpls};

    fn ethernet() -> Builder {
        Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
    }

    fn ip() -> ipv4::Header {
        ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
    }

    #[test]
    fn a_frame_counts_for_each_protocol_in_it() {
        let frames = [
            ethernet().vlan(5).ipv4(ip()).udp(1, 2).payload(&[0; 100]).bytes(),
            ethernet().ipv4(ipv4::Header { protocol: 47, ..ip() }).payload(&[0; 30]).bytes(),
            ethernet()
                .mpls(mpls::Header { label: 7, class: 0, bottom: true, ttl: 9 })
                .payload(&[0; 50])
                .bytes(),
            ethernet().ether_type(0x88b5).payload(&[0; 1600]).bytes(),
            vec![0; 5],
        ];
        let mut traffic = Traffic::new();
        frames.iter().for_each(|frame| traffic.add(frame));
        let counted = |protocol| traffic.protocol(protocol).frames;
        assert_eq!(traffic.total.frames, 5);
        assert_eq!(traffic.total.bytes, frames.iter().map(|it| it.len() as u64).sum::<u64>());
        for (protocol, frames) in [
            (Protocol::Vlan, 1),
            (Protocol::Ipv4, 2),
            (Protocol::Udp, 1),
            (Protocol::OtherIp, 1),
            (Protocol::Mpls, 1),
            (Protocol::Other, 2),
            (Protocol::Tcp, 0),
            (Protocol::Arp, 0),
        ] {
            assert_eq!(counted(protocol), frames, "{}", protocol.name());
        }
        assert_eq!(traffic.protocol(Protocol::Vlan).bytes, frames[0].len() as u64);
        assert_eq!(traffic.sizes().iter().sum::<u64>(), 5);
        assert_eq!((traffic.sizes()[6], traffic.sizes()[2]), (1, 1));
        let long = Count { frames: 1, bytes: frames[3].len() as u64 };
        assert!(traffic.types().contains(&(0x88b5, long)));
    }

    #[test]
    fn sizes_include_the_frame_check_sequence() {
        let class = |bytes: usize| usize::from(Class::of(&[0; 20], bytes).size);
        for (place, &end) in SIZE_ENDS.iter().enumerate() {
            assert_eq!((class(end - 4), class(end - 3)), (place, place + 1));
        }
    }

    #[test]
    fn excess_types_share_a_counter_and_the_sums_agree() {
        let (mut one, mut other) = (Traffic::new(), Traffic::new());
        let frame = |kind: u16| ethernet().ether_type(0x9000 + kind).payload(&[0; 46]).bytes();
        (0..20).for_each(|kind| one.add(&frame(kind)));
        (10..50).for_each(|kind| other.add(&frame(kind)));
        one.merge(&other);
        assert_eq!((one.total.frames, one.types().len()), (60, TYPES_MAX));
        let reported: u64 = one.types().iter().map(|(_, count)| count.frames).sum();
        assert_eq!(reported + one.further_types.frames, 60);
        let mut alike = Traffic::new();
        alike.add_alike(Class::of(&frame(3), 60), 7);
        assert_eq!(alike.total, Count { frames: 7, bytes: 420 });
        assert_eq!(one.total.since(alike.total).frames, 53);
    }
}
