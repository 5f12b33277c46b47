//! Cost of program swaps for forwarded frames.
//!
//! Source: the third requirement of gelberger2013, section III: the program of an element can be changed while it
//! runs. This project's own goal: no loss, no reordering and at most 100 µs more latency at the 99th percentile.
//!
//! Method: the first trial finds the target's own maximum, its forwarding rate under full nominal load. Trials at
//! 80 % of it follow (`--set background_load_percent=`), alternately without and with swaps. Swaps are spread evenly over the trial;
//! each loads a new copy of the same program through the element's control socket. The result of each pair of
//! trials is the difference of their 99th percentiles of latency. Loss, reordering and latency are reported for
//! each trial.
//!
//! At fifty swaps per second (`--set swaps_per_s=`), a delay of 200 µs after each swap covers a hundredth of the
//! time. The percentile therefore includes any longer delay.

use record::Metric;
use tester::trial::{Trial, TrialReport};

use super::controller_trials::{PassTrial, TrialSequence, share};
use super::{Context, Method};
use workload::parameter::declaration::{Parameter, ValueType};
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "swaps_per_s";

/// Load in percent of the maximum.
const TRAFFIC_PERCENT: f64 = 80.0;

const SWAPS: Parameter = Parameter {
    key: "swaps_per_s",
    takes: ValueType::Number(0.1, 1000.0),
    default: "50",
    unit: "per second",
    help: "program swaps per second of the trial",
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[SWAPS, shared::FRAME];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let percent = context.parameters.control.traffic_percent.unwrap_or(TRAFFIC_PERCENT);
    let frame_bytes = context.frame(&shared::FRAME);
    let pass_trial = |per_second: f64| {
        let (context, setup) = (context.clone(), context.setup());
        PassTrial {
            x: per_second,
            curve: None,
            setup: Box::new(move |_| setup),
            trial: Box::new(move |setup, most| {
                let trial = context.trial(setup, frame_bytes, share(most, percent));
                let swaps = (per_second * trial.duration.as_secs_f64()).ceil() as u32;
                Trial { swaps, ..trial }
            }),
            flows: 0,
        }
    };
    let per_second = context.parameters.own.number(&SWAPS);
    let setup = context.setup();
    let search = context.trial(&setup, frame_bytes, context.link_percent(100.0));
    let course = TrialSequence::new(context, AXIS, vec![pass_trial(0.0), pass_trial(per_second)]);
    let course = course.after_maximum_of(None, setup, search);
    Box::new(course.summing(per_second, Metric::LatencyNsP99Increase, extra))
}

/// Returns the difference between the 99th percentiles of latency of the second and the first trial.
fn extra(reports: &[TrialReport]) -> Option<f64> {
    let p99 = |report: &TrialReport| report.latency.from_sent.ns_at_quantile(0.99);
    Some(p99(&reports[1])? as f64 - p99(&reports[0])? as f64)
}
