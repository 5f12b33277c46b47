//! Figures of gelberger2013.

use crate::gelberger2013::{bridging, latency, offload, rate, tcp};
use crate::{ALL, BRIDGES, CatalogEntry, TRIALS_OVER};
use workload::Technology;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Fields that all figures share. The study compares programs with native elements, and with a
/// direct connection.
const WORKLOAD: CatalogEntry = CatalogEntry {
    default_targets: &[
        "progfe:bridge",
        "progfe:bridge-complex",
        "progfe:router",
        "progfe:vlan16",
        "tagger",
        "direct",
    ],
    ..crate::WORKLOAD
};

/// Parameters of trials whose table follows from the workload.
const TRIALS_OVER_OWN: &[&[Parameter]] = &[shared::TRIALS];

/// Technologies that learn addresses, or have a controller that does.
const OFFLOADED: &[Technology] = &[Technology::OpenFlow, Technology::Bridging];

/// Technologies that can add tags.
const TAGGED: &[Technology] = &[Technology::OpenFlow, Technology::Tagging];

/// Common fields of figures about TCP connections.
const TCP: CatalogEntry = CatalogEntry {
    method: "A program on a host at one end of the target sends over one TCP connection (iperf3, \
             CUBIC) to a program at the other end. Both use the requested window. The programs \
             report received bytes, retransmissions, expired timers and the offered window.",
    technologies: ALL,
    parameters: tcp::PARAMETERS,
    shared: &[&[shared::SECONDS]],
    wants_hosts: true,
    ..WORKLOAD
};

/// Common fields of figures about frame delay.
const DELAYS: CatalogEntry = CatalogEntry {
    axis: latency::AXIS,
    method: "One flow runs at a rate that every target carries, for each workload that the target \
             supports. Every frame carries its send time, and its arrival is time-stamped.",
    technologies: ALL,
    parameters: latency::PARAMETERS,
    shared: TRIALS_OVER_OWN,
    shows: latency::LATENCIES,
    ..WORKLOAD
};

/// Entries in the order of the study.
pub const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "gelberger2013/fig3",
        title: "Latency and rate of native and programmed bridges by frame size",
        paper: Some(("gelberger2013", "fig3")),
        axis: latency::AXIS,
        method: "At each frame size, a trial at full nominal load gives the rate. A trial at a \
                 rate that every target carries gives the latency of time-stamped frames.",
        build: bridging::method,
        technologies: BRIDGES,
        parameters: bridging::PARAMETERS,
        shows: bridging::SHOWS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "gelberger2013/fig4",
        title: "TCP throughput by window",
        paper: Some(("gelberger2013", "fig4")),
        axis: tcp::WINDOW_AXIS,
        build: tcp::by_window,
        shows: tcp::BY_WINDOW,
        ..TCP
    },
    CatalogEntry {
        id: "gelberger2013/fig5",
        title: "Latency of switching and routing by frame size",
        paper: Some(("gelberger2013", "fig5")),
        build: latency::routing,
        ..DELAYS
    },
    CatalogEntry {
        id: "gelberger2013/fig6",
        title: "Packet delay variation by frame size",
        paper: Some(("gelberger2013", "fig6")),
        build: latency::variation,
        parameters: latency::PARAMETERS_VARIED,
        shows: latency::VARIATIONS,
        ..DELAYS
    },
    CatalogEntry {
        id: "gelberger2013/fig7",
        title: "TCP throughput by frame size",
        paper: Some(("gelberger2013", "fig7")),
        axis: tcp::FRAME_AXIS,
        build: tcp::by_frame,
        parameters: tcp::PARAMETERS_BY_FRAME,
        shows: tcp::BY_FRAME,
        ..TCP
    },
    CatalogEntry {
        id: "gelberger2013/fig8",
        title: "Latency of VLAN tagging by frame size",
        paper: Some(("gelberger2013", "fig8")),
        build: latency::tagging,
        technologies: TAGGED,
        ..DELAYS
    },
    CatalogEntry {
        id: "gelberger2013/offload",
        title: "Learning, inspection and OAM in the element or in its controller",
        paper: Some(("gelberger2013", "offload")),
        axis: latency::AXIS,
        method: "An OpenFlow switch sends a packet-in for every frame, and its controller replies \
                 with a packet-out. Targets that do this work themselves get the same frames. \
                 Frames at a low rate give the delays; steps give the highest rate.",
        build: offload::method,
        technologies: OFFLOADED,
        parameters: offload::PARAMETERS,
        shows: offload::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "gelberger2013/discussion",
        title: "Forwarding rate by workload",
        paper: Some(("gelberger2013", "discussion")),
        axis: rate::AXIS,
        method: "One flow at full nominal load for each workload that the target supports, at \
                 three frame sizes.",
        build: rate::method,
        shows: rate::SHOWS,
        parameters: rate::PARAMETERS,
        shared: TRIALS_OVER_OWN,
        ..WORKLOAD
    },
];
