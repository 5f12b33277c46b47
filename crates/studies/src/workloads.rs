//! Plain methods, and controller operations.

use super::{CatalogEntry, OPENFLOW, WORKLOAD};
use experiments::{
    cold_start, flow_mod_rate, flow_stats_dump, forwarding_rate, latency, match_types,
    memory_per_flow, program_swap, soak, throughput,
};
use workload::parameter::declaration::Parameter;
use workload::parameter::{control, methods, shared};

/// Parameters of flow statistics dumps.
const DUMPS: &[&[Parameter]] =
    &[shared::TRIALS, &[shared::TRAFFIC, control::OPENFLOW, control::BESIDE]];

/// Entries; those about frames come first.
pub(super) const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "soak",
        title: "Soak test: fixed load with changing table contents",
        axis: soak::AXIS,
        method: "80 % of the throughput in sixty consecutive trials, while flow-mods or new \
                 addresses change the table. The results are rate, loss, latency and memory, and \
                 the trend of each.",
        build: soak::method,
        parameters: soak::PARAMETERS,
        shared: &[
            shared::TRIALS,
            shared::TABLES,
            shared::SEARCHES,
            &[
                methods::SOAK_SECONDS,
                methods::ADDRESSES,
                control::FLOW_MODS,
                control::OPENFLOW,
                control::PRIORITY,
            ],
        ],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "forwarding-rate",
        title: "Forwarding rate under full load",
        axis: forwarding_rate::AXIS,
        method: "Full nominal load over one entry and over 131,072 entries with random headers, or \
                 over the table set with --set.",
        build: forwarding_rate::method,
        parameters: forwarding_rate::PARAMETERS,
        shared: &[shared::TRIALS, shared::TABLES, shared::STREAMS],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "match-types",
        title: "Processing cost per frame by match type",
        axis: match_types::AXIS,
        method: "One flow at full nominal load over one entry of each match type in turn: the \
                 port, MAC addresses, IP addresses, IP addresses with UDP ports, and every field.",
        build: match_types::method,
        technologies: OPENFLOW,
        parameters: match_types::PARAMETERS,
        shared: &[shared::TRIALS],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "throughput",
        title: "Throughput: highest load without loss (RFC 2544)",
        axis: throughput::AXIS,
        method: "Binary search from the nominal rate down, without loss and within a given loss \
                 ratio. A longer trial confirms each result. The whole search is repeated.",
        build: throughput::method,
        parameters: throughput::PARAMETERS,
        shared: &[shared::TRIALS, shared::TABLES, shared::SEARCHES, &[shared::LOSS]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "latency",
        title: "Latency at shares of the throughput",
        axis: latency::AXIS,
        method: "A search finds the highest load within the loss ratio; trials at shares of that \
                 load follow. Every frame carries its send time.",
        build: latency::method,
        parameters: latency::PARAMETERS,
        shared: &[
            shared::TRIALS,
            shared::TABLES,
            shared::SEARCHES,
            &[shared::LOSS, control::LOAD_OF],
        ],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "flow-mod-rate",
        title: "Flow-mod rate",
        axis: flow_mod_rate::AXIS,
        method: "The controller adds, modifies and deletes single exact-match entries over one \
                 connection. A barrier request follows each flow-mod or each thousand, or the \
                 flow-mods are in committed bundles. The rate covers the time from the first byte \
                 sent to the last reply received.",
        build: flow_mod_rate::method,
        flows: Some(&flow_mod_rate::FLOWS),
        shared: &[
            shared::TRIALS,
            shared::TABLES,
            &[
                control::BATCH,
                control::PRIORITY,
                control::OPENFLOW,
                control::AHEAD,
                control::BESIDE,
            ],
        ],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "flow-mod-impact",
        title: "Forwarding impact of flow-mods",
        axis: flow_mod_rate::AXIS_IMPACT,
        method: "Traffic at a share of the target's own maximum, without flow-mods and while flows \
                 are added and deleted at a constant rate. The results are busy cycles per frame, \
                 and loss.",
        build: flow_mod_rate::impact,
        flows: Some(&flow_mod_rate::FLOWS),
        parameters: flow_mod_rate::PARAMETERS_IMPACT,
        shared: &[
            shared::TRIALS,
            shared::TABLES,
            &[control::FLOW_MODS, control::PRIORITY, control::OPENFLOW, control::BESIDE],
        ],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "flow-stats-dump",
        title: "Flow statistics dump time",
        axis: flow_stats_dump::AXIS,
        method: "One request for all flow statistics. The time is from its first byte to the end \
                 of the last part of the reply.",
        build: flow_stats_dump::method,
        flows: Some(&flow_stats_dump::FLOWS),
        shared: DUMPS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "flow-stats-impact",
        title: "Forwarding impact of flow statistics dumps",
        axis: flow_stats_dump::AXIS_IMPACT,
        method: "Traffic at a share of the target's own maximum, without dumps and while all flow \
                 statistics are requested repeatedly. The results are busy cycles per frame, and \
                 loss.",
        build: flow_stats_dump::impact,
        flows: Some(&flow_stats_dump::FLOWS),
        shared: DUMPS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "memory-per-flow",
        title: "Memory per flow",
        axis: memory_per_flow::AXIS,
        method: "Growth of the resident memory of the target's processes, including huge pages: \
                 from their start until they hold all flows, and until frames of each flow were \
                 forwarded.",
        build: memory_per_flow::method,
        flows: Some(&memory_per_flow::FLOWS),
        shared: &[shared::TRIALS],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "program-swap",
        title: "Forwarding impact of program swaps",
        axis: program_swap::AXIS,
        method: "Traffic at 80 % of the element's own maximum, without swaps and while its program \
                 is swapped repeatedly. The results are loss, order, and the increase of the 99th \
                 percentile of latency over the quiet trial.",
        build: program_swap::method,
        swaps: true,
        parameters: program_swap::PARAMETERS,
        shared: &[shared::TRIALS, shared::TABLES, &[control::BESIDE]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "cold-start",
        title: "Forwarding rate of new flows",
        axis: cold_start::AXIS,
        method: "The first second at full nominal load over newly installed flows, then the same \
                 with filled caches.",
        build: cold_start::method,
        flows: Some(&cold_start::FLOWS),
        parameters: cold_start::PARAMETERS,
        ..WORKLOAD
    },
];
