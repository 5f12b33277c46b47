//! A program as decisions over the bytes of a frame that stays where it lies.
//!
//! From each port's block on, the graph is unfolded into a tree: whatever is the same for all frames that
//! come this way (settings, metadata, headers that were put on) is worked out when it
//! [grows](super::grow), and what is left are questions about the frame's bytes and about tables. An
//! [`End`] is where a frame leaves, is dropped, or enters a block that only knows frames. All that
//! blocks and links count on the way to an end is told by that end's own count.
//!
//! Invariant: whoever has gone through [`Tree::settle`] finds every counter as the interpreter would have
//! it.

use packet::frame::PortNo;

use super::change::Change;
use super::view::Field;
use crate::interpret::Interpreter;
use crate::lfb::{Lfb, Reason};

/// The place of a node among the nodes.
pub type NodeId = u32;

/// No node, no effect.
pub const NONE: u32 = u32::MAX;

/// Where a field's bits are, to be read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    byte: u16,
    shift: u8,
    mask: u64,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It went over a link, with so many bytes more than it came with.
    Link(u32, i32),
    /// It met what a block calls by a number, with so many bytes more than it came with.
    Met(u32, u32, i32),
    /// A block let it go no further.
    Drop(u32, Reason, u32),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Links that it went over, each with so many bytes more than it came with.
    pub links: Box<[(u32, i32)]>,
    /// What it met: the block, what this calls it, bytes more than it came with.
    pub met: Box<[(u32, u32, i32)]>,
    /// Which block let it go no further, why, and by which output.
    pub dropped: Option<(u32, Reason, u32)>,
    /// The link by which it came last.
    pub link: u32,
    /// What its bytes become where it leaves.
    pub change: Change,
    /// How it becomes what it is where it stands.
    pub steps: Box<[Step]>,
    /// Frames that are not counted yet, and the bytes that they came with.
    frames: u64,
    bytes: u64,
}

impl End {
    /// An end that no frame has reached, behind some effects.
    pub fn new(fate: Fate, effects: &[Effect], link: u32, change: Change, steps: Vec<Step>) -> End {
        let links = effects.iter().filter_map(|effect| match *effect {
            Effect::Link(link, more) => Some((link, more)),
            _ => None,
        });
        let met = effects.iter().filter_map(|effect| match *effect {
            Effect::Met(instance, what, more) => Some((instance, what, more)),
            _ => None,
        });
        let dropped = effects.iter().find_map(|effect| match *effect {
            Effect::Drop(instance, reason, output) => Some((instance, reason, output)),
            _ => None,
        });
        let (links, met) = (links.collect(), met.collect());
        let steps = steps.into();
        End { fate, links, met, dropped, link, change, steps, frames: 0, bytes: 0 }
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
    /// Ends that have frames that are not counted yet.
    touched: Vec<u32>,
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Goes on from a node to the next one that takes time, or is an end.
    #[inline(always)]
    pub(super) fn descend(&self, mut node: NodeId, head: &[u8], bytes: usize) -> NodeId {
        loop {
            let way = |yes: bool, ways: &[NodeId; 2]| ways[usize::from(!yes)];
            node = match &self.nodes[node as usize] {
                Node::End(_) | Node::Back(_) | Node::Ask(_) => return node,
                Node::Length(least, ways) => way(bytes >= *least as usize, ways),
                Node::Is(word, value, ways) => way(word.read(head) == *value, ways),
                Node::AtMost(word, value, ways) => way(word.read(head) <= *value, ways),
                Node::Values(word, ways, other) => {
                    let value = word.read(head);
                    ways.iter().find(|(of, _)| *of == value).map_or(*other, |(_, to)| *to)
                }
                Node::Dense(word, base, ways, other) => {
                    let at = word.read(head).wrapping_sub(*base) as usize;
                    ways.get(at).copied().unwrap_or(*other)
                }
                Node::Table(word, ways) => ways[word.read(head) as usize],
                Node::Ranges(word, ways) => {
                    let value = word.read(head);
                    let at = match ways.len() {
                        0..9 => ways.iter().position(|(high, _)| value <= *high),
                        _ => Some(ways.partition_point(|(high, _)| *high < value)),
                    };
                    ways[at.unwrap_or(ways.len() - 1)].1
                }
                Node::Fits(word, more, ways) => {
                    way(word.read(head) + u64::from(*more) <= bytes as u64, ways)
                }
                Node::Ipv4(at, ways) => {
                    let at = usize::from(*at);
                    let packet = head.get(at..).unwrap_or_default();
                    let found = crate::lfb::ipv4_validator::look(packet, bytes.saturating_sub(at));
                    ways[found.number()]
                }
            };
        }
    }

    /// Counts frames of so many bytes together at an end, and says what becomes of them.
    #[inline]
    pub(super) fn count(&mut self, end: u32, frames: u64, bytes: u64) -> Fate {
        let of = &mut self.ends[end as usize];
        if of.frames == 0 {
            self.touched.push(end);
        }
        of.frames += frames;
        of.bytes += bytes;
        of.fate
    }

    /// Tells blocks and links what is not counted yet.
    #[inline]
    pub(super) fn settle(&mut self, inner: &mut Interpreter) {
        while let Some(end) = self.touched.pop() {
            let end = &mut self.ends[end as usize];
            let (frames, bytes) = (std::mem::take(&mut end.frames), std::mem::take(&mut end.bytes));
            let after = |more: i32| bytes.wrapping_add_signed(i64::from(more) * frames as i64);
            for &(link, more) in &end.links {
                let link = &mut inner.loaded.links[link as usize];
                link.frames += frames;
                link.bytes += after(more);
            }
            for &(instance, what, more) in &end.met {
                if let Some(block) = &mut inner.loaded.blocks[instance as usize] {
                    Lfb::met(block, what, frames, after(more));
                }
            }
            if let Some((instance, reason, output)) = end.dropped {
                inner.account.dropped += frames;
                inner.loaded.drops[instance as usize].add_many(reason, output, frames);
            }
        }
    }
}
