//! Selects the entries for a command or a request, a bounded number per call.
//!
//! A [`Selection`] is a cursor over slots. It examines the slots that the match, the cookie or an
//! [index](super::index) yields, or else all slots in order. Entries may be added, changed and
//! removed between two calls: each is checked against the filter when the cursor reaches it.

use packet::time::Nanos;

use super::{FlowRef, Table, Tables};
use crate::action::Action;
use crate::flow::{FlowFilter, FlowRecord, FlowTotals};

/// Budget steps for changing or removing one entry. Examining one costs one step.
pub const CHANGE_STEPS: usize = 16;

/// With more instruction lists than this, the search for a destination scans the entries.
const PROGRAMS_FEW: usize = 64;

/// Whether a call within a budget has finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The budget is exhausted: call again.
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

/// Cursor over the entries that pass a filter, in the order of their slots.
#[derive(Debug, Clone)]
pub struct Selection {
    filter: FlowFilter,
    candidates: Candidates,
    /// Next slot to examine.
    from: usize,
    is_done: bool,
    /// Whether the cursor has returned an entry.
    pub(super) is_used: bool,
}

/// The slots that a selection examines.
#[derive(Debug, Clone)]
enum Candidates {
    /// Not determined yet.
    Unknown,
    /// The slots of all entries.
    All,
    /// These slots, in order.
    Few(Vec<u32>),
}

impl Selection {
    /// Creates a cursor at the first slot.
    pub fn new(filter: FlowFilter) -> Selection {
        Selection {
            filter,
            candidates: Candidates::Unknown,
            from: 0,
            is_done: false,
            is_used: false,
        }
    }

    /// Returns the filter.
    pub fn filter(&self) -> &FlowFilter {
        &self.filter
    }

    /// Whether there are no more entries.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether no slot was examined yet.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.candidates, Candidates::Unknown)
    }

    /// Moves the cursor to a slot, backward or forward.
    pub fn seek(&mut self, place: usize) {
        self.from = place;
        self.is_done = false;
    }

    /// Returns the slot of the next entry; each examined slot costs one step. `None` means that the
    /// budget is exhausted, or that [`Selection::is_done`] is true.
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

    /// Returns views of the next entries until the budget is exhausted.
    pub fn glances<'a>(
        &'a mut self,
        tables: &'a Tables,
        now: Nanos,
        budget: &'a mut usize,
    ) -> impl Iterator<Item = FlowRef<'a>> {
        tables.slab().set_clock(now);
        let tallies = tables.common.tallies();
        std::iter::from_fn(move || {
            let place = self.next(tables, budget)?;
            tables.glance(place as usize, &tallies, now)
        })
    }

    /// Returns copies of the next entries until the budget is exhausted.
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
    /// Begins to select entries. If this kind of filter recurs, an index for it is built along with
    /// later selections and changes.
    pub fn select(&mut self, filter: FlowFilter) -> Selection {
        if filter.strict_rank.is_none() {
            let (entries, places) = (self.flows.len(), self.flows.places());
            self.indexes.want(&filter, entries, places);
        }
        Selection::new(filter)
    }

    /// Sums up the counters of a selection's entries, within a budget.
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

    /// Sums up the counters of the entries that pass the filter.
    pub fn totals(&self, filter: &FlowFilter) -> FlowTotals {
        let mut totals = FlowTotals::default();
        self.add_totals(&mut Selection::new(filter.clone()), &mut totals, &mut usize::MAX.clone());
        totals
    }

    /// Continues the construction of an index that will serve a selection that has not begun.
    /// Returns false if the budget is exhausted first.
    pub(super) fn wait_for_index(&mut self, selection: &Selection, budget: &mut usize) -> bool {
        !selection.is_fresh()
            || !self.indexes.is_building_for(selection.filter())
            || self.build_indexes(budget)
    }

    /// Continues the construction of indexes. Returns false if the budget is exhausted first.
    pub(super) fn build_indexes(&mut self, budget: &mut usize) -> bool {
        self.indexes.build(&self.flows, &self.common.slab, budget)
    }

    /// Returns the slots of all entries that can pass the filter, and perhaps of others, if these
    /// are few. They are in order.
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

    /// Returns false if the filter names a destination that no instruction list has.
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
