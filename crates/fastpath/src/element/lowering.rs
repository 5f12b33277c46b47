//! Which parts of a decision tree a program in the kernel has.
//!
//! A frame escapes where it leaves the tree, and in front of each node whose frames all escape
//! further on. So a program has exactly the nodes that lead to an end at which a frame is sent or
//! dropped.

use std::collections::BTreeSet;

use packet::frame::PortNo;
use progfe::compile::change::Change;
use progfe::compile::tree::{Fate, NONE, Node, NodeId, TableLookup, Tree};
use progfe::executor::CountedAt;

/// Maximum number of joins on a path.
pub(super) const JOINS_MAX: usize = 16;

/// The nodes of a tree that programs have.
#[derive(Debug, PartialEq)]
pub(super) struct Lowering {
    pub(super) nodes: Vec<Node>,
    pub(super) ends: Vec<LoweredEnd>,
    /// The node that frames of each port meet first, if any of them is decided.
    pub(super) roots: Vec<(PortNo, Option<NodeId>)>,
    /// Whether programs have each node.
    is_lowered: Vec<bool>,
    /// Maximum number of joins in front of each node.
    pub(super) joins_before: Vec<usize>,
    /// What programs count, in the order of the counters.
    pub(super) counted: Vec<CountedAt>,
    /// Greatest number of nodes on a path of the tree.
    pub(super) depth: usize,
}

/// End of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoweredEnd {
    pub(super) fate: Fate,
    pub(super) change: Change,
}

impl Lowering {
    /// Selects the nodes for programs of these ports, up to this number of nodes on a path.
    pub(super) fn new(tree: &Tree, ports: &[PortNo], depth_max: usize) -> Lowering {
        let end = |end: &progfe::compile::tree::End| LoweredEnd {
            fate: end.fate,
            change: end.change.clone(),
        };
        let mut lowering = Lowering {
            nodes: tree.nodes().to_vec(),
            ends: tree.ends().iter().map(end).collect(),
            roots: Vec::new(),
            is_lowered: Vec::new(),
            joins_before: vec![0; tree.nodes().len()],
            counted: Vec::new(),
            depth: 0,
        };
        let roots = ports.iter().map(|port| (*port, tree.root(*port)));
        let roots: Vec<(PortNo, Option<NodeId>)> = roots.collect();
        let depths = lowering.measure(&roots);
        lowering.depth = depths.iter().flatten().max().map_or(0, |depth| depth + 1);
        // The next nodes of a node have smaller numbers.
        for (at, depth) in depths.iter().enumerate() {
            let fits = depth.is_some_and(|depth| depth < depth_max)
                && lowering.joins_before[at] <= JOINS_MAX;
            let is_lowered = fits && lowering.decides(&lowering.nodes[at], ports);
            lowering.is_lowered.push(is_lowered);
        }
        let lowered = |root: &NodeId| lowering.is_lowered[*root as usize];
        lowering.roots =
            roots.into_iter().map(|(port, root)| (port, root.filter(lowered))).collect();
        let reached: BTreeSet<NodeId> = lowering
            .roots
            .iter()
            .filter_map(|(_, root)| *root)
            .flat_map(|root| lowering.from(root))
            .collect();
        lowering.counted = reached.iter().filter_map(|at| lowering.counts(*at)).collect();
        lowering
    }

    /// Returns whether programs have a node.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.is_lowered.get(node as usize).copied().unwrap_or(false)
    }

    /// Returns what programs count at a node.
    pub(super) fn counts(&self, node: NodeId) -> Option<CountedAt> {
        match self.nodes[node as usize] {
            Node::End(end) => Some(CountedAt::End(end)),
            Node::Join(join, _) => Some(CountedAt::Join(join)),
            _ => None,
        }
    }

    /// Returns the lowered nodes from a node on, in descending order.
    pub(super) fn from(&self, root: NodeId) -> Vec<NodeId> {
        let (mut found, mut next) = (BTreeSet::from([root]), vec![root]);
        while let Some(at) = next.pop() {
            let after = after(&self.nodes[at as usize]).into_iter();
            next.extend(after.filter(|to| self.has(*to)).filter(|to| found.insert(*to)));
        }
        found.into_iter().rev().collect()
    }

    /// Returns the greatest number of nodes in front of each node that frames reach, and notes that
    /// of joins.
    fn measure(&mut self, roots: &[(PortNo, Option<NodeId>)]) -> Vec<Option<usize>> {
        let mut depths = vec![None; self.nodes.len()];
        roots.iter().filter_map(|(_, root)| *root).for_each(|root| depths[root as usize] = Some(0));
        for at in (0..self.nodes.len()).rev() {
            let Some(depth) = depths[at] else { continue };
            let is_join = matches!(self.nodes[at], Node::Join(..));
            let joins = self.joins_before[at] + usize::from(is_join);
            for to in after(&self.nodes[at]) {
                let (to, depth) = (to as usize, Some(depth + 1));
                depths[to] = depths[to].max(depth);
                self.joins_before[to] = self.joins_before[to].max(joins);
            }
        }
        depths
    }

    /// Returns true if a program can decide some frames at a node or after it.
    fn decides(&self, node: &Node, ports: &[PortNo]) -> bool {
        let any = |ways: &[NodeId]| ways.iter().any(|to| self.has(*to));
        match node {
            Node::End(end) => match self.ends[*end as usize].fate {
                Fate::Leaves(port, _) => ports.contains(&port),
                Fate::Gone => true,
                Fate::Goes => false,
            },
            Node::Back(_) => false,
            // Frames that need more than a comparison of the common header escape.
            Node::Ipv4(_, ways) => ways.first().is_some_and(|plain| self.has(*plain)),
            Node::Ask(question) => match &**question {
                TableLookup::Learn(of) => {
                    let is_whole = |mac: progfe::compile::tree::Word| mac.place().1 == 0;
                    is_whole(of.learn.mac) && is_whole(of.search.mac) && any(&of.known)
                }
                TableLookup::Route(of) => any(&of.hops),
            },
            other => any(&after(other)),
        }
    }
}

/// Returns the next nodes of a node that programs can have.
pub(super) fn after(node: &Node) -> Vec<NodeId> {
    let pairs = |ways: &[(u64, NodeId)]| ways.iter().map(|(_, to)| *to).collect::<Vec<_>>();
    let mut all = match node {
        Node::End(_) | Node::Back(_) => Vec::new(),
        Node::Join(_, next) => vec![*next],
        Node::Length(_, ways)
        | Node::Is(.., ways)
        | Node::AtMost(.., ways)
        | Node::Fits(.., ways) => ways.to_vec(),
        Node::Values(_, ways, other) => [pairs(ways), vec![*other]].concat(),
        Node::Dense(_, _, ways, other) => [&ways[..], &[*other]].concat(),
        Node::Table(_, ways) => ways.to_vec(),
        Node::Ranges(_, ways) => pairs(ways),
        Node::Ipv4(_, ways) => ways.iter().take(1).copied().collect(),
        Node::Ask(question) => match &**question {
            TableLookup::Learn(of) => of.known.to_vec(),
            TableLookup::Route(of) => of.hops.to_vec(),
        },
    };
    all.retain(|to| *to != NONE);
    all
}
