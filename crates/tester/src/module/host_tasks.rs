//! Host tasks: programs that send through sockets at the ends of the tester's links.
//!
//! A stream's frames come from the tester itself. A host's packets pass a system's sockets, with
//! their delays, as in studies that use client and server programs. A module starts a task by
//! [`run_host_task`](super::ModuleContext::run_host_task).
//! [`EventKind::HostTask`](super::EventKind::HostTask) reports its result.
//!
//! Invariants:
//!
//! - Only one task runs.
//! - A host has its addresses only while its task runs.

use std::net::Ipv4Addr;

use packet::time::Nanos;

use crate::stream::Stream;

/// Bytes of a frame around the UDP payload: headers and frame check sequence.
const AROUND_PAYLOAD: usize = 14 + 20 + 8 + 4;

/// Minimum UDP payload in bytes, for the packet's sequence number.
pub const PAYLOAD_BYTES_MIN: usize = 8;

/// A host at the end of one of the tester's links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Index of the tester's port.
    pub port: usize,
    /// MAC address.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// UDP port.
    pub udp_port: u16,
    /// MAC address of the next hop: the other host or a router.
    pub next_hop: [u8; 6],
}

/// A host task.
#[derive(Debug, Clone, PartialEq)]
pub enum HostTask {
    /// Request-response exchange with one packet outstanding.
    Talk(RequestResponseTest),
    /// Load from a program.
    Load(Load),
    /// TCP transfer by a program.
    Transfer(Transfer),
}

/// Packets that a server echoes to a client, one outstanding.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestResponseTest {
    /// Client and server.
    pub hosts: [Host; 2],
    /// UDP payload in bytes, at least [`PAYLOAD_BYTES_MIN`].
    pub payload_bytes: usize,
    /// Number of packets.
    pub packets: u64,
    /// Timeout after which a packet counts as lost.
    pub wait: Nanos,
    /// Ends the exchange after this many consecutive losses.
    pub lost_in_a_row_max: u64,
}

/// A program that sends from one host to another for a limited time.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The program.
    pub program: Program,
    /// Sender and receiver.
    pub hosts: [Host; 2],
    /// Payload of a datagram in bytes.
    pub payload_bytes: usize,
    /// Payload bytes per second. None for as many as the program can send.
    pub bytes_per_s: Option<f64>,
    /// Maximum duration, after which the load ends.
    pub limit: Nanos,
}

/// A TCP connection over which a program sends as much as it can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The program.
    pub program: Program,
    /// Sender and receiver.
    pub hosts: [Host; 2],
    /// VLAN tags of packets to the receiver. They are removed before its system receives them.
    pub untags: Vec<u16>,
    /// TCP window of both hosts in bytes. None for the system's default.
    pub window_bytes: Option<u64>,
    /// Frame size in bytes, check sequence included. None for the largest that the link takes.
    pub frame_bytes: Option<u32>,
    /// Duration. A program can round it up to whole seconds.
    pub span: Nanos,
}

/// A load generator program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// iperf3, which has a TCP control connection in addition to its datagrams.
    Iperf3,
}

/// Result of a host task.
#[derive(Debug, Clone, PartialEq)]
pub enum HostTaskResult {
    /// An exchange is over.
    Talked(RequestResponseReport),
    /// A load has started: the program sends.
    Loading,
    /// A load is over.
    Loaded(Loaded),
    /// A TCP transfer is over.
    Transferred(TransferResult),
    /// The task failed or stopped early, with the reason.
    Failed(String),
}

/// Result of an exchange.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestResponseReport {
    /// Packets that came back, in the order in which they were sent.
    pub returned: Vec<Exchange>,
    /// Packets sent.
    pub sent: u64,
    /// Whether it ended because of too many consecutive losses.
    pub is_given_up: bool,
}

/// An echoed packet with timestamps around both programs' system calls, on one clock with any
/// epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Sequence number, from 0.
    pub number: u64,
    /// Before the client's send call.
    pub sent_at: Nanos,
    /// After the server's receive call.
    pub came_at: Nanos,
    /// Before the server's send call.
    pub answered_at: Nanos,
    /// After the client's receive call.
    pub back_at: Nanos,
}

/// Sent and received counts that a program reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// Program and version, as it reports them.
    pub program: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Payload bytes sent.
    pub sent_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Datagrams that the receiver missed, if reported.
    pub lost: Option<u64>,
}

/// Result of a TCP transfer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TransferResult {
    /// Program and version, as it reports them.
    pub program: String,
    /// The sender's congestion control algorithm.
    pub congestion: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Retransmitted segments, as the program reports them.
    pub retransmits: u64,
    /// Retransmission timeouts of the sender's system.
    pub timeouts: u64,
    /// Spurious timeouts among them.
    pub timeouts_spurious: u64,
    /// Fast retransmissions of the sender's system.
    pub retransmits_fast: u64,
    /// Largest window that the receiver offered, in bytes, if it can be observed.
    pub window_bytes: Option<u64>,
    /// Largest congestion window of the sender in bytes, if reported.
    pub congestion_bytes: Option<u64>,
    /// Mean round-trip time in microseconds, if reported.
    pub round_trip_us: Option<u64>,
    /// Maximum segment payload in bytes, if reported.
    pub segment_bytes: Option<u64>,
}

impl Host {
    /// The host that sends this stream's frames.
    pub fn sending(stream: &Stream) -> Host {
        let headers = &stream.headers;
        Host {
            port: stream.from,
            mac: headers.mac_source,
            address: headers.ip_source,
            udp_port: headers.port_source,
            next_hop: headers.mac_destination,
        }
    }
}

impl RequestResponseTest {
    /// An exchange with the headers and sizes of a client's and a server's stream.
    pub fn of(ways: &[Stream; 2], packets: u64, wait: Nanos) -> RequestResponseTest {
        RequestResponseTest {
            hosts: ways.each_ref().map(Host::sending),
            payload_bytes: payload_bytes(ways[0].frame_bytes),
            packets,
            wait,
            lost_in_a_row_max: u64::MAX,
        }
    }
}

/// Returns the UDP payload of a frame of this size, check sequence included.
pub fn payload_bytes(frame_bytes: usize) -> usize {
    frame_bytes.saturating_sub(AROUND_PAYLOAD).max(PAYLOAD_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Headers, Rate};

    #[test]
    fn hosts_have_the_addresses_of_their_frames() {
        let ip = ([10, 0, 1, 2].into(), [10, 0, 2, 2].into());
        let there = Headers::udp(([2; 6], [4; 6]), ip, (1024, 5201));
        let back = Headers::udp(([4; 6], [2; 6]), (ip.1, ip.0), (5201, 1024));
        let stream = |headers, from, to| {
            let plain = Stream::plain(1, 128, headers, Rate::FramesPerSecond(1.0));
            Stream { from, to, ..plain }
        };
        let talk = RequestResponseTest::of(&[stream(there, 0, 1), stream(back, 1, 0)], 5, Nanos(7));
        let [client, server] = talk.hosts;
        assert_eq!((client.port, client.udp_port, client.next_hop), (0, 1024, [4; 6]));
        assert_eq!((server.address, server.udp_port, server.mac), (ip.1, 5201, [4; 6]));
        assert_eq!((talk.payload_bytes, payload_bytes(64), payload_bytes(0)), (82, 18, 8));
    }
}
