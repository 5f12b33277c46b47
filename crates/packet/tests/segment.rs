//! Tests of merged frames: their segments contain the whole payload once, in order, with correct
//! headers.

use packet::build::Builder;
use packet::frame::{FRAME_BYTES_MAX, Frame};
use packet::header::options::Options;
use packet::header::{ethernet, ipv4, ipv6, tcp, udp};
use packet::parse::{Packet, Transport};
use packet::segment::{MERGED_BYTES_MAX, Protocol, Segmenter};
use proptest::collection::vec;
use proptest::prelude::*;

/// The TCP flag that only the first segment retains.
const CWR: u8 = 0x80;

fn segments(merged: &[u8], protocol: Protocol, size: usize) -> Option<Vec<Vec<u8>>> {
    let mut segmenter = Segmenter::default();
    segmenter.buffer(merged.len()).copy_from_slice(merged);
    segmenter.begin(protocol, size, None).then(|| rest(&mut segmenter))
}

fn rest(segmenter: &mut Segmenter) -> Vec<Vec<u8>> {
    let (mut segments, mut frame) = (Vec::new(), Frame::default());
    while segmenter.next_into(&mut frame) {
        segments.push(frame.bytes().to_vec());
    }
    assert!(!segmenter.has_next());
    segments
}

fn builder(tags: usize, is_ipv6: bool, identification: u16, options: &[u8]) -> Builder {
    let mut builder = Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
    for tag in 0..tags {
        builder = builder.vlan(5 + tag as u16);
    }
    if is_ipv6 {
        let addresses = ([0xfd; 16].into(), [0xfc; 16].into());
        let builder = builder.ipv6(ipv6::Header::new(addresses.0, addresses.1));
        return if options.is_empty() {
            builder
        } else {
            builder.extension(ipv6::NEXT_DESTINATION, &[0, 1, 4, 0, 0, 0, 0])
        };
    }
    builder.ipv4(ipv4::Header {
        identification,
        dont_fragment: true,
        options: Options::from_bytes(options).expect("at most 40"),
        ..ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
    })
}

fn payload_of<'a>(packet: &Packet<'a>, bytes: &'a [u8]) -> &'a [u8] {
    &bytes[usize::from(packet.layers.payload_at)..usize::from(packet.layers.payload_end)]
}

proptest! {
    #[test]
    fn tcp_segments_equal_those_of_a_sender(
        (tags, is_ipv6, identification) in (0usize..3, any::<bool>(), any::<u16>()),
        ip_options in prop_oneof![Just(vec![]), Just(vec![1u8; 8])],
        (sequence, flags) in (any::<u32>(), any::<u8>()),
        options in vec(Just(1u8), 0..=40),
        payload in vec(any::<u8>(), 1..6000),
        size in 1usize..3000,
    ) {
        let header = tcp::Header {
            sequence,
            options: Options::from_bytes(&options).expect("at most 40"),
            ..tcp::Header::new(4000, 5000, flags)
        };
        let builder = builder(tags, is_ipv6, identification, &ip_options);
        let merged = builder.tcp(header).payload(&payload).bytes_unpadded();
        let segments = segments(&merged, Protocol::Tcp, size).expect("it can be segmented");
        prop_assert_eq!(segments.len(), payload.len().div_ceil(size));
        let mut whole: Vec<u8> = Vec::new();
        for (index, bytes) in segments.iter().enumerate() {
            let packet = Packet::parse(bytes).expect("faultless");
            prop_assert_eq!(packet.verify_checksums(), Ok(()));
            prop_assert_eq!(packet.layers.transport, Transport::Tcp);
            let transport = &bytes[usize::from(packet.layers.transport_at)..];
            let view = tcp::View::new(transport).expect("a header");
            prop_assert_eq!(view.sequence(), sequence.wrapping_add(whole.len() as u32));
            let is_last = index + 1 == segments.len();
            let kept = (if is_last { 0xff } else { !(tcp::FIN | tcp::PSH) })
                & (if index == 0 { 0xff } else { !CWR });
            prop_assert_eq!(view.flags(), flags & kept);
            prop_assert_eq!(view.options(), tcp::View::new(
                &merged[usize::from(packet.layers.transport_at)..]).expect("a header").options());
            if !is_ipv6 {
                let at = usize::from(packet.layers.network_at) + ipv4::IDENTIFICATION_AT;
                let found = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
                prop_assert_eq!(found, identification.wrapping_add(index as u16));
            }
            whole.extend(payload_of(&packet, bytes));
        }
        prop_assert_eq!(whole, payload);
    }

    #[test]
    fn udp_segments_are_datagrams(
        (tags, is_ipv6) in (0usize..3, any::<bool>()),
        payload in vec(any::<u8>(), 1..6000),
        size in 1usize..3000,
    ) {
        let merged = builder(tags, is_ipv6, 7, &[]).udp(4000, 5000).payload(&payload);
        let segments =
            segments(&merged.bytes_unpadded(), Protocol::Udp, size).expect("it can be segmented");
        let mut whole: Vec<u8> = Vec::new();
        for bytes in &segments {
            let packet = Packet::parse(bytes).expect("faultless");
            prop_assert_eq!(packet.verify_checksums(), Ok(()));
            prop_assert_eq!(packet.layers.transport, Transport::Udp);
            let at = usize::from(packet.layers.transport_at);
            let checksum = udp::View::new(&bytes[at..]).expect("a header").checksum();
            prop_assert_ne!(checksum, 0);
            whole.extend(payload_of(&packet, bytes));
        }
        prop_assert_eq!(whole, payload);
    }

    /// Even invalid data from the kernel must not cause a panic or a frame that is too long.
    #[test]
    fn any_bytes_and_sizes_are_segmented_or_rejected(
        at in 0usize..80,
        noise in vec(any::<u8>(), 0..8),
        cut in 0usize..400,
        size in prop_oneof![0usize..4, 0usize..70_000],
        is_tcp in any::<bool>(),
        is_ipv6 in any::<bool>(),
    ) {
        let builder = builder(1, is_ipv6, 1, &[1; 4]);
        let builder = match is_tcp {
            true => builder.tcp(tcp::Header::new(1, 2, 0)),
            false => builder.udp(1, 2),
        };
        let mut merged = builder.payload(&[3; 300]).bytes_unpadded();
        for (place, byte) in noise.iter().enumerate() {
            merged[at + place] = *byte;
        }
        merged.truncate(cut.max(1));
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            for segment in segments(&merged, protocol, size).into_iter().flatten() {
                prop_assert!(segment.len() <= merged.len());
            }
        }
    }
}

#[test]
fn a_packet_of_the_maximum_length_is_segmented_completely() {
    let payload: Vec<u8> = (0..0xffff - 40).map(|n| (n % 251) as u8).collect();
    let merged =
        builder(8, false, 0xffff, &[]).tcp(tcp::Header::new(1, 2, tcp::PSH)).payload(&payload);
    let merged = merged.bytes_unpadded();
    assert_eq!(merged.len(), MERGED_BYTES_MAX);
    let all = segments(&merged, Protocol::Tcp, 1448).expect("it can be segmented");
    assert_eq!(all.len(), payload.len().div_ceil(1448));
    assert!(all.iter().all(|bytes| Packet::of(bytes).verify_checksums() == Ok(())));
}

#[test]
fn frames_that_are_not_merged_are_rejected() {
    let tcp = || builder(0, false, 1, &[]).tcp(tcp::Header::new(1, 2, 0));
    let merged = tcp().payload(&[1; 100]).bytes_unpadded();
    assert_eq!(segments(&merged, Protocol::Tcp, 60).map(|all| all.len()), Some(2));
    assert_eq!(segments(&merged, Protocol::Tcp, 0), None, "without a size");
    assert_eq!(segments(&merged, Protocol::Udp, 60), None, "another protocol");
    assert_eq!(segments(&merged[..100], Protocol::Tcp, 60), None, "cut");
    let empty = tcp().bytes_unpadded();
    assert_eq!(segments(&empty, Protocol::Tcp, 60), None, "without a payload");
    let long = tcp().payload(&[1; 20_000]).bytes_unpadded();
    assert_eq!(segments(&long, Protocol::Tcp, FRAME_BYTES_MAX), None, "segments are too long");
    let mut fragment = merged.clone();
    fragment[ethernet::HEADER_BYTES + ipv4::FRAGMENT_AT] |= 0x20;
    assert_eq!(segments(&fragment, Protocol::Tcp, 60), None, "a fragment");
    let mut arp = merged;
    arp[13] = 6;
    assert_eq!(segments(&arp, Protocol::Tcp, 60), None, "no IP");
}

#[test]
fn segmentation_replaces_an_earlier_frame() {
    let merged = builder(0, false, 1, &[]).udp(1, 2).payload(&[1; 100]).bytes_unpadded();
    let (mut segmenter, mut frame) = (Segmenter::default(), Frame::default());
    assert!(!segmenter.next_into(&mut frame));
    for _ in 0..2 {
        segmenter.buffer(merged.len()).copy_from_slice(&merged);
        assert!(segmenter.begin(Protocol::Udp, 30, Some(34)) && segmenter.next_into(&mut frame));
        assert!(segmenter.has_next());
    }
    assert_eq!(rest(&mut segmenter).len(), 3);
    segmenter.buffer(10);
    assert!(!segmenter.has_next());
    // The data to segment follows another header of the same protocol: a tunnel.
    segmenter.buffer(merged.len()).copy_from_slice(&merged);
    assert!(!segmenter.begin(Protocol::Udp, 30, Some(84)) && !segmenter.has_next());
}
