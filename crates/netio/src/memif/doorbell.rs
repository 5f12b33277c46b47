//! The eventfd with which a sender wakes a sleeping receiver (eventfd(2)).
//!
//! Both ends share it, and the peer can change its behavior: disable its non-blocking mode, fill
//! its counter, or drain it. Therefore:
//! - This end checks for room before it signals.
//! - It drains by a call that never waits in either mode.
//! - A signal means only that it is time to poll.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use os::sys;

use super::fault::Fault;

/// The kernel's name of an eventfd.
const KIND: &str = "anon_inode:[eventfd]";

/// An eventfd, shared by a queue and the thread that waits for it.
#[derive(Debug, Clone)]
pub struct Doorbell {
    event: Arc<OwnedFd>,
}

impl Doorbell {
    /// Creates an eventfd.
    pub fn create() -> io::Result<Self> {
        // SAFETY: no pointers are passed, and this process alone owns the returned descriptor.
        let event = unsafe {
            let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
            OwnedFd::from_raw_fd(sys::check(libc::eventfd(0, flags))?)
        };
        Ok(Doorbell { event: Arc::new(event) })
    }

    /// Adopts an eventfd from a peer. Rejects any other descriptor, because a write to it could
    /// block or have other effects.
    pub fn adopt(event: OwnedFd) -> Result<Self, Fault> {
        let path = format!("/proc/self/fd/{}", event.as_raw_fd());
        let kind = std::fs::read_link(path).map_err(|_| Fault::Doorbell)?;
        if kind.as_os_str() != KIND {
            return Err(Fault::Doorbell);
        }
        // SAFETY: no pointers are passed.
        sys::check(unsafe {
            libc::fcntl(event.as_raw_fd(), libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK)
        })
        .map_err(|_| Fault::Doorbell)?;
        Ok(Doorbell { event: Arc::new(event) })
    }

    /// Duplicates the descriptor, as a peer would receive it.
    #[cfg(test)]
    pub fn duplicate(&self) -> OwnedFd {
        self.event.try_clone().expect("a descriptor can be duplicated")
    }

    /// Returns the descriptor, which is readable after a signal.
    pub fn descriptor(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Signals the eventfd. If its counter is full, it has been signaled often enough.
    #[cold]
    pub fn ring(&self) {
        let mut room =
            libc::pollfd { fd: self.event.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        let once = 1u64;
        // SAFETY: the pointers are to one pollfd and to eight readable bytes.
        unsafe {
            if libc::poll(&mut room, 1, 0) == 1 && room.revents & libc::POLLOUT != 0 {
                libc::write(self.event.as_raw_fd(), std::ptr::from_ref(&once).cast(), 8);
            }
        }
    }

    /// Clears the signal.
    pub fn drain(&self) {
        let mut count = 0u64;
        let piece = libc::iovec { iov_base: std::ptr::from_mut(&mut count).cast(), iov_len: 8 };
        // SAFETY: the pointer is to one piece of eight writable bytes.
        unsafe { libc::preadv2(self.event.as_raw_fd(), &piece, 1, -1, libc::RWF_NOWAIT) };
    }
}

#[cfg(test)]
mod tests {
    use os::clock::WaitSet;
    use packet::time::Nanos;

    use super::*;

    fn is_rung(bell: &Doorbell) -> bool {
        let mut wait = WaitSet::new();
        wait.add(bell.descriptor(), false);
        wait.until(Some(Nanos::ZERO)).unwrap() == 1
    }

    #[test]
    fn a_doorbell_is_readable_until_it_is_drained() {
        let bell = Doorbell::create().unwrap();
        let other = Doorbell::adopt(bell.event.try_clone().unwrap()).unwrap();
        assert!(!is_rung(&bell));
        other.ring();
        other.ring();
        assert!(is_rung(&bell));
        bell.drain();
        bell.drain();
        assert!(!is_rung(&bell));
    }

    #[test]
    fn a_full_doorbell_never_blocks() {
        let bell = Doorbell::create().unwrap();
        let full = u64::MAX - 1;
        // SAFETY: eight readable bytes; and no pointers.
        unsafe {
            let raw = bell.descriptor();
            assert_eq!(libc::write(raw, std::ptr::from_ref(&full).cast(), 8), 8);
            assert_eq!(libc::fcntl(raw, libc::F_SETFL, libc::O_RDWR), 0);
        }
        bell.ring();
        bell.drain();
        bell.drain();
        assert!(!is_rung(&bell));
    }

    #[test]
    fn other_descriptors_are_not_doorbells() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(Doorbell::adopt(file.into()).err(), Some(Fault::Doorbell));
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(Doorbell::adopt(one.into()).err(), Some(Fault::Doorbell));
    }
}
