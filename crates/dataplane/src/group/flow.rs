//! Hash of the flow that a frame belongs to.
//!
//! Frames of one flow have the same addresses, protocol and ports; other fields may differ
//! (priority, ECN, TTL, flags). Fragments have no ports, so that all fragments of a datagram are in
//! one flow.

use packet::header::{arp, ethernet, ipv4, ipv6, mpls, u16_at};

use crate::hash::mix;
use crate::parse::{Headers, Network, Transport};

/// Returns the flow hash of a frame, with a seed.
pub fn word(bytes: &[u8], seed: u64) -> u64 {
    let headers = Headers::of(bytes);
    let from = usize::from(headers.network_at);
    let mut flow = HashBuilder(seed);
    flow.add(bytes.get(..ethernet::TYPE.start).unwrap_or(bytes));
    flow.add(&headers.eth_type.to_be_bytes());
    if headers.tags > 0 {
        flow.add(&(u16_at(bytes, ethernet::TYPE.end) & 0x0fff).to_be_bytes());
    }
    match headers.network {
        Network::Ipv4 => flow.add(&bytes[from + ipv4::SOURCE_AT..from + ipv4::SOURCE_AT + 8]),
        Network::Ipv6 => flow.add(&bytes[from + ipv6::SOURCE_AT..from + ipv6::SOURCE_AT + 32]),
        Network::Arp => flow.add(&bytes[from + 8..from + arp::HEADER_BYTES]),
        Network::Mpls => {
            for entry in bytes[from..headers.end.into()].chunks_exact(mpls::ENTRY_BYTES) {
                // The label: 20 bits without traffic class, bottom of stack and TTL.
                flow.add(&[entry[0], entry[1], entry[2] & 0xf0]);
                if entry[2] & 1 != 0 {
                    break;
                }
            }
        }
        Network::Pbb => flow.add(&bytes[from + 1..from + 16]),
        Network::None => {}
    }
    if headers.proto != 0 {
        flow.add(&[headers.proto]);
    }
    if let Transport::Tcp | Transport::Udp | Transport::Sctp = headers.transport_to_match() {
        let at = usize::from(headers.transport_at);
        flow.add(&bytes[at..at + 4]);
    }
    flow.0
}

/// A hash under construction.
struct HashBuilder(u64);

impl HashBuilder {
    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.0 = mix(u64::from_le_bytes(word), self.0);
        }
    }
}
