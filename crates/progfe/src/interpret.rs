//! The reference interpreter: sends frames through the graph individually, block by block.
//!
//! Every link counts frames and bytes. Every block counts drops by reason; a missing link is one
//! reason. The interpreter takes no shortcuts. Any other engine must have the same effect on every
//! frame.
//!
//! Invariant for every program and all frames: received + injected + copies made = left + told +
//! dropped + held ([`Account::is_even`]).

use dataplane::forwarder::{Forwarder, Outputs};
use packet::frame::{Batch, Frame, PortNo};
use packet::time::Nanos;

use crate::compiled_program::Loaded;
use crate::lfb::{At, DropReason, Env, ExceptionQueue, Lfb, Packet, Slots, Verdict};
use crate::observe::ObservationHook;
use crate::trace::Step;

/// Maximum number of steps that a frame and all its copies may take.
pub const STEPS_MAX: usize = 16_384;
/// Maximum number of rounds that serve queues when a program is replaced. Frames that still
/// circulate between queues are then dropped.
const DRAIN_ROUNDS_MAX: usize = 64;

/// Frame accounting by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Frames that ports received.
    pub received: u64,
    /// Frames that control elements and agents injected.
    pub injected: u64,
    /// Copies that blocks made.
    pub copies: u64,
    /// Frames and copies placed in port queues.
    pub left: u64,
    /// Frames and copies redirected to control elements and agents.
    pub told: u64,
    /// Frames and copies dropped.
    pub dropped: u64,
}

impl Account {
    /// Returns true if every frame is accounted for, given the number of frames that wait in
    /// blocks.
    pub fn is_even(&self, held: u64) -> bool {
        self.received + self.injected + self.copies == self.left + self.told + self.dropped + held
    }
}

/// A frame on its way into a block.
#[derive(Debug)]
struct Work {
    instance: usize,
    at: At,
    packet: Packet,
    copy: u32,
}

/// Runs a program frame by frame.
#[derive(Debug)]
pub struct Interpreter {
    /// The program.
    pub loaded: Loaded,
    /// Queues of redirected frames and of events.
    pub told: ExceptionQueue,
    /// Frame accounting over all programs so far.
    pub account: Account,
    /// Frames received on ports without a block.
    pub no_port: u64,
    work: Vec<Work>,
    pub(crate) made: Vec<(u32, u32, Packet)>,
    pub(crate) spare: Vec<Packet>,
    /// Number of copies of the current frame so far.
    copies: u32,
}

/// The way a frame enters a block.
enum Entry<'f> {
    /// A port received it.
    Port,
    /// It arrived at an input.
    Input(At),
    /// It was injected, with metadata.
    Injected(&'f [(u32, u128)]),
}

impl Interpreter {
    /// Creates an interpreter for a program.
    pub fn new(loaded: Loaded) -> Interpreter {
        let (work, made, spare) = (Vec::new(), Vec::new(), Vec::new());
        let (told, account) = (ExceptionQueue::default(), Account::default());
        Interpreter { loaded, told, account, no_port: 0, work, made, spare, copies: 0 }
    }

    /// Sends one frame from a port through the graph and records what `watch` requests of each
    /// step.
    pub fn receive(
        &mut self,
        port: PortNo,
        frame: &mut Frame,
        now: Nanos,
        out: &mut Outputs,
        watch: ObservationHook<'_>,
    ) {
        self.account.received += 1;
        match self.loaded.graph.port(port) {
            Some(instance) => self.enter(instance, Entry::Port, frame, now, (out, watch)),
            None => {
                self.account.dropped += 1;
                self.no_port += 1;
            }
        }
    }

    /// Puts a frame with metadata into a block without inputs: RedirectIn or Inject.
    pub fn inject(
        &mut self,
        instance: usize,
        (frame, meta): (&mut Frame, &[(u32, u128)]),
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.account.injected += 1;
        self.enter(instance, Entry::Injected(meta), frame, now, (out, ObservationHook::Nothing));
        self.serve(now, out);
    }

    fn enter(
        &mut self,
        instance: usize,
        entry: Entry<'_>,
        frame: &mut Frame,
        now: Nanos,
        (out, mut watch): (&mut Outputs, ObservationHook<'_>),
    ) {
        let slots = &self.loaded.slots;
        let mut packet = self.spare.pop().unwrap_or_else(|| Packet::new(slots));
        let came = frame.stamp.map_or(now, |stamp| stamp.at);
        packet.begin(frame, self.loaded.program.frames.start, slots.ids().len(), came);
        packet.generation = self.loaded.generation;
        if let Entry::Injected(meta) = entry {
            meta.iter().for_each(|(id, value)| packet.set_meta(slots, *id, *value));
        }
        self.copies = 0;
        self.step(instance, entry, (packet, 0), now, (out, watch.part()));
        self.run(now, out, watch);
    }

    /// Processes pending work until none remains.
    fn run(&mut self, now: Nanos, out: &mut Outputs, mut watch: ObservationHook<'_>) {
        let mut steps = 0;
        while let Some(work) = self.work.pop() {
            let Work { instance, at, packet, copy } = work;
            steps += 1;
            if steps > STEPS_MAX {
                self.drop(instance, DropReason::TooManySteps, 0);
                self.spare.push(packet);
                continue;
            }
            self.step(instance, Entry::Input(at), (packet, copy), now, (out, watch.part()));
        }
    }

    /// Processes one frame in one block.
    fn step(
        &mut self,
        instance: usize,
        entry: Entry<'_>,
        (mut packet, copy): (Packet, u32),
        now: Nanos,
        (out, mut watch): (&mut Outputs, ObservationHook<'_>),
    ) {
        let before = matches!(watch, ObservationHook::Trace(_))
            .then(|| (listed(&packet, &self.loaded.slots), packet.bytes().to_vec()));
        let mut verdict = Verdict::Dropped(DropReason::NoPort);
        let mut told = 0;
        let since = watch.begin();
        self.with(instance, now, out, |block, env| {
            verdict = match (block, &entry) {
                (Lfb::Phy(phy), Entry::Port) => phy.receive(&mut packet, env),
                (block, Entry::Input(at)) => block.process(*at, &mut packet, env),
                (block, _) => block.process(At::default(), &mut packet, env),
            };
            told = env.copies_told;
        });
        watch.end(instance, since);
        self.account.told += told;
        self.account.copies += told + self.made.len() as u64;
        if let (ObservationHook::Trace(trace), Some((before, bytes))) = (watch, before) {
            let link = match verdict {
                Verdict::Out(output, index) => self.loaded.graph.link(instance, output, index),
                _ => None,
            };
            let is_here = matches!(verdict, Verdict::Out(..) | Verdict::Dropped(_) | Verdict::Told);
            trace.add(Step {
                copy,
                instance,
                input: match entry {
                    Entry::Input(at) => Some(at),
                    _ => None,
                },
                after: if is_here { listed(&packet, &self.loaded.slots) } else { before.clone() },
                before,
                bytes: (is_here && packet.bytes() != bytes).then(|| packet.bytes().to_vec()),
                verdict,
                link,
                copies: (1..=self.made.len() as u32).map(|nth| self.copies + nth).collect(),
            });
        }
        self.settle(instance, verdict, (packet, copy));
    }

    /// Queues a frame and the packets that its block emitted for their next blocks. Emitted packets
    /// go first.
    fn settle(&mut self, instance: usize, verdict: Verdict, (packet, copy): (Packet, u32)) {
        match verdict {
            Verdict::Out(output, index) => self.lead(instance, (output, index), packet, copy),
            Verdict::Left(_) => self.account.left += 1,
            Verdict::Told => self.account.told += 1,
            Verdict::Held => {}
            Verdict::Dropped(reason) => {
                self.drop(instance, reason, 0);
                self.spare.push(packet);
            }
        }
        let first = self.copies + 1;
        self.copies += self.made.len() as u32;
        // The stack is last in, first out: push in reverse order.
        let mut made = std::mem::take(&mut self.made);
        let mut copy = first + made.len() as u32;
        while let Some((output, index, packet)) = made.pop() {
            copy -= 1;
            self.lead(instance, (output, index), packet, copy);
        }
        self.made = made;
    }

    /// Sends a packet out of an output of a block.
    fn lead(&mut self, instance: usize, (output, index): (u32, u32), packet: Packet, copy: u32) {
        let Some(link) = self.loaded.graph.link(instance, output, index) else {
            self.drop(instance, DropReason::Unlinked, output);
            self.spare.push(packet);
            return;
        };
        self.loaded.links[link as usize].add(packet.bytes().len());
        let (instance, at) = self.loaded.graph.target(link);
        self.work.push(Work { instance, at, packet, copy });
    }

    pub(crate) fn drop(&mut self, instance: usize, reason: DropReason, output: u32) {
        self.account.dropped += 1;
        self.loaded.drops[instance].add(reason, output);
    }

    /// Calls a function with a block and its context.
    fn with(
        &mut self,
        instance: usize,
        now: Nanos,
        outputs: &mut Outputs,
        act: impl FnOnce(&mut Lfb, &mut Env<'_>),
    ) {
        let Loaded { program, slots, blocks, watched, .. } = &mut self.loaded;
        let mut env = Env {
            frames: &program.frames,
            slots,
            now,
            instance,
            watched: watched[instance],
            made: &mut self.made,
            spare: &mut self.spare,
            told: &mut self.told,
            outputs,
            copies_told: 0,
        };
        if let Some(block) = &mut blocks[instance] {
            act(block, &mut env);
        }
    }

    /// Serves queues that contain frames.
    fn serve(&mut self, now: Nanos, out: &mut Outputs) {
        for instance in 0..self.loaded.blocks.len() {
            if self.loaded.block(instance).is_some_and(|block| block.held() > 0) {
                self.tick_block(instance, now, out);
            }
        }
    }

    pub(crate) fn tick_block(
        &mut self,
        instance: usize,
        now: Nanos,
        out: &mut Outputs,
    ) -> Option<Nanos> {
        let mut due = None;
        self.with(instance, now, out, |block, env| due = block.tick(env));
        let mut made = std::mem::take(&mut self.made);
        for (output, index, packet) in made.drain(..) {
            self.lead(instance, (output, index), packet, 0);
            self.run(now, out, ObservationHook::Nothing);
        }
        self.made = made;
        due
    }

    /// Sets the link state of a port.
    pub fn set_link(&mut self, port: PortNo, up: bool, now: Nanos, out: &mut Outputs) {
        if let Some(instance) = self.loaded.graph.port(port) {
            self.with(instance, now, out, |block, env| {
                if let Lfb::Phy(phy) = block {
                    phy.set_link(up, env);
                }
            });
        }
    }

    /// Swaps the program with `other`. The old program first processes the frames in its queues, so
    /// no frame is processed by both programs.
    pub fn exchange(&mut self, other: &mut Loaded, now: Nanos, out: &mut Outputs) {
        for _ in 0..DRAIN_ROUNDS_MAX {
            if self.loaded.held() == 0 {
                break;
            }
            self.serve(now, out);
        }
        for instance in 0..self.loaded.blocks.len() {
            self.with(instance, now, out, |block, env| {
                if block.held() > 0 {
                    block.tick(env);
                }
            });
            for (_, _, packet) in std::mem::take(&mut self.made) {
                self.drop(instance, DropReason::QueueFull, 0);
                self.spare.push(packet);
            }
        }
        let is_back = other.generation < self.loaded.generation;
        let (newer, older) =
            if is_back { (&mut self.loaded, &mut *other) } else { (&mut *other, &mut self.loaded) };
        newer.take_over(older);
        std::mem::swap(&mut self.loaded, other);
        // Unused packets have the metadata layout of the old program.
        self.spare.clear();
    }
}

impl Forwarder for Interpreter {
    type Pending<'a> = ();

    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        for frame in batch.frames_mut() {
            self.receive(port, frame, now, out, ObservationHook::Nothing);
        }
        self.serve(now, out);
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        let mut due: Option<Nanos> = None;
        for instance in 0..self.loaded.blocks.len() {
            due = due.into_iter().chain(self.tick_block(instance, now, out)).min();
        }
        // Queues that feed each other may still contain frames.
        let waits = (self.loaded.held() > 0).then_some(now);
        due.into_iter().chain(waits).min()
    }
}

/// Returns the metadata by id.
fn listed(packet: &Packet, slots: &Slots) -> Vec<(u32, u128)> {
    packet.meta.iter().map(|(slot, value)| (slots.ids()[slot], value)).collect()
}
