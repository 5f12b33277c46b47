//! How a program's graph becomes a tree of decisions.
//!
//! Blocks say what they do with frames of which so much is known ([`Block::grow`](crate::lfb::Block::grow)):
//! they ask the [`Grower`] for a decision and go on in each of its ways, by one of their outputs in the end. What
//! a block cannot say so, and what would make the tree too large, is left to the rows of frames: frames
//! [stand](Grower::stand) in front of that block then.
//!
//! Invariant: a table that learns is asked for the frames of a row in the order in which they came, and if one
//! of them comes to it later, as a frame, all do.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use packet::frame::{FRAME_BYTES_MAX, PortNo};

use super::change::Change;
use super::join::Joins;
use super::parse::Tried;
use super::shortcut::Shortcuts;
use super::tree::{Effect, End, Fate, NONE, Node, NodeId, Step, Tree, Word};
use super::view::{Field, Read, VIEW_BYTES};
use super::way::{Ranges, Way, both};
use crate::frames::{FormatId, FrameSet};
use crate::graph::Graph;
use crate::lfb::{Lfb, Reason, Slots};
use crate::loaded::Loaded;
use crate::program::{Program, base_id};

/// Questions and blocks on one way.
const DEPTH_MAX: usize = 160;
/// Values that are compared one after the other.
const VALUES_MAX: usize = 8;
/// What bounds a tree. The first that suffice are taken, and frames beyond them stand.
const LIMITS: [Limits; 6] = [
    Limits { hits: 2, headers: 4, nodes: 1 << 12, joins: false },
    Limits { hits: u32::MAX, headers: 4, nodes: 1 << 14, joins: true },
    Limits { hits: u32::MAX, headers: 3, nodes: 1 << 14, joins: true },
    Limits { hits: 1, headers: 3, nodes: 1 << 14, joins: true },
    Limits { hits: 0, headers: 3, nodes: 1 << 13, joins: false },
    Limits { hits: 0, headers: 2, nodes: 1 << 13, joins: false },
];

/// What bounds a tree.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Rules that a frame may match on one way, or between two joins.
    hits: u32,
    /// Headers that are looked at one after the other.
    headers: usize,
    /// Questions and ends of all ports together.
    nodes: usize,
    /// Whether ways meet again.
    joins: bool,
}

/// A tree that grows.
pub struct Grower<'a> {
    /// The program.
    pub program: &'a Program,
    /// How frames are read.
    pub frames: &'a FrameSet,
    /// Where metadata are.
    pub slots: &'a Slots,
    graph: &'a Graph,
    blocks: &'a [Option<&'a Lfb>],
    watched: &'a [bool],
    pub(super) tree: Tree,
    /// Blocks in front of which every frame stands.
    banned: BTreeSet<usize>,
    /// Tables that learn, and how many tables are asked before them.
    learning: BTreeMap<usize, u32>,
    /// Ends where frames stand: the node, in front of which block, and how many tables were asked before.
    stands: Vec<(NodeId, usize, u32)>,
    limits: Limits,
    /// Blocks behind which ways meet.
    joining: BTreeSet<usize>,
    /// Those of them where some did.
    pub(super) met_again: BTreeSet<usize>,
    pub(super) joins: Joins,
    /// For formats that were asked for, which ones can be followed by them.
    leading: RefCell<BTreeMap<FormatId, Rc<[bool]>>>,
    /// For formats that were asked for, how many headers there can be from one on.
    pub(super) depths: RefCell<BTreeMap<FormatId, Option<usize>>>,
    /// What expressions come to.
    pub(super) tried: RefCell<Tried>,
    depth: usize,
    is_full: bool,
}

/// What goes on in a way.
pub type Then<'t, 'a> = &'t mut dyn FnMut(&mut Grower<'a>, Way) -> NodeId;

impl Tree {
    /// The tree of a program, of which `running` may still have some blocks.
    pub fn of(loaded: &Loaded, running: Option<&Loaded>) -> Tree {
        let program = &*loaded.program;
        let count = program.instances.len();
        let blocks: Vec<Option<&Lfb>> = (0..count).map(|at| loaded.at_home(at, running)).collect();
        let mut banned = BTreeSet::new();
        let mut narrower = LIMITS.into_iter();
        let Some(mut limits) = narrower.next() else { return Tree::default() };
        let mut joining = BTreeSet::new();
        loop {
            let mut grower = Grower {
                program,
                frames: &program.frames,
                slots: &loaded.slots,
                graph: &loaded.graph,
                blocks: &blocks,
                watched: &loaded.watched,
                tree: Tree::default(),
                banned: banned.clone(),
                learning: BTreeMap::new(),
                stands: Vec::new(),
                limits,
                joining: joining.clone(),
                met_again: BTreeSet::new(),
                joins: Joins::default(),
                leading: RefCell::default(),
                depths: RefCell::default(),
                tried: RefCell::default(),
                depth: 0,
                is_full: false,
            };
            for port in loaded.graph.ports() {
                grower.port(port);
            }
            let next = if grower.is_full { narrower.next() } else { None };
            if let Some(next) = next {
                limits = next;
                joining = if limits.joins { meeting(program) } else { BTreeSet::new() };
            } else if grower.banned.len() > banned.len() {
                banned = grower.banned;
            } else if grower.met_again.len() < joining.len() {
                // Where none meet, none need a count.
                joining = grower.met_again;
            } else {
                return grower.tree;
            }
        }
    }
}

/// Blocks to which more than one link leads.
fn meeting(program: &Program) -> BTreeSet<usize> {
    let mut once = BTreeSet::new();
    let ends = program.links.iter().map(|link| link.to.instance);
    ends.filter(|to| !once.insert(*to)).collect()
}

impl<'a> Grower<'a> {
    /// Grows the tree of a port.
    fn port(&mut self, port: PortNo) {
        let Some(instance) = self.graph.port(port) else { return };
        let Some(Lfb::Phy(phy)) = self.blocks[instance] else { return };
        self.learning.clear();
        self.stands.clear();
        let before = self.tree.nodes.len();
        let way = Way::new(instance, self.slots.ids().len(), self.frames.start);
        let root = phy.grow_received(way, self);
        self.keep_order();
        // A tree that only says that frames go on as frames saves nothing.
        let says_nothing = self.tree.nodes.len() - before <= 1
            && self.tree.ends.last().is_some_and(|end| end.fate == Fate::Goes);
        let roots = &mut self.tree.roots;
        if roots.len() <= port as usize {
            roots.resize(port as usize + 1, NONE);
            self.tree.shortcuts.resize_with(port as usize + 1, Shortcuts::default);
        }
        roots[port as usize] = if says_nothing { NONE } else { root };
    }

    /// Sees to it that tables that learn get the frames of a row in order, although some of these stand and
    /// come to them later: then all that would ask stand too. That some do has to be known before.
    fn keep_order(&mut self) {
        let mut known: BTreeMap<(usize, usize), bool> = BTreeMap::new();
        for (node, from, asked) in std::mem::take(&mut self.stands) {
            for (&table, &depth) in &self.learning {
                let comes = known.entry((from, table));
                if !*comes.or_insert_with(|| self.reaches(from, table)) {
                    continue;
                }
                if asked > depth {
                    self.banned.insert(table);
                }
                let node = &mut self.tree.nodes[node as usize];
                if let Node::End(end) = *node {
                    *node = Node::Back(end);
                }
            }
        }
    }

    /// Whether a frame that stands in front of one block can come to another one.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::from([from]);
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            if at == to {
                return true;
            }
            if matches!(self.blocks[at], Some(Lfb::Phy(_))) {
                continue;
            }
            let links = self.program.links.iter().filter(|link| link.from.instance == at);
            next.extend(links.map(|link| link.to.instance).filter(|it| seen.insert(*it)));
        }
        false
    }

    /// Which formats can be followed by one, near or far, or are it.
    pub(super) fn leading(&self, format: FormatId) -> Rc<[bool]> {
        let mut known = self.leading.borrow_mut();
        known.entry(format).or_insert_with(|| self.frames.reaching(format).into()).clone()
    }

    /// Whether somebody watches events of a way's block.
    pub fn is_watched(&self, way: &Way) -> bool {
        self.watched[way.instance]
    }

    /// Numbers of the element's ports.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> + '_ {
        let ports = self.program.instances.iter();
        ports.filter(|it| it.class == base_id::PHY).map(|it| it.number)
    }

    pub(super) fn node(&mut self, node: Node) -> NodeId {
        self.is_full |= self.tree.nodes.len() >= self.limits.nodes;
        self.tree.nodes.push(node);
        self.tree.nodes.len() as NodeId - 1
    }

    /// A node for a question that a table is asked.
    pub fn ask(&mut self, question: super::tree::Question) -> NodeId {
        self.node(Node::Ask(Box::new(question)))
    }

    fn end(&mut self, fate: Fate, change: Change, way: &Way, steps: Vec<Step>) -> NodeId {
        if let Fate::Leaves(port, _) = fate
            && !self.tree.exits.contains(&port)
        {
            self.tree.exits.push(port);
        }
        self.tree.ends.push(End::new(fate, &way.effects, way.link, change, steps));
        let end = self.tree.ends.len() as u32 - 1;
        self.node(Node::End(end))
    }

    /// Frames go on as frames from the block on that they are about to enter.
    pub fn stand(&mut self, way: Way) -> NodeId {
        let steps = way.all_steps();
        let node = self.end(Fate::Goes, Change::default(), &way, steps);
        self.stands.push((node, way.instance, way.asked));
        node
    }

    /// Frames leave by a port, of which their block is in charge.
    pub fn leave(&mut self, way: Way, port: PortNo) -> NodeId {
        let grown = way.view.grown;
        let Some(change) = Change::of(&way.view, way.least()) else {
            return self.stand(way);
        };
        let leave = &mut |grower: &mut Grower<'a>, way: Way| {
            let (fate, steps) = (Fate::Leaves(port, way.instance as u32), way.all_steps());
            grower.end(fate, change.clone(), &way, steps)
        };
        // In the longer one of the frames before and behind.
        let least = way.lengths().0.max(way.least());
        if change.reach() > VIEW_BYTES || least < change.reach() {
            return self.stand(way);
        }
        if grown <= 0 {
            return leave(self, way);
        }
        // Those that would become too long are looked at by who changes them.
        let most = FRAME_BYTES_MAX + 1;
        self.length(way, most, &mut |grower, way| grower.stand(way), leave)
    }

    /// Frames go no further than the block that they are in.
    pub fn drop(&mut self, mut way: Way, reason: Reason, output: u32) -> NodeId {
        let effect = Effect::Drop(way.instance as u32, reason, output);
        way.effects.push(effect);
        self.end(Fate::Gone, Change::default(), &way, Vec::new())
    }

    /// Has the block count each frame as something that it calls by a number.
    pub fn meet(&self, way: &mut Way, what: u32) {
        let effect = Effect::Met(way.instance as u32, what, way.view.grown);
        way.effects.push(effect);
    }

    /// Puts a header in front of all.
    pub fn prepend(&mut self, way: &mut Way, header: &[u8]) -> bool {
        let done = way.view.insert(0, header);
        if done {
            let known = self.tree.headers.iter().position(|known| known == header);
            let place = known.unwrap_or_else(|| {
                self.tree.headers.push(header.to_vec());
                self.tree.headers.len() - 1
            });
            way.steps.push(Step::Prepend(place as u32));
            way.start = self.frames.start;
            way.headers = super::way::Headers::from(way.start);
        }
        done
    }

    /// Frames go by an output.
    pub fn go(&mut self, mut way: Way, output: u32, index: u32) -> NodeId {
        let Some(link) = self.graph.link(way.instance, output, index) else {
            return self.drop(way, Reason::Unlinked, output);
        };
        let effect = Effect::Link(link, way.view.grown);
        way.effects.push(effect);
        way.link = link;
        (way.instance, way.at) = self.graph.target(link);
        let may = !self.is_full && self.depth < DEPTH_MAX && !self.banned.contains(&way.instance);
        let Some(block) = self.blocks[way.instance].filter(|_| may) else { return self.stand(way) };
        match self.joining.contains(&way.instance) {
            true => self.join(way, block),
            false => self.enter(way, block),
        }
    }

    /// Frames enter a block.
    pub(super) fn enter(&mut self, way: Way, block: &'a Lfb) -> NodeId {
        self.depth += 1;
        let grown = block.grow(way.clone(), self);
        self.depth -= 1;
        grown.unwrap_or_else(|| self.stand(way))
    }

    /// Whether a way that matched another rule is still followed.
    pub fn hit(&mut self, way: &mut Way) -> bool {
        way.hits += 1;
        way.hits <= self.limits.hits
    }

    /// Headers that are looked at one after the other.
    pub(super) fn headers_max(&self) -> usize {
        self.limits.headers
    }

    /// Notes that a table that learns is asked. False if it must not be: frames would come to it in
    /// another order than they came in.
    pub fn learns(&mut self, way: &mut Way) -> bool {
        let asked = *self.learning.entry(way.instance).or_insert(way.asked);
        if asked != way.asked {
            self.banned.insert(way.instance);
        }
        way.asked += 1;
        asked + 1 == way.asked
    }

    /// Goes on by whether the frame has so many bytes now.
    pub fn length(
        &mut self,
        way: Way,
        least: usize,
        yes: Then<'_, 'a>,
        no: Then<'_, 'a>,
    ) -> NodeId {
        let came = least.saturating_add_signed(-(way.view.grown as isize));
        let (low, high) = way.lengths();
        if low >= came {
            return yes(self, way);
        }
        if high < came {
            return no(self, way);
        }
        self.question(way, |grower, way| {
            let long = way.clone().with_lengths(came, high);
            let short = way.with_lengths(low, came - 1);
            let ways = [yes(grower, long), no(grower, short)];
            Node::Length(came as u32, ways)
        })
    }

    /// Goes on by whether a field and so much more is at most the bytes that the frame came with.
    pub fn fits(
        &mut self,
        way: Way,
        field: Field,
        more: usize,
        yes: Then<'_, 'a>,
        no: Then<'_, 'a>,
    ) -> NodeId {
        if let Some(known) = way.fits(field, more) {
            return if known { yes(self, way) } else { no(self, way) };
        }
        self.question(way, |grower, way| {
            let (mut fit, mut long) = (way.clone(), way);
            fit.learn_fits(field, more, true);
            long.learn_fits(field, more, false);
            let ways = [yes(grower, fit), no(grower, long)];
            Node::Fits(Word::of(field), more as u32, ways)
        })
    }

    /// Goes on by which of some groups of values, that leave none out, what is read belongs to.
    pub fn choose(
        &mut self,
        way: Way,
        read: Read,
        groups: &[Ranges],
        then: &mut dyn FnMut(&mut Grower<'a>, Way, usize) -> NodeId,
    ) -> NodeId {
        let holds = |group: &Ranges, value: u64| {
            group.iter().any(|(low, high)| (*low..=*high).contains(&value))
        };
        let field = match read {
            Read::Constant(value) => {
                let group = groups.iter().position(|group| holds(group, value));
                return match group {
                    Some(group) => then(self, way, group),
                    None => self.stand(way),
                };
            }
            Read::Field(field) => field,
        };
        let known = way.ranges(field);
        let parts = groups.iter().map(|group| both(&known, group)).enumerate();
        let parts: Vec<(usize, Ranges)> = parts.filter(|(_, part)| !part.is_empty()).collect();
        match &parts[..] {
            [] => return self.stand(way),
            [(group, _)] => return then(self, way, *group),
            _ => {}
        }
        if usize::from(field.at) + usize::from(field.bits) > VIEW_BYTES * 8 {
            return self.stand(way);
        }
        if self.is_full || self.depth >= DEPTH_MAX {
            return self.stand(way);
        }
        self.depth += 1;
        let mut ends: Vec<(u64, u64, NodeId)> = Vec::new();
        for (group, part) in parts {
            let mut on = way.clone();
            on.learn(field, part.clone());
            let node = then(self, on, group);
            ends.extend(part.into_iter().map(|(low, high)| (low, high, node)));
        }
        self.depth -= 1;
        ends.sort_unstable();
        match &ends[..] {
            // Ways met again: it does not matter.
            [(.., one), others @ ..] if others.iter().all(|(.., other)| other == one) => *one,
            _ => self.node(decision(field, &ends)),
        }
    }

    /// Goes on by whether what is read is a value.
    pub fn is(
        &mut self,
        way: Way,
        read: Read,
        value: u64,
        yes: Then<'_, 'a>,
        no: Then<'_, 'a>,
    ) -> NodeId {
        let one = vec![(value, value)];
        let other = super::way::others(&one, u64::MAX);
        self.choose(way, read, &[one, other], &mut |grower, way, group| match group {
            0 => yes(grower, way),
            _ => no(grower, way),
        })
    }

    /// Goes on by what is found of the IPv4 header that the frame begins with.
    pub fn ipv4(
        &mut self,
        way: Way,
        found: usize,
        then: &mut dyn FnMut(&mut Grower<'a>, Way, usize) -> NodeId,
    ) -> Option<NodeId> {
        // It is looked at where it came, so it has to be there as it was.
        let (Some(Read::Field(first)), Some(Read::Field(last))) =
            (way.view.read(0, 8), way.view.read(59 * 8, 8))
        else {
            return None;
        };
        let at = usize::from(first.at / 8);
        let is_whole = usize::from(last.at / 8) == at + 59
            && (0..60).all(|byte| matches!(way.view.read(byte * 8, 8), Some(Read::Field(_))));
        if !is_whole || at + 60 > VIEW_BYTES || way.view.grown != -(at as i32) {
            return None;
        }
        Some(self.question(way, |grower, way| {
            let ways = (0..found).map(|found| then(grower, way.clone(), found)).collect();
            Node::Ipv4(at as u16, ways)
        }))
    }

    /// A node whose ways are grown one level deeper.
    fn question(&mut self, way: Way, grow: impl FnOnce(&mut Grower<'a>, Way) -> Node) -> NodeId {
        if self.is_full || self.depth >= DEPTH_MAX {
            return self.stand(way);
        }
        self.depth += 1;
        let node = grow(self, way);
        self.depth -= 1;
        self.node(node)
    }
}

/// The question that tells ranges of a field's values apart; values between them do not come.
fn decision(field: Field, ends: &[(u64, u64, NodeId)]) -> Node {
    let word = Word::of(field);
    let mut ways: Vec<(u64, NodeId)> = Vec::new();
    for &(_, high, node) in ends {
        match ways.last_mut() {
            Some((end, before)) if *before == node => *end = high,
            _ => ways.push((high, node)),
        }
    }
    // Values that stand alone, in the order in which they were named, and one way for all others.
    let mut ones: Vec<(u64, NodeId)> = Vec::new();
    let mut rest: Vec<NodeId> = Vec::new();
    for (low, high, node) in ends {
        match low == high {
            true => ones.push((*low, *node)),
            false => rest.push(*node),
        }
    }
    rest.sort_unstable();
    rest.dedup();
    ones.retain(|(_, node)| !rest.contains(node));
    ones.sort_by_key(|(_, node)| *node);
    match (&ones[..], &rest[..]) {
        ([(value, node)], [other]) => return Node::Is(word, *value, [*node, *other]),
        (_, [other]) if field.bits > 8 && is_dense(&ones) => {
            let base = ones.iter().map(|(value, _)| *value).min().unwrap_or(0);
            let span = ones.iter().map(|(value, _)| value - base).max().unwrap_or(0);
            let mut ways = vec![*other; span as usize + 1];
            ones.iter().for_each(|(value, node)| ways[(value - base) as usize] = *node);
            return Node::Dense(word, base, ways.into(), *other);
        }
        (_, [other]) if field.bits > 8 && ones.len() <= VALUES_MAX => {
            return Node::Values(word, ones.into(), *other);
        }
        _ => {}
    }
    if let [(high, low), (_, above)] = ways[..] {
        return Node::AtMost(word, high, [low, above]);
    }
    if field.bits > 8 {
        return Node::Ranges(word, ways.into());
    }
    let way = |value: u64| ways.iter().find(|(high, _)| value <= *high).or(ways.last());
    Node::Table(word, (0..=field.most()).map(|value| way(value).map_or(0, |it| it.1)).collect())
}

/// Whether a table by value is not much larger than a list of them.
fn is_dense(ones: &[(u64, NodeId)]) -> bool {
    let values = ones.iter().map(|(value, _)| *value);
    let span = values.clone().max().unwrap_or(0) - values.min().unwrap_or(0);
    span < ones.len() as u64 * 64
}
