//! The two packet sockets of a port: one that receives through a ring, one that only sends.
//!
//! The receiving socket is bound last, when its ring and options are in place, so that nothing
//! of another interface, nothing outgoing and nothing half configured is ever in it. Options that
//! an older kernel lacks and that have a second line of defence are not insisted on.

#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use packet::segment::MERGED_BYTES_MAX;

use super::ring::Ring;
use super::ring_blocks::BlockRing;
use super::ring_frames::FrameRing;
use super::{Delivery, HEADER_BYTES, Options, Stamps};
use crate::interface::Interface;
use crate::sys;

/// What failed, and how.
type Failure = (&'static str, io::Error);

/// Memory for frames that were sent and are not yet taken by their receiver, in bytes.
const SEND_BUFFER_BYTES: libc::c_int = 8 << 20;

/// Memory for frames that are longer than a slot, in bytes: above a hundred merged ones, which is
/// more than a TCP connection with the system's usual limits has under way.
const RECEIVE_BUFFER_BYTES: libc::c_int = 8 << 20;

/// A socket that receives all frames that come in on the interface, and its ring.
pub fn receiving(interface: &Interface, options: &Options) -> Result<(OwnedFd, Ring), Failure> {
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
        .map_err(|error| ("opening a packet socket on", error))?;
    let set = |name, value| packet_option(&socket, name, value);
    let (version, ring) = match options.delivery {
        Delivery::Prompt => (libc::tpacket_versions::TPACKET_V2, "giving a ring to"),
        Delivery::Batched => (libc::tpacket_versions::TPACKET_V3, "giving a block ring to"),
    };
    set(libc::PACKET_VERSION, version as libc::c_int)
        .and_then(|()| set(libc::PACKET_VNET_HDR, 1))
        .map_err(|error| ("choosing the ring version of", error))?;
    // Without it (before Linux 4.20), outgoing frames are recognised one by one.
    let _ = set(libc::PACKET_IGNORE_OUTGOING, 1);
    if options.stamps == Stamps::AtArrival {
        let on: libc::c_int = 1;
        sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
            .map_err(|error| ("asking for time stamps on", error))?;
    }
    let mut frame_bytes = interface.mtu + HEADER_BYTES + super::restore::TAG_BYTES;
    match options.delivery {
        Delivery::Prompt if options.segment_merged => {
            queue_long_frames(&socket).map_err(|error| ("asking for merged frames on", error))?
        }
        // Blocks have no slots: a merged frame takes the room that it needs.
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
        join(&socket, interface).map_err(|error| ("making promiscuous", error))?;
    }
    let wanted = options.ether_type.unwrap_or(libc::ETH_P_ALL as u16);
    bind(&socket, interface, wanted).map_err(|error| ("binding to", error))?;
    Ok((socket, ring))
}

/// Has the kernel put a frame that is longer than a slot into the socket's receive queue too, as
/// long as that has room.
fn queue_long_frames(socket: &OwnedFd) -> io::Result<()> {
    let buffer =
        |name| sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, name, &RECEIVE_BUFFER_BYTES);
    buffer(libc::SO_RCVBUFFORCE).or_else(|_| buffer(libc::SO_RCVBUF))?;
    packet_option(socket, libc::PACKET_COPY_THRESH, 1)
}

/// A socket that sends on the interface and receives nothing.
pub fn sending(interface: &Interface, options: &Options) -> Result<OwnedFd, Failure> {
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
        .map_err(|error| ("opening a packet socket on", error))?;
    if options.qdisc_bypass {
        packet_option(&socket, libc::PACKET_QDISC_BYPASS, 1)
            .map_err(|error| ("bypassing the queueing discipline of", error))?;
    }
    // With the right to exceed the system's limit if we have it, up to the limit if not.
    let buffer =
        |name| sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, name, &SEND_BUFFER_BYTES);
    buffer(libc::SO_SNDBUFFORCE)
        .or_else(|_| buffer(libc::SO_SNDBUF))
        .map_err(|error| ("enlarging the send buffer of", error))?;
    bind(&socket, interface, 0).map_err(|error| ("binding to", error))?;
    Ok(socket)
}

/// Frames that found the ring full since this was last asked.
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
