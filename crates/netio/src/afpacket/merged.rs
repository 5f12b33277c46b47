//! Frames that are longer than a ring slot: merged frames, and long frames.
//!
//! The kernel writes the start of such a frame into a slot, which preserves its order. It puts the
//! whole frame into the socket's receive queue (`PACKET_COPY_THRESH`). [`Segmenter`] segments a
//! merged frame over as many calls as the caller's batches need.

#![allow(unsafe_code)]

use std::os::fd::RawFd;

use packet::frame::{Batch, FRAME_BYTES_MAX};
use packet::segment::{MERGED_BYTES_MAX, Segmenter};
use packet::time::Stamp;

use super::restore::{self, TAG_AT, TAG_BYTES};
use super::ring::{Raw, VIRTIO_BYTES};
use crate::port::{PortCounters, PortDrop};

/// The merged frame that is being segmented, if any.
#[derive(Default)]
pub struct MergedFrame {
    segmenter: Segmenter,
    stamp: Option<Stamp>,
}

impl MergedFrame {
    /// Returns whether segments are left.
    #[inline]
    pub fn has_next(&self) -> bool {
        self.segmenter.has_next()
    }

    /// Appends the remaining segments, as many as fit.
    #[inline]
    pub fn segment_into(&mut self, batch: &mut Batch, counters: &mut PortCounters) {
        while self.segmenter.has_next() {
            let Some(frame) = batch.push_slot() else { return };
            self.segmenter.next_into(frame);
            frame.stamp = self.stamp;
            counters.rx_frames += 1;
            counters.rx_bytes += frame.len() as u64;
        }
    }

    /// Accepts a frame that is merged or longer than its slot.
    ///
    /// If `socket` is given, receives such frames from its queue. A long frame that is not merged
    /// is appended to the batch. Returns false if the frame must be segmented before further frames
    /// are taken.
    #[cold]
    pub fn take(
        &mut self,
        raw: &Raw<'_>,
        stamp: Stamp,
        (batch, counters): (&mut Batch, &mut PortCounters),
        socket: Option<RawFd>,
    ) -> bool {
        self.stamp = Some(stamp);
        let tag = raw.tag.filter(|_| raw.length >= TAG_AT);
        let length = raw.length + tag.map_or(0, |_| TAG_BYTES);
        let lost = match socket {
            Some(socket) if raw.is_queued => self.receive(socket, raw.length, tag.is_some()),
            Some(_) if !raw.is_cut() => self.copy(raw.bytes, tag.is_some()),
            // The receive queue was full.
            Some(_) if length <= MERGED_BYTES_MAX => Err(PortDrop::ReceiveRingFull),
            _ => Err(PortDrop::ReceiveTooLong),
        };
        if raw.outgoing {
            self.segmenter.buffer(0);
            return true;
        }
        let outcome = lost.and_then(|()| {
            let bytes = self.segmenter.bytes_mut();
            let shift = length - raw.length;
            if let Some((tpid, tci)) = tag {
                bytes[TAG_AT..TAG_AT + TAG_BYTES].copy_from_slice(&restore::tag_bytes(tpid, tci));
            }
            match raw.merged {
                Some(merged) => {
                    let transport_at = raw.checksum.map(|(from, _)| from + shift);
                    let begins =
                        |protocol| self.segmenter.begin(protocol, merged.size, transport_at);
                    let is_begun = merged.protocol.is_some_and(begins);
                    if is_begun { Ok(()) } else { Err(PortDrop::ReceiveInvalid) }
                }
                None => {
                    if let Some((from, place)) = raw.checksum {
                        restore::complete(bytes, from + shift, place);
                    }
                    push(bytes, stamp, batch, counters)
                }
            }
        });
        if let Err(reason) = outcome {
            counters.lose(reason, 1);
        }
        !self.segmenter.has_next()
    }

    /// Copies a frame into the buffer, with space for its tag.
    fn copy(&mut self, bytes: &[u8], is_tagged: bool) -> Result<(), PortDrop> {
        let [first, second] = self.parts(bytes.len(), is_tagged)?;
        let (head, rest) = bytes.split_at(first.len());
        first.copy_from_slice(head);
        second.copy_from_slice(rest);
        Ok(())
    }

    /// Receives the frame of `length` bytes from the socket's queue into the buffer, with space for
    /// its tag.
    ///
    /// Skips frames of other lengths, whose slots were lost.
    fn receive(&mut self, socket: RawFd, length: usize, is_tagged: bool) -> Result<(), PortDrop> {
        let mut nothing = [0; 0];
        let (mut parts, fits) = match self.parts(length, is_tagged) {
            Ok(parts) => (parts, Ok(())),
            Err(reason) => ([&mut nothing[..], &mut []], Err(reason)),
        };
        loop {
            match receive(socket, &mut parts) {
                Some(received) if received == length => return fits,
                Some(_) => {}
                None => return Err(PortDrop::ReceiveRingFull),
            }
        }
    }

    /// Returns the buffer's bytes before and after the space for a tag.
    fn parts(&mut self, length: usize, is_tagged: bool) -> Result<[&mut [u8]; 2], PortDrop> {
        let tag_bytes = if is_tagged { TAG_BYTES } else { 0 };
        if length + tag_bytes > MERGED_BYTES_MAX {
            return Err(PortDrop::ReceiveTooLong);
        }
        let buffer = self.segmenter.buffer(length + tag_bytes);
        let (first, rest) = buffer.split_at_mut(TAG_AT.min(length));
        Ok([first, &mut rest[tag_bytes..]])
    }
}

/// Appends a whole frame.
fn push(
    bytes: &[u8],
    stamp: Stamp,
    batch: &mut Batch,
    counters: &mut PortCounters,
) -> Result<(), PortDrop> {
    if bytes.len() > FRAME_BYTES_MAX {
        return Err(PortDrop::ReceiveTooLong);
    }
    let frame = batch.push_slot().expect("frames are limited to the room");
    frame.set_bytes(bytes);
    frame.stamp = Some(stamp);
    counters.rx_frames += 1;
    counters.rx_bytes += bytes.len() as u64;
    Ok(())
}

/// Receives the next frame of the socket's queue into two parts, without waiting.
///
/// Returns its length, which may exceed the parts; none if there is no frame.
fn receive(socket: RawFd, [first, second]: &mut [&mut [u8]; 2]) -> Option<usize> {
    let mut virtio = [0_u8; VIRTIO_BYTES];
    let vector = |bytes: &mut [u8]| libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut vectors = [vector(&mut virtio), vector(first), vector(second)];
    loop {
        // SAFETY: all-zero bytes are a valid value of this C struct. The vectors describe bytes
        // that outlive the call and that no other code accesses.
        let received = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = vectors.as_mut_ptr();
            message.msg_iovlen = vectors.len() as _;
            libc::recvmsg(socket, &mut message, libc::MSG_DONTWAIT | libc::MSG_TRUNC)
        };
        match usize::try_from(received) {
            Ok(received) => return Some(received.saturating_sub(VIRTIO_BYTES)),
            Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixDatagram;

    use packet::segment::Protocol;
    use packet::time::{Clock, Nanos};

    use super::*;
    use crate::afpacket::ring::Merged;

    const STAMP: Stamp = Stamp { at: Nanos(7), clock: Clock::Kernel };

    /// An IPv4 packet with UDP of this payload, without checksums.
    fn datagram(payload: usize) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend((28 + payload as u16).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 0, 0, 0]);
        bytes.resize(bytes.len() + payload, 9);
        bytes
    }

    fn raw(bytes: &[u8], length: usize, size: usize) -> Raw<'_> {
        Raw {
            bytes,
            length,
            realtime_ns: 0,
            tag: None,
            checksum: None,
            outgoing: false,
            merged: Some(Merged { protocol: Some(Protocol::Udp), size }),
            is_queued: length > bytes.len(),
        }
    }

    /// A pair of sockets: the port's end, and the end that queues frames with virtio headers.
    struct Queue {
        _far: UnixDatagram,
        near: UnixDatagram,
    }

    impl Queue {
        fn of(frames: &[&[u8]]) -> Queue {
            let (far, near) = UnixDatagram::pair().unwrap();
            for frame in frames {
                far.send(&[&[0; VIRTIO_BYTES][..], frame].concat()).unwrap();
            }
            Queue { _far: far, near }
        }

        /// Returns the lengths of the frames produced from this one, and the drops.
        fn take(&self, raw: &Raw<'_>) -> (Vec<usize>, Vec<(PortDrop, u64)>) {
            let (mut merged, mut counters) = (MergedFrame::default(), PortCounters::default());
            let (mut batch, mut lengths) = (Batch::new(2), Vec::new());
            merged.take(raw, STAMP, (&mut batch, &mut counters), Some(self.near.as_raw_fd()));
            loop {
                lengths.extend(batch.frames().iter().map(|frame| frame.len()));
                assert!(batch.frames().iter().all(|frame| frame.stamp == Some(STAMP)));
                batch.clear();
                if !merged.has_next() {
                    assert_eq!(counters.rx_frames, lengths.len() as u64);
                    return (lengths, counters.drops);
                }
                merged.segment_into(&mut batch, &mut counters);
            }
        }

        fn is_empty(&self) -> bool {
            receive(self.near.as_raw_fd(), &mut [&mut [], &mut []]).is_none()
        }
    }

    #[test]
    fn a_merged_frame_is_segmented_over_several_batches() {
        let whole = datagram(5000);
        let queue = Queue::of(&[&whole]);
        let (lengths, lost) = queue.take(&raw(&whole[..100], whole.len(), 999));
        assert_eq!((lengths, lost), (vec![1041, 1041, 1041, 1041, 1041, 47], vec![]));
        assert!(queue.is_empty());
    }

    #[test]
    fn the_slot_identifies_its_frame_in_the_queue() {
        let (other, whole) = (datagram(4000), datagram(3000));
        let queue = Queue::of(&[&other, &whole, &other]);
        let (lengths, lost) = queue.take(&raw(&whole[..100], whole.len(), 2000));
        assert_eq!((lengths, lost), (vec![2042, 1042], vec![]));
        let (lengths, lost) = queue.take(&raw(&whole[..100], whole.len(), 2000));
        assert_eq!((lengths, lost), (vec![], vec![(PortDrop::ReceiveRingFull, 1)]));
    }

    #[test]
    fn a_long_unmerged_frame_is_one_frame_with_its_tag() {
        let whole = datagram(5000);
        let queue = Queue::of(&[&whole]);
        let long =
            Raw { merged: None, tag: Some((0x8100, 5)), ..raw(&whole[..100], whole.len(), 0) };
        let (lengths, lost) = queue.take(&long);
        assert_eq!((lengths, lost), (vec![whole.len() + 4], vec![]));
    }

    #[test]
    fn an_invalid_header_or_slot_is_a_counted_loss() {
        let whole = datagram(3000);
        let lost = |raw: &Raw<'_>, frames: &[&[u8]]| {
            let queue = Queue::of(frames);
            let (lengths, lost) = queue.take(raw);
            assert_eq!(lengths, [] as [usize; 0]);
            assert!(queue.is_empty());
            assert_eq!(lost.len(), 1);
            lost[0].0
        };
        let good = raw(&whole[..100], whole.len(), 1000);
        let kind = Raw { merged: Some(Merged { protocol: None, size: 1000 }), ..good };
        assert_eq!(lost(&kind, &[&whole]), PortDrop::ReceiveInvalid);
        let good = raw(&whole[..100], whole.len(), 1000);
        let protocol = Some(Merged { protocol: Some(Protocol::Tcp), size: 1000 });
        assert_eq!(lost(&Raw { merged: protocol, ..good }, &[&whole]), PortDrop::ReceiveInvalid);
        assert_eq!(lost(&raw(&whole[..100], whole.len(), 0), &[&whole]), PortDrop::ReceiveInvalid);
        let good = raw(&whole[..100], whole.len(), 1000);
        let tunnelled = Raw { checksum: Some((84, 6)), ..good };
        assert_eq!(lost(&tunnelled, &[&whole]), PortDrop::ReceiveInvalid);
        // Longer than any frame, with and without a tag; truncated without being in the queue.
        let huge = vec![0; MERGED_BYTES_MAX + 1];
        let too_long = lost(&raw(&huge[..100], huge.len(), 1000), &[&huge]);
        assert_eq!(too_long, PortDrop::ReceiveTooLong);
        let good = raw(&huge[..100], MERGED_BYTES_MAX, 1000);
        let tagged = lost(&Raw { tag: Some((0x8100, 1)), ..good }, &[&huge[1..]]);
        assert_eq!(tagged, PortDrop::ReceiveTooLong);
        let good = raw(&whole[..100], whole.len(), 1000);
        assert_eq!(lost(&Raw { is_queued: false, ..good }, &[]), PortDrop::ReceiveRingFull);
        let long = raw(&huge[..100], FRAME_BYTES_MAX + 1, 0);
        let plain = Raw { merged: None, ..long };
        let frame = &huge[..FRAME_BYTES_MAX + 1];
        assert_eq!(lost(&plain, &[frame]), PortDrop::ReceiveTooLong);
        // Ten bytes cannot be a merged frame.
        assert_eq!(lost(&raw(&whole[..10], 10, 5), &[]), PortDrop::ReceiveInvalid);
    }

    #[test]
    fn an_outgoing_frame_is_removed_from_the_queue_and_not_received() {
        let whole = datagram(3000);
        let queue = Queue::of(&[&whole]);
        let outgoing = Raw { outgoing: true, ..raw(&whole[..100], whole.len(), 1000) };
        assert_eq!(queue.take(&outgoing), (vec![], vec![]));
        assert!(queue.is_empty());
    }
}
