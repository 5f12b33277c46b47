//! Matches as bytes.
//!
//! Source: OpenFlow 1.0.0 section 5.2.3.
//! ```text
//! wildcards:4 in_port:2 eth_src:6 eth_dst:6 vlan_vid:2 vlan_pcp:1 pad:1
//! eth_type:2 tos:1 proto:1 pad:2 ip_src:4 ip_dst:4 transport_src:2 transport_dst:2
//! ```
//! A set wildcard bit means that the field does not count; the six bits for an IP address say how
//! many of its low bits do not, and 32 or more mean none does. Fields that do not count are
//! written as zero and not looked at when read.

use core::net::Ipv4Addr;

use super::bytes::Reader;
use super::port::{port_from_wire, port_to_wire};
use super::{Fault, What};
use crate::model::matching::{MacAddress, Masked, Match, VlanMatch};
use crate::version::Version;

/// Bytes of a 1.0 match.
const MATCH_BYTES: usize = 40;

/// `vlan_vid` of a frame without a tag.
const VLAN_NONE: u16 = 0xffff;

const VLAN_ID_MASK: u16 = 0xfff;

mod wildcard {
    pub const IN_PORT: u32 = 1 << 0;
    pub const VLAN: u32 = 1 << 1;
    pub const ETH_SRC: u32 = 1 << 2;
    pub const ETH_DST: u32 = 1 << 3;
    pub const ETH_TYPE: u32 = 1 << 4;
    pub const IP_PROTO: u32 = 1 << 5;
    pub const TRANSPORT_SRC: u32 = 1 << 6;
    pub const TRANSPORT_DST: u32 = 1 << 7;
    pub const IP_SRC_SHIFT: u32 = 8;
    pub const IP_DST_SHIFT: u32 = 14;
    pub const VLAN_PCP: u32 = 1 << 20;
    pub const IP_DSCP: u32 = 1 << 21;
}

/// The fields that have been written, and the wildcards for those that have not.
struct Writer {
    bytes: [u8; MATCH_BYTES],
    wildcards: u32,
}

impl Writer {
    fn put<const N: usize>(&mut self, at: usize, bit: u32, value: Option<[u8; N]>) {
        match value {
            Some(value) => self.bytes[at..at + N].copy_from_slice(&value),
            None => self.wildcards |= bit,
        }
    }

    fn put_ip(
        &mut self,
        at: usize,
        shift: u32,
        field: &'static str,
        value: Option<Masked<Ipv4Addr>>,
    ) -> Result<(), What> {
        let length = match value {
            Some(ip) => ip.prefix_length().ok_or(What::Mask(field))?,
            None => 0,
        };
        if let Some(ip) = value {
            self.bytes[at..at + 4].copy_from_slice(&(ip.value & ip.mask).octets());
        }
        self.wildcards |= (32 - u32::from(length)) << shift;
        Ok(())
    }
}

/// Appends the match.
pub(super) fn put_match(version: Version, value: &Match, out: &mut Vec<u8>) -> Result<(), What> {
    let mut writer = Writer { bytes: [0; MATCH_BYTES], wildcards: 0 };
    let in_port = value.in_port.map(|port| port_to_wire(version, port)).transpose()?;
    writer.put(4, wildcard::IN_PORT, in_port.map(u16::to_be_bytes));
    writer.put(6, wildcard::ETH_SRC, mac("eth_src", value.eth_src)?);
    writer.put(12, wildcard::ETH_DST, mac("eth_dst", value.eth_dst)?);
    writer.put(18, wildcard::VLAN, vlan(value.vlan)?.map(u16::to_be_bytes));
    let pcp = value.vlan_pcp.map(|pcp| in_range("vlan_pcp", pcp, 7)).transpose()?;
    writer.put(20, wildcard::VLAN_PCP, pcp.map(u8::to_be_bytes));
    writer.put(22, wildcard::ETH_TYPE, value.eth_type.map(u16::to_be_bytes));
    let dscp = value.ip_dscp.map(|dscp| in_range("ip_dscp", dscp, 63)).transpose()?;
    writer.put(24, wildcard::IP_DSCP, dscp.map(|dscp| [dscp << 2]));
    writer.put(25, wildcard::IP_PROTO, value.ip_proto.map(u8::to_be_bytes));
    writer.put_ip(28, wildcard::IP_SRC_SHIFT, "ip_src", value.ip_src)?;
    writer.put_ip(32, wildcard::IP_DST_SHIFT, "ip_dst", value.ip_dst)?;
    writer.put(36, wildcard::TRANSPORT_SRC, value.transport_src.map(u16::to_be_bytes));
    writer.put(38, wildcard::TRANSPORT_DST, value.transport_dst.map(u16::to_be_bytes));
    writer.bytes[..4].copy_from_slice(&writer.wildcards.to_be_bytes());
    out.extend_from_slice(&writer.bytes);
    Ok(())
}

/// Refuses values above `most`.
pub(super) fn in_range(field: &'static str, value: u8, most: u8) -> Result<u8, What> {
    if value > most { Err(What::Value { field, value: value.into() }) } else { Ok(value) }
}

fn mac(field: &'static str, value: Option<Masked<MacAddress>>) -> Result<Option<MacAddress>, What> {
    match value {
        Some(value) if !value.is_exact() => Err(What::Mask(field)),
        value => Ok(value.map(|value| value.value)),
    }
}

fn vlan(value: Option<VlanMatch>) -> Result<Option<u16>, What> {
    match value {
        None => Ok(None),
        Some(VlanMatch::Untagged) => Ok(Some(VLAN_NONE)),
        Some(VlanMatch::Tagged(Masked { value, mask: VLAN_ID_MASK })) if value <= VLAN_ID_MASK => {
            Ok(Some(value))
        }
        Some(VlanMatch::Tagged(Masked { value, mask: VLAN_ID_MASK })) => {
            Err(What::Value { field: "vlan", value: value.into() })
        }
        Some(VlanMatch::Tagged(_)) => Err(What::Mask("vlan")),
    }
}

/// Reads a match.
pub(super) fn read_match(version: Version, reader: &mut Reader) -> Result<Match, Fault> {
    let bytes = reader.array::<MATCH_BYTES>()?;
    let wildcards = u32::from_be_bytes(part(&bytes, 0));
    let counts = |bit: u32| wildcards & bit == 0;
    let u16_at = |at| u16::from_be_bytes(part(&bytes, at));
    let vlan = match u16_at(18) {
        VLAN_NONE => VlanMatch::Untagged,
        vid => VlanMatch::id(vid),
    };
    let in_port = port_from_wire(version, u16_at(4));
    Ok(Match {
        in_port: counts(wildcard::IN_PORT).then_some(in_port),
        eth_src: counts(wildcard::ETH_SRC).then_some(Masked::exact(part(&bytes, 6))),
        eth_dst: counts(wildcard::ETH_DST).then_some(Masked::exact(part(&bytes, 12))),
        vlan: counts(wildcard::VLAN).then_some(vlan),
        vlan_pcp: counts(wildcard::VLAN_PCP).then_some(bytes[20] & 7),
        eth_type: counts(wildcard::ETH_TYPE).then_some(u16_at(22)),
        ip_dscp: counts(wildcard::IP_DSCP).then_some(bytes[24] >> 2),
        ip_proto: counts(wildcard::IP_PROTO).then_some(bytes[25]),
        ip_src: prefix(part(&bytes, 28), wildcards >> wildcard::IP_SRC_SHIFT),
        ip_dst: prefix(part(&bytes, 32), wildcards >> wildcard::IP_DST_SHIFT),
        transport_src: counts(wildcard::TRANSPORT_SRC).then_some(u16_at(36)),
        transport_dst: counts(wildcard::TRANSPORT_DST).then_some(u16_at(38)),
    })
}

/// The `N` bytes of a match from offset `at` on.
#[inline]
fn part<const N: usize>(bytes: &[u8; MATCH_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|place| bytes[at + place])
}

/// The address whose low bits, as many as the lowest six bits of `wildcards` say, do not count.
fn prefix(octets: [u8; 4], wildcards: u32) -> Option<Masked<Ipv4Addr>> {
    match wildcards & 63 {
        open @ 0..32 => Some(Masked::prefix(octets.into(), 32 - open as u8)),
        _ => None,
    }
}
