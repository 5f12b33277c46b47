//! Write cost of a TCAM, whose entries are sorted by priority.
//!
//! Source: OFLOPS-SUME, sections II-B and IV-B. A new match is a write to the TCAM and may move
//! other entries, as they are sorted by priority. The instructions of an entry are in RAM and are
//! written in constant time. Invariant: each entry is counted once, at its rank.

use std::collections::HashSet;

use dataplane::flow::{FlowRecord, FlowSpec};
use dataplane::matching::Match;

use super::model::Hardware;

/// Identity of a flow entry: its table, its match and its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId {
    /// The table.
    pub table: u8,
    /// The match.
    pub matching: Match,
    /// The rank.
    pub rank: u32,
}

impl FlowId {
    /// Returns the identity of an installed entry.
    pub fn of(flow: &FlowRecord) -> FlowId {
        FlowId { table: flow.table, matching: flow.matching, rank: flow.rank }
    }

    /// Returns the identity of an entry to be installed.
    pub fn of_spec(spec: &FlowSpec) -> FlowId {
        FlowId { table: spec.table, matching: spec.matching, rank: spec.rank }
    }
}

/// Number of distinct ranks: every priority, and exact matches above all of them.
const RANKS: usize = (1 << 16) + 1;

/// A TCAM: its entries, and their number at each rank.
#[derive(Debug)]
pub struct Tcam {
    held: HashSet<FlowId>,
    /// Sums of counts by rank, as a binary indexed tree (P. Fenwick, 1994).
    sums: Vec<u32>,
}

impl Default for Tcam {
    fn default() -> Tcam {
        Tcam { held: HashSet::new(), sums: vec![0; RANKS + 1] }
    }
}

/// A write operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// Adds an entry, or changes its instructions.
    Put,
    /// Removes an entry.
    Take,
}

impl Tcam {
    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.held.len()
    }

    /// Performs a write and returns its duration in nanoseconds.
    pub fn write(&mut self, id: FlowId, write: Write, costs: &Hardware) -> u64 {
        let is_held = self.held.contains(&id);
        match (write, is_held) {
            (Write::Put, true) => costs.modify_ns,
            (Write::Put, false) => {
                let below = self.below(id.rank);
                let above = self.held.len() as u64 - self.up_to(id.rank);
                let moves = if costs.moves == 0 { below } else { above };
                self.held.insert(id);
                self.count(id.rank, 1);
                costs.insert_ns.saturating_add(costs.move_ns.saturating_mul(moves))
            }
            (Write::Take, true) => {
                self.held.remove(&id);
                self.count(id.rank, u32::MAX);
                costs.delete_ns
            }
            (Write::Take, false) => 0,
        }
    }

    fn place(rank: u32) -> usize {
        (rank as usize).min(RANKS - 1) + 1
    }

    /// Adds to the count of a rank, modulo 2^32.
    fn count(&mut self, rank: u32, more: u32) {
        let mut place = Tcam::place(rank);
        while place <= RANKS {
            self.sums[place] = self.sums[place].wrapping_add(more);
            place += place & place.wrapping_neg();
        }
    }

    /// Returns the number of entries at this rank or a lower one.
    fn up_to(&self, rank: u32) -> u64 {
        self.sum(Tcam::place(rank))
    }

    /// Returns the number of entries at a lower rank.
    fn below(&self, rank: u32) -> u64 {
        self.sum(Tcam::place(rank) - 1)
    }

    fn sum(&self, mut place: usize) -> u64 {
        let mut sum = 0;
        while place > 0 {
            sum += u64::from(self.sums[place]);
            place -= place & place.wrapping_neg();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(rank: u32, port: u64) -> FlowId {
        let matching = Match::of(&[(dataplane::key::Field::InPort, port)]);
        FlowId { table: 0, matching, rank }
    }

    fn costs(moves: u64) -> Hardware {
        Hardware {
            insert_ns: 1000,
            move_ns: 10,
            moves,
            modify_ns: 300,
            delete_ns: 70,
            ..Hardware::default()
        }
    }

    #[test]
    fn an_insert_moves_entries_of_lower_priority_and_a_modification_moves_none() {
        let (mut tcam, costs) = (Tcam::default(), costs(0));
        let mut write = |rank, port, write| tcam.write(id(rank, port), write, &costs);
        assert_eq!([5, 6, 7].map(|rank| write(rank, 1, Write::Put)), [1000, 1010, 1020]);
        assert_eq!(write(0x1_0000, 2, Write::Put), 1030, "exact matches have the highest rank");
        assert_eq!(write(6, 2, Write::Put), 1010, "an entry of equal rank stays");
        assert_eq!(write(6, 2, Write::Put), 300);
        assert_eq!((write(5, 1, Write::Take), write(5, 1, Write::Take)), (70, 0));
        assert_eq!(write(6, 3, Write::Put), 1000);
        assert_eq!(tcam.entries(), 5);
    }

    #[test]
    fn an_insert_can_move_entries_of_higher_priority_instead() {
        let (mut tcam, costs) = (Tcam::default(), costs(1));
        let mut write = |rank| tcam.write(id(rank, 1), Write::Put, &costs);
        assert_eq!([7, 6, 5, 9].map(&mut write), [1000, 1010, 1020, 1000]);
    }

    #[test]
    fn moves_equal_a_count_entry_by_entry() {
        let (mut tcam, costs) = (Tcam::default(), Hardware { move_ns: 1, ..Hardware::default() });
        let mut ranks: Vec<u32> = Vec::new();
        let mut dice = 1_u64;
        for port in 0..2_000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let rank = (dice >> 48) as u32;
            let below = ranks.iter().filter(|other| **other < rank).count() as u64;
            assert_eq!(tcam.write(id(rank, port), Write::Put, &costs), below);
            ranks.push(rank);
        }
    }
}
