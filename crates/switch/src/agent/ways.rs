//! The check before another table becomes the first after output.
//!
//! Source: OpenFlow switch specification 1.5.1, section 7.3.5.18.2. Frames come to egress tables by their output
//! alone, so no entry before the first of them may go on there. The check looks at all entries, over as many turns as
//! that takes.

use std::task::Poll;

use dataplane::flow::FlowFilter;
use dataplane::pipeline::Pipeline;
use dataplane::table::Selection;
use openflow::model::table::features::TableFeatures;
use openflow::version::ErrorCode;
use packet::time::Nanos;

use super::change::Who;
use super::{Agent, Datapath};
use crate::budget::RUN_STEPS;

/// Features that are to be set once no entry before the first table after output goes on there.
pub(super) struct WaysCheck {
    wanted: Vec<TableFeatures>,
    first: u8,
    selection: Selection,
}

impl WaysCheck {
    /// A check for these features, which make `first` the first table after output.
    pub(super) fn new(wanted: Vec<TableFeatures>, first: u8) -> WaysCheck {
        WaysCheck { wanted, first, selection: Selection::new(FlowFilter::ALL) }
    }

    /// Looks at the next entries: frames come to egress tables by their output alone. False if one goes on there.
    fn run(&mut self, pipeline: &Pipeline, now: Nanos, steps: &mut usize) -> bool {
        let first = self.first;
        let crosses = |to: u8| to >= first;
        let mut entries = self.selection.records(pipeline.tables(), now, steps);
        !entries.any(|it| it.table < first && it.instructions.goto.is_some_and(crosses))
    }
}

impl Agent {
    /// Goes on with a check until its end, or until the share of the turn is used up.
    pub(super) fn continue_check(
        &mut self,
        who: Who,
        check: &mut WaysCheck,
        datapath: &mut Datapath<'_>,
    ) -> Poll<Result<(), ErrorCode>> {
        while !check.selection.is_done() {
            let Datapath { pipeline, budget, now, .. } = datapath;
            let (is_good, _) = budget.run(RUN_STEPS, |steps| check.run(pipeline, *now, steps));
            if !is_good {
                return Poll::Ready(Err(ErrorCode::TableFeaturesPermission));
            }
            if datapath.must_pause() && !check.selection.is_done() {
                return Poll::Pending;
            }
        }
        let at = self.connections.iter().position(|connection| connection.id == who.owner);
        let set = self.set_features(&check.wanted, who.version, datapath);
        Poll::Ready(set.and_then(|()| match at {
            Some(at) => self.tell_features(at, who.xid, datapath),
            None => Ok(()),
        }))
    }
}
