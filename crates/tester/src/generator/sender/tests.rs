//! Tests that frames leave in due order, and that unsent frames are counted with the right reason.

use netio::departure::Outcome;
use netio::memory::{MemoryPort, pair};
use packet::frame::Batch;

use super::*;
use crate::generator::schedule::Period;
use crate::generator::template::tests::stream;
use crate::signature::Signature;
use crate::stream::{Rate, Stream};

const KEY: u64 = 3;
const MICRO: u64 = 1_000;

/// A stream with a frame per microsecond for one millisecond from `start` on.
fn outgoing(id: u16, start: Nanos, phase: Nanos, catch_up: u32) -> ScheduledStream {
    let one = Stream { id, rate: Rate::FramesPerSecond(1e6), ..stream(64) };
    let period = Period::new(one.rate, 64);
    let warmup = Schedule::new(start, phase, Nanos::ZERO, period);
    let measured = Schedule::new(start, phase, Nanos::from_millis(1), period);
    ScheduledStream::new(Templates::leaving(&one, KEY), [warmup, measured], catch_up)
}

/// Returns stream, number and send time of every received frame.
fn arrived(port: &mut MemoryPort) -> Vec<(u16, u64, SendTime)> {
    let mut batch = Batch::new(4096);
    port.receive(&mut batch, Nanos::ZERO).unwrap();
    let read = |frame: &packet::frame::Frame| Signature::read(KEY, &frame.bytes()[42..]).unwrap();
    let signatures = batch.frames().iter().map(read);
    signatures.map(|found| (found.stream, found.sequence.number, found.sent)).collect()
}

fn numbers(port: &mut MemoryPort) -> Vec<u64> {
    arrived(port).into_iter().map(|(_, number, _)| number).collect()
}

#[test]
fn no_frame_leaves_before_it_is_due() {
    let (mut near, mut far) = pair(4096, "wire");
    let mut sender = Sender::new(0, vec![outgoing(1, Nanos(500), Nanos::ZERO, 256)]);
    assert_eq!(sender.next_due(), Some(Nanos(500)));
    assert_eq!(sender.send(&mut near, Nanos(499)).unwrap(), 0);
    assert_eq!(sender.send(&mut near, Nanos(500)).unwrap(), 1);
    assert_eq!(sender.send(&mut near, Nanos(1_499)).unwrap(), 0);
    assert_eq!(sender.send(&mut near, Nanos(3_500)).unwrap(), 3);
    assert_eq!(arrived(&mut far)[3], (1, 3, SendTime::new(Nanos(3_500))));
    assert_eq!(sender.pacing().lateness.ns_max(), Some(2 * MICRO));
    // Frames 1, 2 and 3 left together: one gap is 2 us too long, two are 1 us too short.
    assert_eq!(sender.pacing().gap_error.ns_max(), Some(2 * MICRO));
    assert_eq!(sender.pacing().gap_error.count(), 3);
}

#[test]
fn a_late_sender_catches_up_with_a_bounded_burst_and_counts_the_rest() {
    let (mut near, mut far) = pair(4096, "wire");
    let mut sender = Sender::new(0, vec![outgoing(1, Nanos(0), Nanos::ZERO, 16)]);
    sender.send(&mut near, Nanos(0)).unwrap();
    assert_eq!(numbers(&mut far), [0]);
    // Stalled for 500 us: only the last 16 of the 500 due frames leave.
    assert_eq!(sender.send(&mut near, Nanos(500 * MICRO)).unwrap(), 16);
    assert_eq!(numbers(&mut far), (485..=500).collect::<Vec<_>>());
    assert_eq!(sender.pacing().stalls, 0);
    // Stalled until 1.2 ms after the end: all remaining frames are too late.
    assert_eq!(sender.send(&mut near, Nanos(2_200 * MICRO)).unwrap(), 0);
    assert_eq!((sender.pacing().stalls, sender.pacing().lateness_max), (1, Nanos(1_699 * MICRO)));
    let counts = sender.streams()[0].counts(TrafficPhase::Measured);
    assert_eq!(counts, Counts { offered: 17, unsent_late: 983, unsent_refused: 0 });
    assert_eq!(sender.next_due(), None);
}

#[test]
fn rejected_frames_are_rebuilt_and_sent_exactly_once() {
    let (mut near, mut far) = pair(8, "narrow");
    let mut sender = Sender::new(0, vec![outgoing(1, Nanos(0), Nanos::ZERO, 256)]);
    assert_eq!(sender.send(&mut near, Nanos(19 * MICRO)).unwrap(), 8);
    assert_eq!(sender.send(&mut near, Nanos(20 * MICRO)).unwrap(), 0);
    assert_eq!(numbers(&mut far), (0..8).collect::<Vec<_>>());
    assert_eq!(sender.send(&mut near, Nanos(21 * MICRO)).unwrap(), 8);
    let again = arrived(&mut far);
    assert_eq!((again[0].1, again[7].1), (8, 15));
    assert!(again.iter().all(|frame| frame.2 == SendTime::new(Nanos(21 * MICRO))));
    // Rejected until frames are skipped: this counts for the port, not as a stall.
    assert_eq!(sender.send(&mut near, Nanos(23 * MICRO)).unwrap(), 8);
    assert_eq!(sender.send(&mut near, Nanos(24 * MICRO)).unwrap(), 0);
    sender.send(&mut near, Nanos(1_900 * MICRO)).unwrap();
    sender.close();
    let counts = sender.streams()[0].counts(TrafficPhase::Measured);
    assert_eq!(counts, Counts { offered: 24, unsent_late: 0, unsent_refused: 976 });
    assert_eq!(sender.pacing().stalls, 0);
}

#[test]
fn streams_are_sent_in_due_order_also_after_a_rejection() {
    let (mut near, mut far) = pair(16, "wire");
    let first = outgoing(1, Nanos(0), Nanos::ZERO, 256);
    let second = outgoing(2, Nanos(0), Nanos(500), 256);
    let mut sender = Sender::new(0, vec![first, second]);
    let mut all = Vec::new();
    for turn in 0..40 {
        sender.send(&mut near, Nanos(15 * MICRO + turn)).unwrap();
        all.extend(arrived(&mut far).into_iter().map(|(stream, number, _)| (number, stream)));
    }
    let want: Vec<(u64, u16)> = (0..16).flat_map(|number| [(number, 1), (number, 2)]).collect();
    assert_eq!(all, want[..31]);
}

#[test]
fn the_warm_up_is_sent_first_and_marked() {
    let (mut near, mut far) = pair(4096, "wire");
    let one = stream(64);
    let period = Period::new(Rate::FramesPerSecond(1e6), 64);
    let warmup = Schedule::new(Nanos(0), Nanos::ZERO, Nanos(3 * MICRO), period);
    let measured = Schedule::new(Nanos(3 * MICRO), Nanos::ZERO, Nanos(2 * MICRO), period);
    let outgoing = ScheduledStream::new(Templates::leaving(&one, KEY), [warmup, measured], 256);
    let mut sender = Sender::new(9, vec![outgoing]);
    sender.send(&mut near, Nanos(10 * MICRO)).unwrap();
    let mut batch = Batch::new(16);
    far.receive(&mut batch, Nanos::ZERO).unwrap();
    let read = |frame: &packet::frame::Frame| Signature::read(KEY, &frame.bytes()[42..]).unwrap();
    let sequences: Vec<(bool, u16, u64)> = batch
        .frames()
        .iter()
        .map(|frame| read(frame).sequence)
        .map(|sequence| (sequence.is_warmup, sequence.epoch, sequence.number))
        .collect();
    let want = [(true, 9, 0), (true, 9, 1), (true, 9, 2), (false, 9, 0), (false, 9, 1)];
    assert_eq!(sequences, want);
    assert_eq!(sender.pacing().lateness.count(), 2);
}

/// A port that sends ahead, and takes at most `room` frames until their results are read.
struct AheadPort {
    inner: MemoryPort,
    room: usize,
    /// Numbers and send times of all frames.
    numbers: Vec<(u64, Nanos)>,
    departed: Vec<SendReport>,
    late: Nanos,
}

const AHEAD: Nanos = Nanos(20 * MICRO);

impl Port for AheadPort {
    fn facts(&self) -> &netio::port::PortFacts {
        self.inner.facts()
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.inner.receive(batch, now)
    }

    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.inner.transmit(batch, now)
    }

    fn send_ahead(&mut self, is_on: bool) -> Nanos {
        if is_on { AHEAD } else { Nanos::ZERO }
    }

    fn transmit_at(
        &mut self,
        copies: &mut Copies,
        departures: &[SendSchedule],
        now: Nanos,
    ) -> Result<usize, PortError> {
        assert_eq!(copies.len(), departures.len());
        let mut taken = 0;
        for (bytes, departure) in copies.frames().zip(departures) {
            let SendSchedule { due, slack, frames, gap, stamp } = *departure;
            assert!(frames > 0);
            assert_eq!(slack, Nanos::from_millis(10));
            if self.departed.len() + frames as usize > self.room {
                break;
            }
            assert!(due <= now + AHEAD);
            assert_eq!(bytes.len(), 60);
            let place = stamp.unwrap();
            assert_eq!(place.at, 44);
            for repetition in 0..u64::from(frames) {
                let at = due.0 + (gap.carried + repetition * gap.rest) / gap.parts.max(1);
                let left = Nanos(at + repetition * gap.whole) + self.late;
                self.numbers.push((place.number + repetition, left));
                let is_late = self.late > slack;
                let outcome = if is_late { Outcome::TooLate } else { Outcome::Left(left) };
                self.departed.push(SendReport { due, outcome });
            }
            taken += 1;
        }
        Ok(taken)
    }

    fn take_departed(&mut self, departed: &mut Vec<SendReport>) {
        departed.append(&mut self.departed);
    }

    fn counters(&mut self) -> netio::port::PortCounters {
        self.inner.counters()
    }
}

/// Returns frame numbers with their send times, of streams with a frame per microsecond.
fn at_times(port: &AheadPort, numbers: impl Iterator<Item = u64>) -> Vec<(u64, Nanos)> {
    numbers.map(|number| (number, Nanos((100 + number) * MICRO) + port.late)).collect()
}

#[test]
fn a_port_that_sends_ahead_gets_each_frame_once_before_it_is_due() {
    let (inner, _far) = pair(8, "wire");
    let of_before = SendReport { due: Nanos(3), outcome: Outcome::Left(Nanos(4)) };
    let (numbers, departed) = (Vec::new(), vec![of_before]);
    let mut port = AheadPort { inner, room: 48, numbers, departed, late: Nanos(300) };
    let mut sender = Sender::new(0, vec![outgoing(1, Nanos(100 * MICRO), Nanos::ZERO, 16)]);
    assert_eq!(sender.start_ahead(&mut port), AHEAD);
    assert_eq!(sender.send(&mut port, Nanos(79 * MICRO)).unwrap(), 0);
    assert_eq!(sender.send(&mut port, Nanos(80 * MICRO)).unwrap(), 1);
    assert_eq!(sender.send(&mut port, Nanos(110 * MICRO)).unwrap(), 30);
    // Late by 39 us: only the last 16 of the frames due until then leave.
    assert_eq!(sender.send(&mut port, Nanos(170 * MICRO)).unwrap(), 36);
    let counts = sender.streams()[0].counts(TrafficPhase::Measured);
    assert_eq!(counts, Counts { offered: 67, unsent_late: 24, unsent_refused: 0 });
    // The port has no room for 20 frames.
    port.room = 10;
    assert_eq!(sender.send(&mut port, Nanos(190 * MICRO)).unwrap(), 0);
    port.room = 30;
    assert_eq!(sender.send(&mut port, Nanos(191 * MICRO)).unwrap(), 21);
    let want = at_times(&port, (0..31).chain(55..112));
    assert_eq!(port.numbers, want);
    sender.settle_ahead(&mut port);
    let pacing = sender.pacing();
    assert_eq!(pacing.lateness.count(), 88);
    assert_eq!((pacing.lateness_max, pacing.stalls), (Nanos(39 * MICRO), 0));
    assert_eq!(pacing.gap_error.ns_max(), Some(0));
    // Frames that the port is too late to send are not offered.
    port.late = Nanos::from_millis(11);
    assert_eq!(sender.send(&mut port, Nanos(192 * MICRO)).unwrap(), 1);
    sender.settle_ahead(&mut port);
    let counts = sender.streams()[0].counts(TrafficPhase::Measured);
    assert_eq!(counts, Counts { offered: 88, unsent_late: 25, unsent_refused: 0 });
}

#[test]
fn time_in_which_a_port_that_sends_ahead_has_no_frames_is_a_stall() {
    let (inner, _far) = pair(8, "wire");
    let (numbers, departed) = (Vec::new(), Vec::new());
    let mut port = AheadPort { inner, room: 48, numbers, departed, late: Nanos::ZERO };
    let mut sender = Sender::new(0, vec![outgoing(1, Nanos(100 * MICRO), Nanos::ZERO, 16)]);
    sender.start_ahead(&mut port);
    assert_eq!(sender.send(&mut port, Nanos(80 * MICRO)).unwrap(), 1);
    // The frame of 101 us and those after it were not handed over before 400 us.
    sender.send(&mut port, Nanos(400 * MICRO)).unwrap();
    sender.settle_ahead(&mut port);
    let gaps = (sender.gaps().count, sender.gaps().ns_total);
    assert_eq!((gaps, sender.pacing().stalls), ((1, 299 * MICRO), 0));
    // If the port has no room, it is not the tester that is late.
    port.room = 0;
    assert_eq!(sender.send(&mut port, Nanos(420 * MICRO)).unwrap(), 0);
    port.room = 48;
    assert!(sender.send(&mut port, Nanos(900 * MICRO)).unwrap() > 0);
    sender.settle_ahead(&mut port);
    assert_eq!(sender.gaps().count, 1);
    // The port itself sends late.
    port.late = Nanos::from_millis(3);
    assert!(sender.send(&mut port, Nanos(930 * MICRO)).unwrap() > 0);
    sender.settle_ahead(&mut port);
    assert_eq!((sender.gaps().count, sender.pacing().stalls), (2, 1));
}

#[test]
fn frames_of_several_streams_are_handed_over_one_by_one() {
    let (inner, _far) = pair(8, "wire");
    let (numbers, departed) = (Vec::new(), Vec::new());
    let mut port = AheadPort { inner, room: 7, numbers, departed, late: Nanos::ZERO };
    let two = [1, 2].map(|id| outgoing(id, Nanos(100 * MICRO), Nanos::ZERO, 16));
    let mut sender = Sender::new(0, two.into());
    sender.start_ahead(&mut port);
    let mut now = Nanos(90 * MICRO);
    let mut sent = 0;
    while sent < 40 {
        sent += sender.send(&mut port, now).unwrap();
        now += Nanos(MICRO);
    }
    let each = (0..20).flat_map(|number| [number, number]);
    assert_eq!(port.numbers[..40], at_times(&port, each));
    sender.settle_ahead(&mut port);
    assert_eq!(sender.pacing().lateness.count(), sent as u64);
    assert_eq!(sender.pacing().lateness.ns_max(), Some(0));
}

#[test]
fn every_frame_is_offered_or_unsent_for_any_port_that_sends_ahead() {
    for seed in 0..200 {
        let random =
            |salt: u64, limit| crate::mix::below(crate::mix::mix(seed << 32 | salt), limit);
        let (inner, _far) = pair(8, "wire");
        let (numbers, departed) = (Vec::new(), Vec::new());
        let mut port = AheadPort { inner, room: 0, numbers, departed, late: Nanos::ZERO };
        let streams = (0..1 + seed as u16 % 3).map(|id| {
            let one = Stream { id, rate: Rate::FramesPerSecond(1e6), ..stream(64) };
            let period = Period::new(one.rate, 64);
            let warmup = Schedule::new(Nanos(MICRO), Nanos::ZERO, Nanos(50 * MICRO), period);
            let measured =
                Schedule::new(Nanos(51 * MICRO), Nanos::ZERO, Nanos(200 * MICRO), period);
            ScheduledStream::new(Templates::leaving(&one, KEY), [warmup, measured], 16)
        });
        let mut sender = Sender::new(0, streams.collect());
        sender.start_ahead(&mut port);
        let (mut now, mut round) = (Nanos::ZERO, 0);
        while now < Nanos(300 * MICRO) {
            (port.room, port.late) =
                (random(round, 40) as usize, Nanos(random(!round, 12_000 * MICRO)));
            sender.send(&mut port, now).unwrap();
            now += Nanos(random(round << 16, 25 * MICRO));
            round += 1;
        }
        sender.settle_ahead(&mut port);
        sender.close();
        for stream in sender.streams() {
            for (phase, frames) in [(TrafficPhase::Warmup, 50), (TrafficPhase::Measured, 200)] {
                let Counts { offered, unsent_late, unsent_refused } = stream.counts(phase);
                let sum = u128::from(offered) + u128::from(unsent_late + unsent_refused);
                assert_eq!(sum, frames, "seed {seed}");
            }
        }
    }
}
