//! Interfaces of a router for agents: port, hardware address and networks.

use core::net::IpAddr;

use packet::header::ethernet::Mac;

use super::{Around, Setup};
use crate::program::AgentSetting;

/// An address with its prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// Address of the interface.
    pub own: IpAddr,
    /// Prefix length.
    pub bits: u8,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Port number.
    pub port: u32,
    /// VLAN id; zero for untagged.
    pub vid: u16,
    /// Hardware address, if it differs from that of the port.
    pub mac: Option<Mac>,
    /// Addresses, the preferred source address first.
    pub networks: Vec<Network>,
}

impl Network {
    /// Parses `10.1.0.1/24` or `fd00::1/64`.
    fn read(text: &str) -> Option<Network> {
        let (address, bits) = text.split_once('/')?;
        let (own, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
        let most = if own.is_ipv4() { 32 } else { 128 };
        (bits <= most && is_host(own)).then_some(Network { own, bits })
    }

    /// Returns true if the network contains an address.
    pub fn holds(&self, address: IpAddr) -> bool {
        let (own, wide) = number(self.own);
        let (other, same) = number(address);
        let shift = wide - u32::from(self.bits);
        wide == same && own.checked_shr(shift) == other.checked_shr(shift)
    }

    /// Returns true for the broadcast address of the network (IPv4 only).
    pub fn is_broadcast(&self, address: IpAddr) -> bool {
        let shift = 32 - u32::from(self.bits.min(32));
        let last = |number: u128| shift > 1 && number & ((1 << shift) - 1) == (1 << shift) - 1;
        address.is_ipv4() && self.holds(address) && last(number(address).0)
    }
}

/// Returns an address as a number, and its width in bits.
fn number(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// Returns true if an address can belong to a host (RFC 1122 section 3.2.1.3, RFC 4291 section
/// 2.5).
pub fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            !(it.octets()[0] == 0 || it.is_loopback() || it.is_multicast() || it.octets()[0] >= 240)
        }
        IpAddr::V6(it) => !(it.is_unspecified() || it.is_loopback() || it.is_multicast()),
    }
}

impl Interface {
    /// Parses `<interface port="1" address="10.1.0.1/24 fd00::1/64"/>`.
    pub fn read<'a>(setup: &mut Setup<'a>, setting: &'a AgentSetting) -> Option<Interface> {
        let fields = setup.fields(setting, &["port", "address", "mac", "vlan"]);
        let (port, mac) = (setup.port(fields), setup.mac(fields, "mac"));
        let vid = setup.number(fields, "vlan", Some(0), 0..=4094);
        let mut networks = Vec::new();
        for text in setup.needed(fields, "address")?.split_ascii_whitespace() {
            match Network::read(text) {
                Some(network) => networks.push(network),
                None => setup.wrong(
                    fields,
                    "address",
                    format!("\"{text}\" is not a host address with a prefix length"),
                    "write it like 10.1.0.1/24 or fd00::1/64",
                ),
            }
        }
        Some(Interface { port: port?, vid: vid? as u16, mac, networks })
    }

    /// Returns the hardware address.
    pub fn mac(&self, around: &Around<'_>) -> Mac {
        self.mac.unwrap_or_else(|| around.mac_of(self.port))
    }

    /// Returns true if the interface has this address.
    pub fn has(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.own == address)
    }

    /// Returns true if one of its networks contains an address.
    pub fn reaches(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.holds(address))
    }

    /// Returns the source address for a destination: that of the same network, or the first of the
    /// same IP version.
    pub fn source_for(&self, address: IpAddr) -> Option<IpAddr> {
        let near = self.networks.iter().find(|network| network.holds(address));
        let same = self.networks.iter().find(|it| it.own.is_ipv4() == address.is_ipv4());
        near.or(same).map(|network| network.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        let network = |text| Network::read(text).unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for (text, inside, outside) in [
            ("10.1.0.1/24", "10.1.0.255", "10.1.1.0"),
            ("10.1.0.1/32", "10.1.0.1", "10.1.0.2"),
            ("10.1.0.1/0", "200.0.0.1", "::1"),
            ("fd00::1/64", "fd00::ffff:0:0:1", "fd00:0:0:1::1"),
            ("fd00::1/128", "fd00::1", "fd00::2"),
        ] {
            assert!(network(text).holds(address(inside)), "{text} {inside}");
            assert!(!network(text).holds(address(outside)), "{text} {outside}");
        }
        assert!(network("10.1.0.1/24").is_broadcast(address("10.1.0.255")));
        assert!(!network("10.1.0.1/31").is_broadcast(address("10.1.0.1")));
        for wrong in ["10.1.0.1", "10.1.0.1/33", "224.0.0.1/4", "::1/128", "fd00::1/129", "x/1"] {
            assert_eq!(Network::read(wrong), None, "{wrong}");
        }
    }
}
