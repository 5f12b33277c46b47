//! Shortcuts for frames that repeat the path of an earlier frame.
//!
//! After a frame took a long path through the tree, a shortcut records the bits that decided the
//! path:
//!
//! - all bits of a field that equals a value,
//! - the highest bit that differs, for a field that does not equal a value,
//! - as many leading bits as determine the side of a bound.
//!
//! One comparison of words then moves a frame with the same bits directly to the end of that path,
//! even if many rules failed on the way.
//!
//! Invariant: for each frame that matches a shortcut, its target and its joins are those that the
//! tree gives.

use dataplane::forwarder::FrameHead;

use super::batch_eval::places;
use super::tree::{Node, NodeId, Tree, Word};

/// Number of first bytes that are compared. Frames must have at least as many.
const BYTES: usize = 60;
/// Offsets of the words that cover these bytes. The last two overlap.
const WORDS: [usize; 8] = [0, 8, 16, 24, 32, 40, 48, 52];
/// Maximum number of shortcuts per port.
const SHORTCUTS_MAX: usize = 4;
/// Minimum number of decisions in a shortcut. Fewer are as fast without one.
const QUESTIONS_MIN: u32 = 6;
/// Number of frames after which the miss rate is evaluated.
const WINDOW_FRAMES: u32 = 1024;
/// Maximum number of new shortcuts in this window.
const LEARNT_MAX: u32 = 8;
/// Number of frames without shortcuts after too many misses.
const REST_FRAMES: u32 = 1 << 16;

/// A path that a frame took, and the bits that identify it.
#[derive(Debug)]
pub(super) struct FlowCacheEntry {
    /// Mask of tested bits, by word.
    asked: [u64; WORDS.len()],
    /// Values of these bits.
    held: [u64; WORDS.len()],
    /// Minimum and maximum length of a frame.
    lengths: (usize, usize),
    /// Node at the end of the path.
    pub(super) node: NodeId,
    /// Joins on the path.
    pub(super) joins: Box<[u32]>,
    /// Number of recent frames that took the shortcut.
    taken: u32,
}

/// Shortcuts of a port.
#[derive(Debug, Default)]
pub(super) struct Shortcuts {
    all: Vec<FlowCacheEntry>,
    /// Number of frames to pass before shortcuts are tried again.
    rest: u32,
    tried: u32,
    missed: u32,
    learnt: u32,
}

impl Shortcuts {
    /// Returns true if these frames should try shortcuts.
    #[inline]
    pub(super) fn are_on(&mut self, frames: usize) -> bool {
        let is_on = self.rest == 0;
        self.rest = self.rest.saturating_sub(frames as u32);
        is_on
    }

    /// Returns all shortcuts.
    #[inline]
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut FlowCacheEntry> {
        self.all.iter_mut()
    }

    /// Records which frames missed, and creates a shortcut for one of them.
    #[inline]
    pub(super) fn close(
        &mut self,
        tree: &Tree,
        root: NodeId,
        sights: &[FrameHead<'_>],
        missed: u32,
    ) {
        self.tried += sights.len() as u32;
        self.missed += missed.count_ones();
        if let Some(place) = places(missed).next().filter(|_| self.learnt < LEARNT_MAX) {
            self.learnt += 1;
            self.learn(tree, root, sights[place]);
        }
        if self.tried >= WINDOW_FRAMES {
            self.review();
        }
    }

    #[cold]
    fn learn(&mut self, tree: &Tree, root: NodeId, sight: FrameHead<'_>) {
        let Some(fresh) = FlowCacheEntry::of(tree, root, sight) else {
            // Most frames will be like this one.
            if self.all.is_empty() {
                self.rest = REST_FRAMES;
            }
            return;
        };
        if self.all.len() < SHORTCUTS_MAX {
            return self.all.push(fresh);
        }
        if let Some(least) = self.all.iter_mut().min_by_key(|it| it.taken) {
            *least = fresh;
        }
    }

    #[cold]
    fn review(&mut self) {
        if self.missed > self.tried / 2 {
            self.all.clear();
            self.rest = REST_FRAMES;
        }
        // A low miss rate does not justify new shortcuts.
        self.learnt = if self.missed > self.tried / 8 { 0 } else { LEARNT_MAX };
        (self.tried, self.missed) = (0, 0);
        self.all.sort_by_key(|it| std::cmp::Reverse(it.taken));
        self.all.iter_mut().for_each(|it| it.taken /= 2);
    }
}

impl FlowCacheEntry {
    /// Returns the frames that match the shortcut.
    #[inline]
    pub(super) fn take(&mut self, these: u32, sights: &[FrameHead<'_>]) -> u32 {
        let fits = |sight: &FrameHead<'_>| {
            sight.head.first_chunk().is_some_and(|first| self.fits(first, sight.bytes))
        };
        let taken = places(these).fold(0, |taken, at| taken | u32::from(fits(&sights[at])) << at);
        self.taken += taken.count_ones();
        taken
    }

    #[inline]
    fn fits(&self, first: &[u8; BYTES], bytes: usize) -> bool {
        let mut other = 0;
        for (place, at) in WORDS.into_iter().enumerate() {
            other |= word(first, at) & self.asked[place] ^ self.held[place];
        }
        other == 0 && self.lengths.0 <= bytes && bytes <= self.lengths.1
    }

    /// Follows a frame through the tree as far as possible. Returns a shortcut if the path is long.
    fn of(tree: &Tree, root: NodeId, sight: FrameHead<'_>) -> Option<FlowCacheEntry> {
        let head = sight.head.first_chunk::<BYTES>()?;
        let mut way = Way { bits: [0; BYTES], lengths: (0, usize::MAX), joins: Vec::new() };
        let (mut node, mut questions) = (root, 0);
        while let Some(next) = way.follow(&tree.nodes[node as usize], head, sight) {
            (node, questions) = (next, questions + 1);
        }
        let asked = WORDS.map(|at| word(&way.bits, at));
        let mut held = WORDS.map(|at| word(head, at));
        held.iter_mut().zip(asked).for_each(|(held, asked)| *held &= asked);
        let Way { lengths, joins, .. } = way;
        let joins = joins.into();
        (questions >= QUESTIONS_MIN).then_some(FlowCacheEntry {
            asked,
            held,
            lengths,
            node,
            joins,
            taken: 1,
        })
    }
}

#[inline]
fn word(bytes: &[u8; BYTES], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word))
}

/// Bits and lengths that decided the path so far.
struct Way {
    bits: [u8; BYTES],
    lengths: (usize, usize),
    joins: Vec<u32>,
}

impl Way {
    /// Returns the next node of a frame, and records the bits that decided it. Returns none if it
    /// is not predictable.
    fn follow(&mut self, node: &Node, head: &[u8; BYTES], sight: FrameHead<'_>) -> Option<NodeId> {
        let way = |yes: bool, ways: &[NodeId; 2]| ways[usize::from(!yes)];
        Some(match node {
            Node::End(_) | Node::Back(_) | Node::Ask(_) | Node::Ipv4(..) => return None,
            Node::Join(join, next) => {
                self.joins.push(*join);
                *next
            }
            Node::Length(least, ways) => {
                let is_long = self.limit(*least as usize, sight.bytes);
                way(is_long, ways)
            }
            Node::Is(word, value, ways) => {
                let held = word.read(head);
                match held == *value {
                    true => self.note(*word, word.mask)?,
                    false => self.differs(*word, held, *value)?,
                }
                way(held == *value, ways)
            }
            Node::AtMost(word, bound, ways) => {
                let held = word.read(head);
                match held <= *bound {
                    true => self.within(*word, held, (0, *bound))?,
                    false => self.within(*word, held, (bound + 1, word.mask))?,
                }
                way(held <= *bound, ways)
            }
            Node::Values(word, ways, other) => {
                let held = word.read(head);
                if let Some((_, to)) = ways.iter().find(|(value, _)| *value == held) {
                    self.note(*word, word.mask)?;
                    return Some(*to);
                }
                for (value, _) in ways {
                    self.differs(*word, held, *value)?;
                }
                *other
            }
            Node::Dense(word, base, ways, other) => {
                let held = word.read(head);
                let end = base + ways.len() as u64;
                if held < *base {
                    self.within(*word, held, (0, base - 1))?;
                } else if held >= end {
                    self.within(*word, held, (end, word.mask))?;
                } else {
                    self.note(*word, word.mask)?;
                    return Some(ways[(held - base) as usize]);
                }
                *other
            }
            Node::Table(word, ways) => {
                let held = word.read(head);
                let to = ways[held as usize];
                let alike = |value: &u64| ways[*value as usize] == to;
                let low = (0..held).rev().take_while(alike).last().unwrap_or(held);
                let high = (held + 1..=word.mask).take_while(alike).last().unwrap_or(held);
                self.within(*word, held, (low, high))?;
                to
            }
            Node::Ranges(word, ways) => {
                let held = word.read(head);
                let at = ways.partition_point(|(high, _)| *high < held).min(ways.len() - 1);
                let low = at.checked_sub(1).map_or(0, |before| ways[before].0 + 1);
                self.within(*word, held, (low.min(held), ways[at].0.max(held)))?;
                ways[at].1
            }
            Node::Fits(word, more, ways) => {
                self.note(*word, word.mask)?;
                let end = word.read(head) as usize + *more as usize;
                way(self.limit(end, sight.bytes), ways)
            }
        })
    }

    /// Compares the frame length with `least` and records the bound.
    fn limit(&mut self, least: usize, bytes: usize) -> bool {
        match bytes >= least {
            true => self.lengths.0 = self.lengths.0.max(least),
            false => self.lengths.1 = self.lengths.1.min(least - 1),
        }
        bytes >= least
    }

    /// Records tested bits of a field. Returns none, without a change, if they are beyond the
    /// compared bytes.
    fn note(&mut self, word: Word, bits: u64) -> Option<()> {
        let bits = (bits << word.shift).to_be_bytes();
        let end = 8 - bits.iter().rev().take_while(|byte| **byte == 0).count();
        let there = self.bits.get_mut(usize::from(word.byte)..usize::from(word.byte) + end)?;
        there.iter_mut().zip(bits).for_each(|(there, byte)| *there |= byte);
        Some(())
    }

    /// Records one bit in which a field differs from a value.
    fn differs(&mut self, word: Word, held: u64, value: u64) -> Option<()> {
        let bits = held ^ value;
        if bits & !word.mask != 0 || bits & word.read(&self.bits) != 0 {
            return Some(());
        }
        self.note(word, 1 << bits.ilog2())
    }

    /// Records as many leading bits of a field as prove that it is within bounds.
    fn within(&mut self, word: Word, held: u64, (low, high): (u64, u64)) -> Option<()> {
        let mut free = word.mask;
        while free & !held > high - held || free & held > held - low {
            free >>= 1;
        }
        self.note(word, word.mask & !free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::symbolic_bytes::Field;

    fn way() -> Way {
        Way { bits: [0; BYTES], lengths: (0, usize::MAX), joins: Vec::new() }
    }

    #[test]
    fn only_the_deciding_bits_are_recorded() {
        let port = Word::of(Field { at: 36 * 8, bits: 16 });
        let noted = |note: fn(&mut Way, Word) -> Option<()>| {
            let mut way = way();
            note(&mut way, port).expect("the word is within the limit");
            port.read(&way.bits)
        };
        assert_eq!(noted(|way, port| way.note(port, port.mask)), 0xffff);
        assert_eq!(noted(|way, port| way.differs(port, 0x1234, 0x1334)), 0x0100);
        assert_eq!(noted(|way, port| way.within(port, 0x1234, (0, 0xffff))), 0);
        assert_eq!(noted(|way, port| way.within(port, 0x1234, (0x1000, 0x1fff))), 0xf000);
        assert_eq!(noted(|way, port| way.within(port, 0x1234, (0x1234, 0x1235))), 0xfffe);
        assert_eq!(noted(|way, port| way.within(port, 0x1234, (0x1233, 0x1234))), 0xffff);
        // A bit that is recorded already may suffice.
        let twice = |way: &mut Way, port: Word| {
            way.differs(port, 0x1234, 0x1334)?;
            way.differs(port, 0x1234, 0x0f00)
        };
        assert_eq!(noted(twice), 0x0100);
        assert_eq!(way().note(Word::of(Field { at: 58 * 8, bits: 16 }), 0xffff), Some(()));
        assert_eq!(way().note(Word::of(Field { at: 59 * 8, bits: 16 }), 0xffff), None);
    }
}
