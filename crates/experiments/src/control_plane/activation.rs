//! Activation time of each entry, from probes whose port shows which entry applied.
//!
//! Source: metrics C2 to C4 of the method (`docs/oflops.md`); the OFLOPS-SUME paper, section IV-B (data plane
//! latency). An entry became active between two events: the last probe that it did not handle left, and the first
//! that it handled arrived. The uncertainty is half of that time. A lost probe shows nothing.
//!
//! Invariant: an entry without a probe that shows its activation has no activation time.

use packet::time::Nanos;

use crate::activation_times::{ActivationTimes, Bounds, Window};

/// Probe results of all entries.
#[derive(Debug, Clone)]
pub struct Activation {
    rules: Vec<EntryProbes>,
    /// Time at which the first byte of the update was sent; no entry can be active earlier.
    begun_at: Nanos,
    /// Time of the barrier reply.
    acknowledged_at: Option<Nanos>,
}

/// Probe results of one entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct EntryProbes {
    /// Departure time of the last probe in the old state that was sent before any probe in the new state.
    old_last: Option<Nanos>,
    /// Departure time of the first probe in the new state.
    new_first: Option<Nanos>,
    /// Arrival time of the first probe in the new state.
    new_by: Option<Nanos>,
    /// Probes sent after the barrier reply that show the old state.
    stale: u32,
    /// Probes in the old state that were sent after one in the new state.
    relapsed: u32,
    /// Departure time of the very first probe, and whether it shows the new state.
    first: Option<(Nanos, bool)>,
    /// Before the update: time of the last probe, and whether it shows the new state.
    before: Option<(Nanos, bool)>,
    /// Latency of the first and of the last probe in the new state.
    took: Option<[Nanos; 2]>,
}

/// A time and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UncertainTime {
    /// Middle of the interval.
    pub at: Nanos,
    /// Half of the interval.
    pub half: Nanos,
}

impl Activation {
    /// Creates an empty record for this number of entries.
    pub fn new(rules: u32) -> Activation {
        let rules = vec![EntryProbes::default(); rules as usize];
        Activation { rules, begun_at: Nanos::ZERO, acknowledged_at: None }
    }

    /// Records a returned probe that was sent before the update.
    pub fn note_before(&mut self, rule: u64, sent_at: Nanos, is_new: bool) {
        let Some(shown) = self.rules.get_mut(rule as usize) else { return };
        if shown.before.is_none_or(|(last, _)| last <= sent_at) {
            shown.before = Some((sent_at, is_new));
        }
        if !is_new {
            shown.old_last = Some(shown.old_last.map_or(sent_at, |known| known.max(sent_at)));
        }
    }

    /// Returns the number of entries whose last probe shows the state required before the update.
    pub fn ready(&self) -> usize {
        self.rules.iter().filter(|shown| shown.before.is_some_and(|(_, is_new)| !is_new)).count()
    }

    /// Records that the first byte of the update was sent.
    pub fn begin(&mut self, at: Nanos) {
        self.begun_at = at;
    }

    /// Records the arrival of the barrier reply.
    pub fn acknowledge(&mut self, at: Nanos) {
        self.acknowledged_at.get_or_insert(at);
    }

    /// Records a returned probe; returns whether it is the first in the new state.
    pub fn note(&mut self, rule: u64, sent_at: Nanos, arrived_at: Nanos, is_new: bool) -> bool {
        let is_stale = self.acknowledged_at.is_some_and(|said| sent_at > said);
        let Some(shown) = self.rules.get_mut(rule as usize) else { return false };
        if shown.first.is_none_or(|(first, _)| sent_at < first) {
            shown.first = Some((sent_at, is_new));
        }
        if is_new {
            let is_first = shown.new_first.is_none();
            let took = arrived_at.since(sent_at);
            shown.took = Some(shown.took.map_or([took; 2], |[first, _]| [first, took]));
            shown.new_first = Some(shown.new_first.map_or(sent_at, |known| known.min(sent_at)));
            shown.new_by = Some(shown.new_by.map_or(arrived_at, |known| known.min(arrived_at)));
            return is_first;
        }
        if shown.new_first.is_none_or(|first| sent_at < first) {
            shown.old_last = Some(shown.old_last.map_or(sent_at, |known| known.max(sent_at)));
        }
        shown.stale += u32::from(is_stale);
        shown.relapsed += u32::from(shown.new_first.is_some_and(|first| sent_at > first));
        false
    }

    /// Returns the latencies of the first and of the last probe in the new state of each entry, in nanoseconds.
    pub fn took(&self) -> [Vec<f64>; 2] {
        let took = |place: usize| {
            self.rules.iter().filter_map(move |shown| Some(shown.took?[place].0 as f64)).collect()
        };
        [took(0), took(1)]
    }

    /// Returns the number of entries with a probe in the new state.
    pub fn active(&self) -> usize {
        self.rules.iter().filter(|shown| shown.new_first.is_some()).count()
    }

    /// Returns whether every entry has a probe in the new state.
    pub fn is_complete(&self) -> bool {
        self.rules.iter().all(|shown| shown.new_first.is_some())
    }

    /// Returns the window in which an entry became active, if a probe shows it.
    ///
    /// It begins when the last probe in the old state was sent, but not before the update. It ends when the first
    /// probe in the new state arrived. The position on the path at which a probe met the entry is unknown, and a
    /// queued probe may have met it late.
    fn window(&self, rule: usize) -> Option<[Nanos; 2]> {
        let shown = self.rules[rule];
        let (new, by) = shown.new_first.zip(shown.new_by)?;
        let old = shown.old_last.filter(|old| *old < new);
        let from = old.map_or(self.begun_at, |old| old.max(self.begun_at));
        Some([from, by.max(from)])
    }

    /// Returns the middle of that window and half of its width.
    pub fn moment(&self, rule: usize) -> Option<UncertainTime> {
        let [from, by] = self.window(rule)?;
        let half = Nanos(by.since(from).0 / 2);
        Some(UncertainTime { at: from.saturating_add(half), half })
    }

    /// Returns the windows of all active entries, relative to the first byte of the update.
    pub fn times(&self) -> ActivationTimes {
        let window = |rule| {
            let [low, high] = self.window(rule)?.map(|at| at.since(self.begun_at).0 as f64);
            Some(Window { rule, acts: Bounds { low, high } })
        };
        ActivationTimes::new((0..self.rules.len()).filter_map(window).collect())
    }

    /// Iterates over the activation times of all active entries, with their numbers.
    pub fn moments(&self) -> impl Iterator<Item = (usize, UncertainTime)> + '_ {
        (0..self.rules.len()).filter_map(|rule| Some((rule, self.moment(rule)?)))
    }

    /// Returns the number of entries with a probe in the old state that was sent after the barrier reply.
    ///
    /// Measurement uncertainty cannot explain these.
    pub fn premature(&self) -> usize {
        self.rules.iter().filter(|shown| shown.stale > 0).count()
    }

    /// Returns the number of entries that may have become active after the barrier reply, according to their
    /// windows.
    ///
    /// This includes those of [`Activation::premature`].
    pub fn premature_most(&self) -> usize {
        let Some(said) = self.acknowledged_at else { return 0 };
        let is_possible = |&rule: &usize| {
            let is_late = self.window(rule).is_none_or(|[_, by]| by > said);
            is_late || self.rules[rule].stale > 0
        };
        (0..self.rules.len()).filter(is_possible).count()
    }

    /// Returns the number of probes that [`Activation::premature`] is based on.
    pub fn stale(&self) -> u64 {
        self.rules.iter().map(|shown| u64::from(shown.stale)).sum()
    }

    /// Returns the number of probes in the old state after an earlier one in the new state.
    pub fn relapsed(&self) -> u64 {
        self.rules.iter().map(|shown| u64::from(shown.relapsed)).sum()
    }

    /// Iterates over the time from the first probe to the first in the new state.
    ///
    /// Only entries whose first probe shows the old state count.
    pub fn after_first_probe(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.rules.iter().filter_map(|shown| match shown.first? {
            (_, true) => None,
            (first, false) => Some(shown.new_first?.since(first)),
        })
    }

    /// Returns the number of entries with a probe, and of those whose first probe shows the new state.
    pub fn first_probes(&self) -> (usize, usize) {
        let first = self.rules.iter().filter_map(|shown| shown.first);
        first.fold((0, 0), |(all, at_work), (_, is_new)| (all + 1, at_work + usize::from(is_new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAY: u64 = 10;

    /// Records a probe with the latency [`WAY`].
    fn note(activation: &mut Activation, rule: u64, sent_at: u64, is_new: bool) -> bool {
        activation.note(rule, Nanos(sent_at), Nanos(sent_at + WAY), is_new)
    }

    #[test]
    fn an_activation_time_is_between_two_probes_with_an_uncertainty() {
        let mut activation = Activation::new(2);
        assert!(!note(&mut activation, 0, 100, false));
        assert!(note(&mut activation, 0, 300, true));
        assert!(!note(&mut activation, 0, 400, true), "the first only");
        assert_eq!(activation.moment(0), Some(UncertainTime { at: Nanos(205), half: Nanos(105) }));
        // No entry is active before it was sent.
        activation.begin(Nanos(250));
        assert_eq!(activation.moment(0), Some(UncertainTime { at: Nanos(280), half: Nanos(30) }));
        activation.begin(Nanos(0));
        assert_eq!(activation.moment(1), None);
        assert_eq!((activation.active(), activation.is_complete()), (1, false));
        // A probe that overtook others gives no additional information.
        note(&mut activation, 0, 250, true);
        assert_eq!(activation.moment(0).unwrap().at, Nanos(180));
    }

    #[test]
    fn only_a_probe_sent_after_the_barrier_reply_disproves_it() {
        let mut activation = Activation::new(2);
        note(&mut activation, 0, 100, false);
        activation.acknowledge(Nanos(105));
        note(&mut activation, 0, 105, false);
        assert_eq!((activation.premature(), activation.stale()), (0, 0));
        note(&mut activation, 0, 106, false);
        note(&mut activation, 0, 107, false);
        note(&mut activation, 1, 108, true);
        assert_eq!((activation.premature(), activation.stale()), (1, 2));
    }

    #[test]
    fn an_entry_is_ready_if_its_last_probe_before_the_update_shows_it() {
        let mut activation = Activation::new(2);
        activation.note_before(0, Nanos(10), true);
        activation.note_before(1, Nanos(11), false);
        assert_eq!(activation.ready(), 1);
        activation.note_before(0, Nanos(20), false);
        activation.note_before(0, Nanos(15), true);
        activation.note_before(9, Nanos(15), true);
        assert_eq!((activation.ready(), activation.active()), (2, 0));
        activation.note_before(1, Nanos(30), true);
        assert_eq!(activation.ready(), 1, "a leftover entry forwarded the probe");
    }

    #[test]
    fn the_first_probe_shows_whether_an_entry_waited_for_it() {
        let mut activation = Activation::new(3);
        note(&mut activation, 0, 100, true);
        note(&mut activation, 1, 100, false);
        note(&mut activation, 1, 150, true);
        assert_eq!(activation.first_probes(), (2, 1));
        assert_eq!(activation.after_first_probe().collect::<Vec<_>>(), [Nanos(50)]);
    }

    #[test]
    fn relapses_are_counted_and_unknown_numbers_are_ignored() {
        let mut activation = Activation::new(1);
        note(&mut activation, 0, 100, true);
        note(&mut activation, 0, 200, false);
        note(&mut activation, 7, 200, false);
        assert_eq!((activation.relapsed(), activation.active()), (1, 1));
    }

    #[test]
    fn delayed_and_lost_probes_increase_the_uncertainty() {
        let mut activation = Activation::new(2);
        activation.begin(Nanos(50));
        note(&mut activation, 0, 100, false);
        activation.note(0, Nanos(200), Nanos(900), true);
        assert_eq!(activation.moment(0), Some(UncertainTime { at: Nanos(500), half: Nanos(400) }));
        // A relapse does not change the activation time.
        note(&mut activation, 0, 300, false);
        assert_eq!(activation.moment(0), Some(UncertainTime { at: Nanos(500), half: Nanos(400) }));
        // Without an earlier probe, the window begins with the update.
        note(&mut activation, 1, 240, true);
        assert_eq!(activation.moment(1), Some(UncertainTime { at: Nanos(150), half: Nanos(100) }));
    }
}
