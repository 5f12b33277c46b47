//! Setting what tables can do, over as many turns as that takes.
//!
//! Source: OpenFlow switch specification 1.5.1, section 7.3.5.18. Each table of the request is checked by itself. Where
//! another table becomes the first after output, all entries are read too: frames come to egress tables by their output
//! alone, so no entry before the first of them may go on there.
//!
//! Invariant: nothing is set before all of it is checked.

use std::task::Poll;

use dataplane::flow::FlowFilter;
use dataplane::pipeline::Pipeline;
use dataplane::table::Selection;
use openflow::model::table::features::{TableFeatures, TableFeaturesCommand};
use openflow::version::{ErrorCode, Version};
use packet::time::Nanos;

use super::change::Who;
use super::features::{Features, first_egress};
use super::{Agent, Datapath};
use crate::budget::RUN_STEPS;

/// Steps of checking what a request says of one table.
const ROW_STEPS: u32 = 2048;

/// Features of tables that are to be set, and how far their check has come.
pub(super) struct FeaturesChange {
    wanted: Vec<TableFeatures>,
    /// The next of them to be checked.
    next: usize,
    /// A bit for each table that was named.
    named: [u64; 4],
    /// What tables can do with those that were checked.
    after: Features,
    /// The first table after output, if the request says so.
    egress: Option<Option<u8>>,
    /// The entries to be read, where that is another one.
    entries: Option<Selection>,
}

impl FeaturesChange {
    /// A change to these features from those that there are.
    pub(super) fn new(
        wanted: Vec<TableFeatures>,
        version: Version,
        before: &Features,
    ) -> Result<FeaturesChange, ErrorCode> {
        let egress = first_egress(&wanted, version)?;
        let mut after = before.clone();
        if wanted.iter().any(|it| it.command == TableFeaturesCommand::Replace) {
            after.clear();
        }
        let entries = egress.flatten().map(|_| Selection::new(FlowFilter::ALL));
        Ok(FeaturesChange { wanted, next: 0, named: [0; 4], after, egress, entries })
    }

    /// Checks the next table of the request. False if there is none.
    fn check_next(&mut self, version: Version, pipeline: &Pipeline) -> Result<bool, ErrorCode> {
        let Some(row) = self.wanted.get(self.next) else { return Ok(false) };
        let (word, bit) = (usize::from(row.table) / 64, 1 << (row.table % 64));
        if self.named[word] & bit != 0 {
            return Err(ErrorCode::TableFeaturesBadTable);
        }
        self.named[word] |= bit;
        self.after.set(row, version, pipeline)?;
        self.next += 1;
        Ok(true)
    }

    /// Reads the next entries. Fails if one goes on past the first table after output.
    fn read(
        &mut self,
        pipeline: &Pipeline,
        now: Nanos,
        steps: &mut usize,
    ) -> Result<bool, ErrorCode> {
        let Some(selection) = &mut self.entries else { return Ok(true) };
        let first = self.egress.flatten().unwrap_or(u8::MAX);
        let crosses = |to: u8| to >= first;
        let mut entries = selection.records(pipeline.tables(), now, steps);
        if entries.any(|it| it.table < first && it.instructions.goto.is_some_and(crosses)) {
            return Err(ErrorCode::TableFeaturesPermission);
        }
        drop(entries);
        Ok(selection.is_done())
    }
}

impl Agent {
    /// Goes on with a change of features until its end, or until the share of the turn is used up.
    pub(super) fn continue_features(
        &mut self,
        who: Who,
        change: &mut FeaturesChange,
        datapath: &mut Datapath<'_>,
    ) -> Poll<Result<(), ErrorCode>> {
        loop {
            if datapath.must_pause() {
                return Poll::Pending;
            }
            match change.check_next(who.version, datapath.pipeline) {
                Ok(true) => datapath.budget.spend(ROW_STEPS),
                Ok(false) => break,
                Err(code) => return Poll::Ready(Err(code)),
            }
        }
        loop {
            let Datapath { pipeline, budget, now, .. } = datapath;
            match budget.run(RUN_STEPS, |steps| change.read(pipeline, *now, steps)).0 {
                Ok(true) => break,
                Ok(false) if datapath.must_pause() => return Poll::Pending,
                Ok(false) => {}
                Err(code) => return Poll::Ready(Err(code)),
            }
        }
        let after = change.after.clone();
        let set = self.set_features(after, change.egress, datapath);
        if let (Ok(()), Some(at)) = (set, self.place_of(who.owner)) {
            self.tell_features(at, who.xid, datapath);
        }
        Poll::Ready(set)
    }
}
