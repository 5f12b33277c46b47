//! What a target must hold before a trial, and the traffic that suits it.
//!
//! One [`Setup`] says the same thing to every technology: so many entries, hit in this order. An
//! OpenFlow switch gets flow entries that differ in their UDP ports, a bridge gets addresses, a
//! router gets C-class networks, as bianco2010 did (section IV.B). The frames follow from it, so
//! that every frame hits an entry and leaves by the target's second port.

use std::net::Ipv4Addr;

use instrument::stream::{Arrival, Field, Headers, Order, Rate, Stream, Values, Vary};

use crate::parameter::{Table, Traffic};
use crate::target::name::Technology;

/// What a target must hold, and in which order the traffic hits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setup {
    /// Which kind of entries.
    pub table: Table,
    /// How many.
    pub entries: u32,
    /// In which order they are hit.
    pub traffic: Traffic,
    /// Where everything random in the traffic starts.
    pub seed: u64,
}

/// The addresses at both ends of the two links between instrument and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The stations that the instrument plays behind its sending and its receiving port.
    pub instrument: [[u8; 6]; 2],
    /// The target's first and second port.
    pub target: [[u8; 6]; 2],
}

/// Address of a router's first port, on the sender's side.
pub const ROUTER_IN: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
/// Address of a router's second port.
pub const ROUTER_OUT: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);
/// The sender.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
/// The next hop behind a router's second port: the receiver.
pub const NEXT_HOP: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// Prefix length of the networks on a router's ports.
pub const PORT_PREFIX: u8 = 24;
/// The first of the C-class networks that a router holds routes to; the others follow upward.
pub const FIRST_NETWORK: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 0);
/// The first of the addresses behind a bridge's second port; the others follow upward.
pub const FIRST_MAC: u64 = 0x02_10_00_00_00_00;
/// UDP ports of the first flow; the others follow upward.
const FIRST_UDP_PORT: u16 = 1024;
/// How many UDP source ports flows use before the destination port moves on.
const UDP_SOURCES: u32 = 512;

impl Setup {
    /// One entry, one flow: what the studies call a single flow.
    pub fn single(seed: u64) -> Self {
        Setup { table: Table::One, entries: 1, traffic: Traffic::One, seed }
    }

    /// The stream of frames that hits these entries.
    pub fn stream(
        &self,
        technology: Technology,
        addresses: &Addresses,
        frame_bytes: u16,
        rate: Rate,
    ) -> Stream {
        let routed = technology == Technology::Routing;
        let mut headers = Headers {
            mac_source: addresses.instrument[0],
            mac_destination: match technology {
                Technology::Routing => addresses.target[0],
                Technology::Bridging => mac(FIRST_MAC),
                Technology::OpenFlow | Technology::Wire => addresses.instrument[1],
            },
            vlan: None,
            ip_source: SENDER,
            ip_destination: NEXT_HOP,
            ttl: 64,
            tos: 0,
            port_source: FIRST_UDP_PORT,
            port_destination: FIRST_UDP_PORT,
        };
        if routed {
            headers.ip_destination = host_in(0);
        }
        Stream {
            id: 1,
            from: 0,
            to: 1,
            frame_bytes: usize::from(frame_bytes),
            headers,
            vary: self.vary(technology),
            rate,
            arrival: if routed {
                Arrival::Routed {
                    mac_source: addresses.target[1],
                    mac_destination: addresses.instrument[1],
                }
            } else {
                Arrival::Unchanged
            },
        }
    }

    /// What differs from frame to frame, so that frames are spread over the entries.
    fn vary(&self, technology: Technology) -> Vec<Vary> {
        if self.entries <= 1 || self.traffic == Traffic::One {
            return Vec::new();
        }
        let count = u64::from(self.entries);
        let order = |salt: u64| match self.traffic {
            Traffic::Random => Order::Random { seed: self.seed.wrapping_add(salt) },
            Traffic::Sequential | Traffic::One => Order::Sequential,
        };
        let one =
            |field, values| vec![Vary { count, order: order(1), fields: vec![(field, values)] }];
        match technology {
            Technology::Bridging => {
                one(Field::MacDestination, Values::Range { first: FIRST_MAC, step: 1 })
            }
            Technology::Routing => {
                let first = u64::from(u32::from(host_in(0)));
                one(Field::IpDestination, Values::Range { first, step: 256 })
            }
            Technology::OpenFlow | Technology::Wire => self.vary_udp_ports(order(1)),
        }
    }

    /// Both UDP ports, one index for both, so that the flows are exactly those of
    /// [`Setup::udp_ports`].
    fn vary_udp_ports(&self, order: Order) -> Vec<Vary> {
        let ports: Vec<(u16, u16)> = (0..self.entries).map(udp_ports).collect();
        let list = |pick: fn(&(u16, u16)) -> u16| {
            Values::List(ports.iter().map(|pair| u64::from(pick(pair))).collect())
        };
        vec![Vary {
            count: u64::from(self.entries),
            order,
            fields: vec![
                (Field::PortSource, list(|pair| pair.0)),
                (Field::PortDestination, list(|pair| pair.1)),
            ],
        }]
    }
}

/// UDP source and destination port of an OpenFlow target's entry number `entry`.
pub fn udp_ports(entry: u32) -> (u16, u16) {
    let source = FIRST_UDP_PORT + (entry % UDP_SOURCES) as u16;
    let destination = FIRST_UDP_PORT + (entry / UDP_SOURCES) as u16;
    (source, destination)
}

/// The C-class network of a router's entry number `entry`.
pub fn network(entry: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FIRST_NETWORK) + (entry << 8))
}

/// The host in that network that frames are sent to.
pub fn host_in(entry: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(network(entry)) + 1)
}

/// The address of a bridge's entry number `entry`.
pub fn mac_of(entry: u32) -> [u8; 6] {
    mac(FIRST_MAC + u64::from(entry))
}

fn mac(value: u64) -> [u8; 6] {
    value.to_be_bytes()[2..].try_into().expect("six of eight bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ADDRESSES: Addresses = Addresses {
        instrument: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
        target: [[2, 0, 0, 0, 0, 3], [2, 0, 0, 0, 0, 4]],
    };

    fn check(technology: Technology, entry: impl Fn(&Headers) -> u64) {
        let setup =
            Setup { table: Table::Exact, entries: 131_072, traffic: Traffic::Sequential, seed: 1 };
        let rate = Rate::FramesPerSecond(1.0);
        let stream = setup.stream(technology, &ADDRESSES, 64, rate);
        assert_eq!(stream.validate(), []);
        let hit: HashSet<u64> =
            (0..u64::from(setup.entries)).map(|frame| entry(&stream.headers_at(frame))).collect();
        assert_eq!(hit.len(), 131_072, "{technology:?}");
    }

    #[test]
    fn sequential_traffic_hits_every_entry_of_the_largest_table() {
        check(Technology::OpenFlow, |headers| {
            u64::from(headers.port_source) << 16 | u64::from(headers.port_destination)
        });
        check(Technology::Bridging, |headers| {
            headers.mac_destination.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        });
        check(Technology::Routing, |headers| u64::from(u32::from(headers.ip_destination)));
    }

    #[test]
    fn every_frame_of_random_traffic_belongs_to_an_entry() {
        let setup = Setup { table: Table::Exact, entries: 700, traffic: Traffic::Random, seed: 7 };
        let entries: HashSet<(u16, u16)> = (0..700).map(udp_ports).collect();
        let stream = setup.stream(Technology::OpenFlow, &ADDRESSES, 64, Rate::FramesPerSecond(1.0));
        for frame in 0..10_000 {
            let headers = stream.headers_at(frame);
            assert!(entries.contains(&(headers.port_source, headers.port_destination)));
        }
    }
}
