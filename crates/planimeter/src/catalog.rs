//! Every experiment by name: what it measures, how, and who wrote of it.
//!
//! A row here is all that the command line, the runner and the report know of an experiment.

use crate::experiments::{
    Context, Method, bianco2010, cold_start, fairness, flow_mod_rate, flow_stats_dump,
    forwarding_rate, latency, memory_per_flow, rfc2544, rfc2889, rfc8219, rfc9004, rfc9971, soak,
    throughput,
};
use crate::parameter::Parameters;
use crate::target::name::{NameError, TargetKind, Technology};

/// One experiment.
pub struct Entry {
    /// How it is asked for.
    pub id: &'static str,
    /// What it measures.
    pub title: &'static str,
    /// Short name of the study that it repeats, and its figure.
    pub paper: Option<(&'static str, &'static str)>,
    /// Name of its axis.
    pub axis: &'static str,
    /// How it is done.
    pub method: &'static str,
    /// Makes the method for one target.
    pub build: fn(&Context) -> Box<dyn Method>,
    /// The experiment whose trials serve this one too, when both run together.
    pub shares_trials_of: Option<&'static str>,
    /// Flows that a controller deals with unless the user asks for another number; 0 for none.
    pub flows: u32,
    /// Targets that go along with one that was asked for.
    pub companions: &'static [(TargetKind, TargetKind)],
    /// What a target has to be for the experiment to be about it.
    pub technologies: &'static [Technology],
    /// Ports by which frames are sent into a target.
    pub inputs: u8,
    /// Whether the target has as many ports as were asked for, if these are more.
    pub is_meshed: bool,
    /// Whether the target is reset meanwhile.
    pub resets: bool,
}

/// What has two tables, one of exact entries and one of others.
const OPENFLOW: &[Technology] = &[Technology::OpenFlow];

/// What learns addresses and can be made to know none.
const BRIDGES: &[Technology] = &[Technology::Bridging];

/// What can be told that a station is behind a port.
const SWITCHES: &[Technology] = &[Technology::OpenFlow, Technology::Bridging];

/// What forwards by a table.
const FORWARDERS: &[Technology] =
    &[Technology::OpenFlow, Technology::Bridging, Technology::Routing];

/// Everything, a cable too.
const ALL: &[Technology] =
    &[Technology::OpenFlow, Technology::Bridging, Technology::Routing, Technology::Wire];

/// The set that an experiment of this name belongs to: what is before the stroke.
pub fn set_of(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

impl Entry {
    /// Ports by which frames are sent into a target, with these parameters.
    pub fn inputs(&self, parameters: &Parameters) -> u8 {
        let asked = if self.is_meshed { parameters.methods.ports - 1 } else { 0 };
        self.inputs.max(asked)
    }

    /// The set that it belongs to.
    pub fn set(&self) -> &'static str {
        set_of(self.id)
    }

    /// Whether the experiment is about this target.
    pub fn applies(&self, kind: TargetKind) -> bool {
        self.technologies.contains(&kind.technology())
    }
}

/// Every experiment, in the order in which they are listed.
pub const ENTRIES: &[Entry] = &[
    Entry {
        id: "bianco2010/fig2",
        title: "Maximum forwarding rate of one flow against frame size",
        paper: Some(("bianco2010", "fig2")),
        axis: bianco2010::fig2::AXIS,
        method: "One flow over a table of one entry at full nominal load, one trial a point; the \
                 router also with a destination cache, as the study's kernel had one.",
        build: bianco2010::fig2::method,
        companions: &[(TargetKind::Router, TargetKind::RouterCache)],
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig3",
        title: "Forwarding rate of one flow of 64-byte frames against offered load",
        paper: Some(("bianco2010", "fig3")),
        axis: bianco2010::fig3::AXIS,
        method: "One flow of 64-byte frames at rising shares of the nominal link, from underload \
                 to overload.",
        build: bianco2010::fig3::method,
        ..WORKLOAD
    },
    Entry {
        id: "bianco2010/fig4",
        title: "Latency of one flow of 64-byte frames against offered load",
        paper: Some(("bianco2010", "fig4")),
        axis: bianco2010::fig4::AXIS,
        method: "The loads of figure 3; every frame carries its send time and is stamped when it \
                 comes back.",
        build: bianco2010::fig4::method,
        shares_trials_of: Some("bianco2010/fig3"),
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
        ..WORKLOAD
    },
    Entry {
        id: "fairness/one-port",
        title: "Fairness between flows by one input port",
        axis: fairness::AXIS,
        method: FAIRNESS,
        build: fairness::by_one_port,
        technologies: FORWARDERS,
        ..WORKLOAD
    },
    Entry {
        id: "fairness/two-ports",
        title: "Fairness between flows of which the last has an input port of its own",
        axis: fairness::AXIS,
        method: FAIRNESS,
        build: fairness::by_two_ports,
        technologies: FORWARDERS,
        inputs: 2,
        companions: &[(TargetKind::Ours, TargetKind::OursFirstCome)],
        ..WORKLOAD
    },
    Entry {
        id: "soak",
        title: "A set load for long, while what the target holds changes",
        axis: soak::AXIS,
        method: "80 % of the throughput in sixty trials one after the other, with flow-mods or changing addresses \
                 meanwhile: rate, loss, latency and memory, and the trend of each.",
        build: soak::method,
        ..WORKLOAD
    },
    Entry {
        id: "forwarding-rate",
        title: "Forwarding rate under full load",
        axis: forwarding_rate::AXIS,
        method: "Full nominal load over one entry and over 131,072 entries with random headers, or \
                 over the table that --set asks for.",
        build: forwarding_rate::method,
        ..WORKLOAD
    },
    Entry {
        id: "throughput",
        title: "Throughput: the largest load without loss (RFC 2544)",
        axis: throughput::AXIS,
        method: "Binary search from the nominal rate down, without loss and within a set loss, each \
                 result confirmed by a longer trial and the whole search repeated.",
        build: throughput::method,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/throughput",
        title: "Throughput (RFC 2544, 26.1)",
        axis: rfc2544::AXIS,
        method: "Binary search without a lost frame at each of the standard's frame sizes, confirmed by a \
                 trial four times as long; the whole search is repeated.",
        build: rfc2544::throughput,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/latency",
        title: "Latency at the throughput (RFC 2544, 26.2)",
        axis: rfc2544::AXIS,
        method: "Trials at the throughput of each frame size. The standard's number is the mean; every frame \
                 is stamped, so that median and tails stand beside it.",
        build: rfc2544::latency::method,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/loss",
        title: "Frame loss rate (RFC 2544, 26.3)",
        axis: rfc2544::loss::AXIS,
        method: "Each frame size at 100 % of the nominal link, 90 % and so on, until two successive trials \
                 lost nothing.",
        build: rfc2544::loss::method,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/back-to-back",
        title: "Back-to-back frames (RFC 2544, 26.4, by RFC 9004)",
        axis: rfc9004::AXIS,
        method: BURSTS,
        build: rfc9004::method,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/recovery",
        title: "System recovery (RFC 2544, 26.5)",
        axis: rfc2544::AXIS,
        method: "110 % of the throughput, then at once 50 % for as long: the time from that change to the last \
                 frame that was lost.",
        build: rfc2544::recovery::method,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/reset",
        title: "Reset (RFC 2544, 26.6, by RFC 6201)",
        axis: rfc2544::AXIS,
        method: "The smallest frames at the throughput; the target is ended and started anew meanwhile, and \
                 given what it held: the longest time without a frame.",
        build: rfc2544::reset::method,
        technologies: FORWARDERS,
        resets: true,
        ..WORKLOAD
    },
    Entry {
        id: "rfc9004",
        title: "Back-to-back frames and buffer time (RFC 9004)",
        axis: rfc9004::AXIS,
        method: BURSTS,
        build: rfc9004::method,
        ..WORKLOAD
    },
    Entry {
        id: "rfc8219",
        title: "Latency, PDV and IPDV (RFC 8219)",
        axis: rfc8219::AXIS,
        method: "At least 20 trials at the throughput of each frame size: median (typical latency), 99.9th \
                 percentile (worst case), that less the minimum (PDV), and signed differences of successive \
                 frames (IPDV).",
        build: rfc8219::method,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2889/throughput",
        title: "Fully meshed throughput (RFC 2889, 5.1)",
        axis: rfc2889::AXIS,
        method: "Every port sends to every other in turn: binary search for the largest load of a port without a \
                 lost frame, confirmed by a trial four times as long; the whole search is repeated.",
        build: rfc2889::throughput,
        ..MESHED
    },
    Entry {
        id: "rfc2889/full-mesh",
        title: "Forwarding rate, fully meshed (RFC 2889, 5.1)",
        axis: rfc2889::AXIS,
        method: "Every port sends to every other in turn, at what its link carries.",
        build: rfc2889::full_mesh,
        ..MESHED
    },
    Entry {
        id: "rfc2889/one-to-many",
        title: "Forwarding rate from one port to all others (RFC 2889, 5.2)",
        axis: rfc2889::AXIS,
        method: "The first port sends to all others in turn, at what its link carries.",
        build: rfc2889::one_to_many,
        ..MESHED
    },
    Entry {
        id: "rfc2889/many-to-one",
        title: "Forwarding rate from all other ports to one (RFC 2889, 5.2)",
        axis: rfc2889::AXIS,
        method: "All other ports send to the first, each at what its link carries.",
        build: rfc2889::many_to_one,
        ..MESHED
    },
    Entry {
        id: "rfc2889/max-rate",
        title: "Maximum forwarding rate (RFC 2889, 5.6)",
        axis: rfc2889::AXIS,
        method: "Fully meshed, from the throughput up to what link and tester carry in ten steps: the highest rate \
                 at which frames came out, and the load of a port then.",
        build: rfc2889::rate::method,
        ..MESHED
    },
    Entry {
        id: "rfc2889/congestion",
        title: "Congestion control (RFC 2889, 5.5)",
        axis: rfc2889::AXIS,
        method: "One port sends by turns to a port that nobody else sends to and to one that another port sends to \
                 as well, both at what a link carries: loss at either. Loss at the former is head-of-line \
                 blocking, none at the latter back pressure; without either a third is lost there.",
        build: rfc2889::congestion::method,
        ..MESHED
    },
    Entry {
        id: "rfc2889/broadcast",
        title: "Forwarding of broadcast frames (RFC 2889, 5.10)",
        axis: rfc2889::AXIS,
        method: "The first port sends frames for everybody at what its link carries: the share of copies that did \
                 not reach one of the other ports.",
        build: rfc2889::broadcast::forwarding,
        ..MESHED
    },
    Entry {
        id: "rfc2889/broadcast-latency",
        title: "Latency of broadcast frames (RFC 2889, 5.10)",
        axis: rfc2889::AXIS,
        method: "The same at a tenth of that load: latency of the copies at the second port.",
        build: rfc2889::broadcast::latency,
        ..MESHED
    },
    Entry {
        id: "rfc2889/caching",
        title: "Address caching capacity (RFC 2889, 5.7)",
        axis: rfc2889::AXIS,
        method: "A target that was just started hears so many stations and gets a frame for each of them: the \
                 largest number of which every frame comes out where it should and none elsewhere.",
        build: rfc2889::addresses::capacity,
        technologies: BRIDGES,
        inputs: 2,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2889/learning",
        title: "Address learning rate (RFC 2889, 5.8)",
        axis: rfc2889::AXIS,
        method: "The same with at most 4096 stations, and no more than half of the capacity: the highest rate at \
                 which all of them are learned.",
        build: rfc2889::addresses::rate,
        technologies: BRIDGES,
        inputs: 2,
        ..WORKLOAD
    },
    Entry {
        id: "rfc9971",
        title: "Throughput for several goals in one search (MLRsearch, RFC 9971)",
        axis: rfc9971::AXIS,
        method: "One search from the nominal rate down for loads that reach and miss each goal, trials \
                 growing longer as its bounds come closer, every trial serving every goal; repeated.",
        build: rfc9971::method,
        ..WORKLOAD
    },
    Entry {
        id: "latency",
        title: "Latency at 10, 50, 90 and 100 percent of the throughput",
        axis: latency::AXIS,
        method: "A search for the load within the set loss, then trials at shares of it; every frame \
                 carries its send time.",
        build: latency::method,
        ..WORKLOAD
    },
    Entry {
        id: "flow-mod-rate",
        title: "Flow-mods a second",
        axis: flow_mod_rate::AXIS,
        method: "Exact matches added, modified and deleted one by one over one connection, from the \
                 first byte sent to the last answer received: a barrier after each, after each \
                 thousand, and committed bundles.",
        build: flow_mod_rate::method,
        flows: flow_mod_rate::FLOWS,
        ..WORKLOAD
    },
    Entry {
        id: "flow-mod-impact",
        title: "What flow-mods cost the frames",
        axis: flow_mod_rate::AXIS_IMPACT,
        method: "Traffic at a share of the target's own maximum, quiet and while flows are added and \
                 deleted at a steady rate: busy cycles per frame, and loss.",
        build: flow_mod_rate::impact,
        flows: flow_mod_rate::FLOWS,
        ..WORKLOAD
    },
    Entry {
        id: "flow-stats-dump",
        title: "Time to tell of all flows",
        axis: flow_stats_dump::AXIS,
        method: "All flow statistics asked for in one request, from its first byte to the end of the \
                 last part of the answer.",
        build: flow_stats_dump::method,
        flows: flow_stats_dump::FLOWS,
        ..WORKLOAD
    },
    Entry {
        id: "flow-stats-impact",
        title: "What dumps of all flows cost the frames",
        axis: flow_stats_dump::AXIS_IMPACT,
        method: "Traffic at a share of the target's own maximum, quiet and while all flow statistics \
                 are asked for again and again: busy cycles per frame, and loss.",
        build: flow_stats_dump::impact,
        flows: flow_stats_dump::FLOWS,
        ..WORKLOAD
    },
    Entry {
        id: "memory-per-flow",
        title: "Memory of a flow",
        axis: memory_per_flow::AXIS,
        method: "Growth of the resident memory of the target's processes, huge pages counted, from \
                 their start until they hold all flows, and until frames of each were forwarded.",
        build: memory_per_flow::method,
        flows: memory_per_flow::FLOWS,
        ..WORKLOAD
    },
    Entry {
        id: "cold-start",
        title: "Forwarding rate over flows never met before",
        axis: cold_start::AXIS,
        method: "The first second at full nominal load over flows just installed, then the same with \
                 all caches filled.",
        build: cold_start::method,
        flows: cold_start::FLOWS,
        ..WORKLOAD
    },
];

/// How bursts are searched for.
const BURSTS: &str = "Where the throughput is below what link and tester carry, bursts at that rate: the longest \
                      without a lost frame, to a frame, the whole search repeated. Its time on the link is the \
                      implied buffer time; less what was forwarded meanwhile, the corrected one.";

/// How flows that share a target are measured.
const FAIRNESS: &str = "Flows at fixed shares of a load C, and the last at rising ones; C is the target's own maximum of all \
                        of them over 0.65. A difference above zero: the first loses more.";

/// What experiments with traffic between all ports have in common.
const MESHED: Entry = Entry { technologies: SWITCHES, inputs: 3, is_meshed: true, ..WORKLOAD };

/// What most experiments have in common.
const WORKLOAD: Entry = Entry {
    id: "",
    title: "",
    paper: None,
    axis: "",
    method: "",
    build: latency::method,
    shares_trials_of: None,
    companions: &[],
    flows: 0,
    technologies: ALL,
    inputs: 1,
    is_meshed: false,
    resets: false,
};

/// The experiments that a name stands for: one, or every item of a study.
pub fn find(name: &str) -> Result<Vec<&'static Entry>, NameError> {
    let found: Vec<&Entry> =
        ENTRIES.iter().filter(|entry| entry.id == name || entry.set() == name).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let study = name.split('/').next().unwrap_or_default();
    let later = ["costa2017", "oflops2018", "gelberger2013", "rule-activation", "packet-in"];
    if later.contains(&study) || name.ends_with(".py") || name.ends_with(".toml") {
        return Err(NameError::NotYet { text: name.into() });
    }
    let known = ENTRIES.iter().map(|entry| entry.id).collect();
    Err(NameError::Unknown { what: "experiment", text: name.into(), known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_stands_for_all_its_items() {
        let ids: Vec<&str> = find("bianco2010").unwrap().iter().map(|entry| entry.id).collect();
        let items = ["fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "table1", "fig9", "fig10"];
        assert_eq!(ids, items.map(|item| format!("bianco2010/{item}")));
    }

    #[test]
    fn an_item_of_a_later_version_is_told_apart_from_a_wrong_name() {
        assert!(matches!(find("costa2017/table4"), Err(NameError::NotYet { .. })));
        assert!(matches!(find("bianca2010"), Err(NameError::Unknown { .. })));
    }
}
