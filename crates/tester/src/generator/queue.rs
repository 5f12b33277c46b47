//! Queue of streams by due time: a sorted ring.
//!
//! A stream that has sent moves to the end if all streams have equal rates. In a ring this costs
//! nothing, and is faster than a heap.

use packet::time::Nanos;

/// Due times and indices of streams, earliest first.
#[derive(Debug, Default)]
pub struct Agenda {
    row: Vec<(Nanos, usize)>,
    /// Index of the first entry. Those before it come last.
    head: usize,
}

impl Agenda {
    /// Replaces the contents.
    pub fn fill(&mut self, streams: impl Iterator<Item = (Nanos, usize)>) {
        self.clear();
        self.row.extend(streams);
        self.row.sort_unstable();
    }

    /// Removes all streams.
    pub fn clear(&mut self) {
        self.row.clear();
        self.head = 0;
    }

    /// Returns the first stream's due time and index.
    #[inline]
    pub fn first(&self) -> Option<(Nanos, usize)> {
        self.row.get(self.head).copied()
    }

    /// Returns whether there is only one stream.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.row.len() == 1
    }

    /// Sets the first stream's next due time, or removes the stream.
    #[inline]
    pub fn renew(&mut self, due: Option<Nanos>) {
        let Some(&(_, place)) = self.row.get(self.head) else { return };
        let last = self.row[self.head.checked_sub(1).unwrap_or(self.row.len() - 1)];
        match due {
            Some(due) if last < (due, place) => {
                self.row[self.head] = (due, place);
                self.head = if self.head + 1 == self.row.len() { 0 } else { self.head + 1 };
            }
            due => self.sort_in(due.map(|due| (due, place))),
        }
    }

    /// Moves the first entry to its sorted position, or removes it.
    fn sort_in(&mut self, entry: Option<(Nanos, usize)>) {
        self.row.rotate_left(std::mem::take(&mut self.head));
        match entry {
            Some(entry) => {
                let end = 1 + self.row[1..].partition_point(|other| *other < entry);
                self.row.copy_within(1..end, 0);
                self.row[end - 1] = entry;
            }
            None => drop(self.row.remove(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::{below, mix};

    #[test]
    fn the_earliest_item_is_first_and_ties_go_to_the_lower_index() {
        for seed in 0..50 {
            let streams = 1 + seed as usize % 9;
            let mut agenda = Agenda::default();
            let mut dues: Vec<(Nanos, usize)> =
                (0..streams).map(|place| (Nanos(place as u64 % 3), place)).collect();
            agenda.fill(dues.iter().copied());
            for round in 0..200 {
                dues.sort_unstable();
                assert_eq!(agenda.first(), dues.first().copied());
                assert_eq!(agenda.is_alone(), dues.len() == 1);
                let Some((due, place)) = agenda.first() else { break };
                let gap = if seed % 2 == 0 { 3 } else { below(mix(seed << 8 | round), 7) };
                let next = (round % 41 < 40).then_some(Nanos(due.0 + gap));
                agenda.renew(next);
                dues.remove(0);
                dues.extend(next.map(|next| (next, place)));
            }
        }
    }
}
