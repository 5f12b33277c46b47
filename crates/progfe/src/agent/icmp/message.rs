//! ICMP errors and echo replies (RFC 792, RFC 4443).
//!
//! Packets start with their IP header.
//!
//! Invariants (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4):
//!
//! - No error refers to an ICMP error or to a fragment other than the first.
//! - No error refers to a packet whose source or destination is not a single host.
//! - An error has at most [`V4_BYTES_MAX`] or [`V6_BYTES_MAX`] bytes.

use core::net::IpAddr;

use packet::build::Builder;
use packet::header::{ethernet, icmp, icmpv6, ipv4, ipv6};
use packet::parse::{Fragment, Packet, Transport};

use crate::agent::interface::is_host;

/// Maximum size of an ICMPv4 error in bytes (RFC 1812 section 4.3.2.3).
pub const V4_BYTES_MAX: usize = 576;
/// Maximum size of an ICMPv6 error in bytes (RFC 4443 section 2.4).
pub const V6_BYTES_MAX: usize = 1280;
/// IPv4 precedence 6, "internetwork control".
const TOS_CONTROL: u8 = 0xc0;

/// Reason for an ICMP error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No prefix contains the destination.
    NoRoute,
    /// The next hop does not respond.
    NoHost,
    /// The TTL or hop limit has expired.
    TimeExceeded,
    /// The packet exceeds the MTU of the next link.
    TooBig {
        /// MTU of that link.
        mtu: u16,
    },
    /// The UDP port is unreachable.
    NoPort,
    /// The protocol is not supported.
    NoProtocol,
}

/// An IP packet inside an Ethernet frame.
pub struct Whole {
    frame: Vec<u8>,
}

impl Whole {
    /// Creates it from an IPv4 or IPv6 packet.
    pub fn new(packet: &[u8]) -> Option<Whole> {
        let ether_type = match packet.first()? >> 4 {
            4 => ethernet::TYPE_IPV4,
            6 => ethernet::TYPE_IPV6,
            _ => return None,
        };
        let mut frame = vec![0; ethernet::TYPE.start];
        frame.extend(ether_type.to_be_bytes());
        frame.extend(packet);
        let whole = Whole { frame };
        let read = whole.read();
        (read.ipv4().is_some() || read.ipv6().is_some()).then_some(whole)
    }

    /// Parses the headers.
    pub fn read(&self) -> Packet<'_> {
        Packet::of(&self.frame)
    }

    /// Returns source and destination.
    pub fn ends(&self) -> Option<(IpAddr, IpAddr)> {
        let packet = self.read();
        match (packet.ipv4(), packet.ipv6()) {
            (Some(view), _) => Some((view.source().into(), view.destination().into())),
            (_, Some(view)) => Some((view.source().into(), view.destination().into())),
            _ => None,
        }
    }

    /// Returns the bytes of the packet without padding.
    fn bytes(&self) -> &[u8] {
        let packet = self.read();
        let bytes = &self.frame[ethernet::HEADER_BYTES..];
        let length = match (packet.ipv4(), packet.ipv6()) {
            (Some(view), _) => usize::from(view.total_length()),
            (_, Some(view)) => ipv6::HEADER_BYTES + usize::from(view.payload_length()),
            _ => bytes.len(),
        };
        &bytes[..length.min(bytes.len())]
    }

    /// Returns true if the packet must not be fragmented.
    pub fn stays_whole(&self) -> bool {
        self.read().ipv4().is_none_or(|view| view.dont_fragment())
    }

    /// Returns the reply to an echo request, if the packet is a complete and valid one.
    pub fn echo_reply(&self) -> Option<Vec<u8>> {
        let packet = self.read();
        if packet.layers.fragment != Fragment::Whole || packet.verify_checksums().is_err() {
            return None;
        }
        let builder = Builder::new([0; 6], [0; 6]);
        let bytes = match (packet.icmp(), packet.icmpv6()) {
            (Some(request), _) if (request.kind(), request.code()) == (icmp::ECHO_REQUEST, 0) => {
                let view = packet.ipv4()?;
                let back = ipv4::Header {
                    tos: view.tos(),
                    identification: view.identification(),
                    ..ipv4::Header::new(view.destination(), view.source())
                };
                let reply = icmp::Header::new(icmp::ECHO_REPLY, 0, request.word());
                builder.ipv4(back).icmp(reply).payload(packet.payload())
            }
            (_, Some(request)) if (request.kind(), request.code()) == (icmpv6::ECHO_REQUEST, 0) => {
                let view = packet.ipv6()?;
                let back = ipv6::Header::new(view.destination(), view.source());
                let reply = icmpv6::Header::new(icmpv6::ECHO_REPLY, 0, request.word());
                builder.ipv6(back).icmpv6(reply).payload(packet.payload())
            }
            _ => return None,
        };
        Some(bytes.bytes_unpadded().split_off(ethernet::HEADER_BYTES))
    }

    /// Returns the error for a packet to this host other than echo.
    pub fn fault_here(&self) -> Option<Fault> {
        match self.read().layers.transport {
            Transport::Udp => Some(Fault::NoPort),
            // RFC 9293: a closed port sends a reset, but there is no TCP here.
            Transport::Tcp | Transport::Icmp | Transport::Icmpv6 => None,
            _ => Some(Fault::NoProtocol),
        }
    }

    /// Returns true if its sender may get an error.
    pub fn may_be_told(&self) -> bool {
        let Some((source, destination)) = self.ends() else { return false };
        let packet = self.read();
        let later = matches!(packet.layers.fragment, Fragment::Later);
        let (v4, v6) = (packet.icmp(), packet.icmpv6());
        let is_error = v4.is_some_and(|it| icmp::is_error(it.kind()))
            || v6.is_some_and(|it| it.kind() < icmpv6::ECHO_REQUEST || it.kind() == REDIRECT_V6);
        is_host(source)
            && !destination.is_multicast()
            && is_host(destination)
            && !later
            && !is_error
    }

    /// Creates the error for the sender, with a source address.
    pub fn error(&self, fault: Fault, from: IpAddr) -> Option<Vec<u8>> {
        let builder = Builder::new([0; 6], [0; 6]);
        let quoted = |most: usize| &self.bytes()[..self.bytes().len().min(most)];
        let built = match (from, self.ends()?.0) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let header = ipv4::Header { tos: TOS_CONTROL, ..ipv4::Header::new(from, to) };
                let most = V4_BYTES_MAX - ipv4::HEADER_BYTES - icmp::HEADER_BYTES;
                builder.ipv4(header).icmp(v4(fault)).payload(quoted(most))
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let most = V6_BYTES_MAX - ipv6::HEADER_BYTES - icmpv6::HEADER_BYTES;
                let header = ipv6::Header::new(from, to);
                builder.ipv6(header).icmpv6(v6(fault)?).payload(quoted(most))
            }
            _ => return None,
        };
        Some(built.bytes_unpadded().split_off(ethernet::HEADER_BYTES))
    }
}

/// ICMPv6 type of a redirect.
const REDIRECT_V6: u8 = 137;

fn v4(fault: Fault) -> icmp::Header {
    let (kind, code, word) = match fault {
        Fault::NoRoute => (icmp::UNREACHABLE, icmp::CODE_NET, 0),
        Fault::NoHost => (icmp::UNREACHABLE, icmp::CODE_HOST, 0),
        Fault::TimeExceeded => (icmp::TIME_EXCEEDED, icmp::CODE_TTL, 0),
        Fault::TooBig { mtu } => (icmp::UNREACHABLE, icmp::CODE_FRAGMENTATION_NEEDED, mtu.into()),
        Fault::NoPort => (icmp::UNREACHABLE, icmp::CODE_PORT, 0),
        Fault::NoProtocol => (icmp::UNREACHABLE, icmp::CODE_PROTOCOL, 0),
    };
    icmp::Header::new(kind, code, word)
}

/// Returns type and code by RFC 4443 section 3. An unsupported next header requires a parameter
/// problem with a pointer, which is not implemented.
fn v6(fault: Fault) -> Option<icmpv6::Header> {
    const NO_ROUTE: u8 = 0;
    const NO_ADDRESS: u8 = 3;
    const NO_PORT: u8 = 4;
    let (kind, code, word) = match fault {
        Fault::NoRoute => (icmpv6::UNREACHABLE, NO_ROUTE, 0),
        Fault::NoHost => (icmpv6::UNREACHABLE, NO_ADDRESS, 0),
        Fault::TimeExceeded => (icmpv6::TIME_EXCEEDED, 0, 0),
        Fault::TooBig { mtu } => (icmpv6::TOO_BIG, 0, mtu.into()),
        Fault::NoPort => (icmpv6::UNREACHABLE, NO_PORT, 0),
        Fault::NoProtocol => return None,
    };
    Some(icmpv6::Header::new(kind, code, word))
}
