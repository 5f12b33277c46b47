//! Forwarding in one thread: keys, lookups and plain outputs.
//!
//! Invariant: a worker writes only its own data, except through the engine.

use std::sync::Arc;

use packet::frame::{Batch, Frame, PortNo};
use packet::header::ethernet;
use packet::time::Nanos;

use super::SharedState;
use super::engine::PacketContext;
use crate::action::{Action, UNSET};
use crate::classifier::NO_ENTRY;
use crate::classifier::exact::BATCH_MAX;
use crate::counter::{DropReason, SharedDrops};
use crate::egress::{ActionOutcome, EgressContext, PortSettings};
use crate::fast::verdict::Verdict;
use crate::forwarder::{
    BatchDecision, Decision, Forwarder, FrameHead, Outputs, PendingBatch, SIGHTS_MAX, Sent,
};
use crate::key::wide::{self, OUTSIDE, Wide, WordSet};
use crate::key::{self, Key};
use crate::rewrite;
use crate::table::{FoundEntries, Lookup, PrefetchedLookup};

/// Group address of the spanning tree protocol (IEEE 802.1D).
const SPANNING_TREE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

/// Forwarding state of one thread.
#[derive(Debug)]
pub struct Worker {
    pub(super) lookup: Lookup,
    pub(super) shared: Arc<SharedState>,
    /// The current frames.
    stage: Box<LookupBatch>,
    /// The next frames, if they are known: the memory for their lookups is being prefetched.
    ahead: Box<LookupBatch>,
    /// Whether `ahead` has frames.
    is_ahead: bool,
    pub(super) drops: Arc<SharedDrops>,
    /// Whether there may be events about entries that the pipeline must process.
    pub(super) reached: bool,
}

/// Data that each step of a stage passes to the next.
#[derive(Debug)]
pub(super) struct LookupBatch {
    /// The initial fields of the frames.
    pub(super) begins: rewrite::Context,
    /// Number of frames with enough available bytes.
    seen: usize,
    /// Number of keys.
    count: usize,
    /// The wide words that entries match on.
    words: WordSet,
    /// The keys; a run of equal keys counts once.
    pub(super) keys: [Key; BATCH_MAX],
    /// The wide fields of each key, as far as entries match on them.
    pub(super) wide: [Wide; BATCH_MAX],
    /// For each frame, the index of its key, or `REFUSED`.
    pub(super) key_of: [u8; BATCH_MAX],
    refusals: [DropReason; BATCH_MAX],
    refused: usize,
    frames: [u64; BATCH_MAX],
    bytes: [u64; BATCH_MAX],
    foreseen: PrefetchedLookup,
    pub(super) found: FoundEntries,
    pub(super) verdicts: [Option<Verdict>; BATCH_MAX],
}

impl Default for LookupBatch {
    fn default() -> LookupBatch {
        LookupBatch {
            begins: rewrite::Context::default(),
            seen: 0,
            count: 0,
            words: 0,
            keys: [Key::ZERO; BATCH_MAX],
            wide: [Wide::ZERO; BATCH_MAX],
            key_of: [REFUSED; BATCH_MAX],
            refusals: [DropReason::TooShort; BATCH_MAX],
            refused: 0,
            frames: [0; BATCH_MAX],
            bytes: [0; BATCH_MAX],
            foreseen: PrefetchedLookup::default(),
            found: [0; BATCH_MAX],
            verdicts: [None; BATCH_MAX],
        }
    }
}

/// Marks a frame that does not go to the tables.
pub(super) const REFUSED: u8 = u8::MAX;

impl Worker {
    pub(super) fn new(lookup: Lookup, shared: Arc<SharedState>) -> Worker {
        let drops = shared.account();
        let (stage, ahead) = (Box::default(), Box::default());
        Worker { lookup, shared, stage, ahead, is_ahead: false, drops, reached: false }
    }

    /// Marks the worker as idle, so that table changes do not wait for it. Call this when no frames
    /// arrive for now.
    #[inline]
    pub fn rest(&self) {
        self.lookup.rest();
    }

    /// Returns the slot of the entry of table 0 that the first current frame matched.
    pub(super) fn found(&self) -> Option<usize> {
        let key = self.stage.key_of[0];
        let found = if key == REFUSED { None } else { Some(self.stage.found[usize::from(key)]) };
        found.filter(|place| *place != NO_ENTRY).map(|place| place as usize)
    }

    /// Processes at most [`BATCH_MAX`] frames with these initial fields.
    pub(super) fn forward_stage(
        &mut self,
        begins: rewrite::Context,
        frames: &mut [Frame],
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.stage.see(begins, frames, &self.lookup, &self.shared);
        self.stage.foresee(&self.lookup);
        self.stage.guess(&self.lookup);
        match self.look_up(now) {
            true => self.forward_single_output(frames, out),
            false => self.forward_slow_path(frames, now, out),
        }
    }

    /// Decides on frames in their receive buffers (see [`Forwarder::decide`]). Returns their number,
    /// and whether they need the engine.
    #[inline]
    pub(super) fn decide_heads(
        &mut self,
        port: PortNo,
        [sights, next]: [&[FrameHead<'_>]; 2],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> (usize, bool) {
        let begins = rewrite::Context::at(port);
        // If entries match on more fields since the frames were read, they are read again.
        if !self.is_ahead || self.ahead.words != self.lookup.asked(0).1 {
            self.lookup.begin();
            self.ahead.see(begins, sights, &self.lookup, &self.shared);
            self.ahead.foresee(&self.lookup);
            self.ahead.guess(&self.lookup);
        }
        std::mem::swap(&mut self.stage, &mut self.ahead);
        self.is_ahead = !next.is_empty();
        if self.is_ahead {
            self.ahead.see(begins, next, &self.lookup, &self.shared);
            self.ahead.foresee(&self.lookup);
        }
        let plain = self.look_up(now);
        if self.is_ahead {
            self.ahead.guess(&self.lookup);
        }
        let seen = self.stage.seen;
        if plain {
            self.apply_single_output(seen, decisions);
        }
        (seen, !plain)
    }

    /// Finds and counts the entries for the stage's keys. Returns whether every frame is dropped or
    /// leaves unchanged by one port.
    #[inline]
    fn look_up(&mut self, now: Nanos) -> bool {
        let stage = &mut *self.stage;
        stage.refusals[..stage.refused].iter().for_each(|why| self.drops.add(*why));
        let keys = stage.count;
        let wide = if stage.words == 0 { 0 } else { keys };
        let asked = (&stage.keys[..keys], &stage.wide[..wide]);
        self.lookup.conclude(0, asked, &mut stage.foreseen, &mut stage.found);
        let gates = &self.shared.gates;
        let mut plain = !gates.defers();
        for place in 0..keys {
            let (found, frames) = (stage.found[place], stage.frames[place]);
            let verdict = self.lookup.count(0, found, frames, stage.bytes[place], now);
            plain &= match verdict {
                Some(Verdict::Output(port)) => gates.is_plain(port.into()),
                Some(Verdict::Drop) => true,
                _ => false,
            };
            stage.verdicts[place] = verdict;
        }
        plain
    }

    /// Decides on the first `count` frames of a stage with plain verdicts.
    #[inline]
    fn apply_single_output(&mut self, count: usize, decisions: &mut [Decision; SIGHTS_MAX]) {
        for (decision, key) in decisions[..count].iter_mut().zip(self.stage.key_of) {
            *decision = Decision::Dropped;
            if key == REFUSED {
                continue;
            }
            match self.stage.verdicts[usize::from(key)] {
                Some(Verdict::Output(port)) if u32::from(port) == self.stage.begins.in_port => {
                    self.drops.add(DropReason::BackToIngress);
                }
                Some(Verdict::Output(port)) => *decision = Decision::Output(port.into()),
                _ => self.drops.add(DropReason::ByFlow),
            }
        }
    }

    /// Drops each frame or sends it to one port.
    #[inline]
    fn forward_single_output(&mut self, frames: &mut [Frame], out: &mut Outputs) {
        for (frame, key) in frames.iter_mut().zip(self.stage.key_of) {
            if key == REFUSED {
                continue;
            }
            match self.stage.verdicts[usize::from(key)] {
                Some(Verdict::Output(port)) if u32::from(port) == self.stage.begins.in_port => {
                    self.drops.add(DropReason::BackToIngress);
                }
                Some(Verdict::Output(port)) => {
                    if out.send(port.into(), frame) != Sent::Queued {
                        self.drops.add(DropReason::OutputQueueFull);
                    }
                }
                _ => self.drops.add(DropReason::ByFlow),
            }
        }
    }

    /// Executes the entries in the engine, in order.
    #[inline(never)]
    pub(super) fn forward_slow_path(
        &mut self,
        frames: &mut [Frame],
        now: Nanos,
        out: &mut Outputs,
    ) {
        let library = self.lookup.library();
        let programs = library.open();
        let flight =
            PacketContext { lookup: &self.lookup, stage: &self.stage, programs: &programs };
        let mut engine = self.shared.engine();
        engine.turn_to(self.lookup.edition());
        engine.forward(&flight, frames, now, out);
        self.reached |= std::mem::take(&mut engine.reached);
    }

    /// Executes actions for one frame in the engine.
    pub(super) fn run_by_engine(
        &mut self,
        actions: &[Action],
        frame: &mut Frame,
        keep: bool,
        way: &mut EgressContext,
    ) -> ActionOutcome {
        let library = self.lookup.library();
        let programs = library.open();
        let flight =
            PacketContext { lookup: &self.lookup, stage: &self.stage, programs: &programs };
        let mut engine = self.shared.engine();
        engine.turn_to(self.lookup.edition());
        let ran = engine.egress.run(actions, frame, keep, way);
        if engine.egress.defers {
            engine.leave(&flight, way);
        }
        self.reached |= std::mem::take(&mut engine.reached);
        ran
    }
}

impl LookupBatch {
    /// Adds frames with these initial fields: extracts their keys, and rejects those that are not
    /// for the tables.
    #[inline]
    fn see<S: VisibleFrame>(
        &mut self,
        begins: rewrite::Context,
        frames: &[S],
        lookup: &Lookup,
        shared: &SharedState,
    ) {
        self.begins = begins;
        self.words = lookup.asked(0).1;
        match self.words {
            0 => self.see_with::<false, S>(frames, shared),
            _ => self.see_with::<true, S>(frames, shared),
        }
    }

    /// Like `see`, with or without the wide fields that entries match on.
    #[inline]
    fn see_with<const WIDE: bool, S: VisibleFrame>(&mut self, frames: &[S], shared: &SharedState) {
        let port: PortNo = self.begins.in_port;
        let drop_fragments = shared.gates.drop_fragments();
        let settings = match shared.gates.is_choosy(port) {
            true => shared.engine().egress.settings(port),
            false => PortSettings::default(),
        };
        let ask_more = settings != PortSettings::default() || drop_fragments;
        let mut keys = 0;
        // A copy of the last key, so that the compiler does not read back what it just wrote.
        let mut last = Key::ZERO;
        self.refused = 0;
        self.seen = frames.len();
        for (place, frame) in frames.iter().enumerate() {
            let FrameHead { head, bytes } = frame.seen();
            if !S::WHOLE && head.len() < bytes && (WIDE || ask_more) {
                self.seen = place;
                break;
            }
            if (bytes < ethernet::HEADER_BYTES || ask_more)
                && let Some(why) = refusal(settings, drop_fragments, head)
            {
                self.refusals[self.refused] = why;
                self.refused += 1;
                self.key_of[place] = REFUSED;
                continue;
            }
            let key = match key::extract_plain(port, head, bytes) {
                Some(key) => key,
                None if S::WHOLE || head.len() == bytes => key::extract_any(port, head),
                None => {
                    self.seen = place;
                    break;
                }
            };
            let mut same = keys > 0 && key.is(&last);
            if WIDE {
                let wide = wide_fields(&self.begins, head, self.words);
                same = same && wide == self.wide[keys - 1];
                self.wide[if same { keys - 1 } else { keys }] = wide;
            }
            if !same {
                last = key;
                self.keys[keys] = key;
                self.frames[keys] = 0;
                self.bytes[keys] = 0;
                keys += 1;
            }
            self.key_of[place] = (keys - 1) as u8;
            self.frames[keys - 1] += 1;
            self.bytes[keys - 1] += bytes as u64;
        }
        self.count = keys;
    }

    /// Prefetches the memory that lookups read first.
    #[inline]
    fn foresee(&mut self, lookup: &Lookup) {
        lookup.foresee(0, &self.keys[..self.count], &mut self.foreseen);
    }

    /// Prefetches the memory that lookups read next.
    #[inline]
    fn guess(&mut self, lookup: &Lookup) {
        lookup.guess(0, &self.keys[..self.count], &self.foreseen, &mut self.found);
    }
}

/// A frame, or its visible part.
trait VisibleFrame {
    /// Whether the whole frame is always visible.
    const WHOLE: bool;

    /// Returns the visible part.
    fn seen(&self) -> FrameHead<'_>;
}

impl VisibleFrame for Frame {
    const WHOLE: bool = true;

    #[inline(always)]
    fn seen(&self) -> FrameHead<'_> {
        let head = self.bytes();
        FrameHead { head, bytes: head.len() }
    }
}

impl VisibleFrame for FrameHead<'_> {
    const WHOLE: bool = false;

    #[inline(always)]
    fn seen(&self) -> FrameHead<'_> {
        *self
    }
}

/// Returns the wide fields of a received frame that entries match on.
fn wide_fields(begins: &rewrite::Context, bytes: &[u8], words: WordSet) -> Wide {
    let mut wide = Wide::ZERO;
    if words & !OUTSIDE != 0 {
        wide::extract(bytes, words, &mut wide);
    }
    if words & OUTSIDE != 0 {
        wide.0[0] = begins.metadata;
        wide.0[1] = begins.tunnel_id;
        wide.0[2] = u64::from(begins.in_port) << 32 | u64::from(UNSET);
    }
    wide
}

/// Returns why a frame does not go to the tables, or `None`.
fn refusal(settings: PortSettings, drop_fragments: bool, bytes: &[u8]) -> Option<DropReason> {
    if bytes.len() < ethernet::HEADER_BYTES {
        return Some(DropReason::TooShort);
    }
    if settings.down {
        return Some(DropReason::PortDown);
    }
    let unwanted = if bytes[ethernet::DESTINATION] == SPANNING_TREE {
        settings.no_receive_spanning_tree
    } else {
        settings.no_receive
    };
    if unwanted {
        return Some(DropReason::NoReceive);
    }
    (drop_fragments && key::is_fragment(bytes)).then_some(DropReason::Fragment)
}

impl Forwarder for Worker {
    type Pending<'a> = WorkerBatch<'a>;

    fn forward(&mut self, port: PortNo, batch: &mut Batch, now: Nanos, out: &mut Outputs) {
        self.lookup.begin();
        for frames in batch.frames_mut().chunks_mut(BATCH_MAX) {
            self.forward_stage(rewrite::Context::at(port), frames, now, out);
        }
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
    ) -> BatchDecision<WorkerBatch<'_>> {
        match self.decide_heads(port, sights, now, decisions) {
            (count, false) => BatchDecision::Done(count),
            (count, true) => BatchDecision::Needs(count, WorkerBatch(self)),
        }
    }

    /// Releases frames from shaped queues. The pipeline handles timeouts of entries and addresses.
    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.shared.engine().egress.release(now, out)
    }
}

/// A batch that needs the engine.
pub struct WorkerBatch<'a>(&'a mut Worker);

impl PendingBatch for WorkerBatch<'_> {
    fn resume(self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        self.0.forward_slow_path(frames, now, out);
    }
}
