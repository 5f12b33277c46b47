//! One queue of a port: a socket, and the chunks that it exchanges with the kernel.
//!
//! - Half of a queue's chunks are for receiving. Each is in the fill ring, in the kernel, or in the
//!   receive ring.
//! - The other half are for sending: free, in the transmit ring, in the kernel, or in the
//!   completion ring.
//! - Each half has as many chunks as a ring has slots, so there is always room to return a chunk.

#![allow(unsafe_code)]

use std::sync::Arc;

use super::socket::{Failure, Socket};
use super::spec::Spec;
use super::umem::Umem;

/// A queue.
pub(super) struct Queue {
    pub(super) socket: Socket,
    umem: Arc<Umem>,
    /// Free chunks for sending, used last in first out, because the last one is still in the cache.
    free: Vec<u64>,
    /// Whether the kernel copies, and therefore sends only during a system call.
    copies: bool,
    /// Whether receiving requires our system calls.
    drives: bool,
    stamps: bool,
    /// Counters of this queue.
    pub(super) counters: Counters,
}

/// Counters in addition to the kernel's.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) rx_frames: u64,
    pub(super) rx_bytes: u64,
    pub(super) tx_frames: u64,
    pub(super) tx_bytes: u64,
    /// Frames that were too long to send.
    pub(super) too_long: u64,
    /// Frames that were too short, or that the interface dropped.
    pub(super) refused: u64,
    /// Frame descriptors that point outside the memory.
    pub(super) broken: u64,
}

/// A received frame: its bytes, and the monotonic time at which the kernel took it, or zero.
pub(super) struct ReceivedFrame<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) stamp_ns: u64,
}

/// Bytes of an Ethernet header, the shortest frame that can be sent.
const HEADER_BYTES: usize = 14;

/// Bytes of a VLAN tag, which a tagged frame has in addition.
const TAG_BYTES: usize = 4;

/// Returns whether a frame exceeds the MTU by no more than its tag.
fn fits_with_tag(bytes: &[u8], mtu: usize) -> bool {
    let is_tagged = matches!(bytes.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
    is_tagged && bytes.len() <= HEADER_BYTES + TAG_BYTES + mtu
}

impl Queue {
    /// Opens a queue of an interface.
    ///
    /// The queue uses twice as many chunks as a ring has slots. They start at `queue` times that
    /// number.
    pub(super) fn open(
        spec: &Spec,
        interface: i32,
        queue: u32,
        umem: &Arc<Umem>,
        first: Option<&Queue>,
    ) -> Result<Self, Failure> {
        let first = first.map(|first| &first.socket);
        let mut socket = Socket::open(spec, interface, queue, umem, first)?;
        let slots = u64::from(spec.slots);
        let begin = u64::from(queue) * 2 * slots;
        let chunk = |number: u64| number * umem.chunk_bytes() as u64;
        (begin..begin + slots).for_each(|number| socket.fill.put(chunk(number)));
        socket.fill.tell();
        Ok(Queue {
            free: (begin + slots..begin + 2 * slots).map(chunk).collect(),
            copies: !socket.is_zero_copy(),
            drives: spec.busy_poll.is_some(),
            stamps: spec.stamps,
            umem: Arc::clone(umem),
            socket,
            counters: Counters::default(),
        })
    }

    /// Passes at most `limit` frames to `see`, oldest first, and returns their chunks to the
    /// kernel.
    #[inline]
    pub(super) fn take(&mut self, limit: usize, mut see: impl FnMut(ReceivedFrame<'_>)) -> usize {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let mut count = self.socket.receive.available(limit);
        if count == 0 && limit > 0 && (self.drives || self.socket.fill.needs_wakeup()) {
            // A failure of the interface is reported when its state is checked.
            let _ = self.socket.poll();
            count = self.socket.receive.available(limit);
        }
        // No more than can be returned to the kernel afterwards.
        let count = count.min(self.socket.fill.room(count));
        let mut seen = 0;
        for ahead in 0..count {
            let frame = self.socket.receive.read(ahead);
            // SAFETY: the chunk came from the receive ring, and goes to the fill ring below.
            let (bytes, stamp) = unsafe {
                let stamp = if self.stamps { self.umem.take_before(frame.addr) } else { None };
                (self.umem.received(frame.addr, frame.len as usize), stamp)
            };
            let Some(bytes) = bytes else {
                self.counters.broken += 1;
                continue;
            };
            self.counters.rx_frames += 1;
            self.counters.rx_bytes += bytes.len() as u64;
            see(ReceivedFrame { bytes, stamp_ns: stamp.unwrap_or(0) });
            self.socket.fill.put(self.umem.chunk_of(frame.addr));
            seen += 1;
        }
        if count > 0 {
            self.socket.fill.tell();
            self.socket.receive.release(count);
        }
        seen
    }

    /// Sends copies of frames over an interface with this MTU, until one finds no room.
    ///
    /// Returns how many are done (sent, or counted as rejected), and the error if nothing could be
    /// sent.
    #[inline]
    pub(super) fn send<'a>(
        &mut self,
        frames: impl ExactSizeIterator<Item = &'a [u8]>,
        mtu: usize,
    ) -> (usize, Option<i32>) {
        if self.free.len() < frames.len() {
            self.reclaim();
        }
        let wanted = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        let mut room = self.socket.transmit.room(wanted);
        let (mut done, mut put) = (0, 0);
        for bytes in frames {
            if bytes.len() > HEADER_BYTES + mtu && !fits_with_tag(bytes, mtu) {
                self.counters.too_long += 1;
            } else if bytes.len() < HEADER_BYTES {
                self.counters.refused += 1;
            } else if let (Some(&chunk), 1..) = (self.free.last(), room) {
                // SAFETY: the chunk is in the list of free ones, and leaves it below.
                if unsafe { self.umem.fill(chunk, bytes) } {
                    let (addr, len) = (chunk, bytes.len() as u32);
                    self.socket.transmit.put(libc::xdp_desc { addr, len, options: 0 });
                    self.free.pop();
                    self.counters.tx_frames += 1;
                    self.counters.tx_bytes += bytes.len() as u64;
                    room -= 1;
                    put += 1;
                } else {
                    self.counters.too_long += 1;
                }
            } else {
                break;
            }
            done += 1;
        }
        if put > 0 {
            self.socket.transmit.tell();
        }
        (done, self.kick())
    }

    /// Reclaims the chunks of frames that have left.
    fn reclaim(&mut self) {
        let count = self.socket.completion.available(u32::MAX);
        for ahead in 0..count {
            let chunk = self.umem.chunk_of(self.socket.completion.read(ahead));
            if self.umem.has(chunk) && self.free.len() < self.free.capacity() {
                self.free.push(chunk);
            }
        }
        if count > 0 {
            self.socket.completion.release(count);
        }
    }

    /// Makes the kernel send the frames in the transmit ring, if it needs a system call.
    ///
    /// Returns an error only if it is due to the interface.
    #[inline]
    pub(super) fn kick(&mut self) -> Option<i32> {
        if !self.socket.transmit.needs_wakeup() {
            return None;
        }
        let mut waiting = self.socket.transmit.waiting();
        while waiting > 0 {
            match self.socket.kick() {
                Ok(()) | Err(libc::EAGAIN | libc::EINTR) => {}
                // In copy mode, the interface dropped this frame for lack of room. The frames after
                // it wait for the next call, or were dropped too, one per call.
                Err(libc::EBUSY) if self.copies => {
                    let bytes = u64::from(self.socket.transmit.last_taken().len);
                    self.counters.tx_frames = self.counters.tx_frames.saturating_sub(1);
                    self.counters.tx_bytes = self.counters.tx_bytes.saturating_sub(bytes);
                    self.counters.refused += 1;
                    return None;
                }
                Err(libc::EBUSY | libc::ENOBUFS | libc::ENOMEM) => return None,
                Err(code) => return Some(code),
            }
            let left = self.socket.transmit.waiting();
            if !self.copies || left >= waiting {
                return None;
            }
            waiting = left;
        }
        None
    }

    /// Returns the interface's error, or none if it works.
    pub(super) fn trouble(&self) -> Option<i32> {
        self.socket.poll().err().filter(|code| !matches!(*code, libc::EAGAIN | libc::EINTR))
    }
}
