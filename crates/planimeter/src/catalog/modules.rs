//! Measurement modules.

use super::{Entry, OPENFLOW, WORKLOAD};
use crate::experiments::modules::{update_rate, updates};

/// Entries; those about flow entries come first.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
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
    },
    Entry {
        id: "update-rate",
        title: "How many rules a second are changed",
        axis: update_rate::AXIS,
        method: "Rules are added, changed or deleted in batches with a barrier behind each, so many batches under way, \
                 in tables that are more or less full.",
        build: update_rate::method,
        technologies: OPENFLOW,
        parameters: update_rate::PARAMETERS,
        shows: update_rate::SHOWS,
        ..WORKLOAD
    },
];
