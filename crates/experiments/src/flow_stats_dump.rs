//! Flow statistics dump time.
//!
//! Method: the controller installs exact-match entries and requests all flow statistics in one request. It reads
//! the reply as fast as it arrives, and only counts the items. The time covers the first byte sent to the end of
//! the last part. Traffic runs at the same time if requested.
//!
//! [`impact`] measures the reverse: the cost of continuous dumps for forwarded frames.

use record::Metric;
use tester::trial::Trial;

use super::controller_trials::{PassTrial, TrialSequence, share};
use super::flow_mod_rate::{TRAFFIC_PERCENT, cycles_ratio};
use super::{Context, Method, flow_mod_scripts};
use workload::Setup;
use workload::parameter::declaration::Parameter;
use workload::parameter::{Table, Traffic, control};

/// Name of the axis.
pub const AXIS: &str = "entries";

/// Name of the axis of [`impact`]: outstanding dumps.
pub const AXIS_IMPACT: &str = "dumps";

/// Number of flows.
pub const FLOWS: Parameter = control::FLOWS.with_default("quick 75000; 750000");

fn setup(context: &Context) -> Setup {
    let traffic = context.parameters.traffic.unwrap_or(Traffic::One);
    let entries = context.count(&FLOWS);
    Setup { table: Table::Exact, entries, traffic, ..context.setup() }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let (setup, traffic) = (setup(context), context.parameters.control.traffic_percent);
    let inside = context.clone();
    let pass_trial = PassTrial {
        x: f64::from(setup.entries),
        curve: None,
        setup: Box::new(move |_| setup),
        trial: Box::new(move |setup, most| {
            let script = flow_mod_scripts::tell_all(&inside);
            match traffic {
                Some(percent) => inside.trial(setup, 64, share(most, percent)).beside(script),
                None => Trial::of_orders(script),
            }
        }),
        flows: 0,
    };
    let course = TrialSequence::new(context, AXIS, vec![pass_trial]);
    Box::new(if traffic.is_some() { course.after_maximum(setup, 64) } else { course })
}

/// Creates the method for the cost of dumps: a trial without dumps, and one with continuous dumps.
pub fn impact(context: &Context) -> Box<dyn Method> {
    let setup = setup(context);
    let percent = context.parameters.control.traffic_percent.unwrap_or(TRAFFIC_PERCENT);
    let pass_trial = |dumps: u8| {
        let context = context.clone();
        PassTrial {
            x: f64::from(dumps),
            curve: None,
            setup: Box::new(move |_| setup),
            trial: Box::new(move |setup, most| {
                let trial = context.trial(setup, 64, share(most, percent));
                match dumps {
                    0 => trial,
                    _ => trial.beside(flow_mod_scripts::tell_all(&context).endless()),
                }
            }),
            flows: 0,
        }
    };
    let course = TrialSequence::new(context, AXIS_IMPACT, vec![pass_trial(0), pass_trial(1)])
        .after_maximum(setup, 64);
    Box::new(course.summing(1.0, Metric::CyclesBusyRatio, cycles_ratio))
}
