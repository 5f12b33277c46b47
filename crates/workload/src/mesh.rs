//! Traffic between the ports of a target, and the matching set-up.
//!
//! Source: RFC 2889, 5.1 and 5.2. There is one station behind every port. Streams from one port have equal rates and
//! are interleaved evenly, so that the port sends to all others in turn.

use std::net::Ipv4Addr;

use tester::stream::{Headers, Rate, Stream};

use super::{Addresses, Setup};
use crate::parameter::Table;

/// The broadcast MAC address.
pub const BROADCAST: [u8; 6] = [0xff; 6];

/// Pattern of senders and receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Every port to every other.
    Full,
    /// The first port to all others.
    OneToMany,
    /// All others to the first port.
    ManyToOne,
}

impl Pattern {
    /// Returns the number of sending ports.
    pub fn senders(self, ports: u8) -> u8 {
        match self {
            Pattern::Full => ports,
            Pattern::OneToMany => 1,
            Pattern::ManyToOne => ports - 1,
        }
    }
}

impl Setup {
    /// Returns a set-up that knows the station behind each of these ports.
    pub fn meshed(seed: u64, ports: u8) -> Setup {
        Setup { table: Table::Mesh, inputs: ports - 1, ..Setup::single(seed) }
    }

    /// Returns a set-up with these ports that knows no station; each `number` is a different set-up.
    pub fn empty(seed: u64, ports: u8, number: u32) -> Setup {
        Setup { table: Table::Empty, inputs: ports - 1, shift: number, ..Setup::single(seed) }
    }

    /// Returns the number of its ports.
    pub fn ports(&self) -> u8 {
        self.inputs + 1
    }
}

/// Returns frames from the station behind one of the rig's ports to that behind another.
pub fn between(
    addresses: &Addresses,
    id: u16,
    (from, to): (usize, usize),
    frame_bytes: u16,
    rate: Rate,
) -> Stream {
    let host = |port: usize| Ipv4Addr::new(10, 0, port as u8 + 1, 2);
    let [source, destination] = [from, to].map(|port| addresses.instrument[port]);
    let headers = Headers::udp((source, destination), (host(from), host(to)), (1024 + id, 1024));
    Stream { from, to, ..Stream::plain(id, usize::from(frame_bytes), headers, rate) }
}

/// Returns the streams of a pattern over these ports; the load applies to each sending port.
pub fn streams(
    addresses: &Addresses,
    ports: u8,
    pattern: Pattern,
    frame_bytes: u16,
    port_pps: f64,
) -> Vec<Stream> {
    let ports = usize::from(ports);
    let pairs = (0..ports).flat_map(|from| (0..ports).map(move |to| (from, to)));
    let takes_part = |&(from, to): &(usize, usize)| {
        let is_in = match pattern {
            Pattern::Full => true,
            Pattern::OneToMany => from == 0,
            Pattern::ManyToOne => to == 0,
        };
        from != to && is_in
    };
    let receivers = match pattern {
        Pattern::Full | Pattern::OneToMany => ports - 1,
        Pattern::ManyToOne => 1,
    };
    let rate = Rate::FramesPerSecond(port_pps / receivers as f64);
    let each = pairs.filter(takes_part).zip(1u16..);
    each.map(|(pair, id)| between(addresses, id, pair, frame_bytes, rate)).collect()
}

/// Returns broadcast frames from the first port. One copy of each is expected at the second port; copies at other
/// ports are counted separately.
pub fn broadcast(addresses: &Addresses, frame_bytes: u16, rate: Rate) -> Stream {
    let mut stream = between(addresses, 1, (0, 1), frame_bytes, rate);
    stream.headers.mac_destination = BROADCAST;
    stream.headers.ip_destination = Ipv4Addr::BROADCAST;
    stream
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ADDRESSES;

    #[test]
    fn a_pattern_has_its_pairs_and_each_port_its_load() {
        for (pattern, count, sending) in
            [(Pattern::Full, 12, 4), (Pattern::OneToMany, 3, 1), (Pattern::ManyToOne, 3, 3)]
        {
            let streams = streams(&ADDRESSES, 4, pattern, 64, 900.0);
            assert_eq!(streams.len(), count, "{pattern:?}");
            assert_eq!(tester::stream::validate(&streams, 4), []);
            for port in 0..4 {
                let sent = streams.iter().filter(|stream| stream.from == port);
                let pps: f64 = sent.map(Stream::rate_pps).sum();
                let wanted = if port < sending || pattern == Pattern::Full { 900.0 } else { 0.0 };
                let wanted = match pattern {
                    Pattern::ManyToOne if port == 0 => 0.0,
                    Pattern::ManyToOne => 900.0,
                    _ => wanted,
                };
                assert!((pps - wanted).abs() < 1e-6, "{pattern:?} port {port}: {pps}");
            }
            assert!(streams.iter().all(|stream| stream.headers.mac_destination
                == ADDRESSES.instrument[stream.to]));
        }
    }
}
