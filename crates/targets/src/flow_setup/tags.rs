//! Rules of a VLAN tagger as OpenFlow entries (1.3: push_vlan, set_field, output).
//!
//! A rule with several DSCPs becomes an entry for each, because a match needs the exact field
//! value. The reverse direction has an entry for each VLAN.

use openflow::model::{Action, Field, FlowMod, Match};
use packet::header::ethernet::TYPE_VLAN;

use super::{IPV4, PORT_IN, PORT_OUT, UDP};
use testbed::peer::TagRule;
use workload::Setup;
use workload::tags::rules;

/// Returns the entries of a tagging setup.
pub(super) fn flows(setup: &Setup) -> Vec<FlowMod> {
    let rules = rules(setup.entries);
    let tag = |(place, rule): (usize, &TagRule)| {
        let actions = vec![
            Action::PushVlan(TYPE_VLAN),
            Action::set_vlan(rule.vlan),
            Action::set(Field::VlanPcp, rule.priority),
            Action::output(PORT_OUT.into()),
        ];
        // Of several matching rules the first one applies.
        let priority = u16::MAX - 1 - place as u16;
        matches(rule).into_iter().map(move |it| FlowMod::add(it, priority, actions.clone()))
    };
    let there: Vec<FlowMod> = rules.iter().enumerate().flat_map(tag).collect();
    let mut vlans: Vec<u16> = rules.iter().map(|rule| rule.vlan).collect();
    vlans.sort_unstable();
    vlans.dedup();
    let untag = |vlan: u16| {
        let matching = Match::ANY.with(Field::InPort, PORT_OUT).with_vlan(vlan);
        FlowMod::add(matching, 1, vec![Action::PopVlan, Action::output(PORT_IN.into())])
    };
    there.into_iter().chain(vlans.into_iter().map(untag)).collect()
}

/// Returns the matches that together cover a rule.
fn matches(rule: &TagRule) -> Vec<Match> {
    let plain = Match::ANY.with(Field::InPort, PORT_IN).untagged();
    let is_ip = rule.dscp.is_some() || rule.udp_destination.is_some();
    let plain = if is_ip { plain.with(Field::EthType, IPV4) } else { plain };
    let plain = match rule.udp_destination {
        Some(port) => plain.with(Field::IpProto, UDP).with(Field::UdpDst, port),
        None => plain,
    };
    match rule.dscp {
        None => vec![plain],
        Some((first, last)) => {
            (first..=last).map(|dscp| plain.clone().with(Field::IpDscp, dscp)).collect()
        }
    }
}
