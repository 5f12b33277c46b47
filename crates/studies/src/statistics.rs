//! Measurement modules for statistics, flow entry timeouts and sessions.

use super::{CatalogEntry, OPENFLOW, WORKLOAD};
use experiments::control_plane::{
    counter_staleness, flow_churn, flow_timeouts, port_stats_rate, sessions, stalls,
    stats_and_updates, stats_delay,
};

/// Entries; those about statistics come first.
pub(super) const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "stats-delay",
        title: "Statistics reply time",
        axis: stats_delay::AXIS,
        method: "The tester requests flow, aggregate, table, port, queue, group and meter \
                 statistics in turn, back to back and at an interval. The axes are the number of \
                 entries and the load of the data plane.",
        build: stats_delay::method,
        technologies: OPENFLOW,
        parameters: stats_delay::PARAMETERS,
        shows: stats_delay::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "port-stats-rate",
        title: "Port statistics reply time by request rate",
        axis: port_stats_rate::AXIS,
        method: "The tester sends 2, 4 and so on up to 1024 port statistics requests per second, \
                 independent of earlier replies. The results are the reply time and the share of \
                 missing replies.",
        build: port_stats_rate::method,
        technologies: OPENFLOW,
        parameters: port_stats_rate::PARAMETERS,
        shows: port_stats_rate::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "counter-staleness",
        title: "Counter staleness",
        axis: counter_staleness::AXIS,
        method: "The tester sends frames through one entry. It polls the counters of that entry, \
                 the aggregate, the tables and the port until all frames are visible.",
        build: counter_staleness::method,
        technologies: OPENFLOW,
        parameters: counter_staleness::PARAMETERS,
        shows: counter_staleness::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "stats-and-updates",
        title: "Interaction of statistics requests and updates",
        axis: stats_and_updates::AXIS,
        method: "Three periods run over the same entries: periodic statistics requests alone, \
                 batches of changes with barrier requests alone, and both together.",
        build: stats_and_updates::method,
        technologies: OPENFLOW,
        parameters: stats_and_updates::PARAMETERS,
        shows: stats_and_updates::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "flow-churn",
        title: "Forwarding impact of flow churn and statistics requests",
        axis: flow_churn::AXIS,
        method: "Frames visit resident entries at a constant rate while the controller adds and \
                 deletes other entries and requests flow statistics.",
        build: flow_churn::method,
        technologies: OPENFLOW,
        parameters: flow_churn::PARAMETERS,
        shows: flow_churn::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "control-stall",
        title: "Longest forwarding gap under control load",
        axis: stalls::AXIS,
        method: "Frames visit some of many entries at a constant rate. One connection sends a \
                 control load, followed by a barrier request; a second controller sends echo \
                 requests. The sequence numbers of the frames show the gaps.",
        build: stalls::method,
        entries: stalls::HELD_MAX,
        technologies: OPENFLOW,
        parameters: stalls::PARAMETERS,
        shows: stalls::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "flow-timeouts",
        title: "Accuracy of flow entry timeouts, and flow-removed delay",
        axis: flow_timeouts::AXIS,
        method: "Entries with hard and with idle timeouts expire at the same time. Probes show \
                 when each entry becomes active and when it expires. Flow-removed messages show \
                 when the switch reports it.",
        build: flow_timeouts::method,
        technologies: OPENFLOW,
        parameters: flow_timeouts::PARAMETERS,
        shows: flow_timeouts::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "session",
        title: "Session behaviour: reconnection, roles, ports, failure of all controllers",
        axis: sessions::AXIS,
        method: "The tester closes and reopens one connection several times. Controllers change \
                 roles while packet-ins arrive. A controller takes a port down and up. Frames then \
                 continue without any controller.",
        build: sessions::method,
        technologies: OPENFLOW,
        parameters: sessions::PARAMETERS,
        shows: sessions::SHOWS,
        ..WORKLOAD
    },
];
