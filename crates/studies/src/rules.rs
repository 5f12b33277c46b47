//! Measurement modules for frames: during updates, and through flow entries and actions.

use super::{CatalogEntry, OPENFLOW, WORKLOAD};
use experiments::control_plane::{
    actions, blackhole, forwarding, match_tuples, path_setup, table_capacity, update_transient,
    updates,
};
use workload::parameter::shared;

/// Entries; those about changing flow entries come first.
pub(super) const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "update-transient",
        title: "Frame forwarding during rule updates",
        axis: updates::AXIS,
        method: "Entries that send frames back change to forward them, while probes visit each in \
                 turn. The ports at which a probe arrives show whether the old entry, the new one, \
                 none or both applied.",
        build: update_transient::method,
        technologies: OPENFLOW,
        parameters: update_transient::PARAMETERS,
        shows: update_transient::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "blackhole",
        title: "Forwarding after a change to drop",
        axis: updates::AXIS,
        method: "Entries that forward frames change to drop, or are deleted above an entry that \
                 drops, while probes visit each in turn. Probes that still arrive have leaked.",
        build: blackhole::method,
        technologies: OPENFLOW,
        parameters: blackhole::PARAMETERS,
        shows: blackhole::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "path-setup",
        title: "Path setup delay and frame loss over several switches",
        axis: path_setup::AXIS,
        method: "Probes visit each flow in turn while its entries go to every switch of the path: \
                 to all at the same time, or switch by switch, each after the barrier reply of the \
                 one before. A probe leaves at the far end, or arrives in a packet-in from the \
                 switch without its entry.",
        build: path_setup::method,
        technologies: OPENFLOW,
        spans_path: true,
        parameters: path_setup::PARAMETERS,
        shows: path_setup::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "forwarding-latency",
        title: "Forwarding latency by frame size and rate",
        axis: forwarding::BYTES_AXIS,
        method: "A load of one frame size runs through entries at a low and at a high rate. Evenly \
                 spread probes give the latency.",
        build: forwarding::latency,
        technologies: OPENFLOW,
        spans_path: true,
        parameters: forwarding::LATENCY,
        shows: forwarding::LATENCY_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "queue-delay",
        title: "Queue delay and frame loss by rate",
        axis: forwarding::RATE_AXIS,
        method: "Frames run through one entry, or one queue, at each rate. Evenly spread probes \
                 give the latency; port counters give the loss.",
        build: forwarding::queue_delay,
        technologies: OPENFLOW,
        spans_path: true,
        parameters: forwarding::QUEUES,
        shows: forwarding::QUEUES_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "table-lookup",
        title: "Table lookup latency by number of entries",
        axis: forwarding::RULES_AXIS,
        method: "The table holds exact or wildcard entries. Probes visit the first, the last and a \
                 random entry in turn.",
        build: forwarding::table_lookup,
        technologies: OPENFLOW,
        spans_path: true,
        parameters: forwarding::LOOKUP,
        shows: forwarding::LOOKUP_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "action-delay",
        title: "Extra latency and correctness of each action",
        axis: actions::BYTES_AXIS,
        method: "Each action has its own entry, and another entry only outputs frames of the same \
                 kind. Probes visit them in turn. Every output frame is compared with the expected \
                 frame byte by byte.",
        build: actions::delay,
        technologies: OPENFLOW,
        parameters: actions::DELAY,
        shows: actions::DELAY_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "action-scalability",
        title: "Extra latency of action lists",
        axis: actions::LENGTH_AXIS,
        method: "One entry has the given number of rewrites, another only outputs frames. Probes \
                 visit both in turn. Every output frame is compared with the expected frame byte \
                 by byte.",
        build: actions::scalability,
        technologies: OPENFLOW,
        parameters: actions::SCALABILITY,
        shows: actions::SCALABILITY_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "header-rewrite",
        title: "Latency and correctness of header rewrites by field",
        axis: actions::BYTES_AXIS,
        method: "Each field that can be set has its own entry, and another entry only outputs \
                 frames of the same kind. Probes visit them in turn. Every output frame is \
                 compared with the expected frame byte by byte.",
        build: actions::rewrite,
        technologies: OPENFLOW,
        parameters: actions::DELAY,
        shows: actions::REWRITE_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "match-tuples",
        title: "Support and correctness of match field combinations",
        axis: match_tuples::AXIS,
        method: "One entry is installed for each combination of fields. Some frames have all of \
                 its values, others differ in one. The port at which they return shows whether \
                 they matched.",
        build: match_tuples::method,
        technologies: OPENFLOW,
        parameters: match_tuples::PARAMETERS,
        shows: match_tuples::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "table-capacity",
        title: "Flow table capacity, and activation of each entry",
        axis: table_capacity::AXIS,
        method: "The controller adds entries in batches, each followed by a barrier request, until \
                 the switch rejects one or a limit is reached. Probes then visit the entries; the \
                 port at which a probe returns shows whether its entry is active.",
        build: table_capacity::method,
        technologies: OPENFLOW,
        parameters: table_capacity::PARAMETERS,
        shows: table_capacity::SHOWS,
        ..WORKLOAD
    },
];
