//! Requests and replies between neighbours: ARP (RFC 826) and neighbour discovery (RFC 4861).

use core::net::{IpAddr, Ipv6Addr};

use packet::build::Builder;
use packet::header::ethernet::{self, Mac};
use packet::header::{arp, icmpv6, ipv6};
use packet::parse::{Network, Packet, Transport};

/// Hop limit of neighbour discovery. A router would have decremented it (RFC 4861 section 7.1).
const HOP_LIMIT: u8 = 255;
/// Flags of an advertisement: router, solicited, override.
const ROUTER: u32 = 1 << 31;
const SOLICITED: u32 = 1 << 30;
const OVERRIDE: u32 = 1 << 29;

/// Contents of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Address of the sender; none if it does not have one yet.
    pub sender: Option<IpAddr>,
    /// Hardware address in the message: of the sender of a request, of the target of a reply.
    pub mac: Option<Mac>,
    /// Requested address, or the address that a reply refers to.
    pub target: IpAddr,
    /// Whether it is a request.
    pub asks: bool,
}

impl Message {
    /// Parses an Ethernet frame. Returns none for other messages, and for those that may not come
    /// from this link.
    pub fn read(frame: &[u8]) -> Option<Message> {
        let packet = Packet::of(frame);
        if packet.layers.network == Network::Arp {
            return of_arp(frame.get(packet.layers.network_at.into()..)?);
        }
        let view = packet.ipv6()?;
        let whole =
            packet.layers.transport == Transport::Icmpv6 && packet.verify_checksums().is_ok();
        let message =
            packet.transport_bytes().filter(|_| whole && view.hop_limit() == HOP_LIMIT)?;
        of_discovery(message, view.source())
    }
}

fn of_arp(bytes: &[u8]) -> Option<Message> {
    let (message, _) = arp::Header::parse(bytes).ok()?;
    let mac = message.sender_mac;
    if ethernet::is_group(&mac) || mac == [0; 6] {
        return None;
    }
    // RFC 5227: an address probe has no sender address.
    let sender = Some(message.sender_ip).filter(|address| !address.is_unspecified());
    let asks = message.operation == arp::REQUEST;
    let target = if asks { message.target_ip } else { message.sender_ip };
    Some(Message { sender: sender.map(IpAddr::V4), mac: Some(mac), target: target.into(), asks })
}

fn of_discovery(bytes: &[u8], source: Ipv6Addr) -> Option<Message> {
    let view = icmpv6::View::new(bytes)?;
    let target = view.target().filter(|target| !target.is_multicast() && view.code() == 0)?;
    let asks = view.kind() == icmpv6::NEIGHBOUR_SOLICITATION;
    let wanted = if asks { icmpv6::OPTION_SOURCE_LINK } else { icmpv6::OPTION_TARGET_LINK };
    let options = bytes.get(icmpv6::OPTIONS_AT..)?;
    let mac = icmpv6::option_at(options, wanted).and_then(|at| options.get(at + 2..at + 8));
    let mac = mac.and_then(|mac| mac.try_into().ok()).filter(|mac| !ethernet::is_group(mac));
    let sender = Some(source).filter(|address| !address.is_unspecified());
    Some(Message { sender: sender.map(IpAddr::V6), mac, target: target.into(), asks })
}

/// Sender of a message.
#[derive(Debug, Clone, Copy)]
pub struct Speaker {
    /// Hardware address.
    pub mac: Mac,
    /// IP address.
    pub address: IpAddr,
    /// VLAN id; zero for untagged.
    pub vid: u16,
}

impl Speaker {
    fn builder(&self, destination: Mac) -> Builder {
        let builder = Builder::new(destination, self.mac);
        if self.vid == 0 { builder } else { builder.vlan(self.vid) }
    }

    /// Creates a request for an address, to all stations or to one that had the address.
    pub fn question(&self, target: IpAddr, to: Option<Mac>) -> Option<Vec<u8>> {
        match (self.address, target) {
            (IpAddr::V4(own), IpAddr::V4(target)) => {
                let message = arp::Header {
                    operation: arp::REQUEST,
                    sender_mac: self.mac,
                    sender_ip: own,
                    target_mac: [0; 6],
                    target_ip: target,
                };
                Some(self.builder(to.unwrap_or(ethernet::BROADCAST)).arp(message).bytes())
            }
            (IpAddr::V6(own), IpAddr::V6(target)) => {
                let group = solicited_node(target);
                let [.., a, b, c, d] = group.octets();
                let mac = to.unwrap_or([0x33, 0x33, a, b, c, d]);
                let destination = if to.is_some() { target } else { group };
                let kind = icmpv6::NEIGHBOUR_SOLICITATION;
                let option = icmpv6::OPTION_SOURCE_LINK;
                Some(self.discovery(mac, (own, destination), (kind, 0), (target, option)))
            }
            _ => None,
        }
    }

    /// Creates a reply with our address, to the requester or, if that one has no address yet, to
    /// all stations.
    pub fn answer(&self, asked: &Message) -> Option<Vec<u8>> {
        match (self.address, asked.sender) {
            (IpAddr::V4(own), sender) => {
                let mac = asked.mac?;
                let target_ip = match sender {
                    Some(IpAddr::V4(sender)) => sender,
                    _ => core::net::Ipv4Addr::UNSPECIFIED,
                };
                let message = arp::Header {
                    operation: arp::REPLY,
                    sender_mac: self.mac,
                    sender_ip: own,
                    target_mac: mac,
                    target_ip,
                };
                Some(self.builder(mac).arp(message).bytes())
            }
            (IpAddr::V6(own), Some(IpAddr::V6(sender))) => {
                let mac = asked.mac?;
                let kind = (icmpv6::NEIGHBOUR_ADVERTISEMENT, ROUTER | SOLICITED | OVERRIDE);
                Some(self.discovery(mac, (own, sender), kind, (own, icmpv6::OPTION_TARGET_LINK)))
            }
            (IpAddr::V6(own), _) => {
                let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
                let kind = (icmpv6::NEIGHBOUR_ADVERTISEMENT, ROUTER | OVERRIDE);
                let about = (own, icmpv6::OPTION_TARGET_LINK);
                Some(self.discovery([0x33, 0x33, 0, 0, 0, 1], (own, all), kind, about))
            }
        }
    }

    fn discovery(
        &self,
        mac: Mac,
        (source, destination): (Ipv6Addr, Ipv6Addr),
        (kind, flags): (u8, u32),
        (target, option): (Ipv6Addr, u8),
    ) -> Vec<u8> {
        let header =
            ipv6::Header { hop_limit: HOP_LIMIT, ..ipv6::Header::new(source, destination) };
        let mut rest = target.octets().to_vec();
        rest.extend([option, 1]);
        rest.extend(self.mac);
        let message = icmpv6::Header::new(kind, 0, flags);
        self.builder(mac).ipv6(header).icmpv6(message).payload(&rest).bytes()
    }
}

/// Returns the solicited-node multicast address (RFC 4291 section 2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_replies_round_trip() {
        let speaker = |last: u8, address: &str| Speaker {
            mac: [2, 0, 0, 0, 0, last],
            address: address.parse().unwrap(),
            vid: if last == 1 { 7 } else { 0 },
        };
        for (one, other) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let (one, other) = (speaker(1, one), speaker(2, other));
            let question = Message::read(&one.question(other.address, None).unwrap()).unwrap();
            let asked = Message {
                sender: Some(one.address),
                mac: Some(one.mac),
                target: other.address,
                asks: true,
            };
            assert_eq!(question, asked);
            let answer = other.answer(&question).unwrap();
            let decoded = Message::read(&answer).unwrap();
            assert_eq!(
                (decoded.asks, decoded.target, decoded.mac),
                (false, other.address, Some(other.mac))
            );
            for cut in 0..answer.len() {
                Message::read(&answer[..cut]);
            }
        }
        // From behind a router, or corrupted.
        let mut far = speaker(2, "fd00::2").question("fd00::1".parse().unwrap(), None).unwrap();
        far[14 + ipv6::HOP_LIMIT_AT] = 254;
        assert_eq!(Message::read(&far), None);
        far[14 + ipv6::HOP_LIMIT_AT] = 255;
        far[60] ^= 1;
        assert_eq!(Message::read(&far), None);
    }
}
