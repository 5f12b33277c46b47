//! Tests of key extraction with handwritten frames, and of the fast path against the general one.

use super::wide::{Family, Wide, WordSet};
use super::*;
use crate::rng::Rng;
use packet::parse::{Fragment, Packet, Transport};

const ETH: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

/// Builds an Ethernet frame from the parts that follow the addresses.
fn frame(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = ETH.to_vec();
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// Builds an IPv4 header of 20 bytes from 10.0.0.1 to 10.0.0.2 with this total length, fragment
/// word and protocol.
fn ipv4(total: u16, fragment: u16, proto: u8) -> Vec<u8> {
    let mut header = vec![0x45, 0xbb];
    header.extend_from_slice(&total.to_be_bytes());
    header.extend_from_slice(&[0, 1]);
    header.extend_from_slice(&fragment.to_be_bytes());
    header.extend_from_slice(&[64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    header
}

const UDP: [u8; 8] = [0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0];

fn fields(key: &Key, wanted: &[Field]) -> Vec<u64> {
    wanted.iter().map(|&field| key.get(field)).collect()
}

const L4: [Field; 2] = [Field::L4Src, Field::L4Dst];

#[test]
fn fields_do_not_share_bits() {
    for field in Field::ALL {
        let key = Key::ZERO.with(field, u64::MAX);
        for other in Field::ALL {
            let wanted = if other == field { field.full() } else { 0 };
            assert_eq!(key.get(other), wanted, "{field:?} read as {other:?}");
        }
        assert_eq!(Key::FULL.with(field, 0).with(field, u64::MAX), Key::FULL);
    }
}

#[test]
fn an_untagged_udp_frame_has_all_fields() {
    let bytes = frame(&[&[8, 0], &ipv4(28, 0x4000, 17), &UDP]);
    let key = extract(7, &bytes);
    assert_eq!(Some(key), extract_plain(7, &bytes, bytes.len()));
    let all = fields(&key, &Field::ALL);
    let wanted = [
        7,
        0x0200_0000_0001,
        0x0200_0000_0002,
        0,
        0,
        0,
        0x0800,
        0x2e,
        17,
        0x0a00_0001,
        0x0a00_0002,
        1234,
        5678,
    ];
    assert_eq!(all, wanted);
}

#[test]
fn the_outermost_tag_gives_the_vlan_and_the_innermost_the_type() {
    let tagged = frame(&[&[0x81, 0, 0xa0, 5, 8, 0], &ipv4(28, 0, 17), &UDP]);
    let key = extract(1, &tagged);
    assert_eq!(fields(&key, &[Field::Vlan, Field::VlanPriority]), [VLAN_PRESENT | 5, 5]);
    assert_eq!(fields(&key, &L4), [1234, 5678]);
    let twice = frame(&[&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5, 8, 0], &ipv4(28, 0, 17), &UDP]);
    let key = extract(1, &twice);
    assert_eq!(fields(&key, &[Field::Vlan, Field::EthType]), [VLAN_PRESENT | 9, 0x0800]);
    assert_eq!(fields(&key, &L4), [1234, 5678]);
    for (at, tag_type) in vlan::TAG_TYPES.into_iter().enumerate() {
        let [high, low] = tag_type.to_be_bytes();
        let twice = frame(&[&[0x81, 0, 0, 9, high, low, 0, 5, 8, 0]]);
        assert_eq!(extract(1, &twice).get(Field::SecondTag), at as u64 + 1);
        assert_eq!(second_tag_type(second_tag(tag_type)), Some(tag_type));
        // The frame ends after the second tag's type.
        assert_eq!(extract(1, &twice[..18]).get(Field::SecondTag), at as u64 + 1);
        assert_eq!(extract(1, &twice[..17]).get(Field::SecondTag), 0);
    }
    assert_eq!((second_tag(0x0800), second_tag_type(0)), (0, None));
}

#[test]
fn fragments_have_no_l4_fields() {
    for fragment in [0x2000, 0x2001, 0x0001] {
        let bytes = frame(&[&[8, 0], &ipv4(28, fragment, 17), &UDP]);
        let key = extract(1, &bytes);
        assert_eq!(fields(&key, &L4), [0, 0]);
        assert_eq!(fields(&key, &[Field::IpProto, Field::IpDst]), [17, 0x0a00_0002]);
        assert!(is_fragment(&bytes));
    }
    assert!(!is_fragment(&frame(&[&[8, 0], &ipv4(28, 0x4000, 17), &UDP])));
}

#[test]
fn inconsistent_lengths_give_no_fields() {
    let short_udp = extract(1, &frame(&[&[8, 0], &ipv4(27, 0, 17), &UDP]));
    assert_eq!(fields(&short_udp, &L4), [0, 0]);
    assert_eq!(short_udp.get(Field::IpProto), 17);
    for total in [19, 47] {
        let key = extract(1, &frame(&[&[8, 0], &ipv4(total, 0, 17), &UDP]));
        assert_eq!(fields(&key, &[Field::EthType, Field::IpSrc]), [0x0800, 0]);
    }
    let mut bad_header = frame(&[&[8, 0], &ipv4(28, 0, 17), &UDP]);
    bad_header[14] = 0x44;
    assert_eq!(extract(1, &bad_header).get(Field::IpSrc), 0);
}

#[test]
fn arp_icmp_and_tcp_use_the_shared_fields() {
    let arp =
        [0, 1, 8, 0, 6, 4, 1, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9];
    let key = extract(1, &frame(&[&[8, 6], &arp]));
    let shared = [Field::IpProto, Field::IpSrc, Field::IpDst];
    assert_eq!(fields(&key, &shared), [2, 0x0a00_0001, 0x0a00_0009]);
    let icmp = extract(1, &frame(&[&[8, 0], &ipv4(28, 0, 1), &[8, 3, 0, 0, 0, 0, 0, 0]]));
    assert_eq!(fields(&icmp, &L4), [8, 3]);
    let tcp = [0, 80, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0];
    let tcp = extract(1, &frame(&[&[8, 0], &ipv4(40, 0, 6), &tcp]));
    assert_eq!(fields(&tcp, &L4), [80, 256]);
}

#[test]
fn frames_with_a_length_have_the_snap_type_or_none() {
    let snap = frame(&[&[0, 50, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ipv4(28, 0, 17), &UDP]);
    let key = extract(1, &snap);
    assert_eq!(fields(&key, &[Field::EthType, Field::IpProto, Field::L4Src]), [0x0800, 17, 1234]);
    let foreign = frame(&[&[0, 50, 0xaa, 0xaa, 3, 0, 0, 1, 8, 0]]);
    assert_eq!(extract(1, &foreign).get(Field::EthType), u64::from(ETH_TYPE_NONE));
    let llc = frame(&[&[0, 38, 0x42, 0x42, 3]]);
    assert_eq!(extract(1, &llc).get(Field::EthType), u64::from(ETH_TYPE_NONE));
}

#[test]
fn the_fast_path_agrees_with_the_general_path_for_any_bytes() {
    let seeds = [
        frame(&[&[8, 0], &ipv4(28, 0x4000, 17), &UDP]),
        frame(&[&[8, 0], &ipv4(46, 0, 6), &[1; 26]]),
        frame(&[&[0x81, 0, 0xa0, 5, 8, 0], &ipv4(28, 0, 17), &UDP]),
    ];
    let mut quick = 0;
    for seed in &seeds {
        for length in 0..=seed.len() {
            extract(3, &seed[..length]);
        }
        for at in 0..seed.len() {
            for value in 0..=255u8 {
                let mut bytes = seed.clone();
                bytes[at] = value;
                if let Some(key) = extract_plain(3, &bytes, bytes.len()) {
                    assert_eq!(key, extract_any(3, &bytes), "byte {at} set to {value}");
                    quick += 1;
                }
            }
        }
    }
    assert!(quick > 10_000, "the fast path was hardly used: {quick}");
}

/// Builds the key with the packet crate's parser, which is validated against third-party captures.
fn from_layers(port: PortNo, bytes: &[u8]) -> Key {
    let packet = Packet::of(bytes);
    let mut key = Key::ZERO.with(Field::InPort, port.into());
    let Some(link) = packet.ethernet() else { return key };
    let mac = |mac: [u8; 6]| mac.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    key.set(Field::EthDst, mac(link.destination()));
    key.set(Field::EthSrc, mac(link.source()));
    if let Some(tag) = packet.vlan(0) {
        key.set(Field::Vlan, VLAN_PRESENT | u64::from(tag.vid()));
        key.set(Field::VlanPriority, tag.priority().into());
        key.set(Field::SecondTag, second_tag(u16_at(bytes, 16)));
    }
    key.set(Field::EthType, packet.layers.ether_type.into());
    if let Some(arp) = packet.arp() {
        key.set(Field::IpProto, arp.operation().into());
        key.set(Field::IpSrc, arp.sender_ip().to_bits().into());
        key.set(Field::IpDst, arp.target_ip().to_bits().into());
    }
    if let Some(ip) = packet.ipv4() {
        key.set(Field::IpDscp, u64::from(ip.tos() >> 2));
        key.set(Field::IpProto, ip.protocol().into());
        key.set(Field::IpSrc, ip.source().to_bits().into());
        key.set(Field::IpDst, ip.destination().to_bits().into());
        let l4 = packet.transport_bytes().unwrap_or_default();
        match packet.layers.transport {
            _ if packet.layers.fragment != Fragment::Whole => {}
            Transport::Tcp | Transport::Udp => {
                key.set(Field::L4Src, number(&l4[..2]));
                key.set(Field::L4Dst, number(&l4[2..4]));
            }
            Transport::Icmp => {
                key.set(Field::L4Src, l4[0].into());
                key.set(Field::L4Dst, l4[1].into());
            }
            _ => {}
        }
    }
    key
}

#[test]
fn keys_agree_with_the_packet_parser() {
    let seeds = [
        frame(&[&[8, 0], &ipv4(28, 0x4000, 17), &UDP]),
        frame(&[&[8, 0], &ipv4(46, 0, 6), &[0x50; 26]]),
        frame(&[&[8, 0], &ipv4(30, 0, 1), &[8, 0, 1, 2, 3, 4, 5, 6, 7, 8]]),
        frame(&[&[0x81, 0, 0xa0, 5, 8, 0], &ipv4(28, 0, 17), &UDP]),
        frame(&[&[0, 50, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ipv4(28, 0, 17), &UDP]),
        frame(&[&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[9; 20]]),
    ];
    let mut dice = Rng::new(1);
    let mut compared = 0;
    for _ in 0..200_000 {
        let mut bytes = seeds[dice.roll(seeds.len() as u64) as usize].clone();
        for _ in 0..dice.roll(3) {
            let at = 12 + dice.roll(36) as usize;
            bytes[at] = dice.roll(256) as u8;
        }
        bytes.truncate(60 - (dice.roll(2) * dice.roll(60)) as usize);
        if Packet::of(&bytes).layers.tags < 2 {
            assert_eq!(extract(3, &bytes), from_layers(3, &bytes), "{bytes:02x?}");
            compared += 1;
        }
    }
    assert!(compared > 190_000);
}

#[test]
fn the_hash_depends_on_every_bit_and_on_the_seed() {
    let key = extract(1, &frame(&[&[8, 0], &ipv4(28, 0, 17), &UDP]));
    let hash = key.hash(1);
    assert_ne!(hash, key.hash(2));
    for bit in 0..256 {
        let mut other = key;
        other.0[bit / 64] ^= 1 << (bit % 64);
        let changed = (other.hash(1) ^ hash).count_ones();
        assert!((12..=52).contains(&changed), "bit {bit} changes {changed} bits");
    }
}

/// Builds a frame with a tag, an IPv6 header with a hop-by-hop header, and a neighbor solicitation
/// with its option.
fn solicitation() -> Vec<u8> {
    let mut ipv6 = vec![0x6b, 0x81, 0x23, 0x45, 0, 40, 0, 255];
    ipv6.extend([0xfe; 16]);
    ipv6.extend([0xff; 16]);
    let hop = [58, 0, 1, 4, 0, 0, 0, 0];
    let mut icmp = vec![135, 0, 0, 0, 0, 0, 0, 0];
    icmp.extend([0xab; 16]);
    icmp.extend([1, 1, 2, 0, 0, 0, 0, 7]);
    frame(&[&[0x81, 0, 0x20, 9, 0x86, 0xdd], &ipv6, &hop, &icmp])
}

#[test]
fn wide_fields_are_extracted_only_if_required() {
    use packet::field::Field as F;
    let bytes = solicitation();
    let (key, mut wide) = (extract(1, &bytes), Wide::ZERO);
    assert_eq!(fields(&key, &[Field::Vlan, Field::EthType]), [VLAN_PRESENT | 9, 0x86dd]);
    wide::extract(&bytes, WordSet::MAX, &mut wide);
    let get = |field| wide::get(field, Family::Ipv6, &key, &wide);
    let wanted = [
        (F::IpDscp, 0x2e),
        (F::IpEcn, 0),
        (F::IpProto, 58),
        (F::Ipv6Flabel, 0x1_2345),
        (F::Ipv6Src, u128::from_be_bytes([0xfe; 16])),
        (F::Ipv6Dst, u128::MAX),
        (F::Icmpv6Type, 135),
        (F::Ipv6NdTarget, u128::from_be_bytes([0xab; 16])),
        (F::Ipv6NdSll, 0x0200_0000_0007),
        (F::Ipv6NdTll, 0),
        (F::MplsLabel, 0),
    ];
    for (field, value) in wanted {
        assert_eq!(get(field), value, "{field}");
    }
    let mut source = Wide::ZERO;
    wide::extract(&bytes, 1 << 5 | 1 << 6, &mut source);
    assert_eq!(source.used(), 1 << 5 | 1 << 6);
}

#[test]
fn mpls_pbb_arp_and_tcp_flags_are_extracted() {
    use packet::field::Field as F;
    let of = |bytes: &[u8], field, family| {
        let (key, mut wide) = (extract(1, bytes), Wide::ZERO);
        wide::extract(bytes, WordSet::MAX, &mut wide);
        wide::get(field, family, &key, &wide)
    };
    let six = Family::Ipv6;
    let mpls = frame(&[&[0x88, 0x47, 0x12, 0x34, 0x5b, 64, 0, 0, 0, 0]]);
    let fields = [F::MplsLabel, F::MplsTc, F::MplsBos].map(|field| of(&mpls, field, six));
    assert_eq!(fields, [0x12345, 5, 1]);
    let mut pbb = vec![0x88, 0xe7, 0x08, 0x11, 0x22, 0x33];
    pbb.extend([9; 14]);
    let pbb = frame(&[&pbb]);
    assert_eq!([F::PbbIsid, F::PbbUca].map(|field| of(&pbb, field, six)), [0x11_2233, 1]);
    let arp =
        [0, 1, 8, 0, 6, 4, 3, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 5, 10, 0, 0, 9];
    let arp = frame(&[&[8, 6], &arp]);
    let fields = [F::ArpOp, F::ArpSha, F::ArpTha].map(|field| of(&arp, field, Family::Ipv4));
    assert_eq!(fields, [0x302, 0x0200_0000_0001, 0x0200_0000_0005]);
    let tcp = [0, 80, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x51, 0x12, 0, 0, 0, 0, 0, 0];
    let tcp = frame(&[&[8, 0], &ipv4(40, 0, 6), &tcp]);
    let fields = [F::TcpFlags, F::IpEcn].map(|field| of(&tcp, field, Family::Ipv4));
    assert_eq!(fields, [0x112, 3]);
}
