//! The compiled program: what can be decided by a frame's first bytes and by tables is decided where the frame
//! lies; other frames go through the graph in rows, block by block.
//!
//! A [tree](tree::Tree) is grown from the graph for each port: blocks that say what they do
//! ([`Block::grow`](crate::lfb::Block::grow)) are worked out beforehand as far as they can be, so that chains of
//! them cost a frame nothing but the questions that are left. Frames of a row ask their tables together
//! ([`run`]); most come to an end where they leave changed or unchanged, or are dropped.
//!
//! The others stand in front of a block that needs a frame, and go on as rows. A [plan](plan::Plan)
//! puts blocks in an order in which each comes after all that lead to it. Up to
//! [`SIGHTS_MAX`] frames then enter together, and every block does its work for all that reached it before
//! the next one does. Blocks, tables and counters are the [interpreter](crate::interpret)'s own,
//! so that whatever shows them cannot tell the two apart.
//!
//! Invariant: each block gets its frames in the order in which the interpreter would give them to it, one
//! frame after the other with all copies of it. All that blocks share is the row of what is told, which is
//! brought into that order too. Where this cannot be had (graphs without an order, too much that waits to be
//! told) frames go one by one.

use std::sync::Arc;

use dataplane::counter::Traffic;
use dataplane::forwarder::{Decided, Decision, Outputs, SIGHTS_MAX, Sight};
use forces::Value;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::enforce::Enforcer;
use crate::interpret::{Account, Interpreter};
use crate::lfb::{Lfb, Told};
use crate::loaded::{Ahead, Drops, Loaded};
use crate::observe::Watch;
use crate::problem::Problems;
use crate::program::Program;

/// In which order blocks get their frames when many go through a graph together.
pub mod plan;
/// Rows of frames on their way through the blocks.
pub mod walk;
/// A program as decisions.
pub mod tree;
/// How a program becomes decisions.
pub mod grow;
/// Where ways meet again.
mod join;
/// What is known of frames that come one way.
pub mod way;
/// A frame's first bytes as a compiler knows them.
pub mod view;
/// What a frame's bytes become.
pub mod change;
/// Frames that go the way of others.
mod shortcut;
/// Rows of frames led from question to question.
mod lead;
/// Rows of frames that go through the decisions.
pub mod run;
/// Headers found by decisions.
pub mod parse;
/// Rules of conditions as decisions.
pub mod conditions;
/// Edits as decisions.
pub mod edits;
/// Frames that leave the tree.
mod leave;
/// Frames that stay where they lie.
mod in_place;

use plan::Plan;
use run::Row;
use tree::Tree;
use walk::Walk;

/// Runs a program by rows of frames.
pub struct Compiled {
    one_by_one: Interpreter,
    plan: Option<Plan>,
    tree: Tree,
    walk: Walk,
    /// The frames at hand.
    row: Box<Row>,
    /// Those after them, where they are known: what their lookups will read comes meanwhile.
    ahead: Box<Row>,
    /// Whether there are some.
    is_ahead: bool,
    /// Whether frames of the row that was decided last leave otherwise than they came.
    changes: bool,
    /// The ports that the element has, as far as somebody told.
    ports: Vec<PortNo>,
    /// Queues where nothing is sent.
    nowhere: Outputs,
}

/// A program with its plan.
#[derive(Debug)]
pub struct Prepared {
    loaded: Loaded,
    /// What it is compiled to; none if that is what runs already.
    compiled: Option<(Option<Plan>, Tree)>,
}

impl Compiled {
    /// Whether the program's graph has an order in which rows of frames can go through it.
    pub fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// Notes which ports there are: they stay the same.
    #[inline]
    fn see_ports(&mut self, out: &Outputs) {
        if self.ports.len() != out.queues().len() {
            self.ports = out.queues().iter().map(|(port, _)| *port).collect();
        }
    }

    /// The program as decisions.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }
}

impl Enforcer for Compiled {
    type Prepared = Box<Prepared>;

    fn start(program: Arc<Program>, seed: u64) -> Result<Self, Problems> {
        let one_by_one = <Interpreter as Enforcer>::start(program, seed)?;
        let plan = Plan::of(&one_by_one.loaded.program, &one_by_one.loaded.graph);
        let tree = grown(&plan, &one_by_one.loaded, None);
        let (row, ahead) = (Box::default(), Box::default());
        let (walk, ports, nowhere) = (Walk::default(), Vec::new(), Outputs::new(&[]));
        let (is_ahead, changes) = (false, false);
        Ok(Compiled { one_by_one, plan, tree, walk, row, ahead, is_ahead, changes, ports, nowhere })
    }

    fn prepare(
        &self,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
        ahead: Ahead,
    ) -> Result<Box<Prepared>, Problems> {
        let running = &self.one_by_one.loaded;
        made_ready(running, program, generation, (seed, ahead))
    }

    fn shell(&self) -> Loaded {
        self.one_by_one.loaded.shell()
    }

    fn prepare_apart(
        shell: &Loaded,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
    ) -> Result<Box<Prepared>, Problems> {
        made_ready(shell, program, generation, (seed, Ahead::new()))
    }

    fn loaded(prepared: &Box<Prepared>) -> &Loaded {
        &prepared.loaded
    }

    fn exchange(&mut self, prepared: &mut Box<Prepared>, now: Nanos, out: &mut Outputs) -> bool {
        let (here, there) = (&self.one_by_one.loaded, &prepared.loaded);
        let fits =
            there.replaces == Some(here.generation) || here.replaces == Some(there.generation);
        if fits {
            self.one_by_one.exchange(&mut prepared.loaded, now, out);
            if let Some((plan, tree)) = &mut prepared.compiled {
                std::mem::swap(&mut self.plan, plan);
                std::mem::swap(&mut self.tree, tree);
            }
            self.is_ahead = false;
        }
        fits
    }

    fn program(&self) -> &Arc<Program> {
        self.one_by_one.program()
    }

    fn generation(&self) -> u64 {
        self.one_by_one.generation()
    }

    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        self.see_ports(out);
        let entry = self.one_by_one.loaded.graph.port(port);
        let (Some(plan), Some(entry)) = (&self.plan, entry) else {
            return self.one_by_one.forward(port, batch, now, out);
        };
        let (told_max, root) = (plan.told_max, self.tree.root(port));
        for frames in batch.frames_mut().chunks_mut(SIGHTS_MAX) {
            if !self.has_room(told_max, frames.len()) {
                for it in frames {
                    self.one_by_one.receive(port, it, now, out, Watch::Nothing);
                }
            } else if root.is_some() {
                self.decide_row(port, frames, now, out);
            } else if let Some(plan) = &self.plan {
                self.walk.receive((&mut self.one_by_one, plan), entry, frames, now, out);
            }
        }
        self.tree.settle(&mut self.one_by_one);
        self.serve(now, out);
    }

    fn decides(&self) -> bool {
        true
    }

    fn decide(
        &mut self,
        port: PortNo,
        sights: [&[Sight<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> Decided {
        self.decide_in_place(port, sights, now, decisions)
    }

    fn rewrites(&self) -> bool {
        self.changes
    }

    fn resume(&mut self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        self.resume_in_place(frames, now, out);
    }

    fn grows(&self, place: usize) -> isize {
        self.grows_in_place(place)
    }

    fn rewrite(&mut self, place: usize, head: &mut [u8], bytes: usize) -> usize {
        self.rewrite_in_place(place, head, bytes)
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.see_ports(out);
        self.one_by_one.tick(now, out)
    }

    fn leave(&mut self) -> Decided {
        self.leave_it()
    }

    fn pass(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
        watch: Watch<'_>,
    ) {
        self.see_ports(out);
        self.one_by_one.receive(port, frame, now, out, watch);
    }

    fn inject(
        &mut self,
        instance: usize,
        frame: (&mut Frame, &[(u32, u128)]),
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.one_by_one.inject(instance, frame, now, out);
    }

    fn set_link(&mut self, port: PortNo, up: bool, now: Nanos, out: &mut Outputs) {
        self.one_by_one.set_link(port, up, now, out);
    }

    fn component(&self, instance: usize, component: u32, now: Nanos) -> Option<Value> {
        self.one_by_one.component(instance, component, now)
    }

    fn reset(&mut self, instance: usize, component: u32) {
        self.one_by_one.reset(instance, component);
    }

    fn forget(&mut self, instance: usize, component: u32, index: u32) -> bool {
        self.one_by_one.forget(instance, component, index)
    }

    fn set_watched(&mut self, instance: usize, watched: bool) {
        self.one_by_one.set_watched(instance, watched);
    }

    fn block(&self, instance: usize) -> Option<&Lfb> {
        self.one_by_one.block(instance)
    }

    fn block_mut(&mut self, instance: usize) -> Option<&mut Lfb> {
        self.one_by_one.block_mut(instance)
    }

    fn link(&self, link: usize) -> Traffic {
        self.one_by_one.link(link)
    }

    fn drops(&self, instance: usize) -> &Drops {
        self.one_by_one.drops(instance)
    }

    fn account(&self) -> Account {
        self.one_by_one.account
    }

    fn held(&self) -> u64 {
        self.one_by_one.held()
    }

    fn told(&mut self) -> &mut Told {
        &mut self.one_by_one.told
    }
}

/// A program made ready to replace one that runs, or one of which only the shell is known.
fn made_ready(
    running: &Loaded,
    program: Arc<Program>,
    generation: u64,
    (seed, ahead): (u64, Ahead),
) -> Result<Box<Prepared>, Problems> {
    let loaded = Loaded::new(program, Some(running), generation, seed, ahead)?;
    let compiled = (!loaded.grows_as_before).then(|| {
        let plan = Plan::of(&loaded.program, &loaded.graph);
        let tree = grown(&plan, &loaded, Some(running));
        (plan, tree)
    });
    Ok(Box::new(Prepared { loaded, compiled }))
}

/// The tree of a program that has a plan.
fn grown(plan: &Option<Plan>, loaded: &Loaded, running: Option<&Loaded>) -> Tree {
    if plan.is_some() { Tree::of(loaded, running) } else { Tree::default() }
}
