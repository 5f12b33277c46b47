//! Safe wrappers of the system calls that ports and channels need; each returns a `Result`.
//!
//! Every function is safe to call with any argument.

#![allow(unsafe_code)]

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Returns the value of a system call, or its error.
pub fn check(value: libc::c_int) -> io::Result<libc::c_int> {
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// Opens a socket that closes on exec.
pub fn socket(
    domain: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed, and this process alone owns the returned descriptor.
    unsafe {
        let descriptor = check(libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Returns the local port of an IP socket; none for any other.
pub fn local_port(socket: RawFd) -> Option<u16> {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `address`, plain data that is zeroed and filled.
    // The family selects the struct.
    unsafe {
        check(libc::getsockname(socket, address.as_mut_ptr().cast(), &mut length)).ok()?;
        let address = address.assume_init();
        let pointer = std::ptr::from_ref(&address);
        match libc::c_int::from(address.ss_family) {
            libc::AF_INET => Some(u16::from_be((*pointer.cast::<libc::sockaddr_in>()).sin_port)),
            libc::AF_INET6 => Some(u16::from_be((*pointer.cast::<libc::sockaddr_in6>()).sin6_port)),
            _ => None,
        }
    }
}

/// Calls a function with an IP socket address in the system's format, and its length.
pub fn with_address<R>(
    address: SocketAddr,
    call: impl FnOnce(*const libc::sockaddr, libc::socklen_t) -> R,
) -> R {
    // SAFETY: all-zero bytes are a valid value of these C structs.
    let (mut four, mut six) =
        unsafe { (zeroed::<libc::sockaddr_in>(), zeroed::<libc::sockaddr_in6>()) };
    match address {
        SocketAddr::V4(address) => {
            four.sin_family = libc::AF_INET as libc::sa_family_t;
            four.sin_port = address.port().to_be();
            four.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
            let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            call(std::ptr::from_ref(&four).cast(), length)
        }
        SocketAddr::V6(address) => {
            six.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            six.sin6_port = address.port().to_be();
            six.sin6_addr.s6_addr = address.ip().octets();
            six.sin6_scope_id = address.scope_id();
            let length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            call(std::ptr::from_ref(&six).cast(), length)
        }
    }
}

/// Plain data that the kernel may read from or write to byte by byte.
///
/// # Safety
/// Every bit pattern must be a valid value, and the type must hold no pointers or padding whose
/// contents matter.
pub unsafe trait Plain: Copy {}
// SAFETY: an integer; every bit pattern is a value.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl Plain for libc::c_uint {}
// SAFETY: plain C structs of integers.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::linger {}
// SAFETY: as above.
unsafe impl Plain for libc::ucred {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats_v3 {}
// SAFETY: as above.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_options {}

/// Sets a socket option.
pub fn set_option<T: Plain>(
    socket: RawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket,
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Reads a socket option.
pub fn option<T: Plain>(socket: RawFd, level: libc::c_int, name: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`. It is zeroed, and `Plain` guarantees
    // that the result is a value even if the kernel fills only a part.
    unsafe {
        check(libc::getsockopt(socket, level, name, value.as_mut_ptr().cast(), &mut length))?;
        Ok(value.assume_init())
    }
}

/// Returns the pending error of a socket, which reading it clears.
pub fn pending_error(socket: RawFd) -> Option<i32> {
    match option::<libc::c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR) {
        Ok(0) => None,
        Ok(code) => Some(code),
        Err(error) => error.raw_os_error(),
    }
}

/// Replaces the open file behind the number of `old` with that of `new`; the old file is closed.
///
/// A thread that waits for the number continues to wait, for the new file.
pub fn replace(old: &OwnedFd, new: OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open and owned; `old` still owns its number afterwards.
    check(unsafe { libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC) }).map(drop)
}

/// Creates an epoll instance: a descriptor that is readable when one of those added to it is.
pub fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed, and this process alone owns the returned descriptor.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?)) }
}

/// Adds a descriptor to an epoll instance. Closing the descriptor removes it.
pub fn epoll_add(epoll: &OwnedFd, descriptor: RawFd) -> io::Result<()> {
    let mut wanted = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
    // SAFETY: the pointer is to a local event, which the call only reads.
    check(unsafe {
        libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &mut wanted)
    })
    .map(drop)
}

/// Replaces an epoll instance with a new one that watches these descriptors.
///
/// Nothing watched before remains in it, even if another process still has such a descriptor open.
pub fn watch(old: &OwnedFd, descriptors: impl Iterator<Item = RawFd>) -> io::Result<()> {
    let fresh = epoll()?;
    for descriptor in descriptors {
        epoll_add(&fresh, descriptor)?;
    }
    replace(old, fresh)
}
