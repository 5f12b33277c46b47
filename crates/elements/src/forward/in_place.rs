//! Forwarding of frames that stay in place until they are copied once, from ring to ring.
//!
//! - The first bytes of each frame are copied. The decision is made on this copy, and the copy is
//!   sent, followed by the rest of the frame. A writer that still modifies the frame therefore
//!   cannot change an inspected header.
//! - A forwarder that changes headers writes to that copy.
//! - Frames that the forwarder needs as a whole are copied and take the regular path.
//! - The next frames are read while the current ones are decided, so that the data for their
//!   lookups is prefetched.
//!
//! Invariant: frames from one port to another keep their order, including those that were copied as
//! a whole.

use std::ops::Range;

use dataplane::forwarder::{
    BatchDecision, Decision, Forwarder, FrameHead, GROWS_MAX, PendingBatch, SIGHTS_MAX,
};
use netio::in_place::View;
use netio::in_place::Views;
use netio::port::FrameParts;
use packet::frame::{FCS_BYTES, Frame, PortNo};
use packet::time::Nanos;

use super::{BATCH_FRAMES, ForwardLoop, Turn};

/// Bytes of a frame on which it is decided: the headers of most kinds of frames.
const HEAD_BYTES: usize = 128;

/// Working memory for the frames of a port.
pub(super) struct Scratch {
    /// The current frames and the next ones.
    rows: [Box<FrameHeads>; 2],
    decisions: [Decision; SIGHTS_MAX],
    /// Frames that were copied as a whole.
    frames: Vec<Frame>,
}

/// The first bytes of consecutive frames.
struct FrameHeads {
    heads: Heads,
    /// Where they begin.
    starts: [usize; SIGHTS_MAX],
    /// Bytes of the frames from where they began when received.
    lengths: [usize; SIGHTS_MAX],
    count: usize,
}

/// Cache-line aligned, with headroom.
#[repr(align(64))]
struct Heads([[u8; GROWS_MAX + HEAD_BYTES]; SIGHTS_MAX]);

impl Default for Scratch {
    fn default() -> Scratch {
        let row = || {
            let heads = Heads([[0; GROWS_MAX + HEAD_BYTES]; SIGHTS_MAX]);
            let (starts, lengths) = ([GROWS_MAX; SIGHTS_MAX], [0; SIGHTS_MAX]);
            Box::new(FrameHeads { heads, starts, lengths, count: 0 })
        };
        let decisions = [Decision::Dropped; SIGHTS_MAX];
        Scratch { rows: [row(), row()], decisions, frames: Vec::new() }
    }
}

impl FrameHeads {
    /// Copies the first bytes of visible frames from index `from`, as many as the deficit covers.
    #[inline]
    fn see(&mut self, views: Views<'_>, from: usize, deficit: &mut usize) {
        self.count = 0;
        for place in from..views.len().min(from + SIGHTS_MAX) {
            let view = views.get(place);
            let cost = view.len() + FCS_BYTES;
            if cost > *deficit {
                break;
            }
            *deficit -= cost;
            view.copy_to(&mut self.heads.0[self.count][GROWS_MAX..]);
            self.starts[self.count] = GROWS_MAX;
            self.lengths[self.count] = view.len();
            self.count += 1;
        }
    }

    /// Returns the heads for the forwarder.
    #[inline]
    fn sights(&self) -> [FrameHead<'_>; SIGHTS_MAX] {
        std::array::from_fn(|place| FrameHead {
            head: self.head(place),
            bytes: self.lengths[place],
        })
    }

    #[inline]
    fn head(&self, place: usize) -> &[u8] {
        &self.heads.0[place][self.starts[place]..GROWS_MAX + self.lengths[place].min(HEAD_BYTES)]
    }

    /// Rewrites the headers of the frames that are sent out.
    fn rewrite(&mut self, decisions: &[Decision], batch: &impl PendingBatch) {
        for (place, decision) in decisions.iter().enumerate() {
            if let Decision::Output(_) = decision {
                let bytes = self.lengths[place];
                let head = &mut self.heads.0[place][..GROWS_MAX + bytes.min(HEAD_BYTES)];
                let (start, left) = batch.rewrite(place, head, bytes);
                self.starts[place] = start;
                self.lengths[place] = left + start - GROWS_MAX;
            }
        }
    }

    /// Returns the complete frame at a position of the row, which starts at index `from` of the
    /// visible frames.
    #[inline]
    fn parts<'a>(&'a self, views: Views<'a>, from: usize, place: usize) -> FrameParts<'a> {
        let rest = match self.lengths[place] > HEAD_BYTES {
            true => views.get(from + place).after(HEAD_BYTES),
            false => View::of(&[]),
        };
        (View::of(self.head(place)), rest)
    }
}

impl Scratch {
    /// Copies frames of the first row as a whole into `frames`, and returns them.
    fn copy(&mut self, views: Views<'_>, from: usize, places: Range<usize>) -> &mut [Frame] {
        let count = places.len();
        if self.frames.len() < count {
            self.frames.resize_with(SIGHTS_MAX, Frame::default);
        }
        for (frame, place) in self.frames.iter_mut().zip(places) {
            let (head, rest) = self.rows[0].parts(views, from, place);
            write(frame, head, rest);
        }
        &mut self.frames[..count]
    }
}

/// Writes a frame that consists of two parts.
fn write(frame: &mut Frame, head: View<'_>, rest: View<'_>) {
    frame.resize(head.len() + rest.len());
    let copied = head.copy_to(frame.bytes_mut());
    rest.copy_to(&mut frame.bytes_mut()[copied..]);
}

impl<F: Forwarder> ForwardLoop<F> {
    /// Serves a port until its deficit is used up or it has no more frames. Returns false, without
    /// effect, if its frames are not visible in place.
    pub(super) fn serve_in_place(&mut self, index: usize, now: Nanos, turn: &mut Turn) -> bool {
        loop {
            let forward_port = &mut self.forward_ports[index];
            let Some(port) = forward_port.port.in_place() else { return false };
            forward_port.shown = port.look(BATCH_FRAMES, now);
            if forward_port.shown == 0 {
                forward_port.deficit_bytes = 0;
                return true;
            }
            self.scratch.rows[1].see(port.shown(), 0, &mut forward_port.deficit_bytes);
            let mut decided = 0;
            loop {
                match self.decide_in_place(index, decided, now, turn) {
                    0 => break,
                    count => decided += count,
                }
            }
            let forward_port = &mut self.forward_ports[index];
            if let Some(port) = forward_port.port.in_place() {
                port.release(decided);
            }
            forward_port.shown -= decided;
            let is_over = forward_port.shown > 0;
            self.flush();
            // Transmits frames for ports without shared memory.
            self.transmit_frames(now, turn);
            turn.frames += decided;
            if is_over {
                return true;
            }
        }
    }

    /// Decides and sends the frames of the second row, which starts at index `from` of the visible
    /// frames. Reads the following frames into the second row. Returns how many were decided.
    fn decide_in_place(&mut self, index: usize, from: usize, now: Nanos, turn: &mut Turn) -> usize {
        let forward_port = &mut self.forward_ports[index];
        let number = forward_port.number;
        let Some(port) = forward_port.port.in_place() else { return 0 };
        let Scratch { rows, decisions, .. } = &mut *self.scratch;
        rows.swap(0, 1);
        let [row, next] = rows;
        let count = row.count;
        if count == 0 {
            return 0;
        }
        next.see(port.shown(), from + count, &mut forward_port.deficit_bytes);
        let (sights, after) = (row.sights(), next.sights());
        let sights = [&sights[..count], &after[..next.count]];
        let (done, is_in_place) = match self.forwarder.decide(number, sights, now, decisions) {
            BatchDecision::Done(done) => (done, true),
            BatchDecision::Rewrites(done, batch) => {
                row.rewrite(&decisions[..done], &batch);
                (done, true)
            }
            BatchDecision::Needs(needed, batch) => {
                let frames = self.scratch.copy(port.shown(), from, 0..needed);
                batch.resume(frames, now, &mut self.outputs);
                (needed, false)
            }
        };
        if is_in_place {
            self.send_in_place(index, from, done, turn);
        }
        if done < count
            && let Some(port) = self.forward_ports[index].port.in_place()
        {
            self.work.clear();
            for frame in self.scratch.copy(port.shown(), from, done..count) {
                self.work.push_swap(frame);
            }
            self.forwarder.forward(number, &mut self.work, now, &mut self.outputs);
        }
        // Frames on the regular path leave before later frames in place.
        if done < count || !is_in_place {
            self.flush();
            self.transmit_frames(now, turn);
        }
        count
    }

    /// Sends the first `count` frames of the first row as decided.
    #[inline]
    fn send_in_place(&mut self, index: usize, from: usize, count: usize, turn: &mut Turn) {
        let mut left: u32 = ((1u64 << count) - 1) as u32;
        while left != 0 {
            let decision = self.scratch.decisions[left.trailing_zeros() as usize];
            let mut these: u32 = 0;
            for (place, other) in self.scratch.decisions[..count].iter().enumerate() {
                these |= u32::from(*other == decision) << place;
            }
            left &= !these;
            if let Decision::Output(port) = decision {
                turn.frames_sent += self.put([index, from], port, these);
            }
        }
    }

    /// Puts the frames whose bits are set into another port. Returns how many it accepted.
    #[inline]
    fn put(&mut self, [index, from]: [usize; 2], number: PortNo, mut these: u32) -> usize {
        let Some(to) =
            self.forward_ports.iter().position(|forward_port| forward_port.number == number)
        else {
            return 0;
        };
        let Ok([forward_port, to]) = self.forward_ports.get_disjoint_mut([index, to]) else {
            return 0;
        };
        let Some(source) = forward_port.port.in_place() else { return 0 };
        let (views, count) = (source.shown(), these.count_ones() as usize);
        let nothing = View::of(&[]);
        let mut parts = [(nothing, nothing); SIGHTS_MAX];
        for part in &mut parts[..count] {
            *part = self.scratch.rows[0].parts(views, from, these.trailing_zeros() as usize);
            these &= these - 1;
        }
        let parts = &parts[..count];
        let Some(port) = to.port.in_place() else {
            let queued = parts.iter().filter(|(head, rest)| {
                let slot = self.outputs.slot(number);
                slot.map(|frame| write(frame, *head, *rest)).is_some()
            });
            to.drops.transmit_full += (count - queued.count()) as u64;
            return 0;
        };
        let taken = port.put(parts);
        to.drops.transmit_full += (count - taken) as u64;
        to.has_put = true;
        taken
    }

    /// Makes the frames that were put visible to the peers of all ports.
    #[inline]
    fn flush(&mut self) {
        for forward_port in &mut self.forward_ports {
            if std::mem::take(&mut forward_port.has_put)
                && let Some(port) = forward_port.port.in_place()
            {
                port.flush();
            }
        }
    }
}
