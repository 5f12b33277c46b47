//! Frames that stay where they are until they are copied once, from ring to ring.
//!
//! Of each frame the first bytes are copied, and what is decided by the copy goes for the copy: it is
//! sent, with the rest of the frame behind it, so that whoever still writes to the frame changes no
//! header that was looked at. Where the forwarder needs frames, those it needs are copied as a whole
//! and go the way of all frames.
//!
//! Invariant: frames of one port leave by another in the order in which they came, those that were copied
//! as a whole among them.

use dataplane::forwarder::{Decided, Decision, Forwarder, SIGHTS_MAX, Sight};
use packet::frame::{FCS_BYTES, Frame, PortNo};
use packet::time::Nanos;
use ports::memif::receive::Views;
use ports::memif::view::View;
use ports::port::Parts;

use super::{BATCH_FRAMES, ForwardLoop, Turn};

/// Bytes of a frame by which it is decided: headers of most kinds.
const HEAD_BYTES: usize = 128;

/// The first bytes of frames, and what becomes of them.
pub(super) struct Scratch {
    heads: Heads,
    lengths: [usize; SIGHTS_MAX],
    decisions: [Decision; SIGHTS_MAX],
    /// Frames that were copied as a whole.
    frames: Vec<Frame>,
}

/// On lines of the cache of their own.
#[repr(align(64))]
struct Heads([[u8; HEAD_BYTES]; SIGHTS_MAX]);

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch {
            heads: Heads([[0; HEAD_BYTES]; SIGHTS_MAX]),
            lengths: [0; SIGHTS_MAX],
            decisions: [Decision::Dropped; SIGHTS_MAX],
            frames: Vec::new(),
        }
    }
}

impl Scratch {
    /// Copies the first bytes of the first frames that are shown, as many as the deficit pays for.
    #[inline]
    fn sight(&mut self, views: Views<'_>, deficit: &mut usize) -> usize {
        let mut count = 0;
        for view in views.iter().take(SIGHTS_MAX) {
            let cost = view.len() + FCS_BYTES;
            if cost > *deficit {
                break;
            }
            *deficit -= cost;
            view.copy_to(&mut self.heads.0[count]);
            self.lengths[count] = view.len();
            count += 1;
        }
        count
    }

    /// All of the frame at `place`, which is still shown.
    #[inline]
    fn parts<'a>(&'a self, views: Views<'a>, place: usize) -> Parts<'a> {
        let rest = match self.lengths[place] > HEAD_BYTES {
            true => views.get(place).after(HEAD_BYTES),
            false => View::of(&[]),
        };
        (View::of(&self.heads.0[place][..self.lengths[place].min(HEAD_BYTES)]), rest)
    }

    /// Copies whole frames; they are the first of its frames then.
    fn copy(&mut self, views: Views<'_>, places: std::ops::Range<usize>) -> &mut [Frame] {
        let count = places.len();
        if self.frames.len() < count {
            self.frames.resize_with(SIGHTS_MAX, Frame::default);
        }
        let mut frames = std::mem::take(&mut self.frames);
        for (frame, place) in frames.iter_mut().zip(places) {
            let (head, rest) = self.parts(views, place);
            write(frame, head, rest);
        }
        self.frames = frames;
        &mut self.frames[..count]
    }
}

/// Writes a frame of two parts.
fn write(frame: &mut Frame, head: View<'_>, rest: View<'_>) {
    frame.resize(head.len() + rest.len());
    let copied = head.copy_to(frame.bytes_mut());
    rest.copy_to(&mut frame.bytes_mut()[copied..]);
}

impl<F: Forwarder> ForwardLoop<F> {
    /// Serves a port until its deficit is used up or it has nothing more. False, and nothing is done,
    /// if its frames do not lie where they can be seen.
    pub(super) fn serve_in_place(&mut self, index: usize, now: Nanos, turn: &mut Turn) -> bool {
        loop {
            let lane = &mut self.lanes[index];
            let Some(port) = lane.port.in_place() else { return false };
            lane.shown = port.look(BATCH_FRAMES, now);
            if lane.shown == 0 {
                lane.deficit_bytes = 0;
                return true;
            }
            let mut decided = 0;
            while self.lanes[index].shown > 0 {
                let count = self.decide_in_place(index, now, turn);
                if count == 0 {
                    break;
                }
                decided += count;
            }
            self.flush();
            // What leaves by ports that have no memory of that kind.
            self.exhale(now, turn);
            turn.frames += decided;
            if self.lanes[index].shown > 0 {
                return true;
            }
        }
    }

    /// Decides some of the frames that a port shows and sends them, and returns how many: none if
    /// the deficit does not pay for one.
    fn decide_in_place(&mut self, index: usize, now: Nanos, turn: &mut Turn) -> usize {
        let lane = &mut self.lanes[index];
        let number = lane.number;
        let Some(port) = lane.port.in_place() else { return 0 };
        let count = self.scratch.sight(port.shown(), &mut lane.deficit_bytes);
        if count == 0 {
            return 0;
        }
        let Scratch { heads, lengths, decisions, .. } = &mut *self.scratch;
        let sights: [Sight<'_>; SIGHTS_MAX] = std::array::from_fn(|place| {
            let bytes = lengths[place];
            Sight { head: &heads.0[place][..bytes.min(HEAD_BYTES)], bytes }
        });
        let decided = self.forwarder.decide(number, &sights[..count], now, decisions);
        let done = match decided {
            Decided::Done(done) => {
                self.send_in_place(index, done, turn);
                done
            }
            Decided::Needs(needed) => {
                let frames = self.scratch.copy(port.shown(), 0..needed);
                self.forwarder.resume(frames, now, &mut self.outputs);
                needed
            }
        };
        let lane = &mut self.lanes[index];
        let Some(port) = lane.port.in_place() else { return 0 };
        if done < count {
            self.work.clear();
            for frame in self.scratch.copy(port.shown(), done..count) {
                self.work.push_swap(frame);
            }
            self.forwarder.forward(number, &mut self.work, now, &mut self.outputs);
        }
        port.release(count);
        lane.shown -= count;
        // What went the way of frames leaves before what stays in place goes on.
        if done < count || matches!(decided, Decided::Needs(_)) {
            self.exhale(now, turn);
        }
        count
    }

    /// Puts the first `count` frames that a port shows where their decisions say.
    #[inline]
    fn send_in_place(&mut self, index: usize, count: usize, turn: &mut Turn) {
        let mut left: u32 = ((1u64 << count) - 1) as u32;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let decision = self.scratch.decisions[first];
            let mut these: u32 = 0;
            for (place, other) in self.scratch.decisions[..count].iter().enumerate() {
                these |= u32::from(*other == decision) << place;
            }
            left &= !these;
            if let Decision::Output(port) = decision {
                turn.frames_sent += self.put(index, port, these);
            }
        }
    }

    /// Puts the frames whose bits are set to another port and returns how many it took.
    #[inline]
    fn put(&mut self, index: usize, number: PortNo, mut these: u32) -> usize {
        let Some(to) = self.lanes.iter().position(|lane| lane.number == number) else { return 0 };
        let Ok([from, to]) = self.lanes.get_disjoint_mut([index, to]) else { return 0 };
        let Some(source) = from.port.in_place() else { return 0 };
        let (views, count) = (source.shown(), these.count_ones() as usize);
        let nothing = View::of(&[]);
        let mut parts = [(nothing, nothing); SIGHTS_MAX];
        for part in &mut parts[..count] {
            *part = self.scratch.parts(views, these.trailing_zeros() as usize);
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

    /// Shows the other ends of all ports what was put.
    #[inline]
    fn flush(&mut self) {
        for lane in &mut self.lanes {
            if std::mem::take(&mut lane.has_put)
                && let Some(port) = lane.port.in_place()
            {
                port.flush();
            }
        }
    }
}
