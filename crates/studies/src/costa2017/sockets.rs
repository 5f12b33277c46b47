//! Client and server in two forms: the tester's two ports, and programs with sockets on separate hosts.
//!
//! Claim: the study prints none. Its round trip times include the operating systems of client and server, an
//! unknown share.
//!
//! Method: the same entries and headers are measured in both forms alternately (A B A B). Packets of the tester's
//! ports have a round trip time of links and target only. Client and server programs block in system calls, as in
//! the study; the client measures their round trip time. The difference, repeat by repeat, is the time of the
//! hosts.
//!
//! The study's five types run at its smallest size, an exact match at the others. Hosts are network namespaces at
//! the ends of veth pairs. Other links cannot connect to a host, and virtual time has no operating systems.

use super::common::{PACKETS, WAIT, by_sockets, spot, trip, ways};
use super::matching::{
    AXIS, FRAMES, LEGACY, LEGACY_PREFIX, PREFIXES, PUBLISHED, SIZES, TYPES, WORDS, typed,
};
use experiments::control_plane::rounds::{ModulePoint, RepeatedModule};
use experiments::control_plane::updates::{PATIENCE, VERSION};
use experiments::show::Chart;
use experiments::{Context, Method};
use workload::Technology;
use workload::parameter::declaration::Parameter;

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES, TYPES, PACKETS, WAIT, VERSION, PATIENCE];

/// Names of series measured by programs with sockets, in the order of the types.
const SERIES: [&str; PUBLISHED] =
    ["port_sockets", "mac_sockets", "ip_sockets", "udp_port_sockets", "exact_sockets"];

/// Prefixes of the metric names, in the same order.
const PREFIXES_SOCKETS: [&str; PUBLISHED] =
    ["port_sockets_", "mac_sockets_", "ip_sockets_", "udp_port_sockets_", "exact_sockets_"];

/// Name and prefix for targets without OpenFlow.
const LEGACY_SOCKETS: [&str; 2] = ["legacy_sockets", "legacy_sockets_"];

/// Values that the report shows.
pub const SHOWS: &[Chart] = &[
    Chart {
        is_logarithmic: true,
        ..Chart::series(
            "Round-trip times of the largest packets: ports and sockets",
            &["exact_share", "exact_sockets_share", "legacy_share", "legacy_sockets_share"],
        )
    },
    Chart::values(
        "Mean round-trip time by size: ports and sockets",
        &[
            "exact_rtt_ns_mean",
            "exact_sockets_rtt_ns_mean",
            "legacy_rtt_ns_mean",
            "legacy_sockets_rtt_ns_mean",
        ],
        &[
            "exact_sockets_rtt_ns_p50",
            "exact_sockets_rtt_ns_p99",
            "exact_sockets_returned_ratio",
            "legacy_sockets_rtt_ns_p50",
            "legacy_sockets_rtt_ns_p99",
            "legacy_sockets_returned_ratio",
        ],
    ),
];

/// Creates the method of both forms for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let sizes = context.frames(&FRAMES);
    let smallest = sizes.iter().copied().min();
    let mut spots: Vec<ModulePoint> = Vec::new();
    for bytes in sizes {
        let (x, size) = (f64::from(bytes), usize::from(bytes));
        // The report draws the distribution of the study's largest size.
        let is_drawn = Some(bytes) == SIZES.last().copied();
        let mut pair = |names: [&'static str; 4], ways, rules| {
            let [name, prefix, name_sockets, prefix_sockets] = names;
            let named = |name| if is_drawn { name } else { "other_size" };
            let one = trip(context, named(name), ways, rules);
            let other = by_sockets(one.clone(), named(name_sockets));
            spots.push(spot(context, x, prefix, one));
            spots.push(spot(context, x, prefix_sockets, other));
        };
        if context.technology != Technology::OpenFlow {
            let [name, prefix] = LEGACY_SOCKETS;
            pair([LEGACY, LEGACY_PREFIX, name, prefix], ways(context, size), None);
            continue;
        }
        let asked: Vec<&str> = context.parameters.own.words(&TYPES).collect();
        for (place, word) in WORDS.iter().take(PUBLISHED).enumerate() {
            let is_for_all = *word == "exact" || Some(bytes) == smallest;
            if is_for_all && asked.contains(word) {
                let (ways, rules) = typed(context, word, size);
                let names = [word, PREFIXES[place], SERIES[place], PREFIXES_SOCKETS[place]];
                pair(names, ways, Some(rules));
            }
        }
    }
    Box::new(RepeatedModule::new(context, AXIS, spots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_metrics_are_named_after_the_match_type() {
        for (place, word) in WORDS.iter().take(PUBLISHED).enumerate() {
            assert_eq!(SERIES[place], format!("{word}_sockets"));
            assert_eq!(PREFIXES_SOCKETS[place], format!("{word}_sockets_"));
        }
        assert_eq!(
            LEGACY_SOCKETS.map(String::from),
            [format!("{LEGACY}_sockets"), format!("{LEGACY}_sockets_")]
        );
    }
}
