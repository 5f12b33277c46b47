//! Tests of the program on frames that go nowhere. Without the rights to load programs a test
//! prints this and passes.

use std::io;

use ebpf::{Map, MapKind};

use super::memory::{SLOTS, SendMemory};
use super::program::{DROP, MapDescriptors, text};
use super::*;
use crate::departure::{ChecksumPlace, Gap, StampPlace};

/// Result for a frame that is sent (`XDP_REDIRECT`).
const REDIRECT: u32 = 4;

/// Index of the loopback interface, which every namespace has. Frames of a test run arrive there.
const LOOPBACK: i32 = 1;

/// A program with its memory.
struct Bench {
    memory: SendMemory,
    arrivals: SharedMemory,
    _interfaces: Map,
    program: Program,
}

impl Bench {
    fn new(interface: i32) -> io::Result<Self> {
        let memory = SendMemory::create()?;
        let (arrivals, interfaces) =
            (memory::create_arrivals()?, Map::new(MapKind::Devices, SLOTS as u32)?);
        (0..SLOTS as u32).try_for_each(|slot| interfaces.put(slot, LOOPBACK as u32))?;
        memory.control.set_word(control::COUNT, 1);
        let text = text(MapDescriptors {
            control: memory.control.descriptor(),
            frames: memory.frames.descriptor(),
            results: memory.results.descriptor(),
            arrivals: Some(arrivals.descriptor()),
            interfaces: interfaces.descriptor(),
            interface,
        });
        let program = Program::load(&text, c"Apache-2.0")?;
        Ok(Bench { memory, arrivals, _interfaces: interfaces, program })
    }

    /// Adds a frame to send to a slot.
    fn push(&self, slot: usize, head: [u8; sent::BYTES], bytes: &[u8]) {
        let produced = self.word(slot, control::PRODUCED);
        let at = slot * SEND_RING_DISTANCE + produced as usize % SEND_RING_BYTES;
        self.memory.frames.write(at, &head);
        self.memory.frames.write(at + sent::BYTES, bytes);
        let after = produced + record_bytes(sent::BYTES, bytes.len());
        self.memory.control.set_word(control::PRODUCED + slot * control::SLOT_BYTES, after);
    }

    /// Returns the result of the slot's last frame.
    fn result(&self, slot: usize) -> u64 {
        let place = (self.word(slot, control::DONE) - 1) as usize % RESULTS;
        self.memory.results.word(8 * (slot * RESULTS + place))
    }

    fn word(&self, slot: usize, at: usize) -> u64 {
        self.memory.control.word(at + slot * control::SLOT_BYTES)
    }

    /// Runs the program on a generated frame of 60 bytes that others have used.
    fn run(&self) -> (u32, Vec<u8>) {
        let run = self.program.run_once(&[0xee; 60], 1).unwrap();
        (run.result, run.frame)
    }

    fn is_idle(&self, slot: usize) -> bool {
        self.word(slot, control::CONSUMED) == self.word(slot, control::PRODUCED)
    }
}

/// Runs a test with a program that sends, or with one that receives.
fn with_bench(interface: i32, test: impl FnOnce(&Bench)) {
    match Bench::new(interface) {
        Ok(bench) => test(&bench),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("skipped; need: rights to load eBPF programs: {error}");
        }
        Err(error) => panic!("{error}"),
    }
}

fn sends(test: impl FnOnce(&Bench)) {
    with_bench(LOOPBACK + 1, test);
}

fn receives(test: impl FnOnce(&Bench)) {
    with_bench(LOOPBACK, test);
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + length) as u8).collect()
}

fn head(length: usize, due: u64, stamp: Option<StampPlace>) -> [u8; sent::BYTES] {
    memory::record_head(length, &SendSchedule::once(Nanos(due), Nanos::MAX, stamp))
}

fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns the ones' complement sum of big-endian words.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[test]
fn frames_of_all_lengths_replace_every_byte_of_the_generated_frame() {
    sends(|bench| {
        for length in [14, 59, 60, 61, 64, 100, 999, 1514] {
            bench.push(0, head(length, 0, None), &bytes(length));
            let before = os::clock::now();
            assert_eq!(bench.run(), (REDIRECT, bytes(length)));
            let left = Nanos(bench.result(0));
            assert!(left >= before && left <= os::clock::now());
            assert!(bench.is_idle(0));
            assert_eq!(bench.run().0, DROP as u32, "no frame is left");
        }
    });
}

#[test]
fn frames_leave_in_order_across_the_end_of_the_ring() {
    sends(|bench| {
        for number in 0..3 * SEND_RING_BYTES / 1_546 {
            let frame = bytes(1_514 - number % 7);
            bench.push(0, head(frame.len(), 0, None), &frame);
            assert_eq!(bench.run(), (REDIRECT, frame));
        }
    });
}

#[test]
fn a_frame_waits_until_it_is_due_and_keeps_later_ones_waiting() {
    sends(|bench| {
        let due = os::clock::now() + Nanos::from_millis(20);
        bench.push(0, head(60, due.0, None), &bytes(60));
        bench.push(0, head(61, 0, None), &bytes(61));
        let mut result = bench.run();
        while result.0 == DROP as u32 {
            result = bench.run();
        }
        assert!(os::clock::now() >= due);
        assert_eq!(result, (REDIRECT, bytes(60)));
        assert_eq!(bench.run(), (REDIRECT, bytes(61)));
    });
}

/// Returns a frame whose checksum at 40 covers all from 34 on, and the place at 44 of its number
/// and send time.
fn stamped(length: usize, number: u64) -> (Vec<u8>, StampPlace) {
    let mut frame = bytes(length);
    frame[40..42].fill(0);
    frame[44..60].fill(0);
    let checksum = Some(ChecksumPlace { at: 40, sum: sum(&frame[34..]), zero: 0xffff });
    (frame, StampPlace { at: 44, number, key: mix(number), seed: 9 << 48, checksum })
}

/// Checks that a frame was completed as its number and the slot's last result require.
fn check(bench: &Bench, (frame, place): &(Vec<u8>, StampPlace), number: u64, sent_frame: &[u8]) {
    let read = |at: usize| u64::from_be_bytes(sent_frame[at..at + 8].try_into().unwrap());
    assert_eq!(read(44), number);
    let (time, tail) = (bench.result(0) & 0xffff_ffff_ffff, read(52));
    let check = mix(mix(place.key ^ number) ^ place.seed ^ time) >> 48;
    assert_eq!((tail >> 16, tail & 0xffff), (time, check));
    if place.checksum.is_some() {
        assert_eq!(sum(&sent_frame[34..]), 0xffff);
    }
    let rest = |bytes: &[u8]| [&bytes[..40], &bytes[42..44], &bytes[60..]].concat();
    assert_eq!(rest(sent_frame), rest(frame));
}

#[test]
fn frames_that_are_too_late_are_not_sent() {
    sends(|bench| {
        let limited = |slack| {
            let due = os::clock::now() - Nanos::from_millis(2);
            memory::record_head(60, &SendSchedule::once(due, slack, None))
        };
        bench.push(0, limited(Nanos::from_millis(1)), &bytes(60));
        bench.push(0, limited(Nanos::from_secs(4)), &bytes(60));
        bench.push(0, limited(Nanos::from_secs(5)), &bytes(60));
        assert_eq!(bench.run().0, DROP as u32);
        assert_eq!((bench.result(0), bench.word(0, control::DONE)), (TOO_LATE, 1));
        assert_eq!((bench.run().0, bench.run().0), (REDIRECT, REDIRECT));
    });
}

#[test]
fn number_send_time_and_checksum_are_completed() {
    sends(|bench| {
        for (length, number) in [(60, 0), (60, u64::MAX - 1), (74, 0xffff_ffff), (1_514, 1 << 47)] {
            let it = stamped(length, number);
            bench.push(0, head(length, 0, Some(it.1)), &it.0);
            let (result, sent_frame) = bench.run();
            assert_eq!(result, REDIRECT);
            check(bench, &it, number, &sent_frame);
        }
        // Without a checksum.
        let (frame, place) = stamped(60, 7);
        let it = (frame, StampPlace { checksum: None, ..place });
        bench.push(0, head(60, 0, Some(it.1)), &it.0);
        let (_, sent_frame) = bench.run();
        check(bench, &it, 7, &sent_frame);
        assert_eq!(sent_frame[40..42], [0, 0]);
    });
}

#[test]
fn repetitions_have_successive_numbers_and_exact_times() {
    sends(|bench| {
        let it = stamped(60, 0x1_0000_fffe);
        // A frame every 3 1/3 ns, of which the first is due a third after a whole nanosecond.
        let gap = Gap { whole: 3, rest: 1, parts: 3, carried: 1 };
        let slack = Nanos::MAX;
        let departure = SendSchedule { due: Nanos(100), slack, frames: 9, gap, stamp: Some(it.1) };
        bench.push(0, memory::record_head(60, &departure), &it.0);
        bench.push(0, head(61, 0, None), &bytes(61));
        let mut dues = Vec::new();
        for repetition in 0..9 {
            dues.push(bench.memory.frames.word(sent::DUE));
            assert!(!bench.is_idle(0));
            let (result, sent_frame) = bench.run();
            assert_eq!(result, REDIRECT);
            check(bench, &it, 0x1_0000_fffe + repetition, &sent_frame);
            assert_eq!(bench.word(0, control::DONE), repetition + 1);
        }
        assert_eq!(dues, [100, 103, 107, 110, 113, 117, 120, 123, 127]);
        assert_eq!(bench.run(), (REDIRECT, bytes(61)));
        assert!(bench.is_idle(0));
        // Without a rest.
        let gap = Gap { whole: 5, ..Gap::default() };
        let due = Nanos(u64::MAX - 12);
        let departure = SendSchedule { due, slack, frames: 3, gap, stamp: None };
        let at = bench.word(0, control::PRODUCED) as usize;
        bench.push(0, memory::record_head(60, &departure), &it.0);
        assert_eq!(bench.run().0, DROP as u32, "the frame is not due");
        assert_eq!(bench.memory.frames.word(at + sent::DUE), u64::MAX - 12);
    });
}

#[test]
fn places_outside_the_frame_are_rejected() {
    sends(|bench| {
        let checksum = |at| Some(ChecksumPlace { at, sum: 1, zero: 0 });
        for (at, checksum) in
            [(45, None), (60, None), (0xffff, None), (40, checksum(59)), (40, checksum(0xffff))]
        {
            let stamp = Some(StampPlace { at, number: 1, key: 2, seed: 3, checksum });
            bench.push(0, head(60, 0, stamp), &bytes(60));
            assert_eq!(bench.run().0, DROP as u32);
            assert_eq!(bench.result(0), 0, "it has not left");
            assert!(bench.is_idle(0));
        }
    });
}

#[test]
fn records_of_impossible_lengths_are_skipped() {
    sends(|bench| {
        for length in [0, 13, 1_515, usize::MAX] {
            bench.push(0, head(length, 0, None), &bytes(60));
            bench.push(0, head(60, 0, None), &bytes(60));
            assert_eq!(bench.run().0, DROP as u32);
            assert!(bench.is_idle(0));
        }
    });
}

#[test]
fn slots_send_in_turn() {
    sends(|bench| {
        bench.memory.control.set_word(control::TURNS, 2 | 5 << 32);
        bench.memory.control.set_word(control::COUNT, 2);
        for length in [70, 71] {
            bench.push(2, head(length, 0, None), &bytes(length));
            bench.push(5, head(length + 10, 0, None), &bytes(length + 10));
        }
        let mut lengths: Vec<usize> = (0..4).map(|_| bench.run().1.len()).collect();
        // The first turn is that of either slot.
        if lengths[0] == 80 {
            lengths = [lengths[1], lengths[0], lengths[3], lengths[2]].to_vec();
        }
        assert_eq!(lengths, [70, 80, 71, 81]);
        // A slot without frames costs a turn.
        bench.push(2, head(72, 0, None), &bytes(72));
        let results = [bench.run().0, bench.run().0];
        assert!(results.contains(&REDIRECT) && results.contains(&(DROP as u32)), "{results:?}");
    });
}

#[test]
fn received_frames_are_in_the_ring_with_their_times() {
    receives(|bench| {
        let mut position = 0;
        for length in [14, 59, 60, 61, 999, 1_514, 2_000] {
            let before = os::clock::now();
            assert_eq!(bench.program.run_once(&bytes(length), 1).unwrap().result, DROP as u32);
            let at = arrivals::RING + position as usize;
            assert_eq!(bench.arrivals.word(at + received::LENGTH) as u32 as usize, length);
            let arrived = Nanos(bench.arrivals.word(at + received::ARRIVED));
            assert!(arrived >= before && arrived <= os::clock::now());
            let mut frame = vec![0; length];
            bench.arrivals.read(at + received::BYTES, &mut frame);
            assert_eq!(frame, bytes(length));
            position += record_bytes(received::BYTES, length);
            assert_eq!(bench.arrivals.word(arrivals::PRODUCED), position);
        }
        assert_eq!(bench.program.run_once(&bytes(2_001), 1).unwrap().result, DROP as u32);
        assert_eq!(bench.arrivals.word(arrivals::TOO_LONG), 1);
        assert_eq!(bench.arrivals.word(arrivals::PRODUCED), position);
    });
}

#[test]
fn a_full_ring_keeps_its_frames_and_counts_the_others() {
    receives(|bench| {
        let sent_frames = 40_000;
        bench.program.run_once(&bytes(60), sent_frames).unwrap();
        let produced = bench.arrivals.word(arrivals::PRODUCED);
        assert!(produced <= RECEIVE_RING_BYTES as u64);
        let kept = produced / record_bytes(received::BYTES, 60);
        assert_eq!(kept + bench.arrivals.word(arrivals::LOST), u64::from(sent_frames));
        assert!(kept > 26_000);
        let mut frame = [0; 60];
        for at in (0..produced).step_by(80) {
            bench.arrivals.read(arrivals::RING + at as usize + received::BYTES, &mut frame);
            assert_eq!(frame, bytes(60)[..]);
        }
        // After the owner has read them, a frame extends over the end of the ring.
        bench.arrivals.set_word(arrivals::CONSUMED, produced);
        let mut position = produced;
        while position < RECEIVE_RING_BYTES as u64 {
            bench.program.run_once(&bytes(1_999), 1).unwrap();
            let mut frame = vec![0; 1_999];
            let at = arrivals::RING + position as usize + received::BYTES;
            bench.arrivals.read(at, &mut frame);
            assert_eq!(frame, bytes(1_999));
            position += record_bytes(received::BYTES, 1_999);
        }
        assert_eq!(bench.arrivals.word(arrivals::PRODUCED), position);
    });
}
