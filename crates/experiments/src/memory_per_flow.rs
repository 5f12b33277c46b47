//! Memory per flow, all overhead included.
//!
//! Method: the resident memory of the target's processes, including huge pages, is read after their start without
//! entries, and again with exact-match entries. The growth is divided by the number of entries. Frames then use all
//! flows, so that caches contain each decision, and the growth since the start is read again. Each repeat starts
//! new processes.

use packet::time::Nanos;
use tester::trial::Trial;

use super::controller_trials::{PassTrial, TrialSequence};
use super::{Context, Method};
use workload::Setup;
use workload::parameter::declaration::Parameter;
use workload::parameter::{Table, Traffic, control};

/// Name of the axis: whether frames of each flow have been forwarded.
pub const AXIS: &str = "flows_met";

/// Number of flows.
pub const FLOWS: Parameter = control::FLOWS.with_default("quick 100000; 1000000");

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let entries = context.count(&FLOWS);
    let (table, traffic) = (Table::Exact, Traffic::Sequential);
    let base = Setup { table, entries, traffic, is_fresh: true, ..context.setup() };
    let pass_trial = |is_met: bool| {
        let context = context.clone();
        PassTrial {
            x: f64::from(u8::from(is_met)),
            curve: None,
            setup: Box::new(move |repeat| Setup { shift: repeat, ..base }),
            trial: Box::new(move |setup, _| match is_met {
                true => context.trial(setup, 64, context.link_percent(100.0)),
                false => Trial::new(Vec::new(), Nanos::ZERO, Nanos::ZERO, Nanos::ZERO),
            }),
            flows: entries.into(),
        }
    };
    Box::new(TrialSequence::new(context, AXIS, vec![pass_trial(false), pass_trial(true)]))
}
