//! Tests that frames from templates equal frames built from their headers.

use packet::header::ethernet;
use packet::parse::Packet;
use packet::time::Nanos;

use super::*;
use crate::generator::templates::Templates;
use crate::mix::mix;
use crate::stream::{
    Arrival, Field, FieldVariation, Genome, IndexOrder, Label, Problem, Rate, Values, Vlan,
};

const KEY: u64 = 77;

pub(crate) fn stream(frame_bytes: usize) -> Stream {
    let headers = Headers::udp(
        ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        ([10, 0, 0, 1].into(), [10, 0, 1, 2].into()),
        (4000, 5000),
    );
    Stream::plain(9, frame_bytes, headers, Rate::FramesPerSecond(1000.0))
}

fn varied(frame_bytes: usize) -> Stream {
    let scattered = |seed| Values::Scattered { seed };
    let mut stream = stream(frame_bytes);
    stream.headers.vlans = vec![Vlan { priority: 6, ..Vlan::new(5) }];
    stream.vary = vec![
        FieldVariation {
            count: 1000,
            order: IndexOrder::Random { seed: 3 },
            fields: vec![
                (Field::IpDestination, scattered(1)),
                (Field::MacDestination, scattered(2)),
                (Field::PortSource, scattered(3)),
                (Field::IpProtocol, scattered(4)),
            ],
        },
        FieldVariation {
            count: 7,
            order: IndexOrder::Sequential,
            fields: vec![
                (Field::IpSource, Values::Range { first: 0xffff_fffe, step: 1 }),
                (Field::VlanId, Values::Range { first: 4090, step: 1 }),
                (Field::MacSource, Values::List(vec![1, 2, 3, 4, 5, 6, 7])),
                (Field::PortDestination, Values::Range { first: 1, step: 9000 }),
            ],
        },
    ];
    assert_eq!(stream.validate(), []);
    stream
}

/// Builds a frame from a template.
pub(crate) fn made(template: &Template, sequence: Sequence, sent: SendTime) -> Vec<u8> {
    let (mut indices, mut frame) = (Vec::new(), vec![0xee; template.bytes().len()]);
    template.draw(sequence.number, &mut indices);
    template.write(sequence, sent, &indices, &mut frame);
    frame
}

fn sequence(number: u64) -> Sequence {
    Sequence { is_warmup: false, epoch: 4, number }
}

/// Builds a frame the slow way: headers, then the signature, then all checksums.
///
/// The stream's transport header follows IP for every protocol in the IP header.
fn built(stream: &Stream, headers: Headers, number: u64, sent: SendTime) -> Vec<u8> {
    let frame_bytes = templates(stream).of(number).bytes().len();
    let ip_protocol = headers.transport.protocol();
    let mut bytes = bytes_of(&Headers { ip_protocol, ..headers.clone() }, frame_bytes).0;
    let signature = Signature { stream: stream.id, sequence: sequence(number), sent };
    signature.write(KEY, &mut bytes[stream.signature_offset()..][..SIGNATURE_BYTES]);
    let labels = headers.layout().labels_at..headers.layout().network_at;
    let mut bare = without_labels(&headers, &bytes);
    let is_summed = packet::parse::set_transport_checksum(&mut bare);
    assert_eq!(is_summed, headers.network.has_transport());
    bytes.truncate(labels.end);
    bytes.extend_from_slice(&bare[labels.start..]);
    let ip = labels.end..headers.layout().transport_at;
    bytes[ip.clone()].copy_from_slice(&bytes_of(&headers, frame_bytes).0[ip]);
    bytes
}

/// Removes the MPLS entries, which the parser does not look behind.
fn without_labels(headers: &Headers, bytes: &[u8]) -> Vec<u8> {
    let labels = headers.layout().labels_at..headers.layout().network_at;
    let mut bare = [&bytes[..labels.start], &bytes[labels.end..]].concat();
    if !labels.is_empty() {
        let is_v6 = matches!(headers.network, Network::Ipv6 { .. });
        let type_ = if is_v6 { ethernet::TYPE_IPV6 } else { ethernet::TYPE_IPV4 };
        bare[labels.start - 2..labels.start].copy_from_slice(&type_.to_be_bytes());
    }
    bare
}

fn templates(stream: &Stream) -> Templates {
    Templates::leaving(stream, KEY)
}

/// Streams with every kind of header, each with varying fields.
pub(crate) fn of_all_kinds() -> Vec<(&'static str, Stream)> {
    let v6 = Network::Ipv6 {
        source: "2001:db8::1".parse().unwrap(),
        destination: "2001:db8:1::2".parse().unwrap(),
        flow_label: 0x12345,
    };
    let service = Vlan { kind: ethernet::TYPE_SERVICE_VLAN, id: 100, priority: 3 };
    let label = Label { label: 1000, class: 5, ttl: 63 };
    let tcp = Transport::Tcp { flags: tcp::SYN | tcp::ACK };
    let sctp = Transport::Sctp { verification_tag: 0xdead_beef };
    let of = |vlans: &[Vlan], labels: &[Label], network, transport: Transport, fields: &[Field]| {
        let mut stream = stream(200);
        stream.headers = Headers {
            vlans: vlans.to_vec(),
            labels: labels.to_vec(),
            network,
            transport,
            ip_protocol: transport.protocol(),
            ..stream.headers
        };
        let seeded = |(seed, field): (u64, &Field)| (*field, Values::Scattered { seed });
        let fields = (1..).zip(fields).map(seeded).collect();
        stream.vary =
            vec![FieldVariation { count: 5000, order: IndexOrder::Random { seed: 8 }, fields }];
        assert_eq!(stream.validate(), []);
        stream
    };
    use Field::{
        FlowLabel, IpDestination, IpSource, Ipv6Destination, Ipv6Source, MacSource, MplsLabel,
        PortDestination, PortSource, Tos, VlanId, VlanInnerId,
    };
    let (arp, udp) = (Network::arp(1), Transport::Udp);
    let loopback = Network::Loopback { level: 5, answers: false };
    let icmp = Transport::Icmp { kind: 8, code: 0 };
    let icmp6 = Transport::Icmpv6 { kind: 128, code: 0 };
    let target = "2001:db8::7".parse().unwrap();
    let neighbour = Transport::Neighbour { answers: true, target, link: [2, 0, 0, 0, 0, 7] };
    let stack = [label, Label { label: 7, ..label }];
    vec![
        ("tcp", of(&[], &[], Network::Ipv4, tcp, &[IpSource, IpDestination, PortSource, Tos])),
        ("sctp", of(&[], &[], Network::Ipv4, sctp, &[IpSource, PortSource])),
        ("udp6", of(&[], &[], v6, udp, &[Ipv6Source, Ipv6Destination, FlowLabel, PortSource])),
        ("tcp6", of(&[], &[], v6, tcp, &[Ipv6Destination, PortDestination])),
        ("sctp6", of(&[], &[], v6, sctp, &[Ipv6Source, PortSource])),
        ("icmp", of(&[], &[], Network::Ipv4, icmp, &[IpSource, IpDestination, Tos])),
        ("icmp6", of(&[], &[], v6, icmp6, &[Ipv6Source, Ipv6Destination])),
        ("neighbour", of(&[], &[], v6, neighbour, &[Ipv6Destination, MacSource])),
        ("qinq", of(&[service, Vlan::new(7)], &[], Network::Ipv4, udp, &[VlanId, VlanInnerId])),
        ("mpls", of(&[], &[label], Network::Ipv4, udp, &[MplsLabel, IpSource])),
        ("all", of(&[service, Vlan::new(7)], &stack, v6, tcp, &[VlanId, MplsLabel, Ipv6Source])),
        ("loopback", of(&[Vlan::new(7)], &[], loopback, udp, &[MacSource, VlanId])),
        ("arp", of(&[], &[], arp, udp, &[MacSource, IpSource, IpDestination])),
    ]
}

#[test]
fn frames_of_every_kind_have_correct_checksums_and_match_completely() {
    for (name, mut stream) in of_all_kinds() {
        for signature_at in [None, Some(150)] {
            stream.signature_at = signature_at;
            assert_eq!(stream.validate(), [], "{name}");
            let templates = templates(&stream);
            let template = templates.of(0);
            for number in 0..200 {
                let sent = SendTime::new(Nanos(number << 20));
                let frame = made(template, sequence(number), sent);
                let headers = stream.headers_at(number);
                assert_eq!(frame, built(&stream, headers.clone(), number, sent), "{name}");
                let bare = without_labels(&headers, &frame);
                let packet = Packet::parse(&bare).unwrap();
                assert_eq!(packet.verify_checksums(), Ok(()), "{name} {number}");
            }
            let (mut indices, at) = (Vec::new(), template.signature_at());
            template.draw(6, &mut indices);
            let frame = made(template, sequence(6), SendTime::new(Nanos(1)));
            assert!(template.matches(at, &indices, &frame), "{name}");
            for place in (0..frame.len()).filter(|place| !(at..at + 18).contains(place)) {
                let mut damaged = frame.clone();
                damaged[place] ^= 1 << (place % 8);
                assert!(!template.matches(at, &indices, &damaged), "{name}: byte {place}");
            }
        }
    }
}

#[test]
fn a_genome_sets_the_length_of_each_frame() {
    let stream = stream(64).with_genome(Genome::read("3abg", &[]).unwrap());
    assert_eq!((stream.frame_bytes, stream.validate()), (1518, vec![]));
    let templates = templates(&stream);
    assert_eq!(templates.all().count(), 3);
    for number in 0..50 {
        let sent = SendTime::new(Nanos(number));
        let frame = made(templates.of(number), sequence(number), sent);
        assert_eq!(frame.len() + 4, [64, 64, 64, 128, 1518][number as usize % 5]);
        assert_eq!(frame, built(&stream, stream.headers.clone(), number, sent));
    }
    let tagged = Headers { vlans: vec![Vlan::new(1)], ..stream.headers.clone() };
    let problem = &Stream { headers: tagged, ..stream }.validate()[0];
    assert!(problem.to_string().starts_with("64-byte frames are too small"), "{problem}");
}

#[test]
fn a_signature_is_at_its_offset_or_the_offset_is_rejected() {
    let placed = |at| Stream { signature_at: Some(at), ..stream(128) };
    assert_eq!(templates(&placed(100)).signature_at(), 100);
    for at in [42, 100, 106] {
        assert_eq!(placed(at).validate(), [], "{at}");
    }
    for at in [40, 43, 108, usize::MAX] {
        let problem = placed(at).validate()[0].to_string();
        assert!(problem.contains(&format!("signature_at = {at}")), "{problem}");
        assert!(problem.contains("from 42 (end of headers) to 106"), "{problem}");
    }
    let sctp = Stream {
        headers: Headers {
            transport: Transport::Sctp { verification_tag: 1 },
            ..stream(64).headers
        },
        ..stream(64)
    };
    let problem = sctp.validate()[0].to_string();
    assert!(problem.contains("at least 86 bytes"), "{problem}");
}

#[test]
fn the_minimum_frame_size_is_enforced() {
    let templates = templates(&stream(64));
    let template = templates.of(0);
    assert_eq!(template.bytes().len(), 60);
    assert_eq!(template.signature_at() + SIGNATURE_BYTES, 60);
    let problem = &stream(63).validate()[0];
    assert!(problem.to_string().contains("at least 64 bytes"), "{problem}");
    let mut tagged = stream(64);
    tagged.headers.vlans = vec![Vlan::new(1)];
    let problem = &tagged.validate()[0];
    assert!(problem.to_string().contains("at least 68 bytes"), "{problem}");
}

#[test]
fn patched_frames_equal_fully_built_frames() {
    for stream in [stream(64), stream(1518), varied(68), varied(333)] {
        let templates = templates(&stream);
        let template = templates.of(0);
        let mut indices = Vec::new();
        for number in (0..3000u64).chain([1 << 40, (1 << 48) - 1]) {
            let sent = SendTime::new(Nanos(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            let frame = made(template, sequence(number), sent);
            let want = built(&stream, stream.headers_at(number), number, sent);
            assert_eq!(frame, want, "frame {number}");
            assert_eq!(Packet::of(&frame).verify_checksums(), Ok(()));
            indices.clear();
            template.draw(number, &mut indices);
            assert!(template.matches(template.signature_at(), &indices, &frame), "{number}");
        }
    }
}

#[test]
fn a_frame_matches_only_if_all_other_bytes_are_equal() {
    for stream in [stream(64), varied(68), varied(333)] {
        let templates = templates(&stream);
        let template = templates.of(0);
        let (mut indices, at) = (Vec::new(), template.signature_at());
        template.draw(6, &mut indices);
        let frame = made(template, sequence(6), SendTime::new(Nanos(1)));
        assert!(template.matches(at, &indices, &frame));
        assert!(!template.matches(at - 4, &indices, &frame), "a signature at a different offset");
        assert!(!template.matches(at, &indices, &frame[..frame.len() - 1]), "a byte less");
        assert!(!template.matches(at, &indices, &[&frame[..], &[0]].concat()), "a byte more");
        for place in 0..frame.len() {
            for bit in 0..8 {
                let mut damaged = frame.clone();
                damaged[place] ^= 1 << bit;
                // A changed signature requires a different checksum.
                assert!(!template.matches(at, &indices, &damaged), "bit {bit} of byte {place}");
            }
        }
    }
}

#[test]
fn a_routed_arrival_has_the_router_addresses_and_a_decremented_ttl() {
    let mut stream = varied(100);
    let (mac_source, mac_destination) = ([2, 9, 9, 9, 9, 1], [2, 9, 9, 9, 9, 2]);
    stream.arrival = Arrival::Routed { mac_source, mac_destination };
    let templates = Templates::arriving(&stream, KEY);
    let template = templates.of(0);
    for number in 0..50 {
        let sent = SendTime::new(Nanos(number));
        let frame = made(template, sequence(number), sent);
        let leaving = stream.headers_at(number);
        let headers = Headers { mac_source, mac_destination, ttl: 63, ..leaving };
        assert_eq!(frame, built(&stream, headers, number, sent));
    }
}

#[test]
fn a_loopback_reply_has_swapped_addresses_and_the_same_content() {
    let mut stream = stream(128);
    stream.headers.network = Network::Loopback { level: 5, answers: false };
    stream.arrival = Arrival::Answered;
    assert_eq!(stream.validate(), []);
    let [leaving, arriving] = Templates::both(&stream, KEY);
    let sent = SendTime::new(Nanos(7));
    let asked = made(leaving.of(0), sequence(3), sent);
    let answer = made(arriving.of(0), sequence(3), sent);
    assert_eq!((&answer[..6], &answer[6..12]), (&asked[6..12], &asked[..6]));
    assert_eq!((asked[15], answer[15]), (3, 2));
    assert_eq!(answer[16..], asked[16..]);
    // Varying addresses are not supported for replies, and only requests have replies.
    let fields = vec![(Field::MacSource, Values::Scattered { seed: 1 })];
    let vary = vec![FieldVariation { count: 2, order: IndexOrder::Sequential, fields }];
    let varied = Stream { vary, ..stream.clone() };
    assert_eq!(varied.validate(), [Problem::NotAnswered]);
    stream.headers.network = Network::Ipv4;
    assert_eq!(stream.validate(), [Problem::NotAnswered]);
    stream.headers.network = Network::Loopback { level: 8, answers: false };
    assert_eq!(stream.validate(), [Problem::BadLevel(8)]);
}

#[test]
fn a_tagged_arrival_has_the_selected_tag_and_an_untagged_one_has_none() {
    let tag = |id, priority| Vlan { priority, ..Vlan::new(id) };
    let tags = [tag(100, 5), tag(4095, 7), tag(1, 0)];
    let mut leaving = stream(100);
    leaving.vary = vec![
        FieldVariation {
            count: 3,
            order: IndexOrder::Random { seed: 9 },
            fields: vec![
                (Field::Tos, Values::List(vec![0xb8, 0x20, 0])),
                (Field::PortDestination, Values::List(vec![9, 5060, 53])),
            ],
        },
        FieldVariation {
            count: 40,
            order: IndexOrder::Sequential,
            fields: vec![(Field::MacSource, Values::Scattered { seed: 2 })],
        },
    ];
    leaving.arrival = Arrival::Tagged(tags.to_vec());
    assert_eq!(leaving.validate(), []);
    let arriving = Templates::arriving(&leaving, KEY);
    for number in 0..200 {
        let sent = SendTime::new(Nanos(number));
        let frame = made(arriving.of(number), sequence(number), sent);
        let drawn = leaving.vary[0].index_at(number) as usize;
        let mut headers = leaving.headers_at(number);
        headers.vlans = vec![tags[drawn]];
        let tagged = Stream { arrival: Arrival::Unchanged, frame_bytes: 104, ..leaving.clone() };
        let tagged = Stream { signature_at: Some(46), headers: headers.clone(), ..tagged };
        assert_eq!((frame.len(), &frame), (100, &built(&tagged, headers.clone(), number, sent)));

        // On the way back, the same frame loses its tag.
        let back = Stream { signature_at: None, arrival: Arrival::Untagged, ..tagged };
        assert_eq!(back.validate(), []);
        let bare = made(Templates::arriving(&back, KEY).of(number), sequence(number), sent);
        headers.vlans.clear();
        let plain = Stream { arrival: Arrival::Unchanged, ..leaving.clone() };
        assert_eq!(bare, built(&plain, headers, number, sent));
    }
    let [wrong, none] = [&tags[..2], &tags[..0]].map(|tags| {
        Stream { arrival: Arrival::Tagged(tags.to_vec()), ..leaving.clone() }.validate().len()
    });
    assert_eq!((wrong, none), (1, 1));
}

#[test]
fn a_damaged_frame_resembles_its_stream_and_a_foreign_one_does_not() {
    let templates = templates(&varied(100));
    let template = templates.of(0);
    let frame = made(template, sequence(5), SendTime::new(Nanos(1)));
    for at in 14..frame.len() {
        let mut damaged = frame.clone();
        damaged[at] ^= 0x10;
        // Neither checksum covers the tag's bytes, and the signature remains valid.
        assert_eq!(template.resembles(&damaged), at >= 18, "byte {at}");
    }
    assert!(!template.resembles(&frame), "a whole frame");
    let other_run = Templates::leaving(&varied(100), KEY + 1);
    let frame = made(other_run.of(5), sequence(5), SendTime::new(Nanos(1)));
    assert!(!template.resembles(&frame), "another run's frame");
    assert!(!template.resembles(&[0; 96]), "zeros");
    assert!(!template.resembles(&frame[..95]), "a shorter one");
}

/// Completes a frame as a port does that sends ahead.
fn complete(frame: &mut [u8], place: StampPlace, at: Nanos) {
    let time = at.0 & 0xffff_ffff_ffff;
    let StampPlace { number, key, seed, checksum, .. } = place;
    let tail = time << 16 | mix(mix(key ^ number) ^ seed ^ time) >> 48;
    let both = [number.to_be_bytes(), tail.to_be_bytes()].concat();
    frame[place.at..place.at + 16].copy_from_slice(&both);
    if let Some(ChecksumPlace { at, sum, zero }) = checksum {
        let sum = InternetChecksum::default().u16(sum).bytes(&both).checksum();
        put(frame, at, if sum == 0 { zero } else { sum });
    }
}

#[test]
fn a_frame_that_a_port_completes_equals_one_that_is_written_whole() {
    let plain = [("plain", stream(64)), ("varied", varied(128))];
    for (name, stream) in of_all_kinds().into_iter().chain(plain) {
        let templates = templates(&stream);
        let mut places = 0;
        for number in 0..2_000 {
            let template = templates.of(number);
            let at = Nanos(number * 7_919_000_001);
            let whole = made(template, sequence(number), SendTime::new(at));
            let (mut indices, mut frame) = (Vec::new(), vec![0xee; whole.len()]);
            template.draw(number, &mut indices);
            let place = template.write_open(sequence(number), at, &indices, &mut frame);
            if let Some(place) = place {
                complete(&mut frame, place, at);
                places += 1;
            }
            assert_eq!(frame, whole, "{name}, frame {number}");
        }
        let is_crc = matches!(stream.headers.transport, Transport::Sctp { .. });
        assert_eq!(places, if is_crc { 0 } else { 2_000 }, "{name}");
    }
}
