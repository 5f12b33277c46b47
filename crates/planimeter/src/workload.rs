//! What a target must hold before a trial, and the traffic that suits it.
//!
//! One [`Setup`] says the same thing to every technology: so many entries, hit in this order. An
//! OpenFlow switch gets flow entries that differ in their UDP ports, a bridge gets addresses, a
//! router gets C-class networks, as bianco2010 did (section IV.B). The frames follow from it, so
//! that every frame hits an entry and leaves by the target's second port.

/// Access lists in the style of ClassBench.
pub mod acl;
/// Prefixes as in the Internet's routing table.
pub mod prefixes;
/// Several streams over parts of one table.
pub mod parts;
/// Traffic between all ports.
pub mod mesh;
/// VLAN tagging by conditions.
pub mod tags;

use std::net::Ipv4Addr;

use instrument::stream::{Arrival, Field, Headers, Order, Rate, Stream, Values, Vary};

use crate::parameter::{Rules, Style, Table, Traffic};
use crate::target::name::Technology;

/// What a target must hold, and in which order the traffic hits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Setup {
    /// Which kind of entries.
    pub table: Table,
    /// How many; of an access list, how many rules, a few of which become several entries.
    pub entries: u32,
    /// In which order they are hit.
    pub traffic: Traffic,
    /// Which fields wildcard entries name.
    pub rules: Rules,
    /// What an access list is like.
    pub style: Style,
    /// Where everything random in the traffic starts.
    pub seed: u64,
    /// Flows of OpenFlow targets come from an address that lies so much higher: others are theirs.
    pub shift: u32,
    /// Whether the target has to be made anew before.
    pub is_fresh: bool,
    /// Ports of the target less one. Of two flows with two inputs the second, over the second half of the
    /// entries, comes in by the third port.
    pub inputs: u8,
    /// Flows that have equal parts of the entries, where several share a target.
    pub parts: u8,
}

/// Ports of a target, at the most.
pub const PORTS_MAX: usize = 8;

/// The addresses at both ends of the links between instrument and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The stations that the instrument plays behind its sending and its receiving port, and behind
    /// further ones where it has any.
    pub instrument: [[u8; 6]; PORTS_MAX],
    /// The target's first and second port, and further ones where it has any.
    pub target: [[u8; 6]; PORTS_MAX],
}

impl Addresses {
    /// Addresses that differ in their last byte, which counts from 1.
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

    /// The same with those of the router that an OpenFlow switch is to its neighbours: no interface's own, so that no
    /// kernel takes for itself what the switch is to route.
    #[must_use]
    pub const fn routed(self) -> Addresses {
        Addresses { instrument: self.instrument, ..Addresses::numbered([0; 5], ROUTER_MACS) }
    }
}

/// What the addresses of a router that an OpenFlow switch plays begin with.
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
/// The first of the C-class networks that a router holds routes to; the others follow upward.
pub const FIRST_NETWORK: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 0);
/// The first of the addresses behind a bridge's second port; the others follow upward.
pub const FIRST_MAC: u64 = 0x02_10_00_00_00_00;
/// UDP ports of the first flow; the others follow upward.
const FIRST_UDP_PORT: u16 = 1024;
/// Most entries of a chain that are wildcard entries.
const CHAIN_WILDCARDS_MAX: u32 = 100;
/// Different headers of traffic of which each frame's rule names one port: what the other port
/// makes of it has to be met often enough to matter.
const EITHER_HEADERS: u64 = 1 << 18;
/// Different headers of an access list's traffic: as many as fit into Open vSwitch's caches.
const ACL_HEADERS: u64 = 1 << 17;
/// Where access lists and the headers made for them start, the same in every run.
const ACL_SEED: u64 = 0x61_63_6c;
/// How many UDP source ports flows use before the destination port moves on.
const UDP_SOURCES: u32 = 512;

impl Setup {
    /// One entry, one flow: what the studies call a single flow.
    pub fn single(seed: u64) -> Self {
        let (table, traffic, rules) = (Table::One, Traffic::One, Rules::Ports);
        let (style, shift, is_fresh, inputs, parts) = (Style::Acl, 0, false, 1, 2);
        Setup { table, entries: 1, traffic, rules, style, seed, shift, is_fresh, inputs, parts }
    }

    /// The same, hit in turn: every flow of the traffic is met soon.
    pub fn tour(&self) -> Setup {
        match self.traffic {
            Traffic::One => *self,
            Traffic::Random | Traffic::Zipf | Traffic::Sequential => {
                Setup { traffic: Traffic::Sequential, ..*self }
            }
        }
    }

    /// Frames after which a tour has met everything that a switch may remember.
    pub fn flows(&self) -> u64 {
        match (self.traffic, self.table, self.rules) {
            (Traffic::One, ..) => 1,
            (_, Table::Chain, _) => self.chain_picks(),
            (_, Table::Wildcard, Rules::Either) => EITHER_HEADERS,
            (_, Table::Acl, _) => ACL_HEADERS,
            _ => self.entries.into(),
        }
    }

    /// Whether what routers hold are prefixes as in the Internet's routing table.
    fn has_prefixes(&self) -> bool {
        self.table == Table::Lpm
    }

    /// How many of the entries leave fields open: of a chain the last ones.
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

    /// What a target with these entries is to the frames: an OpenFlow switch that is to route is a router.
    fn played(&self, technology: Technology) -> Technology {
        match (technology, self.table) {
            (Technology::OpenFlow, Table::Routed) => Technology::Routing,
            (own, _) => own,
        }
    }

    /// The stream of frames that hits these entries.
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
            let flows = self.vary_flows(|_| Order::Sequential);
            stream.headers = Stream { vary: flows, ..stream.clone() }.flow(0);
        }
        stream
    }

    /// Frames from the stations that a bridge is to have learned, each in turn, to the sender of the
    /// traffic; `None` where nothing is to be learned.
    pub fn lesson(&self, addresses: &Addresses, rate: Rate) -> Option<Stream> {
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
        let (count, order) = (self.entries.into(), Order::Sequential);
        let vary = vec![Vary { count, order, fields: vec![(Field::MacSource, stations)] }];
        Some(Stream { from: 1, to: 0, headers, vary, ..stream })
    }

    /// What differs from frame to frame, so that frames are spread over the entries.
    fn vary(&self, technology: Technology) -> Vec<Vary> {
        if self.entries <= 1 || self.traffic == Traffic::One {
            return Vec::new();
        }
        let count = u64::from(self.entries);
        let order = |salt: u64| self.order(salt);
        let one =
            |field, values| vec![Vary { count, order: order(1), fields: vec![(field, values)] }];
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

    /// In which order one of several draws of a frame goes over the entries.
    fn order(&self, salt: u64) -> Order {
        match self.traffic {
            // One law is enough where a frame draws twice.
            Traffic::Zipf if salt == 1 => Order::Zipf { seed: self.seed },
            Traffic::Random | Traffic::Zipf => Order::Random { seed: self.seed.wrapping_add(salt) },
            Traffic::Sequential | Traffic::One => Order::Sequential,
        }
    }

    /// So that every frame is met by an entry, uniformly over entries, or half by a chain's exact
    /// ones and half by its wildcard ones.
    fn vary_flows(&self, order: impl Fn(u64) -> Order) -> Vec<Vary> {
        let entries = u64::from(self.entries);
        let range = |count, order, field, first, step| Vary {
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
                vec![Vary { count: entries, order: order(1), fields }]
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
                vec![Vary { count: headers.len() as u64, order: order(1), fields }]
            }
            // Two independent draws are one draw of the pair, without a list to look it up in.
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

/// The access list of a style with so many rules.
pub fn access_list(style: Style, rules: u32) -> Vec<acl::Rule> {
    acl::rules(style, rules, ACL_SEED)
}

/// Both UDP ports, one index for both, so that the flows are exactly these.
fn vary_udp_ports(ports: Vec<(u16, u16)>, order: Order) -> Vec<Vary> {
    let list = |pick: fn(&(u16, u16)) -> u16| {
        Values::List(ports.iter().map(|pair| u64::from(pick(pair))).collect())
    };
    vec![Vary {
        count: ports.len() as u64,
        order,
        fields: vec![
            (Field::PortSource, list(|pair| pair.0)),
            (Field::PortDestination, list(|pair| pair.1)),
        ],
    }]
}

/// The port that a rule names which names one of two: scattered, so that few leading bits tell
/// them from others, and different for rules below 65,536.
pub fn port_of(rule: u32) -> u16 {
    (rule as u16).wrapping_mul(40_503)
}

/// Whether that is the source port; else the destination port.
pub fn names_source(rule: u32) -> bool {
    rule.is_multiple_of(2)
}

/// A number that looks random and is the same for the same pick (the finalizer of SplitMix64).
pub(crate) fn mixed(pick: u64) -> u64 {
    let mut bits = pick.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// UDP source and destination port of an OpenFlow target's entry number `entry`.
pub fn udp_ports(entry: u32) -> (u16, u16) {
    let source = FIRST_UDP_PORT + (entry % UDP_SOURCES) as u16;
    let destination = FIRST_UDP_PORT + (entry / UDP_SOURCES) as u16;
    (source, destination)
}

/// What a router is to hold routes to, as network and length: C-class networks as in bianco2010, or prefixes
/// as in the Internet's routing table where these are asked for.
pub fn routes(setup: &Setup) -> impl Iterator<Item = (Ipv4Addr, u8)> + use<> {
    let (drawn, entries) = match setup.has_prefixes() {
        true => (prefixes::prefixes(setup.entries), 0),
        false => (Vec::new(), setup.entries),
    };
    let drawn = drawn.into_iter().map(|(network, length)| (Ipv4Addr::from(network), length));
    drawn.chain((0..entries).map(|entry| (network(entry), 24)))
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
    fn random_traffic_over_a_whole_number_of_ports_hits_every_entry_and_no_other() {
        let (table, traffic) = (Table::Exact, Traffic::Random);
        let setup = Setup { table, entries: 1024, traffic, ..Setup::single(3) };
        let entries: HashSet<(u16, u16)> = (0..1024).map(udp_ports).collect();
        let ports = |headers: &Headers| (headers.port_source, headers.port_destination);
        let hit: HashSet<(u16, u16)> = sent(&setup, 20_000).iter().map(ports).collect();
        assert_eq!(hit, entries);
    }

    #[test]
    fn half_of_a_chains_traffic_is_for_its_wildcard_entries() {
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
    fn frames_for_an_access_list_meet_it_and_few_are_frequent_by_zipf() {
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
    fn what_rules_do_not_name_varies() {
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
