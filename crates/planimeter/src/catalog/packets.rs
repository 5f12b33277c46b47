//! Measurement modules for messages between switch and controller.

use super::{Entry, OPENFLOW, WORKLOAD};
use crate::experiments::modules::{
    abuse, control_rate, echo_delay, error_delay, packet_out, packets,
};

/// Entries: frames first, then echo replies, errors and rates.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "packet-in",
        title: "Frames for the controller: how long they take, and how many a second",
        axis: packets::AXIS,
        method: "A rule below all others sends frames to the controller. First they come slowly, for delays, then \
                 in steps, for the loss-free and the highest rate; by frame size and by how much of a frame is told.",
        build: packets::packet_in,
        technologies: OPENFLOW,
        parameters: packets::IN,
        shows: packets::IN_SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "packet-out",
        title: "Frames from the controller: how long they take to a port, and how many a second",
        axis: packet_out::AXIS,
        method: "Signed frames in packet-outs, first slowly, for delays from the socket to the port, then in steps, \
                 for the loss-free and the highest rate; by frame size.",
        build: packet_out::method,
        technologies: OPENFLOW,
        parameters: packet_out::PARAMETERS,
        shows: packet_out::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "packet-in-out",
        title: "Frames through the controller and back: round trip, and how many a second",
        axis: packets::AXIS,
        method: "Each packet-in is answered at once by a packet-out of its frame; from the frame's leaving the tester \
                 until it comes back, with the tester's own time beside.",
        build: packets::packet_in_out,
        technologies: OPENFLOW,
        parameters: packets::IN_OUT,
        shows: packets::IN_OUT_SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "reactive-setup",
        title: "Flows set up on demand: first frame in to first frame out, and how many a second",
        axis: packets::AXIS,
        method: "Each frame is of a new flow; its packet-in is answered at once by an exact rule for it, and the kept \
                 frame or a packet-out. The tester's own time is told beside.",
        build: packets::reactive_setup,
        technologies: OPENFLOW,
        parameters: packets::SETUP,
        shows: packets::SETUP_SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "echo-delay",
        title: "Echo delay, at rest and at work",
        axis: echo_delay::AXIS,
        method: "Echo requests at an even pace, each timed from the socket to its answer, while nothing else happens, \
                 while frames are forwarded, and while rules change on the same connection; by payload.",
        build: echo_delay::method,
        technologies: OPENFLOW,
        parameters: echo_delay::PARAMETERS,
        shows: echo_delay::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "error-delay",
        title: "How long the switch takes to refuse a flow-mod, against a barrier behind it",
        axis: error_delay::AXIS,
        method: "A flow-mod with a wrong port, table or action, alone or behind many that can be done, and a barrier \
                 behind it; from its first byte sent until its error and the barrier's answer are read.",
        build: error_delay::method,
        technologies: OPENFLOW,
        parameters: error_delay::PARAMETERS,
        shows: error_delay::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "control-rate",
        title: "Control messages a second: echoes, barriers, flow-mods, packet-outs, statistics",
        axis: control_rate::AXIS,
        method: "Closed loop by how many are under way, and open loop in steps, for the loss-free and the highest \
                 rate; a message is done when its answer, or that of the barrier behind it, was read.",
        build: control_rate::method,
        technologies: OPENFLOW,
        parameters: control_rate::PARAMETERS,
        shows: control_rate::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "abuse",
        title: "What malformed and flooding input costs everybody else",
        axis: abuse::AXIS,
        method: "One controller asks for echoes and adds rules that probes show at work; a second one sends messages \
                 of which a share is malformed, or a flood, or frames without a rule flood both; abused over quiet.",
        build: abuse::method,
        technologies: OPENFLOW,
        parameters: abuse::PARAMETERS,
        shows: abuse::SHOWS,
        ..WORKLOAD
    },
];
