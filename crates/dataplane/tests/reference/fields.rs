//! Match fields of a frame, read from its model.
//!
//! Source: OpenFlow switch specification 1.3.5, section 7.2.3.7. A fragment has no ports, and a
//! protocol is visible only if nothing hides the network header.

use packet::field::Field;
use packet::header::ipv4;

use crate::model::{Model, Network, Transport};

/// Returns the field's value for matching.
pub fn field_of(field: Field, model: &Model) -> Option<u128> {
    let transport = field >= Field::TcpSrc && field <= Field::Icmpv4Code
        || field >= Field::Icmpv6Type && field <= Field::Ipv6NdTll
        || field == Field::TcpFlags;
    if field == Field::IpProto {
        return if model.bare() { protocol(model) } else { None };
    }
    if transport && is_fragment(model) { None } else { model.get(field) }
}

fn is_fragment(model: &Model) -> bool {
    match &model.network {
        Network::Ipv4(header) => header.more_fragments || header.fragment_offset != 0,
        _ => false,
    }
}

fn protocol(model: &Model) -> Option<u128> {
    let number = match (&model.network, &model.transport) {
        (Network::Ipv4(header), Transport::None) => header.protocol,
        (Network::Ipv4(_) | Network::Ipv6(..), transport) => match transport {
            Transport::Tcp(_) => ipv4::PROTOCOL_TCP,
            Transport::Udp(..) => ipv4::PROTOCOL_UDP,
            Transport::Sctp(..) => ipv4::PROTOCOL_SCTP,
            Transport::Icmp(_) => ipv4::PROTOCOL_ICMP,
            Transport::Icmpv6(_) | Transport::Neighbour(..) => ipv4::PROTOCOL_ICMPV6,
            Transport::None => return None,
        },
        _ => return None,
    };
    Some(number.into())
}
