//! AF_XDP ports on veth pairs, each test in its own network namespace.
//!
//! Requires root and a kernel with veth and AF_XDP. Without root a test prints this and passes,
//! except with the variable `CI` set.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;

use common::{
    PATIENCE, check_transport, collect, failure, frame, ip, may_not_skip, number, numbered, ours,
    recovery, send, veth,
};
use ebpf::XdpMode;
use netio::afpacket::{AfPacketPort, Options};
use netio::departure::{Outcome, SendSchedule, StampPlace};
use netio::open::open;
use netio::port::{Port, PortDrop, PortError};
use netio::xdp::port::XdpPort;
use netio::xdp::spec::Spec;
use os::clock::{self, WaitSet};
use packet::batch_copy::Copies;
use packet::build::Builder;
use packet::filter::{Entry, Filter, text};
use packet::frame::Batch;
use packet::header::{ipv4, ipv6};
use packet::time::{Clock, Nanos, Stamp};

mod common;

/// Like `common::in_namespace`, if this kernel has AF_XDP.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    // SAFETY: no pointers are passed, and the returned descriptor is closed immediately.
    let has = unsafe {
        let socket = libc::socket(libc::AF_XDP, libc::SOCK_RAW, 0);
        let refused = std::io::Error::last_os_error().raw_os_error();
        socket >= 0 && libc::close(socket) == 0 || refused != Some(libc::EAFNOSUPPORT)
    };
    if has {
        common::in_namespace(test);
    } else {
        assert!(!may_not_skip(), "need: a kernel with AF_XDP");
        println!("skipped; need: a kernel with AF_XDP (CONFIG_XDP_SOCKETS)");
    }
}

fn xdp(text: &str) -> XdpPort {
    XdpPort::open(&Spec::parse(text).unwrap()).unwrap()
}

fn afpacket(name: &str) -> AfPacketPort {
    AfPacketPort::open(name, &Options::forwarder()).unwrap()
}

/// Returns frames of many sizes, with and without tags. (Packet sockets never see a frame that ends
/// right after its tag.)
fn frames() -> Vec<Vec<u8>> {
    let sizes = [0, 1, 46, 114, 241, 242, 243, 500, 1009, 1010, 1486, 1499, 1500];
    let plain = sizes.map(|payload| frame(&[0x88, 0xb5], payload));
    let tagged = sizes.map(|payload| frame(&[0x81, 0x00, 0x20, 0x05, 0x88, 0xb5], payload.max(2)));
    plain.into_iter().chain(tagged).collect()
}

#[test]
fn frames_of_all_sizes_pass_in_both_directions_in_every_mode() {
    in_namespace(|| {
        veth();
        let frames = frames();
        for mode in ["native", "generic", "native,busy-poll", "native,small-pages,copy=copy"] {
            let mut left = xdp(&format!("left,mode={mode}"));
            for right in ["afpacket:right".to_owned(), format!("xdp:right,mode={mode}")] {
                let mut right = open(&right, &Options::forwarder()).unwrap();
                println!("left by xdp in mode {mode}, right {}", right.facts().kind);
                send(&mut left, &frames);
                assert!(collect(&mut right, frames.len(), ours) == frames);
                send(&mut right, &frames);
                assert!(collect(&mut left, frames.len(), ours) == frames);
                let bytes: usize = frames.iter().map(Vec::len).sum();
                let counters = right.counters();
                assert_eq!((counters.rx_frames, counters.drops), (frames.len() as u64, vec![]));
                assert_eq!((counters.tx_bytes, counters.rx_bytes), (bytes as u64, bytes as u64));
            }
        }
    });
}

#[test]
fn the_xdp_mode_is_reported_and_unsupported_ones_are_rejected() {
    in_namespace(|| {
        veth();
        let port = xdp("left");
        assert_eq!((port.path().mode, port.path().is_zero_copy), (XdpMode::Native, false));
        assert_eq!(port.facts().kind, "xdp native copy");
        assert_eq!((port.facts().frame_bytes_max, port.queues()), (1514, 1));
        assert_ne!(port.facts().mac, [0; 6]);
        assert_eq!(port.link().speed_bps, Some(10_000_000_000), "as the kernel reports for veth");
        let second = XdpPort::open(&Spec::parse("left").unwrap()).err().unwrap().to_string();
        assert!(second.contains("left") && second.contains("busy"), "{second}");
        drop(port);
        assert_eq!(xdp("left,mode=generic").facts().kind, "xdp generic copy");
        let error = XdpPort::open(&Spec::parse("left,copy=zero-copy").unwrap()).err().unwrap();
        assert!(error.to_string().starts_with("cannot bind an AF_XDP socket to left"), "{error}");
        // If native mode is unavailable, generic mode is used. (The peer's frames would be too long
        // for a page.)
        ip("link set right mtu 9000");
        assert_eq!(xdp("left").path().mode, XdpMode::Generic);
        let error = XdpPort::open(&Spec::parse("left,mode=native").unwrap()).err().unwrap();
        assert!(error.to_string().starts_with("cannot attach an XDP program to left"), "{error}");
        let error = XdpPort::open(&Spec::parse("right").unwrap()).err().unwrap().to_string();
        assert!(error.contains("the MTU 9000 exceeds"), "{error}");
        let error = XdpPort::open(&Spec::parse("left,queues=2").unwrap()).err().unwrap();
        assert!(error.to_string().starts_with("cannot bind an AF_XDP socket to left"), "{error}");
        ip("link set left down");
        let error = XdpPort::open(&Spec::parse("left").unwrap()).err().unwrap();
        assert!(matches!(error, PortError::InterfaceDown(_)), "{error}");
    });
}

#[test]
fn copies_pass_like_frames() {
    in_namespace(|| {
        veth();
        let (mut left, mut right) = (xdp("left,stamps=kernel"), xdp("right,stamps=kernel"));
        assert_eq!(left.facts().stamps, Clock::XdpProgram);
        let frames = frames();
        let mut copies = Copies::new(frames.len());
        for bytes in &frames {
            copies.push(bytes.len(), None).unwrap().copy_from_slice(bytes);
        }
        let begun = clock::now();
        assert_eq!(left.transmit_copies(&mut copies, begun).unwrap(), frames.len());
        assert_eq!(copies.len(), frames.len());
        let (mut arrived, mut last) = (Vec::new(), begun);
        while arrived.len() < frames.len() {
            let mut some = Copies::new(5);
            right.receive_copies(&mut some, clock::now()).unwrap();
            for (place, bytes) in some.frames().enumerate().filter(|(_, bytes)| ours(bytes)) {
                let stamp = some.stamp(place).unwrap();
                assert_eq!(stamp.clock, Clock::XdpProgram);
                assert!(stamp.at >= last && stamp.at <= clock::now(), "{stamp:?} after {last:?}");
                last = stamp.at;
                arrived.push(bytes.to_vec());
            }
            assert!(clock::now() < begun + PATIENCE);
        }
        assert!(arrived == frames);
    });
}

#[test]
fn live_frames_arrive_unchanged_for_any_order_of_returned_pages() {
    in_namespace(|| {
        veth();
        let mut left = open("live:left", &Options::forwarder()).unwrap();
        let mut right = xdp("right,stamps=kernel");
        assert_eq!((left.facts().kind, left.facts().frame_bytes_max), ("live", 1514));
        let frames: Vec<Vec<u8>> = frames().into_iter().filter(|it| it.len() <= 1514).collect();
        for _ in 0..20 {
            send(&mut left, &frames);
            assert!(collect(&mut right, frames.len(), ours) == frames);
        }
        let all: Vec<Vec<u8>> = (0..200).map(numbered).collect();
        for part in all.chunks(50) {
            send(&mut left, part);
            assert!(collect(&mut right, part.len(), ours) == part);
        }
        let count = (20 * frames.len() + 200) as u64;
        assert_eq!((left.counters().tx_frames, right.counters().rx_frames), (count, count));
        send(&mut left, &[vec![2; 1515], vec![2; 13]]);
        let counters = left.counters();
        assert_eq!(
            (counters.lost(PortDrop::TooLong), counters.lost(PortDrop::TransmitRefused)),
            (1, 1)
        );
        assert_eq!(counters.tx_frames, count);
        let mut fails = |is_so: fn(&PortError) -> bool| {
            let deadline = clock::now() + PATIENCE;
            let mut batch = Batch::new(1);
            batch.push_bytes(&numbered(1));
            while !left.transmit(&mut batch, clock::now()).is_err_and(|error| is_so(&error)) {
                assert!(clock::now() < deadline, "the port does not fail");
            }
        };
        ip("link set left down");
        fails(|error| matches!(error, PortError::InterfaceDown(name) if name == "left"));
        ip("link del left");
        fails(|error| matches!(error, PortError::NoSuchInterface(name) if name == "left"));
    });
}

/// Frames with their times.
type Timed<T> = Vec<(T, Vec<u8>)>;

/// Hands frames of these lengths over to a port that sends ahead, 2 us apart, and receives them.
/// Returns the frames, with their due times, and what arrived.
fn send_ahead(
    left: &mut dyn Port,
    right: &mut dyn Port,
    lengths: &[usize],
) -> (Timed<Nanos>, Timed<Stamp>) {
    let ahead = left.send_ahead(true);
    assert!(ahead > Nanos::ZERO);
    let (start, mut sent, mut arrived) = (clock::now(), Vec::new(), Vec::new());
    let (mut out, mut departures) = (Copies::new(64), Vec::new());
    let mut some = Copies::new(64);
    while arrived.len() < lengths.len() {
        let now = clock::now();
        assert!(now < start + PATIENCE, "{} of {} frames arrived", arrived.len(), lengths.len());
        out.clear();
        departures.clear();
        while let Some(&length) = lengths.get(sent.len() + out.len()) {
            let number = sent.len() + out.len();
            let due = start + Nanos(number as u64 * 2_000);
            if due > now + ahead || out.room() == 0 {
                break;
            }
            let mut bytes = numbered(number as u32);
            bytes.resize(length, number as u8);
            out.push(length, None).unwrap().copy_from_slice(&bytes);
            let (number, key) = (number as u64, 4);
            let stamp = StampPlace { at: 20, number, key, seed: 5, checksum: None };
            departures.push(SendSchedule::once(due, Nanos::MAX, Some(stamp)));
        }
        let taken = left.transmit_at(&mut out, &departures, now).unwrap();
        let taken = out.frames().zip(&departures).take(taken);
        sent.extend(taken.map(|(bytes, departure)| (departure.due, bytes.to_vec())));
        right.receive_copies(&mut some, clock::now()).unwrap();
        let ours = some.frames().enumerate().filter(|(_, bytes)| ours(bytes));
        arrived.extend(ours.map(|(place, bytes)| (some.stamp(place).unwrap(), bytes.to_vec())));
        clock::sleep_until(clock::now() + Nanos::from_micros(20));
    }
    left.send_ahead(false);
    (sent, arrived)
}

#[test]
fn live_ports_send_each_frame_once_and_not_before_its_time() {
    in_namespace(|| {
        veth();
        let mut left = open("live:left,receive", &Options::forwarder()).unwrap();
        let mut right = open("live:right,receive", &Options::forwarder()).unwrap();
        assert_eq!(right.facts().stamps, Clock::XdpProgram);
        let mut random = Random(3);
        let alike = vec![60; 20_000];
        let mixed: Vec<usize> = (0..5_000).map(|_| 60 + random.below(1_455) as usize).collect();
        for lengths in [alike, mixed] {
            let (sent, arrived) = send_ahead(&mut left, &mut right, &lengths);
            let mut departed = Vec::new();
            left.take_departed(&mut departed);
            assert_eq!((sent.len(), departed.len()), (lengths.len(), lengths.len()));
            let times = departed.iter().map(|it| match it.outcome {
                Outcome::Left(left) => left,
                other => panic!("{other:?}"),
            });
            for ((due, frame), ((stamp, bytes), left)) in sent.iter().zip(arrived.iter().zip(times))
            {
                assert!(*due <= left && left <= stamp.at, "{due} {left} {stamp:?}");
                // The frame has the time at which it left in the upper 48 bits of its place.
                let time = u64::from_be_bytes(bytes[28..36].try_into().unwrap()) >> 16;
                assert_eq!(time, left.0 & 0xffff_ffff_ffff);
                assert!(bytes[..20] == frame[..20] && bytes[36..] == frame[36..]);
            }
        }
        let counters = [left.counters(), right.counters()];
        assert_eq!(counters[0].tx_frames, 25_000);
        assert!(counters.iter().all(|it| it.drops.is_empty()), "{counters:?}");

        // Both directions at once, by one thread of the kernel.
        left.send_ahead(true);
        let (_, arrived) = send_ahead(&mut right, &mut left, &[60; 2_000]);
        assert_eq!(arrived.len(), 2_000);
        // Frames without a time leave immediately, while others are sent ahead and afterwards.
        for is_ahead in [true, false] {
            left.send_ahead(is_ahead);
            send(&mut left, &[numbered(1), numbered(2)]);
            let mut batch = Batch::new(4);
            let deadline = clock::now() + PATIENCE;
            while batch.len() < 2 {
                right.receive(&mut batch, clock::now()).unwrap();
                assert!(clock::now() < deadline, "{is_ahead}");
            }
            let bytes: Vec<&[u8]> = batch.frames().iter().map(|frame| frame.bytes()).collect();
            assert_eq!(bytes, [numbered(1), numbered(2)]);
        }
    });
}

#[test]
fn without_kernel_timestamps_frames_have_user_space_ones() {
    in_namespace(|| {
        veth();
        let (mut left, mut right) = (xdp("left"), xdp("right"));
        send(&mut left, &[numbered(1)]);
        let mut batch = Batch::new(4);
        let now = Nanos(77);
        while right.receive(&mut batch, now).unwrap() == 0 {}
        let stamp = batch.frames()[0].stamp.unwrap();
        assert_eq!((stamp.at, stamp.clock), (now, Clock::UserSpace));
    });
}

/// The receiver pauses for two milliseconds while a frame is in the ring.
#[test]
fn the_program_timestamp_precedes_a_receiver_stall() {
    in_namespace(|| {
        veth();
        for (stamps, is_before) in [("kernel", true), ("none", false)] {
            let (mut left, mut right) = (xdp("left"), xdp(&format!("right,stamps={stamps}")));
            for round in 0..20 {
                let begun = clock::now();
                send(&mut left, &[numbered(round)]);
                let mut wait = WaitSet::new();
                wait.add(right.descriptor().unwrap(), false);
                assert_eq!(wait.until(Some(begun + PATIENCE)).unwrap(), 1);
                let was_there = clock::now();
                clock::sleep_until(was_there + Nanos::from_millis(2));
                let mut batch = Batch::new(4);
                while right.receive(&mut batch, clock::now()).unwrap() == 0 {}
                let stamp = batch.frames()[0].stamp.unwrap();
                assert_eq!(stamp.clock == Clock::XdpProgram, is_before);
                assert_eq!(stamp.at <= was_there, is_before, "{stamp:?}, there at {was_there}");
                assert!(stamp.at >= begun);
            }
        }
    });
}

/// A fixed pseudo-random sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn entry(&mut self) -> Entry {
        let mut text = ["capture", "drop"][self.below(2) as usize].to_owned();
        let is_six = self.below(3) == 0;
        for key in ["src", "dst"] {
            let (number, open) = (self.below(4), self.below(3) as u32);
            let number = number >> open << open;
            match (self.below(3), is_six) {
                (0, false) => text += &format!(",{key}=10.0.0.{number}/{}", 32 - open),
                (0, true) => text += &format!(",{key}=2001:db8::{number}/{}", 128 - open),
                _ => {}
            }
        }
        if self.below(2) == 0 {
            text += &format!(",proto={}", [6, 17, 132, 1, 58, 47][self.below(6) as usize]);
        }
        for key in ["sport", "dport"] {
            let number = self.below(4);
            match self.below(6) {
                0 => text += &format!(",{key}={number}"),
                1 => text += &format!(",{key}={}/0xfffe", number & !1),
                _ => {}
            }
        }
        if !text.contains(',') {
            text += ",any";
        }
        text::entry(&text).unwrap()
    }

    /// Returns a frame with up to three tags and usually an IP packet; some are truncated or
    /// corrupted.
    fn frame(&mut self) -> Vec<u8> {
        let mut frame = Builder::new([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]);
        for _ in 0..self.below(8).saturating_sub(4) {
            frame = frame.tag([0x8100, 0x88a8, 0x9100][self.below(3) as usize], 5);
        }
        let (one, two) = (self.below(4) as u8, self.below(4) as u8);
        frame = match self.below(8) {
            0 => frame.ether_type(0x88b5),
            1..=3 => {
                let address = |last: u8| format!("2001:db8::{last}").parse().unwrap();
                let header = ipv6::Header::new(address(one), address(two));
                let frame = frame.ipv6(header);
                if self.below(6) == 0 { frame.extension(0, &[0, 1, 4, 0, 0, 0, 0]) } else { frame }
            }
            _ => {
                let header = ipv4::Header::new([10, 0, 0, one].into(), [10, 0, 0, two].into());
                frame.ipv4(ipv4::Header { protocol: 47, ..header })
            }
        };
        let (from, to) = (self.below(4) as u16, self.below(4) as u16);
        frame = if self.below(4) > 0 { frame.udp(from, to) } else { frame };
        let mut bytes = frame.payload(&[7; 30]).bytes();
        match self.below(6) {
            0 => bytes.truncate(14 + self.below(60) as usize),
            1 => {
                let at = 12 + self.below(50) as usize % (bytes.len() - 12);
                bytes[at] ^= 1 << self.below(8);
            }
            _ => {}
        }
        bytes
    }
}

#[test]
fn filtered_frames_are_held_and_counted_and_all_others_delivered() {
    in_namespace(|| {
        veth();
        let (mut left, mut right) = (xdp("left"), xdp("right,stamps=kernel"));
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        // Frames with a length in place of a type are always delivered.
        let last = frame(&[0, 46], 46);
        let (mut kernel_filter_counters, mut came_needlessly) = (0, 0);
        for round in 0..80 {
            let entries: Vec<Entry> = (0..1 + round % 20).map(|_| random.entry()).collect();
            let mut filter = Filter::closed();
            filter.load(entries.clone()).unwrap();
            assert!(right.install_kernel_filter(&entries), "{entries:?}");
            let frames: Vec<Vec<u8>> = (0..48).map(|_| random.frame()).collect();
            let wanted: Vec<&Vec<u8>> = frames.iter().filter(|it| filter.keeps(it)).collect();
            send(&mut left, &frames);
            send(&mut left, std::slice::from_ref(&last));
            let mut came = Vec::new();
            while came.last() != Some(&last) {
                came.extend(collect(&mut right, 1, |_| true));
            }
            came.pop();
            let count = came.len();
            came.retain(|bytes| filter.keeps(bytes));
            assert!(came.iter().eq(wanted), "{entries:?}");
            let counted: u64 =
                right.kernel_filter_counters().iter().map(|count| count.frames).sum();
            assert_eq!(counted as usize, frames.len() - count, "{entries:?}");
            (kernel_filter_counters, came_needlessly) =
                (kernel_filter_counters + counted, came_needlessly + count - came.len());
        }
        assert!(
            kernel_filter_counters > came_needlessly as u64,
            "{kernel_filter_counters} and {came_needlessly}"
        );
        let all = [text::entry("any").unwrap()];
        assert!(right.install_kernel_filter(&all));
        send(&mut left, &[numbered(1)]);
        collect(&mut right, 1, |bytes| *bytes == numbered(1)[..]);
        assert_eq!(right.kernel_filter_counters().iter().map(|count| count.frames).sum::<u64>(), 0);
    });
}

#[test]
fn checksums_left_to_hardware_are_completed() {
    in_namespace(|| {
        veth();
        ip("addr add 10.9.0.1/24 dev left");
        ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev left nud permanent");
        for (mode, payload) in [("native", 33), ("generic", 1400)] {
            let mut right = xdp(&format!("right,mode={mode}"));
            let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
            socket.send_to(&vec![7; payload], "10.9.0.2:9").unwrap();
            let carries = |protocol| move |bytes: &[u8]| bytes.len() > 34 && bytes[23] == protocol;
            check_transport(&collect(&mut right, 1, carries(17))[0], 14);
            let url = "tcp:10.9.0.2:9".parse().unwrap();
            let _dial = channel::Connecting::start(&url, clock::now(), PATIENCE).unwrap();
            check_transport(&collect(&mut right, 1, carries(6))[0], 14);
        }
    });
}

#[test]
fn several_queues_share_memory_and_are_all_received() {
    in_namespace(|| {
        ip("link add left numrxqueues 4 numtxqueues 4 type veth peer name right numrxqueues 4 \
            numtxqueues 4");
        ip("link set left up");
        ip("link set right up");
        let (mut left, mut right) = (xdp("left,ring=64"), xdp("right,ring=64"));
        assert_eq!((left.queues(), right.queues()), (4, 4));
        // This sender uses the first queue; the kernel's own frames use the sender's queue.
        let mut other = afpacket("left");
        let numbers: Vec<u32> = (0..2_000).collect();
        let mut all = Vec::new();
        for part in numbers.chunks(50) {
            let (some, others) = part.split_at(25);
            send(&mut left, &some.iter().map(|&n| numbered(n)).collect::<Vec<_>>());
            send(&mut other, &others.iter().map(|&n| numbered(n)).collect::<Vec<_>>());
            all.extend(collect(&mut right, 50, ours).iter().map(|bytes| number(bytes)));
        }
        all.sort_unstable();
        assert_eq!(all, numbers);
        // With only one of the queues in use, the kernel receives the frames of the others.
        drop(right);
        assert_eq!(xdp("right,queues=1").queues(), 1);
        let error = XdpPort::open(&Spec::parse("right,queues=5").unwrap()).err().unwrap();
        assert!(error.to_string().starts_with("cannot bind an AF_XDP socket to right"), "{error}");
    });
}

#[test]
fn a_full_ring_drops_and_every_frame_is_accounted_for() {
    in_namespace(|| {
        veth();
        for (mode, to) in [("native", "xdp"), ("generic", "xdp"), ("native", "afpacket")] {
            let mut right = xdp(&format!("right,mode={mode},ring=64"));
            let mut left = open(&format!("{to}:left"), &Options::forwarder()).unwrap();
            const SENT: u32 = 1_000;
            for part in 0..SENT / 50 {
                let frames: Vec<_> = (0..50).map(|n| numbered(part * 50 + n)).collect();
                send(&mut left, &frames);
            }
            let mut arrived = Vec::new();
            let deadline = clock::now() + PATIENCE;
            loop {
                let mut batch = Batch::new(16);
                right.receive(&mut batch, clock::now()).unwrap();
                let frames = batch.frames().iter().map(|frame| frame.bytes());
                arrived.extend(frames.filter(|bytes| ours(bytes)).map(number));
                let refused = left.counters().lost(PortDrop::TransmitRefused);
                let full = right.counters().lost(PortDrop::ReceiveRingFull);
                // Lost frames of the kernel itself can only increase the sum.
                if arrived.len() as u64 + refused + full >= u64::from(SENT) {
                    assert!(refused + full > 0, "{SENT} frames do not fit into 64 slots");
                    break;
                }
                assert!(clock::now() < deadline, "{} + {refused} + {full}", arrived.len());
            }
            assert!(arrived.len() >= 64, "{} frames arrived", arrived.len());
            assert!(arrived.is_sorted_by(|one, next| one < next), "in order, none repeated");
            // It continues without further effects.
            send(&mut left, &[numbered(SENT + 1)]);
            collect(&mut right, 1, |bytes| ours(bytes) && number(bytes) == SENT + 1);
        }
    });
}

#[test]
fn ten_thousand_frames_each_way_arrive_in_order() {
    in_namespace(|| {
        veth();
        let mut right = xdp("right,busy-poll=256");
        for left in ["xdp:left", "afpacket:left"] {
            let mut left = open(left, &Options::forwarder()).unwrap();
            for part in 0..200 {
                let numbers: Vec<u32> = (part * 50..part * 50 + 50).collect();
                let frames: Vec<_> = numbers.iter().map(|&n| numbered(n)).collect();
                send(&mut left, &frames);
                assert_eq!(collect(&mut right, 50, ours), frames);
                send(&mut right, &frames);
                assert_eq!(collect(&mut left, 50, ours), frames);
            }
        }
        assert_eq!(right.counters().rx_frames, 20_000);
        assert_eq!(right.counters().drops, []);
    });
}

#[test]
fn frames_of_invalid_lengths_are_counted_and_block_nothing() {
    in_namespace(|| {
        veth();
        let (mut left, mut right) = (xdp("left"), xdp("right"));
        send(
            &mut left,
            &[
                numbered(1),
                frame(&[0x88, 0xb5], 1501),
                frame(&[0x88, 0xb5], 9000),
                vec![1; 13],
                frame(&[0x81, 0x00, 0x00, 0x05, 0x88, 0xb5], 1501),
                frame(&[0x81, 0x00, 0x00, 0x05, 0x88, 0xb5], 1500),
                numbered(2),
            ],
        );
        let lengths: Vec<_> = collect(&mut right, 3, ours).iter().map(Vec::len).collect();
        assert_eq!(lengths, [60, 1518, 60]);
        let counters = left.counters();
        assert_eq!(counters.lost(PortDrop::TooLong), 3);
        assert_eq!(counters.lost(PortDrop::TransmitRefused), 1);
        assert_eq!((counters.tx_frames, counters.tx_bytes), (3, 60 + 1518 + 60));
        // A chunk has room for frames of the MTU; longer received frames are counted.
        drop((left, right));
        let mut right = xdp("right,mode=generic");
        ip("link set left mtu 3000");
        ip("link set right mtu 3000");
        let mut left = afpacket("left");
        send(&mut left, &[frame(&[0x88, 0xb5], 3000), numbered(3)]);
        assert_eq!(collect(&mut right, 1, ours), [numbered(3)]);
        assert_eq!(right.counters().lost(PortDrop::ReceiveTooLong), 1);
        let mut right = {
            drop(right);
            xdp("right")
        };
        send(&mut left, &[frame(&[0x88, 0xb5], 3000)]);
        assert_eq!(collect(&mut right, 1, ours), [frame(&[0x88, 0xb5], 3000)]);
    });
}

#[test]
fn an_interface_that_goes_down_and_up_is_followed() {
    in_namespace(|| {
        veth();
        for options in ["", ",busy-poll", ",mode=generic"] {
            let (mut left, mut right) =
                (xdp(&format!("left{options}")), xdp(&format!("right{options}")));
            let descriptor = right.descriptor();
            ip("link set right down");
            let error = failure(&mut right);
            assert!(matches!(&error, PortError::InterfaceDown(name) if name == "right"), "{error}");
            let mut batch = Batch::new(1);
            batch.push_bytes(&numbered(1));
            assert!(right.transmit(&mut batch, clock::now()).is_err());
            ip("link set right up");
            recovery(&mut right);
            send(&mut left, &[numbered(2)]);
            assert_eq!(collect(&mut right, 1, ours), [numbered(2)], "{options}");

            ip("link del right");
            assert!(matches!(failure(&mut right), PortError::NoSuchInterface(_)));
            assert!(matches!(failure(&mut left), PortError::NoSuchInterface(_)));
            veth();
            recovery(&mut left);
            recovery(&mut right);
            send(&mut left, &[numbered(3)]);
            assert_eq!(collect(&mut right, 1, ours), [numbered(3)], "{options}");
            send(&mut right, &[numbered(4)]);
            assert_eq!(collect(&mut left, 1, ours), [numbered(4)], "{options}");
            assert_eq!(right.descriptor(), descriptor, "a waiting caller is not affected");
            assert_eq!(right.counters().rx_frames, 2, "counters are not reset");
        }
    });
}

#[test]
fn without_privileges_opening_is_an_error() {
    in_namespace(|| {
        veth();
        let (header, rights) = ([0x2008_0522u32, 0], [0u32; 6]);
        // SAFETY: both pointers are to values of the layout of the system call. It changes only the
        // capabilities of this thread, which then ends.
        let changed = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), rights.as_ptr()) };
        assert_eq!(changed, 0, "{}", std::io::Error::last_os_error());
        let error = XdpPort::open(&Spec::new("left")).err().unwrap();
        assert_eq!(error.to_string(), "cannot open an AF_XDP socket: not permitted");
    });
}
