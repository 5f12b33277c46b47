//! Batches of frames that a block processes together, in arrival order.

use dataplane::forwarder::SIGHTS_MAX;

use super::{Packet, Verdict};

/// A batch of frames, at most [`SIGHTS_MAX`].
pub struct Row<'a> {
    /// All packets in the graph.
    pub packets: &'a mut [Packet],
    /// Indices of the packets in this batch.
    pub members: &'a [u32],
    /// Result of each packet in this batch.
    pub verdicts: &'a mut [Verdict; SIGHTS_MAX],
    /// For each reported event, the index in `packets` of the frame that caused it.
    pub happened_by: &'a mut Vec<u32>,
}

impl Row<'_> {
    /// Processes each packet with a function.
    #[inline]
    pub fn each(&mut self, mut act: impl FnMut(&mut Packet) -> Verdict) {
        for (member, verdict) in self.members.iter().zip(self.verdicts.iter_mut()) {
            *verdict = act(&mut self.packets[*member as usize]);
        }
    }

    /// Processes each packet with a function that also gets its position in the batch.
    #[inline]
    pub fn each_at(&mut self, mut act: impl FnMut(usize, &mut Packet) -> Verdict) {
        let mut place = 0;
        self.each(|packet| {
            place += 1;
            act(place - 1, packet)
        });
    }

    /// Attributes new events to the member at a position; `events` is the total number of events.
    #[inline]
    pub fn happened(&mut self, place: usize, events: usize) {
        if self.happened_by.len() != events {
            self.happened_by.resize(events, self.members[place]);
        }
    }

    /// Returns the packets of the batch.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.members.iter().map(|member| &self.packets[*member as usize])
    }
}
