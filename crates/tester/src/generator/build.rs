//! Construction of a frame from a stream's headers, before fields vary.

use packet::build::Builder;
use packet::header::{arp, icmp, icmpv6, ipv4, ipv6, mpls, oam, pbb, put_u16, sctp, tcp};

use crate::stream::headers::CHUNK_BYTES;
use crate::stream::{Headers, Label, Layout, Network, Transport};

/// Flag of a neighbor advertisement: solicited.
const SOLICITED: u32 = 1 << 30;

/// Builds a frame of this size with zero payload. Returns the frame and the end of its packet,
/// after which padding follows.
///
/// The size must be sufficient for the headers.
pub fn bytes_of(headers: &Headers, frame_bytes: usize) -> (Vec<u8>, usize) {
    let layout = headers.layout();
    let mut builder = Builder::new(headers.mac_destination, headers.mac_source);
    for tag in &headers.vlans {
        builder = builder.tag(tag.kind, tag.word());
    }
    if let Some(isid) = headers.backbone {
        builder = builder.pbb(pbb::Header {
            priority: 0,
            drop_eligible: false,
            use_customer_addresses: false,
            isid,
            destination: headers.mac_destination,
            source: headers.mac_source,
        });
    }
    for &Label { label, class, ttl } in &headers.labels {
        builder = builder.mpls(mpls::Header { label, class, bottom: false, ttl });
    }
    builder = network(headers, builder);
    let payload = match headers.transport {
        _ if !headers.network.has_transport() => {
            bare(headers.network, frame_bytes - layout.network_at)
        }
        Transport::Sctp { .. } => chunk(frame_bytes - layout.transport_at - sctp::HEADER_BYTES),
        Transport::Neighbour { .. } => {
            neighbour(headers.transport, frame_bytes - layout.payload_at)
        }
        _ => vec![0; frame_bytes - layout.payload_at],
    };
    if headers.network.has_transport() {
        builder = transport(headers, builder);
    }
    let mut bytes = builder.payload(&payload).bytes_unpadded();
    let packet_end = bytes.len();
    bytes.resize(frame_bytes, 0);
    set_protocol(headers, &layout, &mut bytes);
    (bytes, packet_end)
}

fn network(headers: &Headers, builder: Builder) -> Builder {
    match headers.network {
        Network::Ipv4 => builder.ipv4(ipv4::Header {
            ttl: headers.ttl,
            tos: headers.tos,
            ..ipv4::Header::new(headers.ip_source, headers.ip_destination)
        }),
        Network::Ipv6 { source, destination, flow_label } => builder.ipv6(ipv6::Header {
            traffic_class: headers.tos,
            flow_label,
            hop_limit: headers.ttl,
            ..ipv6::Header::new(source, destination)
        }),
        Network::Arp { operation, sender, target } => builder.arp(arp::Header {
            operation,
            sender_mac: sender.unwrap_or(headers.mac_source),
            sender_ip: headers.ip_source,
            target_mac: match (target, operation) {
                (Some(target), _) => target,
                (None, arp::REPLY) => headers.mac_destination,
                (None, _) => [0; 6],
            },
            target_ip: headers.ip_destination,
        }),
        Network::Loopback { .. } => builder.ether_type(oam::ETHER_TYPE),
    }
}

/// Returns the contents of a packet without transport header, in this number of bytes.
fn bare(network: Network, bytes: usize) -> Vec<u8> {
    let Network::Loopback { level, answers } = network else { return Vec::new() };
    oam::loopback(level, if answers { oam::op::LBR } else { oam::op::LBM }, bytes)
}

fn transport(headers: &Headers, builder: Builder) -> Builder {
    let (source, destination) = (headers.port_source, headers.port_destination);
    let word = u32::from(source) << 16 | u32::from(destination);
    match headers.transport {
        Transport::Udp => builder.udp(source, destination),
        Transport::Tcp { flags } => builder.tcp(tcp::Header::new(source, destination, flags)),
        Transport::Sctp { verification_tag } => builder.sctp(source, destination, verification_tag),
        Transport::Icmp { kind, code } => builder.icmp(icmp::Header::new(kind, code, word)),
        Transport::Icmpv6 { kind, code } => builder.icmpv6(icmpv6::Header::new(kind, code, word)),
        Transport::Neighbour { answers: false, .. } => {
            builder.icmpv6(icmpv6::Header::new(icmpv6::NEIGHBOUR_SOLICITATION, 0, 0))
        }
        Transport::Neighbour { .. } => {
            builder.icmpv6(icmpv6::Header::new(icmpv6::NEIGHBOUR_ADVERTISEMENT, 0, SOLICITED))
        }
    }
}

/// Returns the body of a neighbor discovery message after its header: target address, link-layer
/// address option, and zeros (RFC 4861, sections 4.3, 4.4 and 4.6.1).
fn neighbour(transport: Transport, zeros: usize) -> Vec<u8> {
    let Transport::Neighbour { answers, target, link } = transport else { return vec![0; zeros] };
    let kind = if answers { icmpv6::OPTION_TARGET_LINK } else { icmpv6::OPTION_SOURCE_LINK };
    let mut body = target.octets().to_vec();
    body.extend([kind, (icmpv6::OPTION_LINK_BYTES / 8) as u8]);
    body.extend(link);
    body.resize(body.len() + zeros, 0);
    body
}

/// Returns a DATA chunk with an unfragmented message of zeros.
///
/// It has `bytes` bytes or up to three less, because chunks are whole words (RFC 9260, section
/// 3.3.1).
fn chunk(bytes: usize) -> Vec<u8> {
    const DATA_WHOLE: [u8; 2] = [0, 3];
    let mut chunk = vec![0; bytes.max(CHUNK_BYTES) / 4 * 4];
    let length = chunk.len() as u16;
    chunk[..2].copy_from_slice(&DATA_WHOLE);
    put_u16(&mut chunk, 2, length);
    chunk
}

/// Sets the IP protocol to the one in the headers.
fn set_protocol(headers: &Headers, layout: &Layout, bytes: &mut [u8]) {
    let ip = &mut bytes[layout.network_at..];
    match headers.network {
        Network::Ipv4 => {
            ip[ipv4::PROTOCOL_AT] = headers.ip_protocol;
            ipv4::set_checksum(ip);
        }
        Network::Ipv6 { .. } => ip[ipv6::NEXT_HEADER_AT] = headers.ip_protocol,
        Network::Arp { .. } | Network::Loopback { .. } => {}
    }
}
