//! Live counters of the trial in progress: frames by port, and latencies in coarse steps.
//!
//! The measuring thread writes them a few times a second. There is one gauge per process
//! (docs/decisions/0035-live-views-never-delay-a-measurement.md).
//!
//! Invariants:
//!
//! - Writer and readers never wait for each other: a reader retries if a write interferes (a
//!   seqlock).
//! - No measurement depends on the gauge.
//! - A reading is consistent: all of its values were written together.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use packet::time::Nanos;
use stats::histogram::Histogram;

/// Maximum number of ports. With more, only the first ones are included.
pub const PORTS_MAX: usize = 16;

/// Number of latency steps, two for each power of two.
pub const STEPS: usize = 48;

/// Lowest power of two with its own steps. The first two steps include everything below 512 ns.
const LOWEST_LOG2: u32 = 8;

/// Update interval in real time.
pub const EVERY: Nanos = Nanos::from_millis(200);

/// Update interval in virtual time, where a second can take less or far more than a second.
pub const SPARSE: Nanos = Nanos::from_millis(20);

/// Maximum number of read attempts.
const LOOKS_MAX: usize = 16;

/// The process-wide gauge.
pub static GAUGE: Gauge = Gauge::new();

/// Live counters of a trial.
#[derive(Debug)]
pub struct Gauge {
    /// Sequence counter, odd during a write.
    turn: AtomicU64,
    trials: AtomicU64,
    begun_ns: AtomicU64,
    at_ns: AtomicU64,
    ports: AtomicU64,
    sent: [AtomicU64; PORTS_MAX],
    received: [AtomicU64; PORTS_MAX],
    latencies: [AtomicU64; STEPS],
}

/// A reading of the gauge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Number of the trial. Each trial counts from zero.
    pub trial: u64,
    /// Start of the trial.
    pub begun: Nanos,
    /// Time of the last update.
    pub at: Nanos,
    /// Sent frames by port.
    pub sent: Vec<u64>,
    /// Received frames by port.
    pub received: Vec<u64>,
    /// Number of latencies by [step](step_ns).
    pub latencies: Vec<u64>,
}

impl Gauge {
    /// Creates a gauge without a trial.
    pub const fn new() -> Self {
        Gauge {
            turn: AtomicU64::new(0),
            trials: AtomicU64::new(0),
            begun_ns: AtomicU64::new(0),
            at_ns: AtomicU64::new(0),
            ports: AtomicU64::new(0),
            sent: [const { AtomicU64::new(0) }; PORTS_MAX],
            received: [const { AtomicU64::new(0) }; PORTS_MAX],
            latencies: [const { AtomicU64::new(0) }; STEPS],
        }
    }

    /// Starts a trial: resets all counters.
    pub fn begin(&self, at: Nanos, ports: usize) {
        self.written(|gauge| {
            gauge.trials.fetch_add(1, Ordering::Relaxed);
            gauge.begun_ns.store(at.0, Ordering::Relaxed);
            gauge.at_ns.store(at.0, Ordering::Relaxed);
            gauge.ports.store(ports.min(PORTS_MAX) as u64, Ordering::Relaxed);
            for count in gauge.sent.iter().chain(&gauge.received).chain(&gauge.latencies) {
                count.store(0, Ordering::Relaxed);
            }
        });
    }

    /// Writes the counters at `at`: sent and received frames of each port, and all latencies.
    pub fn show(&self, at: Nanos, ports: impl Iterator<Item = [u64; 2]>, latencies: &[u64; STEPS]) {
        self.written(|gauge| {
            gauge.at_ns.store(at.0, Ordering::Relaxed);
            for (([sent, received], out), back) in ports.zip(&gauge.sent).zip(&gauge.received) {
                out.store(sent, Ordering::Relaxed);
                back.store(received, Ordering::Relaxed);
            }
            for (count, shown) in latencies.iter().zip(&gauge.latencies) {
                shown.store(*count, Ordering::Relaxed);
            }
        });
    }

    fn written(&self, write: impl FnOnce(&Gauge)) {
        self.turn.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        write(self);
        self.turn.fetch_add(1, Ordering::Release);
    }

    /// Returns the last values. None if nothing was written yet, or if writes interfere all the
    /// time.
    pub fn read(&self) -> Option<Reading> {
        (0..LOOKS_MAX).find_map(|_| {
            let turn = self.turn.load(Ordering::Acquire);
            if turn % 2 == 1 || turn == 0 {
                return None;
            }
            let ports = (self.ports.load(Ordering::Relaxed) as usize).min(PORTS_MAX);
            let all = |counts: &[AtomicU64]| -> Vec<u64> {
                counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
            };
            let reading = Reading {
                trial: self.trials.load(Ordering::Relaxed),
                begun: Nanos(self.begun_ns.load(Ordering::Relaxed)),
                at: Nanos(self.at_ns.load(Ordering::Relaxed)),
                sent: all(&self.sent[..ports]),
                received: all(&self.received[..ports]),
                latencies: all(&self.latencies),
            };
            fence(Ordering::Acquire);
            (self.turn.load(Ordering::Relaxed) == turn).then_some(reading)
        })
    }
}

impl Default for Gauge {
    fn default() -> Self {
        Gauge::new()
    }
}

/// Returns the step of a latency.
fn step_of(ns: u64) -> usize {
    let ns = ns.max(1 << LOWEST_LOG2);
    let doubling = ns.ilog2();
    let half = (ns >> (doubling - 1)) & 1;
    (2 * (doubling - LOWEST_LOG2) as usize + half as usize).min(STEPS - 1)
}

/// Returns the shortest latency of a step. The first step also includes all shorter ones.
pub fn step_ns(step: usize) -> u64 {
    let (doubling, half) = (LOWEST_LOG2 + step as u32 / 2, step as u64 % 2);
    (2 + half) << (doubling - 1)
}

/// Coarse latency counts of several streams.
///
/// Reading a histogram takes some microseconds. So each call reads only one, to keep the tester's
/// gaps short.
#[derive(Debug)]
pub(crate) struct Coarse {
    /// For each stream, the counts at its last reading.
    seen: Vec<[u64; STEPS]>,
    next: usize,
    all: [u64; STEPS],
}

impl Coarse {
    /// Creates counts for this many streams.
    pub(crate) fn new(streams: usize) -> Self {
        Coarse { seen: vec![[0; STEPS]; streams], next: 0, all: [0; STEPS] }
    }

    /// Reads the next stream's latencies. Returns the totals known so far.
    pub(crate) fn look<'a>(
        &mut self,
        latencies: impl FnOnce(usize) -> Option<&'a Histogram>,
    ) -> &[u64; STEPS] {
        let (at, streams) = (self.next, self.seen.len());
        if let Some(seen) = self.seen.get_mut(at) {
            self.next = (at + 1) % streams;
            let mut now = [0; STEPS];
            for (ns, times) in latencies(at).into_iter().flat_map(Histogram::buckets) {
                now[step_of(ns)] += times;
            }
            for ((all, was), now) in self.all.iter_mut().zip(seen.iter()).zip(&now) {
                *all += now - was;
            }
            *seen = now;
        }
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_steps_are_contiguous() {
        for step in 0..STEPS {
            assert_eq!(step_of(step_ns(step)), step);
            assert_eq!(step_of(step_ns(step + 1) - 1), step);
        }
        assert_eq!([step_of(0), step_of(383), step_of(384)], [0, 0, 1]);
        assert_eq!(step_of(u64::MAX), STEPS - 1);
    }

    #[test]
    fn a_reader_gets_the_last_written_values() {
        let gauge = Gauge::new();
        assert_eq!(gauge.read(), None);
        gauge.begin(Nanos(5), 2);
        let mut latencies = [0; STEPS];
        latencies[3] = 7;
        gauge.show(Nanos(9), [[10, 1], [0, 8]].into_iter(), &latencies);
        let read = gauge.read().unwrap();
        assert_eq!((read.trial, read.at), (1, Nanos(9)));
        assert_eq!((read.sent, read.received), (vec![10, 0], vec![1, 8]));
        assert_eq!(read.latencies[3], 7);
        gauge.begin(Nanos(20), 1);
        let read = gauge.read().unwrap();
        assert_eq!((read.trial, read.sent, read.latencies[3]), (2, vec![0], 0));
    }

    #[test]
    fn a_reader_never_sees_a_partial_update() {
        const TURNS: u64 = 20_000;
        let gauge = Gauge::new();
        gauge.begin(Nanos::ZERO, 2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..TURNS {
                    gauge.show(Nanos(turn), [[turn, turn]; 2].into_iter(), &[turn; STEPS]);
                }
            });
            let mut last = 0;
            while last < TURNS - 1 {
                let Some(read) = gauge.read() else { continue };
                let all = read.sent.iter().chain(&read.received).chain(&read.latencies);
                assert!(all.clone().all(|count| *count == read.at.0), "{read:?}");
                last = read.at.0;
            }
        });
    }

    #[test]
    fn streams_are_read_in_turn_and_summed() {
        let mut streams = [Histogram::new(), Histogram::new()];
        let mut coarse = Coarse::new(2);
        streams[0].record_many(1_000, 5);
        streams[1].record_many(1_000, 2);
        let step = step_of(1_000);
        assert_eq!(coarse.look(|at| Some(&streams[at]))[step], 5);
        assert_eq!(coarse.look(|at| Some(&streams[at]))[step], 7);
        streams[0].record_many(1_000, 1);
        assert_eq!(coarse.look(|at| Some(&streams[at]))[step], 8);
        assert_eq!(Coarse::new(0).look(|_| None)[step], 0);
    }
}
