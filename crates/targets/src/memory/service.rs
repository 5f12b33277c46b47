//! Service time of a simulated target: a frame leaves when the target has spent its service time on
//! it.
//!
//! The target is a single server. It serves the frames of one turn of the forward loop in sequence,
//! so the last of k frames leaves k service times after the turn began. Invariant: at most the
//! frames of one turn are buffered, since the next turn begins when the last of them has left.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use netio::link::Link;
use netio::port::{Port, PortCounters, PortError, PortFacts};
use packet::frame::{Batch, Frame};
use packet::time::Nanos;

/// Frames that are passed to the link in one call.
const BATCH_FRAMES: usize = 64;

/// Service of one target's frames, shared by its ports.
#[derive(Clone, Default)]
pub(super) struct FrameService(Arc<Mutex<IterationFrames>>);

/// Frames of the current turn of the forward loop.
#[derive(Default)]
struct IterationFrames {
    /// Whether frames that are transmitted now belong to the turn.
    is_open: bool,
    began: Nanos,
    /// Service time of all frames of the turn.
    span: Nanos,
    /// Frames that the turn transmitted.
    transmitted: u64,
}

impl FrameService {
    /// Begins a turn: frames transmitted from now on wait for their service time.
    pub(super) fn begin(&self, now: Nanos) {
        *self.turn() =
            IterationFrames { is_open: true, began: now, span: Nanos::ZERO, transmitted: 0 };
    }

    /// Ends the turn, whose frames take `span` together.
    pub(super) fn end(&self, span: Nanos) {
        let mut turn = self.turn();
        (turn.is_open, turn.span) = (false, span);
    }

    /// Wraps a port so that the frames of a turn wait for their service time.
    pub(super) fn port(&self, inner: Box<dyn Port>) -> Box<dyn Port> {
        let (service, held) = (self.clone(), VecDeque::new());
        Box::new(ServedPort { inner, service, held, leaving: Batch::new(BATCH_FRAMES) })
    }

    fn turn(&self) -> MutexGuard<'_, IterationFrames> {
        self.0.lock().expect("no thread panics with it")
    }
}

impl IterationFrames {
    /// Returns when the frame at this place, from 1, leaves. The transmitted frames share the
    /// turn's duration equally, even if some were flooded and others dropped.
    fn due(&self, place: u64) -> Nanos {
        let after =
            u128::from(self.span.0) * u128::from(place) / u128::from(self.transmitted.max(1));
        self.began.saturating_add(Nanos(after as u64))
    }
}

/// A port of a simulated target that takes time for each frame.
struct ServedPort {
    inner: Box<dyn Port>,
    service: FrameService,
    /// Frames in service, each with its place in the turn.
    held: VecDeque<(u64, Frame)>,
    leaving: Batch,
}

impl ServedPort {
    /// Passes on the frames whose service has ended. Within a turn, the service time is not known
    /// yet.
    fn release(&mut self, now: Nanos) -> Result<(), PortError> {
        while !self.held.is_empty() {
            let turn = self.service.turn();
            if turn.is_open {
                break;
            }
            while self.leaving.room() > 0
                && self.held.front().is_some_and(|&(place, _)| turn.due(place) <= now)
            {
                let (_, mut frame) = self.held.pop_front().expect("there is a first one");
                self.leaving.push_swap(&mut frame);
            }
            drop(turn);
            if self.leaving.is_empty() {
                break;
            }
            // A simulated link takes every frame and counts those that it loses.
            self.inner.transmit(&mut self.leaving, now)?;
            self.leaving.clear();
        }
        Ok(())
    }
}

impl Port for ServedPort {
    fn facts(&self) -> &PortFacts {
        self.inner.facts()
    }

    fn receive(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        self.release(now)?;
        self.inner.receive(batch, now)
    }

    /// Takes every frame. Frames of a turn wait for their service time; frames of the control
    /// channel do not.
    fn transmit(&mut self, batch: &mut Batch, now: Nanos) -> Result<usize, PortError> {
        let mut turn = self.service.turn();
        if !turn.is_open {
            drop(turn);
            return self.inner.transmit(batch, now);
        }
        for frame in batch.frames_mut() {
            turn.transmitted += 1;
            self.held.push_back((turn.transmitted, std::mem::take(frame)));
        }
        Ok(batch.len())
    }

    fn counters(&mut self) -> PortCounters {
        self.inner.counters()
    }

    fn has_link(&self) -> bool {
        self.inner.has_link()
    }

    fn link(&self) -> Link {
        self.inner.link()
    }

    fn next_event(&self) -> Option<Nanos> {
        let due = self.held.front().map(|&(place, _)| self.service.turn().due(place));
        due.into_iter().chain(self.inner.next_event()).min()
    }
}
