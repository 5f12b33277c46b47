//! Latency and its variation, frame by frame.
//!
//! Smoothed jitter is RFC 3550, 6.4.1, in nanoseconds and between successive arrivals; IPDV is
//! RFC 3393's difference between successive arrivals; PDV is the 99.9th percentile less the
//! minimum (RFC 8219, 7.3.1). Histograms keep three significant digits.
//! The stretch is how much longer frames took at the end than at the beginning: what had queued
//! up when sending ended, and came out only later. Medians keep single stragglers out of it.

use packet::time::Nanos;

use crate::monitor::variation::Varying;
use crate::signature::Sent;
use crate::trial::{Jitter, Latency, Tally};

/// Frames at either end whose median latency tells how far a queue has grown.
const EDGE_FRAMES: usize = 63;

/// One stream's latency in progress.
#[derive(Debug)]
pub struct Delay {
    from_sent: Tally,
    from_scheduled: Tally,
    negative: u64,
    unknown: u64,
    last_ns: Option<i64>,
    smoothed_ns: f64,
    ipdv_ns_sum: u64,
    ipdv_ns_max: u64,
    ipdv_count: u64,
    /// Latencies of the first frames.
    first_ns: Vec<i64>,
    /// Latencies of the last frames, written around.
    last_ns_edge: Vec<i64>,
    /// Where the next of them goes, once there are enough.
    edge_at: usize,
    /// Where it is asked for, since it costs time for each frame.
    varying: Option<Box<Varying>>,
}

impl Delay {
    /// Nothing measured yet.
    pub fn new() -> Self {
        Delay {
            from_sent: Tally::new(),
            from_scheduled: Tally::new(),
            negative: 0,
            unknown: 0,
            last_ns: None,
            smoothed_ns: 0.0,
            ipdv_ns_sum: 0,
            ipdv_ns_max: 0,
            ipdv_count: 0,
            first_ns: Vec::with_capacity(EDGE_FRAMES),
            last_ns_edge: Vec::with_capacity(EDGE_FRAMES),
            edge_at: 0,
            varying: None,
        }
    }

    /// The same, with the variation of successive frames counted where that is wanted.
    #[must_use]
    pub fn varying(self, is_wanted: bool) -> Self {
        Delay { varying: is_wanted.then(Box::default), ..self }
    }

    /// Frame `number` arrived at `at`; it says it was sent at `sent`, and was due at `due`, if that is known.
    #[inline]
    pub fn record(&mut self, number: u64, sent: Sent, due: Option<Nanos>, at: Nanos) {
        let span = sent.until(at);
        if let Some(varying) = &mut self.varying {
            varying.record(number, span);
        }
        self.negative += (span < 0) as u64;
        self.from_sent.record(span.max(0) as u64);
        if let Some(due) = due {
            self.from_scheduled.record(at.since(due).0);
        }
        self.note_edges(span);
        if let Some(last) = self.last_ns.replace(span) {
            let change = span.abs_diff(last);
            // Signed, because that is one instruction; a change has far fewer than 63 bits.
            self.smoothed_ns += (change as i64 as f64 - self.smoothed_ns) / 16.0;
            self.ipdv_ns_sum = self.ipdv_ns_sum.saturating_add(change);
            self.ipdv_ns_max = self.ipdv_ns_max.max(change);
            self.ipdv_count += 1;
        }
    }

    /// A frame arrived, and how long it took is unknown. No variation is told across it.
    pub fn miss(&mut self) {
        self.unknown += 1;
        self.last_ns = None;
    }

    #[inline]
    fn note_edges(&mut self, span: i64) {
        match self.last_ns_edge.get_mut(self.edge_at) {
            Some(edge) => {
                *edge = span;
                self.edge_at += 1;
            }
            None if self.edge_at < EDGE_FRAMES => {
                self.first_ns.push(span);
                self.last_ns_edge.push(span);
                self.edge_at += 1;
            }
            None => {
                self.last_ns_edge[0] = span;
                self.edge_at = 1;
            }
        }
    }

    /// By how much the last frames took longer than the first ones; zero if they did not.
    pub fn stretch(&self) -> Nanos {
        let grown = median(&self.last_ns_edge) - median(&self.first_ns);
        Nanos(grown.max(0) as u64)
    }

    /// What was measured.
    pub fn finish(self) -> (Latency, Jitter) {
        let (from_sent, from_scheduled) = (self.from_sent.finish(), self.from_scheduled.finish());
        let histogram = &from_sent;
        let pdv = |worst: u64| worst.saturating_sub(histogram.ns_min().unwrap_or(worst));
        let pdv_ns = histogram.ns_at_quantile(0.999).map(pdv);
        let jitter = Jitter {
            variation: self.varying.and_then(|varying| varying.finish()),
            smoothed_ns: self.smoothed_ns,
            ipdv_ns_mean: self.ipdv_ns_sum as f64 / self.ipdv_count.max(1) as f64,
            ipdv_ns_max: self.ipdv_ns_max,
            pdv_ns,
        };
        let Delay { negative, unknown, .. } = self;
        (Latency { from_sent, from_scheduled, negative, unknown }, jitter)
    }
}

fn median(values: &[i64]) -> i64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

impl Default for Delay {
    fn default() -> Self {
        Delay::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(latencies_ns: impl Iterator<Item = u64>) -> Nanos {
        let mut delay = Delay::new();
        for (number, latency_ns) in (0u64..).zip(latencies_ns) {
            let sent = Nanos(number * 1000);
            delay.record(number, Sent::new(sent), Some(sent), sent + Nanos(latency_ns));
        }
        delay.stretch()
    }

    #[test]
    fn a_queue_that_grows_is_a_stretch_and_a_straggler_is_none() {
        assert_eq!(stretch(std::iter::empty()), Nanos::ZERO);
        assert_eq!(stretch(std::iter::repeat_n(50_000, 1_000)), Nanos::ZERO);
        let grows = (0..1_000).map(|place| 5_000 + place * 100);
        // From the median of frames 0 to 62 to that of frames 937 to 999.
        assert_eq!(stretch(grows.clone()), Nanos((968 - 31) * 100));
        assert_eq!(stretch(grows.rev()), Nanos::ZERO);
        let straggles = (0..1_000).map(|place| if place > 997 { 1 << 30 } else { 700 });
        assert_eq!(stretch(straggles), Nanos::ZERO);
    }
}
