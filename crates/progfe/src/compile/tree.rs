//! A program as a decision tree over the bytes of a frame in place.
//!
//! The tree starts at each port's block and unfolds the graph. The [compiler](super::grow)
//! evaluates everything that is the same for all frames of a path: settings, metadata, prepended
//! headers. The remaining decisions test bytes of the frame or look up tables. At an [`End`] a
//! frame leaves by a port, is dropped, or enters a block that needs the frame itself. Each end has
//! one counter for all counters of blocks and links on its path. If the tree would become too
//! large, similar paths [join](Node::Join), and the join counts the path before it.
//!
//! Invariant: after [`Tree::settle`] every counter has the value that the interpreter would give
//! it.

use dataplane::forwarder::{FrameHead, SIGHTS_MAX};
use packet::frame::PortNo;

use super::batch_eval::{first, places};
use super::change::Change;
use super::flow_cache::Shortcuts;
use super::symbolic_bytes::Field;
use crate::interpret::Interpreter;
use crate::lfb::{DropReason, Lfb, ipv4_validator};

/// Index of a node.
pub type NodeId = u32;

/// Value of an index without a node or an effect.
pub const NONE: u32 = u32::MAX;

/// Position of a field's bits, for a single read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word {
    pub(super) byte: u16,
    pub(super) shift: u8,
    pub(super) mask: u64,
}

impl Word {
    /// Computes how to read a field.
    pub fn of(field: Field) -> Word {
        let inside = field.at % 8;
        let shift = 64 - inside as u8 - field.bits;
        Word { byte: field.at / 8, shift, mask: field.most() }
    }

    /// Returns the offset of the first byte that has bits of the field, the number of bits in front
    /// of it in that byte, and the number of its bits.
    pub fn place(self) -> (u16, u8, u8) {
        let bits = self.mask.count_ones() as u8;
        (self.byte, 64 - self.shift - bits, bits)
    }

    /// Reads the field from the first bytes of a frame. Missing bytes count as zero.
    #[inline(always)]
    pub fn read(self, head: &[u8]) -> u64 {
        let at = usize::from(self.byte);
        let word = match head.get(at..at + 8) {
            Some(bytes) => u64::from_be_bytes(bytes.try_into().unwrap_or_default()),
            None => short(head, at),
        };
        word >> self.shift & self.mask
    }
}

/// Reads a word at the end of the bytes.
#[cold]
fn short(head: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(head.get(at..).unwrap_or_default()) {
        *to = *from;
    }
    u64::from_be_bytes(word)
}

/// A decision or an end.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// End of a path.
    End(u32),
    /// End in front of a block from which frames reach a learning table.
    Back(u32),
    /// Join of paths: counter of the path, and next node.
    Join(u32, NodeId),
    /// Whether the frame has at least this length: yes, no.
    Length(u32, [NodeId; 2]),
    /// Whether a field equals a value: yes, no.
    Is(Word, u64, [NodeId; 2]),
    /// Whether a field is at most a value: yes, no.
    AtMost(Word, u64, [NodeId; 2]),
    /// Branch for each of some values, and for all others.
    Values(Word, Box<[(u64, NodeId)]>, NodeId),
    /// Branch for each value from a base value on, and for all others.
    Dense(Word, u64, Box<[NodeId]>, NodeId),
    /// Branch for each value of a small field.
    Table(Word, Box<[NodeId]>),
    /// Branch up to each of some values, in ascending order.
    Ranges(Word, Box<[(u64, NodeId)]>),
    /// Whether a field plus a constant is at most the frame's length: yes, no.
    Fits(Word, u32, [NodeId; 2]),
    /// Branch by the validation result of the IPv4 header at an offset.
    Ipv4(u16, Box<[NodeId]>),
    /// Table lookup, which takes time.
    Ask(Box<TableLookup>),
}

/// A lookup in a block's table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableLookup {
    /// Bridge table.
    Learn(LearnQuestion),
    /// Routes.
    Route(RouteQuestion),
}

/// Key of a bridge table: address and VLAN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MacAt {
    /// The address.
    pub mac: Word,
    /// The VLAN, if it is part of the key.
    pub vid: Option<Word>,
}

/// Learning of one key and lookup of another in a bridge table.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnQuestion {
    /// Index of the block.
    pub instance: u32,
    /// The key to learn.
    pub learn: MacAt,
    /// The value to learn; none if it is not a port.
    pub value: Option<u32>,
    /// The key to look up.
    pub search: MacAt,
    /// Branch for an unknown key.
    pub unknown: NodeId,
    /// Branches by the value of a known key.
    pub known: Box<[NodeId]>,
    /// Branch for a known key with a larger value, which the frame carries as the lookup result.
    pub other: NodeId,
    /// Branch to the slow path, for frames that must not overtake others to the table.
    pub stand: NodeId,
}

/// Lookup in a routing table.
#[derive(Debug, Clone, PartialEq)]
pub struct RouteQuestion {
    /// Index of the block.
    pub instance: u32,
    /// The destination address.
    pub address: Word,
    /// Branches by the number of the next hop.
    pub hops: Box<[NodeId]>,
    /// Branch if no route matches.
    pub none: NodeId,
    /// Branch if the next hop has a larger number.
    pub other: NodeId,
}

/// A counter update for each frame of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// A link, and the difference in bytes from the received frame.
    Link(u32, i32),
    /// A block, the number of its counter, and the difference in bytes from the received frame.
    Met(u32, u32, i32),
    /// A drop in a block.
    Drop(u32, DropReason, u32),
}

impl Node {
    /// Returns the next node of a frame. Returns [`NONE`] for nodes without a decision.
    #[inline(always)]
    pub(super) fn answer(&self, &FrameHead { head, bytes }: &FrameHead<'_>) -> NodeId {
        let way = |yes: bool, ways: &[NodeId; 2]| ways[usize::from(!yes)];
        match self {
            Node::End(_) | Node::Back(_) | Node::Ask(_) | Node::Join(..) => NONE,
            Node::Length(least, ways) => way(bytes >= *least as usize, ways),
            Node::Is(word, value, ways) => way(word.read(head) == *value, ways),
            Node::AtMost(word, value, ways) => way(word.read(head) <= *value, ways),
            Node::Values(word, ..)
            | Node::Dense(word, ..)
            | Node::Table(word, _)
            | Node::Ranges(word, _) => self.way_of(word.read(head)),
            Node::Fits(word, more, ways) => {
                way(word.read(head) + u64::from(*more) <= bytes as u64, ways)
            }
            Node::Ipv4(at, ways) => {
                let at = usize::from(*at);
                let packet = head.get(at..).unwrap_or_default();
                let found = ipv4_validator::look(packet, bytes.saturating_sub(at));
                ways[found.number()]
            }
        }
    }

    /// Returns one branch of a decision and the frames that take it, at least one.
    #[inline]
    pub(super) fn part(&self, these: u32, sights: &[FrameHead<'_>]) -> (NodeId, u32) {
        let two = |ways: &[NodeId; 2], yes: u32| match yes {
            0 => (ways[1], these),
            yes => (ways[0], yes),
        };
        match self {
            Node::Length(least, ways) => {
                two(ways, which(these, sights, |it| it.bytes >= *least as usize))
            }
            Node::Is(word, value, ways) => {
                two(ways, which(these, sights, |it| word.read(it.head) == *value))
            }
            Node::AtMost(word, value, ways) => {
                two(ways, which(these, sights, |it| word.read(it.head) <= *value))
            }
            Node::Ipv4(at, ways) => {
                let plain = which(these, sights, |it| {
                    let at = usize::from(*at);
                    let packet = it.head.get(at..).unwrap_or_default();
                    ipv4_validator::is_plain(packet, it.bytes.saturating_sub(at))
                });
                match plain {
                    0 => self.with_first(these, sights),
                    plain => (ways[0], plain),
                }
            }
            Node::Values(word, ..) | Node::Dense(word, ..) | Node::Ranges(word, _) => {
                let value = word.read(sights[these.trailing_zeros() as usize].head);
                let to = self.way_of(value);
                let goes = |it: &FrameHead<'_>| {
                    let own = word.read(it.head);
                    own == value || self.way_of(own) == to
                };
                (to, which(these, sights, goes))
            }
            _ => self.with_first(these, sights),
        }
    }

    /// Returns the branch of the first frame, and the frames that take the same one.
    fn with_first(&self, these: u32, sights: &[FrameHead<'_>]) -> (NodeId, u32) {
        let to = self.answer(&sights[these.trailing_zeros() as usize]);
        (to, which(these, sights, |it| self.answer(it) == to))
    }

    /// Returns the branch for a value of a field with several branches.
    #[inline]
    fn way_of(&self, value: u64) -> NodeId {
        match self {
            Node::Values(_, ways, other) => {
                ways.iter().find(|(of, _)| *of == value).map_or(*other, |(_, to)| *to)
            }
            Node::Dense(_, base, ways, other) => {
                ways.get(value.wrapping_sub(*base) as usize).copied().unwrap_or(*other)
            }
            Node::Table(_, ways) => ways[value as usize],
            Node::Ranges(_, ways) => {
                let at = match ways.len() {
                    0..9 => ways.iter().position(|(high, _)| value <= *high),
                    _ => Some(ways.partition_point(|(high, _)| *high < value)),
                };
                ways[at.unwrap_or(ways.len() - 1)].1
            }
            _ => NONE,
        }
    }

    /// Returns the second branch of a decision with two branches.
    #[inline]
    pub(super) fn no(&self) -> Option<NodeId> {
        match self {
            Node::Length(_, ways) | Node::Is(.., ways) | Node::AtMost(.., ways) => Some(ways[1]),
            _ => None,
        }
    }
}

/// Returns the frames for which a predicate holds.
#[inline(always)]
fn which(these: u32, sights: &[FrameHead<'_>], holds: impl Fn(&FrameHead<'_>) -> bool) -> u32 {
    if these == first(sights.len()) {
        let all = sights.iter().take(SIGHTS_MAX).enumerate();
        return all.fold(0, |which, (place, it)| which | u32::from(holds(it)) << place);
    }
    places(these).fold(0, |which, place| which | u32::from(holds(&sights[place])) << place)
}

/// Counter for all effects of frames that pass one place.
#[derive(Debug)]
pub struct Tally {
    /// Links, each with the difference in bytes from the received frame.
    pub links: Box<[(u32, i32)]>,
    /// Counters of blocks: block, counter number, difference in bytes.
    pub met: Box<[(u32, u32, i32)]>,
    /// Frames not yet transferred to the counters, and their received bytes.
    frames: u64,
    bytes: u64,
}

/// What happens to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is dropped.
    Gone,
    /// It leaves by a port, which belongs to a block.
    Leaves(PortNo, u32),
    /// It continues on the slow path.
    Goes,
}

/// A step that brings a frame into its state at the end of a path, before the slow path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Removes a number of bytes at the front.
    Strip(u16),
    /// Prepends a header, by its index in the tree.
    Prepend(u32),
    /// Decrements the TTL of the IPv4 header at the start.
    Lessen,
    /// Applies the edit of a block.
    Edit(u32),
    /// Sets a metadata item, by its slot.
    Meta(u16, Value),
}

/// Value of a metadata item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// The same for every frame.
    Constant(u128),
    /// Read from the received frame.
    Field(Word),
    /// Result of a table lookup.
    Found,
}

/// End of a path.
#[derive(Debug)]
pub struct End {
    /// What happens to a frame.
    pub fate: Fate,
    /// Counter for the path since the last join.
    pub tally: Tally,
    /// Block, reason and output of a drop.
    pub dropped: Option<(u32, DropReason, u32)>,
    /// The last link of the path.
    pub link: u32,
    /// Change of the bytes, if the frame leaves.
    pub change: Change,
    /// Steps before the slow path, if the frame continues there.
    pub steps: Box<[Step]>,
}

impl Tally {
    /// Creates a counter for effects, starting at zero.
    pub fn of(effects: &[Effect]) -> Tally {
        let links = effects.iter().filter_map(|effect| match *effect {
            Effect::Link(link, more) => Some((link, more)),
            _ => None,
        });
        let met = effects.iter().filter_map(|effect| match *effect {
            Effect::Met(instance, what, more) => Some((instance, what, more)),
            _ => None,
        });
        Tally { links: links.collect(), met: met.collect(), frames: 0, bytes: 0 }
    }

    /// Counts frames and their total bytes. Returns true if these are the first since the last
    /// transfer.
    #[inline]
    fn add(&mut self, frames: u64, bytes: u64) -> bool {
        let is_first = self.frames == 0;
        self.frames += frames;
        self.bytes += bytes;
        is_first
    }

    /// Transfers the counts to blocks and links. Returns the number of frames.
    #[inline]
    fn settle(&mut self, inner: &mut Interpreter) -> u64 {
        let (frames, bytes) = (std::mem::take(&mut self.frames), std::mem::take(&mut self.bytes));
        let after = |more: i32| bytes.wrapping_add_signed(i64::from(more) * frames as i64);
        for &(link, more) in &self.links {
            let link = &mut inner.loaded.links[link as usize];
            link.frames += frames;
            link.bytes += after(more);
        }
        for &(instance, what, more) in &self.met {
            if let Some(block) = &mut inner.loaded.blocks[instance as usize] {
                Lfb::met(block, what, frames, after(more));
            }
        }
        frames
    }
}

impl End {
    /// Creates an end for a path with these effects.
    pub fn new(fate: Fate, effects: &[Effect], link: u32, change: Change, steps: Vec<Step>) -> End {
        let dropped = effects.iter().find_map(|effect| match *effect {
            Effect::Drop(instance, reason, output) => Some((instance, reason, output)),
            _ => None,
        });
        End { fate, tally: Tally::of(effects), dropped, link, change, steps: steps.into() }
    }
}

/// A program as a decision tree.
#[derive(Debug, Default)]
pub struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) ends: Vec<End>,
    /// Headers that paths prepend.
    pub(super) headers: Vec<Vec<u8>>,
    /// Root node of each port.
    pub(super) roots: Vec<NodeId>,
    /// Ports that frames leave by.
    pub(super) exits: Vec<PortNo>,
    /// Counters of the joins.
    pub(super) joins: Vec<Tally>,
    /// Ends with counts not yet transferred.
    touched: Vec<u32>,
    /// Joins with counts not yet transferred.
    passed: Vec<u32>,
    /// Shortcuts of each port.
    pub(super) shortcuts: Vec<Shortcuts>,
}

impl Tree {
    /// Returns the root node of a port; `None` if its frames always take the slow path.
    #[inline]
    pub fn root(&self, port: PortNo) -> Option<NodeId> {
        self.roots.get(port as usize).copied().filter(|root| *root != NONE)
    }

    /// Returns true if all ports that frames leave by are in the list.
    #[inline]
    pub(super) fn leaves_by(&self, ports: &[PortNo]) -> bool {
        self.exits.iter().all(|port| ports.contains(port))
    }

    /// Returns the nodes. The next nodes of a node have smaller numbers.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the ends of paths.
    pub fn ends(&self) -> &[End] {
        &self.ends
    }

    /// Returns the counters of paths in front of joins.
    pub fn join_tallies(&self) -> &[Tally] {
        &self.joins
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of joins.
    pub fn joins(&self) -> usize {
        self.joins.len()
    }

    /// Returns true if the tree has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Moves a frame from a node to the next table lookup or end, and reports the joins that it
    /// passes.
    #[inline]
    pub(super) fn descend(
        &self,
        mut node: NodeId,
        sight: FrameHead<'_>,
        mut pass: impl FnMut(u32),
    ) -> NodeId {
        loop {
            node = match &self.nodes[node as usize] {
                Node::End(_) | Node::Back(_) | Node::Ask(_) => return node,
                Node::Join(join, next) => {
                    pass(*join);
                    *next
                }
                question => question.answer(&sight),
            };
        }
    }

    /// Counts frames and their total bytes at an end. Returns what happens to them.
    #[inline]
    pub(super) fn count(&mut self, end: u32, frames: u64, bytes: u64) -> Fate {
        let of = &mut self.ends[end as usize];
        if of.tally.add(frames, bytes) {
            self.touched.push(end);
        }
        of.fate
    }

    /// Counts frames and their total bytes at a join.
    #[inline]
    pub(super) fn pass(&mut self, join: u32, frames: u64, bytes: u64) {
        if self.joins[join as usize].add(frames, bytes) {
            self.passed.push(join);
        }
    }

    /// Transfers all pending counts to blocks and links.
    #[inline]
    pub(super) fn settle(&mut self, inner: &mut Interpreter) {
        while let Some(join) = self.passed.pop() {
            self.joins[join as usize].settle(inner);
        }
        while let Some(end) = self.touched.pop() {
            let end = &mut self.ends[end as usize];
            let frames = end.tally.settle(inner);
            if let Some((instance, reason, output)) = end.dropped {
                inner.account.dropped += frames;
                inner.loaded.drops[instance as usize].add_many(reason, output, frames);
            }
        }
    }
}
