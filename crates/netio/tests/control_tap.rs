//! Captured TCP channels on the loopback interface of a separate namespace. The kernel's timestamp
//! of every byte is between the clock readings before sending and after receiving.

#![allow(clippy::unwrap_used)]

use channel::{Channel, Connecting, Listener};
use channel::{Direction, UnknownTime};
use common::{PATIENCE, in_namespace};
use netio::capture::CaptureReader;
use netio::control_tap::Tap;
use os::clock;
use packet::time::{Clock, Nanos};

mod common;

/// Offset of TCP after Ethernet and IPv4.
const IP_END: usize = 34;

/// Largest effect of an adjusted realtime clock on a timestamp.
const CLOCKS_NS: Nanos = Nanos::from_micros(200);

/// Sends bytes and waits until the peer has them all. Returns the times before and after.
fn pass(from: &mut dyn Channel, to: &mut dyn Channel, bytes: &[u8]) -> (Nanos, Nanos) {
    let (before, mut sent, mut came) = (clock::now(), 0, 0);
    let mut buffer = [0; 10_000];
    while came < bytes.len() {
        sent += from.transmit(&bytes[sent..]).unwrap();
        came += to.receive(&mut buffer).unwrap();
        assert!(clock::now() < before + PATIENCE, "bytes do not arrive");
    }
    (before, clock::now())
}

/// Queries until the time is known, or known to be unavailable.
fn passed(channel: &mut dyn Channel, direction: Direction, end: u64) -> (Nanos, Clock) {
    let until = clock::now() + PATIENCE;
    loop {
        match channel.passed(direction, end).unwrap() {
            Ok(stamp) => return (stamp.at, stamp.clock),
            Err(UnknownTime::NotYet) => assert!(clock::now() < until, "{direction:?} {end}"),
            Err(UnknownTime::Unknown) => {
                panic!("the time of {direction:?} {end} stays unknown: {:?}", channel.remarks())
            }
        }
    }
}

#[test]
fn every_byte_has_a_wire_timestamp_and_is_in_the_file() {
    in_namespace(|| {
        let mut listener = Listener::open(&"ptcp:0:127.0.0.1".parse().unwrap()).unwrap();
        let url = listener.address_to_connect();
        let port = url.to_string().rsplit(':').next().unwrap().parse().unwrap();
        let tap = Tap::open("lo", port, true).unwrap();
        let mut ends = Vec::new();
        for _ in 0..2 {
            let near = tap.around(Connecting::wait(&url, PATIENCE).unwrap());
            let until = clock::now() + PATIENCE;
            let far = loop {
                if let Some(channel) = listener.accept().unwrap() {
                    break channel;
                }
                assert!(clock::now() < until);
            };
            ends.push((near, far));
        }
        let (mut out, mut inn) = (0, 0);
        for round in 1..200_u64 {
            // Small messages, and messages of several segments.
            let bytes = vec![7; if round % 50 == 0 { 100_000 } else { 8 * round as usize }];
            for (near, far) in &mut ends {
                let (before, after) = pass(near.as_mut(), far.as_mut(), &bytes);
                let end = out + bytes.len() as u64;
                let (at, clock) = passed(near.as_mut(), Direction::Out, end);
                assert_eq!(clock, Clock::Kernel);
                assert!(
                    at + CLOCKS_NS >= before && at <= after + CLOCKS_NS,
                    "{before} {at} {after}"
                );
                let (before, after) = pass(far.as_mut(), near.as_mut(), &bytes[..8]);
                let (at, _) = passed(near.as_mut(), Direction::In, inn + 8);
                assert!(
                    at + CLOCKS_NS >= before && at <= after + CLOCKS_NS,
                    "{before} {at} {after}"
                );
            }
            (out, inn) = (out + bytes.len() as u64, inn + 8);
        }
        for (near, far) in &mut ends {
            assert_eq!(near.remarks(), Some(Default::default()));
            assert_eq!(near.passed(Direction::In, inn + 1), Some(Err(UnknownTime::NotYet)));
            assert_eq!(far.passed(Direction::In, 1), None, "no channel uses this port");
        }
        let tapped = tap.finish();
        assert_eq!((tapped.lost, tapped.unwritten), (0, 0));
        // The file has every byte in each direction once: one of the two copies on the loopback
        // interface.
        let file = tapped.file.unwrap();
        let mut reader = CaptureReader::new(&file[..]);
        let (mut bytes_out, mut bytes_in) = (0, 0);
        while let Some(event) = reader.next_event().unwrap() {
            let packet::capture::Event::Frame(frame) = event else { continue };
            // A packet before segmentation offload is longer than the frame parser accepts.
            let tcp = &frame.bytes[IP_END..];
            let payload = tcp.len() - usize::from(tcp[12] >> 4) * 4;
            match u16::from_be_bytes([tcp[2], tcp[3]]) == port {
                true => bytes_out += payload as u64,
                false => bytes_in += payload as u64,
            }
        }
        assert_eq!((bytes_out, bytes_in), (2 * out, 2 * inn));
    });
}

#[test]
fn a_channel_without_tcp_is_not_captured() {
    in_namespace(|| {
        let tap = Tap::open("lo", 6653, false).unwrap();
        let (near, _far) = channel::memory::pair(100, "x");
        let mut channel = tap.around(Box::new(near));
        assert_eq!((channel.passed(Direction::Out, 0), channel.remarks()), (None, None));
        assert!(tap.finish().file.is_none());
        assert!(Tap::open("absent", 6653, false).is_err());
    });
}
