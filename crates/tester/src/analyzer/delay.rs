//! Latency and its variation, frame by frame.
//!
//! - Smoothed jitter: RFC 3550, section 6.4.1, in nanoseconds and between successive arrivals.
//! - IPDV: difference between successive arrivals (RFC 3393).
//! - PDV: 99.9th percentile less the minimum (RFC 8219, section 7.3.1).
//! - Stretch: how much longer the last frames took than the first ones. It is the length of the
//!   queue at the end of sending. Medians exclude single stragglers.
//!
//! Histograms keep three significant digits. Frames with equal latency are recorded together, with
//! the same result as one by one.

use packet::time::Nanos;

use crate::analyzer::burst::Train;
use crate::analyzer::variation::LatencyVariation;
use crate::trial::{Histogram, Jitter, Latency};

/// Number of frames at either end for the median latencies of the stretch.
const EDGE_FRAMES: usize = 63;

/// Latency statistics of one stream.
#[derive(Debug)]
pub struct Delay {
    from_sent: Histogram,
    from_scheduled: Histogram,
    negative: u64,
    unknown: u64,
    last_ns: Option<i64>,
    smoothed_ns: f64,
    ipdv_ns_sum: u64,
    ipdv_ns_max: u64,
    ipdv_count: u64,
    /// Latencies of the first frames.
    first_ns: Vec<i64>,
    /// Latencies of the last frames, as a ring buffer.
    last_ns_edge: Vec<i64>,
    /// Index of the oldest entry of the full ring buffer.
    edge_at: usize,
    /// Differences of successive frames, only on request, because they cost time per frame.
    varying: Option<Box<LatencyVariation>>,
}

impl Delay {
    /// Creates empty statistics.
    pub fn new() -> Self {
        Delay {
            from_sent: Histogram::new(),
            from_scheduled: Histogram::new(),
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

    /// Returns the latencies so far, from the actual send time.
    pub(super) fn latencies(&self) -> &Histogram {
        &self.from_sent
    }

    /// Enables the differences of successive frames if requested.
    #[must_use]
    pub fn varying(self, is_wanted: bool) -> Self {
        Delay { varying: is_wanted.then(Box::default), ..self }
    }

    /// Records arrived frames with their due times, as far as known.
    #[inline]
    pub(super) fn record(&mut self, train: &Train, dues: impl Iterator<Item = Nanos>) {
        let (at, frames) = (train.moment.at, train.frames);
        let span = train.sent.until(at);
        if let Some(varying) = &mut self.varying {
            varying.record(train.number, frames, span);
        }
        self.negative += if span < 0 { frames } else { 0 };
        self.from_sent.record_many(span.max(0) as u64, frames);
        self.from_scheduled.record_all(dues.map(|due| at.since(due).0));
        self.note_edges(span, frames as usize);
        if let Some(last) = self.last_ns.replace(span) {
            self.note_change(span.abs_diff(last));
        }
        self.ipdv_count += frames - 1;
        for _ in 1..frames {
            self.smoothed_ns -= self.smoothed_ns / 16.0;
        }
    }

    #[inline]
    fn note_change(&mut self, change: u64) {
        // Signed conversion takes one instruction. A difference has far fewer than 63 bits.
        self.smoothed_ns += (change as i64 as f64 - self.smoothed_ns) / 16.0;
        self.ipdv_ns_sum = self.ipdv_ns_sum.saturating_add(change);
        self.ipdv_ns_max = self.ipdv_ns_max.max(change);
        self.ipdv_count += 1;
    }

    /// Counts frames with unknown latency. No difference is recorded across them.
    pub fn miss(&mut self, frames: u64) {
        self.unknown += frames;
        self.last_ns = None;
    }

    #[inline]
    fn note_edges(&mut self, span: i64, frames: usize) {
        let mut left = frames.min(EDGE_FRAMES);
        let room = EDGE_FRAMES - self.first_ns.len();
        if room > 0 {
            let first = left.min(room);
            self.first_ns.extend(std::iter::repeat_n(span, first));
            self.last_ns_edge.extend(std::iter::repeat_n(span, first));
            left -= first;
        }
        while left > 0 {
            let part = left.min(EDGE_FRAMES - self.edge_at);
            self.last_ns_edge[self.edge_at..][..part].fill(span);
            self.edge_at = (self.edge_at + part) % EDGE_FRAMES;
            left -= part;
        }
    }

    /// Returns how much longer the last frames took than the first ones. Zero if they did not.
    pub fn stretch(&self) -> Nanos {
        let grown = median(&self.last_ns_edge) - median(&self.first_ns);
        Nanos(grown.max(0) as u64)
    }

    /// Returns the results.
    pub fn finish(self) -> (Latency, Jitter) {
        let (from_sent, from_scheduled) = (self.from_sent, self.from_scheduled);
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
    use crate::analyzer::burst::ArrivalTime;
    use crate::mix;
    use crate::signature::SendTime;

    fn train(number: u64, frames: u64, span_ns: u64) -> (Train, Nanos) {
        let due = Nanos(number * 1000);
        let at = due + Nanos(span_ns);
        let moment = ArrivalTime { at, silent_until: at, is_known: true };
        (Train { number, frames, sent: SendTime::new(due), moment, ..Train::default() }, due)
    }

    fn stretch(latencies_ns: impl Iterator<Item = u64>) -> Nanos {
        let mut delay = Delay::new();
        for (number, latency_ns) in (0u64..).zip(latencies_ns) {
            let (one, due) = train(number, 1, latency_ns);
            delay.record(&one, std::iter::once(due));
        }
        delay.stretch()
    }

    #[test]
    fn recording_frames_together_equals_recording_them_one_by_one() {
        for seed in 0..200 {
            let mut together = Delay::new().varying(true);
            let mut apart = Delay::new().varying(true);
            let mut number = 0;
            for round in 0..seed % 20 {
                let random =
                    |salt: u64, limit| mix::below(mix::mix(seed << 16 | round << 8 | salt), limit);
                let (frames, gap) = (1 + random(0, 64), random(1, 3));
                let (train, due) = train(number, frames, random(2, 100_000));
                let dues = || (0..frames).map(|place| due + Nanos(place * 3));
                together.record(&train, dues());
                let each = train.each().zip(dues());
                each.for_each(|(one, due)| apart.record(&one, std::iter::once(due)));
                if gap == 2 {
                    together.miss(frames);
                    train.each().for_each(|one| apart.miss(one.frames));
                }
                number += frames + gap;
            }
            assert_eq!(together.stretch(), apart.stretch());
            assert_eq!(format!("{:?}", together.finish()), format!("{:?}", apart.finish()));
        }
    }

    #[test]
    fn a_growing_queue_has_a_stretch_and_single_late_frames_have_none() {
        assert_eq!(stretch(std::iter::empty()), Nanos::ZERO);
        assert_eq!(stretch(std::iter::repeat_n(50_000, 1_000)), Nanos::ZERO);
        let grows = (0..1_000).map(|place| 5_000 + place * 100);
        // Difference between the median of frames 0 to 62 and that of frames 937 to 999.
        assert_eq!(stretch(grows.clone()), Nanos((968 - 31) * 100));
        assert_eq!(stretch(grows.rev()), Nanos::ZERO);
        let straggles = (0..1_000).map(|place| if place > 997 { 1 << 30 } else { 700 });
        assert_eq!(stretch(straggles), Nanos::ZERO);
    }
}
