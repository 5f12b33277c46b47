//! Measurement modules for frames: during updates, and through flow entries and actions.

use super::{Entry, OPENFLOW, WORKLOAD};
use crate::experiments::modules::{
    acting, blackhole, forwarding, match_tuples, path_setup, table_capacity, update_transient,
    updates,
};
use crate::parameter::shared;

/// Entries; those about changing flow entries come first.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "update-transient",
        title: "How frames are treated while rules are changed",
        axis: updates::AXIS,
        method: "Rules that send frames back are changed to send them on while probes visit each in turn: \
                 each frame was treated by the old rule, the new one, none or both.",
        build: update_transient::method,
        technologies: OPENFLOW,
        parameters: update_transient::PARAMETERS,
        shows: update_transient::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "blackhole",
        title: "How long flows go on after their rules were turned to drop",
        axis: updates::AXIS,
        method: "Rules that send frames on are changed to drop them, or deleted from above one that does, \
                 while probes visit each in turn: frames that still come out have leaked.",
        build: blackhole::method,
        technologies: OPENFLOW,
        parameters: blackhole::PARAMETERS,
        shows: blackhole::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "path-setup",
        title: "How long flows over several switches take to be set up, and what becomes of frames meanwhile",
        axis: path_setup::AXIS,
        method: "Probes visit each flow in turn while its rules are sent to every switch on the way, at once or \
                 one behind the other's barrier: a probe comes out at the far end, or to the controller from \
                 the switch that did not know it.",
        build: path_setup::method,
        technologies: OPENFLOW,
        spans_path: true,
        parameters: path_setup::PARAMETERS,
        shows: path_setup::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "forwarding-latency",
        title: "Latency of frames through rules, by size and rate",
        axis: forwarding::BYTES_AXIS,
        method: "A load of one size runs through rules at a low and at a high rate; of some of its frames, \
                 evenly spread, the latency is taken.",
        build: forwarding::latency,
        technologies: OPENFLOW,
        spans_path: true,
        parameters: forwarding::LATENCY,
        shows: forwarding::LATENCY_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    Entry {
        id: "queue-delay",
        title: "Latency and loss through one rule, by rate",
        axis: forwarding::RATE_AXIS,
        method: "Frames run through one rule, or one queue, at each rate; of some, evenly spread, the \
                 latency is taken, and all are counted.",
        build: forwarding::queue_delay,
        technologies: OPENFLOW,
        spans_path: true,
        parameters: forwarding::QUEUES,
        shows: forwarding::QUEUES_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    Entry {
        id: "table-lookup",
        title: "Latency by number of rules in the table",
        axis: forwarding::RULES_AXIS,
        method: "The table is filled with exact or wildcard rules, and probes visit the first, the last and \
                 some rule in turn.",
        build: forwarding::table_lookup,
        technologies: OPENFLOW,
        spans_path: true,
        parameters: forwarding::LOOKUP,
        shows: forwarding::LOOKUP_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    Entry {
        id: "action-delay",
        title: "Extra latency of each action, and whether it is done",
        axis: acting::BYTES_AXIS,
        method: "Each action has a rule of its own beside one that only sends the like frames on; probes visit \
                 them in turn, and are compared byte by byte with what they ought to be.",
        build: acting::delay,
        technologies: OPENFLOW,
        parameters: acting::DELAY,
        shows: acting::DELAY_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    Entry {
        id: "action-scalability",
        title: "Extra latency of lists of actions",
        axis: acting::LENGTH_AXIS,
        method: "A rule with so many rewrites stands beside one that only sends frames on; probes visit both \
                 in turn, and are compared byte by byte with what they ought to be.",
        build: acting::scalability,
        technologies: OPENFLOW,
        parameters: acting::SCALABILITY,
        shows: acting::SCALABILITY_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    Entry {
        id: "header-rewrite",
        title: "Latency of rewriting each field, and whether it is done",
        axis: acting::BYTES_AXIS,
        method: "Each field that can be set is set by a rule of its own beside one that only sends the like \
                 frames on; probes visit them in turn, and are compared byte by byte.",
        build: acting::rewrite,
        technologies: OPENFLOW,
        parameters: acting::DELAY,
        shows: acting::REWRITE_SHOWS,
        shared: &[&[shared::SECONDS]],
        ..WORKLOAD
    },
    Entry {
        id: "match-tuples",
        title: "Which combinations of match fields are accepted and matched as they should be",
        axis: match_tuples::AXIS,
        method: "For each combination of fields one rule is put in, and frames that have all its values and \
                 frames that differ in one of them show by their port whether they match.",
        build: match_tuples::method,
        technologies: OPENFLOW,
        parameters: match_tuples::PARAMETERS,
        shows: match_tuples::SHOWS,
        ..WORKLOAD
    },
    Entry {
        id: "table-capacity",
        title: "How many rules a switch takes, and whether each is at work",
        axis: table_capacity::AXIS,
        method: "Rules are added in batches with a barrier behind each until one is refused or a bound is reached; \
                 then probes visit each and show by their port whether it acts.",
        build: table_capacity::method,
        technologies: OPENFLOW,
        parameters: table_capacity::PARAMETERS,
        shows: table_capacity::SHOWS,
        ..WORKLOAD
    },
];
