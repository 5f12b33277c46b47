//! The two packet sockets of a port: one receives through a ring, one only sends.
//!
//! The receiving socket is bound last, when its ring and options are in place. It therefore never
//! receives frames of other interfaces, outgoing frames, or frames before its configuration.
//! Options that older kernels lack are optional if a second mechanism covers them.

#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use os::sys;
use packet::segment::MERGED_BYTES_MAX;

use super::ring::Ring;
use super::ring_blocks::BlockRing;
use super::ring_frames::FrameRing;
use super::{Delivery, HEADER_BYTES, Options, TimestampMode};
use crate::interface::Interface;

/// The failed operation and its error.
type Failure = (&'static str, io::Error);

/// Buffer for sent frames that their receiver has not taken yet, in bytes.
const SEND_BUFFER_BYTES: libc::c_int = 8 << 20;

/// Buffer for frames longer than a slot, in bytes: above a hundred merged frames.
///
/// A TCP connection with the system's usual limits has fewer in flight.
const RECEIVE_BUFFER_BYTES: libc::c_int = 8 << 20;

/// Opens a socket that receives all frames arriving on the interface, and its ring.
pub fn receiving(interface: &Interface, options: &Options) -> Result<(OwnedFd, Ring), Failure> {
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
        .map_err(|error| ("open a packet socket on", error))?;
    let set = |name, value| packet_option(&socket, name, value);
    let (version, ring) = match options.delivery {
        Delivery::Prompt => (libc::tpacket_versions::TPACKET_V2, "allocate a ring for"),
        Delivery::Batched => (libc::tpacket_versions::TPACKET_V3, "allocate a block ring for"),
    };
    set(libc::PACKET_VERSION, version as libc::c_int)
        .and_then(|()| set(libc::PACKET_VNET_HDR, 1))
        .map_err(|error| ("set the ring version of", error))?;
    // Without this option (before Linux 4.20), the ring recognizes outgoing frames one by one.
    let _ = set(libc::PACKET_IGNORE_OUTGOING, 1);
    if options.stamps == TimestampMode::AtArrival {
        let on: libc::c_int = 1;
        sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
            .map_err(|error| ("enable timestamps on", error))?;
    }
    let mut frame_bytes = interface.mtu + HEADER_BYTES + super::restore::TAG_BYTES;
    match options.delivery {
        Delivery::Prompt if options.segment_merged => {
            queue_long_frames(&socket).map_err(|error| ("enable merged frames on", error))?
        }
        // Blocks have no slots: a merged frame takes the space that it needs.
        Delivery::Batched if options.segment_merged => {
            frame_bytes = frame_bytes.max(MERGED_BYTES_MAX);
        }
        Delivery::Prompt | Delivery::Batched => {}
    }
    let ring_bytes = options.ring_bytes.max(64 << 10);
    let ring = match options.delivery {
        Delivery::Prompt => FrameRing::new(&socket, ring_bytes, frame_bytes).map(Ring::Frames),
        Delivery::Batched => BlockRing::new(&socket, ring_bytes, frame_bytes).map(Ring::Blocks),
    }
    .map_err(|error| (ring, error))?;
    if options.promiscuous {
        join(&socket, interface).map_err(|error| ("enable promiscuous mode on", error))?;
    }
    let wanted = options.ether_type.unwrap_or(libc::ETH_P_ALL as u16);
    bind(&socket, interface, wanted).map_err(|error| ("bind a packet socket to", error))?;
    Ok((socket, ring))
}

/// Makes the kernel also put a frame longer than a slot into the socket's receive queue, while that
/// has room.
fn queue_long_frames(socket: &OwnedFd) -> io::Result<()> {
    let buffer =
        |name| sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, name, &RECEIVE_BUFFER_BYTES);
    buffer(libc::SO_RCVBUFFORCE).or_else(|_| buffer(libc::SO_RCVBUF))?;
    packet_option(socket, libc::PACKET_COPY_THRESH, 1)
}

/// Opens a socket that sends on the interface and receives nothing.
pub fn sending(interface: &Interface, options: &Options) -> Result<OwnedFd, Failure> {
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
        .map_err(|error| ("open a packet socket on", error))?;
    if options.qdisc_bypass {
        packet_option(&socket, libc::PACKET_QDISC_BYPASS, 1)
            .map_err(|error| ("bypass the queueing discipline of", error))?;
    }
    // Exceeds the system's limit if privileged, else uses up to the limit.
    let buffer =
        |name| sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, name, &SEND_BUFFER_BYTES);
    buffer(libc::SO_SNDBUFFORCE)
        .or_else(|_| buffer(libc::SO_SNDBUF))
        .map_err(|error| ("enlarge the send buffer of", error))?;
    bind(&socket, interface, 0).map_err(|error| ("bind a packet socket to", error))?;
    Ok(socket)
}

/// Returns the frames dropped on a full ring since the last call.
pub fn drops(socket: RawFd, delivery: Delivery) -> u64 {
    let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    match delivery {
        Delivery::Prompt => sys::option::<libc::tpacket_stats>(socket, level, name)
            .map_or(0, |statistics| u64::from(statistics.tp_drops)),
        Delivery::Batched => sys::option::<libc::tpacket_stats_v3>(socket, level, name)
            .map_or(0, |statistics| u64::from(statistics.tp_drops)),
    }
}

fn packet_option(socket: &OwnedFd, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    sys::set_option(socket.as_raw_fd(), libc::SOL_PACKET, name, &value)
}

fn join(socket: &OwnedFd, interface: &Interface) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface.index,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    let name = libc::PACKET_ADD_MEMBERSHIP;
    sys::set_option(socket.as_raw_fd(), libc::SOL_PACKET, name, &membership)
}

fn bind(socket: &OwnedFd, interface: &Interface, protocol: u16) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid value of this C struct.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface.index;
    // SAFETY: the pointer and the length describe `address`, which outlives the call.
    sys::check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })
    .map(drop)
}
