//! The compiled data path: decides frames in place by their first bytes and by tables. The other
//! frames go through the graph in batches, block by block.
//!
//! - The compiler grows a [tree](tree::Tree) of decisions from the graph for each port. Blocks
//!   describe their processing in [`Block::grow`](crate::lfb::Block::grow). The compiler evaluates
//!   it as far as possible, so a chain of blocks costs only the remaining tests.
//! - Frames of a batch look up tables together ([`run`]). Most frames end in the tree: they are
//!   sent, changed or unchanged, or dropped.
//! - The other frames leave the tree in front of a block that needs the frame, and continue as
//!   batches.
//! - A [plan](plan::Plan) orders the blocks so that each comes after all its predecessors. Up to
//!   [`SIGHTS_MAX`] frames enter together, and each block processes all its frames before the next
//!   block runs.
//! - Blocks, tables and counters are those of the [interpreter](crate::interpret), so both engines
//!   have the same visible state.
//!
//! Invariant: each block gets its frames in the order of the interpreter, which processes one frame
//! with all its copies before the next. Blocks share only the queue of redirected frames and
//! events, which is sorted into that order. If this order is not possible, frames are processed one
//! by one. Reasons are a cyclic graph or too many redirected frames.

use std::sync::Arc;

use dataplane::forwarder::{BatchDecision, Decision, Forwarder, FrameHead, Outputs, SIGHTS_MAX};
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::compiled_program::{Loaded, UpcomingBlocks};
use crate::diagnostic::Problems;
use crate::executor::{CountedAt, Enforcer, MirrorCount};
use crate::interpret::Interpreter;
use crate::observe::ObservationHook;
use crate::program::Program;

pub mod plan;
pub mod walk;
pub mod tree;
pub mod build;
mod merge;
pub mod path_state;
pub mod symbolic_bytes;
pub mod change;
mod flow_cache;
mod batch_eval;
pub mod run;
pub mod parse;
pub mod conditions;
pub mod edits;
mod exit;
mod in_place;

use in_place::CompiledBatch;
use plan::Plan;
use run::Row;
use tree::{Fate, Tree};
use walk::Walk;

/// An engine that runs a program with batches of frames.
pub struct Compiled {
    one_by_one: Interpreter,
    plan: Option<Plan>,
    tree: Tree,
    walk: Walk,
    /// The current frames.
    row: Box<Row>,
    /// The frames after the current ones, if known. Prefetches for their lookups run early.
    ahead: Box<Row>,
    /// Whether `ahead` contains frames.
    is_ahead: bool,
    /// The ports of the element, as far as known.
    ports: Vec<PortNo>,
    /// Empty output queues, for calls that send nothing.
    nowhere: Outputs,
    /// Number of trees so far.
    trees: u64,
}

/// A loaded program with its plan and tree.
#[derive(Debug)]
pub struct Prepared {
    loaded: Loaded,
    /// Plan and tree; none if they equal those of the running program.
    compiled: Option<(Option<Plan>, Tree)>,
}

impl Compiled {
    /// Returns true if the graph has an order for batches of frames.
    pub fn has_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// Records the ports, which do not change.
    #[inline]
    fn see_ports(&mut self, out: &Outputs) {
        if self.ports.len() != out.queues().len() {
            self.ports = out.queues().iter().map(|(port, _)| *port).collect();
        }
    }

    /// Returns the decision tree of the program.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns a number that changes with the tree.
    pub fn tree_number(&self) -> u64 {
        self.trees
    }
}

impl Forwarder for Compiled {
    type Pending<'a> = CompiledBatch<'a>;

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
                    self.one_by_one.receive(port, it, now, out, ObservationHook::Nothing);
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

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.see_ports(out);
        self.one_by_one.tick(now, out)
    }

    fn decides(&self) -> bool {
        true
    }

    fn decide(
        &mut self,
        port: PortNo,
        sights: [&[FrameHead<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision<CompiledBatch<'_>> {
        self.decide_in_place(port, sights, now, decisions)
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
        let (is_ahead, trees) = (false, 1);
        Ok(Compiled { one_by_one, plan, tree, walk, row, ahead, is_ahead, ports, nowhere, trees })
    }

    fn prepare(
        &self,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
        ahead: UpcomingBlocks,
    ) -> Result<Box<Prepared>, Problems> {
        let running = &self.one_by_one.loaded;
        made_ready(running, program, generation, (seed, ahead))
    }

    fn prepare_apart(
        shell: &Loaded,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
    ) -> Result<Box<Prepared>, Problems> {
        made_ready(shell, program, generation, (seed, UpcomingBlocks::new()))
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
                self.trees += 1;
            }
            self.is_ahead = false;
        }
        fits
    }

    fn interpreter(&self) -> &Interpreter {
        &self.one_by_one
    }

    fn interpreter_mut(&mut self) -> &mut Interpreter {
        &mut self.one_by_one
    }

    fn skip_batch(&mut self) {
        self.is_ahead = false;
    }

    fn add_mirrored(&mut self, counts: &[MirrorCount]) {
        let Compiled { tree, one_by_one, .. } = self;
        for count in counts {
            match count.at {
                CountedAt::End(end) => {
                    one_by_one.account.received += count.frames;
                    if let Fate::Leaves(..) = tree.count(end, count.frames, count.bytes) {
                        one_by_one.account.left += count.frames;
                    }
                }
                CountedAt::Join(join) => tree.pass(join, count.frames, count.bytes),
            }
        }
        tree.settle(one_by_one);
    }

    fn pass(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
        watch: ObservationHook<'_>,
    ) {
        self.see_ports(out);
        self.one_by_one.receive(port, frame, now, out, watch);
    }
}

/// Compiles a program that replaces `running`, which may be only a shell.
fn made_ready(
    running: &Loaded,
    program: Arc<Program>,
    generation: u64,
    (seed, ahead): (u64, UpcomingBlocks),
) -> Result<Box<Prepared>, Problems> {
    let loaded = Loaded::new(program, Some(running), generation, seed, ahead)?;
    let compiled = (!loaded.grows_as_before).then(|| {
        let plan = Plan::of(&loaded.program, &loaded.graph);
        let tree = grown(&plan, &loaded, Some(running));
        (plan, tree)
    });
    Ok(Box::new(Prepared { loaded, compiled }))
}

/// Returns the tree of a program that has a plan.
fn grown(plan: &Option<Plan>, loaded: &Loaded, running: Option<&Loaded>) -> Tree {
    if plan.is_some() { Tree::of(loaded, running) } else { Tree::default() }
}
