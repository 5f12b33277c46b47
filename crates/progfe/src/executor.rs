//! Adaptation layer: one interface between element management and the engine that runs a program.
//!
//! An [`Enforcer`] accepts programs loaded outside the forwarding path, runs one of them, and gives
//! access to the state of its blocks. The [interpreter](crate::interpret) is one implementation.
//! All implementations behave the same except for speed.

use std::sync::Arc;

use dataplane::counter::Traffic;
use dataplane::forwarder::{Forwarder, Outputs};
use forces::Value;
use packet::frame::{Frame, PortNo};
use packet::time::Nanos;

use crate::compiled_program::{Drops, Loaded, UpcomingBlocks};
use crate::diagnostic::Problems;
use crate::interpret::{Account, Interpreter};
use crate::lfb::{ExceptionQueue, Lfb};
use crate::observe::ObservationHook;
use crate::program::Program;

/// Place in a decision tree at which a mirror counts frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CountedAt {
    /// An end, by its index.
    End(u32),
    /// A join, by its index.
    Join(u32),
}

/// Frames that a mirror decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MirrorCount {
    /// The place that they passed.
    pub at: CountedAt,
    /// Number of frames.
    pub frames: u64,
    /// Bytes of these frames as received.
    pub bytes: u64,
}

/// A forwarder that runs programs. Its state is that of an [`Interpreter`].
pub trait Enforcer: Forwarder + Sized {
    /// A loaded program.
    type Prepared;

    /// Starts the first program.
    fn start(program: Arc<Program>, seed: u64) -> Result<Self, Problems>;

    /// Loads a program of a given generation that replaces the running one. `ahead` contains
    /// successors of running blocks. Frames are not affected.
    fn prepare(
        &self,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
        ahead: UpcomingBlocks,
    ) -> Result<Self::Prepared, Problems>;

    /// Returns the data to load a program without this engine.
    fn shell(&self) -> Loaded {
        self.interpreter().loaded.shell()
    }

    /// Loads a program like [`Enforcer::prepare`], but only from the shell, for instance on another
    /// thread. It creates all blocks new.
    fn prepare_apart(
        shell: &Loaded,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
    ) -> Result<Self::Prepared, Problems>;

    /// Returns the loaded program.
    fn loaded(prepared: &Self::Prepared) -> &Loaded;

    /// Swaps the running program with `prepared`.
    ///
    /// Frames before the call use only the old program, frames after it only the new one.
    /// Afterwards `prepared` contains the old program, and the same call restores it. Returns false
    /// without any effect if the program was prepared for another program than the running one.
    fn exchange(&mut self, prepared: &mut Self::Prepared, now: Nanos, out: &mut Outputs) -> bool;

    /// Returns the interpreter with the running program and its state.
    fn interpreter(&self) -> &Interpreter;

    /// Returns the interpreter mutably.
    fn interpreter_mut(&mut self) -> &mut Interpreter;

    /// Declines the batch after the last one decided, so that its frames arrive in
    /// [`Forwarder::forward`].
    fn skip_batch(&mut self) {}

    /// Adds frames that a mirror of the compiled program decided to all counters.
    fn add_mirrored(&mut self, _counts: &[MirrorCount]) {}

    /// Forwards one frame block by block and records what `watch` requests. Queues in blocks are
    /// served only by [`Forwarder::forward`]; an empty batch is sufficient.
    fn pass(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
        watch: ObservationHook<'_>,
    ) {
        self.interpreter_mut().receive(port, frame, now, out, watch);
    }

    /// Returns the running program.
    fn program(&self) -> &Arc<Program> {
        &self.interpreter().loaded.program
    }

    /// Returns the generation of the running program.
    fn generation(&self) -> u64 {
        self.interpreter().loaded.generation
    }

    /// Puts a frame with metadata into a block without inputs.
    fn inject(
        &mut self,
        instance: usize,
        frame: (&mut Frame, &[(u32, u128)]),
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.interpreter_mut().inject(instance, frame, now, out);
    }

    /// Sets the link state of a port.
    fn set_link(&mut self, port: PortNo, up: bool, now: Nanos, out: &mut Outputs) {
        self.interpreter_mut().set_link(port, up, now, out);
    }

    /// Returns the value of a component of a block.
    fn component(&self, instance: usize, component: u32, now: Nanos) -> Option<Value> {
        self.interpreter().loaded.component(instance, component, now)
    }

    /// Resets a counter of a block to its initial value.
    fn reset(&mut self, instance: usize, component: u32) {
        if let Some(block) = self.block_mut(instance) {
            block.reset(component);
        }
    }

    /// Deletes a learned row of a block. Returns false if there is none.
    fn forget(&mut self, instance: usize, component: u32, index: u32) -> bool {
        self.block_mut(instance).is_some_and(|block| block.forget(component, index))
    }

    /// Sets whether events of a block have a subscriber.
    fn set_watched(&mut self, instance: usize, watched: bool) {
        self.interpreter_mut().loaded.watched[instance] = watched;
    }

    /// Returns a running block, by its index in the program.
    fn block(&self, instance: usize) -> Option<&Lfb> {
        self.interpreter().loaded.block(instance)
    }

    /// Returns a running block, so that agents can update it.
    fn block_mut(&mut self, instance: usize) -> Option<&mut Lfb> {
        self.interpreter_mut().loaded.blocks.get_mut(instance)?.as_mut()
    }

    /// Returns the traffic of a link, by its index in the program.
    fn link(&self, link: usize) -> Traffic {
        self.interpreter().loaded.links.get(link).copied().unwrap_or_default()
    }

    /// Returns the drops of a block.
    fn drops(&self, instance: usize) -> &Drops {
        &self.interpreter().loaded.drops[instance]
    }

    /// Returns the frame accounting.
    fn account(&self) -> Account {
        self.interpreter().account
    }

    /// Returns the number of frames that wait in blocks.
    fn held(&self) -> u64 {
        self.interpreter().loaded.held()
    }

    /// Returns the queues of redirected frames and of events.
    fn told(&mut self) -> &mut ExceptionQueue {
        &mut self.interpreter_mut().told
    }
}

impl Enforcer for Interpreter {
    type Prepared = Box<Loaded>;

    fn start(program: Arc<Program>, seed: u64) -> Result<Self, Problems> {
        Loaded::new(program, None, 1, seed, UpcomingBlocks::new()).map(Interpreter::new)
    }

    fn prepare(
        &self,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
        ahead: UpcomingBlocks,
    ) -> Result<Box<Loaded>, Problems> {
        Loaded::new(program, Some(&self.loaded), generation, seed, ahead).map(Box::new)
    }

    fn prepare_apart(
        shell: &Loaded,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
    ) -> Result<Box<Loaded>, Problems> {
        Loaded::new(program, Some(shell), generation, seed, UpcomingBlocks::new()).map(Box::new)
    }

    fn loaded(prepared: &Box<Loaded>) -> &Loaded {
        prepared
    }

    fn exchange(&mut self, prepared: &mut Box<Loaded>, now: Nanos, out: &mut Outputs) -> bool {
        let (here, there) = (&self.loaded, &**prepared);
        let fits =
            there.replaces == Some(here.generation) || here.replaces == Some(there.generation);
        if fits {
            Interpreter::exchange(self, prepared, now, out);
        }
        fits
    }

    fn interpreter(&self) -> &Interpreter {
        self
    }

    fn interpreter_mut(&mut self) -> &mut Interpreter {
        self
    }
}
