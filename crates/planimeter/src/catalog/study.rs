//! Figures and table of bianco2010.

use super::{Entry, FORWARDERS, OPENFLOW, TRIALS_OVER, WORKLOAD};
use crate::experiments::bianco2010;
use crate::parameter::own::Declared;
use crate::parameter::shared;
use crate::target::name::TargetKind;

/// Parameters of trials over a full table, whose type and size the experiment sets.
const TRIALS_FULL: &[&[Declared]] = &[shared::TRIALS, shared::TABLES_OTHERS];

/// Entries in the order of the study.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "bianco2010/fig2",
        title: "Maximum forwarding rate of one flow against frame size",
        paper: Some(("bianco2010", "fig2")),
        axis: bianco2010::fig2::AXIS,
        method: "One flow over a table of one entry at full nominal load, one trial a point; the \
                 router also with a destination cache, as the study's kernel had one.",
        build: bianco2010::fig2::method,
        companions: &[(TargetKind::Router, TargetKind::RouterCache)],
        parameters: bianco2010::fig2::PARAMETERS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig3",
        title: "Forwarding rate of one flow of small frames against offered load",
        paper: Some(("bianco2010", "fig3")),
        axis: bianco2010::fig3::AXIS,
        method: "One flow of frames of one size (64 bytes) at rising shares of the nominal link, from underload \
                 to overload.",
        build: bianco2010::fig3::method,
        parameters: bianco2010::fig3::PARAMETERS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig4",
        title: "Latency of one flow of small frames against offered load",
        paper: Some(("bianco2010", "fig4")),
        axis: bianco2010::fig4::AXIS,
        method: "The loads of figure 3; every frame carries its send time and is stamped when it \
                 comes back.",
        build: bianco2010::fig4::method,
        shares_trials_of: Some("bianco2010/fig3"),
        parameters: bianco2010::fig3::PARAMETERS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig5",
        title: "Forwarding rate against frame size with large tables",
        paper: Some(("bianco2010", "fig5")),
        axis: bianco2010::fig5::AXIS,
        method: "Full nominal load with headers uniformly random over 8K, 64K and 128K entries: exact \
                 flows that differ in both UDP ports, routes to C-class networks, or addresses that \
                 the bridge learned from frames and keeps for an hour.",
        build: bianco2010::fig5::method,
        parameters: bianco2010::fig5::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig6",
        title: "Hash table against linear table",
        paper: Some(("bianco2010", "fig6")),
        axis: bianco2010::fig6::AXIS,
        method: "Full nominal load, uniformly random over all installed entries: 131,072 exact ones in \
                 the hash table, or 100 with open fields in the linear table.",
        build: bianco2010::fig6::method,
        technologies: OPENFLOW,
        parameters: bianco2010::fig6::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig7",
        title: "Forwarding rate against the mix of traffic for hash and linear table",
        paper: Some(("bianco2010", "fig7")),
        axis: bianco2010::fig7::AXIS,
        method: "Both tables filled; full nominal load of 96-byte frames, of which a share matches the \
                 linear table and the rest the hash table.",
        build: bianco2010::fig7::method,
        technologies: OPENFLOW,
        parameters: bianco2010::fig7::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/table1",
        title: "Processing time by table type, table size and frame size",
        paper: Some(("bianco2010", "table1")),
        axis: bianco2010::table1::AXIS,
        method: "Mean latency at a low load, less what the link takes: Tp = L - 2 (Tt + D).",
        build: bianco2010::table1::method,
        technologies: OPENFLOW,
        parameters: bianco2010::table1::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig9",
        title: "Fairness between two flows by one input port",
        paper: Some(("bianco2010", "fig9")),
        axis: bianco2010::fairness::AXIS,
        method: "Two flows of 96-byte frames over 64K entries: F1 at 10 % and F2 at 40, 50, 60 and 90 % \
                 of a load C that is the target's own maximum over 0.65, so that 50 % of it is \
                 carried and 70 and 100 % are too much. A difference above zero: F1 loses more.",
        build: bianco2010::fig9::method,
        technologies: FORWARDERS,
        parameters: bianco2010::fairness::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig10",
        title: "Fairness between two flows by two input ports",
        paper: Some(("bianco2010", "fig10")),
        axis: bianco2010::fairness::AXIS,
        method: "The flows and loads of figure 9, each flow by an input port of its own; our switch with \
                 both of its orders of service, deficit round robin and first come first served. A \
                 difference above zero: F1 loses more.",
        build: bianco2010::fig10::method,
        technologies: FORWARDERS,
        inputs: 2,
        companions: &[(TargetKind::Ours, TargetKind::OursFirstCome)],
        parameters: bianco2010::fairness::PARAMETERS,
        shared: TRIALS_FULL,
        ..WORKLOAD
    },
];
