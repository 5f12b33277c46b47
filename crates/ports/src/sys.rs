//! The few system calls that several ports need, each with its result turned into a `Result`.
//!
//! Nothing here knows what a port is; every function is safe to call with any argument.

#![allow(unsafe_code)]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The value of a system call, or the error that it left behind.
pub fn check(value: libc::c_int) -> io::Result<libc::c_int> {
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// A new socket that closes on exec.
pub fn socket(
    domain: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed, and the descriptor that comes back is ours alone.
    unsafe {
        let descriptor = check(libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol))?;
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// The port of this end of an IP socket; none for any other.
pub fn local_port(socket: RawFd) -> Option<u16> {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `address`, plain data that is zeroed and filled; the
    // family says which struct it is.
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

/// Plain data that the kernel may read from or write to byte by byte.
///
/// # Safety
/// Every bit pattern must be a valid value, and the type must hold no pointers or padding whose
/// contents matter.
pub unsafe trait Plain: Copy {}
// SAFETY: an integer, of which every bit pattern is a value.
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
    // SAFETY: the pointer and the length describe `value`; it is zeroed, and `Plain` says that
    // whatever part of it the kernel fills, the result is a value.
    unsafe {
        check(libc::getsockopt(socket, level, name, value.as_mut_ptr().cast(), &mut length))?;
        Ok(value.assume_init())
    }
}

/// The error that is pending on a socket, which reading it clears.
pub fn pending_error(socket: RawFd) -> Option<i32> {
    match option::<libc::c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR) {
        Ok(0) => None,
        Ok(code) => Some(code),
        Err(error) => error.raw_os_error(),
    }
}

/// Puts the open file of `new` under the number of `old`, whose own file is closed. Whoever waits
/// for the number goes on waiting, for the new file.
pub fn replace(old: &OwnedFd, new: OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open and owned; afterwards `old` still owns its number.
    check(unsafe { libc::dup3(new.as_raw_fd(), old.as_raw_fd(), libc::O_CLOEXEC) }).map(drop)
}

/// A new epoll instance: a descriptor that can be read when one of those added to it can.
pub fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed, and the descriptor that comes back is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?)) }
}

/// Adds a descriptor to an epoll instance. It leaves when it is closed.
pub fn epoll_add(epoll: &OwnedFd, descriptor: RawFd) -> io::Result<()> {
    let mut wanted = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
    // SAFETY: the pointer is to a local event, which the call only reads.
    check(unsafe {
        libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &mut wanted)
    })
    .map(drop)
}

/// Puts an epoll instance that watches these descriptors in the place of an old one, so that
/// nothing of what was watched before remains in it, whoever else still has its descriptors open.
pub fn watch(old: &OwnedFd, descriptors: impl Iterator<Item = RawFd>) -> io::Result<()> {
    let fresh = epoll()?;
    for descriptor in descriptors {
        epoll_add(&fresh, descriptor)?;
    }
    replace(old, fresh)
}
