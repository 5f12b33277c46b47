//! Symbolic first bytes of a frame: each byte refers to a byte of the received frame or to a
//! written value.
//!
//! Offsets refer to the frame in its current state on the path. Reads return a position in the
//! received frame, because that is what exists at run time.

use std::rc::Rc;

/// Number of first bytes that are represented.
pub const VIEW_BYTES: usize = 128;

/// One byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Byte {
    /// A received byte masked with `keep`, combined with the bits of `put`.
    Known {
        /// Offset in the received frame.
        from: u16,
        /// Mask of the preserved bits.
        keep: u8,
        /// Bits that were written.
        put: u8,
    },
    /// The decremented TTL from this offset.
    Lessened(u16),
    /// One byte of the checksum updated for such a change.
    Summed(u16),
}

/// Bits of a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    /// Offset of the first bit.
    pub at: u16,
    /// Number of bits, at most 64 including those before it in its first byte.
    pub bits: u8,
}

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Read {
    /// The same in every frame.
    Constant(u64),
    /// A field of the received frame.
    Field(Field),
}

/// The first bytes of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// Shared until a change: there are many paths but few changes.
    bytes: Rc<Vec<Byte>>,
    /// Number of bytes added at the front; negative if bytes were removed.
    pub grown: i32,
}

impl Field {
    /// Returns the maximum value that fits.
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
    /// Creates the view of a received frame.
    pub fn new() -> View {
        View { bytes: Rc::new((0..VIEW_BYTES as u16).map(Byte::came).collect()), grown: 0 }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[Byte] {
        &self.bytes
    }

    /// Reads bits. Returns `None` if they are unknown or more than a word.
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

    /// Writes bits. Returns false without a change where the bytes are unknown.
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

    /// Copies bytes. Returns false without a change beyond the known bytes.
    pub fn copy(&mut self, from: usize, to: usize, count: usize) -> bool {
        let Some(bytes) = self.bytes.get(from..from + count).map(<[Byte]>::to_vec) else {
            return false;
        };
        let there = Rc::make_mut(&mut self.bytes).get_mut(to..to + count);
        there.map(|there| there.copy_from_slice(&bytes)).is_some()
    }

    /// Inserts bytes. Returns false without a change beyond the known bytes.
    pub fn insert(&mut self, at: usize, fresh: &[u8]) -> bool {
        let fits = at <= self.bytes.len();
        if fits {
            Rc::make_mut(&mut self.bytes).splice(at..at, fresh.iter().map(|byte| Byte::put(*byte)));
            self.grown += fresh.len() as i32;
        }
        fits
    }

    /// Removes bytes. Returns false without a change beyond the known bytes.
    pub fn remove(&mut self, at: usize, count: usize) -> bool {
        let fits = at + count <= self.bytes.len();
        if fits {
            Rc::make_mut(&mut self.bytes).drain(at..at + count);
            self.grown -= count as i32;
        }
        fits
    }

    /// Decrements the TTL of the IPv4 header at an offset and updates its checksum. Returns false
    /// without a change unless the header is as received.
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
    fn written_bits_are_constants_and_received_bits_are_found() {
        let mut view = View::new();
        assert_eq!(view.read(96, 16), Some(Read::Field(Field { at: 96, bits: 16 })));
        assert!(view.insert(12, &[0x81, 0, 0, 0]));
        assert_eq!(view.read(96, 16), Some(Read::Constant(0x8100)));
        assert_eq!(view.read(128, 16), Some(Read::Field(Field { at: 96, bits: 16 })));
        assert!(view.write(116, 12, 0x7f5));
        assert_eq!(view.read(112, 16), Some(Read::Constant(0x07f5)));
        assert_eq!(view.read(115, 4), Some(Read::Constant(3)));
        // One half was received, the other half written.
        assert!(view.write(148, 4, 5));
        assert_eq!(view.read(144, 8), None);
        assert_eq!(view.read(144, 4), Some(Read::Field(Field { at: 112, bits: 4 })));
        assert_eq!(view.read(148, 4), Some(Read::Constant(5)));
        // Bytes that were not adjacent.
        assert_eq!(view.read(88, 16), None);
        assert!(view.remove(0, 16));
        assert_eq!(view.read(8, 8), Some(Read::Field(Field { at: 104, bits: 8 })));
        assert_eq!(view.grown, -12);
        assert!(!view.remove(view.bytes().len(), 1));
    }
}
