//! Batches: whether rules come to act together and with pauses between, how many at once and how often.
//!
//! Source: the OFLOPS-SUME paper, figure 8a (a switch that collects changes and writes them at set times). A pause
//! counts as one between batches where it is far longer than rules usually follow each other, by more than what is
//! not known of their moments. Invariant: what is told of a batch's size counts whole batches only; the last one
//! may have been cut short by the end of the update.

use instrument::module::Measured;

use super::activation::{Moment, Order, order};

/// A pause is so much longer than the usual one between two rules...
const LONGER: f64 = 3.0;

/// ...and longer than so many times what is not known of it.
const SURER: f64 = 2.0;

/// Batches of which it can be said that rules come in batches.
const COUNT_MIN: usize = 3;

/// Rules in the order in which they came to act, parted where a pause is.
#[derive(Debug, Clone, PartialEq)]
pub struct Batches(Vec<Vec<(usize, Moment)>>);

impl Batches {
    /// The batches of rules that are sorted by their moments; none where they come without pauses.
    pub fn of(sorted: &[(usize, Moment)]) -> Option<Batches> {
        let pause = |pair: &[(usize, Moment)]| pair[1].1.at.since(pair[0].1.at).0 as f64;
        let mut pauses: Vec<f64> = sorted.windows(2).map(pause).collect();
        pauses.sort_by(f64::total_cmp);
        let usual = *pauses.get(pauses.len() / 2)?;
        let mut batches = vec![vec![sorted[0]]];
        for pair in sorted.windows(2) {
            let unknown = pair[0].1.half.saturating_add(pair[1].1.half).0 as f64;
            if pause(pair) > LONGER * usual + SURER * unknown {
                batches.push(Vec::new());
            }
            batches.last_mut().expect("there is one from the beginning").push(pair[1]);
        }
        (batches.len() >= COUNT_MIN).then_some(Batches(batches))
    }

    /// Tells how many rules a batch has, and how often one begins.
    pub fn tell(&self, tell: &mut impl FnMut(Measured)) {
        let count = self.0.len();
        tell(Measured::new("batches_count", "count", count as f64, 0.0));
        let mut sizes: Vec<f64> = self.0[..count - 1].iter().map(|it| it.len() as f64).collect();
        sizes.sort_by(f64::total_cmp);
        let size = sizes[sizes.len() / 2];
        let off = (size - sizes[0]).max(sizes[sizes.len() - 1] - size);
        tell(Measured::new("batch_rules_p50", "rules", size, off).of(count as u64 - 1));
        let begins = |batch: &Vec<(usize, Moment)>| batch[0].1;
        let (first, last) = (begins(&self.0[0]), begins(&self.0[count - 1]));
        let spans = (count - 1) as f64;
        let mean = last.at.since(first.at).0 as f64 / spans;
        let half = last.half.saturating_add(first.half).0 as f64 / spans;
        tell(Measured::new("batch_interval_ns_mean", "ns", mean, half).of(count as u64 - 1));
    }

    /// The order in which rules of one batch came to act, over all batches.
    pub fn order(&self) -> Option<Order> {
        let each = self.0.iter().filter_map(|batch| {
            let mut batch = batch.clone();
            batch.sort_by_key(|(rule, _)| *rule);
            order(&batch)
        });
        each.reduce(Order::and)
    }
}

#[cfg(test)]
mod tests {
    use packet::time::Nanos;

    use super::*;

    fn at(ats: &[u64], half: u64) -> Vec<(usize, Moment)> {
        let moment = |&at: &u64| Moment { at: Nanos(at), half: Nanos(half) };
        ats.iter().map(moment).enumerate().collect()
    }

    fn told(batches: &Batches) -> Vec<(f64, f64)> {
        let mut found = Vec::new();
        batches.tell(&mut |it| found.push((it.value, it.half_width.unwrap())));
        found
    }

    #[test]
    fn batches_are_parted_by_pauses_and_the_last_may_be_short() {
        let batches = Batches::of(&at(&[10, 11, 12, 110, 111, 112, 210], 1)).unwrap();
        assert_eq!(told(&batches), [(3.0, 0.0), (3.0, 0.0), (100.0, 1.0)]);
        let uneven = Batches::of(&at(&[11, 12, 110, 111, 112, 210], 1)).unwrap();
        assert_eq!(told(&uneven)[1], (3.0, 1.0));
    }

    #[test]
    fn rules_that_come_evenly_or_whose_moments_are_hardly_known_are_in_no_batches() {
        assert_eq!(Batches::of(&at(&[10, 20, 30, 40, 50, 60], 1)), None);
        assert_eq!(Batches::of(&at(&[10, 11, 12, 110, 111, 112, 210], 40)), None);
        assert_eq!(Batches::of(&at(&[10, 11, 110, 111], 1)), None, "one pause is none");
        assert_eq!(Batches::of(&at(&[10], 1)), None);
        assert_eq!(Batches::of(&[]), None);
    }

    #[test]
    fn the_order_within_batches_is_over_pairs_of_one_batch() {
        let mut moments = at(&[10, 20, 30, 1010, 1020, 1030, 2010, 2020, 2030], 1);
        assert_eq!(Batches::of(&moments).unwrap().order().unwrap().tau, 1.0);
        // The rules of each batch come the other way round, and so do the batches.
        for (place, rule) in moments.iter_mut().enumerate() {
            rule.0 = 8 - place;
        }
        let order = Batches::of(&moments).unwrap().order().unwrap();
        assert_eq!((order.tau, order.decided), (-1.0, 9));
    }
}
