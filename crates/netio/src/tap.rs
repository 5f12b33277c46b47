//! A port on a TAP interface: the host's network stack receives the frames that the port sends, and
//! sends the frames that it receives.
//!
//! Source: Linux `Documentation/networking/tuntap.rst`, `IFF_TAP` without packet information. One
//! read or write is one frame. The kernel deletes the interface when the port is dropped, unless
//! another program made it persistent before.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use os::sys;
use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::time::{Clock, Nanos, Stamp};

use crate::interface;
use crate::link::Link;
use crate::port::{Port, PortCounters, PortDrop, PortError, PortFacts};

/// Bytes of an Ethernet header without tags.
const HEADER_BYTES: usize = 14;

/// Bytes of a VLAN tag, which a tagged frame has in addition.
const TAG_BYTES: usize = 4;

/// An open TAP interface.
pub struct TapPort {
    facts: PortFacts,
    file: File,
    scratch: Box<[u8]>,
    counters: PortCounters,
    /// Whether the interface was down at the last write. Only writes report this.
    is_down: bool,
    /// The link, read when the interface was created: it has no negotiation that could change it.
    link: Link,
}

impl TapPort {
    /// Creates the interface `name`, or attaches to an existing one that no other process has
    /// attached.
    ///
    /// Does not set addresses or bring the link up. Requires CAP_NET_ADMIN.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let mut request = interface::request_for(name)?;
        let failed = |doing| move |error| interface::system(doing, name, error);
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(failed("open /dev/net/tun for"))?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the pointer is to an ifreq whose name ends in zero; the request writes only
        // inside it.
        sys::check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &mut request) })
            .map_err(failed("create the virtual interface"))?;
        let interface = interface::look_up(name)?;
        Ok(TapPort {
            facts: PortFacts {
                name: name.to_owned(),
                kind: "tap",
                mac: interface.mac,
                frame_bytes_max: (interface.mtu + HEADER_BYTES).min(FRAME_BYTES_MAX),
                stamps: Clock::UserSpace,
            },
            file,
            scratch: vec![0; FRAME_BYTES_MAX + 1].into_boxed_slice(),
            counters: PortCounters::default(),
            is_down: false,
            link: interface::link_of(name)?,
        })
    }

    fn error(&mut self, doing: &'static str, error: std::io::Error) -> PortError {
        // A write to a TAP whose interface is down fails with EIO, to a deleted one with EBADFD.
        match error.raw_os_error() {
            Some(libc::EIO) => {
                self.is_down = true;
                PortError::InterfaceDown(self.facts.name.clone())
            }
            Some(libc::EBADFD) => PortError::NoSuchInterface(self.facts.name.clone()),
            _ => interface::system(doing, &self.facts.name, error),
        }
    }
}

impl Port for TapPort {
    fn facts(&self) -> &PortFacts {
        &self.facts
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        // Reads do not report that the interface is down. Without this check each read would report
        // it as up.
        if self.is_down {
            if !interface::is_up(&self.facts.name)? {
                return Err(PortError::InterfaceDown(self.facts.name.clone()));
            }
            self.is_down = false;
        }
        let mut count = 0;
        while batch.room() > 0 {
            let length = match self.file.read(&mut self.scratch) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) if count > 0 => break,
                Err(error) => return Err(self.error("receive from", error)),
            };
            if length > FRAME_BYTES_MAX {
                self.counters.lose(PortDrop::ReceiveTooLong, 1);
                continue;
            }
            let Some(frame) = batch.push_slot() else { break };
            frame.set_bytes(&self.scratch[..length]);
            frame.stamp = Some(Stamp { at: now, clock: Clock::UserSpace });
            self.counters.rx_frames += 1;
            self.counters.rx_bytes += length as u64;
            count += 1;
        }
        Ok(count)
    }

    fn transmit(&mut self, batch: &mut Batch, _now: Nanos) -> Result<usize, PortError> {
        let mut done = 0;
        while let Some(frame) = batch.frames().get(done) {
            if frame.len() > self.facts.frame_bytes_max + TAG_BYTES {
                self.counters.lose(PortDrop::TooLong, 1);
                done += 1;
                continue;
            }
            match self.file.write(frame.bytes()) {
                Ok(_) => {
                    self.counters.tx_frames += 1;
                    self.counters.tx_bytes += frame.len() as u64;
                    done += 1;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINVAL | libc::ENOMEM | libc::ENOBUFS) => {
                        self.counters.lose(PortDrop::TransmitRefused, 1);
                        done += 1;
                    }
                    _ if done > 0 => break,
                    _ => return Err(self.error("send on", error)),
                },
            }
        }
        Ok(done)
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.clone()
    }

    fn link(&self) -> Link {
        self.link
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.file.as_raw_fd())
    }
}
