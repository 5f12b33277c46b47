//! A frame built from a stream's headers, before anything varies in it.

use packet::build::Builder;
use packet::header::{arp, ipv4, ipv6, mpls, put_u16, sctp, tcp, vlan};

use crate::stream::headers::CHUNK_BYTES;
use crate::stream::{Headers, Label, Layout, Network, Transport};

/// A frame of so many bytes with these headers and zeros for payload, and where its packet ends: what is
/// behind is padding. It has room for the headers.
pub fn bytes_of(headers: &Headers, frame_bytes: usize) -> (Vec<u8>, usize) {
    let layout = headers.layout();
    let mut builder = Builder::new(headers.mac_destination, headers.mac_source);
    for tag in &headers.vlans {
        builder = builder.tag(tag.kind, u16::from(tag.priority) << vlan::PCP_SHIFT | tag.id);
    }
    for &Label { label, class, ttl } in &headers.labels {
        builder = builder.mpls(mpls::Header { label, class, bottom: false, ttl });
    }
    builder = network(headers, builder);
    let is_arp = matches!(headers.network, Network::Arp { .. });
    let payload = match headers.transport {
        _ if is_arp => Vec::new(),
        Transport::Sctp { .. } => chunk(frame_bytes - layout.transport_at - sctp::HEADER_BYTES),
        _ => vec![0; frame_bytes - layout.payload_at],
    };
    if !is_arp {
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
        Network::Arp { operation } => builder.arp(arp::Header {
            operation,
            sender_mac: headers.mac_source,
            sender_ip: headers.ip_source,
            target_mac: match operation {
                arp::REPLY => headers.mac_destination,
                _ => [0; 6],
            },
            target_ip: headers.ip_destination,
        }),
    }
}

fn transport(headers: &Headers, builder: Builder) -> Builder {
    let (source, destination) = (headers.port_source, headers.port_destination);
    match headers.transport {
        Transport::Udp => builder.udp(source, destination),
        Transport::Tcp { flags } => builder.tcp(tcp::Header::new(source, destination, flags)),
        Transport::Sctp { verification_tag } => builder.sctp(source, destination, verification_tag),
    }
}

/// A DATA chunk with the only part of a message of zeros, in so many bytes or up to three less: chunks
/// are whole words (RFC 9260 section 3.3.1).
fn chunk(bytes: usize) -> Vec<u8> {
    const DATA_WHOLE: [u8; 2] = [0, 3];
    let mut chunk = vec![0; bytes.max(CHUNK_BYTES) / 4 * 4];
    let length = chunk.len() as u16;
    chunk[..2].copy_from_slice(&DATA_WHOLE);
    put_u16(&mut chunk, 2, length);
    chunk
}

/// Has IP say that something else follows, if it is to.
fn set_protocol(headers: &Headers, layout: &Layout, bytes: &mut [u8]) {
    let ip = &mut bytes[layout.network_at..];
    match headers.network {
        Network::Ipv4 => {
            ip[ipv4::PROTOCOL_AT] = headers.ip_protocol;
            ipv4::set_checksum(ip);
        }
        Network::Ipv6 { .. } => ip[ipv6::NEXT_HEADER_AT] = headers.ip_protocol,
        Network::Arp { .. } => {}
    }
}
