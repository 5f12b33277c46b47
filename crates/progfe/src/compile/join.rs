//! Where ways meet again.
//!
//! Behind a block to which several links lead, ways often go on alike. There a tree is grown once for all
//! that came with the same bytes, metadata and changes, and that know as much at least about whatever is
//! asked behind it. What they know besides is forgotten; what each has counted so far is told where they
//! meet ([`Node::Join`]), since it is not the same.
//!
//! Invariant: whatever a tree took for known when it was grown is so for every way that comes to it.

use std::collections::HashMap;

use super::grow::Grower;
use super::tree::{Effect, Node, NodeId, Step, Tally};
use super::view::{Field, View};
use super::way::{Headers, Known, Ranges, Way};
use crate::frames::FormatId;
use crate::lfb::{At, Lfb};

/// Something about frames that was asked of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    /// What a field can hold.
    Field(Field),
    /// Whether a field and so much more is at most the frame's bytes.
    Fits(Field, usize),
    /// How long it is.
    Length,
}

/// What was known of that.
#[derive(Debug)]
enum Told {
    Field(Field, Ranges),
    Fits(Field, usize, Option<bool>),
    Length((usize, usize)),
}

/// What has to be the same for ways to go on alike.
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

/// A tree behind a place, and what was known when it was grown.
#[derive(Debug)]
struct Grown {
    node: NodeId,
    told: Vec<Told>,
}

/// Trees that ways may come to.
#[derive(Debug, Default)]
pub(super) struct Joins {
    grown: HashMap<Place, Vec<Grown>>,
    /// Nodes in front of them, by what they count.
    counted: HashMap<(NodeId, Vec<Effect>), NodeId>,
}

impl Told {
    /// What a way knows.
    fn of(asked: Asked, way: &Way) -> Told {
        match asked {
            Asked::Field(field) => Told::Field(field, way.known(field)),
            Asked::Fits(field, more) => Told::Fits(field, more, way.told_to_fit(field, more)),
            Asked::Length => Told::Length(way.known_lengths()),
        }
    }

    /// Whether a way knows as much at least.
    fn is_known(&self, way: &Way) -> bool {
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

impl<'a> Grower<'a> {
    /// Frames enter a block that other ways lead to as well.
    pub(super) fn join(&mut self, mut way: Way, block: &'a Lfb) -> NodeId {
        let effects = std::mem::take(&mut way.effects);
        // What was found of headers is found again, from what is known of fields.
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

    /// A node that counts what a way has met so far, in front of another one.
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
