//! Changes of a frame's bytes, computed when the program is compiled.
//!
//! A [`Change`] contains the number of bytes added or removed at the front, the moves of first
//! bytes, and the bytes to write. The change of an unmodified frame is empty.

use packet::frame::Frame;
use packet::header::ipv4;

use super::symbolic_bytes::{Byte, View};

/// A change of a frame's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Number of bytes added at the front; negative if bytes are removed.
    pub grown: i32,
    /// Moves of bytes: from, to, count. Offsets refer to the longer of the frames before and after
    /// the change.
    moves: Vec<(u16, u16, u16)>,
    /// Writes of eight-byte words: offset, mask of bits to preserve, bits to set.
    words: Vec<(u16, u64, u64)>,
    /// Writes of single bytes, where no word fits.
    bytes: Vec<(u16, u8, u8)>,
    /// Offsets after the change of IPv4 headers whose TTL is decremented.
    lessened: Vec<u16>,
    /// Number of leading bytes that are read or written.
    reach: u16,
}

impl Change {
    /// Computes the change from the received frame to the frame of a view, which has at least
    /// `least` bytes. Returns `None` if moves in both directions are necessary.
    pub fn of(view: &View, least: usize) -> Option<Change> {
        let mut change = Change { grown: view.grown, ..Change::default() };
        let grown = view.grown;
        let (front, back) = (grown.max(0), (-grown).max(0));
        for (place, byte) in view.bytes().iter().enumerate() {
            let from = match *byte {
                Byte::Known { from, keep, put } => {
                    if keep != 0xff {
                        change.bytes.push((place as u16, keep, put));
                        change.reach = change.reach.max(place as u16 + 1);
                    }
                    if keep == 0 {
                        continue;
                    }
                    from
                }
                Byte::Lessened(from) => {
                    let header = place.checked_sub(ipv4::TTL_AT)?;
                    change.lessened.push(header as u16);
                    change.reach = change.reach.max((header + ipv4::HEADER_BYTES) as u16);
                    from
                }
                Byte::Summed(from) => from,
            };
            let (from, to) = (i32::from(from) + front, place as i32 + back);
            if from == to {
                continue;
            }
            // Moves go forward in a growing frame and backward in a shrinking one, so each byte is
            // read before it is overwritten.
            if (grown > 0 && from < to) || (grown < 0 && from > to) || grown == 0 {
                return None;
            }
            match change.moves.last_mut() {
                Some((first, there, count))
                    if (i32::from(*first + *count), i32::from(*there + *count)) == (from, to) =>
                {
                    *count += 1;
                }
                _ => change.moves.push((from as u16, to as u16, 1)),
            }
            change.reach = change.reach.max(place as u16 + 1);
        }
        if grown < 0 {
            change.moves.reverse();
        }
        change.gather(least);
        Some(change)
    }

    /// Combines byte writes into words within the first `least` bytes.
    fn gather(&mut self, least: usize) {
        if least < 8 {
            return;
        }
        let mut left = std::mem::take(&mut self.bytes).into_iter().peekable();
        while let Some((first, ..)) = left.peek() {
            let at = usize::from(*first).min(least - 8);
            let (mut keep, mut put) = ([0xff; 8], [0; 8]);
            let mut is_any = false;
            while let Some((place, stays, fresh)) =
                left.next_if(|(place, ..)| (at..at + 8).contains(&usize::from(*place)))
            {
                let inside = usize::from(place) - at;
                (keep[inside], put[inside]) = (stays, fresh);
                is_any = true;
            }
            match is_any {
                true => {
                    self.reach = self.reach.max(at as u16 + 8);
                    let words = (u64::from_ne_bytes(keep), u64::from_ne_bytes(put));
                    self.words.push((at as u16, words.0, words.1));
                }
                false => self.bytes.extend(left.next()),
            }
        }
    }

    /// Returns true if the frame does not change.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.reach == 0 && self.grown == 0
    }

    /// Returns the moves of bytes in their order: from, to, count. Offsets refer to the longer of the
    /// frames before and after the change.
    pub fn moves(&self) -> &[(u16, u16, u16)] {
        &self.moves
    }

    /// Returns the writes of eight bytes after the moves: offset in the changed frame, bits to
    /// preserve and bits to set, in the machine's byte order.
    pub fn words(&self) -> &[(u16, u64, u64)] {
        &self.words
    }

    /// Returns the writes of single bytes after the moves, like [`Change::words`].
    pub fn bytes(&self) -> &[(u16, u8, u8)] {
        &self.bytes
    }

    /// Returns the offsets in the changed frame of IPv4 headers whose TTL is decremented last.
    pub fn decremented(&self) -> &[u16] {
        &self.lessened
    }

    /// Returns the number of bytes read or written, in the longer of the frames before and after
    /// the change.
    #[inline]
    pub fn reach(&self) -> usize {
        usize::from(self.reach) + (-self.grown).max(0) as usize
    }

    /// Applies the change to a frame, which must have all affected bytes. Returns false and leaves
    /// the frame unchanged if it would become too long.
    #[inline]
    pub fn apply(&self, frame: &mut Frame) -> bool {
        if self.is_none() {
            return true;
        }
        if self.grown > 0 && !frame.insert(0, self.grown as usize) {
            return false;
        }
        self.rewrite(frame.bytes_mut());
        if self.grown < 0 {
            frame.remove(0, -self.grown as usize);
        }
        true
    }

    /// Applies the change to the longer of the frames before and after the change. If the frame
    /// shrinks, the changed frame starts after the removed bytes.
    #[inline]
    pub fn rewrite(&self, bytes: &mut [u8]) {
        for &(from, to, count) in &self.moves {
            let (from, to, count) = (usize::from(from), usize::from(to), usize::from(count));
            // Two overlapping words cover 8 to 16 bytes, such as the addresses.
            let word = |bytes: &[u8], at: usize| bytes.get(at..at + 8)?.first_chunk::<8>().copied();
            if let (8..=16, Some(first), Some(last)) =
                (count, word(bytes, from), word(bytes, from + count.max(8) - 8))
            {
                bytes[to..to + 8].copy_from_slice(&first);
                bytes[to + count - 8..to + count].copy_from_slice(&last);
            } else {
                bytes.copy_within(from..from + count, to);
            }
        }
        let bytes = &mut bytes[(-self.grown).max(0) as usize..];
        for &(at, keep, put) in &self.words {
            if let Some(word) = bytes[usize::from(at)..].first_chunk_mut::<8>() {
                *word = (u64::from_ne_bytes(*word) & keep | put).to_ne_bytes();
            }
        }
        for &(at, keep, put) in &self.bytes {
            let byte = &mut bytes[usize::from(at)];
            *byte = *byte & keep | put;
        }
        for &at in &self.lessened {
            ipv4::decrement_ttl(&mut bytes[usize::from(at)..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame in which each byte equals its offset.
    fn frame() -> Frame {
        Frame::from_bytes(&(0..60).collect::<Vec<u8>>())
    }

    fn changed(view: &View) -> Vec<u8> {
        let mut frame = frame();
        assert!(Change::of(view, 20).expect("the change is possible").apply(&mut frame));
        frame.bytes().to_vec()
    }

    #[test]
    fn a_tag_is_inserted_and_removed() {
        let mut view = View::new();
        assert!(Change::of(&view, 60).unwrap().is_none());
        assert!(view.insert(12, &[1, 2, 3, 4]) && view.write(12 * 8 + 4, 4, 7));
        let expected: Vec<u8> = (0..12).chain([7, 2, 3, 4]).chain(12..60).collect();
        assert_eq!(changed(&view), expected);
        let mut view = View::new();
        assert!(view.remove(12, 4) && view.write(13 * 8, 4, 9));
        let expected: Vec<u8> = (0..12).chain([16, 0x91]).chain(18..60).collect();
        assert_eq!(changed(&view), expected);
    }

    #[test]
    fn a_header_is_replaced_by_another() {
        let mut view = View::new();
        assert!(view.remove(0, 18) && view.lessen(0) && view.insert(0, &[9; 14]));
        let mut expected: Vec<u8> = [9; 14].into_iter().chain(18..60).collect();
        ipv4::decrement_ttl(&mut expected[14..]);
        assert_eq!(changed(&view), expected);
        let mut view = View::new();
        assert!(view.remove(0, 14) && view.lessen(0) && view.insert(0, &[9; 18]));
        let mut expected: Vec<u8> = [9; 18].into_iter().chain(14..60).collect();
        ipv4::decrement_ttl(&mut expected[18..]);
        assert_eq!(changed(&view), expected);
    }

    #[test]
    fn swapped_bytes_are_not_compiled() {
        let mut view = View::new();
        assert!(view.copy(0, 6, 6));
        assert_eq!(Change::of(&view, 60), None);
    }
}
