//! Flows that share a target: who loses how much when it is offered more than it forwards.
//!
//! Method: all flows but the last have fixed loads, in percent of a load C, and the last a rising one (`--set load=`).
//! C is found for each target: the maximum that it forwards of all flows at full nominal load, over a stated share, so
//! that what is too much is known beforehand. All by one input port, or the last by a port of its own.
//! Findings are the loss of the first and of the last flow, their difference (first less last: above zero the first
//! loses more), Jain's index of what each got of what it offered, and the max-min share.
//! bianco2010's figures 9 and 10 are this with two flows; the experiments `fairness/...` take any loads.
//! Parameters: `--set shares=`, the fixed loads; `--set load=` those of the last; `--set entries=`, over which the flows
//! are uniformly random, in equal parts; the first size of `--set frame=`.

use instrument::stream::{Rate, Stream};

use super::course::{Course, Leg, share};
use super::{Context, Method};
use crate::parameter::Traffic;
use crate::workload::Setup;

/// Name of the axis.
pub const AXIS: &str = "f2_percent";

/// Loads of the last flow, in percent of C.
pub const LOAD_PERCENT: [f64; 4] = [40.0, 50.0, 60.0, 90.0];

/// What a target forwards at most, as a share of C.
pub const MAXIMUM_SHARE: f64 = 0.65;

/// Entries of the table, unless others are asked for.
const ENTRIES: u32 = 1024;

/// What the flows are.
#[derive(Debug, Clone)]
pub struct Flows {
    /// What the target holds, with its number of inputs and of flows.
    pub setup: Setup,
    /// Frame size, FCS included.
    pub frame_bytes: u16,
    /// Loads of all flows but the last, in percent of C.
    pub fixed: Vec<f64>,
    /// Loads of the last, in percent of C: one after the other.
    pub loads: Vec<f64>,
    /// Whether the table is filled anew for each repeat.
    pub renews: bool,
}

/// The method with one input port.
pub fn by_one_port(context: &Context) -> Box<dyn Method> {
    own(context, 1)
}

/// The method with two.
pub fn by_two_ports(context: &Context) -> Box<dyn Method> {
    own(context, 2)
}

fn own(context: &Context, inputs: u8) -> Box<dyn Method> {
    let fixed = context.parameters.methods.shares.clone();
    let (entries, parts) = (context.entries_or(&[ENTRIES])[0], fixed.len() as u8 + 1);
    let base = Setup { traffic: Traffic::Random, ..context.setup() };
    let table = context.parameters.table.unwrap_or(crate::parameter::Table::Exact);
    let flows = Flows {
        setup: Setup { table, entries: entries.max(parts.into()), inputs, parts, ..base },
        frame_bytes: context.frames_or(&[64])[0],
        fixed,
        loads: context.loads_or(&LOAD_PERCENT),
        renews: false,
    };
    method(context, flows)
}

/// These flows at work.
pub fn method(context: &Context, flows: Flows) -> Box<dyn Method> {
    let Flows { setup, frame_bytes, fixed, loads, renews } = flows;
    let (technology, addresses) = (context.technology, context.addresses);
    let streams = move |setup: &Setup, rates: &[Rate]| -> Vec<Stream> {
        setup.flows_beside(technology, &addresses, frame_bytes, rates)
    };
    let taken: f64 = fixed.iter().sum();
    let last = (100.0 - taken).max(1.0);
    let full: Vec<Rate> =
        fixed.iter().chain([&last]).map(|percent| context.link_percent(*percent)).collect();
    let search = context.trial_of(streams(&setup, &full));
    let leg = |percent: f64| {
        let (context, fixed) = (context.clone(), fixed.clone());
        Leg {
            x: percent,
            setup: Box::new(move |repeat| Setup {
                shift: if renews { repeat } else { 0 },
                ..setup
            }),
            trial: Box::new(move |setup, most_pps| {
                let whole_pps = most_pps / MAXIMUM_SHARE;
                let rates =
                    fixed.iter().chain([&percent]).map(|percent| share(whole_pps, *percent));
                context.trial_of(streams(setup, &rates.collect::<Vec<_>>()))
            }),
            flows: 0,
        }
    };
    let legs = loads.into_iter().map(leg).collect();
    Box::new(Course::new(context, AXIS, legs).after_maximum_of(setup, search))
}
