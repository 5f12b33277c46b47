//! Frames as lists of headers, changed header by header and rebuilt completely.
//!
//! This is the slow reference for [`dataplane::rewrite`]. It shares no code with it: it does not
//! locate headers, and `packet::build` computes every length and checksum from the whole frame.

use packet::build::Builder;
use packet::field::Field;
use packet::header::{arp, icmp, icmpv6, ipv4, ipv6, mpls, pbb, tcp};

/// A header before the network header.
#[derive(Debug, Clone, PartialEq)]
pub enum Link {
    /// A tag's own type and its control information.
    Vlan(u16, u16),
    /// IEEE 802.3 length, LLC and SNAP.
    Snap,
    /// The type that announces the entry, and the entry.
    Mpls(u16, mpls::Header),
    /// An 802.1ah tag with the customer's addresses.
    Pbb(pbb::Header),
}

/// The network header.
#[derive(Debug, Clone)]
pub enum Network {
    Arp(arp::Header),
    Ipv4(ipv4::Header),
    /// With extension headers: their types, and their bytes without the first one.
    Ipv6(ipv6::Header, Vec<(u8, Vec<u8>)>),
    /// A payload of this type.
    Typed(u16),
    /// IEEE 802.3 without a type.
    Llc,
}

/// The payload of IP.
#[derive(Debug, Clone)]
pub enum Transport {
    None,
    Tcp(tcp::Header),
    Udp(u16, u16),
    Sctp(u16, u16),
    Icmp(icmp::Header),
    Icmpv6(icmpv6::Header),
    /// A neighbor discovery message: its target, and options of 8 bytes by type and address.
    Neighbour(icmpv6::Header, u128, Vec<(u8, u64)>),
}

/// A frame and its pipeline fields.
#[derive(Debug, Clone)]
pub struct Model {
    pub destination: u64,
    pub source: u64,
    pub links: Vec<Link>,
    pub network: Network,
    pub transport: Transport,
    pub payload: Vec<u8>,
    /// Number of bytes after everything that a length covers.
    pub trailer: usize,
    pub metadata: u64,
    pub tunnel_id: u64,
}

fn mac(number: u64) -> [u8; 6] {
    number.to_be_bytes()[2..].try_into().unwrap()
}

fn number(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl Model {
    /// Builds the frame's bytes, with all lengths and checksums.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = [mac(self.destination), mac(self.source)].concat();
        let mut lengths = Vec::new();
        let mut typed = true;
        for link in &self.links {
            if typed && *link != Link::Snap {
                bytes.extend_from_slice(&link_type(link).to_be_bytes());
            }
            typed = !matches!(link, Link::Mpls(..));
            match link {
                Link::Vlan(_, control) => bytes.extend_from_slice(&control.to_be_bytes()),
                Link::Snap => {
                    lengths.push(bytes.len());
                    bytes.extend_from_slice(&[0, 0, 0xaa, 0xaa, 3, 0, 0, 0]);
                }
                Link::Mpls(_, entry) => entry.emit(&mut bytes),
                Link::Pbb(header) => header.emit(&mut bytes),
            }
        }
        if matches!(self.network, Network::Llc) {
            lengths.push(bytes.len());
        }
        if typed {
            bytes.extend_from_slice(&self.network_type().to_be_bytes());
        }
        bytes.extend_from_slice(&self.network_bytes());
        for at in lengths {
            let length = (bytes.len() - at - 2) as u16;
            bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
        }
        bytes.resize(bytes.len() + self.trailer, 0xee);
        bytes
    }

    fn network_type(&self) -> u16 {
        match self.network {
            Network::Arp(_) => 0x0806,
            Network::Ipv4(_) => 0x0800,
            Network::Ipv6(..) => 0x86dd,
            Network::Typed(type_) => type_,
            Network::Llc => 0,
        }
    }

    /// Builds the network header and everything after it, as in a separate frame.
    pub fn network_bytes(&self) -> Vec<u8> {
        let builder = Builder::new([0; 6], [0; 6]);
        let builder = match &self.network {
            Network::Arp(header) => builder.arp(*header),
            Network::Ipv4(header) => builder.ipv4(*header),
            Network::Ipv6(header, extensions) => {
                let builder = builder.ipv6(*header);
                extensions
                    .iter()
                    .fold(builder, |builder, (kind, rest)| builder.extension(*kind, rest))
            }
            Network::Typed(_) | Network::Llc => builder.ether_type(0x88b5),
        };
        let mut payload = self.payload.clone();
        let builder = match &self.transport {
            Transport::None => builder,
            Transport::Tcp(header) => builder.tcp(*header),
            Transport::Udp(source, destination) => builder.udp(*source, *destination),
            Transport::Sctp(source, destination) => builder.sctp(*source, *destination, 0xfeed),
            Transport::Icmp(header) => builder.icmp(*header),
            Transport::Icmpv6(header) => builder.icmpv6(*header),
            Transport::Neighbour(header, target, options) => {
                payload = target.to_be_bytes().to_vec();
                for (kind, address) in options {
                    payload.extend_from_slice(&[*kind, 1]);
                    payload.extend_from_slice(&mac(*address));
                }
                builder.icmpv6(*header)
            }
        };
        builder.payload(&payload).bytes_unpadded()[14..].to_vec()
    }

    /// Returns the number of tags; `behind_link` returns the index after tags and SNAP.
    fn tags(&self) -> usize {
        self.links.iter().take_while(|link| matches!(link, Link::Vlan(..))).count()
    }

    fn behind_link(&self) -> usize {
        let tags = self.tags();
        if self.links.get(tags) == Some(&Link::Snap) { tags + 1 } else { tags }
    }

    /// Whether nothing hides the network header.
    pub fn bare(&self) -> bool {
        self.links.len() == self.behind_link()
    }

    /// Returns a field's value, if the frame or the pipeline has it.
    pub fn get(&self, field: Field) -> Option<u128> {
        match field {
            Field::Metadata => return Some(self.metadata.into()),
            Field::TunnelId => return Some(self.tunnel_id.into()),
            Field::EthType => {
                let type_ = match self.links.get(self.behind_link()) {
                    Some(link) => link_type(link),
                    None if matches!(self.network, Network::Llc) => 0x05ff,
                    None => self.network_type(),
                };
                return Some(type_.into());
            }
            Field::Ipv6Exthdr => return None,
            _ => {}
        }
        // Visiting the field on a copy returns the present value.
        let mut copy = self.clone();
        copy.visit(field, &mut |value| value)
    }

    /// Sets the bits of `mask` in a field.
    pub fn set(&mut self, field: Field, value: u128, mask: u128) {
        self.visit(field, &mut |old| old & !mask | value & mask & field.ones());
    }

    /// Replaces a field's value by the result of `change`, and returns the old one.
    fn visit(&mut self, field: Field, change: &mut dyn FnMut(u128) -> u128) -> Option<u128> {
        macro_rules! at {
            ($place:expr) => {{
                let place = $place;
                let old = u128::from(*place);
                *place = change(old) as _;
                Some(old)
            }};
        }
        macro_rules! mac_at {
            ($place:expr) => {{
                let place = $place;
                let old = u128::from(number(*place));
                *place = mac(change(old) as u64);
                Some(old)
            }};
        }
        macro_rules! bits {
            ($place:expr, $shift:expr, $bits:expr) => {{
                let place = $place;
                let word = u128::from(*place);
                let full = (1u128 << $bits) - 1;
                let old = word >> $shift & full;
                *place = (word & !(full << $shift) | (change(old) & full) << $shift) as _;
                Some(old)
            }};
        }
        macro_rules! ip_at {
            ($place:expr, $number:ty) => {{
                let place = $place;
                let old = u128::from(place.to_bits());
                *place = (change(old) as $number).into();
                Some(old)
            }};
        }
        let (behind, bare) = (self.behind_link(), self.bare());
        match field {
            Field::Metadata => return at!(&mut self.metadata),
            Field::TunnelId => return at!(&mut self.tunnel_id),
            Field::EthDst => return at!(&mut self.destination),
            Field::EthSrc => return at!(&mut self.source),
            Field::VlanVid => match self.links.first_mut() {
                Some(Link::Vlan(_, control)) => {
                    let old = u128::from(*control & 0xfff) | 0x1000;
                    *control = *control & 0xf000 | change(old) as u16 & 0xfff;
                    return Some(old);
                }
                _ => return None,
            },
            Field::VlanPcp => match self.links.first_mut() {
                Some(Link::Vlan(_, control)) => return bits!(control, 13, 3),
                _ => return None,
            },
            _ => {}
        }
        match (field, self.links.get_mut(behind)) {
            (Field::MplsLabel, Some(Link::Mpls(_, entry))) => return at!(&mut entry.label),
            (Field::MplsTc, Some(Link::Mpls(_, entry))) => return at!(&mut entry.class),
            (Field::MplsBos, Some(Link::Mpls(_, entry))) => {
                let old = u128::from(entry.bottom);
                entry.bottom = change(old) != 0;
                return Some(old);
            }
            (Field::PbbIsid, Some(Link::Pbb(header))) => return at!(&mut header.isid),
            (Field::PbbUca, Some(Link::Pbb(header))) => {
                let old = u128::from(header.use_customer_addresses);
                header.use_customer_addresses = change(old) != 0;
                return Some(old);
            }
            _ => {}
        }
        if !bare {
            return None;
        }
        match (field, &mut self.network) {
            (Field::ArpOp, Network::Arp(header)) => return at!(&mut header.operation),
            (Field::ArpSpa, Network::Arp(header)) => return ip_at!(&mut header.sender_ip, u32),
            (Field::ArpTpa, Network::Arp(header)) => return ip_at!(&mut header.target_ip, u32),
            (Field::ArpSha, Network::Arp(header)) => return mac_at!(&mut header.sender_mac),
            (Field::ArpTha, Network::Arp(header)) => return mac_at!(&mut header.target_mac),
            (Field::IpDscp, Network::Ipv4(header)) => return bits!(&mut header.tos, 2, 6),
            (Field::IpEcn, Network::Ipv4(header)) => return bits!(&mut header.tos, 0, 2),
            (Field::IpDscp, Network::Ipv6(header, _)) => {
                return bits!(&mut header.traffic_class, 2, 6);
            }
            (Field::IpEcn, Network::Ipv6(header, _)) => {
                return bits!(&mut header.traffic_class, 0, 2);
            }
            (Field::Ipv4Src, Network::Ipv4(header)) => return ip_at!(&mut header.source, u32),
            (Field::Ipv4Dst, Network::Ipv4(header)) => return ip_at!(&mut header.destination, u32),
            (Field::Ipv6Src, Network::Ipv6(header, _)) => return ip_at!(&mut header.source, u128),
            (Field::Ipv6Dst, Network::Ipv6(header, _)) => {
                return ip_at!(&mut header.destination, u128);
            }
            (Field::Ipv6Flabel, Network::Ipv6(header, _)) => return at!(&mut header.flow_label),
            (_, Network::Arp(_) | Network::Typed(_) | Network::Llc) => return None,
            _ => {}
        }
        match (field, &mut self.transport) {
            (Field::TcpSrc, Transport::Tcp(header)) => at!(&mut header.source_port),
            (Field::TcpDst, Transport::Tcp(header)) => at!(&mut header.destination_port),
            (Field::UdpSrc, Transport::Udp(port, _)) => at!(port),
            (Field::UdpDst, Transport::Udp(_, port)) => at!(port),
            (Field::SctpSrc, Transport::Sctp(port, _)) => at!(port),
            (Field::SctpDst, Transport::Sctp(_, port)) => at!(port),
            (Field::Icmpv4Type, Transport::Icmp(header)) => at!(&mut header.kind),
            (Field::Icmpv4Code, Transport::Icmp(header)) => at!(&mut header.code),
            (Field::Icmpv6Type, Transport::Icmpv6(header)) => at!(&mut header.kind),
            (Field::Icmpv6Code, Transport::Icmpv6(header)) => at!(&mut header.code),
            (Field::Icmpv6Type, Transport::Neighbour(header, ..)) => at!(&mut header.kind),
            (Field::Icmpv6Code, Transport::Neighbour(header, ..)) => at!(&mut header.code),
            (Field::Ipv6NdTarget, Transport::Neighbour(header, target, _)) => {
                if matches!(header.kind, 135 | 136) { at!(target) } else { None }
            }
            (Field::Ipv6NdSll | Field::Ipv6NdTll, Transport::Neighbour(header, _, options)) => {
                let (message, wanted) = if field == Field::Ipv6NdSll { (135, 1) } else { (136, 2) };
                let option = options.iter_mut().find(|(kind, _)| *kind == wanted);
                let (_, address) = option.filter(|_| header.kind == message)?;
                at!(address)
            }
            // The upper four flag bits are not in `tcp::Header`.
            (Field::TcpFlags, Transport::Tcp(header)) => at!(&mut header.flags),
            _ => None,
        }
    }
}

impl Model {
    /// Pushes an outermost tag.
    pub fn push_vlan(&mut self, type_: u16) {
        let control = match self.links.first() {
            Some(Link::Vlan(_, control)) => control & 0xefff,
            _ => 0,
        };
        self.links.insert(0, Link::Vlan(type_, control));
    }

    /// Pops the outermost tag.
    pub fn pop_vlan(&mut self) {
        if self.tags() > 0 {
            self.links.remove(0);
        }
    }

    /// Sets bits of the outermost tag, and adds one if there is none.
    pub fn set_tag(&mut self, mask: u16, bits: u16) {
        if self.tags() == 0 {
            self.links.insert(0, Link::Vlan(0x8100, 0));
        }
        if let Link::Vlan(_, control) = &mut self.links[0] {
            *control = *control & !mask | bits & mask;
        }
    }

    /// Pushes an outermost MPLS entry, before or after the tags.
    pub fn push_mpls(&mut self, type_: u16, behind_tags: bool) {
        let behind = self.behind_link();
        let at = if behind_tags || self.tags() == 0 { behind } else { 0 };
        let next = self.links.get(at);
        let untyped = at == self.links.len() && matches!(self.network, Network::Llc);
        if untyped {
            return;
        }
        let mut entry = match self.links.get(behind) {
            Some(Link::Mpls(_, entry)) => *entry,
            _ => {
                let ttl = self.ttls().first().map_or(0, |ttl| self.ttl(*ttl));
                mpls::Header { label: 0, class: 0, bottom: true, ttl }
            }
        };
        entry.bottom = !matches!(next, Some(Link::Mpls(..)));
        self.links.insert(at, Link::Mpls(type_, entry));
    }

    /// Pops the outermost MPLS entry; the model knows the type of the payload.
    pub fn pop_mpls(&mut self) {
        let behind = self.behind_link();
        if let Some(Link::Mpls(..)) = self.links.get(behind) {
            self.links.remove(behind);
        }
    }

    /// Returns the type after the outermost MPLS entry, if there is one.
    pub fn type_behind_mpls(&self) -> Option<u16> {
        let behind = self.behind_link();
        let Some(Link::Mpls(..)) = self.links.get(behind) else { return None };
        Some(self.links.get(behind + 1).map_or(self.network_type(), link_type))
    }

    /// Pushes a PBB header.
    pub fn push_pbb(&mut self) {
        let priority = match self.links.first() {
            Some(Link::Vlan(_, control)) => (control >> 13) as u8,
            _ => 0,
        };
        let isid = match self.links.get(self.behind_link()) {
            Some(Link::Pbb(header)) => header.isid,
            _ => 0,
        };
        let header = pbb::Header {
            priority,
            drop_eligible: false,
            use_customer_addresses: false,
            isid,
            destination: mac(self.destination),
            source: mac(self.source),
        };
        self.links.insert(0, Link::Pbb(header));
    }

    /// Pops the outermost service tag.
    pub fn pop_pbb(&mut self) {
        let behind = self.behind_link();
        if let Some(Link::Pbb(header)) = self.links.get(behind) {
            (self.destination, self.source) = (number(header.destination), number(header.source));
            self.links.remove(behind);
        }
    }

    /// Returns the visible headers with a TTL, the outermost first, at most two: indexes in
    /// `links`, or `usize::MAX` for IP.
    pub fn ttls(&self) -> Vec<usize> {
        let behind = self.behind_link();
        let entries = self.links[behind..].iter().take_while(|link| matches!(link, Link::Mpls(..)));
        let count = entries.count();
        let mut places: Vec<usize> = (behind..behind + count).collect();
        let ip = matches!(self.network, Network::Ipv4(_) | Network::Ipv6(..));
        if ip && behind + count == self.links.len() {
            places.push(usize::MAX);
        }
        places.truncate(2);
        places
    }

    /// Returns the TTL at one of these positions.
    pub fn ttl(&self, place: usize) -> u8 {
        match (self.links.get(place), &self.network) {
            (Some(Link::Mpls(_, entry)), _) => entry.ttl,
            (_, Network::Ipv4(header)) => header.ttl,
            (_, Network::Ipv6(header, _)) => header.hop_limit,
            _ => unreachable!("only positions that `ttls` returns"),
        }
    }

    /// Sets the TTL at one of these positions.
    pub fn set_ttl(&mut self, place: usize, ttl: u8) {
        match (self.links.get_mut(place), &mut self.network) {
            (Some(Link::Mpls(_, entry)), _) => entry.ttl = ttl,
            (_, Network::Ipv4(header)) => header.ttl = ttl,
            (_, Network::Ipv6(header, _)) => header.hop_limit = ttl,
            _ => unreachable!("only positions that `ttls` returns"),
        }
    }
}

fn link_type(link: &Link) -> u16 {
    match link {
        Link::Vlan(type_, _) | Link::Mpls(type_, _) => *type_,
        Link::Pbb(_) => 0x88e7,
        Link::Snap => 0,
    }
}
