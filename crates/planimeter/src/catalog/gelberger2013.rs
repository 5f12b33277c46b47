//! Figures of gelberger2013.

use super::{ALL, BRIDGES, Entry, TRIALS_OVER, WORKLOAD};
use crate::experiments::gelberger2013::{bridging, latency, offload, rate, tcp};
use crate::parameter::own::Declared;
use crate::parameter::shared;
use crate::target::name::Technology;

/// Parameters of trials whose table follows from the workload.
const TRIALS_OVER_OWN: &[&[Declared]] = &[shared::TRIALS];

/// Technologies that learn addresses, or have a controller that does.
const OFFLOADED: &[Technology] = &[Technology::OpenFlow, Technology::Bridging];

/// Technologies that can add tags.
const TAGGED: &[Technology] = &[Technology::OpenFlow, Technology::Tagging];

/// Common fields of figures about TCP connections.
const TCP: Entry = Entry {
    method: "A program on a host at one end of the target sends to another at the other end over one connection by TCP \
             (iperf3, CUBIC), both with the window that is asked for; what was received, what was sent again, which \
             timers ran out and which window was offered are told.",
    technologies: ALL,
    parameters: tcp::PARAMETERS,
    shared: &[&[shared::SECONDS]],
    wants_hosts: true,
    ..WORKLOAD
};

/// Common fields of figures about frame delay.
const DELAYS: Entry = Entry {
    axis: latency::AXIS,
    method: "One flow of frames that carry their send times and are stamped when they come back, at a rate that every \
             target carries, for each workload that the target can do.",
    technologies: ALL,
    parameters: latency::PARAMETERS,
    shared: TRIALS_OVER_OWN,
    shows: latency::LATENCIES,
    ..WORKLOAD
};

/// Entries in the order of the study.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "gelberger2013/fig3",
        title: "Bridges as code and as programs: latency and rate by frame size",
        paper: Some(("gelberger2013", "fig3")),
        axis: latency::AXIS,
        method: "At each frame size full nominal load, for the rate, and a rate that every target carries, for the \
                 latency of stamped frames.",
        build: bridging::method,
        technologies: BRIDGES,
        parameters: bridging::PARAMETERS,
        shows: bridging::SHOWS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    Entry {
        id: "gelberger2013/fig4",
        title: "Throughput of TCP by window",
        paper: Some(("gelberger2013", "fig4")),
        axis: tcp::WINDOW_AXIS,
        build: tcp::by_window,
        shows: tcp::BY_WINDOW,
        ..TCP
    },
    Entry {
        id: "gelberger2013/fig5",
        title: "Latency of switching and routing by frame size",
        paper: Some(("gelberger2013", "fig5")),
        build: latency::routing,
        ..DELAYS
    },
    Entry {
        id: "gelberger2013/fig6",
        title: "Packet delay variation by frame size",
        paper: Some(("gelberger2013", "fig6")),
        build: latency::variation,
        parameters: latency::PARAMETERS_VARIED,
        shows: latency::VARIATIONS,
        ..DELAYS
    },
    Entry {
        id: "gelberger2013/fig7",
        title: "Throughput of TCP by frame size",
        paper: Some(("gelberger2013", "fig7")),
        axis: tcp::FRAME_AXIS,
        build: tcp::by_frame,
        parameters: tcp::PARAMETERS_BY_FRAME,
        shows: tcp::BY_FRAME,
        ..TCP
    },
    Entry {
        id: "gelberger2013/fig8",
        title: "Latency of VLAN tagging by frame size",
        paper: Some(("gelberger2013", "fig8")),
        build: latency::tagging,
        technologies: TAGGED,
        ..DELAYS
    },
    Entry {
        id: "gelberger2013/offload",
        title: "Learning, inspection and OAM, done by the element or by its controller",
        paper: Some(("gelberger2013", "offload")),
        axis: latency::AXIS,
        method: "A switch tells its controller of every frame, which answers with a packet-out; targets that can do the \
                 same themselves get the same frames. Slowly for delays, then in steps for the highest rate.",
        build: offload::method,
        technologies: OFFLOADED,
        parameters: offload::PARAMETERS,
        shows: offload::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "gelberger2013/discussion",
        title: "Whether the richer costs more, all workloads side by side",
        paper: Some(("gelberger2013", "discussion")),
        axis: rate::AXIS,
        method: "Full nominal load of one flow for each workload that a target can do, in frames of three sizes.",
        build: rate::method,
        shows: rate::SHOWS,
        parameters: rate::PARAMETERS,
        shared: TRIALS_OVER_OWN,
        ..WORKLOAD
    },
];
