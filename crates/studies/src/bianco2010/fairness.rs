//! Two flows that share a target: common part of figures 9 and 10.
//!
//! Method: [`fairness`](experiments::fairness) with two flows of 96-byte frames, each uniformly random over one
//! half of 64K entries. F1 has 10 percent of a load C, F2 has 40, 50, 60 or 90. The study's C is the capacity of
//! its link. Here, C is the target's own forwarding rate of both flows at full nominal load (F1 a tenth of it),
//! divided by 0.65. A total of 50 percent of C is therefore about three quarters of the maximum, 60 percent is just
//! below it, and 70 and 100 percent are above it. Parameters: `--set entries=` and `--set frame=`; `--set load=`
//! the loads of F2.

use super::FRAMES_SMALL;
use experiments::fairness::{Flows, LOADS, method as beside};
use experiments::{Context, Method};
use workload::Setup;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

pub use experiments::fairness::AXIS;

/// Entries of the table.
const ENTRIES: Parameter = shared::SIZE.with_default("65536");

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES_SMALL, LOADS, ENTRIES];

/// Load of F1, in percent of C.
pub const F1_PERCENT: f64 = 10.0;

/// Creates the method for one target, with one or two input ports.
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
