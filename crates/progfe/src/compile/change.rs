//! What a frame's bytes become, worked out when the program is compiled.
//!
//! A [`Change`] says by how many bytes a frame grows or shrinks in front, which of its first bytes move, and
//! what is written. A frame that leaves unchanged has an empty one.

use packet::frame::Frame;
use packet::header::ipv4;

use super::view::{Byte, View};

/// What a frame's bytes become.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Bytes that it has more in front afterwards; fewer if negative.
    pub grown: i32,
    /// Bytes that move: from, to, how many. Places are those of the longer one of the frame before and
    /// the frame behind.
    moves: Vec<(u16, u16, u16)>,
    /// Bits that are written, by words of eight bytes: where, which bits stay, what is put around them.
    words: Vec<(u16, u64, u64)>,
    /// The same by bytes, where no word fits.
    bytes: Vec<(u16, u8, u8)>,
    /// IPv4 headers whose time to live goes down: where they are behind.
    lessened: Vec<u16>,
    /// Bytes that are looked at or written, from the first one on.
    reach: u16,
}

impl Change {
    /// What makes a view's frame, which has so many bytes at least, of the one that came; `None` where that
    /// takes more than moves in one direction.
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
            // Forward in a frame that grew, backward in one that shrank: what moves is read before it
            // is overwritten.
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

    /// Makes words of bytes, within so many of the frame.
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

    /// Whether the frame stays as it is.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.reach == 0 && self.grown == 0
    }

    /// Bytes that are looked at or written, in the longer one of the frames before and behind.
    #[inline]
    pub fn reach(&self) -> usize {
        usize::from(self.reach) + (-self.grown).max(0) as usize
    }

    /// Changes a frame, which has all the bytes that this is about and room for more. False if the frame
    /// would become too long; then it is as it was.
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

    /// The same for bytes that are the longer one of the frames before and behind: these begin behind as
    /// many bytes as the frame shrinks by.
    #[inline]
    pub fn rewrite(&self, bytes: &mut [u8]) {
        for &(from, to, count) in &self.moves {
            let (from, to, count) = (usize::from(from), usize::from(to), usize::from(count));
            // Two words hold what is neither shorter nor longer than addresses are.
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

    /// A frame that holds its offsets.
    fn frame() -> Frame {
        Frame::from_bytes(&(0..60).collect::<Vec<u8>>())
    }

    fn changed(view: &View) -> Vec<u8> {
        let mut frame = frame();
        assert!(Change::of(view, 20).expect("it can be done").apply(&mut frame));
        frame.bytes().to_vec()
    }

    #[test]
    fn a_tag_is_put_in_and_taken_out() {
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
    fn a_header_is_taken_off_and_another_put_on() {
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
    fn bytes_that_cross_are_left_to_others() {
        let mut view = View::new();
        assert!(view.copy(0, 6, 6));
        assert_eq!(Change::of(&view, 60), None);
    }
}
