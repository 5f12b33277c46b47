//! Approximate duration of a trial.
//!
//! A model states how long its hardware takes for a change of many entries; every other switch counts as software,
//! which takes no time compared with the windows of probes. A switch that acknowledges early is found out by its first
//! update, and most trials need a second one with denser probes. Other switches use all updates, or the
//! whole [`BUDGET`].

use packet::time::Nanos;
use targets::name::TargetKind;

use super::passes::BUDGET;
use super::{FlowModCommand, LEAD, Priorities, Probing, Update};

/// Mean number of updates if the first one decides and may have too few probes.
const DECIDED_UPDATES: f64 = 1.75;

impl Update {
    /// Returns the approximate duration of a trial on a target in seconds.
    pub fn seconds(&self, kind: TargetKind) -> f64 {
        let model = match kind {
            TargetKind::Model(target) => Some(target.model()),
            _ => None,
        };
        let count = self.rules.count();
        let [delete, insert, modify] = model.as_ref().map_or([Nanos::ZERO; 3], |model| {
            // Hardware that gets an entry when a frame requests it does not write in the order of the update.
            let moved = match self.priorities {
                Priorities::Same => 0.0,
                _ if model.has_software() => 0.5,
                Priorities::Random(_) => 0.5,
                Priorities::Ascending => f64::from(u8::from(model.hardware.moves == 0)),
                Priorities::Descending => f64::from(u8::from(model.hardware.moves != 0)),
            };
            [model.delete_time(count), model.insert_time(count, moved), model.modify_time(count)]
        });
        let (prepared, changed) = match self.deed {
            FlowModCommand::Add => (delete, insert),
            FlowModCommand::Modify => (delete.saturating_add(insert), modify),
            FlowModCommand::Delete => (delete.saturating_add(insert), delete),
        };
        let [prepared_s, changed_s] =
            [prepared, changed].map(|it| it.min(self.patience).as_secs_f64());
        let lead_s = LEAD.as_secs_f64();
        let round_s = f64::from(count) / self.probes_pps;
        let settled_s = (round_s + lead_s) * (prepared_s / (round_s + lead_s)).ceil().max(1.0);
        // Such hardware begins an entry when its next probe requests it.
        let requested_s =
            if model.as_ref().is_some_and(|it| it.has_software()) { round_s } else { 0.0 };
        let update_s = settled_s + lead_s + requested_s + changed_s + round_s;
        if let Probing::After(span) = self.probing {
            return update_s
                + lead_s
                + span.as_secs_f64()
                + self.late_watch.max(LEAD).as_secs_f64();
        }
        let update_s = update_s + self.watch.as_secs_f64();
        let updates = if model.is_some_and(|model| model.acknowledges_early()) {
            DECIDED_UPDATES
        } else {
            (BUDGET.as_secs_f64() / update_s).ceil().max(DECIDED_UPDATES)
        };
        update_s * updates.min(self.updates_max as f64)
    }
}
