//! Plain methods, and controller operations.

use super::{Entry, OPENFLOW, WORKLOAD};
use crate::experiments::{
    cold_start, flow_mod_rate, flow_stats_dump, forwarding_rate, latency, match_types,
    memory_per_flow, program_swap, soak, throughput,
};
use crate::parameter::own::Declared;
use crate::parameter::{control, methods, shared};

/// Parameters of flow statistics dumps.
const DUMPS: &[&[Declared]] =
    &[shared::TRIALS, &[shared::TRAFFIC, control::OPENFLOW, control::BESIDE]];

/// Entries; those about frames come first.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "soak",
        title: "A set load for long, while what the target holds changes",
        axis: soak::AXIS,
        method: "80 % of the throughput in sixty trials one after the other, with flow-mods or changing addresses \
                 meanwhile: rate, loss, latency and memory, and the trend of each.",
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
    Entry {
        id: "forwarding-rate",
        title: "Forwarding rate under full load",
        axis: forwarding_rate::AXIS,
        method: "Full nominal load over one entry and over 131,072 entries with random headers, or \
                 over the table that --set asks for.",
        build: forwarding_rate::method,
        parameters: forwarding_rate::PARAMETERS,
        shared: &[shared::TRIALS, shared::TABLES, shared::STREAMS],
        ..WORKLOAD
    },
    Entry {
        id: "match-types",
        title: "What a frame costs by the type of match",
        axis: match_types::AXIS,
        method: "Full nominal load of one flow over one rule for the port, for MAC addresses, for IP addresses, for these \
                 with UDP ports, and for every field, in turn.",
        build: match_types::method,
        technologies: OPENFLOW,
        parameters: match_types::PARAMETERS,
        shared: &[shared::TRIALS],
        ..WORKLOAD
    },
    Entry {
        id: "throughput",
        title: "Throughput: the largest load without loss (RFC 2544)",
        axis: throughput::AXIS,
        method: "Binary search from the nominal rate down, without loss and within a set loss, each \
                 result confirmed by a longer trial and the whole search repeated.",
        build: throughput::method,
        parameters: throughput::PARAMETERS,
        shared: &[shared::TRIALS, shared::TABLES, shared::SEARCHES, &[shared::LOSS]],
        ..WORKLOAD
    },
    Entry {
        id: "latency",
        title: "Latency at shares of the throughput",
        axis: latency::AXIS,
        method: "A search for the load within the set loss, then trials at shares of it; every frame \
                 carries its send time.",
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
    Entry {
        id: "flow-mod-rate",
        title: "Flow-mods a second",
        axis: flow_mod_rate::AXIS,
        method: "Exact matches added, modified and deleted one by one over one connection, from the \
                 first byte sent to the last answer received: a barrier after each, after each \
                 thousand, and committed bundles.",
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
    Entry {
        id: "flow-mod-impact",
        title: "What flow-mods cost the frames",
        axis: flow_mod_rate::AXIS_IMPACT,
        method: "Traffic at a share of the target's own maximum, quiet and while flows are added and \
                 deleted at a steady rate: busy cycles per frame, and loss.",
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
    Entry {
        id: "flow-stats-dump",
        title: "Time to tell of all flows",
        axis: flow_stats_dump::AXIS,
        method: "All flow statistics asked for in one request, from its first byte to the end of the \
                 last part of the answer.",
        build: flow_stats_dump::method,
        flows: Some(&flow_stats_dump::FLOWS),
        shared: DUMPS,
        ..WORKLOAD
    },
    Entry {
        id: "flow-stats-impact",
        title: "What dumps of all flows cost the frames",
        axis: flow_stats_dump::AXIS_IMPACT,
        method: "Traffic at a share of the target's own maximum, quiet and while all flow statistics \
                 are asked for again and again: busy cycles per frame, and loss.",
        build: flow_stats_dump::impact,
        flows: Some(&flow_stats_dump::FLOWS),
        shared: DUMPS,
        ..WORKLOAD
    },
    Entry {
        id: "memory-per-flow",
        title: "Memory of a flow",
        axis: memory_per_flow::AXIS,
        method: "Growth of the resident memory of the target's processes, huge pages counted, from \
                 their start until they hold all flows, and until frames of each were forwarded.",
        build: memory_per_flow::method,
        flows: Some(&memory_per_flow::FLOWS),
        shared: &[shared::TRIALS],
        ..WORKLOAD
    },
    Entry {
        id: "program-swap",
        title: "What programs that take each other's place cost the frames",
        axis: program_swap::AXIS,
        method: "Traffic at 80 % of the element's own maximum, quiet and while the program that it runs is put in \
                 place again and again: loss, order, and the 99th percentile of latency beyond that of the quiet trial.",
        build: program_swap::method,
        swaps: true,
        parameters: program_swap::PARAMETERS,
        shared: &[shared::TRIALS, shared::TABLES, &[control::BESIDE]],
        ..WORKLOAD
    },
    Entry {
        id: "cold-start",
        title: "Forwarding rate over flows never met before",
        axis: cold_start::AXIS,
        method: "The first second at full nominal load over flows just installed, then the same with \
                 all caches filled.",
        build: cold_start::method,
        flows: Some(&cold_start::FLOWS),
        parameters: cold_start::PARAMETERS,
        ..WORKLOAD
    },
];
