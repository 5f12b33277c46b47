//! Latency and its variation, frame by frame.
//!
//! Smoothed jitter is RFC 3550, 6.4.1, in nanoseconds and between successive arrivals; IPDV is
//! RFC 3393's difference between successive arrivals; PDV is the 99.9th percentile less the
//! minimum (RFC 8219, 7.3.1). Histograms keep three significant digits.

use packet::time::Nanos;

use crate::signature::Sent;
use crate::trial::{Jitter, Latency};

/// One stream's latency in progress.
#[derive(Debug)]
pub struct Delay {
    latency: Latency,
    last_ns: Option<i64>,
    smoothed_ns: f64,
    ipdv_ns_sum: u64,
    ipdv_ns_max: u64,
    ipdv_count: u64,
}

impl Delay {
    /// Nothing measured yet.
    pub fn new() -> Self {
        Delay {
            latency: Latency::empty(),
            last_ns: None,
            smoothed_ns: 0.0,
            ipdv_ns_sum: 0,
            ipdv_ns_max: 0,
            ipdv_count: 0,
        }
    }

    /// A frame arrived at `at` that says it was sent at `sent` and was due at `due`.
    #[inline]
    pub fn record(&mut self, sent: Sent, due: Nanos, at: Nanos) {
        let span = sent.until(at);
        self.latency.negative += (span < 0) as u64;
        self.latency.from_sent.record(span.max(0) as u64);
        self.latency.from_scheduled.record(at.since(due).0);
        if let Some(last) = self.last_ns.replace(span) {
            let change = span.abs_diff(last);
            self.smoothed_ns += (change as f64 - self.smoothed_ns) / 16.0;
            self.ipdv_ns_sum = self.ipdv_ns_sum.saturating_add(change);
            self.ipdv_ns_max = self.ipdv_ns_max.max(change);
            self.ipdv_count += 1;
        }
    }

    /// What was measured.
    pub fn finish(self) -> (Latency, Jitter) {
        let histogram = &self.latency.from_sent;
        let pdv = |worst: u64| worst.saturating_sub(histogram.ns_min().unwrap_or(worst));
        let pdv_ns = histogram.ns_at_quantile(0.999).map(pdv);
        let jitter = Jitter {
            smoothed_ns: self.smoothed_ns,
            ipdv_ns_mean: self.ipdv_ns_sum as f64 / self.ipdv_count.max(1) as f64,
            ipdv_ns_max: self.ipdv_ns_max,
            pdv_ns,
        };
        (self.latency, jitter)
    }
}

impl Default for Delay {
    fn default() -> Self {
        Delay::new()
    }
}
