//! Methods of standards: RFC 2544, 2889, 8219, 9004 and 9971, and fairness between flows.

use super::{Entry, FORWARDERS, SEARCHED, TRIALS_OVER, WORKLOAD};
use crate::experiments::{fairness, rfc2544, rfc2889, rfc8219, rfc9004, rfc9971};
use crate::parameter::own::Declared;
use crate::parameter::{goals, methods, shared};
use crate::target::name::{TargetKind, Technology};

/// Technologies that learn addresses and can be started without any.
const BRIDGES: &[Technology] = &[Technology::Bridging];

/// Technologies that can be configured with the port of a station.
const SWITCHES: &[Technology] = &[Technology::OpenFlow, Technology::Bridging];

/// Method text for burst searches.
const BURSTS: &str = "Where the throughput is below what link and tester carry, bursts at that rate: the longest \
                      without a lost frame, to a frame, the whole search repeated. Its time on the link is the \
                      implied buffer time; less what was forwarded meanwhile, the corrected one.";

/// Method text for flows that share a target.
const FAIRNESS: &str = "Flows at fixed shares of a load C, and the last at rising ones; C is the target's own maximum of all \
                        of them over 0.65. A difference above zero: the first loses more.";

/// Common fields of experiments with traffic between all ports.
const MESHED: Entry = Entry {
    technologies: SWITCHES,
    inputs: 3,
    is_meshed: true,
    shared: &[shared::TRIALS, &[methods::PORTS]],
    ..WORKLOAD
};

/// Parameters of flows that share a target.
const FLOWS_TOGETHER: &[&[Declared]] = &[shared::TRIALS, shared::TABLES, &[methods::SHARES]];

/// Parameters of burst searches.
const BURSTS_OVER: &[&[Declared]] = &[
    shared::TRIALS,
    shared::TABLES,
    shared::SEARCHES,
    &[methods::BURST_SECONDS, methods::BURST_STEP],
];

/// Entries by set; in each set, the experiment whose results the others need comes first.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "fairness/one-port",
        title: "Fairness between flows by one input port",
        axis: fairness::AXIS,
        method: FAIRNESS,
        build: fairness::by_one_port,
        technologies: FORWARDERS,
        parameters: fairness::PARAMETERS,
        shared: FLOWS_TOGETHER,
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
        parameters: fairness::PARAMETERS,
        shared: FLOWS_TOGETHER,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/throughput",
        title: "Throughput (RFC 2544, 26.1)",
        axis: rfc2544::AXIS,
        method: "Binary search without a lost frame at each of the standard's frame sizes, confirmed by a \
                 trial four times as long; the whole search is repeated.",
        build: rfc2544::throughput,
        parameters: rfc2544::SEARCHED,
        shared: SEARCHED,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/latency",
        title: "Latency at the throughput (RFC 2544, 26.2)",
        axis: rfc2544::AXIS,
        method: "Trials at the throughput of each frame size. The standard's number is the mean; every frame \
                 is stamped, so that median and tails stand beside it.",
        build: rfc2544::latency::method,
        parameters: rfc2544::REPEATED,
        shared: SEARCHED,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/loss",
        title: "Frame loss rate (RFC 2544, 26.3)",
        axis: rfc2544::loss::AXIS,
        method: "Each frame size at 100 % of the nominal link, 90 % and so on, until two successive trials \
                 lost nothing.",
        build: rfc2544::loss::method,
        parameters: rfc2544::loss::PARAMETERS,
        shared: TRIALS_OVER,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/back-to-back",
        title: "Back-to-back frames (RFC 2544, 26.4, by RFC 9004)",
        axis: rfc9004::AXIS,
        method: BURSTS,
        build: rfc9004::method,
        parameters: rfc2544::SEARCHED,
        shared: BURSTS_OVER,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2544/recovery",
        title: "System recovery (RFC 2544, 26.5)",
        axis: rfc2544::AXIS,
        method: "110 % of the throughput, then at once 50 % for as long: the time from that change to the last \
                 frame that was lost.",
        build: rfc2544::recovery::method,
        parameters: rfc2544::SEARCHED,
        shared: SEARCHED,
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
        parameters: rfc2544::reset::PARAMETERS,
        shared: SEARCHED,
        ..WORKLOAD
    },
    Entry {
        id: "rfc9004",
        title: "Back-to-back frames and buffer time (RFC 9004)",
        axis: rfc9004::AXIS,
        method: BURSTS,
        build: rfc9004::method,
        parameters: rfc2544::SEARCHED,
        shared: BURSTS_OVER,
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
        parameters: rfc8219::PARAMETERS,
        shared: SEARCHED,
        ..WORKLOAD
    },
    Entry {
        id: "rfc2889/throughput",
        title: "Fully meshed throughput (RFC 2889, 5.1)",
        axis: rfc2889::AXIS,
        method: "Every port sends to every other in turn: binary search for the largest load of a port without a \
                 lost frame, confirmed by a trial four times as long; the whole search is repeated.",
        build: rfc2889::throughput,
        parameters: rfc2889::SEARCHED,
        shared: &[shared::TRIALS, &[methods::PORTS], shared::SEARCHES],
        ..MESHED
    },
    Entry {
        id: "rfc2889/full-mesh",
        title: "Forwarding rate, fully meshed (RFC 2889, 5.1)",
        axis: rfc2889::AXIS,
        method: "Every port sends to every other in turn, at what its link carries.",
        build: rfc2889::full_mesh,
        parameters: rfc2889::REPEATED,
        ..MESHED
    },
    Entry {
        id: "rfc2889/one-to-many",
        title: "Forwarding rate from one port to all others (RFC 2889, 5.2)",
        axis: rfc2889::AXIS,
        method: "The first port sends to all others in turn, at what its link carries.",
        build: rfc2889::one_to_many,
        parameters: rfc2889::REPEATED,
        ..MESHED
    },
    Entry {
        id: "rfc2889/many-to-one",
        title: "Forwarding rate from all other ports to one (RFC 2889, 5.2)",
        axis: rfc2889::AXIS,
        method: "All other ports send to the first, each at what its link carries.",
        build: rfc2889::many_to_one,
        parameters: rfc2889::REPEATED,
        ..MESHED
    },
    Entry {
        id: "rfc2889/max-rate",
        title: "Maximum forwarding rate (RFC 2889, 5.6)",
        axis: rfc2889::AXIS,
        method: "Fully meshed, from the throughput up to what link and tester carry in ten steps: the highest rate \
                 at which frames came out, and the load of a port then.",
        build: rfc2889::rate::method,
        parameters: rfc2889::SEARCHED,
        shared: &[shared::TRIALS, &[methods::PORTS], shared::SEARCHES],
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
        parameters: rfc2889::REPEATED,
        ..MESHED
    },
    Entry {
        id: "rfc2889/broadcast",
        title: "Forwarding of broadcast frames (RFC 2889, 5.10)",
        axis: rfc2889::AXIS,
        method: "The first port sends frames for everybody at what its link carries: the share of copies that did \
                 not reach one of the other ports.",
        build: rfc2889::broadcast::forwarding,
        parameters: rfc2889::broadcast::PARAMETERS,
        ..MESHED
    },
    Entry {
        id: "rfc2889/broadcast-latency",
        title: "Latency of broadcast frames (RFC 2889, 5.10)",
        axis: rfc2889::AXIS,
        method: "The same at a tenth of that load: latency of the copies at the second port.",
        build: rfc2889::broadcast::latency,
        parameters: rfc2889::broadcast::PARAMETERS_LATENCY,
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
        parameters: rfc2889::addresses::PARAMETERS,
        shared: &[&[methods::ADDRESSES, methods::LEARNING_RATE, shared::VERIFY]],
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
        parameters: rfc2889::addresses::PARAMETERS,
        shared: &[&[methods::ADDRESSES], shared::SEARCHES],
        ..WORKLOAD
    },
    Entry {
        id: "rfc9971",
        title: "Throughput for several goals in one search (MLRsearch, RFC 9971)",
        axis: rfc9971::AXIS,
        method: "One search from the nominal rate down for loads that reach and miss each goal, trials \
                 growing longer as its bounds come closer, every trial serving every goal; repeated.",
        build: rfc9971::method,
        parameters: rfc9971::PARAMETERS,
        shared: &[&[shared::WARMUP, shared::LOSS], shared::TABLES, goals::ALL],
        ..WORKLOAD
    },
];
