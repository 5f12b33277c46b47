//! A copy of the tables in another data plane: recorded changes of entries, and its counters.

use std::fmt::Debug;
use std::sync::Arc;

use packet::time::Nanos;

use super::Tables;
use crate::counter::DropCounters;
use crate::flow::Part;
use crate::instruction::Instructions;
use crate::matching::Match;

/// What decides the frames of an entry.
#[derive(Debug, Clone)]
pub struct FlowSource {
    /// The table of the entry.
    pub table: u8,
    /// The part of that table; the exact part precedes the other one at the same rank.
    pub part: Part,
    /// The frames that the entry matches.
    pub matching: Match,
    /// Precedence among the table's entries, highest first.
    pub rank: u32,
    /// Order of arrival: among equal ranks of a part, the earlier entry precedes.
    pub arrival: u32,
    /// Instructions.
    pub instructions: Arc<Instructions>,
}

/// Counters of another data plane, which statistics of the tables include.
pub trait FlowCounters: Debug + Send + Sync {
    /// Returns the frames and bytes of an entry and the time of the last one, which is zero without
    /// any. A slot and an order of arrival identify an entry.
    fn entry(&self, place: u32, arrival: u32) -> Option<(u64, u64, Nanos)>;

    /// Returns the frames that matched in the exact and in the other part of a table, and those
    /// that missed.
    fn table(&self, table: usize) -> ([u64; 2], u64);

    /// Adds dropped frames.
    fn add_drops(&self, sum: &mut DropCounters);
}

impl Tables {
    /// Adds the counters of another data plane to all statistics from now on. Only the first call
    /// has an effect.
    pub fn add_counters(&mut self, counters: Arc<dyn FlowCounters>) {
        self.common.elsewhere.get_or_init(|| counters);
    }

    /// Returns the counters of the other data plane, if there is one.
    pub(crate) fn counters_elsewhere(&self) -> Option<&dyn FlowCounters> {
        self.common.elsewhere.get().map(|counters| &**counters)
    }

    /// Records changes from now on. All entries are recorded as changed.
    pub fn record_changes(&mut self) {
        self.changes = Some(self.flows.since(0).map(|place| place as u32).collect());
    }

    /// Stops recording changes.
    pub fn stop_recording_changes(&mut self) {
        self.changes = None;
    }

    /// Returns the slots whose entries were added, changed or removed since the last call, each
    /// once. Returns `None` while a bundle is open or being closed.
    pub fn take_changes(&mut self) -> Option<Vec<u32>> {
        if self.undo.is_some() || self.closing.is_some() {
            return None;
        }
        let mut changes = self.changes.as_mut().map(std::mem::take)?;
        changes.sort_unstable();
        changes.dedup();
        Some(changes)
    }

    /// Returns the entry in a slot.
    pub fn source(&self, place: u32) -> Option<FlowSource> {
        let flow = self.flow(place)?;
        let line = self.slab().line(place);
        Some(FlowSource {
            table: flow.table,
            part: line.part(),
            matching: self.matching(place as usize, flow),
            rank: line.rank(),
            arrival: line.arrival(),
            instructions: Arc::clone(&flow.instructions),
        })
    }

    pub(super) fn record_change(&mut self, place: u32) {
        if let Some(changes) = &mut self.changes {
            changes.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use packet::time::Nanos;

    use crate::action::Action;
    use crate::flow::{FlowFilter, FlowRemovedReason, FlowSpec, ModifyRules};
    use crate::forwarder::Outputs;
    use crate::key::Field;
    use crate::matching::Match;
    use crate::table::{TableSettings, Tables};

    fn spec(in_port: u64, to: u32) -> FlowSpec {
        let matching = Match::of(&[(Field::InPort, in_port)]);
        FlowSpec::new(matching, 5, &[Action::Output { port: to }])
    }

    #[test]
    fn each_changed_slot_is_reported_once_and_not_within_a_bundle() {
        let mut tables = Tables::new(&[TableSettings::holding(8)], 1);
        let (mut out, now) = (Outputs::new(&[]), Nanos(50));
        tables.add(&spec(1, 9), now, &mut out).unwrap();
        assert_eq!(tables.take_changes(), None, "changes are not recorded yet");
        tables.record_changes();
        assert_eq!(tables.take_changes().unwrap().len(), 1);
        tables.add(&spec(2, 9), now, &mut out).unwrap();
        let rules = ModifyRules::default();
        tables.modify(&spec(2, 8), &FlowFilter::ALL, rules, now, &mut out).unwrap();
        let changes = tables.take_changes().unwrap();
        let outputs = changes.iter().map(|place| {
            tables.source(*place).unwrap().instructions.actions().next().and_then(Action::port)
        });
        assert_eq!(outputs.collect::<Vec<_>>(), [Some(8), Some(8)]);
        tables.begin();
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        assert_eq!(tables.take_changes(), None, "nothing within a bundle");
        tables.take_back();
        assert_eq!(tables.take_changes().unwrap(), changes);
        assert!(changes.iter().all(|place| tables.source(*place).is_some()), "rolled back");
        tables.delete(&FlowFilter::ALL, FlowRemovedReason::Deleted, now, &mut out);
        assert_eq!(tables.take_changes().unwrap(), changes);
        assert!(changes.iter().all(|place| tables.source(*place).is_none()));
    }
}
