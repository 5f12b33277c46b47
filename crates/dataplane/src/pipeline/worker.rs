//! What forwards: keys, lookups and plain outputs of one thread's frames.
//!
//! Invariant: what a worker writes without the engine is its own.

use std::sync::Arc;

use packet::frame::{Batch, Frame, PortNo};
use packet::header::ethernet;
use packet::time::Nanos;

use super::Shared;
use super::engine::Flight;
use crate::action::{Action, UNSET};
use crate::classifier::Verdict;
use crate::classifier::exact::BATCH_MAX;
use crate::counter::{DropReason, SharedDrops};
use crate::egress::{PortSettings, Ran, Way};
use crate::forwarder::{Decided, Decision, Forwarder, Outputs, SIGHTS_MAX, Sent, Sight};
use crate::key::wide::{self, OUTSIDE, Wide, WordSet};
use crate::key::{self, Key};
use crate::rewrite;
use crate::table::Lookup;

/// Group address of the spanning tree protocol (IEEE 802.1D).
const SPANNING_TREE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

/// One thread's way of forwarding.
#[derive(Debug)]
pub struct Worker {
    pub(super) lookup: Lookup,
    pub(super) shared: Arc<Shared>,
    stage: Stage,
    pub(super) drops: Arc<SharedDrops>,
    /// Whether there may be events about entries that the pipeline has to look at.
    pub(super) reached: bool,
}

/// What one stage hands to the next.
#[derive(Debug)]
pub(super) struct Stage {
    /// The fields with which its frames begin.
    pub(super) begins: rewrite::Context,
    /// The keys, a run of equal ones once.
    pub(super) keys: [Key; BATCH_MAX],
    /// The wide fields that belong to each, as far as they are asked for.
    pub(super) wide: Box<[Wide; BATCH_MAX]>,
    /// For each frame, the place of its key, or `REFUSED`.
    pub(super) key_of: [u8; BATCH_MAX],
    frames: [u64; BATCH_MAX],
    bytes: [u64; BATCH_MAX],
    pub(super) found: [u32; BATCH_MAX],
    pub(super) verdicts: [Option<Verdict>; BATCH_MAX],
}

/// A frame that does not reach the tables and is already counted.
pub(super) const REFUSED: u8 = u8::MAX;

impl Worker {
    pub(super) fn new(lookup: Lookup, shared: Arc<Shared>) -> Worker {
        let drops = shared.account();
        let stage = Stage {
            begins: rewrite::Context::default(),
            keys: [Key::ZERO; BATCH_MAX],
            wide: Box::new([Wide::ZERO; BATCH_MAX]),
            key_of: [REFUSED; BATCH_MAX],
            frames: [0; BATCH_MAX],
            bytes: [0; BATCH_MAX],
            found: [0; BATCH_MAX],
            verdicts: [None; BATCH_MAX],
        };
        Worker { lookup, shared, stage, drops, reached: false }
    }

    /// To be called when no frames come for now: who changes the tables need not wait for it.
    #[inline]
    pub fn rest(&self) {
        self.lookup.rest();
    }

    /// Takes at most [`BATCH_MAX`] frames that begin with these fields through all stages.
    pub(super) fn forward_stage(
        &mut self,
        begins: rewrite::Context,
        frames: &mut [Frame],
        now: Nanos,
        out: &mut Outputs,
    ) {
        self.stage.begins = begins;
        let (keys, _) = self.extract(begins.in_port, frames);
        match self.look_up(keys, now) {
            true => self.send_plainly(frames, out),
            false => self.send_by_engine(frames, now, out),
        }
    }

    /// Finds and counts the entries for the stage's keys, and says whether they drop every frame or
    /// let it leave unchanged by one port.
    #[inline]
    fn look_up(&mut self, keys: usize, now: Nanos) -> bool {
        let wide = if self.lookup.asked(0).1 == 0 { 0 } else { keys };
        let stage = &mut self.stage;
        self.lookup.lookup(0, &stage.keys[..keys], &stage.wide[..wide], &mut stage.found);
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

    /// Says of the first `count` frames of a stage of plain verdicts what becomes of them.
    #[inline]
    fn decide_plainly(&mut self, count: usize, decisions: &mut [Decision; SIGHTS_MAX]) {
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

    /// Drops frames or sends them out of one port each.
    #[inline]
    fn send_plainly(&mut self, frames: &mut [Frame], out: &mut Outputs) {
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

    /// Lets the engine do what the entries say, in order.
    #[inline(never)]
    fn send_by_engine(&mut self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        let library = self.lookup.library();
        let programs = library.open();
        let flight = Flight { lookup: &self.lookup, stage: &self.stage, programs: &programs };
        let mut engine = self.shared.engine();
        engine.forward(&flight, frames, now, out);
        self.reached |= std::mem::take(&mut engine.reached);
    }

    /// Lets the engine do actions with one frame.
    pub(super) fn run_by_engine(
        &mut self,
        actions: &[Action],
        frame: &mut Frame,
        keep: bool,
        way: &mut Way,
    ) -> Ran {
        let library = self.lookup.library();
        let programs = library.open();
        let flight = Flight { lookup: &self.lookup, stage: &self.stage, programs: &programs };
        let mut engine = self.shared.engine();
        let ran = engine.egress.run(actions, frame, keep, way);
        if engine.egress.defers {
            engine.leave(&flight, way);
        }
        self.reached |= std::mem::take(&mut engine.reached);
        ran
    }

    /// Finds the frames' keys, counts and refuses those that are not for the tables, and returns
    /// how many different keys in a row there are, and of how many frames enough was seen.
    #[inline]
    fn extract<S: Seen>(&mut self, port: PortNo, frames: &[S]) -> (usize, usize) {
        match self.lookup.asked(0).1 {
            0 => self.extract_with::<false, S>(port, frames, 0),
            words => self.extract_with::<true, S>(port, frames, words),
        }
    }

    /// The same, with or without the wide fields that entries ask for.
    #[inline]
    fn extract_with<const WIDE: bool, S: Seen>(
        &mut self,
        port: PortNo,
        frames: &[S],
        words: WordSet,
    ) -> (usize, usize) {
        let drop_fragments = self.shared.gates.drop_fragments();
        let settings = match self.shared.gates.is_choosy(port) {
            true => self.shared.engine().egress.settings(port),
            false => PortSettings::default(),
        };
        let ask_more = settings != PortSettings::default() || drop_fragments;
        let stage = &mut self.stage;
        let mut keys = 0;
        // The last key, where the compiler need not read back what it just wrote.
        let mut last = Key::ZERO;
        for (place, frame) in frames.iter().enumerate() {
            let Sight { head, bytes } = frame.seen();
            if !S::WHOLE && head.len() < bytes && (WIDE || ask_more) {
                return (keys, place);
            }
            if (bytes < ethernet::HEADER_BYTES || ask_more)
                && let Some(why) = refusal(settings, drop_fragments, head)
            {
                self.drops.add(why);
                stage.key_of[place] = REFUSED;
                continue;
            }
            let key = match key::extract_plain(port, head, bytes) {
                Some(key) => key,
                None if S::WHOLE || head.len() == bytes => key::extract_any(port, head),
                None => return (keys, place),
            };
            let mut same = keys > 0 && key.is(&last);
            if WIDE {
                let wide = wide_fields(&stage.begins, head, words);
                same = same && wide == stage.wide[keys - 1];
                stage.wide[if same { keys - 1 } else { keys }] = wide;
            }
            if !same {
                last = key;
                stage.keys[keys] = key;
                stage.frames[keys] = 0;
                stage.bytes[keys] = 0;
                keys += 1;
            }
            stage.key_of[place] = (keys - 1) as u8;
            stage.frames[keys - 1] += 1;
            stage.bytes[keys - 1] += bytes as u64;
        }
        (keys, frames.len())
    }
}

/// A frame, or as much of it as is seen.
trait Seen {
    /// Whether it is always all of it.
    const WHOLE: bool;

    /// What is seen.
    fn seen(&self) -> Sight<'_>;
}

impl Seen for Frame {
    const WHOLE: bool = true;

    #[inline(always)]
    fn seen(&self) -> Sight<'_> {
        let head = self.bytes();
        Sight { head, bytes: head.len() }
    }
}

impl Seen for Sight<'_> {
    const WHOLE: bool = false;

    #[inline(always)]
    fn seen(&self) -> Sight<'_> {
        *self
    }
}

/// The wide fields that are asked for of a frame that comes in.
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

/// Why a frame does not reach the tables, if so.
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
        sights: &[Sight<'_>],
        now: Nanos,
        decisions: &mut [Decision; SIGHTS_MAX],
    ) -> Decided {
        self.lookup.begin();
        self.stage.begins = rewrite::Context::at(port);
        let (keys, seen) = self.extract(port, sights);
        if !self.look_up(keys, now) {
            return Decided::Needs(seen);
        }
        self.decide_plainly(seen, decisions);
        Decided::Done(seen)
    }

    fn resume(&mut self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        self.send_by_engine(frames, now, out);
    }

    /// Lets go what waits in shaped queues; what entries and addresses are due is the pipeline's.
    fn tick(&mut self, now: Nanos, out: &mut Outputs) -> Option<Nanos> {
        self.shared.engine().egress.release(now, out)
    }
}
