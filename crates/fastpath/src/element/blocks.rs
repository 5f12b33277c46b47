//! Which blocks of a program are lowered.

use std::collections::BTreeSet;

use packet::frame::PortNo;
use progfe::compile::tree::{Fate, NONE, Node, NodeId, TableLookup, Tree};
use progfe::program::Program;

use super::lowering::{Lowering, after};

/// Where frames meet a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockPath {
    /// In the kernel.
    Lowered,
    /// In the kernel, and some of them in user space: for a learning table those that it learns
    /// from, for others those that the decision tree leaves to the block.
    Partly,
    /// In user space.
    UserSpace,
}

/// Returns where frames meet each block of a program with this tree, between these ports.
pub fn block_paths(program: &Program, tree: &Tree, ports: &[PortNo]) -> Vec<BlockPath> {
    let lowering = Lowering::new(tree, ports, usize::MAX);
    let count = program.instances.len();
    let (mut is_lowered, mut is_left) = (vec![false; count], vec![false; count]);
    let roots: Vec<NodeId> = lowering.roots.iter().filter_map(|(_, root)| *root).collect();
    for node in roots.iter().flat_map(|root| lowering.from(*root)) {
        let tally = match &tree.nodes()[node as usize] {
            Node::End(end) => &tree.ends()[*end as usize].tally,
            Node::Join(join, _) => &tree.join_tallies()[*join as usize],
            Node::Ask(question) => {
                if let TableLookup::Learn(of) = &**question {
                    is_left[of.instance as usize] = true;
                }
                continue;
            }
            _ => continue,
        };
        for (link, _) in &tally.links {
            let link = &program.links[*link as usize];
            is_lowered[link.from.instance] = true;
            is_lowered[link.to.instance] = true;
        }
    }
    for node in all_from(tree, &roots) {
        let (Node::End(end) | Node::Back(end)) = tree.nodes()[node as usize] else { continue };
        let end = &tree.ends()[end as usize];
        if end.fate == Fate::Goes && end.link != NONE {
            is_left[program.links[end.link as usize].to.instance] = true;
        }
    }
    let path = |(is_lowered, is_left): (&bool, &bool)| match (is_lowered, is_left) {
        (true, false) => BlockPath::Lowered,
        (true, true) => BlockPath::Partly,
        (false, _) => BlockPath::UserSpace,
    };
    is_lowered.iter().zip(&is_left).map(path).collect()
}

/// Returns all nodes that frames can reach, lowered or not.
fn all_from(tree: &Tree, roots: &[NodeId]) -> BTreeSet<NodeId> {
    let mut found: BTreeSet<NodeId> = roots.iter().copied().collect();
    let mut next = roots.to_vec();
    while let Some(at) = next.pop() {
        let node = &tree.nodes()[at as usize];
        let mut ways = after(node);
        match node {
            Node::Ipv4(_, all) => ways = all.to_vec(),
            Node::Ask(question) => match &**question {
                TableLookup::Learn(of) => {
                    // Values of no port, which only static entries may have.
                    ways.retain(|to| *to != of.other);
                    ways.push(of.unknown);
                }
                TableLookup::Route(of) => ways.push(of.none),
            },
            _ => {}
        }
        next.extend(ways.into_iter().filter(|to| found.insert(*to)));
    }
    found
}
