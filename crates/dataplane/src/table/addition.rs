//! Adding an entry within a budget: overlap check, space in a full table, and a free slot.
//!
//! Source: OpenFlow switch specification 1.3.5, section 6.4 (`OFPFF_CHECK_OVERLAP`); 1.4.1, section
//! 7.3.4.1. The lookup structures immediately find an overlapping entry that matches on no more
//! bits than the new one. Other entries are scanned, with an [index](super::index) if the new match
//! covers them.

use packet::time::Nanos;

use super::Tables;
use super::select::{Progress, Selection};
use crate::classifier::Overlap;
use crate::flow::{FlowError, FlowFilter, FlowRemovedReason, FlowSpec, Part};
use crate::forwarder::Outputs;

/// Number of entries that each addition moves into structures under construction.
const BUILD_STEPS: usize = 8;

/// Progress of adding an entry.
#[derive(Debug, Clone)]
pub struct Addition {
    spec: FlowSpec,
    check: Check,
}

/// Progress of the overlap check.
#[derive(Debug, Clone)]
enum Check {
    /// Not begun.
    Wanted,
    /// Scanning these entries.
    Among(Box<Selection>),
    /// Done, or not requested.
    Done,
}

impl Addition {
    /// Begins to add an entry.
    pub fn new(spec: FlowSpec) -> Addition {
        let check = if spec.flags.check_overlap { Check::Wanted } else { Check::Done };
        Addition { spec, check }
    }

    /// Returns the requested entry.
    pub fn spec(&self) -> &FlowSpec {
        &self.spec
    }
}

impl Tables {
    /// Installs an entry and replaces one with the same match and rank. The counters continue
    /// unless the request resets them.
    ///
    /// A full table with eviction evicts the least important entry that is not more important than
    /// the new one. If there are several, it evicts the one with the least remaining time.
    pub fn add(&mut self, spec: &FlowSpec, now: Nanos, out: &mut Outputs) -> Result<(), FlowError> {
        let mut addition = Addition::new(spec.clone());
        while !self.add_some(&mut addition, now, out, &mut usize::MAX.clone())?.is_done() {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Like [`Tables::add`], within a budget. Call it until it is done or fails. While every slot
    /// is in use or may be read by a thread, it returns not done and uses no steps.
    pub fn add_some(
        &mut self,
        addition: &mut Addition,
        now: Nanos,
        out: &mut Outputs,
        budget: &mut usize,
    ) -> Result<Progress, FlowError> {
        self.check(&addition.spec)?;
        self.close();
        self.slab().set_clock(now);
        self.build_indexes(&mut BUILD_STEPS.clone());
        let table = addition.spec.table;
        if self.tables[usize::from(table)].config.eviction {
            self.build_order(table, &mut BUILD_STEPS.clone());
        }
        if !self.check_overlap(addition, budget)?.is_done() {
            return Ok(Progress::More);
        }
        let spec = &addition.spec;
        let same =
            self.tables[usize::from(table)].find_same(self.slab(), &spec.matching, spec.rank);
        match same {
            Some(place) => self.replace(place, spec, now),
            None => {
                let Some(part) = self.make_room(spec, now, budget)? else {
                    return Ok(Progress::More);
                };
                if !self.has_place() {
                    return Ok(Progress::More);
                }
                self.install(spec, part, now);
            }
        }
        self.tell_vacancy(table);
        self.event_queue.tell(out);
        Ok(Progress::Done)
    }

    /// Continues the check for entries of the same rank that could match the same frame. Fails if
    /// there is one.
    fn check_overlap(
        &mut self,
        addition: &mut Addition,
        budget: &mut usize,
    ) -> Result<Progress, FlowError> {
        let Addition { spec, check } = addition;
        if let Check::Wanted = check {
            let table = &self.tables[usize::from(spec.table)];
            let all = FlowFilter { table: Some(spec.table), ..FlowFilter::ALL };
            let filter = match table.overlap(self.slab(), &spec.matching, spec.rank) {
                Overlap::Yes => return Err(FlowError::Overlap),
                Overlap::No => None,
                Overlap::Covered => Some(FlowFilter { matching: spec.matching, ..all }),
                Overlap::Unknown => Some(all),
            };
            *check = filter.map_or(Check::Done, |it| Check::Among(Box::new(self.select(it))));
        }
        if let Check::Among(selection) = check {
            if self.wait_for_index(selection, budget) {
                while let Some(place) = selection.next(self, budget) {
                    let flow =
                        self.flow(place).filter(|_| self.slab().line(place).rank() == spec.rank);
                    let matching = flow.map(|flow| self.matching(place as usize, flow));
                    if matching.is_some_and(|matching| matching.overlaps(&spec.matching)) {
                        return Err(FlowError::Overlap);
                    }
                }
            }
            if !selection.is_done() {
                return Ok(Progress::More);
            }
            *check = Check::Done;
        }
        Ok(Progress::Done)
    }

    /// Returns the part for an entry, and evicts another entry if that part is full and eviction is
    /// enabled. Eviction uses part of the budget; returns `None` if it is exhausted first.
    fn make_room(
        &mut self,
        spec: &FlowSpec,
        now: Nanos,
        budget: &mut usize,
    ) -> Result<Option<Part>, FlowError> {
        let table = &self.tables[usize::from(spec.table)];
        let part = table.part_for(self.slab(), &spec.matching);
        if !table.is_full(part) {
            return Ok(Some(part));
        }
        let Some(victim) = self.find_victim((spec, part), budget)? else { return Ok(None) };
        self.say_farewell(victim, FlowRemovedReason::Eviction, None, now);
        // The evicted entry may have been the reason why the new one belonged to the wildcard part.
        Ok(Some(self.tables[usize::from(spec.table)].part_for(self.slab(), &spec.matching)))
    }
}
