//! Two flows that share a target: what figures 9 and 10 have in common.
//!
//! Method: both flows are of 96-byte frames, uniformly random over 64K entries, half of them each. F1
//! has 10 percent of a load C, F2 40, 50, 60 or 90. The study's C is the capacity of its link. Here C is found for each
//! target: the maximum that it forwards of the two flows at full nominal load (F1 a tenth of it), over
//! 0.65. So 50 percent of C in all are about three quarters of the maximum, 60 are just below it, 70 and
//! 100 percent are more than it. Findings are the loss of each flow, their difference PL(F1) - PL(F2),
//! which above zero says that F1 loses more, Jain's index and the max-min share.
//! Parameters: `--set entries=` and the first size of `--set frame=`; `--set load=` the loads of F2.

use super::super::course::{Course, Leg, share};
use super::super::{Context, Method};
use super::FRAME_BYTES_SMALL;
use crate::workload::Setup;

/// Entries of the table.
pub const ENTRIES: u32 = 65_536;

/// Load of F1, in percent of C.
pub const F1_PERCENT: f64 = 10.0;

/// Loads of F2, in percent of C.
pub const F2_PERCENT: [f64; 4] = [40.0, 50.0, 60.0, 90.0];

/// What a target forwards at most, as a share of C.
pub const MAXIMUM_SHARE: f64 = 0.65;

/// Name of the axis.
pub const AXIS: &str = "f2_percent";

/// The method on one target, with one input port or two.
pub fn method(context: &Context, inputs: u8) -> Box<dyn Method> {
    let frame_bytes = context.frames_or(&[FRAME_BYTES_SMALL])[0];
    let entries = context.entries_or(&[ENTRIES])[0];
    let setup = Setup { inputs, ..super::full_table(context, entries) };
    let (technology, addresses) = (context.technology, context.addresses);
    let flows = move |setup: &Setup, rates| {
        setup.two_flows(technology, &addresses, frame_bytes, rates).to_vec()
    };
    let full = [F1_PERCENT, 100.0 - F1_PERCENT].map(|percent| context.link_percent(percent));
    let renews = super::renews(context);
    let search = context.trial_of(flows(&setup, full));
    let leg = |percent: f64| {
        let context = context.clone();
        Leg {
            x: percent,
            setup: Box::new(move |repeat| Setup {
                shift: if renews { repeat } else { 0 },
                ..setup
            }),
            trial: Box::new(move |setup, most_pps| {
                let whole_pps = most_pps / MAXIMUM_SHARE;
                let rates = [F1_PERCENT, percent].map(|percent| share(whole_pps, percent));
                context.trial_of(flows(setup, rates))
            }),
            flows: 0,
        }
    };
    let legs = context.loads_or(&F2_PERCENT).into_iter().map(leg).collect();
    Box::new(Course::new(context, AXIS, legs).after_maximum_of(setup, search))
}
