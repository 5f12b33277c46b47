//! Compilation of a program's graph into a decision tree.
//!
//! Blocks describe their processing of frames with partial knowledge in
//! [`Block::grow`](crate::lfb::Block::grow). They request a decision from the [`TreeBuilder`] and
//! continue on each branch, finally at one of their outputs. Processing that a block cannot
//! describe, and anything that would make the tree too large, is left to the slow path: frames
//! [leave the tree](TreeBuilder::stand) in front of that block.
//!
//! Invariant: a learning table processes the frames of a batch in arrival order. If one of them
//! reaches the table later, outside the tree, all do.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use packet::frame::{FRAME_BYTES_MAX, PortNo};

use super::change::Change;
use super::flow_cache::Shortcuts;
use super::merge::Joins;
use super::parse::ExpressionCache;
use super::path_state::{PathState, Ranges, both};
use super::symbolic_bytes::{Field, Read, VIEW_BYTES};
use super::tree::{Effect, End, Fate, NONE, Node, NodeId, Step, Tree, Word};
use crate::compiled_program::Loaded;
use crate::frames::{FormatId, FrameSet};
use crate::graph::Graph;
use crate::lfb::{DropReason, Lfb, Slots};
use crate::program::{Program, base_id};

/// Maximum number of decisions and blocks on one path.
const DEPTH_MAX: usize = 160;
/// Maximum number of values in a linear comparison.
const VALUES_MAX: usize = 8;
/// Limits of a tree. The compiler uses the first set that suffices; beyond the last, frames leave
/// the tree.
const LIMITS: [Limits; 6] = [
    Limits { hits: 2, headers: 4, nodes: 1 << 12, joins: false },
    Limits { hits: u32::MAX, headers: 4, nodes: 1 << 14, joins: true },
    Limits { hits: u32::MAX, headers: 3, nodes: 1 << 14, joins: true },
    Limits { hits: 1, headers: 3, nodes: 1 << 14, joins: true },
    Limits { hits: 0, headers: 3, nodes: 1 << 13, joins: false },
    Limits { hits: 0, headers: 2, nodes: 1 << 13, joins: false },
];

/// Limits of a tree.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Maximum number of matched rules on one path, or between two joins.
    hits: u32,
    /// Maximum number of consecutive headers.
    headers: usize,
    /// Maximum number of nodes over all ports.
    nodes: usize,
    /// Whether paths may join.
    joins: bool,
}

/// A tree under construction.
pub struct TreeBuilder<'a> {
    /// The program.
    pub program: &'a Program,
    /// Frame formats.
    pub frames: &'a FrameSet,
    /// Slots of the metadata.
    pub slots: &'a Slots,
    graph: &'a Graph,
    blocks: &'a [Option<&'a Lfb>],
    watched: &'a [bool],
    pub(super) tree: Tree,
    /// Blocks at which every frame leaves the tree.
    uncompiled_blocks: BTreeSet<usize>,
    /// Learning tables, with the number of lookups before them.
    learning: BTreeMap<usize, u32>,
    /// Ends where frames leave the tree: node, next block, number of lookups before.
    stands: Vec<(NodeId, usize, u32)>,
    limits: Limits,
    /// Blocks at which paths may join.
    joining: BTreeSet<usize>,
    /// Blocks at which paths did join.
    pub(super) met_again: BTreeSet<usize>,
    pub(super) joins: Joins,
    /// Cache: for each format, the formats that it can follow.
    leading: RefCell<BTreeMap<FormatId, Rc<[bool]>>>,
    /// Cache: for each format, the maximum number of headers from it on.
    pub(super) depths: RefCell<BTreeMap<FormatId, Option<usize>>>,
    /// Cache of evaluated expressions.
    pub(super) tried: RefCell<ExpressionCache>,
    depth: usize,
    is_full: bool,
}

/// Continuation on a path.
pub type Continuation<'t, 'a> = &'t mut dyn FnMut(&mut TreeBuilder<'a>, PathState) -> NodeId;

impl Tree {
    /// Compiles the tree of a program. Some of its blocks may still be in `running`.
    pub fn of(loaded: &Loaded, running: Option<&Loaded>) -> Tree {
        let program = &*loaded.program;
        let count = program.instances.len();
        let blocks: Vec<Option<&Lfb>> = (0..count).map(|at| loaded.at_home(at, running)).collect();
        let mut uncompiled_blocks = BTreeSet::new();
        let mut narrower = LIMITS.into_iter();
        let Some(mut limits) = narrower.next() else { return Tree::default() };
        let mut joining = BTreeSet::new();
        loop {
            let mut grower = TreeBuilder {
                program,
                frames: &program.frames,
                slots: &loaded.slots,
                graph: &loaded.graph,
                blocks: &blocks,
                watched: &loaded.watched,
                tree: Tree::default(),
                uncompiled_blocks: uncompiled_blocks.clone(),
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
            } else if grower.uncompiled_blocks.len() > uncompiled_blocks.len() {
                uncompiled_blocks = grower.uncompiled_blocks;
            } else if grower.met_again.len() < joining.len() {
                // Only blocks where paths join need a counter.
                joining = grower.met_again;
            } else {
                return grower.tree;
            }
        }
    }
}

/// Returns the blocks with more than one incoming link.
fn meeting(program: &Program) -> BTreeSet<usize> {
    let mut once = BTreeSet::new();
    let ends = program.links.iter().map(|link| link.to.instance);
    ends.filter(|to| !once.insert(*to)).collect()
}

impl<'a> TreeBuilder<'a> {
    /// Compiles the tree of a port.
    fn port(&mut self, port: PortNo) {
        let Some(instance) = self.graph.port(port) else { return };
        let Some(Lfb::Phy(phy)) = self.blocks[instance] else { return };
        self.learning.clear();
        self.stands.clear();
        let before = self.tree.nodes.len();
        let way = PathState::new(instance, self.slots.ids().len(), self.frames.start);
        let root = phy.grow_received(way, self);
        self.keep_order();
        // A tree that only sends frames to the slow path has no benefit.
        let says_nothing = self.tree.nodes.len() - before <= 1
            && self.tree.ends.last().is_some_and(|end| end.fate == Fate::Goes);
        let roots = &mut self.tree.roots;
        if roots.len() <= port as usize {
            roots.resize(port as usize + 1, NONE);
            self.tree.shortcuts.resize_with(port as usize + 1, Shortcuts::default);
        }
        roots[port as usize] = if says_nothing { NONE } else { root };
    }

    /// Ensures that learning tables get the frames of a batch in order, although some frames reach
    /// them later on the slow path. In that case all frames of the batch must use the slow path,
    /// which must be known before the first lookup.
    fn keep_order(&mut self) {
        let mut known: BTreeMap<(usize, usize), bool> = BTreeMap::new();
        for (node, from, asked) in std::mem::take(&mut self.stands) {
            for (&table, &depth) in &self.learning {
                let comes = known.entry((from, table));
                if !*comes.or_insert_with(|| self.reaches(from, table)) {
                    continue;
                }
                if asked > depth {
                    self.uncompiled_blocks.insert(table);
                }
                let node = &mut self.tree.nodes[node as usize];
                if let Node::End(end) = *node {
                    *node = Node::Back(end);
                }
            }
        }
    }

    /// Returns true if a frame that leaves the tree at one block can reach another block.
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

    /// Returns the formats that can precede a format, directly or indirectly, and the format
    /// itself.
    pub(super) fn leading(&self, format: FormatId) -> Rc<[bool]> {
        let mut known = self.leading.borrow_mut();
        known.entry(format).or_insert_with(|| self.frames.reaching(format).into()).clone()
    }

    /// Returns true if events of the path's block have a subscriber.
    pub fn is_watched(&self, way: &PathState) -> bool {
        self.watched[way.instance]
    }

    /// Returns the port numbers of the element.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> + '_ {
        let ports = self.program.instances.iter();
        ports.filter(|it| it.class == base_id::PHY).map(|it| it.number)
    }

    pub(super) fn node(&mut self, node: Node) -> NodeId {
        self.is_full |= self.tree.nodes.len() >= self.limits.nodes;
        self.tree.nodes.push(node);
        self.tree.nodes.len() as NodeId - 1
    }

    /// Adds a node for a table lookup.
    pub fn ask(&mut self, question: super::tree::TableLookup) -> NodeId {
        self.node(Node::Ask(Box::new(question)))
    }

    fn end(&mut self, fate: Fate, change: Change, way: &PathState, steps: Vec<Step>) -> NodeId {
        if let Fate::Leaves(port, _) = fate
            && !self.tree.exits.contains(&port)
        {
            self.tree.exits.push(port);
        }
        self.tree.ends.push(End::new(fate, &way.effects, way.link, change, steps));
        let end = self.tree.ends.len() as u32 - 1;
        self.node(Node::End(end))
    }

    /// Ends the path: frames continue on the slow path at the block that they are about to enter.
    pub fn stand(&mut self, way: PathState) -> NodeId {
        let steps = way.all_steps();
        let node = self.end(Fate::Goes, Change::default(), &way, steps);
        self.stands.push((node, way.instance, way.asked));
        node
    }

    /// Ends the path: frames leave by a port, which belongs to the current block.
    pub fn leave(&mut self, way: PathState, port: PortNo) -> NodeId {
        let grown = way.view.grown;
        let Some(change) = Change::of(&way.view, way.least()) else {
            return self.stand(way);
        };
        let leave = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
            let (fate, steps) = (Fate::Leaves(port, way.instance as u32), way.all_steps());
            grower.end(fate, change.clone(), &way, steps)
        };
        // In the longer of the frames before and after the change.
        let least = way.lengths().0.max(way.least());
        if change.reach() > VIEW_BYTES || least < change.reach() {
            return self.stand(way);
        }
        if grown <= 0 {
            return leave(self, way);
        }
        // The slow path handles frames that would become too long.
        let most = FRAME_BYTES_MAX + 1;
        self.length(way, most, &mut |grower, way| grower.stand(way), leave)
    }

    /// Ends the path: the current block drops the frames.
    pub fn drop(&mut self, mut way: PathState, reason: DropReason, output: u32) -> NodeId {
        let effect = Effect::Drop(way.instance as u32, reason, output);
        way.effects.push(effect);
        self.end(Fate::Gone, Change::default(), &way, Vec::new())
    }

    /// Counts each frame for a counter of the current block.
    pub fn meet(&self, way: &mut PathState, what: u32) {
        let effect = Effect::Met(way.instance as u32, what, way.view.grown);
        way.effects.push(effect);
    }

    /// Prepends a header to the frame.
    pub fn prepend(&mut self, way: &mut PathState, header: &[u8]) -> bool {
        let done = way.view.insert(0, header);
        if done {
            let known = self.tree.headers.iter().position(|known| known == header);
            let place = known.unwrap_or_else(|| {
                self.tree.headers.push(header.to_vec());
                self.tree.headers.len() - 1
            });
            way.steps.push(Step::Prepend(place as u32));
            way.start = self.frames.start;
            way.headers = super::path_state::Headers::from(way.start);
        }
        done
    }

    /// Sends frames out of an output.
    pub fn go(&mut self, mut way: PathState, output: u32, index: u32) -> NodeId {
        let Some(link) = self.graph.link(way.instance, output, index) else {
            return self.drop(way, DropReason::Unlinked, output);
        };
        let effect = Effect::Link(link, way.view.grown);
        way.effects.push(effect);
        way.link = link;
        (way.instance, way.at) = self.graph.target(link);
        let may = !self.is_full
            && self.depth < DEPTH_MAX
            && !self.uncompiled_blocks.contains(&way.instance);
        let Some(block) = self.blocks[way.instance].filter(|_| may) else { return self.stand(way) };
        match self.joining.contains(&way.instance) {
            true => self.join(way, block),
            false => self.enter(way, block),
        }
    }

    /// Enters a block.
    pub(super) fn enter(&mut self, way: PathState, block: &'a Lfb) -> NodeId {
        self.depth += 1;
        let grown = block.grow(way.clone(), self);
        self.depth -= 1;
        grown.unwrap_or_else(|| self.stand(way))
    }

    /// Records a rule match on a path. Returns false if the limit is exceeded.
    pub fn hit(&mut self, way: &mut PathState) -> bool {
        way.hits += 1;
        way.hits <= self.limits.hits
    }

    /// Returns the maximum number of consecutive headers.
    pub(super) fn headers_max(&self) -> usize {
        self.limits.headers
    }

    /// Records a lookup in a learning table. Returns false if it is not allowed because frames
    /// would reach the table out of order.
    pub fn learns(&mut self, way: &mut PathState) -> bool {
        let asked = *self.learning.entry(way.instance).or_insert(way.asked);
        if asked != way.asked {
            self.uncompiled_blocks.insert(way.instance);
        }
        way.asked += 1;
        asked + 1 == way.asked
    }

    /// Branches on whether the frame currently has at least `least` bytes.
    pub fn length(
        &mut self,
        way: PathState,
        least: usize,
        yes: Continuation<'_, 'a>,
        no: Continuation<'_, 'a>,
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

    /// Branches on whether a field plus `more` is at most the length of the received frame.
    pub fn fits(
        &mut self,
        way: PathState,
        field: Field,
        more: usize,
        yes: Continuation<'_, 'a>,
        no: Continuation<'_, 'a>,
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

    /// Branches on the group of values that contains the value read. The groups must cover all
    /// values.
    pub fn choose(
        &mut self,
        way: PathState,
        read: Read,
        groups: &[Ranges],
        then: &mut dyn FnMut(&mut TreeBuilder<'a>, PathState, usize) -> NodeId,
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
            // The paths joined again, so the decision is unnecessary.
            [(.., one), others @ ..] if others.iter().all(|(.., other)| other == one) => *one,
            _ => self.node(decision(field, &ends)),
        }
    }

    /// Branches on whether the value read equals a value.
    pub fn is(
        &mut self,
        way: PathState,
        read: Read,
        value: u64,
        yes: Continuation<'_, 'a>,
        no: Continuation<'_, 'a>,
    ) -> NodeId {
        let one = vec![(value, value)];
        let other = super::path_state::others(&one, u64::MAX);
        self.choose(way, read, &[one, other], &mut |grower, way, group| match group {
            0 => yes(grower, way),
            _ => no(grower, way),
        })
    }

    /// Branches on the validation result of the IPv4 header at the start of the frame.
    pub fn ipv4(
        &mut self,
        way: PathState,
        found: usize,
        then: &mut dyn FnMut(&mut TreeBuilder<'a>, PathState, usize) -> NodeId,
    ) -> Option<NodeId> {
        // The header is validated at its received position, so it must be unchanged.
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

    /// Adds a node whose branches are one level deeper.
    fn question(
        &mut self,
        way: PathState,
        grow: impl FnOnce(&mut TreeBuilder<'a>, PathState) -> Node,
    ) -> NodeId {
        if self.is_full || self.depth >= DEPTH_MAX {
            return self.stand(way);
        }
        self.depth += 1;
        let node = grow(self, way);
        self.depth -= 1;
        self.node(node)
    }
}

/// Creates the decision between ranges of a field's values. Values between the ranges do not occur.
fn decision(field: Field, ends: &[(u64, u64, NodeId)]) -> Node {
    let word = Word::of(field);
    let mut ways: Vec<(u64, NodeId)> = Vec::new();
    for &(_, high, node) in ends {
        match ways.last_mut() {
            Some((end, before)) if *before == node => *end = high,
            _ => ways.push((high, node)),
        }
    }
    // Single values in the given order, and one branch for all others.
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

/// Returns true if a table indexed by value is not much larger than a list.
fn is_dense(ones: &[(u64, NodeId)]) -> bool {
    let values = ones.iter().map(|(value, _)| *value);
    let span = values.clone().max().unwrap_or(0) - values.min().unwrap_or(0);
    span < ones.len() as u64 * 64
}
