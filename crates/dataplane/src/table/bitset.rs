//! Set of slots, as a bitmap.

/// Set of table slots: one bit each, up to the highest slot ever inserted.
#[derive(Debug, Default)]
pub(super) struct SlotSet(Vec<u64>);

impl SlotSet {
    /// Inserts a slot, and returns whether it was absent.
    pub(super) fn insert(&mut self, place: u32) -> bool {
        let (word, bit) = (place as usize / 64, 1 << (place % 64));
        if word >= self.0.len() {
            self.0.resize((word + 1).next_power_of_two(), 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// Removes a slot, and returns whether it was present.
    pub(super) fn remove(&mut self, place: u32) -> bool {
        let Some(word) = self.0.get_mut(place as usize / 64) else { return false };
        let bit = 1 << (place % 64);
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }

    /// Returns the first slot in the set from `from` on. If the budget is exhausted, returns the
    /// slot to continue with as an error. Each 64 absent slots cost one step.
    pub(super) fn next(&self, from: usize, budget: &mut usize) -> Result<Option<usize>, usize> {
        let (mut at, mut below) = (from / 64, (1u64 << (from % 64)) - 1);
        while let Some(word) = self.0.get(at) {
            let left = word & !below;
            if left != 0 {
                return Ok(Some(at * 64 + left.trailing_zeros() as usize));
            }
            (at, below) = (at + 1, 0);
            if *budget == 0 {
                return Err(at * 64);
            }
            *budget -= 1;
        }
        Ok(None)
    }

    /// Returns the slots in the set from `from` on, in order.
    pub(super) fn since(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        let first = from / 64;
        let words = self.0.iter().enumerate().skip(first);
        words.flat_map(move |(at, &word)| {
            let below = if at == first { (1 << (from % 64)) - 1 } else { 0 };
            let mut left = word & !below;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_have_the_contents_of_a_set(
            changes in prop::collection::vec((any::<bool>(), 0u32..400), 0..200), from in 0usize..420,
        ) {
            let (mut places, mut set) = (SlotSet::default(), BTreeSet::new());
            for (comes, place) in changes {
                match comes {
                    true => prop_assert_eq!(places.insert(place), set.insert(place)),
                    false => prop_assert_eq!(places.remove(place), set.remove(&place)),
                }
            }
            let wanted: Vec<usize> = set.range(from as u32..).map(|&place| place as usize).collect();
            prop_assert_eq!(places.since(from).collect::<Vec<_>>(), &wanted[..]);
            let (mut found, mut at) = (Vec::new(), from);
            loop {
                match places.next(at, &mut 1) {
                    Ok(Some(place)) => {
                        found.push(place);
                        at = place + 1;
                    }
                    Ok(None) => break,
                    Err(from) => at = from,
                }
            }
            prop_assert_eq!(found, wanted);
        }
    }
}
