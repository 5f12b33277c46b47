//! Measurement modules for messages between switch and controller.

use super::{CatalogEntry, OPENFLOW, WORKLOAD};
use experiments::control_plane::{
    abuse, control_rate, echo_delay, error_delay, packet_out, packets,
};

/// Entries: frames first, then echo replies, errors and rates.
pub(super) const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "packet-in",
        title: "Packet-in delay and rate",
        axis: packets::AXIS,
        method: "A table-miss entry sends frames to the controller. Frames at a low rate give the \
                 delays; steps give the loss-free and the highest rate. The axes are the frame \
                 size and whether a packet-in contains the whole frame.",
        build: packets::packet_in,
        technologies: OPENFLOW,
        parameters: packets::IN,
        shows: packets::IN_SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "packet-out",
        title: "Packet-out delay and rate",
        axis: packet_out::AXIS,
        method: "The controller sends signed frames in packet-outs, by frame size. Frames at a low \
                 rate give the delays from the socket to the port; steps give the loss-free and \
                 the highest rate.",
        build: packet_out::method,
        technologies: OPENFLOW,
        parameters: packet_out::PARAMETERS,
        shows: packet_out::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "packet-in-out",
        title: "Round-trip time and rate of frames through the controller",
        axis: packets::AXIS,
        method: "The controller replies to each packet-in immediately with a packet-out of its \
                 frame. A round trip begins when the frame leaves the tester and ends when it \
                 returns. The reply time of the tester is reported too.",
        build: packets::packet_in_out,
        technologies: OPENFLOW,
        parameters: packets::IN_OUT,
        shows: packets::IN_OUT_SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "reactive-setup",
        title: "Reactive flow setup delay and rate",
        axis: packets::AXIS,
        method: "Each frame belongs to a new flow. The controller replies to its packet-in \
                 immediately: it adds an exact-match entry, and releases the buffered frame or \
                 sends a packet-out. The reply time of the tester is reported too.",
        build: packets::reactive_setup,
        technologies: OPENFLOW,
        parameters: packets::SETUP,
        shows: packets::SETUP_SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "echo-delay",
        title: "Echo delay, idle and under load",
        axis: echo_delay::AXIS,
        method: "The controller sends echo requests at a constant rate, by payload size. The delay \
                 is from the socket to the echo reply: while the switch is idle, while it forwards \
                 frames, and while entries change on the same connection.",
        build: echo_delay::method,
        technologies: OPENFLOW,
        parameters: echo_delay::PARAMETERS,
        shows: echo_delay::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "error-delay",
        title: "Error delay of invalid flow-mods, compared with the barrier reply",
        axis: error_delay::AXIS,
        method: "The controller sends a flow-mod with an invalid port, table or action, alone or \
                 after many valid ones, followed by a barrier request. The delays are from its \
                 first byte sent until its error and the barrier reply are read.",
        build: error_delay::method,
        technologies: OPENFLOW,
        parameters: error_delay::PARAMETERS,
        shows: error_delay::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "control-rate",
        title: "Control message rate: echoes, barriers, flow-mods, packet-outs, statistics",
        axis: control_rate::AXIS,
        method: "In the closed loop, a fixed number of messages is outstanding. In the open loop, \
                 steps give the loss-free and the highest rate. A message is complete when its \
                 reply, or the reply to the barrier request after it, was read.",
        build: control_rate::method,
        technologies: OPENFLOW,
        parameters: control_rate::PARAMETERS,
        shows: control_rate::SHOWS,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "abuse",
        title: "Impact of malformed and flooding input on another controller",
        axis: abuse::AXIS,
        method: "One controller sends echo requests and adds entries; probes show when these \
                 become active. A second controller sends messages, a share of them malformed, or \
                 a flood; or frames without an entry flood both. The results are ratios of the \
                 period with abuse to the quiet period.",
        build: abuse::method,
        technologies: OPENFLOW,
        parameters: abuse::PARAMETERS,
        shows: abuse::SHOWS,
        ..WORKLOAD
    },
];
