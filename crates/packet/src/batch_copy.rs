//! Compact storage for copies of frames, for generators and analyzers that do not forward.
//!
//! A [`Batch`] moves frames by swapping buffers of two kilobytes each, as forwarders require. A
//! generator writes each frame from scratch and an analyzer only reads. Their frames are therefore
//! stored contiguously: 64 small frames fill four kilobytes and stay in the L1 cache. Each frame
//! starts at a multiple of a cache line.

use crate::frame::{Batch, FRAME_BYTES_MAX};
use crate::time::Stamp;

/// Alignment of frames in bytes.
pub const LINE_BYTES: usize = 64;

/// A bounded list of copied frames. Its memory grows to the largest list so far, at most
/// [`FRAME_BYTES_MAX`] per frame, and is reused.
#[derive(Debug)]
pub struct Copies {
    lines: Vec<CacheLine>,
    places: Vec<FramePosition>,
    capacity: usize,
    lines_used: usize,
    /// Buffer for ports that support only batches.
    spare: Batch,
}

/// A cache line. It spans two lines if the allocator does not align it.
type CacheLine = [u8; LINE_BYTES];

/// Position and receive time of a frame.
#[derive(Debug, Clone, Copy)]
struct FramePosition {
    line: usize,
    bytes: usize,
    stamp: Option<Stamp>,
}

impl Copies {
    /// Creates an empty list for at most `capacity` frames.
    pub fn new(capacity: usize) -> Self {
        let places = Vec::with_capacity(capacity);
        Copies { lines: Vec::new(), places, capacity, lines_used: 0, spare: Batch::new(capacity) }
    }

    /// Returns the maximum number of frames.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are no frames.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the number of frames that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.capacity - self.places.len()
    }

    /// Removes all frames. The memory is reused.
    #[inline]
    pub fn clear(&mut self) {
        self.places.clear();
        self.lines_used = 0;
    }

    /// Appends a frame of `bytes` bytes (at most [`FRAME_BYTES_MAX`]) with unspecified contents,
    /// and returns it; `None` if the list is full.
    #[inline]
    pub fn push(&mut self, bytes: usize, stamp: Option<Stamp>) -> Option<&mut [u8]> {
        if self.places.len() == self.capacity {
            return None;
        }
        let bytes = bytes.min(FRAME_BYTES_MAX);
        let line = self.lines_used;
        let end = line + bytes.div_ceil(LINE_BYTES);
        if end > self.lines.len() {
            self.grow(end);
        }
        self.lines_used = end;
        self.places.push(FramePosition { line, bytes, stamp });
        Some(&mut self.lines[line..end].as_flattened_mut()[..bytes])
    }

    /// Returns the frame at index `place`, which must be less than [`Copies::len`].
    #[inline]
    pub fn frame(&self, place: usize) -> &[u8] {
        self.at(&self.places[place])
    }

    /// Returns the receive time of the frame at index `place`, if it has one.
    #[inline]
    pub fn stamp(&self, place: usize) -> Option<Stamp> {
        self.places[place].stamp
    }

    /// Returns all frames in order.
    #[inline]
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.places.iter().map(|place| self.at(place))
    }

    /// Returns all frames in order, mutable.
    pub fn frames_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let mut rest = &mut self.lines[..self.lines_used];
        self.places.iter().map(move |place| {
            let lines = place.bytes.div_ceil(LINE_BYTES);
            let (frame, behind) = std::mem::take(&mut rest).split_at_mut(lines);
            rest = behind;
            &mut frame.as_flattened_mut()[..place.bytes]
        })
    }

    /// Replaces the frames by copies of those that `receive` appends to an empty batch, for a port
    /// that supports only batches.
    pub fn receive_by<E>(
        &mut self,
        receive: impl FnOnce(&mut Batch) -> Result<usize, E>,
    ) -> Result<usize, E> {
        self.clear();
        let mut spare = std::mem::replace(&mut self.spare, Batch::new(0));
        spare.clear();
        let result = receive(&mut spare);
        for frame in spare.frames() {
            if let Some(copy) = self.push(frame.len(), frame.stamp) {
                copy.copy_from_slice(frame.bytes());
            }
        }
        self.spare = spare;
        result
    }

    /// Calls `transmit` with a batch of copies of the frames, for a port that supports only
    /// batches.
    pub fn transmit_by<E>(
        &mut self,
        transmit: impl FnOnce(&mut Batch) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let mut spare = std::mem::replace(&mut self.spare, Batch::new(0));
        spare.clear();
        for frame in self.frames() {
            spare.push_bytes(frame);
        }
        let result = transmit(&mut spare);
        self.spare = spare;
        result
    }

    #[inline]
    fn at(&self, place: &FramePosition) -> &[u8] {
        let end = place.line + place.bytes.div_ceil(LINE_BYTES);
        &self.lines[place.line..end].as_flattened()[..place.bytes]
    }

    #[cold]
    fn grow(&mut self, lines: usize) {
        self.lines.resize(lines, [0; LINE_BYTES]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Clock, Nanos};

    #[test]
    fn frames_of_all_sizes_keep_their_bytes_and_time_stamps() {
        let mut copies = Copies::new(5);
        for round in 0..3 {
            copies.clear();
            let sizes = [60, 0, 64, FRAME_BYTES_MAX + 9, 65];
            for (place, bytes) in sizes.into_iter().enumerate() {
                let at = Nanos((round + place) as u64);
                let stamp = Stamp { at, clock: Clock::Virtual };
                let frame = copies.push(bytes, Some(stamp)).unwrap();
                assert_eq!(frame.len(), bytes.min(FRAME_BYTES_MAX));
                frame.fill(place as u8);
            }
            assert!(copies.push(1, None).is_none());
            assert_eq!((copies.len(), copies.room()), (5, 0));
            for (place, frame) in copies.frames().enumerate() {
                assert!(frame.iter().all(|&byte| byte == place as u8));
                assert_eq!(frame, copies.frame(place));
                assert_eq!(copies.stamp(place).unwrap().at, Nanos((round + place) as u64));
            }
        }
    }

    #[test]
    fn frames_pass_through_a_batch_unchanged() {
        let mut copies = Copies::new(3);
        copies.push(2, None).unwrap().copy_from_slice(&[1, 2]);
        copies.push(1, None).unwrap().copy_from_slice(&[3]);
        let mut kept = Batch::new(4);
        let sent = copies.transmit_by(|batch| {
            batch.frames_mut().iter_mut().for_each(|frame| {
                kept.push_swap(frame);
            });
            Ok::<_, ()>(1)
        });
        assert_eq!(sent, Ok(1));
        assert_eq!(copies.len(), 2);
        let mut others = Copies::new(4);
        others.push(9, None).unwrap();
        let received = others.receive_by(|batch| {
            assert_eq!((batch.len(), batch.capacity()), (0, 4));
            kept.frames_mut().iter_mut().for_each(|frame| assert!(batch.push_swap(frame)));
            Ok::<_, ()>(kept.len())
        });
        assert_eq!(received, Ok(2));
        assert_eq!(others.frames().collect::<Vec<_>>(), [&[1, 2][..], &[3][..]]);
        assert_eq!(others.receive_by(|_| Err(7)), Err(7));
        assert!(others.is_empty());
    }
}
