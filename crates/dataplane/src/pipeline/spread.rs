//! Groups and meters as they are, and as a bundle makes them.
//!
//! Invariant: whoever forwards by tables of an edition goes by the groups and meters of that one. What
//! both have in common counts and measures for both.

use super::engine::Engine;
use crate::egress::Egress;
use crate::fast::aside::Edition;
use crate::group::GroupTable;
use crate::meter::MeterTable;

/// Those that are not in use at the moment.
#[derive(Debug)]
pub(super) struct Spread {
    pub(super) groups: GroupTable,
    pub(super) meters: MeterTable,
    /// The edition that they belong to.
    edition: Edition,
    /// Whether that is what a bundle makes of them.
    is_next: bool,
}

impl Engine {
    /// Groups and meters, to be changed at once or, in a bundle, in the edition where it is seen.
    pub(super) fn spread(
        &mut self,
        edition: Option<Edition>,
    ) -> (&mut GroupTable, &mut MeterTable) {
        let Egress { groups, meters, .. } = &mut self.egress;
        let Some(edition) = edition else { return (groups, meters) };
        let next = self.other.get_or_insert_with(|| {
            let (groups, meters) = (groups.clone(), meters.clone());
            Box::new(Spread { groups, meters, edition, is_next: true })
        });
        (&mut next.groups, &mut next.meters)
    }

    /// The groups as they were changed last.
    pub(super) fn groups(&self) -> &GroupTable {
        self.other.as_ref().map_or(self.egress.groups(), |other| &other.groups)
    }

    /// The meters as they were changed last.
    pub(super) fn meters(&self) -> &MeterTable {
        self.other.as_ref().map_or(&self.egress.meters, |other| &other.meters)
    }

    /// To be called before frames are forwarded by tables of this edition.
    #[inline]
    pub(super) fn turn_to(&mut self, edition: Edition) {
        if self.other.as_ref().is_some_and(|other| other.edition == edition) {
            self.swap();
        }
    }

    #[cold]
    fn swap(&mut self) {
        if let Some(other) = &mut self.other {
            other.groups.take_ports(&self.egress.groups);
            std::mem::swap(&mut other.groups, &mut self.egress.groups);
            std::mem::swap(&mut other.meters, &mut self.egress.meters);
            other.edition = other.edition.next();
            other.is_next = !other.is_next;
        }
    }

    /// Goes on with what a bundle made of them: everybody sees that. Returns what is left to be freed.
    pub(super) fn keep_spread(&mut self) -> Option<Box<Spread>> {
        if self.other.as_ref().is_some_and(|other| other.is_next) {
            self.swap();
        }
        self.other.take()
    }
}

impl Spread {
    /// Frees what it holds as far as the budget goes, and returns whether nothing is left.
    pub(super) fn free_some(&mut self, budget: &mut usize) -> bool {
        self.groups.free_some(budget) && self.meters.free_some(budget)
    }
}
