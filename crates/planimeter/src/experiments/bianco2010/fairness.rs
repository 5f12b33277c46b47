//! Two flows that share a target: what figures 9 and 10 have in common.
//!
//! Method: [`fairness`](super::super::fairness) with two flows of 96-byte frames, uniformly random over 64K entries,
//! half of them each. F1 has 10 percent of a load C, F2 40, 50, 60 or 90. The study's C is the capacity of its link.
//! Here C is what the target itself forwards of both flows at full nominal load (F1 a tenth of it), over 0.65. So 50
//! percent of C in all are about three quarters of the maximum, 60 are just below it, 70 and 100 percent are more
//! than it.
//! Parameters: `--set entries=` and `--set frame=`; `--set load=` the loads of F2.

use super::super::fairness::{Flows, LOADS, method as beside};
use super::super::{Context, Method};
use super::FRAMES_SMALL;
use crate::parameter::own::Declared;
use crate::parameter::shared;
use crate::workload::Setup;

pub use super::super::fairness::AXIS;

/// Entries of the table.
const ENTRIES: Declared = shared::SIZE.with_default("65536");

/// Parameters of the experiment.
pub const PARAMETERS: &[Declared] = &[FRAMES_SMALL, LOADS, ENTRIES];

/// Load of F1, in percent of C.
pub const F1_PERCENT: f64 = 10.0;

/// The method on one target, with one input port or two.
pub fn method(context: &Context, inputs: u8) -> Box<dyn Method> {
    let entries = context.count(&ENTRIES);
    let flows = Flows {
        setup: Setup { inputs, ..super::full_table(context, entries) },
        frames: context.frames(&FRAMES_SMALL),
        fixed: vec![F1_PERCENT],
        loads: context.loads(&LOADS),
        renews: super::renews(context),
    };
    beside(context, flows)
}
