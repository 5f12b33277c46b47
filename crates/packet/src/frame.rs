//! A frame on a link, and a bounded batch of them.
//!
//! A `Frame` owns its bytes with room in front for tags, so that pushing a VLAN header moves no
//! payload. A `Batch` is what every port, forwarder and generator passes on: a bounded row of
//! frames whose buffers are recycled, so that no memory is allocated while traffic flows. Frames
//! move between batches by swapping buffers, never by copying bytes.
//!
//! Frame bytes run from the destination address to the last payload byte: the frame check
//! sequence is not in memory, so a frame called "64 bytes" in the standards holds 60 here.

use crate::time::Stamp;

/// The number by which a forwarder or an instrument knows a port.
pub type PortNo = u32;

/// Bytes kept free in front of a received frame, for headers that are pushed later.
pub const HEADROOM: usize = 64;

/// Largest frame that is accepted anywhere, in bytes without frame check sequence.
pub const FRAME_BYTES_MAX: usize = 16 * 1024;

/// Bytes of the frame check sequence, which size figures include and memory does not.
pub const FCS_BYTES: usize = 4;

/// Buffer that a fresh frame starts with; larger frames grow it once and keep it.
const BUFFER_BYTES: usize = 2048;

/// The bytes of one Ethernet frame, when it came in and who says so.
#[derive(Debug, Clone)]
pub struct Frame {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// When the frame was received, if the port that received it took a stamp.
    pub stamp: Option<Stamp>,
}

impl Default for Frame {
    fn default() -> Self {
        Frame { buffer: vec![0; BUFFER_BYTES], start: HEADROOM, end: HEADROOM, stamp: None }
    }
}

impl Frame {
    /// A frame that holds a copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut frame = Frame::default();
        frame.set_bytes(bytes);
        frame
    }

    /// The frame's bytes, destination address first.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The frame's bytes, to be changed in place.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// Number of bytes, without frame check sequence.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Replaces the contents by a copy of `bytes`, with fresh headroom and no stamp.
    /// Bytes past [`FRAME_BYTES_MAX`] are cut.
    #[inline]
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        self.resize(bytes.len());
        let length = self.len();
        self.bytes_mut().copy_from_slice(&bytes[..length]);
    }

    /// Makes the frame `length` bytes long (at most [`FRAME_BYTES_MAX`]) with fresh headroom and
    /// no stamp; the contents are unspecified and meant to be overwritten.
    #[inline]
    pub fn resize(&mut self, length: usize) {
        let length = length.min(FRAME_BYTES_MAX);
        self.start = HEADROOM;
        self.end = HEADROOM + length;
        if self.end > self.buffer.len() {
            self.buffer.resize(self.end, 0);
        }
        self.stamp = None;
    }

    /// Cuts the frame to its first `length` bytes, if it is longer.
    pub fn truncate(&mut self, length: usize) {
        self.end = self.end.min(self.start + length);
    }

    /// Lengthens the frame with zero bytes to at least `length` (padding).
    pub fn pad_to(&mut self, length: usize) {
        let length = length.min(FRAME_BYTES_MAX);
        let want = self.start + length;
        if want > self.end {
            if want > self.buffer.len() {
                self.buffer.resize(want, 0);
            }
            self.buffer[self.end..want].fill(0);
            self.end = want;
        }
    }

    /// Opens a gap of `count` bytes at offset `at`, moving the bytes before it forward; the gap's
    /// contents are unspecified. False, and no change, if neither headroom nor the size limit
    /// allows it.
    pub fn insert(&mut self, at: usize, count: usize) -> bool {
        if at > self.len() || self.len() + count > FRAME_BYTES_MAX {
            return false;
        }
        if count > self.start {
            let extra = count + HEADROOM;
            self.buffer.splice(0..0, std::iter::repeat_n(0, extra));
            self.start += extra;
            self.end += extra;
        }
        self.buffer.copy_within(self.start..self.start + at, self.start - count);
        self.start -= count;
        true
    }

    /// Removes `count` bytes at offset `at`, moving the bytes before them back. False, and no
    /// change, if the frame does not reach that far.
    pub fn remove(&mut self, at: usize, count: usize) -> bool {
        if at + count > self.len() {
            return false;
        }
        self.buffer.copy_within(self.start..self.start + at, self.start + count);
        self.start += count;
        true
    }

    /// Makes this frame equal to `other`, bytes and stamp, reusing this frame's buffer.
    pub fn copy_from(&mut self, other: &Frame) {
        self.set_bytes(other.bytes());
        self.stamp = other.stamp;
    }
}

/// A bounded row of frames whose buffers are recycled.
#[derive(Debug)]
pub struct Batch {
    frames: Vec<Frame>,
    len: usize,
    capacity: usize,
}

impl Batch {
    /// An empty batch that holds at most `capacity` frames.
    pub fn new(capacity: usize) -> Self {
        Batch { frames: Vec::new(), len: 0, capacity }
    }

    /// How many frames it can hold.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many frames it holds.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many more frames fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// The frames.
    #[inline]
    pub fn frames(&self) -> &[Frame] {
        &self.frames[..self.len]
    }

    /// The frames, to be changed in place.
    #[inline]
    pub fn frames_mut(&mut self) -> &mut [Frame] {
        &mut self.frames[..self.len]
    }

    /// Appends one recycled frame with unspecified contents and returns it, or `None` when full.
    #[inline]
    pub fn push_slot(&mut self) -> Option<&mut Frame> {
        if self.len == self.capacity {
            return None;
        }
        if self.len == self.frames.len() {
            self.frames.push(Frame::default());
        }
        self.len += 1;
        Some(&mut self.frames[self.len - 1])
    }

    /// Appends a copy of `bytes`. False when full.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> bool {
        match self.push_slot() {
            Some(frame) => {
                frame.set_bytes(bytes);
                true
            }
            None => false,
        }
    }

    /// Appends `frame` by swapping buffers: the caller's frame then holds an old buffer with
    /// unspecified contents. False, and no change, when full.
    #[inline]
    pub fn push_swap(&mut self, frame: &mut Frame) -> bool {
        match self.push_slot() {
            Some(slot) => {
                std::mem::swap(slot, frame);
                true
            }
            None => false,
        }
    }

    /// Removes the first `count` frames; the others keep their order.
    pub fn drop_front(&mut self, count: usize) {
        let count = count.min(self.len);
        self.frames[..self.len].rotate_left(count);
        self.len -= count;
    }

    /// Cuts the batch to its first `length` frames, if it holds more.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.len = self.len.min(length);
    }

    /// Removes all frames; their buffers stay for reuse.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserting_and_removing_a_gap_restores_the_bytes() {
        let mut frame = Frame::from_bytes(&[1, 2, 3, 4]);
        for _ in 0..40 {
            assert!(frame.insert(2, 4));
        }
        assert_eq!(frame.len(), 164);
        assert_eq!((&frame.bytes()[..2], &frame.bytes()[162..]), (&[1, 2][..], &[3, 4][..]));
        assert!(frame.remove(2, 160));
        assert_eq!(frame.bytes(), [1, 2, 3, 4]);
        assert!(!frame.remove(2, 3));
    }

    #[test]
    fn padding_is_zero_even_over_an_old_buffer() {
        let mut frame = Frame::from_bytes(&[7; 100]);
        frame.truncate(10);
        frame.pad_to(60);
        assert_eq!(frame.len(), 60);
        assert!(frame.bytes()[10..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_batch_refuses_more_than_its_capacity_and_keeps_order() {
        let mut batch = Batch::new(3);
        for byte in 0..3u8 {
            assert!(batch.push_bytes(&[byte]));
        }
        assert!(!batch.push_bytes(&[9]));
        batch.drop_front(1);
        let firsts: Vec<u8> = batch.frames().iter().map(|frame| frame.bytes()[0]).collect();
        assert_eq!(firsts, [1, 2]);
    }

    #[test]
    fn a_frame_never_outgrows_its_limit() {
        let mut frame = Frame::default();
        frame.set_bytes(&vec![0; FRAME_BYTES_MAX + 5]);
        assert_eq!(frame.len(), FRAME_BYTES_MAX);
        assert!(!frame.insert(0, 1));
    }
}
