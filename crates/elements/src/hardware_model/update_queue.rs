//! Writer of flow entries into the hardware: order and time of writes and activations, and of
//! barrier replies.
//!
//! One writer processes the changes that the agent has accepted, one after the other or in batches.
//! The [`Tcam`] determines the duration of each write. A change becomes active some time after it
//! is written. Batches begin at multiples of their interval and take the changes that are queued
//! then (OFLOPS-SUME, figure 8a). Time is an argument: the caller advances the writer, and the
//! writer returns when it has work.
//!
//! Invariants:
//! - The same changes at the same times with the same seed become active at the same times, however
//!   often the writer is called.
//! - No change is lost. Changes of one entry become active in the order in which they were
//!   accepted.

use std::collections::VecDeque;
use std::sync::Arc;

use dataplane::flow::FlowSpec;
use netio::wrap::rng::Chance;
use packet::time::Nanos;

use super::model::{Answers, Model};
use super::tcam::{FlowId, Tcam, Write};

/// A change that the agent has accepted.
#[derive(Debug, Clone)]
pub struct Change {
    /// Identity of the entry.
    pub id: FlowId,
    /// Distinguishes successive entries of the same identity.
    pub generation: u64,
    /// The new entry, or `None` to delete it.
    pub spec: Option<Box<FlowSpec>>,
}

#[derive(Debug)]
struct Queued {
    number: u64,
    ready_at: Nanos,
    change: Change,
}

/// A barrier that waits for earlier changes.
#[derive(Debug)]
struct WaitingBarrier<T> {
    before: u64,
    taken_at: Nanos,
    whose: T,
}

/// The writer. `T` identifies the owner of a barrier.
#[derive(Debug)]
pub struct Writer<T> {
    model: Arc<Model>,
    tcam: Tcam,
    chance: Chance,
    accepted: u64,
    /// Changes that have not begun and are not in the batch.
    queue: VecDeque<Queued>,
    /// The rest of the current batch.
    batch: VecDeque<Queued>,
    last_batch_at: Option<Nanos>,
    /// The change that is being written, and until when.
    writing: Option<(Nanos, Queued)>,
    free_at: Nanos,
    /// When a change was last written.
    written_at: Option<Nanos>,
    acting: VecDeque<(Nanos, Change)>,
    barriers: VecDeque<WaitingBarrier<T>>,
    replies: Vec<(Nanos, T)>,
}

impl<T> Writer<T> {
    /// Creates a writer for this model, with random choices from this seed.
    pub fn new(model: &Arc<Model>, seed: u64) -> Writer<T> {
        Writer {
            model: Arc::clone(model),
            tcam: Tcam::default(),
            chance: Chance::new(seed),
            accepted: 0,
            queue: VecDeque::new(),
            batch: VecDeque::new(),
            last_batch_at: None,
            writing: None,
            free_at: Nanos::ZERO,
            written_at: None,
            acting: VecDeque::new(),
            barriers: VecDeque::new(),
            replies: Vec::new(),
        }
    }

    /// Queues a change that the agent accepted at this time.
    pub fn accept(&mut self, change: Change, at: Nanos) {
        self.queue.push_back(Queued { number: self.accepted, ready_at: at, change });
        self.accepted += 1;
    }

    /// Queues a barrier that the agent processed at this time.
    pub fn barrier(&mut self, whose: T, at: Nanos) {
        match self.model.answers() {
            Answers::Taken => self.reply(whose, at),
            _ => {
                self.barriers.push_back(WaitingBarrier {
                    before: self.accepted,
                    taken_at: at,
                    whose,
                });
                self.answer_barriers();
            }
        }
    }

    /// Returns the number of changes that are not written yet, and of those that are written but
    /// not active.
    pub fn waiting(&self) -> (usize, usize) {
        let unwritten = self.queue.len() + self.batch.len() + usize::from(self.writing.is_some());
        (unwritten, self.acting.len())
    }

    /// Returns the number of barriers without reply.
    pub fn barriers(&self) -> usize {
        self.barriers.len() + self.replies.len()
    }

    /// Returns the number of written entries.
    pub fn entries(&self) -> usize {
        self.tcam.entries()
    }

    /// Advances to this time.
    pub fn advance(&mut self, now: Nanos) {
        loop {
            if let Some((until, done)) = self.writing.take_if(|writing| writing.0 <= now) {
                let acts_at = until.saturating_add(Nanos(self.model.hardware.activation_ns));
                self.acting.push_back((acts_at, done.change));
                (self.free_at, self.written_at) = (until, Some(until));
                self.answer_barriers();
            }
            if self.writing.is_some() || !self.begin(now) {
                return;
            }
        }
    }

    /// Returns the next change that is active by this time.
    pub fn acts(&mut self, now: Nanos) -> Option<Change> {
        let is_due = self.acting.front().is_some_and(|(at, _)| *at <= now);
        if is_due { self.acting.pop_front().map(|(_, change)| change) } else { None }
    }

    /// Returns the next barrier whose reply is due by this time.
    pub fn answered(&mut self, now: Nanos) -> Option<T> {
        let due = self.replies.iter().enumerate().filter(|(_, (at, _))| *at <= now);
        let first = due.min_by_key(|&(place, (at, _))| (*at, place)).map(|(place, _)| place)?;
        Some(self.replies.remove(first).1)
    }

    /// Returns the time of the next work; `None` if there is none.
    pub fn next_event(&self) -> Option<Nanos> {
        let written = match &self.writing {
            Some((until, _)) => Some(*until),
            None => self.next_start(),
        };
        let acts = self.acting.front().map(|(at, _)| *at);
        let replies = self.replies.iter().map(|(at, _)| *at);
        replies.chain(written).chain(acts).min()
    }

    /// Returns when writing of the next change begins.
    fn next_start(&self) -> Option<Nanos> {
        if !self.batch.is_empty() {
            return Some(self.free_at);
        }
        let ready = self.queue.front()?.ready_at.max(self.free_at);
        Some(if self.model.hardware.batch_rules == 0 { ready } else { self.batch_after(ready) })
    }

    /// Returns when the first batch after this time begins.
    fn batch_after(&self, ready: Nanos) -> Nanos {
        let interval = self.model.hardware.batch_interval_ns.max(1);
        let from = match self.last_batch_at {
            Some(last) => ready.0.max(last.0.saturating_add(1)),
            None => ready.0,
        };
        Nanos(from.div_ceil(interval).saturating_mul(interval))
    }

    /// Begins to write the next change if it is due. Returns whether it did.
    fn begin(&mut self, now: Nanos) -> bool {
        let Some(start) = self.next_start().filter(|start| *start <= now) else { return false };
        if self.batch.is_empty() && self.model.hardware.batch_rules > 0 {
            self.begin_batch(start);
        }
        let next = self.batch.pop_front().or_else(|| self.queue.pop_front());
        let Some(next) = next else { return false };
        let write = if next.change.spec.is_some() { Write::Put } else { Write::Take };
        let cost = self.tcam.write(next.change.id, write, &self.model.hardware);
        self.writing = Some((start.saturating_add(Nanos(cost)), next));
        true
    }

    fn begin_batch(&mut self, at: Nanos) {
        let count = self.queue.iter().take_while(|queued| queued.ready_at <= at).count();
        let count = count.min(self.model.hardware.batch_rules as usize);
        self.batch.extend(self.queue.drain(..count));
        (self.last_batch_at, self.free_at) = (Some(at), at);
        if self.model.shuffles() {
            self.shuffle();
        }
    }

    /// Shuffles the batch. Changes of one entry keep their order. Changes do not cross a barrier
    /// whose reply waits for them.
    fn shuffle(&mut self) {
        let batch = self.batch.make_contiguous();
        let mut from = 0;
        for barrier in self.barriers.iter().map(|barrier| barrier.before).chain([u64::MAX]) {
            let part = batch[from..].iter().take_while(|queued| queued.number < barrier).count();
            shuffle(&mut batch[from..from + part], &mut self.chance);
            from += part;
        }
    }

    /// Returns the number of the first change that is not written.
    fn first_unwritten(&self) -> u64 {
        let writing = self.writing.iter().map(|(_, queued)| queued.number);
        let waiting = self.batch.iter().chain(self.queue.front()).map(|queued| queued.number);
        writing.chain(waiting).min().unwrap_or(self.accepted)
    }

    fn answer_barriers(&mut self) {
        while let Some(barrier) = self.barriers.front() {
            if self.first_unwritten() < barrier.before {
                return;
            }
            let Some(WaitingBarrier { taken_at, whose, .. }) = self.barriers.pop_front() else {
                return;
            };
            let activation = match self.model.answers() {
                Answers::Acting => Nanos(self.model.hardware.activation_ns),
                _ => Nanos::ZERO,
            };
            let done = self.written_at.map_or(taken_at, |at| at.saturating_add(activation));
            self.reply(whose, done.max(taken_at));
        }
    }

    fn reply(&mut self, whose: T, at: Nanos) {
        let at = at.saturating_add(Nanos(self.model.barrier.delay_ns));
        self.replies.push((at, whose));
    }
}

/// Shuffles by Fisher and Yates, then restores the order of the changes of each entry.
fn shuffle(part: &mut [Queued], chance: &mut Chance) {
    for last in (1..part.len()).rev() {
        part.swap(last, chance.below(last as u64 + 1) as usize);
    }
    for place in 1..part.len() {
        let mut at = place;
        // The positions of an entry's changes stay random; their order among these positions does
        // not.
        for before in (0..place).rev() {
            let (one, other) = (&part[before], &part[at]);
            if one.change.id == other.change.id && one.number > other.number {
                part.swap(before, at);
                at = before;
            }
        }
    }
}

#[cfg(test)]
mod tests;
