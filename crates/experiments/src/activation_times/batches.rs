//! Batches: entries that activate together with pauses between, the size of batches and their interval.
//!
//! Source: the OFLOPS-SUME paper, figure 8a (a switch that collects changes and writes them at set times).
//!
//! Pauses that separate batches are longer than any other pause that the data allow, including hidden ones. The
//! windows of the entries before and after them do not overlap, and no pause of comparable length fits between
//! entries of one batch. Without such a set of pauses, the result is even if no pause can be long, and otherwise
//! unresolved.
//!
//! Invariants:
//!
//! - The assignment of entries to batches is certain.
//! - The batch size counts only whole batches: the end of the update may truncate the last one.

use std::ops::Range;

use super::{ActivationTimes, Bounds};

/// Minimum ratio of pauses between batches to any pause within a batch.
const LONGER: f64 = 2.0;

/// Minimum number of batches for this result.
const COUNT_MIN: usize = 3;

/// Entries are even if no pause can be longer than this many mean pauses.
const EVEN: f64 = 3.0;

/// Temporal pattern of activations.
#[derive(Debug, Clone, PartialEq)]
pub enum Grouping {
    /// Batches.
    Batches(Batches),
    /// One after another, without distinct pauses.
    Even,
    /// The probes are too far apart for a result.
    Unresolved,
}

/// Entries by batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Batches {
    /// Ranges of positions in [`ActivationTimes::windows`].
    pub groups: Vec<Range<usize>>,
    /// Start of each batch.
    pub begins: Vec<Bounds>,
}

impl Batches {
    /// Returns the number of entries in a whole batch: the median, and the deviation of the batches from it.
    pub fn size(&self) -> (f64, f64) {
        let whole = &self.groups[..self.groups.len() - 1];
        let mut sizes: Vec<f64> = whole.iter().map(|group| group.len() as f64).collect();
        sizes.sort_by(f64::total_cmp);
        let size = sizes[sizes.len() / 2];
        (size, (size - sizes[0]).max(sizes[sizes.len() - 1] - size))
    }

    /// Returns the mean time between the starts of successive batches.
    pub fn interval(&self) -> Bounds {
        let last = self.begins.len() - 1;
        self.begins[last].since(self.begins[0]).per(last as f64)
    }

    /// Returns the times between the starts of successive batches.
    pub fn intervals(&self) -> Vec<Bounds> {
        self.begins.windows(2).map(|pair| pair[1].since(pair[0])).collect()
    }
}

impl ActivationTimes {
    /// Returns the temporal pattern of these activations.
    pub fn grouping(&self) -> Grouping {
        let pauses = self.pauses();
        if let Some(cuts) = cuts(&pauses) {
            let begins = std::iter::once(0).chain(cuts.iter().map(|cut| cut + 1));
            let ends = cuts.iter().map(|cut| cut + 1).chain([self.len()]);
            let groups: Vec<Range<usize>> = begins.zip(ends).map(|(a, b)| a..b).collect();
            let begins = groups.iter().map(|group| self.first_of(group)).collect();
            return Grouping::Batches(Batches { groups, begins });
        }
        if self.is_even(&pauses) { Grouping::Even } else { Grouping::Unresolved }
    }

    /// Returns the batches, if there are any.
    pub fn batches(&self) -> Option<Batches> {
        match self.grouping() {
            Grouping::Batches(batches) => Some(batches),
            Grouping::Even | Grouping::Unresolved => None,
        }
    }

    /// Returns the longest pause that probes may have missed; `None` if there is no hidden pause.
    pub fn hidden_pause(&self) -> Option<f64> {
        let hidden = self.pauses().into_iter().filter(|pause| pause.low <= 0.0);
        hidden.map(|pause| pause.high).max_by(f64::total_cmp)
    }

    fn is_even(&self, pauses: &[Bounds]) -> bool {
        let Some(last) = self.last().filter(|_| pauses.len() + 1 >= COUNT_MIN) else {
            return false;
        };
        let mean = last.since(self.nth(0)).low / pauses.len() as f64;
        pauses.iter().all(|pause| pause.high <= EVEN * mean)
    }
}

/// Returns the positions after which a batch ends: those of the pauses above the widest step in pause lengths.
fn cuts(pauses: &[Bounds]) -> Option<Vec<usize>> {
    let mut places: Vec<usize> = (0..pauses.len()).collect();
    places.sort_by(|a, b| pauses[*b].low.total_cmp(&pauses[*a].low));
    // For each number of cuts, the longest pause that may be within a batch.
    let mut within = vec![0.0f64; places.len() + 1];
    for count in (0..places.len()).rev() {
        within[count] = within[count + 1].max(pauses[places[count]].high);
    }
    let certain = places.iter().take_while(|place| pauses[**place].low > 0.0).count();
    let step = |count: usize| pauses[places[count - 1]].low / within[count];
    // Separate entries have no pause within batches: they are batches of one if the pauses are similar.
    let counts = (COUNT_MIN - 1..=certain).filter(|count| *count < places.len());
    let best =
        counts.max_by(|a, b| step(*a).total_cmp(&step(*b))).filter(|count| step(*count) >= LONGER);
    let is_regular = || {
        let low = pauses.iter().map(|pause| pause.low).fold(0.0, f64::max);
        low <= pauses.iter().map(|pause| pause.high).fold(f64::INFINITY, f64::min)
    };
    let alone = places.len() >= COUNT_MIN - 1 && certain == places.len() && is_regular();
    let mut cuts = match best {
        Some(count) => places[..count].to_vec(),
        None if alone => places,
        None => return None,
    };
    cuts.sort_unstable();
    Some(cuts)
}

#[cfg(test)]
mod tests {
    use super::super::tests::times;
    use super::*;

    /// Returns the window ends of `batches` batches of `rules` entries each.
    ///
    /// Entries follow each other after `each` ns, batches after `interval` ns.
    fn batched(batches: u32, rules: u32, each: f64, interval: f64) -> Vec<f64> {
        let one = move |batch| {
            (0..rules).map(move |rule| 100.0 + f64::from(batch) * interval + f64::from(rule) * each)
        };
        (0..batches).flat_map(one).collect()
    }

    #[test]
    fn batches_have_a_size_and_an_interval_and_the_last_may_be_short() {
        let ends = [10.0, 11.0, 12.0, 110.0, 111.0, 112.0, 210.0];
        let batches = times(&ends, 2.0).batches().unwrap();
        assert_eq!((batches.groups.len(), batches.size()), (3, (3.0, 0.0)));
        assert_eq!((batches.interval().middle(), batches.interval().half()), (100.0, 1.0));
        let uneven = times(&ends[1..], 2.0).batches().unwrap();
        assert_eq!(uneven.size(), (3.0, 1.0));
    }

    #[test]
    fn batches_closer_than_the_probe_interval_are_unresolved() {
        let ends = batched(20, 48, 80.0, 12_000.0);
        assert_eq!(times(&ends, 500.0).batches().unwrap().size(), (48.0, 0.0));
        assert_eq!(times(&ends, 10_000.0).grouping(), Grouping::Unresolved);
        assert!(times(&ends, 10_000.0).hidden_pause().unwrap() >= 8_240.0);
    }

    #[test]
    fn visible_pauses_are_no_batches_if_others_may_be_hidden() {
        // Windows differ: every third pause is visible, and the others may be as long.
        let mut windows = Vec::new();
        for batch in 0..30u32 {
            let at = f64::from(batch) * 1_000.0;
            let width = if batch % 3 == 0 { 100.0 } else { 1_100.0 };
            for _ in 0..10 {
                let acts = Bounds { low: at - width, high: at + 10.0 };
                windows.push(super::super::Window { rule: windows.len(), acts });
            }
        }
        assert_eq!(ActivationTimes::new(windows).grouping(), Grouping::Unresolved);
    }

    #[test]
    fn consecutive_entries_are_even_and_separate_ones_are_batches_of_one() {
        let ends: Vec<f64> = (1..200).map(|rule| f64::from(rule) * 100.0).collect();
        assert_eq!(times(&ends, 150.0).grouping(), Grouping::Even);
        assert_eq!(times(&ends, 20.0).batches().unwrap().size(), (1.0, 0.0));
        assert_eq!(times(&ends, 5_000.0).grouping(), Grouping::Unresolved);
        // Each takes longer than the one before: no batches.
        let growing: Vec<f64> = (1..200).map(|rule| f64::from(rule * rule) * 10.0).collect();
        assert_eq!(times(&growing, 2.0).batches(), None);
        for few in [&[][..], &[1.0], &[1.0, 50.0]] {
            assert_eq!(times(few, 1.0).grouping(), Grouping::Unresolved);
        }
    }

    #[test]
    fn the_order_within_batches_uses_pairs_of_one_batch() {
        let ends = [10.0, 20.0, 30.0, 1010.0, 1020.0, 1030.0, 2010.0, 2020.0, 2030.0];
        let order = |ends: &[f64]| {
            let times = times(ends, 2.0);
            times.order_within(&times.batches().unwrap().groups).unwrap()
        };
        assert_eq!(order(&ends).tau(), 1.0);
        let reversed: Vec<f64> = ends.iter().rev().copied().collect();
        let found = order(&reversed);
        assert_eq!((found.tau(), found.resolved), (-1.0, 9));
    }
}
