//! Port rates, from the tester's live counters of the trial in progress.
//!
//! Invariant: frames and time of a rate come from the same reading. A trial that began in between
//! counts from its own beginning.

use tester::gauge::{Gauge, Reading};

use super::event::Rates;

/// Reads a gauge at intervals.
#[derive(Debug)]
pub struct Sampler {
    gauge: &'static Gauge,
    last: Reading,
}

impl Sampler {
    /// Creates a sampler of future readings.
    pub fn new(gauge: &'static Gauge) -> Self {
        Sampler { gauge, last: gauge.read().unwrap_or_default() }
    }

    /// Returns the rates since the last reading; `None` if there is no new data.
    pub fn look(&mut self) -> Option<Rates> {
        let now = self.gauge.read()?;
        let rates = rates(&self.last, &now);
        self.last = now;
        rates
    }
}

fn rates(last: &Reading, now: &Reading) -> Option<Rates> {
    let is_same = last.trial == now.trial;
    let since = if is_same { last.at } else { now.begun };
    let seconds = now.at.since(since).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let before = |counts: &[u64], port: usize| match is_same {
        true => counts.get(port).copied().unwrap_or(0),
        false => 0,
    };
    let port = |port: usize| {
        let sent = now.sent[port].saturating_sub(before(&last.sent, port));
        let received = now.received[port].saturating_sub(before(&last.received, port));
        [sent, received].map(|frames| (frames as f64 / seconds).round() as u64)
    };
    let counted = now.latencies.iter().copied().enumerate().filter(|(_, times)| *times > 0);
    let ports = (0..now.sent.len().min(now.received.len())).map(port).collect();
    Some(Rates { ports, latencies: counted.collect() })
}

#[cfg(test)]
mod tests {
    use packet::time::Nanos;

    use super::*;

    fn reading(trial: u64, begun: u64, at: u64, sent: u64) -> Reading {
        let second = |s: u64| Nanos::from_millis(s * 100);
        let (sent, received) = (vec![sent, 0], vec![0, sent / 2]);
        Reading {
            trial,
            begun: second(begun),
            at: second(at),
            sent,
            received,
            latencies: vec![0, 3],
        }
    }

    #[test]
    fn rates_cover_the_time_between_two_readings() {
        let found = rates(&reading(1, 0, 2, 100), &reading(1, 0, 4, 300)).unwrap();
        assert_eq!(found.ports, [[1000, 0], [0, 500]]);
        assert_eq!(found.latencies, [(1, 3)]);
    }

    #[test]
    fn a_new_trial_counts_from_its_beginning() {
        let found = rates(&reading(1, 0, 2, 900), &reading(2, 10, 12, 300)).unwrap();
        assert_eq!(found.ports, [[1500, 0], [0, 750]]);
        assert_eq!(rates(&reading(1, 0, 2, 9), &reading(1, 0, 2, 9)), None, "nothing is new");
        assert_eq!(rates(&Reading::default(), &reading(3, 7, 7, 0)), None, "it only begins");
    }
}
