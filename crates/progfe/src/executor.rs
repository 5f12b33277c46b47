//! Adaptation layer: one interface between element management and the engine that runs a program.
//!
//! An [`Enforcer`] accepts programs loaded outside the forwarding path, runs one of them, and gives
//! access to the state of its blocks. The [interpreter](crate::interpret) is one implementation.
//! All implementations behave the same except for speed.

use std::sync::Arc;

use dataplane::counter::Traffic;
use dataplane::forwarder::{BatchDecision, Decision, FrameHead, Outputs, SIGHTS_MAX};
use forces::Value;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::compiled_program::{Drops, Loaded, UpcomingBlocks};
use crate::diagnostic::Problems;
use crate::interpret::{Account, Interpreter};
use crate::lfb::{ExceptionQueue, Lfb};
use crate::observe::ObservationHook;
use crate::program::Program;

/// An engine that runs programs.
pub trait Enforcer: Sized {
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
    fn shell(&self) -> Loaded;

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

    /// Returns the running program.
    fn program(&self) -> &Arc<Program>;

    /// Returns the generation of the running program.
    fn generation(&self) -> u64;

    /// Forwards a batch that a port received.
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs);

    /// See [`dataplane::forwarder::Forwarder::decides`].
    fn decides(&self) -> bool {
        false
    }

    /// See [`dataplane::forwarder::Forwarder::decide`].
    fn decide(
        &mut self,
        _port: PortNo,
        _sights: [&[FrameHead<'_>]; 2],
        _now: Nanos,
        _decisions: &mut [Decision; SIGHTS_MAX],
    ) -> BatchDecision {
        BatchDecision::Done(0)
    }

    /// See [`dataplane::forwarder::Forwarder::rewrites`].
    fn rewrites(&self) -> bool {
        false
    }

    /// See [`dataplane::forwarder::Forwarder::resume`].
    fn resume(&mut self, _frames: &mut [Frame], _now: Nanos, _out: &mut Outputs) {}

    /// See [`dataplane::forwarder::Forwarder::grows`].
    fn grows(&self, _place: usize) -> isize {
        0
    }

    /// See [`dataplane::forwarder::Forwarder::rewrite`].
    fn rewrite(&mut self, _place: usize, _head: &mut [u8], bytes: usize) -> usize {
        bytes
    }

    /// Does periodic work. Returns the time of the next call.
    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos>;

    /// Declines to decide frames in place, so that they arrive in `forward`.
    fn leave(&mut self) -> BatchDecision {
        BatchDecision::Done(0)
    }

    /// Forwards one frame block by block and records what `watch` requests. Queues in blocks are
    /// served only by [`Enforcer::forward`]; an empty batch is sufficient.
    fn pass(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
        watch: ObservationHook<'_>,
    );

    /// Puts a frame with metadata into a block without inputs.
    fn inject(
        &mut self,
        instance: usize,
        frame: (&mut Frame, &[(u32, u128)]),
        now: Nanos,
        out: &mut Outputs,
    );

    /// Sets the link state of a port.
    fn set_link(&mut self, port: PortNo, up: bool, now: Nanos, out: &mut Outputs);

    /// Returns the value of a component of a block.
    fn component(&self, instance: usize, component: u32, now: Nanos) -> Option<Value>;

    /// Resets a counter of a block to its initial value.
    fn reset(&mut self, instance: usize, component: u32);

    /// Deletes a learned row of a block. Returns false if there is none.
    fn forget(&mut self, instance: usize, component: u32, index: u32) -> bool;

    /// Sets whether events of a block have a subscriber.
    fn set_watched(&mut self, instance: usize, watched: bool);

    /// Returns a running block, by its index in the program.
    fn block(&self, instance: usize) -> Option<&Lfb>;

    /// Returns a running block, so that agents can update it.
    fn block_mut(&mut self, instance: usize) -> Option<&mut Lfb>;

    /// Returns the traffic of a link, by its index in the program.
    fn link(&self, link: usize) -> Traffic;

    /// Returns the drops of a block.
    fn drops(&self, instance: usize) -> &Drops;

    /// Returns the frame accounting.
    fn account(&self) -> Account;

    /// Returns the number of frames that wait in blocks.
    fn held(&self) -> u64;

    /// Returns the queues of redirected frames and of events.
    fn told(&mut self) -> &mut ExceptionQueue;
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

    fn shell(&self) -> Loaded {
        self.loaded.shell()
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

    fn program(&self) -> &Arc<Program> {
        &self.loaded.program
    }

    fn generation(&self) -> u64 {
        self.loaded.generation
    }

    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        Interpreter::forward(self, port, batch, now, out);
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        Interpreter::tick(self, now, out)
    }

    fn pass(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
        watch: ObservationHook<'_>,
    ) {
        self.receive(port, frame, now, out, watch);
    }

    fn inject(
        &mut self,
        instance: usize,
        frame: (&mut Frame, &[(u32, u128)]),
        now: Nanos,
        out: &mut Outputs,
    ) {
        Interpreter::inject(self, instance, frame, now, out);
    }

    fn set_link(&mut self, port: PortNo, up: bool, now: Nanos, out: &mut Outputs) {
        Interpreter::set_link(self, port, up, now, out);
    }

    fn component(&self, instance: usize, component: u32, now: Nanos) -> Option<Value> {
        self.loaded.component(instance, component, now)
    }

    fn reset(&mut self, instance: usize, component: u32) {
        if let Some(Some(block)) = self.loaded.blocks.get_mut(instance) {
            block.reset(component);
        }
    }

    fn forget(&mut self, instance: usize, component: u32, index: u32) -> bool {
        let block = self.loaded.blocks.get_mut(instance).and_then(Option::as_mut);
        block.is_some_and(|block| block.forget(component, index))
    }

    fn set_watched(&mut self, instance: usize, watched: bool) {
        self.loaded.watched[instance] = watched;
    }

    fn block(&self, instance: usize) -> Option<&Lfb> {
        self.loaded.block(instance)
    }

    fn block_mut(&mut self, instance: usize) -> Option<&mut Lfb> {
        self.loaded.blocks.get_mut(instance)?.as_mut()
    }

    fn link(&self, link: usize) -> Traffic {
        self.loaded.links.get(link).copied().unwrap_or_default()
    }

    fn drops(&self, instance: usize) -> &Drops {
        &self.loaded.drops[instance]
    }

    fn account(&self) -> Account {
        self.account
    }

    fn held(&self) -> u64 {
        self.loaded.held()
    }

    fn told(&mut self) -> &mut ExceptionQueue {
        &mut self.told
    }
}
