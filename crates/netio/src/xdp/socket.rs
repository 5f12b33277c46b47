//! An AF_XDP socket with its four rings.
//!
//! Source: Linux `Documentation/networking/af_xdp.rst`, and `napi.rst` on busy polling.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use os::{clock, sys};
use packet::time::Nanos;

use super::ring::Ring;
use super::spec::Spec;
use super::umem::Umem;

// Options that the libc crate does not define (`asm-generic/socket.h`, `if_xdp.h`).
const SO_PREFER_BUSY_POLL: libc::c_int = 69;
const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// Busy-poll duration of one system call in microseconds. Calls here never wait, so any non-zero
/// value enables polling.
const BUSY_POLL_US: libc::c_int = 20;

/// Frames that one system call sends in copy mode, where the kernel supports this option (Linux
/// 6.17); else it is 32.
const CALL_FRAMES: u32 = 256;

/// Buffer for frames sent in copy mode that their receiver has not taken yet, in bytes.
const SEND_BUFFER_BYTES: libc::c_int = 8 << 20;

/// Timeout for a queue to become free, and the interval between attempts.
const PATIENCE: Nanos = Nanos::from_millis(500);
const PAUSE: Nanos = Nanos::from_millis(1);

/// The failed operation and its error.
pub(super) type Failure = (&'static str, io::Error);

/// A socket, bound to one queue of an interface.
pub(super) struct Socket {
    pub(super) receive: Ring<libc::xdp_desc>,
    pub(super) transmit: Ring<libc::xdp_desc>,
    pub(super) fill: Ring<u64>,
    pub(super) completion: Ring<u64>,
    descriptor: OwnedFd,
}

impl Socket {
    /// Opens a socket for a queue of an interface. The first one registers the memory, the others
    /// share it.
    pub(super) fn open(
        spec: &Spec,
        interface: i32,
        queue: u32,
        umem: &Umem,
        first: Option<&Socket>,
    ) -> Result<Self, Failure> {
        let socket = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0)
            .map_err(|error| ("open an AF_XDP socket on", error))?;
        if first.is_none() {
            set(&socket, libc::XDP_UMEM_REG, &umem.registration())
                .map_err(|error| ("register memory with the kernel for", error))?;
        }
        let rings = [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ];
        for ring in rings {
            set(&socket, ring, &spec.slots).map_err(|error| ("create rings for", error))?;
        }
        // Optional: the kernel's default works too.
        let _ = set(&socket, XDP_MAX_TX_SKB_BUDGET, &CALL_FRAMES.min(spec.slots));
        let buffer = |name| general(&socket, name, SEND_BUFFER_BYTES);
        buffer(libc::SO_SNDBUFFORCE)
            .or_else(|_| buffer(libc::SO_SNDBUF))
            .map_err(|error| ("enlarge the send buffer of", error))?;
        if let Some(frames) = spec.busy_poll {
            general(&socket, SO_PREFER_BUSY_POLL, 1)
                .and_then(|()| general(&socket, libc::SO_BUSY_POLL, BUSY_POLL_US))
                .and_then(|()| general(&socket, SO_BUSY_POLL_BUDGET, libc::c_int::from(frames)))
                .map_err(|error| ("set up busy polling of", error))?;
        }
        let rings =
            Socket::mapped(socket, spec.slots).map_err(|error| ("map the rings of", error))?;
        rings
            .bind(spec, interface, queue, first)
            .map_err(|error| ("bind an AF_XDP socket to", error))?;
        Ok(rings)
    }

    /// Binds the socket to its queue. A queue becomes free some time after its last socket was
    /// closed, so this retries.
    fn bind(
        &self,
        spec: &Spec,
        interface: i32,
        queue: u32,
        first: Option<&Socket>,
    ) -> io::Result<()> {
        let until = clock::now().saturating_add(PATIENCE);
        loop {
            match bind(&self.descriptor, spec, interface, queue, first) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && clock::now() < until => {
                    clock::sleep_until(clock::now().saturating_add(PAUSE));
                }
                bound => return bound,
            }
        }
    }

    fn mapped(socket: OwnedFd, slots: u32) -> io::Result<Self> {
        let offsets: libc::xdp_mmap_offsets =
            sys::option(socket.as_raw_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let (receive, transmit) = (libc::XDP_PGOFF_RX_RING as u64, libc::XDP_PGOFF_TX_RING as u64);
        let (fill, completion) =
            (libc::XDP_UMEM_PGOFF_FILL_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        Ok(Socket {
            receive: Ring::map(&socket, receive, slots, &offsets.rx)?,
            transmit: Ring::map(&socket, transmit, slots, &offsets.tx)?,
            fill: Ring::map(&socket, fill, slots, &offsets.fr)?,
            completion: Ring::map(&socket, completion, slots, &offsets.cr)?,
            descriptor: socket,
        })
    }

    /// Returns the socket's descriptor.
    pub(super) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Makes the kernel send the frames in the transmit ring.
    pub(super) fn kick(&self) -> Result<(), i32> {
        // SAFETY: no pointers are passed.
        let answer = unsafe {
            let (nothing, nowhere) = (std::ptr::null(), std::ptr::null());
            libc::sendto(self.descriptor(), nothing, 0, libc::MSG_DONTWAIT, nowhere, 0)
        };
        code(answer)
    }

    /// Makes the kernel continue to receive: poll the interface, or read the fill ring.
    pub(super) fn poll(&self) -> Result<(), i32> {
        // SAFETY: no pointers are passed.
        let answer = unsafe {
            let nowhere = std::ptr::null_mut();
            let (nobody, unsaid) = (std::ptr::null_mut(), std::ptr::null_mut());
            libc::recvfrom(self.descriptor(), nowhere, 0, libc::MSG_DONTWAIT, nobody, unsaid)
        };
        code(answer)
    }

    /// Returns the kernel's statistics of the socket.
    pub(super) fn statistics(&self) -> Option<libc::xdp_statistics> {
        sys::option(self.descriptor(), libc::SOL_XDP, libc::XDP_STATISTICS).ok()
    }

    /// Returns whether the socket is in zero-copy mode.
    pub(super) fn is_zero_copy(&self) -> bool {
        let options: io::Result<libc::xdp_options> =
            sys::option(self.descriptor(), libc::SOL_XDP, libc::XDP_OPTIONS);
        options.is_ok_and(|options| options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }
}

fn code(answer: libc::ssize_t) -> Result<(), i32> {
    if answer >= 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

fn set<T: sys::Plain>(socket: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    sys::set_option(socket.as_raw_fd(), libc::SOL_XDP, name, value)
}

fn general(socket: &OwnedFd, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    sys::set_option(socket.as_raw_fd(), libc::SOL_SOCKET, name, &value)
}

fn bind(
    socket: &OwnedFd,
    spec: &Spec,
    interface: i32,
    queue: u32,
    first: Option<&Socket>,
) -> io::Result<()> {
    // A socket that shares memory also shares the mode, and must not set it again.
    let flags = match (first, spec.zero_copy) {
        (Some(_), _) => libc::XDP_SHARED_UMEM,
        (None, None) => libc::XDP_USE_NEED_WAKEUP,
        (None, Some(true)) => libc::XDP_USE_NEED_WAKEUP | libc::XDP_ZEROCOPY,
        (None, Some(false)) => libc::XDP_USE_NEED_WAKEUP | libc::XDP_COPY,
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: interface as u32,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: first.map_or(0, |first| first.descriptor() as u32),
    };
    // SAFETY: the pointer and the length describe `address`, which outlives the call.
    sys::check(unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
        )
    })
    .map(drop)
}
