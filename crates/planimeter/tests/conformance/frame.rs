//! Frames from words: `udp vlan=5/3 ipv4_dst=10.9.9.9` is a complete frame with correct checksums.
//!
//! The first word names the innermost packet. `vlan=`, `mpls=` and `pbb=` add headers in front of
//! it, outermost first, in the written order. Every other word sets one field by its name in the
//! specification. Frames of a switch are compared with frames made here, so this code shares
//! nothing with the switch's: it builds each frame from the inside out.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Default number of bytes behind the innermost header: enough that no frame here is ever padded.
const PAYLOAD_BYTES: usize = 64;

/// Returns the frame that these words describe.
pub fn frame(words: &[&str]) -> Result<Vec<u8>, String> {
    let (kind, rest) = words.split_first().ok_or("a frame has a kind")?;
    let mut given = Given::default();
    for word in rest {
        given.take(word)?;
    }
    let (ether_type, packet) = packet(kind, &mut given)?;
    let bytes = around(ether_type, packet, &mut given)?;
    match given.fields.keys().next() {
        Some(name) => Err(format!("a frame of kind {kind} has no {name}")),
        None => Ok(bytes),
    }
}

/// Given values, removed as they are used, so that an unused one is an error.
#[derive(Default)]
struct Given {
    fields: HashMap<String, String>,
    /// Outer headers, outermost first.
    headers: Vec<(String, Vec<u64>)>,
}

impl Given {
    fn take(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        if ["vlan", "mpls", "pbb"].contains(&name) {
            let numbers = value.split('/').map(number).collect::<Result<_, _>>()?;
            self.headers.push((name.to_owned(), numbers));
        } else if self.fields.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(format!("{name} is given twice"));
        }
        Ok(())
    }

    fn number(&mut self, name: &str, otherwise: u64) -> Result<u64, String> {
        self.fields.remove(name).map_or(Ok(otherwise), |text| number(&text))
    }

    fn mac(&mut self, name: &str, otherwise: u64) -> Result<[u8; 6], String> {
        let bits = self.fields.remove(name).map_or(Ok(otherwise), |text| mac(&text))?;
        Ok(std::array::from_fn(|at| (bits >> (40 - 8 * at)) as u8))
    }

    fn ipv4(&mut self, name: &str, otherwise: [u8; 4]) -> Result<[u8; 4], String> {
        let Some(text) = self.fields.remove(name) else { return Ok(otherwise) };
        let address: Ipv4Addr = text.parse().map_err(|_| format!("{name}: {text}"))?;
        Ok(address.octets())
    }

    fn ipv6(&mut self, name: &str, otherwise: &str) -> Result<[u8; 16], String> {
        let text = self.fields.remove(name).unwrap_or_else(|| otherwise.to_owned());
        let address: Ipv6Addr = text.parse().map_err(|_| format!("{name}: {text}"))?;
        Ok(address.octets())
    }

    fn has(&mut self, name: &str) -> bool {
        self.fields.remove(name).is_some()
    }
}

/// Parses a decimal or, after `0x`, hexadecimal number.
pub fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("{text:?} is no number"))
}

/// Parses six bytes with colons between them.
pub fn mac(text: &str) -> Result<u64, String> {
    let bytes: Vec<_> = text.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
    if bytes.len() != 6 || bytes.iter().any(Result::is_err) {
        return Err(format!("{text:?} is no Ethernet address"));
    }
    Ok(bytes.into_iter().flatten().fold(0, |bits, byte| bits << 8 | u64::from(byte)))
}

const SOURCE: u64 = 0x0200_0000_0001;
const DESTINATION: u64 = 0x0200_0000_0002;

/// Returns the network packet with its EtherType.
fn packet(kind: &str, given: &mut Given) -> Result<(u16, Vec<u8>), String> {
    let payload: Vec<u8> =
        (0..given.number("payload", PAYLOAD_BYTES as u64)?).map(|at| at as u8).collect();
    match kind {
        "eth" => Ok((given.number("eth_type", 0x9000)? as u16, payload)),
        "arp" => Ok((0x0806, arp(given)?)),
        "ipv4" | "tcp" | "udp" | "sctp" | "icmp" => Ok((0x0800, ipv4(kind, payload, given)?)),
        "ipv6" | "tcp6" | "udp6" | "sctp6" | "icmp6" | "ns" | "na" => {
            Ok((0x86dd, ipv6(kind.trim_end_matches('6'), payload, given)?))
        }
        _ => Err(format!("no frame is of kind {kind:?}")),
    }
}

fn arp(given: &mut Given) -> Result<Vec<u8>, String> {
    let mut out = vec![0, 1, 8, 0, 6, 4];
    out.extend((given.number("arp_op", 1)? as u16).to_be_bytes());
    out.extend(given.mac("arp_sha", SOURCE)?);
    out.extend(given.ipv4("arp_spa", [10, 0, 0, 1])?);
    out.extend(given.mac("arp_tha", 0)?);
    out.extend(given.ipv4("arp_tpa", [10, 0, 0, 2])?);
    out.extend([0; 40]);
    Ok(out)
}

fn ipv4(kind: &str, payload: Vec<u8>, given: &mut Given) -> Result<Vec<u8>, String> {
    let source = given.ipv4("ipv4_src", [10, 0, 0, 1])?;
    let destination = given.ipv4("ipv4_dst", [10, 0, 0, 2])?;
    let protocol = given.number("ip_proto", protocol_of(kind))? as u8;
    let pseudo = |length: usize| {
        [&source[..], &destination, &[0, protocol], &(length as u16).to_be_bytes()].concat()
    };
    let body = transport(kind, payload, &pseudo, given)?;
    let (offset, more) = fragment(given)?;
    let body = if offset > 0 { body[..body.len().min(40)].to_vec() } else { body };
    let mut out = vec![0x45, traffic_class(given)?];
    out.extend((20 + body.len() as u16).to_be_bytes());
    out.extend((given.number("ip_id", 7)? as u16).to_be_bytes());
    out.extend((offset | u16::from(more) << 13).to_be_bytes());
    out.extend([given.number("ttl", 64)? as u8, protocol, 0, 0]);
    out.extend(source);
    out.extend(destination);
    let sum = checksum(&out);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend(body);
    Ok(out)
}

/// `frag=OFFSET/MORE`: the offset in units of eight bytes, and 1 if more follow.
fn fragment(given: &mut Given) -> Result<(u16, bool), String> {
    let Some(text) = given.fields.remove("frag") else { return Ok((0, false)) };
    let (offset, more) = text.split_once('/').ok_or("frag=OFFSET/MORE")?;
    Ok((number(offset)? as u16, number(more)? == 1))
}

fn traffic_class(given: &mut Given) -> Result<u8, String> {
    Ok((given.number("ip_dscp", 0)? << 2 | given.number("ip_ecn", 0)?) as u8)
}

fn protocol_of(kind: &str) -> u64 {
    match kind {
        "tcp" => 6,
        "udp" => 17,
        "sctp" => 132,
        "icmp" => 1,
        _ => 253,
    }
}

fn ipv6(kind: &str, payload: Vec<u8>, given: &mut Given) -> Result<Vec<u8>, String> {
    let source = given.ipv6("ipv6_src", "fd00::1")?;
    let destination = given.ipv6("ipv6_dst", "fd00::2")?;
    let inner = if matches!(kind, "icmp" | "ns" | "na") { 58 } else { protocol_of(kind) };
    let protocol = given.number("ip_proto", inner)? as u8;
    let pseudo = |length: usize| {
        let length = (length as u32).to_be_bytes();
        [&source[..], &destination, &length, &[0, 0, 0, protocol]].concat()
    };
    let kind6 = if kind == "icmp" { "icmp6" } else { kind };
    let mut body = transport(kind6, payload, &pseudo, given)?;
    let mut next = protocol;
    let extensions = given.fields.remove("ext").unwrap_or_default();
    for name in extensions.split(',').rev().filter(|name| !name.is_empty()) {
        let (number, header): (u8, [u8; 8]) = match name {
            "hop" => (0, [next, 0, 1, 4, 0, 0, 0, 0]),
            "route" => (43, [next, 0, 253, 0, 0, 0, 0, 0]),
            "frag" => (44, [next, 0, 0, 0, 0, 0, 0, 9]),
            "dest" => (60, [next, 0, 1, 4, 0, 0, 0, 0]),
            "auth" => (51, [next, 0, 0, 0, 0, 0, 0, 1]),
            _ => return Err(format!("no extension header is called {name}")),
        };
        body.splice(0..0, header);
        next = number;
    }
    let mut out = Vec::new();
    let first = 6 << 28 | u32::from(traffic_class(given)?) << 20;
    out.extend((first | given.number("ipv6_flabel", 0)? as u32).to_be_bytes());
    out.extend((body.len() as u16).to_be_bytes());
    out.extend([next, given.number("ttl", 64)? as u8]);
    out.extend(source);
    out.extend(destination);
    out.extend(body);
    Ok(out)
}

/// Returns the bytes behind the network header, with their checksum.
fn transport(
    kind: &str,
    payload: Vec<u8>,
    pseudo: &dyn Fn(usize) -> Vec<u8>,
    given: &mut Given,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let ports = |out: &mut Vec<u8>, name: &str, given: &mut Given| -> Result<(), String> {
        out.extend((given.number(&format!("{name}_src"), 1000)? as u16).to_be_bytes());
        out.extend((given.number(&format!("{name}_dst"), 2000)? as u16).to_be_bytes());
        Ok(())
    };
    let checksum_at = match kind {
        "udp" => {
            ports(&mut out, "udp", given)?;
            out.extend((8 + payload.len() as u16).to_be_bytes());
            out.extend([0; 2]);
            if given.has("no_checksum") { None } else { Some(6) }
        }
        "tcp" => {
            ports(&mut out, "tcp", given)?;
            out.extend([0, 0, 0, 1, 0, 0, 0, 2]);
            out.extend((0x5000 | given.number("tcp_flags", 0x10)? as u16).to_be_bytes());
            out.extend([1, 0, 0, 0, 0, 0]);
            Some(16)
        }
        "sctp" => {
            ports(&mut out, "sctp", given)?;
            out.extend([0, 0, 0, 9, 0, 0, 0, 0]);
            out.extend([0, 3, 0, 68]);
            out.extend(&payload);
            let sum = crc32c(&out);
            out[8..12].copy_from_slice(&sum.to_le_bytes());
            return Ok(out);
        }
        "icmp" => {
            out.push(given.number("icmpv4_type", 8)? as u8);
            out.push(given.number("icmpv4_code", 0)? as u8);
            out.extend([0, 0, 0, 1, 0, 1]);
            out.extend(&payload);
            let sum = checksum(&out);
            out[2..4].copy_from_slice(&sum.to_be_bytes());
            return Ok(out);
        }
        "icmp6" => {
            out.push(given.number("icmpv6_type", 128)? as u8);
            out.push(given.number("icmpv6_code", 0)? as u8);
            out.extend([0, 0, 0, 1, 0, 1]);
            Some(2)
        }
        "ns" | "na" => {
            let (icmp_type, option) = if kind == "ns" { (135, 1) } else { (136, 2) };
            out.push(given.number("icmpv6_type", icmp_type)? as u8);
            out.push(given.number("icmpv6_code", 0)? as u8);
            out.extend([0; 6]);
            out.extend(given.ipv6("ipv6_nd_target", "fd00::9")?);
            let name = if kind == "ns" { "ipv6_nd_sll" } else { "ipv6_nd_tll" };
            out.extend([option, 1]);
            out.extend(given.mac(name, 0x0200_0000_0007)?);
            let body = [pseudo(out.len()), out.clone()].concat();
            let sum = checksum(&body);
            out[2..4].copy_from_slice(&sum.to_be_bytes());
            return Ok(out);
        }
        _ => None,
    };
    out.extend(payload);
    if let Some(at) = checksum_at {
        let sum = checksum(&[pseudo(out.len()), out.clone()].concat());
        let sum = if kind == "udp" && sum == 0 { 0xffff } else { sum };
        out[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    Ok(out)
}

/// Prepends the headers: innermost first, the MAC addresses last.
fn around(ether_type: u16, packet: Vec<u8>, given: &mut Given) -> Result<Vec<u8>, String> {
    let (mut ether_type, mut body) = (ether_type, packet);
    let headers = std::mem::take(&mut given.headers);
    let mut below_is_mpls = false;
    for (name, numbers) in headers.iter().rev() {
        let get = |at: usize, otherwise: u64| numbers.get(at).copied().unwrap_or(otherwise);
        let mut header = Vec::new();
        match name.as_str() {
            // vlan=ID/PRIORITY/TPID
            "vlan" => {
                header.extend(((get(1, 0) << 13 | get(0, 0)) as u16).to_be_bytes());
                header.extend(ether_type.to_be_bytes());
                ether_type = get(2, 0x8100) as u16;
            }
            // mpls=LABEL/CLASS/TTL/TYPE/BOTTOM; by default the bottom bit follows from the
            // position.
            "mpls" => {
                let bottom = get(4, u64::from(!below_is_mpls));
                let entry = get(0, 0) << 12 | get(1, 0) << 9 | bottom << 8 | get(2, 64);
                header.extend((entry as u32).to_be_bytes());
                ether_type = get(3, 0x8847) as u16;
            }
            // pbb=ISID/UCA/PRIORITY, followed by the customer's addresses.
            _ => {
                let tag = get(2, 0) << 29 | get(1, 0) << 27 | get(0, 0);
                header.extend((tag as u32).to_be_bytes());
                header.extend(given.mac("customer_dst", DESTINATION)?);
                header.extend(given.mac("customer_src", SOURCE)?);
                header.extend(ether_type.to_be_bytes());
                ether_type = 0x88e7;
            }
        }
        below_is_mpls = name == "mpls";
        header.extend(body);
        body = header;
    }
    let mut out = Vec::new();
    out.extend(given.mac("eth_dst", DESTINATION)?);
    out.extend(given.mac("eth_src", SOURCE)?);
    if given.has("snap") {
        out.extend((8 + body.len() as u16).to_be_bytes());
        out.extend([0xaa, 0xaa, 3, 0, 0, 0]);
    } else if given.has("llc") {
        out.extend((3 + body.len() as u16).to_be_bytes());
        out.extend([0x42, 0x42, 3]);
        out.extend(body);
        return Ok(out);
    }
    out.extend(ether_type.to_be_bytes());
    out.extend(body);
    Ok(out)
}

/// The Internet checksum (RFC 1071) over all bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// CRC32c (RFC 9260, appendix A), bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}
