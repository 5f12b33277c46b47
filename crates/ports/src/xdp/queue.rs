//! One queue of a port: a socket, and the chunks that it takes turns in with the kernel.
//!
//! Half of a queue's chunks are for receiving: each is in the fill ring, the kernel's, or in the
//! receive ring. The other half are for sending: free, in the transmit ring, the kernel's, or in
//! the completion ring. As many chunks are in each half as a ring has slots, so that a ring that
//! chunks go back to always has room.

#![allow(unsafe_code)]

use std::sync::Arc;

use super::socket::{Failure, Socket};
use super::spec::Spec;
use super::umem::Umem;

/// A queue.
pub(super) struct Queue {
    pub(super) socket: Socket,
    umem: Arc<Umem>,
    /// Chunks to send from; the last one back is the first to go again, since it is the warmest.
    free: Vec<u64>,
    /// Whether the kernel copies, and so sends only while it is called.
    copies: bool,
    /// Whether receiving needs our calls to go on.
    drives: bool,
    stamps: bool,
    /// What it carried and lost.
    pub(super) counters: Counters,
}

/// An account, besides what the kernel counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counters {
    pub(super) rx_frames: u64,
    pub(super) rx_bytes: u64,
    pub(super) tx_frames: u64,
    pub(super) tx_bytes: u64,
    /// Frames that were too long to be sent.
    pub(super) too_long: u64,
    /// Frames that were too short, or that the interface dropped.
    pub(super) refused: u64,
    /// Descriptions of frames outside the memory.
    pub(super) broken: u64,
}

/// A received frame: its bytes, and when the kernel took it on the monotonic clock, or zero.
pub(super) struct Received<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) stamp_ns: u64,
}

/// Bytes of an Ethernet header, the least that can be sent.
const HEADER_BYTES: usize = 14;

/// Bytes of a tag, by which a frame may be longer.
const TAG_BYTES: usize = 4;

/// Whether a frame is longer than others by no more than its tag.
fn fits_with_tag(bytes: &[u8], mtu: usize) -> bool {
    let is_tagged = matches!(bytes.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
    is_tagged && bytes.len() <= HEADER_BYTES + TAG_BYTES + mtu
}

impl Queue {
    /// Opens a queue of an interface. Of the memory, the chunks from the `queue`-th twice as many
    /// as a ring has slots are its.
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

    /// Shows at most `limit` frames to `see`, oldest first, and gives their chunks back.
    #[inline]
    pub(super) fn take(&mut self, limit: usize, mut see: impl FnMut(Received<'_>)) -> usize {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let mut count = self.socket.receive.available(limit);
        if count == 0 && limit > 0 && (self.drives || self.socket.fill.needs_wakeup()) {
            // What is wrong with the interface, whoever asks for its state is told.
            let _ = self.socket.poll();
            count = self.socket.receive.available(limit);
        }
        // The kernel has them back when they were seen.
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
            see(Received { bytes, stamp_ns: stamp.unwrap_or(0) });
            self.socket.fill.put(self.umem.chunk_of(frame.addr));
            seen += 1;
        }
        if count > 0 {
            self.socket.fill.tell();
            self.socket.receive.release(count);
        }
        seen
    }

    /// Sends copies of frames until one finds no room, over an interface of this MTU. Returns how
    /// many are done with (sent, or counted as refused), and what the system said if it sends
    /// nothing at all.
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

    /// Takes back the chunks of frames that have left.
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

    /// Has the kernel send what waits in the transmit ring, if it must be told; why it does not, if
    /// the interface is to blame.
    #[inline]
    pub(super) fn kick(&mut self) -> Option<i32> {
        if !self.socket.transmit.needs_wakeup() {
            return None;
        }
        let mut waiting = self.socket.transmit.waiting();
        while waiting > 0 {
            match self.socket.kick() {
                Ok(()) | Err(libc::EAGAIN | libc::EINTR) => {}
                // By copy, this is a frame that the interface dropped for lack of room. Those behind
                // it wait for the next call, or they were dropped too, one with each call.
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

    /// What the interface says of itself: nothing, or why it does not work.
    pub(super) fn trouble(&self) -> Option<i32> {
        self.socket.poll().err().filter(|code| !matches!(*code, libc::EAGAIN | libc::EINTR))
    }
}
