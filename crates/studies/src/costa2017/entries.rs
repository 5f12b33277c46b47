//! Tables and figures of costa2017.

use crate::costa2017::{capacity, filling, matching, modes, rewriting, sockets, statistics};
use crate::{CatalogEntry, FORWARDERS, OPENFLOW, WORKLOAD};
use experiments::control_plane::{endurance, identification};
use targets::name::TargetKind;
use workload::parameter::{methods, shared};

/// Targets of legacy mode: bridges of the same project.
const LEGACY: &[(TargetKind, TargetKind)] =
    &[(TargetKind::Switch, TargetKind::Bridge), (TargetKind::Ovs, TargetKind::LinuxBridge)];

/// Common fields of round trips.
const ROUND_TRIP: CatalogEntry = CatalogEntry {
    axis: matching::AXIS,
    method: "Flow entries for both directions are installed in advance. A client sends UDP packets \
             one by one, and a server returns each. The tester measures the round-trip time of \
             every packet with one clock for both of its ports.",
    technologies: FORWARDERS,
    ..WORKLOAD
};

/// Common fields of items about match types, which share one set of trials.
const TYPES: CatalogEntry = CatalogEntry {
    build: matching::types,
    parameters: matching::PARAMETERS,
    shares_trials_of: Some("costa2017/table3"),
    ..ROUND_TRIP
};

/// Common fields of items about statistics, which share one set of trials.
const STATISTICS: CatalogEntry = CatalogEntry {
    axis: filling::AXIS,
    method: "The tester requests flow and port statistics every second, over one entry and over a \
             table filled to 90 % of its capacity. Frames of the first entry run at 1 MB/s, then \
             at the highest rate of link and tester.",
    build: statistics::method,
    technologies: OPENFLOW,
    parameters: statistics::PARAMETERS,
    shares_trials_of: Some("costa2017/table7"),
    ..WORKLOAD
};

/// Entries in the order of the study.
pub const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "costa2017/table1",
        title: "Description of the switches",
        paper: Some(("costa2017", "table1")),
        axis: identification::AXIS,
        method: "The tester requests features, description and ports, and opens one connection for \
                 each OpenFlow version. Targets without OpenFlow get no requests.",
        build: identification::method,
        parameters: identification::PARAMETERS,
        shows: identification::SHOWS,
        ..ROUND_TRIP
    },
    CatalogEntry {
        id: "costa2017/table3",
        title: "Round-trip time by match type",
        paper: Some(("costa2017", "table3")),
        shares_trials_of: None,
        shows: matching::DELAYS,
        ..TYPES
    },
    CatalogEntry {
        id: "costa2017/table2",
        title: "Supported match types",
        paper: Some(("costa2017", "table2")),
        shows: matching::TAKEN,
        ..TYPES
    },
    CatalogEntry {
        id: "costa2017/sockets",
        title: "Round-trip time with tester ports and with socket programs",
        paper: Some(("costa2017", "sockets")),
        method: "The tester's ports and two programs with sockets send the same packets over the \
                 same entries, alternately and one by one. The programs run on separate hosts. The \
                 difference is the time that the hosts add.",
        build: sockets::method,
        parameters: sockets::PARAMETERS,
        shows: sockets::SHOWS,
        wants_hosts: true,
        ..ROUND_TRIP
    },
    CatalogEntry {
        id: "costa2017/fig2",
        title: "Distribution of round-trip times with an IP match",
        paper: Some(("costa2017", "fig2")),
        shows: matching::IP,
        ..TYPES
    },
    CatalogEntry {
        id: "costa2017/fig3",
        title: "Distribution of round-trip times with an exact match",
        paper: Some(("costa2017", "fig3")),
        shows: matching::EXACT,
        ..TYPES
    },
    CatalogEntry {
        id: "costa2017/fig4",
        title: "Round-trip time with an exact match by packet size",
        paper: Some(("costa2017", "fig4")),
        build: matching::sizes,
        parameters: matching::BY_SIZE,
        shows: matching::SIZED,
        ..ROUND_TRIP
    },
    CatalogEntry {
        id: "costa2017/fig5",
        title: "Jitter of small packets with an exact match",
        paper: Some(("costa2017", "fig5")),
        shows: matching::JITTER,
        ..TYPES
    },
    CatalogEntry {
        id: "costa2017/fig6",
        title: "Round-trip time in OpenFlow mode and in legacy mode",
        paper: Some(("costa2017", "fig6")),
        build: modes::method,
        paired_targets: LEGACY,
        has_modes: true,
        parameters: modes::PARAMETERS,
        shows: modes::SHOWS,
        ..ROUND_TRIP
    },
    CatalogEntry {
        id: "costa2017/table4",
        title: "Table capacity in OpenFlow mode and in legacy mode",
        paper: Some(("costa2017", "table4")),
        method: "The controller adds entries until the switch rejects one or a limit is reached; \
                 probes then verify the entries in the data plane. Bridges learn stations until \
                 one is missing. Routers get fewer routes until each route forwards its frame.",
        build: capacity::method,
        paired_targets: LEGACY,
        parameters: capacity::PARAMETERS,
        shows: capacity::SHOWS,
        inputs: 2,
        shared: &[&[methods::ADDRESSES, methods::LEARNING_RATE, shared::VERIFY]],
        ..ROUND_TRIP
    },
    CatalogEntry {
        id: "costa2017/table5",
        title: "Round-trip time with one entry and with a full table",
        paper: Some(("costa2017", "table5")),
        axis: filling::AXIS,
        method: "The controller adds entries until the switch rejects one or a limit is reached; \
                 the entries of both directions come last. The round-trip times are compared with \
                 those of these entries alone.",
        build: filling::method,
        technologies: OPENFLOW,
        parameters: filling::PARAMETERS,
        shows: filling::SHOWS,
        ..ROUND_TRIP
    },
    CatalogEntry {
        id: "costa2017/table6",
        title: "Round-trip time and correctness of header rewrites",
        paper: Some(("costa2017", "table6")),
        method: "The entries of both directions rewrite a field. Client and server compare the \
                 packets with the expected ones byte by byte, and the tester measures the \
                 round-trip times.",
        build: rewriting::method,
        technologies: OPENFLOW,
        parameters: rewriting::PARAMETERS,
        shows: rewriting::SHOWS,
        ..ROUND_TRIP
    },
    CatalogEntry {
        id: "costa2017/table7",
        title: "Flow statistics reply time",
        paper: Some(("costa2017", "table7")),
        shares_trials_of: None,
        shows: statistics::FLOWS,
        ..STATISTICS
    },
    CatalogEntry {
        id: "costa2017/table8",
        title: "Port statistics reply time",
        paper: Some(("costa2017", "table8")),
        shows: statistics::PORTS,
        ..STATISTICS
    },
    CatalogEntry {
        id: "costa2017/fig7",
        title: "Flow statistics reply time over one entry under heavy load",
        paper: Some(("costa2017", "fig7")),
        shows: statistics::FLOWS_ONE,
        ..STATISTICS
    },
    CatalogEntry {
        id: "costa2017/fig8",
        title: "Flow statistics reply time over a nearly full table under heavy load",
        paper: Some(("costa2017", "fig8")),
        shows: statistics::FLOWS_FULL,
        ..STATISTICS
    },
    CatalogEntry {
        id: "costa2017/fig9",
        title: "Port statistics reply time over one entry under heavy load",
        paper: Some(("costa2017", "fig9")),
        shows: statistics::PORTS_ONE,
        ..STATISTICS
    },
    CatalogEntry {
        id: "costa2017/fig10",
        title: "Port statistics reply time over a nearly full table under heavy load",
        paper: Some(("costa2017", "fig10")),
        shows: statistics::PORTS_FULL,
        ..STATISTICS
    },
    CatalogEntry {
        id: "costa2017/messages",
        title: "Control message rate, and stability near and above it",
        paper: Some(("costa2017", "messages")),
        axis: endurance::AXIS,
        method: "64 outstanding messages give the message rate of the switch. Messages then come \
                 at 90 % and at 120 % of that rate, independent of replies.",
        build: endurance::method,
        technologies: OPENFLOW,
        parameters: endurance::PARAMETERS,
        shows: endurance::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "costa2017/discussion",
        title: "Comparison of the target with the switches of the study",
        paper: Some(("costa2017", "discussion")),
        ..TYPES
    },
];
