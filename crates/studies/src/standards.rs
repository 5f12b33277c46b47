//! Methods of standards: RFC 2544, 2889, 8219, 9004 and 9971, and fairness between flows.

use super::{CatalogEntry, FORWARDERS, SEARCHED, TRIALS_OVER, WORKLOAD};
use experiments::{fairness, rfc2544, rfc2889, rfc8219, rfc9004, rfc9971};
use targets::name::TargetKind;
use workload::Technology;
use workload::parameter::declaration::Parameter;
use workload::parameter::{goals, methods, shared};

/// Technologies that learn addresses and can be started without any.
const BRIDGES: &[Technology] = &[Technology::Bridging];

/// Technologies that can be configured with the port of a station.
const SWITCHES: &[Technology] = &[Technology::OpenFlow, Technology::Bridging];

/// Method text for burst searches.
const BURSTS: &str = "If the throughput is below the rate that link and tester carry, a search \
                      with bursts at that rate finds the longest burst without a lost frame, exact \
                      to one frame. The search is repeated. The implied buffer time is the time of \
                      that burst on the link; the corrected one excludes frames forwarded during \
                      the burst.";

/// Method text for flows that share a target.
const FAIRNESS: &str = "All flows except the last have fixed shares of a load C; the load of the \
                        last flow rises. C is the target's own maximum for all flows, divided by \
                        0.65. A positive difference means that the first flow loses more.";

/// Common fields of experiments with traffic between all ports.
const MESHED: CatalogEntry = CatalogEntry {
    technologies: SWITCHES,
    inputs: 3,
    is_meshed: true,
    shared: &[shared::TRIALS, &[methods::PORTS]],
    ..WORKLOAD
};

/// Parameters of flows that share a target.
const FLOWS_TOGETHER: &[&[Parameter]] = &[shared::TRIALS, shared::TABLES, &[methods::SHARES]];

/// Parameters of burst searches.
const BURSTS_OVER: &[&[Parameter]] = &[
    shared::TRIALS,
    shared::TABLES,
    shared::SEARCHES,
    &[methods::BURST_SECONDS, methods::BURST_STEP],
];

/// Entries by set; in each set, the experiment whose results the others need comes first.
pub(super) const ENTRIES: &[CatalogEntry] = &[
    CatalogEntry {
        id: "fairness/one-port",
        title: "Fairness between flows through one input port",
        axis: fairness::AXIS,
        method: FAIRNESS,
        build: fairness::by_one_port,
        technologies: FORWARDERS,
        parameters: fairness::PARAMETERS,
        shared: FLOWS_TOGETHER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "fairness/two-ports",
        title: "Fairness between flows, the last through a separate input port",
        axis: fairness::AXIS,
        method: FAIRNESS,
        build: fairness::by_two_ports,
        technologies: FORWARDERS,
        inputs: 2,
        paired_targets: &[(TargetKind::Switch, TargetKind::SwitchFirstCome)],
        parameters: fairness::PARAMETERS,
        shared: FLOWS_TOGETHER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc2544/throughput",
        title: "Throughput (RFC 2544, 26.1)",
        axis: rfc2544::AXIS,
        method: "Binary search without a lost frame at each frame size of the standard. A trial \
                 four times as long confirms the result. The whole search is repeated.",
        build: rfc2544::throughput,
        parameters: rfc2544::SEARCHED,
        shared: SEARCHED,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc2544/latency",
        title: "Latency at the throughput (RFC 2544, 26.2)",
        axis: rfc2544::AXIS,
        method: "Trials at the throughput of each frame size. Every frame is time-stamped. The \
                 standard defines the mean; median and tails are reported too.",
        build: rfc2544::latency::method,
        parameters: rfc2544::REPEATED,
        shared: SEARCHED,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc2544/loss",
        title: "Frame loss rate (RFC 2544, 26.3)",
        axis: rfc2544::loss::AXIS,
        method: "Trials at each frame size at 100 % of the nominal link, at 90 % and so on, until \
                 two consecutive trials have no loss.",
        build: rfc2544::loss::method,
        parameters: rfc2544::loss::PARAMETERS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc2544/back-to-back",
        title: "Back-to-back frames (RFC 2544, 26.4, updated by RFC 9004)",
        axis: rfc9004::AXIS,
        method: BURSTS,
        build: rfc9004::method,
        parameters: rfc2544::SEARCHED,
        shared: BURSTS_OVER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc2544/recovery",
        title: "System recovery (RFC 2544, 26.5)",
        axis: rfc2544::AXIS,
        method: "The load is 110 % of the throughput, and immediately afterwards 50 % for the same \
                 time. The recovery time is from that change to the last lost frame.",
        build: rfc2544::recovery::method,
        parameters: rfc2544::SEARCHED,
        shared: SEARCHED,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc2544/reset",
        title: "Reset (RFC 2544, 26.6, updated by RFC 6201)",
        axis: rfc2544::AXIS,
        method: "The smallest frames run at the throughput while the lab stops the target, starts \
                 it again and restores its setup. The reset time is the longest time without a \
                 frame.",
        build: rfc2544::reset::method,
        technologies: FORWARDERS,
        resets: true,
        parameters: rfc2544::reset::PARAMETERS,
        shared: SEARCHED,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc9004",
        title: "Back-to-back frames and buffer time (RFC 9004)",
        axis: rfc9004::AXIS,
        method: BURSTS,
        build: rfc9004::method,
        parameters: rfc2544::SEARCHED,
        shared: BURSTS_OVER,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc8219",
        title: "Latency, PDV and IPDV (RFC 8219)",
        axis: rfc8219::AXIS,
        method: "At least 20 trials at the throughput of each frame size. The results are median \
                 (typical latency), 99.9th percentile (worst case), its difference to the minimum \
                 (PDV), and signed differences of consecutive frames (IPDV).",
        build: rfc8219::method,
        parameters: rfc8219::PARAMETERS,
        shared: SEARCHED,
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc2889/throughput",
        title: "Fully meshed throughput (RFC 2889, 5.1)",
        axis: rfc2889::AXIS,
        method: "Every port sends to every other port in turn. Binary search for the highest load \
                 per port without a lost frame. A trial four times as long confirms the result. \
                 The whole search is repeated.",
        build: rfc2889::throughput,
        parameters: rfc2889::SEARCHED,
        shared: &[shared::TRIALS, &[methods::PORTS], shared::SEARCHES],
        ..MESHED
    },
    CatalogEntry {
        id: "rfc2889/full-mesh",
        title: "Forwarding rate, fully meshed (RFC 2889, 5.1)",
        axis: rfc2889::AXIS,
        method: "Every port sends to every other port in turn, at the capacity of its link.",
        build: rfc2889::full_mesh,
        parameters: rfc2889::REPEATED,
        ..MESHED
    },
    CatalogEntry {
        id: "rfc2889/one-to-many",
        title: "Forwarding rate from one port to all others (RFC 2889, 5.2)",
        axis: rfc2889::AXIS,
        method: "The first port sends to all others in turn, at the capacity of its link.",
        build: rfc2889::one_to_many,
        parameters: rfc2889::REPEATED,
        ..MESHED
    },
    CatalogEntry {
        id: "rfc2889/many-to-one",
        title: "Forwarding rate from all other ports to one (RFC 2889, 5.2)",
        axis: rfc2889::AXIS,
        method: "All other ports send to the first, each at the capacity of its link.",
        build: rfc2889::many_to_one,
        parameters: rfc2889::REPEATED,
        ..MESHED
    },
    CatalogEntry {
        id: "rfc2889/max-rate",
        title: "Maximum forwarding rate (RFC 2889, 5.6)",
        axis: rfc2889::AXIS,
        method: "Fully meshed, in ten steps from the throughput to the capacity of link and \
                 tester. The results are the highest forwarding rate, and the load per port at \
                 that rate.",
        build: rfc2889::rate::method,
        parameters: rfc2889::SEARCHED,
        shared: &[shared::TRIALS, &[methods::PORTS], shared::SEARCHES],
        ..MESHED
    },
    CatalogEntry {
        id: "rfc2889/congestion",
        title: "Congestion control (RFC 2889, 5.5)",
        axis: rfc2889::AXIS,
        method: "The first port sends alternately to an uncongested port and to a congested one, \
                 to which the second port sends too. Both send at the capacity of their link. Loss \
                 at the uncongested port is head-of-line blocking; no loss at the congested port \
                 is back pressure. Without either, a third of the frames to the congested port is \
                 lost.",
        build: rfc2889::congestion::method,
        parameters: rfc2889::REPEATED,
        ..MESHED
    },
    CatalogEntry {
        id: "rfc2889/broadcast",
        title: "Forwarding of broadcast frames (RFC 2889, 5.10)",
        axis: rfc2889::AXIS,
        method: "The first port sends broadcast frames at the capacity of its link. The result is \
                 the share of copies that did not reach another port.",
        build: rfc2889::broadcast::forwarding,
        parameters: rfc2889::broadcast::PARAMETERS,
        ..MESHED
    },
    CatalogEntry {
        id: "rfc2889/broadcast-latency",
        title: "Latency of broadcast frames (RFC 2889, 5.10)",
        axis: rfc2889::AXIS,
        method: "Broadcast frames as in rfc2889/broadcast, at a tenth of that load. The result is \
                 the latency of the copies at the second port.",
        build: rfc2889::broadcast::latency,
        parameters: rfc2889::broadcast::PARAMETERS_LATENCY,
        ..MESHED
    },
    CatalogEntry {
        id: "rfc2889/caching",
        title: "Address caching capacity (RFC 2889, 5.7)",
        axis: rfc2889::AXIS,
        method: "A newly started target learns a number of stations, then gets a frame for each of \
                 them. The capacity is the highest number at which every frame leaves by the \
                 correct port only.",
        build: rfc2889::addresses::capacity,
        technologies: BRIDGES,
        inputs: 2,
        parameters: rfc2889::addresses::PARAMETERS,
        shared: &[&[methods::ADDRESSES, methods::LEARNING_RATE, shared::VERIFY]],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc2889/learning",
        title: "Address learning rate (RFC 2889, 5.8)",
        axis: rfc2889::AXIS,
        method: "As rfc2889/caching, with at most 4096 stations and at most half of the capacity. \
                 The result is the highest rate at which all of them are learned.",
        build: rfc2889::addresses::rate,
        technologies: BRIDGES,
        inputs: 2,
        parameters: rfc2889::addresses::PARAMETERS,
        shared: &[&[methods::ADDRESSES], shared::SEARCHES],
        ..WORKLOAD
    },
    CatalogEntry {
        id: "rfc9971",
        title: "Throughput for several goals in one search (MLRsearch, RFC 9971)",
        axis: rfc9971::AXIS,
        method: "One search from the nominal rate down finds the loads that meet and that miss \
                 each goal. Trials become longer as the bounds come closer, and each trial serves \
                 every goal. The whole search is repeated.",
        build: rfc9971::method,
        parameters: rfc9971::PARAMETERS,
        shared: &[&[shared::WARMUP, shared::LOSS], shared::TABLES, goals::ALL],
        ..WORKLOAD
    },
];
