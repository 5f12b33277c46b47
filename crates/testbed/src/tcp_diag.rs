//! The kernel's data on a namespace's TCP connections: windows, losses and retransmissions.
//!
//! Source: `sock_diag(7)`, the kernel's `inet_diag.h`, `struct tcp_info` in its `tcp.h`;
//! `/proc/net/netstat` and `/proc/net/snmp` for the counters of the whole namespace. A kernel older
//! than a field omits it.
//!
//! Invariant: reading changes nothing, so it is possible while a connection is active.

use std::fs;
use std::net::SocketAddrV4;

use netlink_sys::Socket;

use crate::netlink::{self, Message, diagnosis};
use crate::{LabError, Namespace};

const WHAT: &str = "list the connections by TCP";
/// `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// The attribute with `struct tcp_info`, and the bit that requests it.
const ATTRIBUTE_INFO: u16 = 2;
const EXTENSION_INFO: u8 = 1 << (ATTRIBUTE_INFO - 1);
/// The state of an established connection, as a bit.
const ESTABLISHED: u32 = 1 << 1;
/// Bytes of `struct inet_diag_msg`, and offsets of the peer's port and address.
const MESSAGE_BYTES: usize = 72;
const PEER_PORT_AT: usize = 6;
const PEER_ADDRESS_AT: usize = 24;
/// Offsets in `struct tcp_info`.
const SEGMENT_BYTES_AT: usize = 16;
const ROUND_TRIP_US_AT: usize = 68;
const CONGESTION_SEGMENTS_AT: usize = 80;
const ACKED_BYTES_AT: usize = 120;
const WINDOW_BYTES_AT: usize = 228;

/// A connection from its sender's view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The peer.
    pub peer: SocketAddrV4,
    /// Bytes acknowledged by the peer.
    pub acked_bytes: u64,
    /// The peer's receive window in bytes; absent on kernels older than 5.4.
    pub window_bytes: Option<u64>,
    /// Payload of a full segment in bytes.
    pub segment_bytes: u32,
    /// Congestion window of the sender in segments.
    pub congestion_segments: u32,
    /// Smoothed round-trip time in microseconds.
    pub round_trip_us: u32,
}

/// Reads the connections of a namespace repeatedly.
pub struct Diagnosis {
    socket: Socket,
}

impl std::fmt::Debug for Diagnosis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Diagnosis")
    }
}

impl Diagnosis {
    /// Opens a query socket for this namespace.
    pub fn of(namespace: &Namespace) -> Result<Diagnosis, LabError> {
        Ok(Diagnosis { socket: diagnosis::socket(namespace)? })
    }

    /// Returns the established IPv4 connections.
    pub fn connections(&self) -> Result<Vec<Connection>, LabError> {
        diagnosis::list(&self.socket, WHAT, &request(), parse)
    }
}

fn request() -> Vec<u8> {
    let mut bytes = vec![libc::AF_INET as u8, libc::IPPROTO_TCP as u8, EXTENSION_INFO, 0];
    bytes.extend(ESTABLISHED.to_ne_bytes());
    bytes.resize(REQUEST_BYTES, 0);
    bytes
}

fn parse(message: &Message<'_>) -> Option<Connection> {
    let body = message.body;
    let port: [u8; 2] = *body.get(PEER_PORT_AT..)?.first_chunk()?;
    let address: [u8; 4] = *body.get(PEER_ADDRESS_AT..)?.first_chunk()?;
    let attributes = netlink::attributes(body.get(MESSAGE_BYTES..)?);
    let (_, info) = attributes.into_iter().find(|(kind, _)| *kind == ATTRIBUTE_INFO)?;
    Some(Connection {
        peer: SocketAddrV4::new(address.into(), u16::from_be_bytes(port)),
        acked_bytes: u64::from_ne_bytes(*info.get(ACKED_BYTES_AT..)?.first_chunk()?),
        window_bytes: word(info, WINDOW_BYTES_AT).map(u64::from),
        segment_bytes: word(info, SEGMENT_BYTES_AT)?,
        congestion_segments: word(info, CONGESTION_SEGMENTS_AT)?,
        round_trip_us: word(info, ROUND_TRIP_US_AT)?,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// TCP counters of a namespace since its creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Retransmitted segments, for all reasons.
    pub resent: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmissions, after acknowledgements of later segments.
    pub resent_fast: u64,
    /// Loss probes, sent before a timeout.
    pub probes: u64,
    /// Spurious timeouts: the acknowledgement was only late.
    pub spurious: u64,
}

impl Counts {
    /// Reads the counters of this namespace.
    pub fn of(namespace: &Namespace) -> Result<Counts, LabError> {
        let read = || -> Result<(String, String), LabError> {
            let file = |name: &str| {
                let path = format!("/proc/thread-self/net/{name}");
                fs::read_to_string(&path).map_err(|error| LabError::system("read", path, error))
            };
            Ok((file("snmp")?, file("netstat")?))
        };
        let (plain, extended) = namespace.run(read)??;
        let count = |text: &str, group: &str, name: &str| counted(text, group, name).unwrap_or(0);
        Ok(Counts {
            resent: count(&plain, "Tcp", "RetransSegs"),
            timeouts: count(&extended, "TcpExt", "TCPTimeouts"),
            resent_fast: count(&extended, "TcpExt", "TCPFastRetrans"),
            probes: count(&extended, "TcpExt", "TCPLossProbes"),
            spurious: count(&extended, "TcpExt", "TCPSpuriousRTOs"),
        })
    }

    /// Returns the difference from an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            resent: self.resent.saturating_sub(before.resent),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            resent_fast: self.resent_fast.saturating_sub(before.resent_fast),
            probes: self.probes.saturating_sub(before.probes),
            spurious: self.spurious.saturating_sub(before.spurious),
        }
    }
}

/// Parses a counter of a group: a line of names and a line of values, both after the group's name.
fn counted(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|it| it == name)?;
    values.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "Ip: Forwarding RetransSegs\nIp: 1 7\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 42 0\n";

    #[test]
    fn a_counter_is_found_by_group_and_name() {
        assert_eq!(counted(TEXT, "Tcp", "RetransSegs"), Some(42));
        assert_eq!(counted(TEXT, "Tcp", "TCPTimeouts"), None);
        assert_eq!(counted(TEXT, "TcpExt", "RetransSegs"), None);
        assert_eq!(counted("Tcp: RetransSegs\n", "Tcp", "RetransSegs"), None);
    }

    /// Builds a message in the kernel's layout, with `info` bytes of `struct tcp_info`.
    fn message(info: usize) -> Vec<u8> {
        let mut reported = vec![0_u8; info];
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = reported.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        put(SEGMENT_BYTES_AT, &1448_u32.to_ne_bytes());
        put(ROUND_TRIP_US_AT, &80_u32.to_ne_bytes());
        put(CONGESTION_SEGMENTS_AT, &10_u32.to_ne_bytes());
        put(ACKED_BYTES_AT, &123_456_789_012_u64.to_ne_bytes());
        put(WINDOW_BYTES_AT, &65_536_u32.to_ne_bytes());
        let mut body = vec![0; MESSAGE_BYTES];
        body[PEER_PORT_AT..PEER_PORT_AT + 2].copy_from_slice(&5201_u16.to_be_bytes());
        body[PEER_ADDRESS_AT..PEER_ADDRESS_AT + 4].copy_from_slice(&[10, 0, 2, 2]);
        body.extend(((info + 4) as u16).to_ne_bytes());
        body.extend(ATTRIBUTE_INFO.to_ne_bytes());
        body.extend(reported);
        let mut bytes = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend([0; 12]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_connection_is_parsed_as_far_as_the_kernel_reports_it() {
        let read = |info| {
            let bytes = message(info);
            netlink::messages(&bytes).find_map(|it| parse(&it))
        };
        let whole = read(248).unwrap();
        assert_eq!(whole.peer, "10.0.2.2:5201".parse().unwrap());
        assert_eq!((whole.acked_bytes, whole.window_bytes), (123_456_789_012, Some(65_536)));
        assert_eq!((whole.congestion_segments, whole.round_trip_us), (10, 80));
        assert_eq!(whole.segment_bytes, 1448);
        assert_eq!(read(200).unwrap().window_bytes, None, "an older kernel");
        assert_eq!(read(40), None, "cut off");
    }
}
