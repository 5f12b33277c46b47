//! The tables and figures of costa2017.

use super::{Entry, FORWARDERS, OPENFLOW, WORKLOAD};
use crate::experiments::costa2017::{filling, matching, modes, rewriting};

/// What round trips have in common.
const ROUND_TRIP: Entry = Entry {
    axis: matching::AXIS,
    method: "Rules for both ways are there before; a client sends UDP packets one at a time, a server returns \
             each, and the round-trip time of every packet is taken, by the same clock on both ports of the \
             tester.",
    technologies: FORWARDERS,
    ..WORKLOAD
};

/// An item about types of match: one set of trials serves all of them.
const TYPES: Entry = Entry {
    build: matching::types,
    parameters: matching::PARAMETERS,
    shares_trials_of: Some("costa2017/table3"),
    ..ROUND_TRIP
};

/// In the order of the study.
pub(super) const ENTRIES: &[Entry] = &[
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
        title: "Jitter of 64-byte packets with an exact match",
        paper: Some(("costa2017", "fig5")),
        shows: matching::JITTER,
        ..TYPES
    },
    Entry {
        id: "costa2017/fig6",
        title: "OpenFlow mode against legacy mode",
        paper: Some(("costa2017", "fig6")),
        build: modes::method,
        parameters: matching::BY_SIZE,
        shows: modes::SHOWS,
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
];
