//! A program as decisions over the bytes of a frame that stays where it lies.
//!
//! From each port's block on, the graph is unfolded into a tree: whatever is the same for all frames that
//! come this way (settings, metadata, headers that were put on) is worked out when it
//! [grows](super::grow), and what is left are questions about the frame's bytes and about tables. An
//! [`End`] is where a frame leaves, is dropped, or enters a block that only knows frames. All that
//! blocks and links count on the way to an end is told by that end's own count. Where unfolding takes too
//! much, ways that may go on alike [meet](Node::Join), and what was counted of each before is told there.
//!
//! Invariant: whoever has gone through [`Tree::settle`] finds every counter as the interpreter would have
//! it.

use dataplane::forwarder::{SIGHTS_MAX, Sight};
use packet::frame::PortNo;

use super::change::Change;
use super::lead::{first, places};
use super::shortcut::Shortcuts;
use super::view::Field;
use crate::interpret::Interpreter;
use crate::lfb::{Lfb, Reason, ipv4_validator};

/// The place of a node among the nodes.
pub type NodeId = u32;

/// No node, no effect.
pub const NONE: u32 = u32::MAX;

/// Where a field's bits are, to be read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word {
    pub(super) byte: u16,
    pub(super) shift: u8,
    pub(super) mask: u64,
}

impl Word {
    /// How a field is read.
    pub fn of(field: Field) -> Word {
        let inside = field.at % 8;
        let shift = 64 - inside as u8 - field.bits;
        Word { byte: field.at / 8, shift, mask: field.most() }
    }

    /// The field of a frame that begins with these bytes; what is not there is zero.
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

/// A word at the end of the bytes.
#[cold]
fn short(head: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(head.get(at..).unwrap_or_default()) {
        *to = *from;
    }
    u64::from_be_bytes(word)
}

/// A question, or an end.
#[derive(Debug)]
pub enum Node {
    /// The way ends here.
    End(u32),
    /// The same, in front of a block from which frames come to a table that learns.
    Back(u32),
    /// Ways meet: what is counted of the one that came here, and where they go on.
    Join(u32, NodeId),
    /// Whether the frame has so many bytes: yes, no.
    Length(u32, [NodeId; 2]),
    /// Whether a field has this value: yes, no.
    Is(Word, u64, [NodeId; 2]),
    /// Whether a field has this value at most: yes, no.
    AtMost(Word, u64, [NodeId; 2]),
    /// Which way for each of some values, and for all others.
    Values(Word, Box<[(u64, NodeId)]>, NodeId),
    /// Which way for each value from one on, and for all others.
    Dense(Word, u64, Box<[NodeId]>, NodeId),
    /// Which way for each value of a small field.
    Table(Word, Box<[NodeId]>),
    /// Which way up to each of some values, in ascending order.
    Ranges(Word, Box<[(u64, NodeId)]>),
    /// Whether the first field, and so much more, is at most the frame's bytes: yes, no.
    Fits(Word, u32, [NodeId; 2]),
    /// What is found of an IPv4 header at a byte, by the number of what is found.
    Ipv4(u16, Box<[NodeId]>),
    /// What a table knows: this takes time.
    Ask(Box<Question>),
}

/// What a block's table is asked.
#[derive(Debug)]
pub enum Question {
    /// A bridge's table.
    Learn(LearnQuestion),
    /// Routes.
    Route(RouteQuestion),
}

/// A bridge's key: an address, and a VLAN.
#[derive(Debug, Clone, Copy)]
pub struct MacAt {
    /// The address.
    pub mac: Word,
    /// The VLAN, if it belongs to the key.
    pub vid: Option<Word>,
}

/// A bridge's table learns one key, and is asked for another.
#[derive(Debug)]
pub struct LearnQuestion {
    /// The block.
    pub instance: u32,
    /// The key that is learnt.
    pub learn: MacAt,
    /// With which value; none is learnt if that is no port.
    pub value: Option<u32>,
    /// The key that is asked for.
    pub search: MacAt,
    /// Where it is not known.
    pub unknown: NodeId,
    /// Where it is known, by the value.
    pub known: Box<[NodeId]>,
    /// Where it is known with a greater one, which the frame carries on.
    pub other: NodeId,
    /// Where frames go on as frames to ask, since others do that come to the table.
    pub stand: NodeId,
}

/// A table of routes is asked.
#[derive(Debug)]
pub struct RouteQuestion {
    /// The block.
    pub instance: u32,
    /// The destination.
    pub address: Word,
    /// By the number of the next hop.
    pub hops: Box<[NodeId]>,
    /// Where none is found.
    pub none: NodeId,
    /// Where the next hop has a greater number.
    pub other: NodeId,
}

/// What is counted for each frame that came this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It went over a link, with so many bytes more than it came with.
    Link(u32, i32),
    /// It met what a block calls by a number, with so many bytes more than it came with.
    Met(u32, u32, i32),
    /// A block let it go no further.
    Drop(u32, Reason, u32),
}

impl Node {
    /// Where a frame goes on from a question; from what is none, it goes nowhere.
    #[inline(always)]
    pub(super) fn answer(&self, &Sight { head, bytes }: &Sight<'_>) -> NodeId {
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

    /// One of the ways of a question, and which of some frames go it: there are some.
    #[inline]
    pub(super) fn part(&self, these: u32, sights: &[Sight<'_>]) -> (NodeId, u32) {
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
                let goes = |it: &Sight<'_>| {
                    let own = word.read(it.head);
                    own == value || self.way_of(own) == to
                };
                (to, which(these, sights, goes))
            }
            _ => self.with_first(these, sights),
        }
    }

    /// The way of the first one of some frames, and who goes with it.
    fn with_first(&self, these: u32, sights: &[Sight<'_>]) -> (NodeId, u32) {
        let to = self.answer(&sights[these.trailing_zeros() as usize]);
        (to, which(these, sights, |it| self.answer(it) == to))
    }

    /// The way for a value of a field that has several.
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

    /// The second way of a question that has two.
    #[inline]
    pub(super) fn no(&self) -> Option<NodeId> {
        match self {
            Node::Length(_, ways) | Node::Is(.., ways) | Node::AtMost(.., ways) => Some(ways[1]),
            _ => None,
        }
    }
}

/// Which of some frames something holds for.
#[inline(always)]
fn which(these: u32, sights: &[Sight<'_>], holds: impl Fn(&Sight<'_>) -> bool) -> u32 {
    if these == first(sights.len()) {
        let all = sights.iter().take(SIGHTS_MAX).enumerate();
        return all.fold(0, |which, (place, it)| which | u32::from(holds(it)) << place);
    }
    places(these).fold(0, |which, place| which | u32::from(holds(&sights[place])) << place)
}

/// What is counted at one place for each frame that passes it.
#[derive(Debug)]
pub struct Tally {
    /// Links that it went over, each with so many bytes more than it came with.
    pub links: Box<[(u32, i32)]>,
    /// What it met: the block, what this calls it, bytes more than it came with.
    pub met: Box<[(u32, u32, i32)]>,
    /// Frames that are not counted yet, and the bytes that they came with.
    frames: u64,
    bytes: u64,
}

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes no further.
    Gone,
    /// It leaves by a port, of which a block is in charge.
    Leaves(PortNo, u32),
    /// It goes on as a frame.
    Goes,
}

/// How a frame that goes on as a frame becomes what it is where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A header of so many bytes is taken off.
    Strip(u16),
    /// A header is put on: its place among the tree's.
    Prepend(u32),
    /// One off the time to live of the IPv4 header that it begins with.
    Lessen,
    /// What a block does with it.
    Edit(u32),
    /// A metadatum is set, by its slot.
    Meta(u16, Value),
}

/// The value of a metadatum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// It is the same for every frame.
    Constant(u128),
    /// It came with the frame.
    Field(Word),
    /// What a table knew.
    Found,
}

/// Where a way ends.
#[derive(Debug)]
pub struct End {
    /// What becomes of a frame.
    pub fate: Fate,
    /// What is counted of the way from the last join on.
    pub tally: Tally,
    /// Which block let it go no further, why, and by which output.
    pub dropped: Option<(u32, Reason, u32)>,
    /// The link by which it came last.
    pub link: u32,
    /// What its bytes become where it leaves.
    pub change: Change,
    /// How it becomes what it is where it stands.
    pub steps: Box<[Step]>,
}

impl Tally {
    /// What counts effects, of none yet.
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

    /// Counts frames of so many bytes together, and says whether these are the first.
    #[inline]
    fn add(&mut self, frames: u64, bytes: u64) -> bool {
        let is_first = self.frames == 0;
        self.frames += frames;
        self.bytes += bytes;
        is_first
    }

    /// Tells blocks and links what is not counted yet, and says how many frames that were.
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
    /// An end that no frame has reached, behind some effects.
    pub fn new(fate: Fate, effects: &[Effect], link: u32, change: Change, steps: Vec<Step>) -> End {
        let dropped = effects.iter().find_map(|effect| match *effect {
            Effect::Drop(instance, reason, output) => Some((instance, reason, output)),
            _ => None,
        });
        End { fate, tally: Tally::of(effects), dropped, link, change, steps: steps.into() }
    }
}

/// A program as decisions.
#[derive(Debug, Default)]
pub struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) ends: Vec<End>,
    /// Headers that are put on.
    pub(super) headers: Vec<Vec<u8>>,
    /// The first node for each port.
    pub(super) roots: Vec<NodeId>,
    /// Ports that frames leave by.
    pub(super) exits: Vec<PortNo>,
    /// What is counted where ways meet.
    pub(super) joins: Vec<Tally>,
    /// Ends that have frames that are not counted yet.
    touched: Vec<u32>,
    /// Joins that have.
    passed: Vec<u32>,
    /// Ways that frames of each port went.
    pub(super) shortcuts: Vec<Shortcuts>,
}

impl Tree {
    /// The first node for frames that a port received; `None` if these have to go on as frames at once.
    #[inline]
    pub fn root(&self, port: PortNo) -> Option<NodeId> {
        self.roots.get(port as usize).copied().filter(|root| *root != NONE)
    }

    /// Whether frames leave by none but some ports.
    #[inline]
    pub(super) fn leaves_by(&self, ports: &[PortNo]) -> bool {
        self.exits.iter().all(|port| ports.contains(port))
    }

    /// How many questions and ends there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many places there are where ways meet.
    pub fn joins(&self) -> usize {
        self.joins.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Brings a frame from a node to the next one that takes time, or is an end, and says which joins it
    /// passes.
    #[inline]
    pub(super) fn descend(
        &self,
        mut node: NodeId,
        sight: Sight<'_>,
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

    /// Counts frames of so many bytes together at an end, and says what becomes of them.
    #[inline]
    pub(super) fn count(&mut self, end: u32, frames: u64, bytes: u64) -> Fate {
        let of = &mut self.ends[end as usize];
        if of.tally.add(frames, bytes) {
            self.touched.push(end);
        }
        of.fate
    }

    /// Counts frames of so many bytes together that pass a join.
    #[inline]
    pub(super) fn pass(&mut self, join: u32, frames: u64, bytes: u64) {
        if self.joins[join as usize].add(frames, bytes) {
            self.passed.push(join);
        }
    }

    /// Tells blocks and links what is not counted yet.
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
