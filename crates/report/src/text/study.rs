//! How processing times were found: which of bianco2010's terms the link really has.

use crate::analysis::bianco2010::{self, one_way};
use record::links;
use record::number;
use record::{Metric, Record};

/// A sentence where the record has processing times.
pub(super) fn processing(record: &Record) -> Option<String> {
    let is_there = record.cells.iter().any(|cell| cell.metric == Metric::ProcessingNs);
    if !is_there {
        return None;
    }
    Some(match bianco2010::capacity_bps(record) {
        Some(capacity) => format!(
            "Processing times are Tp = L - 2 (Tt + D), L the mean latency: the links serialise at \
             C = {} Mbit/s, so Tt = S / C with preamble and gap in S, and D is 0, as in simulated time.",
            number::text(capacity / 1e6)
        ),
        None => format!(
            "Processing times are Tp = L - 2 (Tt + D), L the mean latency: the links here do not \
             serialise at C, so Tt = 0, and D = {}, half of the mean latency of the tester's loop \
             without a target.",
            delays(record)?
        ),
    })
}

/// The tester's own delay each way, of each link.
fn delays(record: &Record) -> Option<String> {
    let all = links::gathered(record);
    let delay = |(link, targets): &(&str, Vec<&str>)| {
        let own = number::text(one_way(record, targets.first()?)?.delay_ns / 1e3);
        Some(if all.len() == 1 { format!("{own} µs") } else { format!("{own} µs over {link}") })
    };
    let each: Vec<String> = all.iter().filter_map(delay).collect();
    (!each.is_empty()).then(|| each.join(", "))
}
