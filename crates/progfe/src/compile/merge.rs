//! Joins of paths in the tree.
//!
//! After a block with several incoming links, paths often continue in the same way. The compiler
//! then grows one subtree for all paths with the same bytes, metadata and changes. Each path must
//! know at least the facts that the subtree relies on. Other knowledge is discarded. Each path has
//! its own counters, which are updated at the join ([`Node::Join`]).
//!
//! Invariant: any fact that a subtree relies on is true for every path that joins it.

use std::collections::HashMap;

use super::build::TreeBuilder;
use super::path_state::{Headers, Known, PathState, Ranges};
use super::symbolic_bytes::{Field, View};
use super::tree::{Effect, Node, NodeId, Step, Tally};
use crate::frames::FormatId;
use crate::lfb::{At, Lfb};

/// A fact that the compiler requested of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    /// Possible values of a field.
    Field(Field),
    /// Whether a field plus a constant is at most the length of the frame.
    Fits(Field, usize),
    /// Length of the frame.
    Length,
}

/// Knowledge about such a fact.
#[derive(Debug)]
enum Told {
    Field(Field, Ranges),
    Fits(Field, usize, Option<bool>),
    Length((usize, usize)),
}

/// State that must be equal for paths to join.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    instance: usize,
    at: At,
    meta: Vec<Option<Known>>,
    view: View,
    start: Option<FormatId>,
    asked: u32,
    steps: Vec<Step>,
}

/// A subtree, and the facts that it relies on.
#[derive(Debug)]
struct Grown {
    node: NodeId,
    told: Vec<Told>,
}

/// Subtrees that paths may join.
#[derive(Debug, Default)]
pub(super) struct Joins {
    grown: HashMap<Place, Vec<Grown>>,
    /// Nodes in front of these subtrees, by the effects that they count.
    counted: HashMap<(NodeId, Vec<Effect>), NodeId>,
}

impl Told {
    /// Returns the knowledge of a path about a fact.
    fn of(asked: Asked, way: &PathState) -> Told {
        match asked {
            Asked::Field(field) => Told::Field(field, way.known(field)),
            Asked::Fits(field, more) => Told::Fits(field, more, way.told_to_fit(field, more)),
            Asked::Length => Told::Length(way.known_lengths()),
        }
    }

    /// Returns true if a path knows at least as much.
    fn is_known(&self, way: &PathState) -> bool {
        match self {
            Told::Field(field, ranges) => {
                let within = |(low, high): &(u64, u64)| {
                    ranges.iter().any(|(from, to)| from <= low && high <= to)
                };
                way.known(*field).iter().all(within)
            }
            Told::Fits(field, more, told) => {
                told.is_none() || way.told_to_fit(*field, *more) == *told
            }
            Told::Length((least, most)) => {
                let (low, high) = way.known_lengths();
                *least <= low && high <= *most
            }
        }
    }

    fn asked(&self) -> Asked {
        match self {
            Told::Field(field, _) => Asked::Field(*field),
            Told::Fits(field, more, _) => Asked::Fits(*field, *more),
            Told::Length(_) => Asked::Length,
        }
    }
}

impl<'a> TreeBuilder<'a> {
    /// Enters a block with several incoming links.
    pub(super) fn join(&mut self, mut way: PathState, block: &'a Lfb) -> NodeId {
        let effects = std::mem::take(&mut way.effects);
        // Headers are parsed again, from the known values of fields.
        way.headers = Headers::from(way.start);
        way.hits = 0;
        let place = Place {
            instance: way.instance,
            at: way.at,
            meta: way.meta.clone(),
            view: way.view.clone(),
            start: way.start,
            asked: way.asked,
            steps: way.steps.clone(),
        };
        let all = self.joins.grown.get(&place).into_iter().flatten();
        let known = all.into_iter().find(|it| it.told.iter().all(|told| told.is_known(&way)));
        let node = match known {
            Some(Grown { node, told }) => {
                told.iter().for_each(|told| way.ask(told.asked()));
                self.met_again.insert(way.instance);
                *node
            }
            None => {
                let (came, before) = (way.clone(), way.begin_asking());
                let node = self.enter(way, block);
                let told = came.end_asking(before);
                let told = told.into_iter().map(|asked| Told::of(asked, &came)).collect();
                self.joins.grown.entry(place).or_default().push(Grown { node, told });
                node
            }
        };
        self.counted(node, effects)
    }

    /// Adds a node that counts the effects of a path in front of another node.
    fn counted(&mut self, next: NodeId, effects: Vec<Effect>) -> NodeId {
        if effects.is_empty() {
            return next;
        }
        let key = (next, effects);
        if let Some(known) = self.joins.counted.get(&key) {
            return *known;
        }
        self.tree.joins.push(Tally::of(&key.1));
        let node = self.node(Node::Join(self.tree.joins.len() as u32 - 1, next));
        self.joins.counted.insert(key, node);
        node
    }
}
