//! VLAN tagging by conditions: the rules of a target, and the frames that match each of them.
//!
//! Source: gelberger2013, section IV (the workload "VLAN tagging"); the study does not print its conditions. The
//! first three rules are those of `examples/progfe/vlan.fe.xml`. Of several matching rules the first applies, and the
//! last one matches every frame, so that each frame of the traffic has exactly one correct tag.

use testbed::peer::TagRule;
use tester::stream::{
    Arrival, Field, FieldVariation, Headers, IndexOrder, Rate, Stream, Values, Vlan,
};

use super::{Addresses, Setup};
use crate::Technology;
use crate::parameter::{Table, Traffic};

/// Limit of a target's rules.
pub const RULES_MAX: u32 = 16;

/// UDP port of frames whose rule matches no port: discard (RFC 863).
const PORT_PLAIN: u16 = 9;

/// Tag of frames that no other rule matches.
const OTHERS: (u16, u8) = (200, 0);

/// Condition of each rule but the last, and its tag. Classes of service by RFC 4594, ports of SIP, DNS, NTP, SNMP,
/// syslog, BFD, RADIUS, VXLAN.
const RULES: [(TagRequest, (u16, u8)); RULES_MAX as usize - 1] = [
    (TagRequest::Dscp(40, 47), (100, 5)),
    (TagRequest::Port(5060), (100, 5)),
    (TagRequest::Dscp(34, 34), (101, 4)),
    (TagRequest::Port(53), (102, 3)),
    (TagRequest::Dscp(26, 26), (103, 3)),
    (TagRequest::Port(123), (104, 2)),
    (TagRequest::Dscp(18, 18), (105, 2)),
    (TagRequest::Port(161), (106, 1)),
    (TagRequest::Dscp(10, 10), (107, 1)),
    (TagRequest::Port(514), (108, 1)),
    (TagRequest::Dscp(48, 48), (109, 6)),
    (TagRequest::Port(3784), (110, 6)),
    (TagRequest::Dscp(56, 56), (111, 7)),
    (TagRequest::Port(1812), (112, 0)),
    (TagRequest::Port(4789), (4094, 7)),
];

#[derive(Clone, Copy)]
enum TagRequest {
    /// The first and the last DSCP.
    Dscp(u8, u8),
    /// The destination port of UDP.
    Port(u16),
}

/// Returns this many rules in order of precedence; the last one matches every frame.
pub fn rules(count: u32) -> Vec<TagRule> {
    let plain = |(vlan, priority)| TagRule { dscp: None, udp_destination: None, vlan, priority };
    let named = RULES.iter().map(|&(asked, tag)| match asked {
        TagRequest::Dscp(first, last) => TagRule { dscp: Some((first, last)), ..plain(tag) },
        TagRequest::Port(port) => TagRule { udp_destination: Some(port), ..plain(tag) },
    });
    let others = count.clamp(1, RULES_MAX) as usize - 1;
    named.take(others).chain([plain(OTHERS)]).collect()
}

/// Returns type of service and destination port of a frame that matches this rule and no earlier one.
fn fields(rule: &TagRule) -> (u8, u16) {
    // In a range that contains it, the DSCP is expedited forwarding (RFC 3246).
    let dscp = rule.dscp.map_or(0, |(first, last)| 46.clamp(first, last));
    (dscp << 2, rule.udp_destination.unwrap_or(PORT_PLAIN))
}

fn vlan(rule: &TagRule) -> Vlan {
    Vlan { priority: rule.priority, ..Vlan::new(rule.vlan) }
}

impl Setup {
    /// Returns whether a target that can tag adds tags to the frames. A tagger always tags.
    pub fn tags(&self) -> bool {
        self.table == Table::Tags
    }

    /// Returns the target's rules.
    fn tag_rules(&self) -> Vec<TagRule> {
        rules(self.entries)
    }

    /// Adapts a stream so that its frames match the rules, with the tags that the target must add; without a tagging
    /// target, the frames are expected unchanged.
    pub(super) fn with_rules(
        &self,
        stream: Stream,
        technology: Technology,
        order: IndexOrder,
    ) -> Stream {
        let rules = self.tag_rules();
        let met = if self.traffic == Traffic::One { &rules[..1] } else { &rules[..] };
        let (service, port) = fields(&met[0]);
        let headers = Headers { tos: service, port_destination: port, ..stream.headers.clone() };
        let list = |of: fn((u8, u16)) -> u64| {
            Values::List(met.iter().map(|rule| of(fields(rule))).collect())
        };
        let several = met.len() > 1;
        let vary = several.then(|| FieldVariation {
            count: met.len() as u64,
            order,
            fields: vec![
                (Field::Tos, list(|it| it.0.into())),
                (Field::PortDestination, list(|it| it.1.into())),
            ],
        });
        let arrival = match technology {
            Technology::Wire => Arrival::Unchanged,
            _ => Arrival::Tagged(met.iter().map(vlan).collect()),
        };
        Stream { headers, vary: vary.into_iter().collect(), arrival, ..stream }
    }

    /// Returns frames with the last rule's tag, from the target's second port to its first, which remove the tag on
    /// the way; with their tag they have four bytes more than `frame_bytes`.
    pub fn stream_back(
        &self,
        technology: Technology,
        addresses: &Addresses,
        frame_bytes: u16,
        rate: Rate,
    ) -> Stream {
        let one = Setup { entries: 1, traffic: Traffic::One, ..*self };
        let stream = one.stream(technology, addresses, frame_bytes, rate);
        let mut headers = stream.headers;
        headers.vlans = self.tag_rules().last().map(vlan).into_iter().collect();
        std::mem::swap(&mut headers.mac_source, &mut headers.mac_destination);
        std::mem::swap(&mut headers.ip_source, &mut headers.ip_destination);
        let arrival = match technology {
            Technology::Wire => Arrival::Unchanged,
            _ => Arrival::Untagged,
        };
        let frame_bytes = stream.frame_bytes + tester::stream::TAG_BYTES;
        Stream { id: 2, from: 1, to: 0, headers, frame_bytes, arrival, ..stream }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ADDRESSES;

    fn holds(rule: &TagRule, headers: &Headers) -> bool {
        let dscp = headers.tos >> 2;
        rule.dscp.is_none_or(|(first, last)| (first..=last).contains(&dscp))
            && rule.udp_destination.is_none_or(|port| port == headers.port_destination)
    }

    #[test]
    fn each_frame_matches_the_rule_of_its_expected_tag() {
        for entries in 1..=RULES_MAX {
            let traffic = Traffic::Sequential;
            let setup = Setup { table: Table::Tags, entries, traffic, ..Setup::single(1) };
            let rate = Rate::FramesPerSecond(1.0);
            let stream = setup.stream(Technology::Tagging, &ADDRESSES, 64, rate);
            assert_eq!(stream.validate(), []);
            let Arrival::Tagged(tags) = &stream.arrival else { panic!("{:?}", stream.arrival) };
            assert_eq!(tags.len() as u32, entries);
            let rules = rules(entries);
            for (place, tag) in tags.iter().enumerate() {
                let headers = stream.headers_at(place as u64);
                let first = rules.iter().find(|rule| holds(rule, &headers)).unwrap();
                assert_eq!((first.vlan, first.priority), (tag.id, tag.priority), "{headers:?}");
                assert_eq!(first, &rules[place]);
            }
            let back = setup.stream_back(Technology::Tagging, &ADDRESSES, 64, rate);
            assert_eq!((back.validate(), back.frame_bytes, back.from), (vec![], 68, 1));
            assert!(rules.iter().any(|rule| rule.vlan == back.headers.vlans[0].id));
        }
    }
}
