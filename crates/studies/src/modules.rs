//! Measurement modules.

use super::{CatalogEntry, OPENFLOW, WORKLOAD};
use experiments::control_plane::{update_rate, updates};

/// Entries; those about flow entries come first.
pub(super) const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "rule-activation",
        title: "Rule activation delay, and reliability of the barrier reply",
        axis: updates::AXIS,
        method: "The controller adds, modifies or deletes many entries in one update, followed by \
                 a barrier request. Probes visit each entry in turn; the port at which a probe \
                 returns shows whether its entry is active.",
        build: updates::method,
        technologies: OPENFLOW,
        parameters: &updates::PARAMETERS,
        shows: updates::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "update-rate",
        title: "Flow entry update rate",
        axis: update_rate::AXIS,
        method: "The controller adds, modifies or deletes entries in batches, each followed by a \
                 barrier request, with a fixed number of outstanding batches. A share of the table \
                 is filled in advance.",
        build: update_rate::method,
        technologies: OPENFLOW,
        parameters: update_rate::PARAMETERS,
        shows: update_rate::SHOWS,
        ..WORKLOAD
    },
];
