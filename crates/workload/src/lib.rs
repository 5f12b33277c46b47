//! Set-up of a target before a trial, and the matching traffic.
//!
//! One [`Setup`] has the same meaning for every technology: this many entries, hit in this order. An OpenFlow switch
//! gets flow entries that differ in their UDP ports, a bridge gets addresses, and a router gets class C networks, as
//! in bianco2010 (section IV.B). The frames follow from the set-up, so that every frame hits an entry and leaves by
//! the target's second port.

pub mod parameter;
pub mod nearest;
pub mod acl;
pub mod prefixes;
mod technology;
pub mod parts;
pub mod mesh;
pub mod tags;

pub use technology::Technology;

use std::net::Ipv4Addr;

use tester::stream::{Arrival, Field, FieldVariation, Headers, IndexOrder, Rate, Stream, Values};

use crate::parameter::{Rules, Style, Table, Traffic};

/// Set-up of a target, and the order in which traffic hits its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setup {
    /// Kind of entries.
    pub table: Table,
    /// Number of entries; for an access list, number of rules, some of which become several entries.
    pub entries: u32,
    /// Order in which they are hit.
    pub traffic: Traffic,
    /// Fields that wildcard entries match.
    pub rules: Rules,
    /// Style of an access list.
    pub style: Style,
    /// Seed of all random choices in the traffic.
    pub seed: u64,
    /// Offset of the source address of OpenFlow flows, so that different set-ups have different flows.
    pub shift: u32,
    /// Whether the target has to be created again before.
    pub is_fresh: bool,
    /// Number of the target's ports minus one. With two inputs, the second of two flows, over the second half of the
    /// entries, enters by the third port.
    pub inputs: u8,
    /// Number of flows that share the target, with equal parts of the entries.
    pub parts: u8,
}

/// Limit of a target's ports.
pub const PORTS_MAX: usize = 8;

/// The addresses at both ends of the links between tester and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The stations that the tester simulates behind its sending port, its receiving port, and further ports.
    pub instrument: [[u8; 6]; PORTS_MAX],
    /// The target's first port, second port, and further ports.
    pub target: [[u8; 6]; PORTS_MAX],
}

impl Addresses {
    /// Returns addresses that differ in their last byte, which counts from 1.
    pub const fn numbered(instrument: [u8; 5], target: [u8; 5]) -> Addresses {
        const fn row(base: [u8; 5]) -> [[u8; 6]; PORTS_MAX] {
            let mut all = [[0; 6]; PORTS_MAX];
            let mut place = 0;
            while place < PORTS_MAX {
                all[place] = [base[0], base[1], base[2], base[3], base[4], place as u8 + 1];
                place += 1;
            }
            all
        }
        Addresses { instrument: row(instrument), target: row(target) }
    }

    /// Replaces the target's addresses by those of the router that an OpenFlow switch emulates. They belong to no
    /// interface, so that no kernel takes the frames that the switch is to route.
    #[must_use]
    pub const fn routed(self) -> Addresses {
        Addresses { instrument: self.instrument, ..Addresses::numbered([0; 5], ROUTER_MACS) }
    }
}

/// Prefix of the MAC addresses of a router that an OpenFlow switch emulates.
const ROUTER_MACS: [u8; 5] = [2, 0x52, 0, 0, 0];

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
/// The first of the class C networks in a router's routes; the others follow upward.
pub const FIRST_NETWORK: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 0);
/// The first of the addresses behind a bridge's second port; the others follow upward.
pub const FIRST_MAC: u64 = 0x02_10_00_00_00_00;
/// UDP ports of the first flow; the others follow upward.
const FIRST_UDP_PORT: u16 = 1024;
/// Limit of wildcard entries in a chain.
const CHAIN_WILDCARDS_MAX: u32 = 100;
/// Number of different headers in traffic whose rules match one of two ports. The other port's values must repeat
/// often enough to affect caches.
const EITHER_HEADERS: u64 = 1 << 18;
/// Number of different headers of an access list's traffic: as many as fit into Open vSwitch's caches.
const ACL_HEADERS: u64 = 1 << 17;
/// Seed of access lists and their headers, the same in every run.
const ACL_SEED: u64 = 0x61_63_6c;
/// Number of UDP source ports in use before the destination port advances.
const UDP_SOURCES: u32 = 512;

impl Setup {
    /// Returns a set-up with one entry and one flow, which the studies call a single flow.
    pub fn single(seed: u64) -> Self {
        let (table, traffic, rules) = (Table::One, Traffic::One, Rules::Ports);
        let (style, shift, is_fresh, inputs, parts) = (Style::Acl, 0, false, 1, 2);
        Setup { table, entries: 1, traffic, rules, style, seed, shift, is_fresh, inputs, parts }
    }

    /// Returns the same set-up with its entries hit in turn, so that every flow occurs soon.
    pub fn tour(&self) -> Setup {
        match self.traffic {
            Traffic::One => *self,
            Traffic::Random | Traffic::Zipf | Traffic::Sequential => {
                Setup { traffic: Traffic::Sequential, ..*self }
            }
        }
    }

    /// Returns the number of frames after which such a pass has shown every flow that a switch may cache.
    pub fn flows(&self) -> u64 {
        match (self.traffic, self.table, self.rules) {
            (Traffic::One, ..) => 1,
            (_, Table::Chain, _) => self.chain_picks(),
            (_, Table::Wildcard, Rules::Either) => EITHER_HEADERS,
            (_, Table::Acl, _) => ACL_HEADERS,
            _ => self.entries.into(),
        }
    }

    /// Returns whether routers hold prefixes as in the Internet's routing table.
    fn has_prefixes(&self) -> bool {
        self.table == Table::Lpm
    }

    /// Returns the number of wildcard entries: in a chain, the last ones.
    pub fn wildcards(&self) -> u32 {
        match self.table {
            Table::Wildcard | Table::Lpm | Table::Mac | Table::Acl => self.entries,
            Table::Macs | Table::Hosts | Table::Datagrams => 1,
            Table::Chain => (self.entries / 2).min(CHAIN_WILDCARDS_MAX),
            _ => 0,
        }
    }

    fn chain_picks(&self) -> u64 {
        2 * u64::from(self.entries - self.wildcards())
    }

    /// Returns the technology that the frames see: an OpenFlow switch that routes is a router.
    fn played(&self, technology: Technology) -> Technology {
        match (technology, self.table) {
            (Technology::OpenFlow, Table::Routed) => Technology::Routing,
            (own, _) => own,
        }
    }

    /// Returns the stream of frames that hits these entries.
    pub fn stream(
        &self,
        technology: Technology,
        addresses: &Addresses,
        frame_bytes: u16,
        rate: Rate,
    ) -> Stream {
        let is_played = self.table == Table::Routed && technology == Technology::OpenFlow;
        let addresses = &if is_played { addresses.routed() } else { *addresses };
        let technology = self.played(technology);
        let routed = technology == Technology::Routing;
        let mac_destination = match technology {
            Technology::Routing => addresses.target[0],
            Technology::Bridging => mac(FIRST_MAC),
            Technology::OpenFlow | Technology::Tagging | Technology::Wire => {
                addresses.instrument[1]
            }
        };
        let ip_source = Ipv4Addr::from_bits(SENDER.to_bits().wrapping_add(self.shift));
        let mut headers = Headers::udp(
            (addresses.instrument[0], mac_destination),
            (ip_source, NEXT_HOP),
            (FIRST_UDP_PORT, FIRST_UDP_PORT),
        );
        if routed {
            headers.ip_destination = match self.has_prefixes() {
                true => prefixes::host(prefixes::prefixes(1)[0], 0).into(),
                false => host_in(0),
            };
        }
        if self.tags() || technology == Technology::Tagging {
            let plain = Stream::plain(1, frame_bytes.into(), headers, rate);
            return self.with_rules(plain, technology, self.order(1));
        }
        let mut stream = Stream {
            vary: self.vary(technology),
            arrival: if routed {
                Arrival::Routed {
                    mac_source: addresses.target[1],
                    mac_destination: addresses.instrument[1],
                }
            } else {
                Arrival::Unchanged
            },
            ..Stream::plain(1, frame_bytes.into(), headers, rate)
        };
        let names_ports = !matches!(technology, Technology::Bridging | Technology::Routing);
        if stream.vary.is_empty() && names_ports {
            let flows = self.vary_flows(|_| IndexOrder::Sequential);
            stream.headers = Stream { vary: flows, ..stream.clone() }.flow(0);
        }
        stream
    }

    /// Returns frames from each station that a bridge must learn, in turn, to the sender of the traffic; `None` if
    /// there is nothing to learn.
    pub fn learning(&self, addresses: &Addresses, rate: Rate) -> Option<Stream> {
        if self.table != Table::Learned {
            return None;
        }
        let one = Setup { entries: 1, traffic: Traffic::One, ..*self };
        let stream = one.stream(Technology::Bridging, addresses, 64, rate);
        let headers = Headers {
            mac_source: mac(FIRST_MAC),
            mac_destination: addresses.instrument[0],
            ..stream.headers
        };
        let stations = Values::Range { first: FIRST_MAC, step: 1 };
        let (count, order) = (self.entries.into(), IndexOrder::Sequential);
        let vary =
            vec![FieldVariation { count, order, fields: vec![(Field::MacSource, stations)] }];
        Some(Stream { from: 1, to: 0, headers, vary, ..stream })
    }

    /// Returns the fields that vary between frames, so that frames are spread over the entries.
    fn vary(&self, technology: Technology) -> Vec<FieldVariation> {
        if self.entries <= 1 || self.traffic == Traffic::One {
            return Vec::new();
        }
        let count = u64::from(self.entries);
        let order = |salt: u64| self.order(salt);
        let one = |field, values| {
            vec![FieldVariation { count, order: order(1), fields: vec![(field, values)] }]
        };
        match technology {
            Technology::Bridging => {
                one(Field::MacDestination, Values::Range { first: FIRST_MAC, step: 1 })
            }
            Technology::Routing if self.has_prefixes() => self.vary_flows(order),
            Technology::Routing => {
                let first = u64::from(u32::from(host_in(0)));
                one(Field::IpDestination, Values::Range { first, step: 256 })
            }
            Technology::OpenFlow | Technology::Tagging | Technology::Wire => self.vary_flows(order),
        }
    }

    /// Returns the order in which one of several draws of a frame goes over the entries.
    fn order(&self, salt: u64) -> IndexOrder {
        match self.traffic {
            // One Zipf distribution is enough if a frame draws twice.
            Traffic::Zipf if salt == 1 => IndexOrder::Zipf { seed: self.seed },
            Traffic::Random | Traffic::Zipf => {
                IndexOrder::Random { seed: self.seed.wrapping_add(salt) }
            }
            Traffic::Sequential | Traffic::One => IndexOrder::Sequential,
        }
    }

    /// Returns the varying fields. Every frame matches an entry. The frames are distributed evenly
    /// over the entries, or in a chain half to its exact and half to its wildcard entries.
    fn vary_flows(&self, order: impl Fn(u64) -> IndexOrder) -> Vec<FieldVariation> {
        let entries = u64::from(self.entries);
        let range = |count, order, field, first, step| FieldVariation {
            count,
            order,
            fields: vec![(field, Values::Range { first, step })],
        };
        match (self.table, self.rules) {
            (Table::Wildcard, Rules::Addresses) => {
                let first = u64::from(u32::from(host_in(0)));
                vec![
                    range(entries, order(1), Field::IpDestination, first, 256),
                    range(1 << 16, order(2), Field::PortSource, 0, 1),
                ]
            }
            (Table::Wildcard, Rules::Either) => {
                let ports = |pick: u64| {
                    let rule = (pick % entries) as u32;
                    let (named, other) = (port_of(rule), (mixed(pick) >> 16) as u16);
                    if names_source(rule) { (named, other) } else { (other, named) }
                };
                vary_udp_ports((0..EITHER_HEADERS).map(ports).collect(), order(1))
            }
            (Table::Chain, _) => {
                let exact = u64::from(self.entries - self.wildcards());
                let entry = |pick: u64| match pick % 2 {
                    0 => pick / 2,
                    _ => exact + pick / 2 % u64::from(self.wildcards()).max(1),
                };
                let picks = (0..self.chain_picks()).map(|pick| udp_ports(entry(pick) as u32));
                vary_udp_ports(picks.collect(), order(1))
            }
            (Table::Mac | Table::Learned, _) => {
                vec![range(entries, order(1), Field::MacDestination, FIRST_MAC, 1)]
            }
            (Table::Lpm, _) => {
                let picked = prefixes::prefixes(self.entries).into_iter().zip(0u64..);
                let hosts = picked.map(|(prefix, pick)| prefixes::host(prefix, pick).into());
                let fields = vec![(Field::IpDestination, Values::List(hosts.collect()))];
                vec![FieldVariation { count: entries, order: order(1), fields }]
            }
            (Table::Acl, _) => {
                let rules = access_list(self.style, self.entries);
                let headers = acl::headers(&rules, ACL_HEADERS as usize, ACL_SEED);
                let list = |pick: fn(&acl::Header) -> u64| {
                    Values::List(headers.iter().map(pick).collect())
                };
                let fields = vec![
                    (Field::IpProtocol, list(|it| it.protocol.into())),
                    (Field::IpSource, list(|it| it.source.into())),
                    (Field::IpDestination, list(|it| it.destination.into())),
                    (Field::PortSource, list(|it| it.source_port.into())),
                    (Field::PortDestination, list(|it| it.destination_port.into())),
                ];
                vec![FieldVariation { count: headers.len() as u64, order: order(1), fields }]
            }
            // Two independent draws are one draw of the pair, without a lookup table.
            _ if self.traffic == Traffic::Random && self.entries.is_multiple_of(UDP_SOURCES) => {
                let (sources, first) = (u64::from(UDP_SOURCES), u64::from(FIRST_UDP_PORT));
                vec![
                    range(sources, order(1), Field::PortSource, first, 1),
                    range(entries / sources, order(2), Field::PortDestination, first, 1),
                ]
            }
            _ => vary_udp_ports((0..self.entries).map(udp_ports).collect(), order(1)),
        }
    }
}

/// Returns the access list of a style with this many rules.
pub fn access_list(style: Style, rules: u32) -> Vec<acl::Rule> {
    acl::rules(style, rules, ACL_SEED)
}

/// Varies both UDP ports with one index, so that these are exactly the flows.
fn vary_udp_ports(ports: Vec<(u16, u16)>, order: IndexOrder) -> Vec<FieldVariation> {
    let list = |pick: fn(&(u16, u16)) -> u16| {
        Values::List(ports.iter().map(|pair| u64::from(pick(pair))).collect())
    };
    vec![FieldVariation {
        count: ports.len() as u64,
        order,
        fields: vec![
            (Field::PortSource, list(|pair| pair.0)),
            (Field::PortDestination, list(|pair| pair.1)),
        ],
    }]
}

/// Returns the port of a rule that matches one of two ports. Ports are scattered, so that few leading bits do not
/// distinguish them, and different for rules below 65,536.
pub fn port_of(rule: u32) -> u16 {
    (rule as u16).wrapping_mul(40_503)
}

/// Returns whether the rule matches the source port; otherwise the destination port.
pub fn names_source(rule: u32) -> bool {
    rule.is_multiple_of(2)
}

/// Returns a pseudorandom number that is a function of the pick (the finalizer of SplitMix64).
pub fn mixed(pick: u64) -> u64 {
    let mut bits = pick.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns the UDP source and destination port of an OpenFlow target's entry number `entry`.
pub fn udp_ports(entry: u32) -> (u16, u16) {
    let source = FIRST_UDP_PORT + (entry % UDP_SOURCES) as u16;
    let destination = FIRST_UDP_PORT + (entry / UDP_SOURCES) as u16;
    (source, destination)
}

/// Returns the routes of a router, as network and length: class C networks as in bianco2010, or prefixes as in the
/// Internet's routing table if the set-up selects these.
pub fn routes(setup: &Setup) -> impl Iterator<Item = (Ipv4Addr, u8)> + use<> {
    let (drawn, entries) = match setup.has_prefixes() {
        true => (prefixes::prefixes(setup.entries), 0),
        false => (Vec::new(), setup.entries),
    };
    let drawn = drawn.into_iter().map(|(network, length)| (Ipv4Addr::from(network), length));
    drawn.chain((0..entries).map(|entry| (network(entry), 24)))
}

/// Returns the class C network of a router's entry number `entry`.
pub fn network(entry: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(FIRST_NETWORK) + (entry << 8))
}

/// Returns the destination host in that network.
pub fn host_in(entry: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(network(entry)) + 1)
}

/// Returns the address of a bridge's entry number `entry`.
pub fn mac_of(entry: u32) -> [u8; 6] {
    mac(FIRST_MAC + u64::from(entry))
}

fn mac(value: u64) -> [u8; 6] {
    value.to_be_bytes()[2..].try_into().expect("the slice has six bytes")
}

/// Addresses for links that have none of their own.
pub const ADDRESSES: Addresses = Addresses::numbered([2, 0x49, 0, 0, 0], [2, 0x54, 0, 0, 0]);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ADDRESSES: Addresses = Addresses::numbered([2, 0, 0, 0, 0], [2, 0, 0, 0, 1]);

    fn check(technology: Technology, entry: impl Fn(&Headers) -> u64) {
        let (table, traffic) = (Table::Exact, Traffic::Sequential);
        let setup = Setup { table, entries: 131_072, traffic, ..Setup::single(1) };
        let rate = Rate::FramesPerSecond(1.0);
        let stream = setup.stream(technology, &ADDRESSES, 64, rate);
        assert_eq!(stream.validate(), []);
        let hit: HashSet<u64> =
            (0..u64::from(setup.entries)).map(|frame| entry(&stream.headers_at(frame))).collect();
        assert_eq!(hit.len(), 131_072, "{technology:?}");
    }

    #[test]
    fn sequential_traffic_matches_every_entry_of_the_largest_table() {
        check(Technology::OpenFlow, |headers| {
            u64::from(headers.port_source) << 16 | u64::from(headers.port_destination)
        });
        check(Technology::Bridging, |headers| {
            headers.mac_destination.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        });
        check(Technology::Routing, |headers| u64::from(u32::from(headers.ip_destination)));
    }

    #[test]
    fn every_frame_of_random_traffic_matches_an_entry() {
        let (table, traffic) = (Table::Exact, Traffic::Random);
        let setup = Setup { table, entries: 700, traffic, ..Setup::single(7) };
        let entries: HashSet<(u16, u16)> = (0..700).map(udp_ports).collect();
        let stream = setup.stream(Technology::OpenFlow, &ADDRESSES, 64, Rate::FramesPerSecond(1.0));
        for frame in 0..10_000 {
            let headers = stream.headers_at(frame);
            assert!(entries.contains(&(headers.port_source, headers.port_destination)));
        }
    }

    fn sent(setup: &Setup, frames: u64) -> Vec<Headers> {
        let rate = Rate::FramesPerSecond(1.0);
        let stream = setup.stream(Technology::OpenFlow, &ADDRESSES, 64, rate);
        assert_eq!(stream.validate(), []);
        (0..frames).map(|frame| stream.headers_at(frame)).collect()
    }

    #[test]
    fn random_traffic_over_all_ports_matches_exactly_all_entries() {
        let (table, traffic) = (Table::Exact, Traffic::Random);
        let setup = Setup { table, entries: 1024, traffic, ..Setup::single(3) };
        let entries: HashSet<(u16, u16)> = (0..1024).map(udp_ports).collect();
        let ports = |headers: &Headers| (headers.port_source, headers.port_destination);
        let hit: HashSet<(u16, u16)> = sent(&setup, 20_000).iter().map(ports).collect();
        assert_eq!(hit, entries);
    }

    #[test]
    fn half_of_the_traffic_of_a_chain_matches_wildcard_entries() {
        let (table, traffic) = (Table::Chain, Traffic::Random);
        let setup = Setup { table, entries: 1100, traffic, ..Setup::single(3) };
        assert_eq!((setup.wildcards(), setup.flows()), (100, 2000));
        let wildcards: HashSet<(u16, u16)> = (1000..1100).map(udp_ports).collect();
        let is_wildcard = |headers: &&Headers| {
            wildcards.contains(&(headers.port_source, headers.port_destination))
        };
        let found = sent(&setup, 20_000).iter().filter(is_wildcard).count();
        assert!((9_700..10_300).contains(&found), "{found}");
        let toured = sent(&setup.tour(), 2000);
        let toured: HashSet<_> =
            toured.iter().map(|it| (it.port_source, it.port_destination)).collect();
        assert_eq!(toured.len(), 1100);
    }

    #[test]
    fn frames_match_the_access_list_and_zipf_makes_few_frequent() {
        let setup = Setup { table: Table::Acl, entries: 50, ..Setup::single(3) };
        let rules = access_list(setup.style, setup.entries);
        let flows = |traffic| {
            let frames = sent(&Setup { traffic, ..setup }, 20_000);
            let meets = |it: &Headers| {
                let header = acl::Header {
                    source: it.ip_source.to_bits(),
                    destination: it.ip_destination.to_bits(),
                    protocol: it.ip_protocol,
                    source_port: it.port_source,
                    destination_port: it.port_destination,
                };
                assert!(rules.iter().any(|rule| rule.meets(&header)), "{header:?}");
                header
            };
            frames.iter().map(meets).collect::<HashSet<_>>().len()
        };
        let [random, zipf] = [Traffic::Random, Traffic::Zipf].map(flows);
        assert!(random > 15_000 && zipf < 12_000, "{random} and {zipf} different headers");
    }

    #[test]
    fn fields_without_a_match_vary() {
        let (table, traffic) = (Table::Wildcard, Traffic::Random);
        let setup = Setup { table, entries: 100, traffic, ..Setup::single(3) };
        let by_address = sent(&Setup { rules: Rules::Addresses, ..setup }, 20_000);
        let distinct = |key: fn(&Headers) -> u32, of: &[Headers]| {
            of.iter().map(key).collect::<HashSet<u32>>().len()
        };
        assert_eq!(distinct(|it| it.ip_destination.into(), &by_address), 100);
        assert!(distinct(|it| it.port_source.into(), &by_address) > 15_000);
        let by_either = sent(&Setup { rules: Rules::Either, ..setup }, 20_000);
        for headers in &by_either {
            let named = |rule: u32| match names_source(rule) {
                true => headers.port_source == port_of(rule),
                false => headers.port_destination == port_of(rule),
            };
            assert!((0..100).any(named), "{headers:?}");
        }
        assert!(distinct(|it| it.port_source.into(), &by_either) > 5_000);
        assert!(distinct(|it| it.port_destination.into(), &by_either) > 5_000);
    }
}
