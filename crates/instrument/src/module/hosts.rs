//! Errands of hosts: what programs with sockets of their own do at the ends of the tester's links.
//!
//! Frames of streams are the tester's own; what a host sends has passed a system's sockets, with all the time that
//! this takes, as in studies whose client and server are programs. A module says what is to be done by
//! [`Desk::errand`](super::Desk::errand) and is told what came of it by [`What::Errand`](super::What::Errand). Invariant: one
//! errand at a time; a host has its addresses for as long as its errand takes and no longer.

use std::net::Ipv4Addr;

use packet::time::Nanos;

use crate::stream::Stream;

/// Bytes of a frame around what UDP carries: headers and frame check sequence.
const AROUND_PAYLOAD: usize = 14 + 20 + 8 + 4;

/// Bytes that UDP has to carry at least, so that packets are known by their numbers.
pub const PAYLOAD_BYTES_MIN: usize = 8;

/// A host at the end of one of the tester's links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// The tester's port at which it is, from 0.
    pub port: usize,
    /// Its hardware address.
    pub mac: [u8; 6],
    /// Its address.
    pub address: Ipv4Addr,
    /// Its UDP port.
    pub udp_port: u16,
    /// The hardware address that leads to the other host: that host's own, or a router's.
    pub next_hop: [u8; 6],
}

/// Something that hosts are to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Errand {
    /// Packets there and back, one at a time.
    Talk(Talk),
    /// A load that a program sends.
    Load(Load),
    /// A connection by TCP over which a program sends.
    Transfer(Transfer),
}

/// Packets of a client that a server returns, one outstanding.
#[derive(Debug, Clone, PartialEq)]
pub struct Talk {
    /// Who begins, and who answers.
    pub hosts: [Host; 2],
    /// What UDP carries, in bytes, at least [`PAYLOAD_BYTES_MIN`].
    pub payload_bytes: usize,
    /// How many packets.
    pub packets: u64,
    /// When a packet counts as lost.
    pub wait: Nanos,
    /// So many lost in a row end it.
    pub lost_in_a_row_max: u64,
}

/// A program that sends from one host to another for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The program.
    pub program: Program,
    /// Who sends, and who receives.
    pub hosts: [Host; 2],
    /// What a datagram carries, in bytes.
    pub payload_bytes: usize,
    /// Bytes of payload a second; none for as many as the program can send.
    pub bytes_per_s: Option<f64>,
    /// The longest that it may last; it ends by itself then.
    pub limit: Nanos,
}

/// A connection by TCP over which a program sends as much as it can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The program.
    pub program: Program,
    /// Who sends, and who receives.
    pub hosts: [Host; 2],
    /// The receiver's packets come with tags of these VLANs, which are taken off before its system sees them.
    pub untags: Vec<u16>,
    /// The window that both are given, in bytes; none for what their system gives by itself.
    pub window_bytes: Option<u64>,
    /// Bytes of a full frame, check sequence included; none for the largest that the link takes.
    pub frame_bytes: Option<u32>,
    /// How long it sends; a program may round that up to whole seconds.
    pub span: Nanos,
}

/// A program that makes load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// iperf3, which has a connection of its own by TCP beside its datagrams.
    Iperf3,
}

/// What came of an errand.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    /// Packets went there and back.
    Talked(Talked),
    /// A load has begun: the program sends.
    Loading,
    /// A load is over.
    Loaded(Loaded),
    /// A connection is over.
    Transferred(Transferred),
    /// It could not be done, or not to its end, and why.
    Failed(String),
}

/// What came of packets there and back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Talked {
    /// Those that came back, in the order in which they were sent.
    pub returned: Vec<Exchange>,
    /// How many were sent.
    pub sent: u64,
    /// Whether it ended because too many in a row were lost.
    pub is_given_up: bool,
}

/// A packet that came back: moments around the system's calls of both programs, on one clock with any beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Its number, from 0.
    pub number: u64,
    /// Before the client's call that sent it.
    pub sent_at: Nanos,
    /// After the server's call that received it.
    pub came_at: Nanos,
    /// Before the server's call that sent it back.
    pub answered_at: Nanos,
    /// After the client's call that received it.
    pub back_at: Nanos,
}

/// What a program says that it sent and received.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loaded {
    /// The program and its version, as it says.
    pub program: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes of payload sent.
    pub sent_bytes: u64,
    /// How long it sent, in seconds.
    pub seconds: f64,
    /// Datagrams that its receiver missed, where it says.
    pub lost: Option<u64>,
}

/// What came of a connection by TCP.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transferred {
    /// The program and its version, as it says.
    pub program: String,
    /// How the sender answered congestion.
    pub congestion: String,
    /// Bytes that the receiver had.
    pub received_bytes: u64,
    /// In how many seconds.
    pub seconds: f64,
    /// Segments that were sent again, as the program says.
    pub retransmits: u64,
    /// Timers of the sender's system that ran out before an acknowledgement came.
    pub timeouts: u64,
    /// Of those, such as turned out to have been needless.
    pub timeouts_spurious: u64,
    /// Segments that its system sent again because later ones were acknowledged.
    pub retransmits_fast: u64,
    /// The largest window that the receiver was seen to offer, in bytes, where that can be seen.
    pub window_bytes: Option<u64>,
    /// The largest that the sender allowed itself, in bytes, where it says.
    pub congestion_bytes: Option<u64>,
    /// The mean time of a round trip, in microseconds, where it says.
    pub round_trip_us: Option<u64>,
    /// Payload of a full segment, in bytes, where it says.
    pub segment_bytes: Option<u64>,
}

impl Host {
    /// The host that sends such frames.
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

impl Talk {
    /// The packets of a client's stream and a server's, of the same headers and sizes.
    pub fn of(ways: &[Stream; 2], packets: u64, wait: Nanos) -> Talk {
        Talk {
            hosts: ways.each_ref().map(Host::sending),
            payload_bytes: payload_bytes(ways[0].frame_bytes),
            packets,
            wait,
            lost_in_a_row_max: u64::MAX,
        }
    }
}

/// What UDP carries in a frame of this size, check sequence included.
pub fn payload_bytes(frame_bytes: usize) -> usize {
    frame_bytes.saturating_sub(AROUND_PAYLOAD).max(PAYLOAD_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Headers, Rate};

    #[test]
    fn hosts_have_the_headers_of_the_frames_that_they_send() {
        let ip = ([10, 0, 1, 2].into(), [10, 0, 2, 2].into());
        let there = Headers::udp(([2; 6], [4; 6]), ip, (1024, 5201));
        let back = Headers::udp(([4; 6], [2; 6]), (ip.1, ip.0), (5201, 1024));
        let stream = |headers, from, to| {
            let plain = Stream::plain(1, 128, headers, Rate::FramesPerSecond(1.0));
            Stream { from, to, ..plain }
        };
        let talk = Talk::of(&[stream(there, 0, 1), stream(back, 1, 0)], 5, Nanos(7));
        let [client, server] = talk.hosts;
        assert_eq!((client.port, client.udp_port, client.next_hop), (0, 1024, [4; 6]));
        assert_eq!((server.address, server.udp_port, server.mac), (ip.1, 5201, [4; 6]));
        assert_eq!((talk.payload_bytes, payload_bytes(64), payload_bytes(0)), (82, 18, 8));
    }
}
