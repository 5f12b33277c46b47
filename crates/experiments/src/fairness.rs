//! Fairness: distribution of loss between flows that share an overloaded target.
//!
//! Method: all flows except the last have fixed loads, in percent of a load C; the last has a rising load (`--set
//! load=`). C is specific to each target: the maximum forwarding rate of all flows at full nominal load, divided by
//! a fixed share. The overload is therefore known beforehand. All flows use one input port, or the last flow has
//! its own.
//!
//! Results are the loss of the first and of the last flow, their difference (first minus last: above zero, the
//! first loses more), Jain's index of forwarded over offered load, and the max-min share. bianco2010's figures 9
//! and 10 use two flows; the experiments `fairness/...` accept any loads.
//!
//! Parameters:
//!
//! - `--set background_flow_loads=`: the fixed loads.
//! - `--set load=`: the loads of the last flow.
//! - `--set entries=`: the entries over which the flows are uniformly random, in equal parts.
//! - `--set frame=`: the frame sizes, each with its own C.

use tester::stream::{Rate, Stream};

use super::controller_trials::{PassTrial, TrialSequence, share};
use super::{Context, FRAME_CURVE, Method, curve_of};
use workload::Setup;
use workload::parameter::Traffic;
use workload::parameter::declaration::{Parameter, Values};
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "f2_percent";

/// Loads of the last flow.
pub const LOADS: Parameter = Parameter {
    default: "40,50,60,90",
    help: "loads of the last flow, in percent of C",
    ..shared::LOADS
};

/// Maximum forwarding rate of a target, as a share of C.
pub const MAXIMUM_SHARE: f64 = 0.65;

/// Number of table entries.
const ENTRIES: Parameter = shared::SIZE.with_default("1024");

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAMES, LOADS, ENTRIES];

/// Settings of the flows.
#[derive(Debug, Clone)]
pub struct Flows {
    /// Setup of the target, with the number of input ports and flows.
    pub setup: Setup,
    /// Frame sizes, including the FCS; one curve each.
    pub frames: Values<u16>,
    /// Loads of all flows except the last, in percent of C.
    pub fixed: Vec<f64>,
    /// Loads of the last flow in percent of C, one after another.
    pub loads: Values<f64>,
    /// Whether the table is filled again for each repeat.
    pub renews: bool,
}

/// Creates the method with one input port.
pub fn by_one_port(context: &Context) -> Box<dyn Method> {
    own(context, 1)
}

/// Creates the method with two input ports.
pub fn by_two_ports(context: &Context) -> Box<dyn Method> {
    own(context, 2)
}

fn own(context: &Context, inputs: u8) -> Box<dyn Method> {
    let fixed = context.parameters.methods.shares.clone();
    let (entries, parts) = (context.count(&ENTRIES), fixed.len() as u8 + 1);
    let base = Setup { traffic: Traffic::Random, ..context.setup() };
    let table = context.parameters.table.unwrap_or(workload::parameter::Table::Exact);
    let flows = Flows {
        setup: Setup { table, entries: entries.max(parts.into()), inputs, parts, ..base },
        frames: context.frames(&shared::FRAMES),
        fixed,
        loads: context.loads(&LOADS),
        renews: false,
    };
    method(context, flows)
}

/// Creates the method for these flows.
pub fn method(context: &Context, flows: Flows) -> Box<dyn Method> {
    let Flows { setup, frames, fixed, loads, renews } = flows;
    let (technology, addresses) = (context.technology, context.addresses);
    let streams = move |setup: &Setup, frame_bytes: u16, rates: &[Rate]| -> Vec<Stream> {
        setup.flows_beside(technology, &addresses, frame_bytes, rates)
    };
    let taken: f64 = fixed.iter().sum();
    let last = (100.0 - taken).max(1.0);
    let full: Vec<Rate> =
        fixed.iter().chain([&last]).map(|percent| context.link_percent(*percent)).collect();
    let curve = |frame_bytes: u16| curve_of(FRAME_CURVE, &frames, frame_bytes);
    let pass_trial = |frame_bytes: u16, percent: f64| {
        let (context, fixed) = (context.clone(), fixed.clone());
        PassTrial {
            x: percent,
            curve: curve(frame_bytes),
            setup: Box::new(move |repeat| Setup {
                shift: if renews { repeat } else { 0 },
                ..setup
            }),
            trial: Box::new(move |setup, most_pps| {
                let whole_pps = most_pps / MAXIMUM_SHARE;
                let rates =
                    fixed.iter().chain([&percent]).map(|percent| share(whole_pps, *percent));
                context.trial_of(streams(setup, frame_bytes, &rates.collect::<Vec<_>>()))
            }),
            flows: 0,
        }
    };
    let of = |&frame_bytes: &u16| loads.iter().map(move |&percent| (frame_bytes, percent));
    let pass_trials =
        frames.iter().flat_map(of).map(|(size, percent)| pass_trial(size, percent)).collect();
    let course = TrialSequence::new(context, AXIS, pass_trials);
    Box::new(frames.iter().fold(course, |course, &size| {
        let search = context.trial_of(streams(&setup, size, &full));
        course.after_maximum_of(curve(size), setup, search)
    }))
}
