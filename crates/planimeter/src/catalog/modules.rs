//! Measurement modules.

use super::{Entry, OPENFLOW, WORKLOAD};
use crate::experiments::modules::updates;

/// Those about rules first.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    id: "rule-activation",
    title: "How long rules take to act, and what the barrier's answer is worth",
    axis: updates::AXIS,
    method: "Rules are added, changed or deleted at once with a barrier behind them, while probes visit \
             each in turn; the port at which a probe comes back says whether its rule acts.",
    build: updates::method,
    technologies: OPENFLOW,
    parameters: &updates::PARAMETERS,
    shows: updates::SHOWS,
    ..WORKLOAD
}];
