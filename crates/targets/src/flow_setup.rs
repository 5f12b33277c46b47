//! Flow entries as an OpenFlow controller installs them, so that a setup's frames leave by port 2.
//!
//! Exact entries match all twelve fields of OpenFlow 1.0, which puts them into a switch's hash
//! table. Wildcard entries match the UDP ports only (bianco2010, sections IV.B and IV.C), or other
//! fields on request.

use openflow::model::{Action, Field, FlowMod, Match, PRIORITY_DEFAULT, reserved};
use openflow::version::Version;
use tester::controller::Settings;
use tester::controller::flows::Installed;

use super::TargetError;
use tester::stream::{Headers, Rate};
use workload::Technology;
use workload::acl::{Rule, masks};
use workload::mesh::BROADCAST;
use workload::parameter::{Rules, Table, Traffic};
use workload::parts::{PLACE_SECOND, SENDER_SECOND};
use workload::prefixes::{mask, prefixes};
use workload::{
    Addresses, Setup, access_list, host_in, mac_of, names_source, network, port_of, udp_ports,
};

mod tags;

/// Ingress port of the tester's frames, by its number in the target.
pub const PORT_IN: u16 = 1;
/// Egress port of the frames.
pub const PORT_OUT: u16 = 2;
/// Ingress port of the second of two flows.
pub const PORT_IN_SECOND: u16 = 3;

/// IP protocol number of UDP.
const UDP: u8 = 17;
/// Prefix length of class C networks.
const NETWORK_BITS: u8 = 24;
/// EtherType of IPv4.
const IPV4: u16 = 0x0800;

/// Verifies that the switch accepted every entry; the error names the first rejected one, and why.
pub fn checked(installed: &Installed) -> Result<(), TargetError> {
    match installed.refused.first() {
        None => Ok(()),
        Some((place, error)) => Err(TargetError::CannotHold(format!(
            "the switch rejected {} of {} flows, first number {place}: {}",
            installed.refused.len(),
            installed.flows,
            error.code
        ))),
    }
}

/// Returns the entries of a setup, in the order of their installation.
pub fn flows(setup: &Setup, addresses: &Addresses) -> impl Iterator<Item = FlowMod> + use<> {
    let one = Setup { entries: 1, traffic: Traffic::One, ..*setup };
    let rate = Rate::FramesPerSecond(1.0);
    let headers = one.stream(Technology::OpenFlow, addresses, 64, rate).headers;
    let (table, entries, wildcards) = (setup.table, setup.entries, setup.wildcards());
    let routes = if table == Table::Lpm { prefixes(entries) } else { Vec::new() };
    let rules = if table == Table::Wildcard { setup.rules } else { Rules::Ports };
    let list = if table == Table::Acl { entries_of(setup) } else { Vec::new() };
    let count = match table {
        Table::Port | Table::Learned | Table::Macs | Table::Hosts | Table::Datagrams => 1,
        // The entries of tags follow at the end.
        Table::Empty | Table::Tags => 0,
        // One entry for each station, and one for broadcast.
        Table::Mesh => u32::from(setup.ports()) + 1,
        Table::Acl => list.len() as u32,
        _ => entries,
    };
    // With two inputs, the last entries belong to the flow from the third port.
    let (inputs, last, mac_source) =
        (setup.inputs, setup.last_part(), addresses.instrument[PLACE_SECOND]);
    let is_second = move |entry: u32| inputs == 2 && entry >= last;
    let stations = addresses.instrument[..usize::from(setup.ports())].to_vec();
    let macs = (addresses.routed().target[1], addresses.instrument[1]);
    let tagging = if setup.tags() { tags::flows(setup) } else { Vec::new() };
    let forwarding = (0..count).map(move |entry| {
        let (port_source, port_destination) = udp_ports(entry);
        let headers = Headers { port_source, port_destination, ..headers.clone() };
        let (headers, port_in) = match is_second(entry) {
            true => (Headers { ip_source: SENDER_SECOND, mac_source, ..headers }, PORT_IN_SECOND),
            false => (headers, PORT_IN),
        };
        let matching = match table {
            Table::Port => Match::ANY.with(Field::InPort, PORT_IN),
            Table::Learned | Table::Empty => Match::ANY,
            Table::Mesh => {
                let station = stations.get(entry as usize).copied().unwrap_or(BROADCAST);
                Match::ANY.with_mac(Field::EthDst, station)
            }
            Table::Mac => Match::ANY.with_mac(Field::EthDst, mac_of(entry)),
            Table::Lpm => route(routes[entry as usize]),
            Table::Routed => route((network(entry).to_bits(), NETWORK_BITS)),
            Table::Acl => list[entry as usize].1.clone(),
            Table::Macs => Match::ANY
                .with_mac(Field::EthSrc, headers.mac_source)
                .with_mac(Field::EthDst, headers.mac_destination),
            Table::Hosts => hosts(Match::ANY.with(Field::EthType, IPV4), &headers),
            Table::Datagrams => hosts(wildcard(&headers), &headers),
            _ if entry >= entries - wildcards => match rules {
                Rules::Ports => wildcard(&headers),
                Rules::Addresses => address(entry),
                Rules::Either => either(entry),
            },
            _ => exact(&headers, port_in),
        };
        let priority = match (table, rules) {
            // The longest prefix has the highest priority.
            (Table::Lpm, _) => PRIORITY_DEFAULT + u16::from(routes[entry as usize].1),
            (Table::Acl, _) => list[entry as usize].0,
            // Of overlapping rules, the earlier one has the higher priority.
            (_, Rules::Either) => u16::MAX - entry.min(u32::from(u16::MAX) - 1) as u16,
            _ => PRIORITY_DEFAULT,
        };
        // A bridge forwards to the port where it learned the address.
        let to = match table {
            Table::Learned => reserved::NORMAL,
            Table::Mesh if entry as usize == stations.len() => reserved::FLOOD,
            Table::Mesh => entry + 1,
            _ => PORT_OUT.into(),
        };
        let mut actions = if table == Table::Routed { routing(macs) } else { Vec::new() };
        actions.push(Action::output(to));
        FlowMod::add(matching, priority, actions)
    });
    forwarding.chain(tagging)
}

/// Returns the controller settings for a setup: OpenFlow 1.0 as in the studies, or the first
/// version that supports the setup.
pub fn settings(setup: &Setup) -> Settings {
    let mut settings = Settings::new();
    // OpenFlow 1.0 can neither push a tag nor decrement the TTL.
    if setup.tags() || setup.table == Table::Routed {
        settings.session.versions = vec![Version::V1_3];
    }
    settings
}

/// Returns the actions of a router: it sets its own MAC address as source and the receiver's as
/// destination.
pub fn routing((source, destination): ([u8; 6], [u8; 6])) -> Vec<Action> {
    vec![
        Action::set_mac(Field::EthSrc, source),
        Action::set_mac(Field::EthDst, destination),
        Action::DecNwTtl,
    ]
}

/// Returns the entries of an access list, each with its priority.
///
/// A rule with port ranges becomes an entry for each pair of prefixes of its ranges. Of two
/// overlapping rules the earlier one comes first, as long as there are priorities.
fn entries_of(setup: &Setup) -> Vec<(u16, Match)> {
    let rules = access_list(setup.style, setup.entries);
    let priority = |at: usize| (u16::MAX - 1).saturating_sub(at.min(usize::from(u16::MAX)) as u16);
    let of = |(at, rule): (usize, &Rule)| {
        rule_matches(rule).into_iter().map(move |matching| (priority(at), matching))
    };
    rules.iter().enumerate().flat_map(of).collect()
}

/// Returns the matches that together cover a rule.
pub fn rule_matches(rule: &Rule) -> Vec<Match> {
    let address = |matching: Match, field, (network, length): (u32, u8)| match length {
        0 => matching,
        length => matching.with_masked(field, network, mask(length)),
    };
    let plain = Match::ANY.with(Field::EthType, IPV4);
    let plain = address(plain, Field::Ipv4Src, rule.source);
    let plain = address(plain, Field::Ipv4Dst, rule.destination);
    let Some(protocol) = rule.protocol else { return vec![plain] };
    let plain = plain.with(Field::IpProto, protocol);
    let (source, destination) = match protocol {
        UDP => (Field::UdpSrc, Field::UdpDst),
        _ => (Field::TcpSrc, Field::TcpDst),
    };
    let ported = |matching: Match, field, (value, mask): (u16, u16)| match mask {
        0 => matching,
        mask => matching.with_masked(field, value, mask),
    };
    let pairs = masks(rule.source_ports)
        .into_iter()
        .flat_map(|one| masks(rule.destination_ports).into_iter().map(move |other| (one, other)));
    pairs
        .map(|(one, other)| ported(ported(plain.clone(), source, one), destination, other))
        .collect()
}

fn address(entry: u32) -> Match {
    Match::ANY.with(Field::EthType, IPV4).with(Field::Ipv4Dst, host_in(entry).to_bits())
}

fn route((network, length): (u32, u8)) -> Match {
    Match::ANY.with(Field::EthType, IPV4).with_masked(Field::Ipv4Dst, network, mask(length))
}

fn hosts(matching: Match, headers: &Headers) -> Match {
    matching
        .with(Field::Ipv4Src, headers.ip_source.to_bits())
        .with(Field::Ipv4Dst, headers.ip_destination.to_bits())
}

fn either(rule: u32) -> Match {
    let field = if names_source(rule) { Field::UdpSrc } else { Field::UdpDst };
    let datagram = Match::ANY.with(Field::EthType, IPV4).with(Field::IpProto, UDP);
    datagram.with(field, port_of(rule))
}

fn wildcard(headers: &Headers) -> Match {
    Match::ANY
        .with(Field::EthType, IPV4)
        .with(Field::IpProto, UDP)
        .with(Field::UdpSrc, headers.port_source)
        .with(Field::UdpDst, headers.port_destination)
}

/// Returns the match on all twelve fields of OpenFlow 1.0.
pub fn exact(headers: &Headers, port_in: u16) -> Match {
    wildcard(headers)
        .with(Field::InPort, port_in)
        .with_mac(Field::EthSrc, headers.mac_source)
        .with_mac(Field::EthDst, headers.mac_destination)
        .untagged()
        .with(Field::IpDscp, headers.tos >> 2)
        .with(Field::Ipv4Src, headers.ip_source.to_bits())
        .with(Field::Ipv4Dst, headers.ip_destination.to_bits())
}
