//! Measurement modules for statistics, flow entry timeouts and sessions.

use super::{Entry, OPENFLOW, WORKLOAD};
use crate::experiments::modules::{
    counter_staleness, flow_churn, flow_timeouts, port_stats_rate, sessions, stalls,
    stats_and_updates, stats_delay,
};

/// Entries; those about statistics come first.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "stats-delay",
        title: "How long statistics take",
        axis: stats_delay::AXIS,
        method: "Flow, aggregate, table, port, queue, group and meter statistics are asked for in turn, back to \
             back and at a pace, over rules and over the load of the data plane.",
        build: stats_delay::method,
        technologies: OPENFLOW,
        parameters: stats_delay::PARAMETERS,
        shows: stats_delay::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "port-stats-rate",
        title: "Port statistics at rising rates",
        axis: port_stats_rate::AXIS,
        method: "Port statistics are asked for 2, 4 and so on to 1024 times a second, whether earlier requests were \
             answered or not; delay and loss of answers.",
        build: port_stats_rate::method,
        technologies: OPENFLOW,
        parameters: port_stats_rate::PARAMETERS,
        shows: port_stats_rate::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "counter-staleness",
        title: "How long frames that were sent stay out of sight in counters",
        axis: counter_staleness::AXIS,
        method: "Frames are sent through a rule while the counters of rule, rules, tables and port are asked for \
             again and again, until all of them are visible.",
        build: counter_staleness::method,
        technologies: OPENFLOW,
        parameters: counter_staleness::PARAMETERS,
        shows: counter_staleness::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "stats-and-updates",
        title: "What statistics and updates cost each other",
        axis: stats_and_updates::AXIS,
        method: "Statistics are asked for every so often, rules are changed in batches with barriers, and then both \
             at once.",
        build: stats_and_updates::method,
        technologies: OPENFLOW,
        parameters: stats_and_updates::PARAMETERS,
        shows: stats_and_updates::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "flow-churn",
        title: "What rules that come and go, and statistics, cost frames",
        axis: flow_churn::AXIS,
        method: "Frames visit resident rules at a constant rate while other rules are added and deleted and flow \
             statistics are asked for.",
        build: flow_churn::method,
        technologies: OPENFLOW,
        parameters: flow_churn::PARAMETERS,
        shows: flow_churn::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "control-stall",
        title: "Longest silence of forwarded frames under control load",
        axis: stalls::AXIS,
        method: "Frames visit some of many entries at a constant rate while a connection brings a control load with a \
             barrier behind it and a second controller sends echo requests; silences are known by the frames' numbers.",
        build: stalls::method,
        entries: stalls::HELD_MAX,
        technologies: OPENFLOW,
        parameters: stalls::PARAMETERS,
        shows: stalls::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "flow-timeouts",
        title: "How true time-outs of rules are, and when the switch tells of them",
        axis: flow_timeouts::AXIS,
        method: "Rules with hard and with idle time-outs end at once; probes tell when each began and ceased to act, \
             messages when the switch says so.",
        build: flow_timeouts::method,
        technologies: OPENFLOW,
        parameters: flow_timeouts::PARAMETERS,
        shows: flow_timeouts::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "session",
        title: "What a switch does when controllers come, go and change roles",
        axis: sessions::AXIS,
        method: "A connection is made again and again, controllers change roles while frames go to them, a port is \
             taken down and up, and frames go on without any controller.",
        build: sessions::method,
        technologies: OPENFLOW,
        parameters: sessions::PARAMETERS,
        shows: sessions::SHOWS,
        ..WORKLOAD
    },
];
