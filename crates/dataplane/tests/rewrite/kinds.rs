//! Random frames of every kind.

use packet::header::options::Options;
use packet::header::{arp, icmp, icmpv6, ipv4, ipv6, mpls, pbb, tcp};

use crate::model::{Link, Model, Network, Transport};
use crate::rng::Rng;

/// Number of payload kinds.
pub const KINDS: u64 = 17;

/// Number of kinds of link headers.
pub const LINKS: u64 = 10;

fn address(dice: &mut Rng) -> u64 {
    dice.roll(1 << 48) & 0xfeff_ffff_ffff
}

fn wide(dice: &mut Rng) -> u128 {
    u128::from(dice.roll(1 << 50)) << 80
        | u128::from(dice.roll(1 << 50)) << 40
        | u128::from(dice.roll(1 << 40))
}

fn word(dice: &mut Rng) -> u16 {
    dice.roll(1 << 16) as u16
}

fn byte(dice: &mut Rng) -> u8 {
    dice.roll(256) as u8
}

fn mac(dice: &mut Rng) -> [u8; 6] {
    address(dice).to_be_bytes()[2..].try_into().unwrap()
}

fn v4(dice: &mut Rng) -> ipv4::Header {
    let ends = [(); 2].map(|()| (dice.roll(1 << 32) as u32).into());
    ipv4::Header {
        tos: byte(dice),
        ttl: byte(dice),
        identification: word(dice),
        dont_fragment: dice.roll(2) == 0,
        ..ipv4::Header::new(ends[0], ends[1])
    }
}

fn v6(dice: &mut Rng) -> ipv6::Header {
    ipv6::Header {
        traffic_class: byte(dice),
        flow_label: dice.roll(1 << 20) as u32,
        hop_limit: byte(dice),
        ..ipv6::Header::new(wide(dice).into(), wide(dice).into())
    }
}

/// Draws extension headers; a routing header has no segments left.
fn extensions(dice: &mut Rng) -> Vec<(u8, Vec<u8>)> {
    let count = dice.roll(3);
    let mut kinds: Vec<u8> = (0..count).map(|_| dice.pick(&[0, 43, 44, 51, 60])).collect();
    kinds.dedup();
    let rest = |kind: u8| if kind == 44 { vec![0, 0, 0, 1, 2, 3, 4] } else { vec![0; 7] };
    kinds.into_iter().map(|kind| (kind, rest(kind))).collect()
}

fn segment(dice: &mut Rng) -> tcp::Header {
    let mut header = tcp::Header::new(word(dice), word(dice), byte(dice) & 0x3f);
    header.sequence = dice.roll(1 << 32) as u32;
    if dice.roll(2) == 0 {
        header.options = Options::from_bytes(&[1, 3, 3, 7, 2, 4, 5, 0xb4]).unwrap();
    }
    header
}

fn neighbour(dice: &mut Rng, kind: u8) -> Transport {
    let count = dice.roll(4);
    let options = (0..count).map(|_| (dice.pick(&[1, 2, 14]), address(dice))).collect();
    Transport::Neighbour(icmpv6::Header::new(kind, 0, 0x6000_0000), wide(dice), options)
}

/// Draws a payload of this kind.
fn inside(kind: u64, dice: &mut Rng) -> (Network, Transport) {
    let ports = (word(dice), word(dice));
    let echo = icmp::Header::echo_request(ports.0, ports.1);
    match kind {
        0 => (Network::Ipv4(v4(dice)), Transport::Tcp(segment(dice))),
        1 => (Network::Ipv4(v4(dice)), Transport::Udp(ports.0, ports.1)),
        2 => (Network::Ipv4(v4(dice)), Transport::Sctp(ports.0, ports.1)),
        3 => (Network::Ipv4(v4(dice)), Transport::Icmp(echo)),
        4 => (Network::Ipv4(ipv4::Header { protocol: 89, ..v4(dice) }), Transport::None),
        5 => {
            let options = Options::from_bytes(&[7, 7, 4, 0, 0, 0, 0]).unwrap();
            (Network::Ipv4(ipv4::Header { options, ..v4(dice) }), Transport::Tcp(segment(dice)))
        }
        6 => {
            let header = ipv4::Header { more_fragments: true, ..v4(dice) };
            (Network::Ipv4(header), Transport::Udp(ports.0, ports.1))
        }
        7 => {
            let header = ipv4::Header { fragment_offset: 64, protocol: 6, ..v4(dice) };
            (Network::Ipv4(header), Transport::None)
        }
        8 => (Network::Ipv6(v6(dice), extensions(dice)), Transport::Tcp(segment(dice))),
        9 => (Network::Ipv6(v6(dice), extensions(dice)), Transport::Udp(ports.0, ports.1)),
        10 => (Network::Ipv6(v6(dice), extensions(dice)), Transport::Sctp(ports.0, ports.1)),
        11 => {
            let header = icmpv6::Header::new(128, byte(dice), 7);
            (Network::Ipv6(v6(dice), extensions(dice)), Transport::Icmpv6(header))
        }
        12 => (Network::Ipv6(v6(dice), Vec::new()), neighbour(dice, 135)),
        13 => (Network::Ipv6(v6(dice), extensions(dice)), neighbour(dice, 136)),
        14 => {
            let header = arp::Header {
                operation: word(dice),
                sender_mac: mac(dice),
                sender_ip: (dice.roll(1 << 32) as u32).into(),
                target_mac: mac(dice),
                target_ip: (dice.roll(1 << 32) as u32).into(),
            };
            (Network::Arp(header), Transport::None)
        }
        15 => (Network::Typed(0x88b5), Transport::None),
        _ => (Network::Llc, Transport::None),
    }
}

fn entry(dice: &mut Rng, bottom: bool) -> Link {
    let header = mpls::Header {
        label: dice.roll(1 << 20) as u32,
        class: dice.roll(8) as u8,
        bottom,
        ttl: byte(dice),
    };
    Link::Mpls(dice.pick(&[0x8847, 0x8848]), header)
}

fn customer(dice: &mut Rng) -> Link {
    Link::Pbb(pbb::Header {
        priority: dice.roll(8) as u8,
        drop_eligible: dice.roll(2) == 0,
        use_customer_addresses: dice.roll(2) == 0,
        isid: dice.roll(1 << 24) as u32,
        destination: mac(dice),
        source: mac(dice),
    })
}

/// Draws the link headers of this kind, with optional tags first.
fn links(kind: u64, dice: &mut Rng) -> Vec<Link> {
    let tag = |dice: &mut Rng| Link::Vlan(dice.pick(&[0x8100, 0x88a8]), word(dice));
    match kind {
        0 => vec![],
        1 => vec![tag(dice)],
        2 => vec![tag(dice), tag(dice)],
        3 => vec![Link::Snap],
        4 => vec![tag(dice), Link::Snap],
        5 => vec![entry(dice, true)],
        6 => vec![tag(dice), entry(dice, false), entry(dice, false), entry(dice, true)],
        7 => vec![Link::Snap, entry(dice, true)],
        8 => vec![tag(dice), customer(dice), tag(dice)],
        _ => vec![customer(dice)],
    }
}

/// Draws a frame with link headers and payload of these kinds.
pub fn frame(links_kind: u64, kind: u64, dice: &mut Rng) -> Model {
    let (network, transport) = inside(kind, dice);
    let mut links = links(links_kind, dice);
    if let Network::Llc = network {
        // A payload without a type requires link headers without a type.
        links.retain(|link| matches!(link, Link::Vlan(..) | Link::Pbb(_)));
    }
    // An LLC payload has at least three bytes.
    let least = if matches!(network, Network::Llc) { 3 } else { 0 };
    let length = least + dice.roll(90) as usize;
    let payload = match network {
        Network::Arp(_) => Vec::new(),
        // Not SNAP.
        Network::Llc => vec![0x42; length],
        _ => (0..length).map(|_| byte(dice)).collect(),
    };
    let covered = matches!(network, Network::Ipv4(_) | Network::Ipv6(..) | Network::Llc);
    Model {
        destination: address(dice),
        source: address(dice),
        links,
        network,
        transport,
        payload,
        trailer: if covered { dice.roll(9) as usize } else { 0 },
        metadata: dice.roll(1 << 50),
        tunnel_id: dice.roll(1 << 50),
    }
}
