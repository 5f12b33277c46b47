//! Every frame made from a template is the frame that building it from its headers gives.

use packet::parse::Packet;
use packet::time::Nanos;

use super::*;
use crate::stream::{Order, Rate, Values, Vary, Vlan};

const KEY: u64 = 77;

pub(crate) fn stream(frame_bytes: usize) -> Stream {
    let headers = Headers {
        mac_source: [2, 0, 0, 0, 0, 1],
        mac_destination: [2, 0, 0, 0, 0, 2],
        vlan: None,
        ip_source: [10, 0, 0, 1].into(),
        ip_destination: [10, 0, 1, 2].into(),
        ttl: 64,
        tos: 0,
        ip_protocol: ipv4::PROTOCOL_UDP,
        port_source: 4000,
        port_destination: 5000,
    };
    let (vary, rate) = (Vec::new(), Rate::FramesPerSecond(1000.0));
    Stream { id: 9, from: 0, to: 1, frame_bytes, headers, vary, rate, arrival: Arrival::Unchanged }
}

fn varied(frame_bytes: usize) -> Stream {
    let scattered = |seed| Values::Scattered { seed };
    let mut stream = stream(frame_bytes);
    stream.headers.vlan = Some(Vlan { id: 5, priority: 6 });
    stream.vary = vec![
        Vary {
            count: 1000,
            order: Order::Random { seed: 3 },
            fields: vec![
                (Field::IpDestination, scattered(1)),
                (Field::MacDestination, scattered(2)),
                (Field::PortSource, scattered(3)),
                (Field::IpProtocol, scattered(4)),
            ],
        },
        Vary {
            count: 7,
            order: Order::Sequential,
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

/// A frame made from a template.
pub(crate) fn made(template: &Template, sequence: Sequence, sent: Sent) -> Vec<u8> {
    let (mut indices, mut frame) = (Vec::new(), vec![0xee; template.bytes().len()]);
    template.draw(sequence.number, &mut indices);
    template.write(sequence, sent, &indices, &mut frame);
    frame
}

fn sequence(number: u64) -> Sequence {
    Sequence { is_warmup: false, epoch: 4, number }
}

/// The slow way: headers of that frame, built whole, then the signature, then all checksums anew.
/// What follows the IPv4 header is that of UDP, whatever protocol that says.
fn built(stream: &Stream, headers: Headers, number: u64, sent: Sent) -> Vec<u8> {
    let ip_protocol = ipv4::PROTOCOL_UDP;
    let mut bytes = bytes_of(&Headers { ip_protocol, ..headers }, stream.frame_bytes);
    let signature = Signature { stream: stream.id, sequence: sequence(number), sent };
    signature.write(KEY, &mut bytes[stream.signature_offset()..][..SIGNATURE_BYTES]);
    assert!(packet::parse::set_transport_checksum(&mut bytes));
    let ip = stream.signature_offset() - 28..stream.signature_offset() - 8;
    bytes[ip.clone()].copy_from_slice(&bytes_of(&headers, stream.frame_bytes)[ip]);
    bytes
}

#[test]
fn a_64_byte_frame_carries_all_and_one_byte_less_is_refused() {
    let template = Template::leaving(&stream(64), KEY);
    assert_eq!(template.bytes().len(), 60);
    assert_eq!(template.signature_at() + SIGNATURE_BYTES, 60);
    let problem = &stream(63).validate()[0];
    assert!(problem.to_string().contains("smallest possible size is 64 bytes"), "{problem}");
    let mut tagged = stream(64);
    tagged.headers.vlan = Some(Vlan { id: 1, priority: 0 });
    let problem = &tagged.validate()[0];
    assert!(problem.to_string().contains("smallest possible size is 68 bytes"), "{problem}");
}

#[test]
fn patched_frames_equal_frames_built_whole() {
    for stream in [stream(64), stream(1518), varied(68), varied(333)] {
        let template = Template::leaving(&stream, KEY);
        let mut indices = Vec::new();
        for number in (0..3000u64).chain([1 << 40, (1 << 48) - 1]) {
            let sent = Sent::new(Nanos(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            let frame = made(&template, sequence(number), sent);
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
fn a_frame_matches_only_if_every_byte_outside_the_signature_is_right() {
    for stream in [stream(64), varied(68), varied(333)] {
        let template = Template::leaving(&stream, KEY);
        let (mut indices, at) = (Vec::new(), template.signature_at());
        template.draw(6, &mut indices);
        let frame = made(&template, sequence(6), Sent::new(Nanos(1)));
        assert!(template.matches(at, &indices, &frame));
        assert!(!template.matches(at - 4, &indices, &frame), "a signature elsewhere");
        assert!(!template.matches(at, &indices, &frame[..frame.len() - 1]), "a byte less");
        assert!(!template.matches(at, &indices, &[&frame[..], &[0]].concat()), "a byte more");
        for place in 0..frame.len() {
            for bit in 0..8 {
                let mut damaged = frame.clone();
                damaged[place] ^= 1 << bit;
                // A changed signature asks for another checksum than the one that is there.
                assert!(!template.matches(at, &indices, &damaged), "bit {bit} of byte {place}");
            }
        }
    }
}

#[test]
fn a_routed_arrival_has_the_routers_addresses_and_one_hop_less() {
    let mut stream = varied(100);
    let (mac_source, mac_destination) = ([2, 9, 9, 9, 9, 1], [2, 9, 9, 9, 9, 2]);
    stream.arrival = Arrival::Routed { mac_source, mac_destination };
    let template = Template::arriving(&stream, KEY);
    for number in 0..50 {
        let sent = Sent::new(Nanos(number));
        let frame = made(&template, sequence(number), sent);
        let leaving = stream.headers_at(number);
        let headers = Headers { mac_source, mac_destination, ttl: 63, ..leaving };
        assert_eq!(frame, built(&stream, headers, number, sent));
    }
}

#[test]
fn a_damaged_frame_resembles_its_stream_and_a_foreign_one_does_not() {
    let template = Template::leaving(&varied(100), KEY);
    let frame = made(&template, sequence(5), Sent::new(Nanos(1)));
    for at in 14..frame.len() {
        let mut damaged = frame.clone();
        damaged[at] ^= 0x10;
        // The tag's bytes lie outside both checksums, and leave the signature whole anyway.
        assert_eq!(template.resembles(&damaged), at >= 18, "byte {at}");
    }
    assert!(!template.resembles(&frame), "a whole frame");
    let other_run = Template::leaving(&varied(100), KEY + 1);
    let frame = made(&other_run, sequence(5), Sent::new(Nanos(1)));
    assert!(!template.resembles(&frame), "another run's frame");
    assert!(!template.resembles(&[0; 96]), "zeros");
    assert!(!template.resembles(&frame[..95]), "a shorter one");
}
