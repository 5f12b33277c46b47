//! Figures and table of bianco2010.

use crate::bianco2010;
use crate::{CatalogEntry, FORWARDERS, OPENFLOW, TRIALS_OVER, WORKLOAD};
use targets::name::TargetKind;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Parameters of trials over a full table, whose type and size the experiment sets.
const TRIALS_FULL: &[&[Parameter]] = &[shared::TRIALS, shared::TABLES_OTHERS];

/// The study's router has a destination cache, so this project's router runs with and without one.
const ROUTERS: (TargetKind, TargetKind) = (TargetKind::Router, TargetKind::RouterCache);

/// The kernel of the study searched linked lists of 256 hash buckets, which explains how its bridge
/// depends on the table size. This project's bridge therefore also runs with such a table.
const BRIDGES: (TargetKind, TargetKind) = (TargetKind::Bridge, TargetKind::BridgeFewBuckets);

/// Entries in the order of the study.
pub const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "bianco2010/fig2",
        title: "Maximum forwarding rate of one flow against frame size",
        paper: Some(("bianco2010", "fig2")),
        axis: bianco2010::fig2::AXIS,
        method: "One flow over a table of one entry at full nominal load, one trial for each \
                 point. The router also runs with a destination cache, as the kernel of the study \
                 had one.",
        build: bianco2010::fig2::method,
        paired_targets: &[ROUTERS],
        parameters: bianco2010::fig2::PARAMETERS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "bianco2010/fig3",
        title: "Forwarding rate of one flow of small frames against offered load",
        paper: Some(("bianco2010", "fig3")),
        axis: bianco2010::fig3::AXIS,
        method: "One flow of 64-byte frames at rising shares of the nominal link, from underload \
                 to overload.",
        build: bianco2010::fig3::method,
        paired_targets: &[ROUTERS],
        parameters: bianco2010::fig3::PARAMETERS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "bianco2010/fig4",
        title: "Latency of one flow of small frames against offered load",
        paper: Some(("bianco2010", "fig4")),
        axis: bianco2010::fig4::AXIS,
        method: "The loads of figure 3. Every frame carries its send time, and its arrival is \
                 time-stamped.",
        build: bianco2010::fig4::method,
        paired_targets: &[ROUTERS],
        shares_trials_of: Some("bianco2010/fig3"),
        parameters: bianco2010::fig3::PARAMETERS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "bianco2010/fig5",
        title: "Forwarding rate against frame size with large tables",
        paper: Some(("bianco2010", "fig5")),
        axis: bianco2010::fig5::AXIS,
        method: "Full nominal load with headers uniformly random over 8K, 64K and 128K entries. \
                 These are exact-match flows that differ in both UDP ports, routes to class C \
                 networks, or addresses that the bridge learned from frames and keeps for an hour.",
        build: bianco2010::fig5::method,
        paired_targets: &[BRIDGES, ROUTERS],
        parameters: bianco2010::fig5::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "bianco2010/fig6",
        title: "Forwarding rate with the hash table and with the linear table",
        paper: Some(("bianco2010", "fig6")),
        axis: bianco2010::fig6::AXIS,
        method: "Full nominal load, uniformly random over all installed entries: 131,072 \
                 exact-match entries in the hash table, or 100 wildcard entries in the linear \
                 table.",
        build: bianco2010::fig6::method,
        technologies: OPENFLOW,
        parameters: bianco2010::fig6::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "bianco2010/fig7",
        title: "Forwarding rate by traffic mix of hash table and linear table",
        paper: Some(("bianco2010", "fig7")),
        axis: bianco2010::fig7::AXIS,
        method: "Both tables are full. 96-byte frames run at full nominal load: a share of them \
                 matches the linear table, the rest the hash table.",
        build: bianco2010::fig7::method,
        technologies: OPENFLOW,
        parameters: bianco2010::fig7::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "bianco2010/table1",
        title: "Processing time by table type, table size and frame size",
        paper: Some(("bianco2010", "table1")),
        axis: bianco2010::table1::AXIS,
        method: "Mean latency at a low load, minus the time of the link: Tp = L - 2 (Tt + D). \
                 Where links serialise frames, as in simulated time, Tt is S / C and D is 0. Otherwise \
                 Tt is 0, and D is half of the mean latency of the tester's loop without a target.",
        build: bianco2010::table1::method,
        technologies: OPENFLOW,
        parameters: bianco2010::table1::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "bianco2010/fig9",
        title: "Fairness between two flows through one input port",
        paper: Some(("bianco2010", "fig9")),
        axis: bianco2010::fairness::AXIS,
        method: "Two flows of 96-byte frames over 64K entries: F1 at 10 % and F2 at 40, 50, 60 and \
                 90 % of a load C. C is the target's own maximum divided by 0.65: the target \
                 carries a total of 50 %, but not of 70 or 100 %. A positive difference means that \
                 F1 loses more.",
        build: bianco2010::fig9::method,
        paired_targets: &[BRIDGES, ROUTERS],
        technologies: FORWARDERS,
        parameters: bianco2010::fairness::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "bianco2010/fig10",
        title: "Fairness between two flows through two input ports",
        paper: Some(("bianco2010", "fig10")),
        axis: bianco2010::fairness::AXIS,
        method: "The flows and loads of figure 9, each flow through its own input port. \
                 Planimeter's own switch runs with both service disciplines: deficit round robin, \
                 and first come, first served. A positive difference means that F1 loses more.",
        build: bianco2010::fig10::method,
        technologies: FORWARDERS,
        inputs: 2,
        paired_targets: &[BRIDGES, ROUTERS, (TargetKind::Switch, TargetKind::SwitchFirstCome)],
        parameters: bianco2010::fairness::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
];
