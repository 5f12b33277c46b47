//! A frame's first bytes as a compiler knows them: which byte of the frame that came each one is, or what
//! was written there.
//!
//! Offsets are of the frame as it would be at this point of its way; what is read is told as a place in
//! the frame as it came, since that is the one that is there when the program runs.

use std::rc::Rc;

/// Bytes of a frame that are looked at where it lies.
pub const VIEW_BYTES: usize = 128;

/// One byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Byte {
    /// Bits under `keep` of a byte that came, and the bits of `put`.
    Known {
        /// The byte's place in the frame that came.
        from: u16,
        /// Which of its bits are there still.
        keep: u8,
        /// What was written around these.
        put: u8,
    },
    /// A time to live that came at this place, less one.
    Lessened(u16),
    /// A checksum that follows such a change, of which this is one byte.
    Summed(u16),
}

/// Bits of a frame as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    /// The first one.
    pub at: u16,
    /// How many, at most 64 with those before it in its first byte.
    pub bits: u8,
}

/// What is read somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Read {
    /// It is the same in every frame.
    Constant(u64),
    /// It came with the frame.
    Field(Field),
}

/// A frame's first bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// Shared until they change: ways are many, changes few.
    bytes: Rc<Vec<Byte>>,
    /// Bytes that it has more than it came with; fewer if negative.
    pub grown: i32,
}

impl Field {
    /// The greatest number that fits.
    pub fn most(self) -> u64 {
        if self.bits >= 64 { u64::MAX } else { (1 << self.bits) - 1 }
    }
}

impl Byte {
    fn came(from: u16) -> Byte {
        Byte::Known { from, keep: 0xff, put: 0 }
    }

    fn put(put: u8) -> Byte {
        Byte::Known { from: 0, keep: 0, put }
    }
}

impl View {
    /// A frame as it came.
    pub fn new() -> View {
        View { bytes: Rc::new((0..VIEW_BYTES as u16).map(Byte::came).collect()), grown: 0 }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[Byte] {
        &self.bytes
    }

    /// What some bits hold; `None` if that is not known, or more than a word.
    pub fn read(&self, at: usize, bits: usize) -> Option<Read> {
        let (first, inside) = (at / 8, at % 8);
        if bits == 0 || inside + bits > 64 {
            return None;
        }
        let bytes = self.bytes.get(first..(at + bits).div_ceil(8))?;
        let (mut constant, mut all_put, mut all_came) = (0u64, true, true);
        let mut origin = None;
        for (place, byte) in bytes.iter().enumerate() {
            let before = if place == 0 { inside } else { 0 };
            let behind = ((place + 1) * 8).saturating_sub(inside + bits);
            let mask = 0xff_u8 >> before & 0xff_u8 << behind.min(7);
            let Byte::Known { from, keep, put } = *byte else { return None };
            all_put &= keep & mask == 0;
            all_came &= keep & mask == mask && put & mask == 0;
            let begin = i32::from(from) - place as i32;
            all_came &= *origin.get_or_insert(begin) == begin;
            constant = constant << 8 | u64::from(put & mask);
        }
        if all_put {
            return Some(Read::Constant(constant >> (bytes.len() * 8 - inside - bits)));
        }
        let origin = usize::try_from(origin?).ok()?;
        all_came.then(|| Read::Field(Field { at: (origin * 8 + inside) as u16, bits: bits as u8 }))
    }

    /// Writes bits. False, and no change, where nothing is known of the bytes.
    pub fn write(&mut self, at: usize, bits: usize, value: u64) -> bool {
        let Some(bytes) = Rc::make_mut(&mut self.bytes).get_mut(at / 8..(at + bits).div_ceil(8))
        else {
            return false;
        };
        if !bytes.iter().all(|byte| matches!(byte, Byte::Known { .. })) {
            return false;
        }
        for bit in 0..bits {
            let (place, mask) = ((at + bit) / 8 - at / 8, 0x80_u8 >> ((at + bit) % 8));
            if let Byte::Known { keep, put, .. } = &mut bytes[place] {
                *keep &= !mask;
                *put &= !mask;
                if value >> (bits - 1 - bit) & 1 == 1 {
                    *put |= mask;
                }
            }
        }
        true
    }

    /// Makes some bytes the same as others. False, and no change, beyond what is known.
    pub fn copy(&mut self, from: usize, to: usize, count: usize) -> bool {
        let Some(bytes) = self.bytes.get(from..from + count).map(<[Byte]>::to_vec) else {
            return false;
        };
        let there = Rc::make_mut(&mut self.bytes).get_mut(to..to + count);
        there.map(|there| there.copy_from_slice(&bytes)).is_some()
    }

    /// Puts fresh bytes in. False, and no change, beyond what is known.
    pub fn insert(&mut self, at: usize, fresh: &[u8]) -> bool {
        let fits = at <= self.bytes.len();
        if fits {
            Rc::make_mut(&mut self.bytes).splice(at..at, fresh.iter().map(|byte| Byte::put(*byte)));
            self.grown += fresh.len() as i32;
        }
        fits
    }

    /// Takes bytes out. False, and no change, beyond what is known.
    pub fn remove(&mut self, at: usize, count: usize) -> bool {
        let fits = at + count <= self.bytes.len();
        if fits {
            Rc::make_mut(&mut self.bytes).drain(at..at + count);
            self.grown -= count as i32;
        }
        fits
    }

    /// Takes one off the time to live of the IPv4 header at a place, and has its checksum follow. False,
    /// and no change, unless the header came as it is.
    pub fn lessen(&mut self, header: usize) -> bool {
        use packet::header::ipv4::{CHECKSUM_AT, TTL_AT};
        let places = [header + TTL_AT, header + CHECKSUM_AT, header + CHECKSUM_AT + 1];
        let mut origins = [0; 3];
        for (origin, place) in origins.iter_mut().zip(places) {
            let Some(Byte::Known { from, keep: 0xff, .. }) = self.bytes.get(place) else {
                return false;
            };
            *origin = *from;
        }
        let bytes = Rc::make_mut(&mut self.bytes);
        bytes[places[0]] = Byte::Lessened(origins[0]);
        bytes[places[1]] = Byte::Summed(origins[1]);
        bytes[places[2]] = Byte::Summed(origins[2]);
        true
    }
}

impl Default for View {
    fn default() -> View {
        View::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_came_is_found_where_it_was() {
        let mut view = View::new();
        assert_eq!(view.read(96, 16), Some(Read::Field(Field { at: 96, bits: 16 })));
        assert!(view.insert(12, &[0x81, 0, 0, 0]));
        assert_eq!(view.read(96, 16), Some(Read::Constant(0x8100)));
        assert_eq!(view.read(128, 16), Some(Read::Field(Field { at: 96, bits: 16 })));
        assert!(view.write(116, 12, 0x7f5));
        assert_eq!(view.read(112, 16), Some(Read::Constant(0x07f5)));
        assert_eq!(view.read(115, 4), Some(Read::Constant(3)));
        // Half of it came, half of it was written.
        assert!(view.write(148, 4, 5));
        assert_eq!(view.read(144, 8), None);
        assert_eq!(view.read(144, 4), Some(Read::Field(Field { at: 112, bits: 4 })));
        assert_eq!(view.read(148, 4), Some(Read::Constant(5)));
        // Bytes that were not side by side.
        assert_eq!(view.read(88, 16), None);
        assert!(view.remove(0, 16));
        assert_eq!(view.read(8, 8), Some(Read::Field(Field { at: 104, bits: 8 })));
        assert_eq!(view.grown, -12);
        assert!(!view.remove(view.bytes().len(), 1));
    }
}
