//! Sends in batches: one system call for up to 64 frames (`sendmmsg`).
//!
//! A frame that the kernel rejects is counted and skipped, so that it does not delay the frames
//! after it. Frames stay with the caller only if there is no room now (`EAGAIN`).

#![allow(unsafe_code)]

use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

use packet::frame::Frame;

use super::{HEADER_BYTES, restore};
use crate::port::{PortCounters, PortDrop};

/// Frames per system call.
const CALL_FRAMES: usize = 64;

/// The sending socket and the arrays that describe frames to the kernel.
pub struct Transmitter {
    socket: OwnedFd,
    frame_bytes_max: usize,
    vectors: Box<[libc::iovec; CALL_FRAMES]>,
    messages: Box<[libc::mmsghdr; CALL_FRAMES]>,
}

// SAFETY: the pointers in the arrays are written before each use and not used afterwards.
unsafe impl Send for Transmitter {}

impl Transmitter {
    /// Sends on `socket`, which is bound to an interface with this MTU.
    pub fn new(socket: OwnedFd, mtu: usize) -> Self {
        Transmitter {
            socket,
            frame_bytes_max: mtu + HEADER_BYTES + restore::TAG_BYTES,
            // SAFETY: all-zero bytes are a valid value of these C structs.
            vectors: Box::new(unsafe { zeroed() }),
            messages: Box::new(unsafe { zeroed() }),
        }
    }

    /// Sends the first of `frames`. Returns how many are done (sent, or counted as rejected).
    ///
    /// The second value is the error that ended sending, unless the cause was lack of room.
    pub fn send(&mut self, frames: &[Frame], counters: &mut PortCounters) -> (usize, Option<i32>) {
        let mut done = 0;
        while done < frames.len() {
            match self.call(&frames[done..]) {
                Ok(count) => {
                    counters.tx_frames += count as u64;
                    counters.tx_bytes +=
                        frames[done..done + count].iter().map(|f| f.len() as u64).sum::<u64>();
                    done += count;
                }
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => return (done, None),
                Err(libc::EMSGSIZE) => {
                    counters.lose(PortDrop::TooLong, 1);
                    done += 1;
                }
                // No memory or a full queue behind the interface; or shorter than a header.
                Err(libc::ENOBUFS | libc::ENOMEM | libc::EINVAL) => {
                    counters.lose(PortDrop::TransmitRefused, 1);
                    done += 1;
                }
                Err(code) => return (done, Some(code)),
            }
        }
        (done, None)
    }

    /// Makes one system call for the first of `frames`. Returns how many were sent, at least one,
    /// or why the first was not.
    fn call(&mut self, frames: &[Frame]) -> Result<usize, i32> {
        let mut count = 0;
        for (place, frame) in frames.iter().take(CALL_FRAMES).enumerate() {
            if frame.len() > self.frame_bytes_max {
                break;
            }
            self.vectors[place] = libc::iovec {
                iov_base: frame.bytes().as_ptr().cast_mut().cast(),
                iov_len: frame.len(),
            };
            self.messages[place].msg_hdr.msg_iov = &mut self.vectors[place];
            self.messages[place].msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        if count == 0 {
            return Err(libc::EMSGSIZE);
        }
        // SAFETY: the first `count` messages each point to one vector, which describes the bytes of
        // a frame. All of them outlive the call, and sending only reads the bytes.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT as _,
            )
        };
        match sent {
            1.. => Ok(sent as usize),
            _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}
