//! Round trip times: mean with its confidence interval, distribution and jitter.
//!
//! A round trip is the way there and the way back. It excludes the reply time of the server, which is also the
//! tester; that time is reported separately. For programs with sockets it is the time that the client measures,
//! including the server's, as in the study.
//!
//! Successive values are correlated. The interval of the mean is therefore that of batch means (Student's t); an
//! interval of single packets would be too narrow. Jitter is the absolute difference between a round trip time and
//! that of the packet before (RFC 3393's variation between consecutive packets, without its sign). costa2017 does
//! not define its jitter.

use packet::time::Nanos;
use stats::interval;
use stats::series::mean;
use tester::module::host_tasks::Exchange;
use tester::module::{MeasuredValue, ModuleContext};

use super::super::summary::Summary;

/// Number of batches for batch means.
const BATCHES: usize = 20;

/// Minimum packets per batch; with fewer, the interval uses single packets.
const BATCH_PACKETS_MIN: usize = 10;

/// Confidence level of the study's intervals, in percent.
const LEVEL_PERCENT: f64 = interval::LEVEL_PERCENT_HIGH;

/// Times of a packet that returned, all from one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTripTimes {
    /// Sequence number.
    pub number: u64,
    /// Time at which the client sent it.
    pub sent_at: Nanos,
    /// Time at which it arrived at the server.
    pub came_at: Nanos,
    /// Time at which the server sent the reply.
    pub answered_at: Nanos,
    /// Time at which the reply arrived.
    pub back_at: Nanos,
}

/// Round trip times in the order in which packets were sent.
#[derive(Debug, Clone, Default)]
pub struct Times {
    rows: Vec<RoundTripTimes>,
    /// Whether the server's time is included.
    is_whole: bool,
}

impl From<Exchange> for RoundTripTimes {
    fn from(it: Exchange) -> RoundTripTimes {
        let Exchange { number, sent_at, came_at, answered_at, back_at } = it;
        RoundTripTimes { number, sent_at, came_at, answered_at, back_at }
    }
}

impl RoundTripTimes {
    fn there_ns(&self) -> f64 {
        self.came_at.since(self.sent_at).0 as f64
    }

    fn back_ns(&self) -> f64 {
        self.back_at.since(self.answered_at).0 as f64
    }

    fn answering_ns(&self) -> f64 {
        self.answered_at.since(self.came_at).0 as f64
    }
}

impl Times {
    /// Creates an empty collection of round trip times, with the server's time or without.
    pub fn new(is_whole: bool) -> Times {
        Times { rows: Vec::new(), is_whole }
    }

    /// Returns the round trip time of a packet.
    fn ns(&self, row: &RoundTripTimes) -> f64 {
        let own = if self.is_whole { row.answering_ns() } else { 0.0 };
        row.there_ns() + own + row.back_ns()
    }

    /// Adds a packet.
    pub fn note(&mut self, returned: RoundTripTimes) {
        self.rows.push(returned);
    }

    /// Returns the number of packets.
    pub fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Returns the differences to the packet before, if that returned too.
    fn jitter(&self) -> Vec<f64> {
        let pairs = self.rows.windows(2).filter(|pair| pair[1].number == pair[0].number + 1);
        pairs.map(|pair| (self.ns(&pair[1]) - self.ns(&pair[0])).abs()).collect()
    }

    /// Reports all values; names of series have the prefix `name`.
    pub fn tell(&self, name: &str, context: &mut ModuleContext) {
        let all =
            |pick: fn(&RoundTripTimes) -> f64| self.rows.iter().map(pick).collect::<Vec<f64>>();
        let rtts: Vec<f64> = self.rows.iter().map(|row| self.ns(row)).collect();
        let Some(spread) = Summary::of(rtts.clone()) else { return };
        let (jitter, count) = (Summary::of(self.jitter()), self.count());
        let mut numbers = Vec::new();
        let mut keep = |measured: MeasuredValue| numbers.push(measured);
        spread.tell("rtt_ns", 0.0, &mut keep);
        if let Some(jitter) = &jitter {
            jitter.tell("jitter_ns", 0.0, &mut keep);
        }
        for (what, values) in [
            ("there_ns_mean", all(RoundTripTimes::there_ns)),
            ("back_ns_mean", all(RoundTripTimes::back_ns)),
            ("answering_ns_mean", all(RoundTripTimes::answering_ns)),
        ] {
            let half = half_width(&values).unwrap_or(0.0);
            keep(MeasuredValue::new(what, "ns", mean(&values).unwrap_or(0.0), half).of(count));
        }
        let half = half_width(&rtts);
        for mut measured in numbers {
            if measured.name == "rtt_ns_mean" {
                measured.half_width = half;
            }
            context.measured(measured);
        }
        if let Some(deviation) = stats::series::deviation(&rtts) {
            context
                .measured(MeasuredValue::new("rtt_deviation_ns", "ns", deviation, 0.0).of(count));
        }
        context.series(spread.distribution(format!("{name}_share"), "round_trip_ns"));
        if let Some(jitter) = &jitter {
            context.series(jitter.distribution(format!("{name}_jitter_share"), "jitter_ns"));
        }
    }
}

/// Returns the half width of the 99 % confidence interval of the mean.
fn half_width(values: &[f64]) -> Option<f64> {
    let size = values.len() / BATCHES;
    let found = if size >= BATCH_PACKETS_MIN {
        let means: Vec<f64> = values.chunks_exact(size).take(BATCHES).filter_map(mean).collect();
        interval::of_mean(&means, LEVEL_PERCENT)
    } else {
        interval::of_mean(values, LEVEL_PERCENT)
    };
    found.map(|found| (found.high - found.low) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(rtts: &[(u64, u64)]) -> Times {
        let row = |&(number, ns): &(u64, u64)| {
            let [sent, came, answered] =
                [0, ns / 2, ns / 2 + 7].map(|it| Nanos(number * 1000 + it));
            let back_at = Nanos(number * 1000 + 7 + ns);
            RoundTripTimes { number, sent_at: sent, came_at: came, answered_at: answered, back_at }
        };
        Times { rows: rtts.iter().map(row).collect(), is_whole: false }
    }

    #[test]
    fn a_round_trip_excludes_the_reply_time_of_the_server() {
        let times = times(&[(0, 100)]);
        let row = times.rows[0];
        assert_eq!((times.ns(&row), row.answering_ns()), (100.0, 7.0));
        assert_eq!(Times { is_whole: true, ..times }.ns(&row), 107.0);
    }

    #[test]
    fn jitter_is_between_consecutive_packets_only() {
        assert_eq!(times(&[(0, 100), (1, 160), (3, 900), (4, 850)]).jitter(), [60.0, 50.0]);
    }

    #[test]
    fn slow_changes_widen_the_interval() {
        let quick: Vec<f64> = (0..1000).map(|it| f64::from(it % 2)).collect();
        let slow: Vec<f64> = (0..1000).map(|it| f64::from(it / 250 % 2)).collect();
        let [quick, slow] = [quick, slow].map(|values| half_width(&values).unwrap());
        assert!(slow > 0.2 && quick < 0.01, "{slow} {quick}");
    }
}
