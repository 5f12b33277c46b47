//! Figures and table of oflops2018.

use super::{Entry, OPENFLOW, TRIALS_OVER, WORKLOAD};
use crate::experiments::modules::{acting, updates};
use crate::experiments::oflops2018::{forwarding, rewriting, rules};
use crate::parameter::shared;

/// Common fields of all items.
const ITEM: Entry = Entry { technologies: OPENFLOW, ..WORKLOAD };

/// Common fields of items about latency by packet size.
const FORWARDING: Entry = Entry {
    axis: forwarding::AXIS,
    method: "One flow over one entry at 100 Mbit/s and at the nominal link's full rate, every frame stamped \
             when it leaves and when it comes back.",
    build: forwarding::method,
    parameters: forwarding::PARAMETERS,
    shared: TRIALS_OVER,
    shows: forwarding::LATENCIES,
    ..ITEM
};

/// Common fields of items about changing flow entries.
const RULES: Entry = Entry {
    axis: updates::AXIS,
    method: "Rules of rising priority are changed at once with a barrier behind them, while probes visit \
             each in turn; the port at which a probe comes back says whether its rule acts.",
    build: rules::inserted,
    parameters: &rules::INSERTED,
    shows: rules::PLANES,
    ..ITEM
};

/// Entries in the order of the study.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "oflops2018/fig6a",
        title: "Forwarding latency by packet size, hardware",
        paper: Some(("oflops2018", "fig6a")),
        ..FORWARDING
    },
    Entry {
        id: "oflops2018/fig6b",
        title: "Forwarding latency by packet size, software",
        paper: Some(("oflops2018", "fig6b")),
        shares_trials_of: Some("oflops2018/fig6a"),
        ..FORWARDING
    },
    Entry {
        id: "oflops2018/fig6c",
        title: "Extra latency of a layer-4 port rewrite",
        paper: Some(("oflops2018", "fig6c")),
        axis: acting::BYTES_AXIS,
        method: "A rule that rewrites the UDP port stands beside one that only sends the like frames on; \
                 frames of one stream visit both in turn, and are compared to their last byte.",
        build: rewriting::method,
        parameters: rewriting::PARAMETERS,
        shows: rewriting::SHOWS,
        shared: &[&[shared::SECONDS]],
        ..ITEM
    },
    Entry {
        id: "oflops2018/table1",
        title: "Processor load and packet loss by packet size",
        paper: Some(("oflops2018", "table1")),
        shares_trials_of: Some("oflops2018/fig6a"),
        shows: forwarding::COSTS,
        ..FORWARDING
    },
    Entry {
        id: "oflops2018/fig7a",
        title: "Modifying rules: control plane against data plane",
        paper: Some(("oflops2018", "fig7a")),
        build: rules::modified,
        parameters: &rules::MODIFIED,
        ..RULES
    },
    Entry {
        id: "oflops2018/fig7b",
        title: "Inserting rules: control plane against data plane",
        paper: Some(("oflops2018", "fig7b")),
        ..RULES
    },
    Entry {
        id: "oflops2018/fig7c",
        title: "Inserting rules into software",
        paper: Some(("oflops2018", "fig7c")),
        shares_trials_of: Some("oflops2018/fig7b"),
        ..RULES
    },
    Entry {
        id: "oflops2018/fig8a",
        title: "Rules that act over time",
        paper: Some(("oflops2018", "fig8a")),
        build: rules::thousand,
        parameters: &rules::THOUSAND,
        shows: rules::OVER_TIME,
        ..RULES
    },
    Entry {
        id: "oflops2018/fig8b",
        title: "Order in which rules come to act",
        paper: Some(("oflops2018", "fig8b")),
        build: rules::thousand,
        parameters: &rules::THOUSAND,
        shows: rules::ORDER,
        shares_trials_of: Some("oflops2018/fig8a"),
        ..RULES
    },
];
