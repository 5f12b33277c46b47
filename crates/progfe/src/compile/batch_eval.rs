//! Traversal of a tree with batches of frames.
//!
//! All frames of a batch that reach a node take its decision together. Each test is evaluated once,
//! and similar frames, which are common in a batch, stay together until the end.

use dataplane::forwarder::{FrameHead, SIGHTS_MAX};
use packet::frame::PortNo;

use super::run::Row;
use super::tree::{Node, NodeId, Tree};

/// Groups with fewer frames than this are traversed frame by frame.
const TOGETHER_MIN: u32 = 3;

impl Row {
    /// Moves frames on from the root, by a shortcut if possible.
    pub(super) fn take_shortcuts(
        &mut self,
        tree: &mut Tree,
        (port, root): (PortNo, NodeId),
        sights: &[FrameHead<'_>],
    ) {
        let mut shortcuts = std::mem::take(&mut tree.shortcuts[port as usize]);
        let mut left = first(sights.len());
        for shortcut in shortcuts.all() {
            let these = shortcut.take(left, sights);
            if these != 0 {
                left &= !these;
                shortcut.joins.iter().for_each(|join| self.pass(*join, these, sights));
                self.lead(tree, shortcut.node, these, sights);
            }
        }
        if left != 0 {
            self.lead(tree, root, left, sights);
        }
        shortcuts.close(tree, root, sights, left);
        tree.shortcuts[port as usize] = shortcuts;
    }

    /// Records that frames pass a join.
    #[inline]
    fn pass(&mut self, join: u32, these: u32, sights: &[FrameHead<'_>]) {
        let bytes = places(these).map(|place| sights[place].bytes as u64).sum::<u64>();
        let frames = these.count_ones().into();
        match self.passed.last_mut() {
            Some((last, count, all)) if *last == join => {
                (*count, *all) = (*count + frames, *all + bytes);
            }
            _ => self.passed.push((join, frames, bytes)),
        }
    }

    /// Moves frames from a node to the next table lookup or to their ends. Frames on the same
    /// branch move together, small groups one by one.
    pub(super) fn lead(&mut self, tree: &Tree, from: NodeId, these: u32, sights: &[FrameHead<'_>]) {
        // Nodes with their groups of frames. Groups are disjoint, so there are at most as many
        // groups as frames.
        let (mut nodes, mut groups) = ([0; SIGHTS_MAX], [0; SIGHTS_MAX]);
        (nodes[0], groups[0]) = (from, these);
        let mut left = 1;
        while left > 0 {
            let (node, these) = (nodes[left - 1], groups[left - 1]);
            let at = &tree.nodes[node as usize];
            match at {
                Node::End(_) | Node::Back(_) | Node::Ask(_) => {
                    self.stay(at, node, these);
                    left -= 1;
                }
                Node::Join(join, next) => {
                    self.pass(*join, these, sights);
                    nodes[left - 1] = *next;
                }
                _ if these.count_ones() < TOGETHER_MIN => {
                    places(these).for_each(|place| self.come(tree, node, place, sights));
                    left -= 1;
                }
                _ => {
                    let (to, with) = at.part(these, sights);
                    (nodes[left - 1], groups[left - 1]) = (to, with);
                    match (these & !with, at.no()) {
                        (0, _) => {}
                        (others, Some(no)) => {
                            (nodes[left], groups[left]) = (no, others);
                            left += 1;
                        }
                        (others, None) => {
                            places(others).for_each(|it| self.come(tree, node, it, sights));
                        }
                    }
                }
            }
        }
    }

    /// Records that frames wait for a table lookup or have ended.
    #[inline(always)]
    fn stay(&mut self, at: &Node, node: NodeId, these: u32) {
        match these == first(self.count) {
            true => self.at[..self.count].fill(node),
            false => places(these).for_each(|place| self.at[place] = node),
        }
        if matches!(at, Node::Ask(_)) {
            self.asks = match self.asking {
                0 => Some(node),
                _ => self.asks.filter(|known| *known == node),
            };
            self.asking |= these;
        }
        self.goes_back |= matches!(at, Node::Back(_));
    }

    /// Moves one frame from a node to the next table lookup or to its end.
    #[inline]
    fn come(&mut self, tree: &Tree, from: NodeId, place: usize, sights: &[FrameHead<'_>]) {
        let these = 1 << place;
        let node = tree.descend(from, sights[place], |join| self.pass(join, these, sights));
        self.stay(&tree.nodes[node as usize], node, these);
    }

    /// Moves frames on from the nodes that their lookups selected.
    #[inline]
    pub(super) fn go_on(&mut self, tree: &Tree, mut these: u32, sights: &[FrameHead<'_>]) {
        while these != 0 {
            let node = self.at[these.trailing_zeros() as usize];
            let same =
                places(these).fold(0, |same, at| same | u32::from(self.at[at] == node) << at);
            these &= !same;
            self.lead(tree, node, same, sights);
        }
    }
}

/// Returns a mask of the first `count` frames.
#[inline]
pub(super) fn first(count: usize) -> u32 {
    ((1u64 << count.min(SIGHTS_MAX)) - 1) as u32
}

/// Returns the positions of the bits that are set.
#[inline]
pub(super) fn places(mut left: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (place < SIGHTS_MAX).then_some(place)
    })
}
