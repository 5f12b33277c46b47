//! How processing times were found: which of bianco2010's terms the link really has.

use crate::derive::study::{OneWay, one_way};
use crate::number;
use crate::record::{Metric, Record};

/// A sentence where the record has processing times.
pub(super) fn processing(record: &Record) -> Option<String> {
    let is_there = record.cells.iter().any(|cell| cell.metric == Metric::ProcessingNs);
    let OneWay { capacity_bps, delay_ns } = one_way(record).filter(|_| is_there)?;
    Some(match capacity_bps {
        Some(capacity) => format!(
            "Processing times are Tp = L - 2 (Tt + D), L the mean latency: the links serialise at \
             C = {} Mbit/s, so Tt = S / C with preamble and gap in S, and D is 0, as in simulated time.",
            number::text(capacity / 1e6)
        ),
        None => format!(
            "Processing times are Tp = L - 2 (Tt + D), L the mean latency: the links here do not \
             serialise at C, so Tt = 0, and D = {} µs, half of the mean latency of the tester's loop \
             without a target.",
            number::text(delay_ns / 1e3)
        ),
    })
}
