//! Access lists in the style of ClassBench: rules over addresses, ports and protocol, and headers that match them.
//!
//! Source of the idea: D. Taylor, J. Turner, "ClassBench: a packet classification benchmark" (INFOCOM 2005).
//! ClassBench reads seeds taken from real lists. Here a style is a set of shares: pairs of prefix lengths, classes of
//! ports, protocols, and branching of prefixes. The shares are this project's own numbers. They are rounded from
//! published properties of access lists (`acl`), firewalls (`fw`) and Linux chains (`ipc`). Addresses are walks down
//! a tree in which a node has two children with some probability, so that prefixes nest and share leading bits.
//!
//! Invariant: a style, a number of rules and a seed determine the rules, which are all different. A header made for a
//! rule matches no earlier one.

mod range;
mod style;

pub use range::masks;

use std::collections::HashSet;

use super::mixed;
use super::prefixes::mask;
use crate::parameter::Style;

/// Draws of a header for a rule before the rule counts as hidden by earlier rules.
const TRIES: u64 = 16;

/// Draws per requested rule before the style counts as exhausted.
const DRAWS_MAX: u64 = 64;

/// Random variation of the order of rules, in bits of specificity.
const JITTER_BITS: u64 = 12;

/// A rule with port ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Network and length.
    pub source: (u32, u8),
    /// Network and length.
    pub destination: (u32, u8),
    /// IPv4 protocol number; `None` for any.
    pub protocol: Option<u8>,
    /// First and last.
    pub source_ports: (u16, u16),
    /// First and last.
    pub destination_ports: (u16, u16),
}

/// The header fields that rules match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// IPv4 source.
    pub source: u32,
    /// IPv4 destination.
    pub destination: u32,
    /// IPv4 protocol.
    pub protocol: u8,
    /// Source port, or type and code of ICMP.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

/// Every port.
pub const ALL_PORTS: (u16, u16) = (0, u16::MAX);

impl Rule {
    /// Returns whether a frame with this header matches the rule.
    pub fn meets(&self, header: &Header) -> bool {
        let within = |port: u16, (first, last): (u16, u16)| (first..=last).contains(&port);
        header.destination & mask(self.destination.1) == self.destination.0
            && header.source & mask(self.source.1) == self.source.0
            && self.protocol.is_none_or(|protocol| protocol == header.protocol)
            && within(header.destination_port, self.destination_ports)
            && within(header.source_port, self.source_ports)
    }

    /// Returns whether a frame can match both rules.
    fn overlaps(&self, other: &Rule) -> bool {
        let nested =
            |one: (u32, u8), other: (u32, u8)| (one.0 ^ other.0) & mask(one.1.min(other.1)) == 0;
        let shared = |one: (u16, u16), other: (u16, u16)| one.0 <= other.1 && other.0 <= one.1;
        nested(self.destination, other.destination)
            && nested(self.source, other.source)
            && (self.protocol.is_none()
                || other.protocol.is_none()
                || self.protocol == other.protocol)
            && shared(self.destination_ports, other.destination_ports)
            && shared(self.source_ports, other.source_ports)
    }

    /// Returns the number of header bits that the rule fixes.
    fn bits(&self) -> u64 {
        let ports = |(first, last): (u16, u16)| {
            16 - u64::from((last - first).checked_ilog2().map_or(0, |it| it + 1))
        };
        u64::from(self.source.1 + self.destination.1)
            + if self.protocol.is_some() { 8 } else { 0 }
            + ports(self.source_ports)
            + ports(self.destination_ports)
    }

    /// Returns a header that matches the rule.
    fn header(&self, draw: u64) -> Header {
        let bits = |salt: u64| mixed(draw ^ salt << 56);
        let host = |(network, length): (u32, u8), salt| network | bits(salt) as u32 & !mask(length);
        let port = |(first, last): (u16, u16), salt| {
            first + (bits(salt) % (u64::from(last - first) + 1)) as u16
        };
        Header {
            source: host(self.source, 1),
            destination: host(self.destination, 2),
            protocol: self.protocol.unwrap_or([6, 17][(bits(3) & 1) as usize]),
            source_port: port(self.source_ports, 4),
            destination_port: port(self.destination_ports, 5),
        }
    }

    /// Returns the number of entries of the rule, with ranges as masks.
    pub fn entries(&self) -> usize {
        masks(self.source_ports).len() * masks(self.destination_ports).len()
    }
}

/// Returns this many rules (fewer if the style has fewer different ones); earlier rules have precedence.
pub fn rules(style: Style, count: u32, seed: u64) -> Vec<Rule> {
    let seed = mixed(seed ^ (style as u64) << 40);
    let mut seen = HashSet::with_capacity(count as usize);
    let drawn = (0..u64::from(count) * DRAWS_MAX).map(|draw| style::draw(style, seed, draw));
    let mut rules: Vec<Rule> =
        drawn.filter(|rule| seen.insert(*rule)).take(count as usize).collect();
    let mut order: Vec<(u64, usize)> = (0..rules.len())
        .map(|at| (rules[at].bits() + mixed(seed ^ at as u64) % JITTER_BITS, at))
        .collect();
    order.sort_unstable_by_key(|&(bits, at)| (std::cmp::Reverse(bits), at));
    rules = order.into_iter().map(|(_, at)| rules[at]).collect();
    rules
}

/// Returns this many headers in random order, equally many for each rule. Rules that earlier ones hide wholly or
/// nearly so have none.
pub fn headers(rules: &[Rule], count: usize, seed: u64) -> Vec<Header> {
    let each = count.div_ceil(rules.len().max(1)) as u64;
    let mut found = Vec::with_capacity(count + each as usize);
    for (at, rule) in rules.iter().enumerate() {
        let earlier: Vec<&Rule> = rules[..at].iter().filter(|other| other.overlaps(rule)).collect();
        let draw = |number: u64| {
            let tries = (0..TRIES)
                .map(|again| rule.header(mixed(seed ^ (at as u64) << 32 ^ number << 8 ^ again)));
            let mut open = tries.filter(|it| !earlier.iter().any(|other| other.meets(it)));
            open.next()
        };
        if draw(0).is_some() {
            found.extend((0..each).filter_map(draw));
        }
    }
    // Rules without headers leave room for more of the others.
    let own = found.len().max(1);
    while found.len() < count && !found.is_empty() {
        found.push(found[found.len() % own]);
    }
    let mut order: Vec<(u64, Header)> =
        found.into_iter().zip(0u64..).map(|(it, at)| (mixed(seed ^ at << 1), it)).collect();
    order.sort_unstable_by_key(|&(place, _)| place);
    order.into_iter().take(count).map(|(_, header)| header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLES: [Style; 3] = [Style::Acl, Style::Fw, Style::Ipc];

    #[test]
    fn rules_are_distinct_nested_and_reproducible_from_the_seed() {
        for style in STYLES {
            let found = rules(style, 2000, 7);
            assert_eq!(found.len(), 2000, "{style:?}");
            assert_eq!(found.iter().collect::<HashSet<_>>().len(), 2000);
            assert_eq!(found, rules(style, 2000, 7));
            assert_ne!(found, rules(style, 2000, 8));
            let overlaps = |at: usize| found[..at].iter().any(|rule| rule.overlaps(&found[at]));
            let nested = (0..found.len()).filter(|&at| overlaps(at)).count();
            assert!(nested > 200, "{style:?}: only {nested} overlap an earlier one");
            for rule in &found {
                let has_ports = matches!(rule.protocol, Some(6 | 17));
                let open = (rule.source_ports, rule.destination_ports) == (ALL_PORTS, ALL_PORTS);
                assert!(has_ports || open, "only TCP and UDP have ports: {rule:?}");
                assert_eq!(rule.source.0 & !mask(rule.source.1), 0);
                assert_eq!(rule.destination.0 & !mask(rule.destination.1), 0);
            }
        }
    }

    #[test]
    fn styles_differ_as_expected() {
        let share = |style, is: fn(&Rule) -> bool| {
            rules(style, 2000, 7).iter().filter(|rule| is(rule)).count() as f64 / 2000.0
        };
        let any_source = |rule: &Rule| rule.source.1 == 0;
        assert!(share(Style::Acl, any_source) < 0.1);
        assert!(share(Style::Fw, any_source) > 0.25);
        let names_source_port = |rule: &Rule| rule.source_ports != ALL_PORTS;
        assert_eq!(share(Style::Acl, names_source_port), 0.0);
        assert!(share(Style::Fw, names_source_port) > 0.05);
        assert!(share(Style::Ipc, names_source_port) > 0.05);
    }

    #[test]
    fn headers_cover_all_rules_and_match_no_earlier_one() {
        for style in STYLES {
            let rules = rules(style, 300, 7);
            let headers = headers(&rules, 6000, 3);
            assert_eq!(headers.len(), 6000);
            let mut hits = vec![0u32; rules.len()];
            for header in &headers {
                let first = rules.iter().position(|rule| rule.meets(header));
                hits[first.expect("each header is made for a rule")] += 1;
            }
            let met = hits.iter().filter(|&&hits| hits > 0).count();
            assert!(met > 250, "{style:?}: only {met} of 300 rules are matched");
            assert!(hits.iter().all(|&hits| hits < 60), "{style:?}: {hits:?}");
        }
    }
}
