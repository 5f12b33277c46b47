//! Processing of frames in groups: one copy per bucket, up to a limit.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 5.6. Each bucket gets its own copy of the
//! frame, as it was sent to the group; no bucket sees the changes of another. Groups of groups
//! multiply copies, so an action makes at most [`GROUP_COPIES_MAX`] copies of a frame.

use packet::frame::Frame;

use super::{ActionOutcome, Egress, EgressContext};
use crate::counter::DropReason;
use crate::forwarder::PacketInReason;
use crate::group::{Chosen, GroupNo};

/// Maximum number of buckets that one action executes for a frame, in all groups together. Further
/// buckets are counted as [`DropReason::GroupWorkDone`].
pub const GROUP_COPIES_MAX: usize = 4096;

impl Egress {
    /// Processes the frame in a group and consumes it.
    pub(super) fn run_group(
        &mut self,
        number: GroupNo,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        if self.depth == 0 {
            self.copies_left = GROUP_COPIES_MAX;
        }
        match self.groups.choose(number, frame.bytes()) {
            Chosen::NoGroup => self.drops.add(DropReason::NoSuchGroup),
            Chosen::None => self.drops.add(DropReason::NoLiveBucket),
            Chosen::One(place) => self.run_bucket(number, place, frame, way),
            Chosen::All(count) => {
                for place in 0..count {
                    if self.copies_left == 0 {
                        let left = (count - place) as u64;
                        return self.drops.add_many(DropReason::GroupWorkDone, left);
                    }
                    if place + 1 == count {
                        self.run_bucket(number, place, frame, way);
                    } else {
                        let mut copy = self.copy_of(frame);
                        self.run_bucket(number, place, &mut copy, way);
                        self.give_back(copy);
                    }
                }
            }
        }
    }

    fn run_bucket(
        &mut self,
        number: GroupNo,
        place: usize,
        frame: &mut Frame,
        way: &mut EgressContext,
    ) {
        if self.copies_left == 0 {
            return self.drops.add(DropReason::GroupWorkDone);
        }
        self.copies_left -= 1;
        let set = self.groups.open(number, place, frame.len());
        let set = set.expect("a group selects one of its buckets");
        let before = way.context;
        way.context.why = PacketInReason::Group;
        self.depth += 1;
        if self.run(&set, frame, false, way) == ActionOutcome::Nowhere {
            self.drops.add(DropReason::NoDestination);
        }
        self.depth -= 1;
        way.context = before;
    }
}
