//! Configuration of a router as a TOML file: interfaces, static routes and static neighbours.
//!
//! ```toml
//! cache = 0                          # entries of the destination cache; 0 for no cache
//! [[interface]]
//! port = 1
//! mac = "02:00:00:00:01:01"          # default: the port's own
//! mtu = 1500                         # default: the maximum of the port
//! addresses = ["10.0.1.1/24"]
//! [[route]]
//! to = "10.9.0.0/16"
//! via = "10.0.1.2"                   # without it the destination is directly connected
//! port = 1                           # optional if an interface has the network of via
//! [[neighbour]]
//! port = 1
//! address = "10.0.1.2"
//! mac = "02:00:00:00:01:02"
//! ```

use std::collections::HashSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use packet::frame::PortNo;
use serde::{Deserialize, Deserializer};

use super::{FLOWS_MAX, FileError, PortConfig, Problem};

/// Maximum number of interfaces, and of addresses of one interface.
pub const INTERFACES_MAX: usize = 256;

/// An IPv4 router.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterConfig {
    /// Entries of the destination cache in front of the route table; 0 for no cache.
    pub cache: usize,
    /// Maximum number of routes.
    pub routes_max: usize,
    /// Maximum number of neighbours.
    pub neighbours_max: usize,
    /// Interfaces, at most one on each port.
    pub interface: Vec<Interface>,
    /// Static routes.
    pub route: Vec<Route>,
    /// Static neighbours.
    pub neighbour: Vec<Neighbour>,
}

/// One interface of the router.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Its port.
    pub port: PortNo,
    /// Its MAC address. The default is the port's own.
    pub mac: Option<Mac>,
    /// Its MTU in bytes. The default is the maximum of its port.
    pub mtu: Option<u16>,
    /// Its IPv4 addresses, each with the prefix length of its network.
    pub addresses: Vec<Prefix>,
}

/// One static route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The destination prefix.
    pub to: Prefix,
    /// The next hop. Without one the destination is directly connected.
    pub via: Option<Ipv4Addr>,
    /// The output port. Optional if an interface has the network of the next hop.
    pub port: Option<PortNo>,
}

/// One static neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    /// The port through which it is reached.
    pub port: PortNo,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its MAC address.
    pub mac: Mac,
}

impl Default for RouterConfig {
    fn default() -> Self {
        RouterConfig {
            cache: 0,
            routes_max: 1 << 20,
            neighbours_max: 1 << 17,
            interface: Vec::new(),
            route: Vec::new(),
            neighbour: Vec::new(),
        }
    }
}

impl RouterConfig {
    /// Parses the configuration of a router from TOML.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        toml::from_str(text).map_err(|error| FileError::new(text, &error))
    }

    /// Returns the port towards `via`: that of the interface with its network.
    pub fn port_towards(&self, via: Ipv4Addr) -> Option<PortNo> {
        let leads = |interface: &&Interface| interface.addresses.iter().any(|net| net.holds(via));
        self.interface.iter().find(leads).map(|interface| interface.port)
    }

    pub(super) fn validate(&self, ports: &[PortConfig], problems: &mut Vec<Problem>) {
        let known = |number: PortNo| ports.iter().any(|port| port.number == number);
        for (key, have) in [
            ("cache", self.cache),
            ("routes_max", self.routes_max),
            ("neighbours_max", self.neighbours_max),
        ] {
            problems.extend(Problem::check(key, have as u64, 0, FLOWS_MAX as u64));
        }
        for (key, have, max) in [
            ("interface", self.interface.len(), INTERFACES_MAX),
            ("route", self.route.len(), self.routes_max),
            ("neighbour", self.neighbour.len(), self.neighbours_max),
        ] {
            if have > max {
                problems.push(Problem::TooMany { key, have, max });
            }
        }
        let mut seen = HashSet::new();
        for interface in &self.interface {
            let (port, addresses) = (interface.port, interface.addresses.len());
            if !known(port) {
                problems.push(Problem::NoSuchPort { key: "interface", port });
            }
            if !seen.insert(port) {
                problems.push(Problem::InterfaceTwice(port));
            }
            if interface.mac.is_some_and(|mac| !mac.is_station()) {
                problems.push(Problem::BadMac(port));
            }
            if addresses > INTERFACES_MAX {
                let (have, max) = (addresses, INTERFACES_MAX);
                problems.push(Problem::TooMany { key: "addresses", have, max });
            }
        }
        for route in &self.route {
            match (route.port, route.via) {
                (Some(port), _) if !known(port) => {
                    problems.push(Problem::NoSuchPort { key: "route", port });
                }
                (None, Some(via)) if self.port_towards(via).is_none() => {
                    problems.push(Problem::Unreachable(via));
                }
                (None, None) => problems.push(Problem::Unreachable(route.to.address)),
                _ => {}
            }
        }
        let ports = self.neighbour.iter().map(|neighbour| neighbour.port);
        for port in ports.filter(|&port| !known(port)).collect::<HashSet<_>>() {
            problems.push(Problem::NoSuchPort { key: "neighbour", port });
        }
    }
}

/// An IPv4 address with a prefix length, written `10.0.1.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The address, including its host bits.
    pub address: Ipv4Addr,
    /// Prefix length, 0 to 32.
    pub bits: u8,
}

impl Prefix {
    /// Returns the network mask in host byte order.
    pub fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0)
    }

    /// Returns the first address of the network.
    pub fn network(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() & self.mask())
    }

    /// Whether `address` is in the network.
    pub fn holds(self, address: Ipv4Addr) -> bool {
        (self.address.to_bits() ^ address.to_bits()) & self.mask() == 0
    }
}

impl FromStr for Prefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "not an address with a prefix length (hint: write it like 10.0.1.0/24)";
        let (address, bits) = text.split_once('/').ok_or(wrong)?;
        let address = address.parse().map_err(|_| wrong)?;
        let bits = bits.parse().ok().filter(|&bits: &u8| bits <= 32).ok_or(wrong)?;
        Ok(Prefix { address, bits })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// A MAC address, written `02:00:00:00:01:01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Whether it is a unicast address other than zero.
    pub fn is_station(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl FromStr for Mac {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "not a MAC address (hint: write it like 02:00:00:00:01:01)";
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(wrong)?;
            let digits = part.bytes().all(|digit| digit.is_ascii_hexdigit());
            *byte = u8::from_str_radix(part, 16).ok().filter(|_| digits).ok_or(wrong)?;
        }
        if parts.next().is_some() { Err(wrong) } else { Ok(Mac(mac)) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

fn from_text<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err = &'static str>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(from)?;
    text.parse().map_err(|why| serde::de::Error::custom(format!("{text:?}: {why}")))
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from_text(from)
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from_text(from)
    }
}
