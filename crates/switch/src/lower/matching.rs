//! Matches, and which of their fields were named.
//!
//! The core's matches are canonical: they forget fields that cannot matter. So that a controller
//! finds its own words again in statistics, the fields that it named go along as a set.

use std::net::Ipv4Addr;

use dataplane::key::{Field, Key, VLAN_PRESENT};
use dataplane::matching::Match;
use openflow::model::{self, MacAddress, Masked, VlanMatch};
use packet::field::{self, FieldSet};

use super::{port_down, port_up};

/// A field's name in the set of those that were named.
fn name(field: Field) -> field::Field {
    match field {
        Field::InPort => field::Field::InPort,
        Field::EthDst => field::Field::EthDst,
        Field::EthSrc => field::Field::EthSrc,
        Field::Vlan => field::Field::VlanVid,
        Field::VlanPriority => field::Field::VlanPcp,
        Field::EthType => field::Field::EthType,
        Field::IpTos => field::Field::IpDscp,
        Field::IpProto => field::Field::IpProto,
        Field::IpSrc => field::Field::Ipv4Src,
        Field::IpDst => field::Field::Ipv4Dst,
        Field::L4Src => field::Field::TcpSrc,
        Field::L4Dst => field::Field::TcpDst,
    }
}

/// The core's match, and the note that says which fields were named.
pub fn match_down(from: &model::Match) -> (Match, FieldSet) {
    let mut down = Down { value: Key::ZERO, mask: Key::ZERO, named: FieldSet::NONE };
    down.full(Field::InPort, from.in_port.map(|port| port_down(port).into()));
    down.masked(Field::EthSrc, from.eth_src.map(|mac| (mac_down(mac.value), mac_down(mac.mask))));
    down.masked(Field::EthDst, from.eth_dst.map(|mac| (mac_down(mac.value), mac_down(mac.mask))));
    down.masked(Field::Vlan, from.vlan.map(vlan_down));
    down.full(Field::VlanPriority, from.vlan_pcp.map(u64::from));
    down.full(Field::EthType, from.eth_type.map(u64::from));
    down.full(Field::IpTos, from.ip_dscp.map(|dscp| u64::from(dscp) << 2));
    down.full(Field::IpProto, from.ip_proto.map(u64::from));
    down.masked(Field::IpSrc, from.ip_src.map(ip_down));
    down.masked(Field::IpDst, from.ip_dst.map(ip_down));
    down.full(Field::L4Src, from.transport_src.map(u64::from));
    down.full(Field::L4Dst, from.transport_dst.map(u64::from));
    (Match::new(down.value, down.mask), down.named)
}

/// The match in OpenFlow's terms, with the fields that `named` holds.
pub fn match_up(from: &Match, named: FieldSet) -> model::Match {
    let masked = |field: Field| {
        let (value, mask) = from.field(field);
        (named.has(name(field)) && mask != 0).then_some((value, mask))
    };
    let full = |field: Field| masked(field).map(|(value, _)| value);
    let mac = |(value, mask)| Masked::<MacAddress>::new(mac_up(value), mac_up(mask));
    let ip = |(value, mask)| Masked::<Ipv4Addr>::new(ip_up(value), ip_up(mask));
    model::Match {
        in_port: full(Field::InPort).map(|port| port_up(port as u32)),
        eth_src: masked(Field::EthSrc).map(mac),
        eth_dst: masked(Field::EthDst).map(mac),
        vlan: masked(Field::Vlan).map(vlan_up),
        vlan_pcp: full(Field::VlanPriority).map(|priority| priority as u8),
        eth_type: full(Field::EthType).map(|kind| kind as u16),
        ip_dscp: full(Field::IpTos).map(|tos| (tos >> 2) as u8),
        ip_proto: full(Field::IpProto).map(|proto| proto as u8),
        ip_src: masked(Field::IpSrc).map(ip),
        ip_dst: masked(Field::IpDst).map(ip),
        transport_src: full(Field::L4Src).map(|port| port as u16),
        transport_dst: full(Field::L4Dst).map(|port| port as u16),
    }
}

struct Down {
    value: Key,
    mask: Key,
    named: FieldSet,
}

impl Down {
    fn full(&mut self, field: Field, value: Option<u64>) {
        self.masked(field, value.map(|value| (value, field.full())));
    }

    fn masked(&mut self, field: Field, wanted: Option<(u64, u64)>) {
        if let Some((value, mask)) = wanted {
            self.value.set(field, value);
            self.mask.set(field, mask);
            self.named = self.named.with(name(field));
        }
    }
}

fn vlan_down(vlan: VlanMatch) -> (u64, u64) {
    match vlan {
        VlanMatch::Untagged => (0, VLAN_PRESENT),
        VlanMatch::Tagged(id) => {
            (VLAN_PRESENT | u64::from(id.value), VLAN_PRESENT | u64::from(id.mask & 0xfff))
        }
    }
}

fn vlan_up((value, mask): (u64, u64)) -> VlanMatch {
    match value & VLAN_PRESENT {
        0 => VlanMatch::Untagged,
        _ => VlanMatch::Tagged(Masked::<u16>::new(value as u16 & 0xfff, mask as u16 & 0xfff)),
    }
}

fn mac_down(mac: MacAddress) -> u64 {
    mac.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

fn mac_up(bits: u64) -> MacAddress {
    std::array::from_fn(|at| (bits >> (40 - 8 * at)) as u8)
}

fn ip_down(ip: Masked<Ipv4Addr>) -> (u64, u64) {
    (ip.value.to_bits().into(), ip.mask.to_bits().into())
}

fn ip_up(bits: u64) -> Ipv4Addr {
    Ipv4Addr::from_bits(bits as u32)
}
