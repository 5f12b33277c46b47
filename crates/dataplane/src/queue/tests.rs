//! Tests of shaped queues with a caller that is always on time: rates, shares, limits.

use super::*;

const PORT: PortNo = 3;

struct Bench {
    queues: Queues,
    out: Outputs,
    now: Nanos,
    /// The frames sent: time, first byte, length.
    left: Vec<(Nanos, u8, usize)>,
}

fn queue(queue: QueueNo, min: Option<u64>, max: Option<u64>) -> QueueSpec {
    QueueSpec { min, max, ..QueueSpec::new(queue) }
}

impl Bench {
    fn new(rate: Option<u64>, queues: &[QueueSpec]) -> Bench {
        let mut bench = Bench {
            queues: Queues::default(),
            out: Outputs::new(&[1, PORT]),
            now: Nanos::ZERO,
            left: Vec::new(),
        };
        let described = PortQueues { port: PORT, rate, queues: queues.to_vec() };
        assert_eq!(bench.queues.set(&described, Nanos::ZERO), Ok(0));
        bench
    }

    fn send(&mut self, queue: Option<QueueNo>, mark: u8, length: usize) -> Queued {
        let mut frame = Frame::from_bytes(&vec![mark; length]);
        let queued = self.queues.send(PORT, queue, &mut frame, self.now, &mut self.out);
        self.collect();
        queued
    }

    fn collect(&mut self) {
        let (_, batch) = &mut self.out.queues_mut()[1];
        let facts = batch.frames().iter().map(|frame| (self.now, frame.bytes()[0], frame.len()));
        self.left.extend(facts);
        batch.clear();
    }

    /// Advances to `until`, with a stop whenever a frame is due.
    fn run(&mut self, until: Nanos) {
        while let Some(due) = self.queues.due().filter(|due| *due <= until) {
            assert!(due > self.now || self.now == Nanos::ZERO, "time does not advance at {due}");
            self.now = due;
            self.queues.release(due, &mut self.out);
            self.collect();
        }
        self.now = until;
    }

    /// Keeps these queues full until `until`, with frames of the given lengths.
    fn overload(&mut self, queues: &[(QueueNo, usize)], until: Nanos) {
        while self.now < until {
            for (queue, length) in queues {
                while self.send(Some(*queue), *queue as u8, *length) == Queued::Yes {}
            }
            let next = self.queues.due().unwrap_or(until).min(until);
            self.run(next);
        }
    }

    fn bits(&self, mark: u8) -> u64 {
        let own = self.left.iter().filter(|(_, other, _)| *other == mark);
        own.map(|(_, _, length)| *length as u64 * 8).sum()
    }
}

#[test]
fn the_maximum_rate_is_enforced_to_one_frame() {
    for (rate, length) in [(64_000, 60), (1_000_000, 1514), (999_999_999, 61), (10_000_000, 9000)] {
        let mut bench = Bench::new(None, &[queue(7, None, Some(rate))]);
        let until = Nanos(5_000_000_000.min(200_000 * length as u64 * 8_000_000_000 / rate / 100));
        bench.overload(&[(7, length)], until);
        let wanted = u128::from(rate) * u128::from(until.0) / 1_000_000_000;
        let bits = u128::from(bench.bits(7));
        let frame = length as u128 * 8;
        assert!(bits <= wanted + frame && bits + frame > wanted, "{rate}, {length}: {bits}");
        // Not only on average: no frame leaves before the frames ahead of it have passed.
        let mut sum = 0;
        for (at, _, length) in &bench.left {
            assert!(u128::from(at.0) * u128::from(rate) >= sum * 1_000_000_000, "{rate} at {at}");
            sum += *length as u128 * 8;
        }
    }
}

#[test]
fn a_late_caller_gets_the_same_order_and_rate() {
    let specs = [queue(1, Some(3_000_000), None), queue(2, None, Some(4_000_000))];
    let fill = |bench: &mut Bench| {
        for frame in 0..100 {
            bench.send(Some(1 + frame % 2), 1 + (frame % 2) as u8, 500);
        }
    };
    let mut punctual = Bench::new(Some(8_000_000), &specs);
    fill(&mut punctual);
    punctual.run(Nanos::from_millis(40));
    let mut late = Bench::new(Some(8_000_000), &specs);
    fill(&mut late);
    for millis in [13, 40] {
        late.now = Nanos::from_millis(millis);
        let now = late.now;
        late.queues.release(now, &mut late.out);
        late.collect();
    }
    let order = |bench: &Bench| bench.left.iter().map(|(_, mark, _)| *mark).collect::<Vec<_>>();
    assert_eq!(order(&late), order(&punctual));
    assert!(late.left.len() > 60, "{}", late.left.len());
}

#[test]
fn on_a_limited_port_minimum_rates_come_first_and_the_rest_is_shared() {
    let specs = [
        queue(1, Some(5_000_000), None),
        queue(2, Some(1_000_000), None),
        queue(3, None, None),
        queue(4, None, Some(500_000)),
    ];
    let mut bench = Bench::new(Some(10_000_000), &specs);
    bench.overload(&[(1, 1000), (2, 200), (3, 1514), (4, 700)], Nanos::from_secs(5));
    // Of the 4 Mbit/s beyond the minimums, queue 4 gets its maximum, and each other queue a third
    // of the rest.
    let wanted = [5_000_000 + 1_166_666, 1_000_000 + 1_166_666, 1_166_666, 500_000];
    for (mark, wanted) in (1..).zip(wanted) {
        let rate = bench.bits(mark) / 5;
        assert!(rate.abs_diff(wanted) < wanted / 200, "queue {mark}: {rate} of {wanted}");
    }
    let sum: u64 = (1..=4).map(|mark| bench.bits(mark)).sum();
    assert!(sum.abs_diff(50_000_000) <= 2 * 1514 * 8, "{sum}");
}

#[test]
fn idle_time_gives_no_credit() {
    let mut bench = Bench::new(None, &[queue(1, None, Some(1_000_000))]);
    bench.run(Nanos::from_secs(100));
    for _ in 0..3 {
        bench.send(Some(1), 1, 125);
    }
    bench.run(Nanos::from_secs(101));
    let times: Vec<Nanos> = bench.left.iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, [0, 1, 2].map(|after| Nanos::from_millis(100_000 + after)));
}

#[test]
fn a_full_queue_rejects_frames_and_reports_it() {
    let short = QueueSpec { frames_max: 2, ..queue(1, None, Some(1_000_000)) };
    let mut bench = Bench::new(None, &[short]);
    let queued: Vec<Queued> = (0..4).map(|_| bench.send(Some(1), 1, 125)).collect();
    // The first one leaves immediately, two wait.
    assert_eq!(queued, [Queued::Yes, Queued::Yes, Queued::Yes, Queued::Full]);
    bench.run(Nanos::from_secs(1));
    let record = bench.queues.records(bench.now)[0];
    assert_eq!((record.frames, record.bytes, record.errors), (3, 375, 1));
    assert_eq!((record.waiting, record.age), (0, Nanos::from_secs(1)));
}

#[test]
fn frames_without_a_valid_queue_use_the_default_queue() {
    let mut bench = Bench::new(Some(1_000_000), &[queue(0, None, None), queue(5, None, None)]);
    for named in [None, Some(0), Some(9), Some(5)] {
        assert_eq!(bench.send(named, 1, 60), Queued::Yes);
    }
    bench.run(Nanos::from_secs(1));
    let frames = |bench: &Bench| {
        bench.queues.records(bench.now).iter().map(|record| record.frames).collect::<Vec<_>>()
    };
    assert_eq!(frames(&bench), [3, 1]);
    let mut bench = Bench::new(None, &[queue(5, None, None)]);
    bench.send(None, 1, 60);
    assert_eq!((frames(&bench), bench.left.len()), (vec![0], 1));
    let mut frame = Frame::from_bytes(&[0; 60]);
    let queued = bench.queues.send(1, None, &mut frame, bench.now, &mut bench.out);
    assert_eq!(queued, Queued::NoQueues);
}

#[test]
fn frames_wait_while_the_output_is_full() {
    let mut bench = Bench::new(None, &[queue(1, None, None)]);
    let full = crate::forwarder::OUTPUT_FRAMES_MAX;
    for _ in 0..full {
        assert_ne!(bench.out.send(PORT, &mut Frame::from_bytes(&[9; 60])), Sent::QueueFull);
    }
    let mut frame = Frame::from_bytes(&[1; 60]);
    bench.queues.send(PORT, Some(1), &mut frame, Nanos(5), &mut bench.out);
    assert_eq!(bench.queues.due(), Some(Nanos(5)));
    bench.collect();
    bench.run(Nanos(6));
    assert_eq!((bench.left.len(), bench.queues.due()), (full + 1, None));
}

#[test]
fn invalid_queues_are_rejected_and_valid_ones_replaced() {
    let mut queues = Queues::default();
    let refused = |rate, list: &[QueueSpec]| {
        let described = PortQueues { port: PORT, rate, queues: list.to_vec() };
        Queues::default().set(&described, Nanos::ZERO).unwrap_err()
    };
    assert_eq!(
        refused(None, &[queue(u32::MAX, None, None)]),
        QueueError::BadNumber(PORT, u32::MAX)
    );
    let twice = [queue(1, None, None), queue(1, None, None)];
    assert_eq!(refused(None, &twice), QueueError::Twice(PORT, 1));
    let many: Vec<QueueSpec> = (0..65).map(|number| queue(number, None, None)).collect();
    assert_eq!(refused(None, &many), QueueError::TooMany(PORT, 65));
    for (min, max) in [(Some(999), None), (Some(5000), Some(4000)), (None, Some(20_000))] {
        assert_eq!(refused(Some(10_000), &[queue(2, min, max)]), QueueError::BadRate(PORT, 2));
    }
    let much = [queue(1, Some(6000), None), queue(2, Some(6000), None)];
    assert_eq!(refused(Some(10_000), &much), QueueError::MinTooMuch(PORT));
    let none = QueueSpec { frames_max: 0, ..queue(1, None, None) };
    assert_eq!(refused(None, &[none]), QueueError::BadLength(PORT, 0));

    let set = |queues: &mut Queues, port, rate, list: &[QueueSpec]| {
        queues.set(&PortQueues { port, rate, queues: list.to_vec() }, Nanos::ZERO)
    };
    assert_eq!(set(&mut queues, 1, None, &[queue(1, None, Some(1000))]), Ok(0));
    assert_eq!(set(&mut queues, 2, None, &[queue(2, None, None)]), Ok(0));
    let mut out = Outputs::new(&[1, 2]);
    for _ in 0..3 {
        queues.send(1, Some(1), &mut Frame::from_bytes(&[0; 60]), Nanos::ZERO, &mut out);
    }
    assert_eq!(set(&mut queues, 1, None, &[]), Ok(2));
    assert!(!queues.has(1) && queues.contains(2, 2) && !queues.contains(2, 1));
}
