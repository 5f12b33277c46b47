//! Frames that leave the tree: by a port, or to the slow path.

use dataplane::forwarder::{FrameHead, Outputs, SIGHTS_MAX, Sent};
use packet::frame::{Frame, PortNo};
use packet::header::ipv4;
use packet::time::Nanos;

use super::Compiled;
use super::tree::{End, Fate, Step, Tree, Value};
use crate::compiled_program::Loaded;
use crate::lfb::exceptions::TOLD_FRAMES_MAX;
use crate::lfb::{DropReason, Lfb, Packet};

impl Compiled {
    /// Returns true if the redirect queue has room for everything that these frames can produce.
    pub(super) fn has_room(&self, told_max: u64, frames: usize) -> bool {
        let room = TOLD_FRAMES_MAX.saturating_sub(self.one_by_one.told.frames.len());
        told_max.saturating_mul(frames as u64) <= room as u64
    }

    /// Decides frames that a port received, at most [`SIGHTS_MAX`].
    pub(super) fn decide_row(
        &mut self,
        port: PortNo,
        frames: &mut [Frame],
        now: Nanos,
        out: &mut Outputs,
    ) {
        let mut sights = [FrameHead { head: &[], bytes: 0 }; SIGHTS_MAX];
        for (sight, frame) in sights.iter_mut().zip(&*frames) {
            *sight = FrameHead { head: frame.bytes(), bytes: frame.len() };
        }
        let sights = &sights[..frames.len()];
        self.row.see(&mut self.tree, port, sights, &self.one_by_one);
        self.row.guess(&self.tree, &self.one_by_one);
        if self.conclude(sights, now) {
            self.send(frames, out);
        } else {
            self.go_on(frames, now, out);
        }
    }

    /// Moves the frames of the batch to their ends. Returns true if none needs the slow path.
    #[inline]
    pub(super) fn conclude(&mut self, sights: &[FrameHead<'_>], now: Nanos) -> bool {
        let Compiled { row, tree, one_by_one, walk, nowhere, .. } = self;
        let (told, happened_by) = walk.told();
        let is_plain = row.conclude(tree, sights, one_by_one, (told, nowhere), now);
        happened_by.append(&mut row.happened_by);
        is_plain
    }

    /// Sends the frames of a batch that does not need the slow path.
    #[inline]
    fn send(&mut self, frames: &mut [Frame], out: &mut Outputs) {
        let Compiled { row, tree, one_by_one, walk, .. } = self;
        one_by_one.account.received += frames.len() as u64;
        let mut left = 0;
        let mut place = 0;
        while place < frames.len() {
            let at = row.end(place);
            let end = &tree.ends[at as usize];
            let first = place;
            while place < frames.len() && row.end(place) == at {
                place += 1;
            }
            let Fate::Leaves(port, instance) = end.fate else { continue };
            for frame in &mut frames[first..place] {
                let is_done = end.change.apply(frame);
                debug_assert!(is_done, "the tree contains only changes with room");
                match out.send(port, frame) {
                    Sent::Queued => left += 1,
                    Sent::NoSuchPort => one_by_one.drop(instance as usize, DropReason::NoPort, 0),
                    Sent::QueueFull => {
                        one_by_one.drop(instance as usize, DropReason::PortQueueFull, 0);
                    }
                }
            }
        }
        one_by_one.account.left += left;
        walk.tell_plain(one_by_one, frames.len());
    }

    /// Sends the frames of a batch through the slow path.
    pub(super) fn go_on(&mut self, frames: &mut [Frame], now: Nanos, out: &mut Outputs) {
        let Compiled { row, tree, one_by_one, walk, plan, .. } = self;
        let Some(plan) = plan else { return };
        let enter = |place: usize, packet: &mut Packet, loaded: &Loaded| {
            let end = &tree.ends[row.end(place) as usize];
            if end.fate == Fate::Gone {
                return None;
            }
            become_as(end, tree, packet, loaded, row.found(place));
            Some(end.link)
        };
        walk.go_on((one_by_one, plan), frames, enter, now, out);
    }

    /// Serves queues that contain frames.
    pub(super) fn serve(&mut self, now: Nanos, out: &mut Outputs) {
        let Compiled { plan, one_by_one, .. } = self;
        for &queue in plan.iter().flat_map(|plan| &plan.queues) {
            if one_by_one.loaded.block(queue).is_some_and(|block| block.held() > 0) {
                one_by_one.tick_block(queue, now, out);
            }
        }
    }
}

/// Applies the steps of an end to a packet.
fn become_as(end: &End, tree: &Tree, packet: &mut Packet, loaded: &Loaded, found: u32) {
    let frames = &loaded.program.frames;
    for step in &end.steps {
        match *step {
            Step::Meta(slot, value) => {
                let value = match value {
                    Value::Constant(value) => value,
                    Value::Field(word) => word.read(packet.bytes()).into(),
                    Value::Found => found.into(),
                };
                packet.meta.set(usize::from(slot), value);
            }
            Step::Strip(count) => {
                packet.strip(usize::from(count), frames);
            }
            Step::Prepend(header) => {
                packet.prepend(&tree.headers[header as usize], frames);
            }
            Step::Lessen => {
                ipv4::decrement_ttl(packet.frame_mut().bytes_mut());
            }
            Step::Edit(instance) => {
                if let Some(Lfb::Edit(edit)) = loaded.block(instance as usize) {
                    edit.apply(packet, frames);
                }
            }
        }
    }
}
