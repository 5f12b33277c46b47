//! Changes of table features, over as many turns as that takes.
//!
//! Source: OpenFlow switch specification 1.5.1, section 7.3.5.18. Each table of the request is
//! checked separately. If the first egress table changes, all flow entries are checked too. Frames
//! reach egress tables only through output, so no entry of an ingress table may continue there.
//!
//! Invariant: nothing is set before everything is checked.

use std::task::Poll;

use dataplane::flow::FlowFilter;
use dataplane::pipeline::Pipeline;
use dataplane::table::Selection;
use openflow::model::table::features::{TableFeatures, TableFeaturesCommand};
use openflow::version::{ErrorCode, Version};
use packet::time::Nanos;

use super::change::Origin;
use super::features::{Features, first_egress};
use super::{Agent, Datapath};
use crate::budget::RUN_STEPS;

/// Budget steps of checking the features of one table.
const ROW_STEPS: u32 = 2048;

/// A change of table features, and the progress of its check.
pub(super) struct FeaturesChange {
    wanted: Vec<TableFeatures>,
    /// Index of the next table to check.
    next: usize,
    /// One bit for each table in the request so far.
    named: [u64; 4],
    /// The table features after the change, as far as checked.
    after: Features,
    /// The new first egress table, if the request sets it.
    egress: Option<Option<u8>>,
    /// The flow entries to check, if the first egress table changes.
    entries: Option<Selection>,
}

impl FeaturesChange {
    /// Creates a change from the current features to those of the request.
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

    /// Checks the next table of the request. Returns false if there is none.
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

    /// Checks the next flow entries. Fails if one continues to an egress table.
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
    /// Continues a change of features until its end, or until the share of the turn is spent.
    pub(super) fn continue_features(
        &mut self,
        who: Origin,
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
