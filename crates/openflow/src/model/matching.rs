//! Which frames an entry is for: fields with values and masks, without memory of their own.
//!
//! Source: OpenFlow 1.0.0 section 5.2.3 (`ofp_match`). A field that is `None` matches anything.
//! Values are kept with the bits outside their mask cleared, so that two matches that mean the
//! same are equal; build masked fields with `Masked::new` to keep it so.

use core::net::Ipv4Addr;
use std::fmt;

use super::bits::bits;
use super::port::{PortNo, ShowPort};
use crate::version::NO;

/// An Ethernet address.
pub type MacAddress = [u8; 6];

/// `eth_type` of a frame that has a length there and no SNAP header (`OFP_DL_TYPE_NOT_ETH_TYPE`).
pub const ETH_TYPE_NONE: u16 = 0x05ff;

/// A value of which only the bits in a mask count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Masked<T> {
    /// The value; zero outside of the mask.
    pub value: T,
    /// One bits count.
    pub mask: T,
}

/// What the VLAN tag has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VlanMatch {
    /// There is none.
    Untagged,
    /// There is one, and its id has this value in the bits of the mask: 0xfff for all twelve, 0
    /// for any tag. 1.0 can only say the former.
    Tagged(Masked<u16>),
}

/// Fields of a frame and of how it came in; `None` matches anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Match {
    /// The port that the frame came in on.
    pub in_port: Option<PortNo>,
    /// Source address; 1.0 knows only a full mask.
    pub eth_src: Option<Masked<MacAddress>>,
    /// Destination address; 1.0 knows only a full mask.
    pub eth_dst: Option<Masked<MacAddress>>,
    /// The VLAN tag and its id.
    pub vlan: Option<VlanMatch>,
    /// VLAN priority, 0 to 7.
    pub vlan_pcp: Option<u8>,
    /// Ethernet type after the tag, or [`ETH_TYPE_NONE`].
    pub eth_type: Option<u16>,
    /// DSCP, 0 to 63: the upper six bits of the byte once called type of service.
    pub ip_dscp: Option<u8>,
    /// IPv4 protocol, or the lower byte of the ARP operation.
    pub ip_proto: Option<u8>,
    /// IPv4 source, or the ARP sender; 1.0 knows only prefix masks.
    pub ip_src: Option<Masked<Ipv4Addr>>,
    /// IPv4 destination, or the ARP target; 1.0 knows only prefix masks.
    pub ip_dst: Option<Masked<Ipv4Addr>>,
    /// TCP or UDP source port, or ICMP type.
    pub transport_src: Option<u16>,
    /// TCP or UDP destination port, or ICMP code.
    pub transport_dst: Option<u16>,
}

bits! {
    /// A set of match fields, such as those that a table can wildcard. The columns are the
    /// lowest bit of each field in the 1.0 wildcards; later versions number fields otherwise.
    Fields {
        //                                            1.0 1.1 1.2 1.3 1.4 1.5
        /// [`Match::in_port`].
        IN_PORT "in_port"                            [ 0, NO, NO, NO, NO, NO];
        /// [`Match::vlan`].
        VLAN "vlan"                                  [ 1, NO, NO, NO, NO, NO];
        /// [`Match::eth_src`].
        ETH_SRC "eth_src"                            [ 2, NO, NO, NO, NO, NO];
        /// [`Match::eth_dst`].
        ETH_DST "eth_dst"                            [ 3, NO, NO, NO, NO, NO];
        /// [`Match::eth_type`].
        ETH_TYPE "eth_type"                          [ 4, NO, NO, NO, NO, NO];
        /// [`Match::ip_proto`].
        IP_PROTO "ip_proto"                          [ 5, NO, NO, NO, NO, NO];
        /// [`Match::transport_src`].
        TRANSPORT_SRC "transport_src"                [ 6, NO, NO, NO, NO, NO];
        /// [`Match::transport_dst`].
        TRANSPORT_DST "transport_dst"                [ 7, NO, NO, NO, NO, NO];
        /// [`Match::ip_src`].
        IP_SRC "ip_src"                              [ 8, NO, NO, NO, NO, NO];
        /// [`Match::ip_dst`].
        IP_DST "ip_dst"                              [14, NO, NO, NO, NO, NO];
        /// [`Match::vlan_pcp`].
        VLAN_PCP "vlan_pcp"                          [20, NO, NO, NO, NO, NO];
        /// [`Match::ip_dscp`].
        IP_DSCP "ip_dscp"                            [21, NO, NO, NO, NO, NO];
    }
}

/// A value whose bits can be masked one by one.
pub trait Maskable: Copy + Eq {
    /// All bits count.
    const ONES: Self;
    /// Only the bits of `mask`.
    #[must_use]
    fn masked(self, mask: Self) -> Self;
}

impl Maskable for MacAddress {
    const ONES: MacAddress = [0xff; 6];
    fn masked(self, mask: MacAddress) -> MacAddress {
        std::array::from_fn(|at| self[at] & mask[at])
    }
}

impl Maskable for Ipv4Addr {
    const ONES: Ipv4Addr = Ipv4Addr::BROADCAST;
    fn masked(self, mask: Ipv4Addr) -> Ipv4Addr {
        self & mask
    }
}

impl Maskable for u16 {
    const ONES: u16 = u16::MAX;
    fn masked(self, mask: u16) -> u16 {
        self & mask
    }
}

impl<T: Maskable> Masked<T> {
    /// This value in the bits of `mask`.
    pub fn new(value: T, mask: T) -> Self {
        Masked { value: value.masked(mask), mask }
    }

    /// Exactly this value.
    pub fn exact(value: T) -> Self {
        Masked { value, mask: T::ONES }
    }

    /// Whether every bit counts.
    pub fn is_exact(&self) -> bool {
        self.mask == T::ONES
    }

    /// Whether `value` has the bits that count.
    pub fn holds(&self, value: T) -> bool {
        value.masked(self.mask) == self.value
    }
}

impl Masked<Ipv4Addr> {
    /// The addresses whose first `length` bits (at most 32) are those of `value`.
    pub fn prefix(value: Ipv4Addr, length: u8) -> Self {
        assert!(length <= 32, "an IPv4 address has 32 bits");
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        Masked::new(value, Ipv4Addr::from(mask))
    }

    /// How many leading bits count, if the mask is a prefix.
    pub fn prefix_length(&self) -> Option<u8> {
        let mask = u32::from(self.mask);
        let length = mask.leading_ones();
        (mask.count_ones() == length).then_some(length as u8)
    }
}

impl VlanMatch {
    /// A tag with exactly this id, 0 to 4095.
    pub fn id(id: u16) -> VlanMatch {
        VlanMatch::Tagged(Masked::new(id, 0xfff))
    }
}

impl Match {
    /// Matches every frame.
    pub const ANY: Match = Match {
        in_port: None,
        eth_src: None,
        eth_dst: None,
        vlan: None,
        vlan_pcp: None,
        eth_type: None,
        ip_dscp: None,
        ip_proto: None,
        ip_src: None,
        ip_dst: None,
        transport_src: None,
        transport_dst: None,
    };
}

pub(crate) fn show_mac(f: &mut fmt::Formatter<'_>, mac: &MacAddress) -> fmt::Result {
    let [a, b, c, d, e, g] = mac;
    write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
}

fn show_mac_field(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    field: &Masked<MacAddress>,
) -> fmt::Result {
    f.write_str(name)?;
    show_mac(f, &field.value)?;
    if !field.is_exact() {
        f.write_str("/")?;
        show_mac(f, &field.mask)?;
    }
    Ok(())
}

fn show_ip_field(f: &mut fmt::Formatter<'_>, name: &str, field: &Masked<Ipv4Addr>) -> fmt::Result {
    write!(f, "{name}{}", field.value)?;
    match field.prefix_length() {
        Some(32) => Ok(()),
        Some(length) => write!(f, "/{length}"),
        None => write!(f, "/{}", field.mask),
    }
}

impl fmt::Display for VlanMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VlanMatch::Untagged => f.write_str("vlan=untagged"),
            VlanMatch::Tagged(Masked { mask: 0, .. }) => f.write_str("vlan=any"),
            VlanMatch::Tagged(Masked { value, mask: 0xfff }) => write!(f, "vlan={value}"),
            VlanMatch::Tagged(Masked { value, mask }) => write!(f, "vlan={value:#x}/{mask:#x}"),
        }
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Match::ANY {
            return f.write_str("any");
        }
        let mut comma = "";
        let mut next = || std::mem::replace(&mut comma, ",");
        macro_rules! field {
            ($name:ident, $format:literal $(, $show:expr)?) => {
                if let Some($name) = self.$name {
                    write!(f, $format, next() $(, $show)?)?;
                }
            };
        }
        field!(in_port, "{}in_port={}", ShowPort(in_port));
        if let Some(mac) = &self.eth_src {
            f.write_str(next())?;
            show_mac_field(f, "eth_src=", mac)?;
        }
        if let Some(mac) = &self.eth_dst {
            f.write_str(next())?;
            show_mac_field(f, "eth_dst=", mac)?;
        }
        field!(vlan, "{}{vlan}");
        field!(vlan_pcp, "{}vlan_pcp={vlan_pcp}");
        field!(eth_type, "{}eth_type={eth_type:#06x}");
        field!(ip_dscp, "{}ip_dscp={ip_dscp}");
        field!(ip_proto, "{}ip_proto={ip_proto}");
        if let Some(ip) = &self.ip_src {
            f.write_str(next())?;
            show_ip_field(f, "ip_src=", ip)?;
        }
        if let Some(ip) = &self.ip_dst {
            f.write_str(next())?;
            show_ip_field(f, "ip_dst=", ip)?;
        }
        field!(transport_src, "{}transport_src={transport_src}");
        field!(transport_dst, "{}transport_dst={transport_dst}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_clear_what_does_not_count() {
        let net = Masked::prefix(Ipv4Addr::new(10, 1, 2, 3), 15);
        assert_eq!(net.value, Ipv4Addr::new(10, 0, 0, 0));
        assert_eq!(net.prefix_length(), Some(15));
        assert_eq!(Masked::prefix(net.value, 0).mask, Ipv4Addr::UNSPECIFIED);
        let odd = Masked::new(net.value, Ipv4Addr::new(255, 0, 255, 0));
        assert_eq!(odd.prefix_length(), None);
    }

    #[test]
    fn a_match_prints_its_fields_in_order() {
        let all = Match {
            in_port: Some(1),
            eth_src: Some(Masked::exact([2, 0, 0, 0, 0, 0xa])),
            vlan: Some(VlanMatch::Untagged),
            eth_type: Some(0x800),
            ip_src: Some(Masked::prefix(Ipv4Addr::new(10, 9, 9, 9), 8)),
            transport_dst: Some(80),
            ..Match::ANY
        };
        let want = "in_port=1,eth_src=02:00:00:00:00:0a,vlan=untagged,eth_type=0x0800,\
                    ip_src=10.0.0.0/8,transport_dst=80";
        assert_eq!(all.to_string(), want);
        assert_eq!(Match::ANY.to_string(), "any");
        assert_eq!(Match::default(), Match::ANY);
    }
}
