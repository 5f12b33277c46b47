//! Published and staged versions of groups and meters.
//!
//! Invariant: a worker with tables of an edition uses the groups and meters of the same edition.
//! What both versions share has common counters and meter state.

use super::engine::Engine;
use crate::egress::Egress;
use crate::fast::versioned::TableVersion;
use crate::group::GroupTable;
use crate::meter::MeterTable;

/// The version that is not in use now.
#[derive(Debug)]
pub(super) struct SpareVersion {
    pub(super) groups: GroupTable,
    pub(super) meters: MeterTable,
    /// The edition of this version.
    edition: TableVersion,
    /// Whether this is the staged version of a bundle.
    is_next: bool,
}

impl Engine {
    /// Returns groups and meters to change: the current ones or, in a bundle, those of the next
    /// edition.
    pub(super) fn spread(
        &mut self,
        edition: Option<TableVersion>,
    ) -> (&mut GroupTable, &mut MeterTable) {
        let Egress { groups, meters, .. } = &mut self.egress;
        let Some(edition) = edition else { return (groups, meters) };
        let next = self.other.get_or_insert_with(|| {
            let (groups, meters) = (groups.clone(), meters.clone());
            Box::new(SpareVersion { groups, meters, edition, is_next: true })
        });
        (&mut next.groups, &mut next.meters)
    }

    /// Returns the groups with all changes, including staged ones.
    pub(super) fn groups(&self) -> &GroupTable {
        self.other.as_ref().map_or(self.egress.groups(), |other| &other.groups)
    }

    /// Returns the meters with all changes, including staged ones.
    pub(super) fn meters(&self) -> &MeterTable {
        self.other.as_ref().map_or(&self.egress.meters, |other| &other.meters)
    }

    /// Selects the version of an edition. Call this before frames are forwarded by tables of that
    /// edition.
    #[inline]
    pub(super) fn turn_to(&mut self, edition: TableVersion) {
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

    /// Commits the staged version for all workers, and returns the old version to free.
    pub(super) fn keep_spread(&mut self) -> Option<Box<SpareVersion>> {
        if self.other.as_ref().is_some_and(|other| other.is_next) {
            self.swap();
        }
        self.other.take()
    }
}

impl SpareVersion {
    /// Frees the contents within a budget, and returns whether nothing is left.
    pub(super) fn free_some(&mut self, budget: &mut usize) -> bool {
        self.groups.free_some(budget) && self.meters.free_some(budget)
    }
}
