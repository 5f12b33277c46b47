//! Tables and figures of costa2017.

use super::{Entry, FORWARDERS, OPENFLOW, WORKLOAD};
use crate::experiments::costa2017::{
    capacity, filling, matching, modes, rewriting, sockets, statistics,
};
use crate::experiments::modules::{describing, endurance};
use crate::parameter::{methods, shared};
use crate::target::name::TargetKind;

/// Common fields of round trips.
const ROUND_TRIP: Entry = Entry {
    axis: matching::AXIS,
    method: "Rules for both ways are there before; a client sends UDP packets one at a time, a server returns \
             each, and the round-trip time of every packet is taken, by the same clock on both ports of the \
             tester.",
    technologies: FORWARDERS,
    ..WORKLOAD
};

/// Common fields of items about match types, which share one set of trials.
const TYPES: Entry = Entry {
    build: matching::types,
    parameters: matching::PARAMETERS,
    shares_trials_of: Some("costa2017/table3"),
    ..ROUND_TRIP
};

/// Common fields of items about statistics, which share one set of trials.
const STATISTICS: Entry = Entry {
    axis: filling::AXIS,
    method: "Flow and port statistics are asked for every second, over one rule and over a table filled to 90 % of \
             what fits, while frames of the first rule run at 1 MB/s and then at the most.",
    build: statistics::method,
    technologies: OPENFLOW,
    parameters: statistics::PARAMETERS,
    shares_trials_of: Some("costa2017/table7"),
    ..WORKLOAD
};

/// Entries in the order of the study.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "costa2017/table1",
        title: "What the switches say of themselves",
        paper: Some(("costa2017", "table1")),
        axis: describing::AXIS,
        method: "Features, description and ports are asked for, and a connection is made for each version of \
                 OpenFlow; what has no OpenFlow is asked nothing.",
        build: describing::method,
        parameters: describing::PARAMETERS,
        shows: describing::SHOWS,
        ..ROUND_TRIP
    },
    Entry {
        id: "costa2017/table3",
        title: "Round-trip time by type of match",
        paper: Some(("costa2017", "table3")),
        shares_trials_of: None,
        shows: matching::DELAYS,
        ..TYPES
    },
    Entry {
        id: "costa2017/table2",
        title: "Types of match that the target has",
        paper: Some(("costa2017", "table2")),
        shows: matching::TAKEN,
        ..TYPES
    },
    Entry {
        id: "costa2017/sockets",
        title: "Client and server as the tester's ports and as programs with sockets",
        paper: Some(("costa2017", "sockets")),
        method: "The same rules and headers, in turns: packets of the tester's ports, and of a client and a server on \
                 hosts with sockets of their own, one at a time; what hosts take is the difference.",
        build: sockets::method,
        parameters: sockets::PARAMETERS,
        shows: sockets::SHOWS,
        wants_hosts: true,
        ..ROUND_TRIP
    },
    Entry {
        id: "costa2017/fig2",
        title: "Distribution of delays with a match by IP",
        paper: Some(("costa2017", "fig2")),
        shows: matching::IP,
        ..TYPES
    },
    Entry {
        id: "costa2017/fig3",
        title: "Distribution of delays with an exact match",
        paper: Some(("costa2017", "fig3")),
        shows: matching::EXACT,
        ..TYPES
    },
    Entry {
        id: "costa2017/fig4",
        title: "Delays with an exact match by packet size",
        paper: Some(("costa2017", "fig4")),
        build: matching::sizes,
        parameters: matching::BY_SIZE,
        shows: matching::SIZED,
        ..ROUND_TRIP
    },
    Entry {
        id: "costa2017/fig5",
        title: "Jitter of small packets with an exact match",
        paper: Some(("costa2017", "fig5")),
        shows: matching::JITTER,
        ..TYPES
    },
    Entry {
        id: "costa2017/fig6",
        title: "OpenFlow mode against legacy mode",
        paper: Some(("costa2017", "fig6")),
        build: modes::method,
        companions: &[
            (TargetKind::Ours, TargetKind::Bridge),
            (TargetKind::Ovs, TargetKind::LinuxBridge),
        ],
        has_modes: true,
        parameters: modes::PARAMETERS,
        shows: modes::SHOWS,
        ..ROUND_TRIP
    },
    Entry {
        id: "costa2017/table4",
        title: "Rules that fit, in OpenFlow mode and in legacy mode",
        paper: Some(("costa2017", "table4")),
        method: "Rules are put in until the switch refuses one or a bound is reached, and looked for in the data \
                 plane; bridges learn stations until one is not found again; routers get fewer routes until a \
                 frame to each is forwarded.",
        build: capacity::method,
        parameters: capacity::PARAMETERS,
        shows: capacity::SHOWS,
        inputs: 2,
        shared: &[&[methods::ADDRESSES, methods::LEARNING_RATE, shared::VERIFY]],
        ..ROUND_TRIP
    },
    Entry {
        id: "costa2017/table5",
        title: "Round-trip time with one rule and with a full table",
        paper: Some(("costa2017", "table5")),
        axis: filling::AXIS,
        method: "Rules are put in until the switch refuses one or a bound is reached, those for both ways last; \
                 round-trip times then stand beside those with these rules alone.",
        build: filling::method,
        technologies: OPENFLOW,
        parameters: filling::PARAMETERS,
        shows: filling::SHOWS,
        ..ROUND_TRIP
    },
    Entry {
        id: "costa2017/table6",
        title: "Round-trip time with header rewrites, and whether they are done",
        paper: Some(("costa2017", "table6")),
        method: "The rules of both ways rewrite a field; packets are compared byte by byte with what they ought \
                 to be, and their round-trip times are taken.",
        build: rewriting::method,
        technologies: OPENFLOW,
        parameters: rewriting::PARAMETERS,
        shows: rewriting::SHOWS,
        ..ROUND_TRIP
    },
    Entry {
        id: "costa2017/table7",
        title: "Delay of flow statistics",
        paper: Some(("costa2017", "table7")),
        shares_trials_of: None,
        shows: statistics::FLOWS,
        ..STATISTICS
    },
    Entry {
        id: "costa2017/table8",
        title: "Delay of port statistics",
        paper: Some(("costa2017", "table8")),
        shows: statistics::PORTS,
        ..STATISTICS
    },
    Entry {
        id: "costa2017/fig7",
        title: "Flow statistics over one rule under heavy load",
        paper: Some(("costa2017", "fig7")),
        shows: statistics::FLOWS_ONE,
        ..STATISTICS
    },
    Entry {
        id: "costa2017/fig8",
        title: "Flow statistics over a nearly full table under heavy load",
        paper: Some(("costa2017", "fig8")),
        shows: statistics::FLOWS_FULL,
        ..STATISTICS
    },
    Entry {
        id: "costa2017/fig9",
        title: "Port statistics over one rule under heavy load",
        paper: Some(("costa2017", "fig9")),
        shows: statistics::PORTS_ONE,
        ..STATISTICS
    },
    Entry {
        id: "costa2017/fig10",
        title: "Port statistics over a nearly full table under heavy load",
        paper: Some(("costa2017", "fig10")),
        shows: statistics::PORTS_FULL,
        ..STATISTICS
    },
    Entry {
        id: "costa2017/messages",
        title: "Control messages a second, and what becomes of the target near that and beyond",
        paper: Some(("costa2017", "messages")),
        axis: endurance::AXIS,
        method: "64 messages are under way until it is known how many are done in a second; then they come at 90 % of \
                 that whatever is done, and at 120 %.",
        build: endurance::method,
        technologies: OPENFLOW,
        parameters: endurance::PARAMETERS,
        shows: endurance::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "costa2017/discussion",
        title: "Where the target stands among the study's switches",
        paper: Some(("costa2017", "discussion")),
        ..TYPES
    },
];
