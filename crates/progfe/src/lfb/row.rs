//! Frames that a block gets together, in the order in which they came.

use dataplane::forwarder::SIGHTS_MAX;

use super::{Packet, Verdict};

/// Frames that a block gets together, at most [`SIGHTS_MAX`].
pub struct Row<'a> {
    /// All that are under way.
    pub packets: &'a mut [Packet],
    /// Places of those that the block gets.
    pub members: &'a [u32],
    /// What becomes of each of these.
    pub verdicts: &'a mut [Verdict; SIGHTS_MAX],
    /// For each event that was told, the place in `packets` of the frame by which it happened.
    pub happened_by: &'a mut Vec<u32>,
}

impl Row<'_> {
    /// Does something with each.
    #[inline]
    pub fn each(&mut self, mut act: impl FnMut(&mut Packet) -> Verdict) {
        for (member, verdict) in self.members.iter().zip(self.verdicts.iter_mut()) {
            *verdict = act(&mut self.packets[*member as usize]);
        }
    }

    /// Does something with each, by its place in the row.
    #[inline]
    pub fn each_at(&mut self, mut act: impl FnMut(usize, &mut Packet) -> Verdict) {
        let mut place = 0;
        self.each(|packet| {
            place += 1;
            act(place - 1, packet)
        });
    }

    /// Notes that so many events were told, the new ones by the member at a place.
    #[inline]
    pub fn happened(&mut self, place: usize, events: usize) {
        if self.happened_by.len() != events {
            self.happened_by.resize(events, self.members[place]);
        }
    }

    /// Looks at each.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.members.iter().map(|member| &self.packets[*member as usize])
    }
}
