//! Figures and table of oflops2018.

use crate::oflops2018::{forwarding, rewriting, rules};
use crate::{CatalogEntry, OPENFLOW, TRIALS_OVER, WORKLOAD};
use experiments::control_plane::{actions, updates};
use workload::parameter::shared;

/// Common fields of all items.
const ITEM: CatalogEntry = CatalogEntry { technologies: OPENFLOW, ..WORKLOAD };

/// Common fields of items about latency by packet size.
const FORWARDING: CatalogEntry = CatalogEntry {
    axis: forwarding::AXIS,
    method: "One flow over one entry at 100 Mbit/s and at the full rate of the nominal link. Every \
             frame is time-stamped when it leaves and when it returns. The study repeats 20 times \
             (--set repeats=20).",
    build: forwarding::method,
    parameters: forwarding::PARAMETERS,
    shared: TRIALS_OVER,
    shows: forwarding::HARDWARE,
    ..ITEM
};

/// Common fields of items about changing flow entries.
const RULES: CatalogEntry = CatalogEntry {
    axis: updates::AXIS,
    method: "The controller adds or modifies entries of rising priority in one update, followed by \
             a barrier request. Probes visit each entry in turn; the port at which a probe returns \
             shows whether its entry is active. The study repeats 20 times (--set repeats=20).",
    build: rules::inserted,
    parameters: &rules::INSERTED,
    shows: rules::HARDWARE,
    ..ITEM
};

/// Method of figures 8a and 8b.
const ALL_UPDATES: &str = "The controller adds 1,000 entries in one update, and modifies them in another, each time with \
     ascending and with random priorities. Probes visit each entry in turn; the port at which a probe \
     returns shows whether its entry is active.";

/// Entries in the order of the study.
pub const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "oflops2018/fig6a",
        title: "Forwarding latency by packet size",
        paper: Some(("oflops2018", "fig6a")),
        ..FORWARDING
    },
    CatalogEntry {
        id: "oflops2018/fig6b",
        title: "Forwarding latency by packet size, software",
        paper: Some(("oflops2018", "fig6b")),
        shares_trials_of: Some("oflops2018/fig6a"),
        shows: forwarding::SOFTWARE,
        ..FORWARDING
    },
    CatalogEntry {
        id: "oflops2018/fig6c",
        title: "Extra latency of a layer-4 port rewrite",
        paper: Some(("oflops2018", "fig6c")),
        axis: actions::BYTES_AXIS,
        method: "One entry rewrites the UDP port, another only outputs frames of the same kind. \
                 Frames of one stream visit both alternately. Every output frame is compared with \
                 the expected frame to its last byte.",
        build: rewriting::method,
        parameters: rewriting::PARAMETERS,
        shows: rewriting::SHOWS,
        shared: &[&[shared::SECONDS]],
        ..ITEM
    },
    CatalogEntry {
        id: "oflops2018/table1",
        title: "Processor load and packet loss by packet size",
        paper: Some(("oflops2018", "table1")),
        shares_trials_of: Some("oflops2018/fig6a"),
        shows: forwarding::COSTS,
        ..FORWARDING
    },
    CatalogEntry {
        id: "oflops2018/fig7a",
        title: "Rule modification delay: control plane and data plane",
        paper: Some(("oflops2018", "fig7a")),
        build: rules::modified,
        parameters: &rules::MODIFIED,
        shows: rules::PLANES,
        ..RULES
    },
    CatalogEntry {
        id: "oflops2018/fig7b",
        title: "Rule insertion delay: control plane and data plane",
        paper: Some(("oflops2018", "fig7b")),
        ..RULES
    },
    CatalogEntry {
        id: "oflops2018/fig7c",
        title: "Rule insertion delay of software switches",
        paper: Some(("oflops2018", "fig7c")),
        shares_trials_of: Some("oflops2018/fig7b"),
        shows: rules::SOFTWARE,
        ..RULES
    },
    CatalogEntry {
        id: "oflops2018/fig8a",
        title: "Active rules over time",
        paper: Some(("oflops2018", "fig8a")),
        method: ALL_UPDATES,
        build: rules::thousand,
        parameters: &rules::THOUSAND,
        shows: rules::OVER_TIME,
        ..RULES
    },
    CatalogEntry {
        id: "oflops2018/fig8b",
        title: "Rule activation order",
        paper: Some(("oflops2018", "fig8b")),
        method: ALL_UPDATES,
        build: rules::thousand,
        parameters: &rules::THOUSAND,
        shows: rules::ORDER,
        shares_trials_of: Some("oflops2018/fig8a"),
        ..RULES
    },
];
