//! Client and server twice: as the tester's two ports, and as programs with sockets on hosts of their own.
//!
//! Claim: none is printed; the study's round trips hold what its client's and its server's systems took, which nobody can
//! tell from them. Method: the same rules and the same headers, measured in turns (A B A B): packets of the tester's ports, whose
//! round trip is links and target, and packets of a client and a server that block in their system's calls, as the study
//! had them, whose round trip is what the client sees. What hosts take is the difference, repeat by repeat. The study's five
//! types at its smallest size, an exact match at its others. Hosts stand at the ends of veth pairs in namespaces
//! of their own; other links have nothing to which a system could be joined, and virtual time has no systems.

use super::super::modules::rounds::{Rounds, Spot};
use super::super::modules::updates::{PATIENCE, VERSION};
use super::super::{Context, Method};
use super::matching::{
    AXIS, FRAMES, LEGACY, LEGACY_PREFIX, PREFIXES, PUBLISHED, SIZES, TYPES, WORDS, typed,
};
use super::setting::{PACKETS, WAIT, by_sockets, spot, trip, ways};
use crate::catalog::Show;
use crate::parameter::own::Declared;
use crate::target::name::Technology;

/// Parameters of the experiment.
pub const PARAMETERS: &[Declared] = &[FRAMES, TYPES, PACKETS, WAIT, VERSION, PATIENCE];

/// What programs with sockets measure is called by these, in the order of the types.
const SERIES: [&str; PUBLISHED] =
    ["port_sockets", "mac_sockets", "ip_sockets", "udp_port_sockets", "exact_sockets"];

/// What comes before the names of what is measured with each.
const PREFIXES_SOCKETS: [&str; PUBLISHED] =
    ["port_sockets_", "mac_sockets_", "ip_sockets_", "udp_port_sockets_", "exact_sockets_"];

/// The same where there is no OpenFlow.
const LEGACY_SOCKETS: [&str; 2] = ["legacy_sockets", "legacy_sockets_"];

/// Values that the report shows.
pub const SHOWS: &[Show] = &[
    Show {
        is_logarithmic: true,
        ..Show::series(
            "Round trips of the largest packets: ports and sockets",
            &["exact_share", "exact_sockets_share", "legacy_share", "legacy_sockets_share"],
        )
    },
    Show::values(
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

/// Both ways on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let sizes = context.frames(&FRAMES);
    let smallest = sizes.iter().copied().min();
    let mut spots: Vec<Spot> = Vec::new();
    for bytes in sizes {
        let (x, size) = (f64::from(bytes), usize::from(bytes));
        // The distribution of the study's largest size is drawn.
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
    Box::new(Rounds::new(context, AXIS, spots))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sockets_measure_is_named_after_the_type() {
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
