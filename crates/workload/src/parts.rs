//! Several streams over parts of one table: those of a chain's two tables, and flows that share a target, as in
//! bianco2010's fairness test.
//!
//! Source: bianco2010, sections IV.C and IV.D. Invariant: every frame hits an entry that the setup installs, and
//! concurrent streams share no entry.

use std::net::Ipv4Addr;

use tester::stream::{Field, FieldVariation, IndexOrder, Rate, Stream, Values};

use super::{Addresses, FIRST_MAC, Setup, host_in, udp_ports, vary_udp_ports};
use crate::Technology;
use crate::parameter::Traffic;

/// The sender behind a router's third port, if flows enter by two ports.
pub const SENDER_SECOND: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 2);

/// Address of a router's third port.
pub const ROUTER_IN_SECOND: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 1);

/// The rig's port of the second flow, if it has its own port.
pub const PLACE_SECOND: usize = 2;

impl Setup {
    /// Returns two streams over a chain, each at its rate: one uniform over its exact entries, one over its wildcard
    /// entries.
    pub fn chain_streams(
        &self,
        addresses: &Addresses,
        frame_bytes: u16,
        rates: [Rate; 2],
    ) -> [Stream; 2] {
        let exact = self.entries - self.wildcards();
        let parts = [0..exact, exact..self.entries];
        let mut place = 0;
        parts.map(|entries| {
            let stream = self.one(
                Technology::OpenFlow,
                addresses,
                frame_bytes,
                (place as u16, rates[place]),
            );
            place += 1;
            let ports = entries.map(udp_ports).collect();
            Stream { vary: vary_udp_ports(ports, self.order_apart(place as u64)), ..stream }
        })
    }

    /// Returns the flows, each at its rate and uniform over its part of the entries. With two inputs, the last flow
    /// enters by its own port.
    pub fn flows_beside(
        &self,
        technology: Technology,
        addresses: &Addresses,
        frame_bytes: u16,
        rates: &[Rate],
    ) -> Vec<Stream> {
        let flow = |(place, &rate): (usize, &Rate)| {
            let mut stream = self.one(technology, addresses, frame_bytes, (place as u16, rate));
            if place + 1 == rates.len() && self.inputs == 2 {
                stream.from = PLACE_SECOND;
                stream.headers.mac_source = addresses.instrument[PLACE_SECOND];
                stream.headers.ip_source = SENDER_SECOND;
                if technology == Technology::Routing {
                    stream.headers.mac_destination = addresses.target[PLACE_SECOND];
                }
            }
            let entries = self.part(place)..self.part(place + 1);
            let order = self.order_apart(place as u64 + 1);
            let range = |field, first, step| FieldVariation {
                count: entries.len() as u64,
                order: order.clone(),
                fields: vec![(field, Values::Range { first, step })],
            };
            stream.vary = match technology {
                Technology::Bridging => {
                    let first = FIRST_MAC + u64::from(entries.start);
                    vec![range(Field::MacDestination, first, 1)]
                }
                Technology::Routing => {
                    let first = u64::from(u32::from(host_in(entries.start)));
                    vec![range(Field::IpDestination, first, 256)]
                }
                Technology::OpenFlow | Technology::Tagging | Technology::Wire => {
                    vary_udp_ports(entries.map(udp_ports).collect(), order)
                }
            };
            stream
        };
        rates.iter().enumerate().map(flow).collect()
    }

    /// Returns the first entry of a flow by its index; after the last flow, the number of entries.
    fn part(&self, place: usize) -> u32 {
        (u64::from(self.entries) * place as u64 / u64::from(self.parts.max(1))) as u32
    }

    /// Returns the first entry of the last flow.
    pub fn last_part(&self) -> u32 {
        self.part(usize::from(self.parts.max(1)) - 1)
    }

    /// Returns a stream numbered by its index, without varying fields.
    fn one(
        &self,
        technology: Technology,
        addresses: &Addresses,
        frame_bytes: u16,
        (place, rate): (u16, Rate),
    ) -> Stream {
        let one = Setup { entries: 1, traffic: Traffic::One, ..*self };
        Stream { id: place + 1, ..one.stream(technology, addresses, frame_bytes, rate) }
    }

    fn order_apart(&self, salt: u64) -> IndexOrder {
        IndexOrder::Random { seed: self.seed.wrapping_add(salt) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::parameter::Table;

    const ADDRESSES: Addresses = Addresses::numbered([2, 0, 0, 0, 0], [2, 0, 0, 0, 1]);

    const RATES: [Rate; 2] = [Rate::FramesPerSecond(10.0), Rate::FramesPerSecond(90.0)];

    fn hit<T: Eq + std::hash::Hash>(
        stream: &Stream,
        key: impl Fn(&tester::stream::Headers) -> T,
    ) -> HashSet<T> {
        assert_eq!(stream.validate(), []);
        (0..20_000).map(|frame| key(&stream.headers_at(frame))).collect()
    }

    #[test]
    fn the_streams_of_a_chain_match_one_table_each() {
        let (table, traffic) = (Table::Chain, Traffic::Random);
        let setup = Setup { table, traffic, entries: 1100, ..Setup::single(3) };
        let streams = setup.chain_streams(&ADDRESSES, 96, RATES);
        let ports = |stream| hit(stream, |it| (it.port_source, it.port_destination));
        assert_eq!(ports(&streams[0]), (0..1000).map(udp_ports).collect());
        assert_eq!(ports(&streams[1]), (1000..1100).map(udp_ports).collect());
        assert_eq!(streams.map(|stream| stream.id), [1, 2]);
    }

    #[test]
    fn two_flows_share_a_table_but_no_entry() {
        let traffic = Traffic::Random;
        let setup = Setup { table: Table::Exact, traffic, entries: 1000, ..Setup::single(3) };
        for (technology, inputs) in [
            (Technology::OpenFlow, 1),
            (Technology::OpenFlow, 2),
            (Technology::Bridging, 2),
            (Technology::Routing, 2),
        ] {
            let setup = Setup { inputs, ..setup };
            let flows = setup.flows_beside(technology, &ADDRESSES, 96, &RATES);
            let [first, second] = &flows[..] else { panic!("two flows") };
            let key = |it: &tester::stream::Headers| {
                let ports = (it.port_source, it.port_destination);
                (ports, it.mac_destination, it.ip_destination)
            };
            let (first_hit, second_hit) = (hit(first, key), hit(second, key));
            assert_eq!((first_hit.len(), second_hit.len()), (500, 500), "{technology:?}");
            assert!(first_hit.is_disjoint(&second_hit), "{technology:?}");
            assert_eq!((first.from, second.from), (0, if inputs == 2 { 2 } else { 0 }));
            assert_eq!((first.id, second.id, second.to), (1, 2, 1));
        }
        let setup = Setup { parts: 3, inputs: 2, ..setup };
        let rates = [Rate::FramesPerSecond(1.0); 3];
        let flows = setup.flows_beside(Technology::OpenFlow, &ADDRESSES, 96, &rates);
        let ports = |stream| hit(stream, |it| (it.port_source, it.port_destination)).len();
        assert_eq!(flows.iter().map(ports).collect::<Vec<_>>(), [333, 333, 334]);
        assert_eq!(flows.iter().map(|it| it.from).collect::<Vec<_>>(), [0, 0, 2]);
        assert_eq!(setup.last_part(), 666);
    }
}
