//! Frames and bounded batches of frames.
//!
//! - A `Frame` owns its bytes, with headroom for tags. Pushing a VLAN header moves no payload.
//! - Ports, forwarders and generators exchange a `Batch`: a bounded list of frames with recycled
//!   buffers. No memory is allocated while traffic flows. Frames move between batches by swapping
//!   buffers, without copying bytes.
//! - The bytes of a frame extend from the destination address to the last payload byte, without
//!   FCS. A frame of "64 bytes" in the standards therefore has 60 bytes here.

use crate::time::Stamp;

/// Number of a port of a forwarder or tester.
pub type PortNo = u32;

/// Headroom in front of a received frame, for pushed headers.
pub const HEADROOM: usize = 64;

/// Maximum length of a frame in bytes, without FCS.
pub const FRAME_BYTES_MAX: usize = 16 * 1024;

/// Bytes of the FCS, which frame sizes include and memory does not.
pub const FCS_BYTES: usize = 4;

/// Initial buffer size of a frame. A larger frame grows it, and the buffer retains its size.
const BUFFER_BYTES: usize = 2048;

/// An Ethernet frame with its receive time stamp.
#[derive(Debug, Clone)]
pub struct Frame {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Receive time stamp, if the receiving port took one.
    pub stamp: Option<Stamp>,
}

impl Default for Frame {
    fn default() -> Self {
        Frame { buffer: vec![0; BUFFER_BYTES], start: HEADROOM, end: HEADROOM, stamp: None }
    }
}

impl Frame {
    /// Creates a frame with a copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut frame = Frame::default();
        frame.set_bytes(bytes);
        frame
    }

    /// Returns the bytes, destination address first.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the bytes, mutable.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// Returns the number of bytes, without FCS.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Replaces the contents by a copy of `bytes` and resets headroom and time stamp. Bytes beyond
    /// [`FRAME_BYTES_MAX`] are truncated.
    #[inline]
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        self.resize(bytes.len());
        let length = self.len();
        self.bytes_mut().copy_from_slice(&bytes[..length]);
    }

    /// Sets the length to `length` bytes (at most [`FRAME_BYTES_MAX`]) and resets headroom and time
    /// stamp. The contents are unspecified; the caller must overwrite them.
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

    /// Truncates the frame to its first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.end = self.end.min(self.start + length);
    }

    /// Pads the frame with zeros to at least `length` bytes.
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

    /// Inserts `count` unspecified bytes at offset `at` and moves the preceding bytes forward.
    /// Returns false without a change if neither headroom nor the size limit permits it.
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

    /// Removes `count` bytes at offset `at` and moves the preceding bytes back. Returns false
    /// without a change if the frame is too short.
    pub fn remove(&mut self, at: usize, count: usize) -> bool {
        if at + count > self.len() {
            return false;
        }
        self.buffer.copy_within(self.start..self.start + at, self.start + count);
        self.start += count;
        true
    }

    /// Copies bytes and time stamp of `other` into this frame's buffer.
    pub fn copy_from(&mut self, other: &Frame) {
        self.set_bytes(other.bytes());
        self.stamp = other.stamp;
    }
}

/// A bounded list of frames with recycled buffers.
#[derive(Debug)]
pub struct Batch {
    frames: Vec<Frame>,
    len: usize,
    capacity: usize,
}

impl Batch {
    /// Creates an empty batch for at most `capacity` frames.
    pub fn new(capacity: usize) -> Self {
        Batch { frames: Vec::new(), len: 0, capacity }
    }

    /// Returns the maximum number of frames.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no frames.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of frames that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// Returns the frames.
    #[inline]
    pub fn frames(&self) -> &[Frame] {
        &self.frames[..self.len]
    }

    /// Returns the frames, mutable.
    #[inline]
    pub fn frames_mut(&mut self) -> &mut [Frame] {
        &mut self.frames[..self.len]
    }

    /// Appends a recycled frame with unspecified contents and returns it; `None` if the batch is
    /// full.
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

    /// Appends a copy of `bytes`. Returns false if the batch is full.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> bool {
        match self.push_slot() {
            Some(frame) => {
                frame.set_bytes(bytes);
                true
            }
            None => false,
        }
    }

    /// Appends `frame` by swapping buffers. The caller's frame then has an old buffer with
    /// unspecified contents. Returns false without a change if the batch is full.
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

    /// Removes the first `count` frames. The others remain in order.
    pub fn drop_front(&mut self, count: usize) {
        let count = count.min(self.len);
        self.frames[..self.len].rotate_left(count);
        self.len -= count;
    }

    /// Truncates the batch to its first `length` frames.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.len = self.len.min(length);
    }

    /// Removes all frames. Their buffers are reused.
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
    fn a_full_batch_rejects_frames_and_keeps_their_order() {
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
    fn a_frame_stays_within_the_maximum_length() {
        let mut frame = Frame::default();
        frame.set_bytes(&vec![0; FRAME_BYTES_MAX + 5]);
        assert_eq!(frame.len(), FRAME_BYTES_MAX);
        assert!(!frame.insert(0, 1));
    }
}
