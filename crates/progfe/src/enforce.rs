//! The Adaptation Layer: one interface between what manages an element and what runs its program.
//!
//! An [`Enforcer`] takes programs that are made ready apart from the frames' path, runs one of them, and
//! can be asked what its blocks hold. The [interpreter](crate::interpret) is one; whoever manages an
//! element cannot tell which one it has but by its speed.

use std::sync::Arc;

use dataplane::counter::Traffic;
use dataplane::forwarder::{Decided, Decision, Outputs, SIGHTS_MAX, Sight};
use forces::Value;
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::interpret::{Account, Interpreter};
use crate::lfb::{Lfb, Told};
use crate::loaded::{Ahead, Drops, Loaded};
use crate::observe::Watch;
use crate::problem::Problems;
use crate::program::Program;

/// What runs programs.
pub trait Enforcer: Sized {
    /// A program that is ready to run.
    type Prepared;

    /// Runs a program, the first one.
    fn start(program: Arc<Program>, seed: u64) -> Result<Self, Problems>;

    /// Makes a program ready to replace the one that runs, as that of a generation, with blocks that
    /// follow those that run. Nothing of this is seen by frames.
    fn prepare(
        &self,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
        ahead: Ahead,
    ) -> Result<Self::Prepared, Problems>;

    /// What a program can be made ready by apart from what runs.
    fn shell(&self) -> Loaded;

    /// As [`Enforcer::prepare`], apart from what runs, of which the shell is known: on another thread, for instance.
    /// All blocks are made anew.
    fn prepare_apart(
        shell: &Loaded,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
    ) -> Result<Self::Prepared, Problems>;

    /// What was made ready.
    fn loaded(prepared: &Self::Prepared) -> &Loaded;

    /// Runs another program from now on: all frames before are wholly the old one's, all behind wholly
    /// the new one's. What ran before is in `prepared` then, and the same call brings it back. False, and
    /// nothing happens, if it was made ready for another program than the one that runs.
    fn exchange(&mut self, prepared: &mut Self::Prepared, now: Nanos, out: &mut Outputs) -> bool;

    /// The program that runs.
    fn program(&self) -> &Arc<Program>;

    /// Its generation.
    fn generation(&self) -> u64;

    /// Forwards what a port received.
    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs);

    /// As [`dataplane::forwarder::Forwarder::decides`].
    fn decides(&self) -> bool {
        false
    }

    /// As [`dataplane::forwarder::Forwarder::decide`].
    fn decide(
        &mut self,
        _port: PortNo,
        _sights: [&[Sight<'_>]; 2],
        _now: Nanos,
        _decisions: &mut [Decision; SIGHTS_MAX],
    ) -> Decided {
        Decided::Done(0)
    }

    /// As [`dataplane::forwarder::Forwarder::rewrites`].
    fn rewrites(&self) -> bool {
        false
    }

    /// As [`dataplane::forwarder::Forwarder::resume`].
    fn resume(&mut self, _frames: &mut [Frame], _now: Nanos, _out: &mut Outputs) {}

    /// As [`dataplane::forwarder::Forwarder::grows`].
    fn grows(&self, _place: usize) -> isize {
        0
    }

    /// As [`dataplane::forwarder::Forwarder::rewrite`].
    fn rewrite(&mut self, _place: usize, _head: &mut [u8], bytes: usize) -> usize {
        bytes
    }

    /// Does what is due, and says when to come back.
    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos>;

    /// Has frames come to be forwarded that could be decided where they lie.
    fn leave(&mut self) -> Decided {
        Decided::Done(0)
    }

    /// Forwards one frame block by block, and notes what is wanted of it. Queues that hold frames are
    /// served when a batch is [forwarded](Enforcer::forward), an empty one for all they care.
    fn pass(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
        watch: Watch<'_>,
    );

    /// Puts a frame with metadata into a block that has no inputs.
    fn inject(
        &mut self,
        instance: usize,
        frame: (&mut Frame, &[(u32, u128)]),
        now: Nanos,
        out: &mut Outputs,
    );

    /// Says whether a port's link carries frames.
    fn set_link(&mut self, port: PortNo, up: bool, now: Nanos, out: &mut Outputs);

    /// What a component of a block holds.
    fn component(&self, instance: usize, component: u32, now: Nanos) -> Option<Value>;

    /// Sets a counter of a block back to where it began.
    fn reset(&mut self, instance: usize, component: u32);

    /// Has a block forget a row that it learnt; whether there was one.
    fn forget(&mut self, instance: usize, component: u32, index: u32) -> bool;

    /// Says whether somebody wants a block's events.
    fn set_watched(&mut self, instance: usize, watched: bool);

    /// A block as it runs, by its place in the program.
    fn block(&self, instance: usize) -> Option<&Lfb>;

    /// The same, to be told what agents know.
    fn block_mut(&mut self, instance: usize) -> Option<&mut Lfb>;

    /// What went over a link, by its place in the program.
    fn link(&self, link: usize) -> Traffic;

    /// What a block let go no further.
    fn drops(&self, instance: usize) -> &Drops;

    /// Frames by what became of them.
    fn account(&self) -> Account;

    /// Frames that wait in blocks.
    fn held(&self) -> u64;

    /// What waits to be told.
    fn told(&mut self) -> &mut Told;
}

impl Enforcer for Interpreter {
    type Prepared = Box<Loaded>;

    fn start(program: Arc<Program>, seed: u64) -> Result<Self, Problems> {
        Loaded::new(program, None, 1, seed, Ahead::new()).map(Interpreter::new)
    }

    fn prepare(
        &self,
        program: Arc<Program>,
        generation: u64,
        seed: u64,
        ahead: Ahead,
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
        Loaded::new(program, Some(shell), generation, seed, Ahead::new()).map(Box::new)
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
        watch: Watch<'_>,
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

    fn told(&mut self) -> &mut Told {
        &mut self.told
    }
}
