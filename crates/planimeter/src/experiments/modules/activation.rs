//! When each rule began to act on frames, from probes that show by their port how they were treated.
//!
//! Source: metrics C2 to C4 of the method (`docs/oflops.md`); the OFLOPS-SUME paper, section IV-B (data
//! plane latency). A rule acted between the last probe that it did not treat left and the first that it did
//! treat arrived, so that its moment is known to half of that time. A probe that was lost shows nothing. Invariant: nothing is said of a rule without a probe that shows it.

use packet::time::Nanos;

use crate::activation_times::{ActivationTimes, Bounds, Window};

/// What probes have shown of rules.
#[derive(Debug, Clone)]
pub struct Activation {
    rules: Vec<Shown>,
    /// When the first byte of the update left: no rule can act before.
    begun_at: Nanos,
    /// When the switch said that all of them act.
    acknowledged_at: Option<Nanos>,
}

/// What probes have shown of one rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Shown {
    /// When the last probe left that was treated as before, of those that left before any that was treated
    /// by the rule.
    old_last: Option<Nanos>,
    /// When the first probe left that was treated by the rule.
    new_first: Option<Nanos>,
    /// When the first such probe arrived.
    new_by: Option<Nanos>,
    /// Probes that left after the acknowledgement and were treated as before.
    stale: u32,
    /// Probes so treated that left after one that the rule had treated.
    relapsed: u32,
    /// The first probe of all: when it left, and whether the rule treated it.
    first: Option<(Nanos, bool)>,
    /// Before the update: the last probe, and whether it was treated as rules will have it.
    before: Option<(Nanos, bool)>,
    /// What the first probe took that was treated by the rule, and what the last one did.
    took: Option<[Nanos; 2]>,
}

/// A moment, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The middle of the time in which it lies.
    pub at: Nanos,
    /// Half of that time.
    pub half: Nanos,
}

impl Activation {
    /// Nothing has been seen of so many rules.
    pub fn new(rules: u32) -> Activation {
        let rules = vec![Shown::default(); rules as usize];
        Activation { rules, begun_at: Nanos::ZERO, acknowledged_at: None }
    }

    /// A rule's probe came back that left before the update.
    pub fn note_before(&mut self, rule: u64, sent_at: Nanos, is_new: bool) {
        let Some(shown) = self.rules.get_mut(rule as usize) else { return };
        if shown.before.is_none_or(|(last, _)| last <= sent_at) {
            shown.before = Some((sent_at, is_new));
        }
        if !is_new {
            shown.old_last = Some(shown.old_last.map_or(sent_at, |known| known.max(sent_at)));
        }
    }

    /// How many rules' last probe shows that all is as it has to be before the update.
    pub fn ready(&self) -> usize {
        self.rules.iter().filter(|shown| shown.before.is_some_and(|(_, is_new)| !is_new)).count()
    }

    /// The first byte of the update left.
    pub fn begin(&mut self, at: Nanos) {
        self.begun_at = at;
    }

    /// The switch said that every rule acts: when that was heard.
    pub fn acknowledge(&mut self, at: Nanos) {
        self.acknowledged_at.get_or_insert(at);
    }

    /// A rule's probe came back; whether it is the first that the rule treated.
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

    /// What the first probe took that each rule treated, and what the last one did, in nanoseconds.
    pub fn took(&self) -> [Vec<f64>; 2] {
        let took = |place: usize| {
            self.rules.iter().filter_map(move |shown| Some(shown.took?[place].0 as f64)).collect()
        };
        [took(0), took(1)]
    }

    /// How many rules have been seen at work.
    pub fn active(&self) -> usize {
        self.rules.iter().filter(|shown| shown.new_first.is_some()).count()
    }

    /// Whether every rule has been.
    pub fn is_complete(&self) -> bool {
        self.rules.iter().all(|shown| shown.new_first.is_some())
    }

    /// The window in which a rule began to act, if that has been seen: not before the last probe left that it did not
    /// treat, nor before the update, and not after the first that it did treat had arrived. Where on its way
    /// a probe was treated is not known, and one that waited on its way may have been treated late.
    fn window(&self, rule: usize) -> Option<[Nanos; 2]> {
        let shown = self.rules[rule];
        let (new, by) = shown.new_first.zip(shown.new_by)?;
        let old = shown.old_last.filter(|old| *old < new);
        let from = old.map_or(self.begun_at, |old| old.max(self.begun_at));
        Some([from, by.max(from)])
    }

    /// The middle of that window and half of its width.
    pub fn moment(&self, rule: usize) -> Option<Moment> {
        let [from, by] = self.window(rule)?;
        let half = Nanos(by.since(from).0 / 2);
        Some(Moment { at: from.saturating_add(half), half })
    }

    /// The windows of all rules that have been seen at work, from the first byte of the update on.
    pub fn times(&self) -> ActivationTimes {
        let window = |rule| {
            let [low, high] = self.window(rule)?.map(|at| at.since(self.begun_at).0 as f64);
            Some(Window { rule, acts: Bounds { low, high } })
        };
        ActivationTimes::new((0..self.rules.len()).filter_map(window).collect())
    }

    /// The moments of all rules that have been seen at work, with their numbers.
    pub fn moments(&self) -> impl Iterator<Item = (usize, Moment)> + '_ {
        (0..self.rules.len()).filter_map(|rule| Some((rule, self.moment(rule)?)))
    }

    /// Rules of which a probe that left after the acknowledgement was treated as before, which no way of
    /// looking explains.
    pub fn premature(&self) -> usize {
        self.rules.iter().filter(|shown| shown.stale > 0).count()
    }

    /// Rules that may have begun to act after the acknowledgement had arrived, as far as their windows tell; those of
    /// [`Activation::premature`] are among them.
    pub fn premature_most(&self) -> usize {
        let Some(said) = self.acknowledged_at else { return 0 };
        let is_possible = |&rule: &usize| {
            let is_late = self.window(rule).is_none_or(|[_, by]| by > said);
            is_late || self.rules[rule].stale > 0
        };
        (0..self.rules.len()).filter(is_possible).count()
    }

    /// Such probes.
    pub fn stale(&self) -> u64 {
        self.rules.iter().map(|shown| u64::from(shown.stale)).sum()
    }

    /// Probes that were treated as before although an earlier one had been treated by the rule.
    pub fn relapsed(&self) -> u64 {
        self.rules.iter().map(|shown| u64::from(shown.relapsed)).sum()
    }

    /// Of rules whose first probe of all found them not at work, how long it was from that probe to the
    /// first that did.
    pub fn after_first_probe(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.rules.iter().filter_map(|shown| match shown.first? {
            (_, true) => None,
            (first, false) => Some(shown.new_first?.since(first)),
        })
    }

    /// Rules that had a probe at all, and those of them whose first found them at work.
    pub fn first_probes(&self) -> (usize, usize) {
        let first = self.rules.iter().filter_map(|shown| shown.first);
        first.fold((0, 0), |(all, at_work), (_, is_new)| (all + 1, at_work + usize::from(is_new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAY: u64 = 10;

    /// Notes a probe that took [`WAY`].
    fn note(activation: &mut Activation, rule: u64, sent_at: u64, is_new: bool) -> bool {
        activation.note(rule, Nanos(sent_at), Nanos(sent_at + WAY), is_new)
    }

    #[test]
    fn a_moment_lies_between_two_probes_and_says_how_well_it_is_known() {
        let mut activation = Activation::new(2);
        assert!(!note(&mut activation, 0, 100, false));
        assert!(note(&mut activation, 0, 300, true));
        assert!(!note(&mut activation, 0, 400, true), "the first only");
        assert_eq!(activation.moment(0), Some(Moment { at: Nanos(205), half: Nanos(105) }));
        // No rule acts before it was sent.
        activation.begin(Nanos(250));
        assert_eq!(activation.moment(0), Some(Moment { at: Nanos(280), half: Nanos(30) }));
        activation.begin(Nanos(0));
        assert_eq!(activation.moment(1), None);
        assert_eq!((activation.active(), activation.is_complete()), (1, false));
        // A probe that overtook others shows no more than it does.
        note(&mut activation, 0, 250, true);
        assert_eq!(activation.moment(0).unwrap().at, Nanos(180));
    }

    #[test]
    fn only_a_probe_that_left_after_the_acknowledgement_proves_it_wrong() {
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
    fn a_rule_is_ready_when_its_last_probe_before_the_update_says_so() {
        let mut activation = Activation::new(2);
        activation.note_before(0, Nanos(10), true);
        activation.note_before(1, Nanos(11), false);
        assert_eq!(activation.ready(), 1);
        activation.note_before(0, Nanos(20), false);
        activation.note_before(0, Nanos(15), true);
        activation.note_before(9, Nanos(15), true);
        assert_eq!((activation.ready(), activation.active()), (2, 0));
        activation.note_before(1, Nanos(30), true);
        assert_eq!(activation.ready(), 1, "what was left over came back");
    }

    #[test]
    fn the_first_probe_tells_whether_a_rule_waited_for_it() {
        let mut activation = Activation::new(3);
        note(&mut activation, 0, 100, true);
        note(&mut activation, 1, 100, false);
        note(&mut activation, 1, 150, true);
        assert_eq!(activation.first_probes(), (2, 1));
        assert_eq!(activation.after_first_probe().collect::<Vec<_>>(), [Nanos(50)]);
    }

    #[test]
    fn a_relapse_is_counted_and_foreign_numbers_change_nothing() {
        let mut activation = Activation::new(1);
        note(&mut activation, 0, 100, true);
        note(&mut activation, 0, 200, false);
        note(&mut activation, 7, 200, false);
        assert_eq!((activation.relapsed(), activation.active()), (1, 1));
    }

    #[test]
    fn a_probe_that_waited_on_its_way_and_one_that_was_lost_make_a_moment_less_known() {
        let mut activation = Activation::new(2);
        activation.begin(Nanos(50));
        note(&mut activation, 0, 100, false);
        activation.note(0, Nanos(200), Nanos(900), true);
        assert_eq!(activation.moment(0), Some(Moment { at: Nanos(500), half: Nanos(400) }));
        // Treated as before once more, it had begun to act all the same.
        note(&mut activation, 0, 300, false);
        assert_eq!(activation.moment(0), Some(Moment { at: Nanos(500), half: Nanos(400) }));
        // Without a probe before, all that is known is that the update comes first.
        note(&mut activation, 1, 240, true);
        assert_eq!(activation.moment(1), Some(Moment { at: Nanos(150), half: Nanos(100) }));
    }
}
