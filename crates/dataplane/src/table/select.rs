//! Which entries a command or a request is about, found a bounded number at a time.
//!
//! A [`Selection`] is a cursor over the places of entries. It examines only the places that the match,
//! the cookie or an [index](super::index) leaves, or else every place in order. Entries may come, change
//! and go between two calls: each is checked against the filter when the cursor reaches it.

use packet::time::Nanos;

use super::{Glance, Table, Tables};
use crate::action::Action;
use crate::flow::{FlowFilter, FlowRecord, FlowTotals};

/// Steps of a budget that changing or removing one entry costs. Examining one costs one step.
pub const CHANGE_STEPS: usize = 16;

/// With more lists of instructions than this, the search for a destination reads the entries.
const PROGRAMS_FEW: usize = 64;

/// Whether a call that works within a budget did everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The budget was used up: call again.
    More,
    /// Everything is done.
    Done,
}

impl Progress {
    /// Whether everything is done.
    pub fn is_done(self) -> bool {
        self == Progress::Done
    }
}

/// The entries that a filter lets through, one after the other in the order of their places.
#[derive(Debug, Clone)]
pub struct Selection {
    filter: FlowFilter,
    candidates: Candidates,
    /// The next place to examine.
    from: usize,
    is_done: bool,
    /// Whether an entry was returned.
    pub(super) is_used: bool,
}

/// The places that a selection examines.
#[derive(Debug, Clone)]
enum Candidates {
    /// Not determined yet.
    Unknown,
    /// Those of all entries.
    All,
    /// These, in order.
    Few(Vec<u32>),
}

impl Selection {
    /// Begins at the first place.
    pub fn new(filter: FlowFilter) -> Selection {
        Selection {
            filter,
            candidates: Candidates::Unknown,
            from: 0,
            is_done: false,
            is_used: false,
        }
    }

    /// What selects the entries.
    pub fn filter(&self) -> &FlowFilter {
        &self.filter
    }

    /// Whether there are no more entries.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether no place was examined yet.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.candidates, Candidates::Unknown)
    }

    /// Goes back, or forward, so that the entry at `place` comes next if there is one.
    pub fn seek(&mut self, place: usize) {
        self.from = place;
        self.is_done = false;
    }

    /// Returns the next entry's place and subtracts a step from the budget for each place that it
    /// examines. `None` means that the budget is used up, unless [`Selection::is_done`].
    pub fn next(&mut self, tables: &Tables, budget: &mut usize) -> Option<u32> {
        if self.is_fresh() {
            self.candidates = tables.few(&self.filter).map_or(Candidates::All, Candidates::Few);
        }
        while !self.is_done && *budget > 0 {
            let place = match &self.candidates {
                Candidates::Few(few) => {
                    let at = few.partition_point(|&place| (place as usize) < self.from);
                    few.get(at).map(|&place| place as usize)
                }
                _ => match tables.flows.next(self.from, budget) {
                    Ok(place) => place,
                    Err(from) => {
                        self.from = from;
                        return None;
                    }
                },
            };
            let Some(place) = place else {
                self.is_done = true;
                break;
            };
            *budget = budget.saturating_sub(1);
            self.from = place + 1;
            if tables.lets_through(&self.filter, place) {
                self.is_used = true;
                return Some(place as u32);
            }
        }
        None
    }

    /// The next entries with their counters, until the budget is used up.
    pub fn glances<'a>(
        &'a mut self,
        tables: &'a Tables,
        now: Nanos,
        budget: &'a mut usize,
    ) -> impl Iterator<Item = Glance<'a>> {
        tables.slab().set_clock(now);
        let tallies = tables.common.tallies();
        std::iter::from_fn(move || {
            let place = self.next(tables, budget)?;
            tables.glance(place as usize, &tallies, now)
        })
    }

    /// Copies of the next entries, until the budget is used up.
    pub fn records<'a>(
        &'a mut self,
        tables: &'a Tables,
        now: Nanos,
        budget: &'a mut usize,
    ) -> impl Iterator<Item = FlowRecord> {
        self.glances(tables, now, budget).map(|entry| entry.record())
    }
}

impl Tables {
    /// Begins to select entries. If filters of this kind keep coming, an index for them is built while
    /// selections and changes go on.
    pub fn select(&mut self, filter: FlowFilter) -> Selection {
        if filter.strict_rank.is_none() {
            let (entries, places) = (self.flows.len(), self.flows.places());
            self.indexes.want(&filter, entries, places);
        }
        Selection::new(filter)
    }

    /// Adds up what the entries of a selection have counted, as far as the budget goes.
    pub fn totals_some(
        &mut self,
        selection: &mut Selection,
        totals: &mut FlowTotals,
        budget: &mut usize,
    ) -> Progress {
        if self.wait_for_index(selection, budget) {
            self.add_totals(selection, totals, budget);
        }
        if selection.is_done() { Progress::Done } else { Progress::More }
    }

    fn add_totals(&self, selection: &mut Selection, totals: &mut FlowTotals, budget: &mut usize) {
        let tallies = self.common.tallies();
        let clock = self.slab().clock();
        while let Some(place) = selection.next(self, budget) {
            let sums = tallies.sums(self.slab().line(place), place, clock);
            let sums = self.above_base(place, sums);
            totals.frames += sums.frames;
            totals.bytes += sums.bytes;
            totals.entries += 1;
        }
    }

    /// Sums over the entries that the filter lets through.
    pub fn totals(&self, filter: &FlowFilter) -> FlowTotals {
        let mut totals = FlowTotals::default();
        self.add_totals(&mut Selection::new(filter.clone()), &mut totals, &mut usize::MAX.clone());
        totals
    }

    /// Builds the index that serves a selection that has not begun, if one is being built. False if the
    /// budget was used up before it was complete.
    pub(super) fn wait_for_index(&mut self, selection: &Selection, budget: &mut usize) -> bool {
        !selection.is_fresh()
            || !self.indexes.is_building_for(selection.filter())
            || self.build_indexes(budget)
    }

    /// Goes on building indexes. False if the budget was used up before they were complete.
    pub(super) fn build_indexes(&mut self, budget: &mut usize) -> bool {
        self.indexes.build(&self.flows, &self.common.slab, budget)
    }

    /// Where only few entries can pass the filter: their places and perhaps others, in order.
    pub(super) fn few(&self, filter: &FlowFilter) -> Option<Vec<u32>> {
        let tables = match filter.table {
            Some(table) => self.tables.get(usize::from(table)..=usize::from(table))?,
            None => &self.tables[..],
        };
        let matching = &filter.matching;
        let slab = self.slab();
        let mut places: Vec<u32> = match filter.strict_rank {
            Some(wanted) => {
                let same = |table: &Table| table.find_same(slab, matching, wanted);
                tables.iter().filter_map(same).collect()
            }
            None if !self.has_destination(filter) => Vec::new(),
            None if !matching.is_exact() || tables.iter().any(Table::hides_whole_keys) => {
                self.indexes.few(filter)?
            }
            None => {
                let same = |table: &Table| table.find_exact(slab, matching);
                tables.iter().filter_map(same).collect()
            }
        };
        places.sort_unstable();
        Some(places)
    }

    /// False if the filter asks for a destination and no entry's instructions have it.
    fn has_destination(&self, filter: &FlowFilter) -> bool {
        let wanted = filter.destination.iter().copied();
        let mut wanted = wanted.chain(filter.group.map(Action::Group));
        self.programs.count() > PROGRAMS_FEW
            || wanted.all(|wanted| {
                let mut programs = self.programs.iter();
                programs.any(|it| it.actions().any(|action| action.same_destination(&wanted)))
            })
    }
}
