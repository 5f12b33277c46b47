//! Ports on real interfaces. Each test has its own network namespace, which ends with the test's
//! thread.
//!
//! Requires root and a kernel with veth. Otherwise a test prints this and passes, except with the
//! variable `CI` set, which disallows skipping.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;

use common::{
    PATIENCE, check_transport, collect, failure, frame, in_namespace, ip, number, numbered, ours,
    recovery, send, send_partial, send_virtio, veth,
};
use netio::afpacket::{AfPacketPort, Delivery, Options, TimestampMode};
use netio::link::{LinkModes, Medium};
use netio::port::{Port, PortDrop, PortError};
use netio::tap::TapPort;
use os::clock::{self, WaitSet};
use packet::build::Builder;
use packet::frame::Batch;
use packet::header::tcp;
use packet::time::{Clock, Nanos};

mod common;

fn open(name: &str, delivery: Delivery) -> AfPacketPort {
    AfPacketPort::open(name, &Options { delivery, ..Options::default() }).unwrap()
}

/// Both kinds of ring.
const DELIVERIES: [Delivery; 2] = [Delivery::Prompt, Delivery::Batched];

#[test]
fn link_speeds_of_veth_and_tap_are_reported() {
    in_namespace(|| {
        veth();
        let left = AfPacketPort::open("left", &Options::forwarder()).unwrap();
        let text = std::fs::read_to_string("/sys/class/net/left/speed");
        let link = left.link();
        assert_eq!(
            link.speed_bps,
            Some(10_000_000_000),
            "as the kernel reports for veth: {text:?}"
        );
        assert_eq!((link.full_duplex, link.medium), (Some(true), Some(Medium::Copper)));
        assert_eq!((link.autonegotiates, link.supported), (false, LinkModes::default()));
        let tap = TapPort::open("tap-link").unwrap();
        assert!(tap.link().speed_bps.is_some_and(|bps| bps >= 10_000_000), "{:?}", tap.link());
    });
}

#[test]
fn frames_arrive_unchanged_with_any_tags() {
    in_namespace(|| {
        veth();
        let frames = [
            frame(&[0x88, 0xb5], 46),
            frame(&[0x81, 0x00, 0x00, 0x05, 0x88, 0xb5], 42),
            frame(&[0x81, 0x00, 0x00, 0x00, 0x88, 0xb5], 42),
            frame(&[0x81, 0x00, 0xe0, 0x00, 0x88, 0xb5], 42),
            frame(&[0x81, 0x00, 0xff, 0xff, 0x88, 0xb5], 42),
            frame(&[0x88, 0xa8, 0x00, 0x05, 0x88, 0xb5], 42),
            frame(&[0x88, 0xa8, 0x20, 0x64, 0x81, 0x00, 0x00, 0x07, 0x88, 0xb5], 38),
            frame(&[0x81, 0x00, 0x00, 0x05, 0x81, 0x00, 0x00, 0x06, 0x88, 0xb5], 38),
            frame(&[0x91, 0x00, 0x00, 0x05, 0x88, 0xb5], 42),
            frame(&[0x81, 0x00, 0x00, 0x05, 0x88, 0xb5], 1500),
            frame(&[0x88, 0xb5], 1500),
            frame(&[0x88, 0xb5], 0),
            frame(&[0x88, 0xb5], 1),
            frame(&[0x00, 0x04], 4),
        ];
        for delivery in DELIVERIES {
            let (mut left, mut right) = (open("left", delivery), open("right", delivery));
            send(&mut left, &frames);
            let arrived = collect(&mut right, frames.len(), ours);
            for (sent, received) in frames.iter().zip(&arrived) {
                assert_eq!(sent, received, "with {delivery:?}");
            }
            assert_eq!(left.counters().tx_frames, frames.len() as u64);
            assert_eq!(left.counters().drops, []);
        }
    });
}

#[test]
fn a_port_never_receives_its_own_frames() {
    in_namespace(|| {
        veth();
        for delivery in DELIVERIES {
            // Through the queueing discipline, so that other sockets on the interface can see the
            // frame.
            let options = Options { delivery, qdisc_bypass: false, ..Options::default() };
            let mut left = AfPacketPort::open("left", &options).unwrap();
            let mut right = open("right", delivery);
            send(&mut left, &[numbered(1)]);
            send(&mut right, &[numbered(2)]);
            assert_eq!(collect(&mut left, 1, ours), [numbered(2)]);
            assert_eq!(collect(&mut right, 1, ours), [numbered(1)]);
            // A second pair of sockets on the same interface: it does not receive frames that
            // others sent there.
            let mut other = open("left", delivery);
            send(&mut left, &[numbered(3)]);
            send(&mut right, &[numbered(4)]);
            assert_eq!(collect(&mut other, 1, ours), [numbered(4)]);
        }
    });
}

#[test]
fn checksums_left_to_hardware_are_completed() {
    in_namespace(|| {
        veth();
        ip("addr add 10.9.0.1/24 dev left");
        ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev left nud permanent");
        for (delivery, payload) in [(Delivery::Prompt, 33), (Delivery::Batched, 1400)] {
            let mut right = open("right", delivery);
            let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
            socket.send_to(&vec![7; payload], "10.9.0.2:9").unwrap();
            let carries = |protocol| move |bytes: &[u8]| bytes.len() > 34 && bytes[23] == protocol;
            check_transport(&collect(&mut right, 1, carries(17))[0], 14);
            // The TCP peer never replies, but the SYN is sent.
            let url = "tcp:10.9.0.2:9".parse().unwrap();
            let _dial = channel::Connecting::start(&url, clock::now(), PATIENCE).unwrap();
            check_transport(&collect(&mut right, 1, carries(6))[0], 14);
        }
    });
}

#[test]
fn checksums_after_tags_are_completed() {
    in_namespace(|| {
        veth();
        for delivery in DELIVERIES {
            let mut right = open("right", delivery);
            for tags in [0, 1, 2] {
                let at = 14 + 4 * tags;
                let mut tagged = [0x81, 0x00, 0x00, 0x05].repeat(tags);
                tagged.extend([0x08, 0x00]);
                let mut bytes = frame(&tagged, 0);
                bytes.extend([0x45, 0, 0, 39, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
                // Ports, length 19, and the pseudo-header sum in the checksum field.
                bytes.extend([0, 1, 0, 2, 0, 19]);
                bytes.extend((0x0a00 + 1 + 0x0a00 + 2 + 17 + 19u16).to_be_bytes());
                bytes.extend([9; 11]);
                send_partial("left", &bytes, at as u16 + 20, 6);
                let arrived = collect(&mut right, 1, ours);
                check_transport(&arrived[0], at);
                let checksum = at + 26..at + 28;
                assert_ne!(bytes[checksum.clone()], arrived[0][checksum.clone()]);
                bytes[checksum.clone()].copy_from_slice(&arrived[0][checksum]);
                assert_eq!(bytes, arrived[0], "nothing else may change");
            }
        }
    });
}

#[test]
fn timestamps_come_from_the_kernel_in_monotonic_time() {
    in_namespace(|| {
        veth();
        for (delivery, stamps) in [
            (Delivery::Prompt, TimestampMode::AtDelivery),
            (Delivery::Prompt, TimestampMode::AtArrival),
            (Delivery::Batched, TimestampMode::AtDelivery),
            (Delivery::Batched, TimestampMode::AtArrival),
        ] {
            let mut left = open("left", delivery);
            let options = Options { delivery, stamps, ..Options::default() };
            let mut right = AfPacketPort::open("right", &options).unwrap();
            assert_eq!(right.facts().stamps, Clock::Kernel);
            for turn in 0..100 {
                let before = clock::now();
                send(&mut left, &[numbered(turn)]);
                let mut batch = Batch::new(1);
                while right.receive(&mut batch, clock::now()).unwrap() == 0 {
                    let mut wait = WaitSet::new();
                    wait.add(right.descriptor().unwrap(), false);
                    assert_ne!(wait.until(Some(before + PATIENCE)).unwrap(), 0);
                }
                let after = clock::now();
                let stamp = batch.frames()[0].stamp.unwrap();
                assert_eq!(stamp.clock, Clock::Kernel);
                // The two clocks may drift apart between measurements of their offset: NTP's limit
                // of 500 ppm over a tenth of a second.
                let slack = Nanos::from_micros(60);
                assert!(stamp.at + slack >= before, "{} before {before}", stamp.at);
                assert!(stamp.at <= after + slack, "{} after {after}", stamp.at);
            }
        }
    });
}

#[test]
fn a_full_ring_drops_and_every_frame_is_accounted_for() {
    in_namespace(|| {
        veth();
        for delivery in DELIVERIES {
            let mut left = open("left", delivery);
            let options = Options { delivery, ring_bytes: 128 << 10, ..Options::default() };
            let mut right = AfPacketPort::open("right", &options).unwrap();
            let frames: Vec<_> = (0..3000).map(numbered).collect();
            for some in frames.chunks(50) {
                send(&mut left, some);
            }
            // Received and dropped frames add up once all have arrived.
            let (mut received, mut batch) = (0, Batch::new(64));
            let deadline = clock::now() + PATIENCE;
            while received + right.counters().lost(PortDrop::ReceiveRingFull) < 3000 {
                assert!(clock::now() < deadline, "{received} frames, {:?}", right.counters());
                batch.clear();
                received += right.receive(&mut batch, clock::now()).unwrap() as u64;
            }
            let counters = right.counters();
            assert!(counters.lost(PortDrop::ReceiveRingFull) > 500, "{counters:?}");
            assert_eq!(counters.rx_frames + counters.lost(PortDrop::ReceiveRingFull), 3000);
            assert_eq!(counters.rx_bytes, counters.rx_frames * 60);
        }
    });
}

#[test]
fn ten_thousand_paced_frames_arrive_in_order() {
    in_namespace(|| {
        veth();
        for delivery in DELIVERIES {
            let (mut left, mut right) = (open("left", delivery), open("right", delivery));
            let mut arrived = Vec::new();
            for first in (0..10_000).step_by(20) {
                send(&mut left, &(first..first + 20).map(numbered).collect::<Vec<_>>());
                // The receiver is never more than a fifth of its ring behind.
                let late = (first as usize).saturating_sub(400);
                while arrived.len() < late {
                    arrived.extend(collect(&mut right, 1, ours).iter().map(|f| number(f)));
                }
            }
            let rest = 10_000 - arrived.len();
            arrived.extend(collect(&mut right, rest, ours).iter().map(|f| number(f)));
            assert_eq!(arrived, Vec::from_iter(0..10_000));
            assert_eq!(right.counters().drops, []);
        }
    });
}

#[test]
fn a_port_switches_between_prompt_and_batched_delivery() {
    in_namespace(|| {
        veth();
        let mut left = open("left", Delivery::Prompt);
        let mut right = open("right", Delivery::Batched);
        for round in 0..6 {
            right.set_low_latency(round % 2 == 0);
            send(&mut left, &[numbered(2 * round), numbered(2 * round + 1)]);
            let both = [numbered(2 * round), numbered(2 * round + 1)];
            assert_eq!(collect(&mut right, 2, ours), both);
        }
        let counters = right.counters();
        assert_eq!((counters.rx_frames, counters.lost(PortDrop::ReceiveRingFull)), (12, 0));
    });
}

#[test]
fn a_port_switches_delivery_from_another_namespace() {
    in_namespace(|| {
        veth();
        let (mut left, mut right) =
            (open("left", Delivery::Prompt), open("right", Delivery::Batched));
        // The ports are used in another namespace, where the interfaces do not exist.
        in_namespace(move || {
            right.set_low_latency(true);
            send(&mut left, &[numbered(1), numbered(2)]);
            assert_eq!(collect(&mut right, 2, ours), [numbered(1), numbered(2)]);
        });
    });
}

#[test]
fn excessive_frames_are_counted_and_block_nothing() {
    in_namespace(|| {
        veth();
        let mut left = open("left", Delivery::Prompt);
        let mut right = open("right", Delivery::Prompt);
        assert_eq!(left.facts().frame_bytes_max, 1514);
        send(
            &mut left,
            &[
                numbered(1),
                frame(&[0x88, 0xb5], 1501),
                frame(&[0x88, 0xb5], 9000),
                frame(&[0x81, 0x00, 0x00, 0x05, 0x88, 0xb5], 1501),
                vec![1; 13],
                numbered(2),
            ],
        );
        assert_eq!(collect(&mut right, 2, ours), [numbered(1), numbered(2)]);
        let counters = left.counters();
        assert_eq!(counters.lost(PortDrop::TooLong), 3);
        assert_eq!(counters.lost(PortDrop::TransmitRefused), 1);
        assert_eq!((counters.tx_frames, counters.tx_bytes), (2, 120));
        ip("link set left mtu 9000");
        let mut left = open("left", Delivery::Prompt);
        ip("link set right mtu 9000");
        send(&mut left, &[frame(&[0x88, 0xb5], 9000), numbered(3)]);
        // A forwarding port receives them outside the ring, another one counts them.
        assert_eq!(collect(&mut right, 2, ours), [frame(&[0x88, 0xb5], 9000), numbered(3)]);
        assert_eq!(right.counters().drops, []);
        let mut left = open("left", Delivery::Prompt);
        ip("link set right mtu 1500");
        let options = Options { segment_merged: false, ..Options::forwarder() };
        let mut right = AfPacketPort::open("right", &options).unwrap();
        ip("link set right mtu 9000");
        send(&mut left, &[frame(&[0x88, 0xb5], 9000), numbered(3)]);
        assert_eq!(collect(&mut right, 1, ours), [numbered(3)]);
        assert_eq!(right.counters().drops, [(PortDrop::ReceiveTooLong, 1)]);
        let mut right = open("right", Delivery::Batched);
        send(&mut left, &[frame(&[0x88, 0xb5], 9000)]);
        assert_eq!(collect(&mut right, 1, ours), [frame(&[0x88, 0xb5], 9000)]);
    });
}

/// Bytes of Ethernet, IPv4 and TCP headers without options, and the offset of the TCP header.
const HEADERS: usize = 54;
const TRANSPORT_AT: u16 = 34;

/// A merged frame as the kernel has it: IPv4 with TCP (kind 1) or UDP (kind 5) and this payload.
fn merged(kind: u8, payload: usize) -> (Vec<u8>, u16) {
    let source = packet::header::ipv4::Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let builder = Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]).ipv4(source);
    let (builder, place) = match kind {
        1 => (builder.tcp(tcp::Header::new(4000, 5000, tcp::ACK | tcp::PSH)), 16),
        _ => (builder.udp(4000, 5000), 6),
    };
    let bytes: Vec<u8> = (0..payload).map(|n| (n % 251) as u8).collect();
    (builder.payload(&bytes).bytes_unpadded(), place)
}

/// Returns the concatenated bytes after the headers of segments.
fn payload_of(segments: &[Vec<u8>], headers: usize) -> Vec<u8> {
    segments.iter().flat_map(|bytes| bytes[headers..].to_vec()).collect()
}

#[test]
fn a_merged_frame_is_received_as_its_segments() {
    in_namespace(|| {
        veth();
        for (delivery, kind) in DELIVERIES.into_iter().flat_map(|it| [(it, 1), (it, 5)]) {
            let mut right = open("right", delivery);
            let mut left = open("left", delivery);
            let headers = if kind == 1 { HEADERS } else { HEADERS - 12 };
            // Shorter than a slot of the ring, longer, and the maximum.
            for payload in [1500, 10_000, 65_000] {
                send(&mut left, &[numbered(1)]);
                let (bytes, place) = merged(kind, payload);
                send_virtio("left", &bytes, [kind, headers as u8], 1000, [TRANSPORT_AT, place]);
                send(&mut left, &[numbered(2)]);
                let count = payload.div_ceil(1000);
                let arrived = collect(&mut right, count + 2, ours);
                assert_eq!((&arrived[0], &arrived[count + 1]), (&numbered(1), &numbered(2)));
                let segments = &arrived[1..=count];
                segments.iter().for_each(|segment| check_transport(segment, 14));
                assert_eq!(payload_of(segments, headers), bytes[headers..], "{delivery:?} {kind}");
            }
            let counters = right.counters();
            assert_eq!((counters.drops, counters.rx_frames), (vec![], 2 + 10 + 65 + 6));
        }
    });
}

#[test]
fn segments_have_the_tag_of_the_merged_frame() {
    in_namespace(|| {
        veth();
        let mut right = open("right", Delivery::Prompt);
        let (mut bytes, place) = merged(1, 5000);
        bytes.splice(12..12, [0x81, 0x00, 0x20, 0x05]);
        send_virtio("left", &bytes, [1, HEADERS as u8 + 4], 1000, [TRANSPORT_AT + 4, place]);
        let segments = collect(&mut right, 5, ours);
        for segment in &segments {
            assert_eq!(segment[12..18], [0x81, 0x00, 0x20, 0x05, 0x08, 0x00]);
            check_transport(segment, 18);
        }
        assert_eq!(payload_of(&segments, HEADERS + 4), bytes[HEADERS + 4..]);
    });
}

#[test]
fn merged_frames_without_space_are_counted() {
    in_namespace(|| {
        veth();
        let mut right = open("right", Delivery::Prompt);
        let (bytes, place) = merged(1, 60_000);
        const SENT: u64 = 500;
        for _ in 0..SENT {
            send_virtio("left", &bytes, [1, HEADERS as u8], 1000, [TRANSPORT_AT, place]);
        }
        let mut left = open("left", Delivery::Prompt);
        send(&mut left, &[numbered(1)]);
        let mut arrived = 0;
        while !collect(&mut right, 1, ours).contains(&numbered(1)) {
            arrived += 1;
        }
        let counters = right.counters();
        assert!(arrived > 0);
        assert_eq!(counters.rx_frames % 60, 1, "all of a merged frame or nothing");
        let lost = counters.lost(PortDrop::ReceiveRingFull);
        assert_eq!((counters.rx_frames / 60 + lost, counters.drops.len()), (SENT, 1));
    });
}

#[test]
fn a_measuring_port_counts_merged_frames_as_lost() {
    in_namespace(|| {
        veth();
        for delivery in DELIVERIES {
            let options = Options { delivery, ..Options::monitor() };
            let mut right = AfPacketPort::open("right", &options).unwrap();
            let mut left = open("left", delivery);
            for payload in [1500, 10_000] {
                let (bytes, place) = merged(1, payload);
                send_virtio("left", &bytes, [1, HEADERS as u8], 1000, [TRANSPORT_AT, place]);
            }
            send(&mut left, &[numbered(1)]);
            assert_eq!(collect(&mut right, 1, ours), [numbered(1)]);
            assert_eq!(right.counters().drops, [(PortDrop::ReceiveTooLong, 2)]);
        }
    });
}

#[test]
fn an_interface_that_goes_down_and_up_is_followed() {
    in_namespace(|| {
        veth();
        for delivery in DELIVERIES {
            let (mut left, mut right) = (open("left", delivery), open("right", delivery));
            let descriptor = right.descriptor();
            ip("link set right down");
            assert!(
                matches!(failure(&mut right), PortError::InterfaceDown(name) if name == "right")
            );
            let mut batch = Batch::new(1);
            batch.push_bytes(&numbered(1));
            assert!(right.transmit(&mut batch, clock::now()).is_err());
            ip("link set right up");
            recovery(&mut right);
            send(&mut left, &[numbered(2)]);
            assert_eq!(collect(&mut right, 1, ours), [numbered(2)]);

            ip("link del right");
            assert!(matches!(failure(&mut right), PortError::NoSuchInterface(_)));
            assert!(matches!(failure(&mut left), PortError::NoSuchInterface(_)));
            veth();
            recovery(&mut left);
            recovery(&mut right);
            send(&mut left, &[numbered(3)]);
            assert_eq!(collect(&mut right, 1, ours), [numbered(3)]);
            send(&mut right, &[numbered(4)]);
            assert_eq!(collect(&mut left, 1, ours), [numbered(4)]);
            assert_eq!(right.descriptor(), descriptor, "a waiting caller is not affected");
        }
    });
}

#[test]
fn open_errors_state_their_cause() {
    in_namespace(|| {
        ip("link add left type veth peer name right");
        let error = AfPacketPort::open("left", &Options::default()).err().unwrap();
        assert!(matches!(error, PortError::InterfaceDown(_)), "{error}");
        let error = AfPacketPort::open("middle", &Options::default()).err().unwrap();
        assert!(matches!(error, PortError::NoSuchInterface(_)), "{error}");
        let _first = TapPort::open("tap7").unwrap();
        let error = TapPort::open("tap7").err().unwrap();
        assert!(matches!(error, PortError::System { .. }), "{error}");
    });
}

#[test]
fn without_privileges_no_port_opens() {
    in_namespace(|| {
        veth();
        // Version 3 of the interface, this thread, and three empty capability sets in two words.
        let (header, rights) = ([0x2008_0522u32, 0], [0u32; 6]);
        // SAFETY: both pointers are to values of the layout of the system call. It changes only the
        // capabilities of this thread, which then ends.
        let changed = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), rights.as_ptr()) };
        assert_eq!(changed, 0, "{}", std::io::Error::last_os_error());
        let error = AfPacketPort::open("left", &Options::default()).err().unwrap();
        assert_eq!(error.to_string(), "cannot open a packet socket: not permitted");
        let error = TapPort::open("tap7").err().unwrap();
        assert!(matches!(error, PortError::NotPermitted(_)), "{error}");
    });
}

#[test]
fn frames_that_the_kernel_rejects_are_counted() {
    in_namespace(|| {
        veth();
        let mut left = open("left", Delivery::Prompt);
        ip("link set right down");
        send(&mut left, &[numbered(1), numbered(2)]);
        assert_eq!(left.counters().lost(PortDrop::TransmitRefused), 2);
        assert_eq!(left.counters().tx_frames, 0);
        ip("link set right up");
        let mut right = open("right", Delivery::Prompt);
        send(&mut left, &[numbered(3)]);
        assert_eq!(collect(&mut right, 1, ours), [numbered(3)]);
    });
}

#[test]
fn a_tap_port_is_the_other_end_of_its_interface() {
    in_namespace(|| {
        let mut tap = TapPort::open("tap7").unwrap();
        let mut batch = Batch::new(1);
        batch.push_bytes(&numbered(0));
        let down = tap.transmit(&mut batch, clock::now()).unwrap_err();
        assert!(matches!(down, PortError::InterfaceDown(_)), "{down}");
        ip("link set tap7 up");
        let mut host = open("tap7", Delivery::Prompt);
        send(&mut tap, &[numbered(1), frame(&[0x81, 0x00, 0x00, 0x05, 0x88, 0xb5], 42)]);
        let arrived = collect(&mut host, 2, ours);
        assert_eq!(arrived, [numbered(1), frame(&[0x81, 0x00, 0x00, 0x05, 0x88, 0xb5], 42)]);
        send(&mut host, &[numbered(2), frame(&[0x88, 0xb5], 1500)]);
        assert_eq!(collect(&mut tap, 2, ours), [numbered(2), frame(&[0x88, 0xb5], 1500)]);
        send(&mut tap, &[frame(&[0x88, 0xb5], 1505), numbered(3)]);
        assert_eq!(collect(&mut host, 1, ours), [numbered(3)]);
        assert_eq!(tap.counters().lost(PortDrop::TooLong), 1);
        assert_eq!(tap.counters().tx_frames, 3);
        drop(tap);
        assert!(matches!(failure(&mut host), PortError::NoSuchInterface(_)));
    });
}
