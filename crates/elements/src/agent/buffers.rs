//! Buffered frames that wait for a controller's decision.
//!
//! Source: OpenFlow switch specification 1.0.0, sections 5.3.6 and 5.4.1.
//!
//! The buffers are a bounded ring. A frame is kept for at least the configured time; then the next
//! one may replace it. While all slots hold newer frames, the switch sends frames to the controller
//! whole and without a buffer ID.
//!
//! Invariant: a buffer ID names one frame. It consists of the slot and the number of times that the
//! slot was filled. A late reply therefore never sends another frame, until the count wraps after
//! about 65,536 uses of the slot.

use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

/// Modulus of the count of uses in a buffer ID.
const FILLS: u32 = 0xffff;

/// Ring of buffered frames.
#[derive(Debug)]
pub struct Buffers {
    places: Vec<BufferSlot>,
    capacity: usize,
    next: usize,
    keep: Nanos,
}

/// Why no frame was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBuffer {
    /// The buffer does not exist, or no longer.
    Unknown,
    /// The buffer was used already.
    Empty,
}

#[derive(Debug)]
struct BufferSlot {
    fills: u32,
    since: Nanos,
    port: PortNo,
    frame: Option<Frame>,
    /// Whether a bundle reserves the frame. It stays until the bundle is committed or rolled back.
    reserved: bool,
}

impl Buffers {
    /// Creates a ring for `capacity` frames (at most 65,536), which keeps each for at least `keep`.
    pub fn new(capacity: usize, keep: Nanos) -> Self {
        assert!(capacity <= 1 << 16, "a buffer ID has 16 bits for the slot");
        Buffers { places: Vec::new(), capacity, next: 0, keep }
    }

    /// Returns the number of slots.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Stores a frame that was received on `port`. Returns its buffer ID, or `None` if no slot is
    /// free.
    pub fn store(&mut self, port: PortNo, frame: Frame, now: Nanos) -> Option<u32> {
        if self.places.len() < self.capacity && self.next == self.places.len() {
            let (frame, reserved) = (None, false);
            self.places.push(BufferSlot { fills: FILLS, since: now, port, frame, reserved });
        }
        let index = self.next;
        let place = self.places.get_mut(index);
        let is_free = |place: &&mut BufferSlot| {
            let over = now.since(place.since) >= self.keep && !place.reserved;
            place.frame.is_none() || over
        };
        let place = place.filter(is_free)?;
        // The all-ones buffer ID means "no buffer", so the count stops one short.
        let fills = (place.fills + 1) % FILLS;
        *place = BufferSlot { fills, since: now, port, frame: Some(frame), reserved: false };
        self.next = (index + 1) % self.capacity;
        Some(fills << 16 | index as u32)
    }

    /// Checks that a frame with this buffer ID is available.
    pub fn check(&self, id: u32) -> Result<(), NoBuffer> {
        let place = self.places.get((id & 0xffff) as usize).filter(|it| it.fills == id >> 16);
        place.ok_or(NoBuffer::Unknown)?.check()
    }

    /// Removes the frame with this buffer ID. Returns it with its ingress port.
    pub fn take(&mut self, id: u32) -> Result<(PortNo, Frame), NoBuffer> {
        let place = self.find(id)?;
        place.check()?;
        let frame = place.frame.take().ok_or(NoBuffer::Empty)?;
        Ok((place.port, frame))
    }

    /// Reserves the frame with this buffer ID for a bundle. Until [`Buffers::unreserve`], nothing
    /// else takes the frame and no other frame replaces it.
    pub fn reserve(&mut self, id: u32) -> Result<(), NoBuffer> {
        let place = self.find(id)?;
        place.check()?;
        place.reserved = true;
        Ok(())
    }

    /// Releases the reservation of [`Buffers::reserve`].
    pub fn unreserve(&mut self, id: u32) {
        if let Ok(place) = self.find(id) {
            place.reserved = false;
        }
    }

    fn find(&mut self, id: u32) -> Result<&mut BufferSlot, NoBuffer> {
        let place = self.places.get_mut((id & 0xffff) as usize);
        place.filter(|place| place.fills == id >> 16).ok_or(NoBuffer::Unknown)
    }
}

impl BufferSlot {
    fn check(&self) -> Result<(), NoBuffer> {
        if self.frame.is_some() && !self.reserved { Ok(()) } else { Err(NoBuffer::Empty) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(byte: u8) -> Frame {
        Frame::from_bytes(&[byte; 60])
    }

    #[test]
    fn a_buffered_frame_is_returned_once() {
        let mut buffers = Buffers::new(2, Nanos(100));
        let id = buffers.store(7, frame(1), Nanos(0)).unwrap();
        let (port, found) = buffers.take(id).unwrap();
        assert_eq!((port, found.bytes()[0]), (7, 1));
        assert_eq!(buffers.take(id).unwrap_err(), NoBuffer::Empty);
        assert_eq!(buffers.take(id + 1).unwrap_err(), NoBuffer::Unknown);
        assert_eq!(buffers.take(u32::MAX).unwrap_err(), NoBuffer::Unknown);
    }

    #[test]
    fn new_frames_replace_old_ones_only_after_their_minimum_age() {
        let mut buffers = Buffers::new(2, Nanos(100));
        let first = buffers.store(1, frame(1), Nanos(0)).unwrap();
        let second = buffers.store(1, frame(2), Nanos(50)).unwrap();
        assert_eq!(buffers.store(1, frame(3), Nanos(99)), None);
        let third = buffers.store(1, frame(3), Nanos(100)).unwrap();
        assert_eq!(buffers.store(1, frame(4), Nanos(149)), None);
        assert_eq!(buffers.take(first).unwrap_err(), NoBuffer::Unknown);
        assert_eq!(buffers.take(second).unwrap().1.bytes()[0], 2);
        assert_eq!(buffers.take(third).unwrap().1.bytes()[0], 3);
    }

    #[test]
    fn buffer_ids_are_valid_and_do_not_repeat_soon() {
        let mut buffers = Buffers::new(1, Nanos(0));
        let mut seen = std::collections::HashSet::new();
        for _ in 0..FILLS {
            let id = buffers.store(1, frame(0), Nanos(0)).unwrap();
            assert!(id != u32::MAX && seen.insert(id));
        }
    }

    #[test]
    fn a_reserved_frame_stays_until_it_is_released() {
        let mut buffers = Buffers::new(1, Nanos(100));
        let id = buffers.store(7, frame(1), Nanos(0)).unwrap();
        buffers.reserve(id).unwrap();
        assert_eq!(buffers.reserve(id), Err(NoBuffer::Empty));
        assert_eq!(buffers.take(id).unwrap_err(), NoBuffer::Empty);
        assert_eq!(buffers.store(1, frame(2), Nanos(500)), None);
        buffers.unreserve(id);
        assert_eq!(buffers.take(id).unwrap().1.bytes()[0], 1);
    }

    #[test]
    fn without_capacity_there_are_no_buffers() {
        assert_eq!(Buffers::new(0, Nanos(0)).store(1, frame(0), Nanos(9)), None);
    }
}
