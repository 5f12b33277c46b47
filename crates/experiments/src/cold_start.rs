//! Forwarding rate for flows that a switch has not seen before, compared with the same flows afterwards.
//!
//! Method: the controller installs exact-match entries that no earlier repeat used. Frames that hit them at random
//! start immediately at full nominal load, without a warm-up. The forwarding rate of the first second (or of a
//! shorter trial) counts. The same trial runs again with filled caches. The result is the first rate divided by the
//! second.

use packet::time::Nanos;
use record::Metric;
use tester::trial::{Trial, TrialReport};

use super::controller_trials::{PassTrial, TrialSequence};
use super::{Context, Method};
use workload::Setup;
use workload::parameter::declaration::{Parameter, ValueType};
use workload::parameter::{Table, Traffic, control, shared};

/// Name of the axis: whether the flows are known.
pub const AXIS: &str = "flows_known";

/// Number of flows.
pub const FLOWS: Parameter = control::FLOWS.with_default("131072");

/// Duration of a trial, which covers about the first second.
const SECONDS: Parameter = Parameter {
    takes: ValueType::Number(0.01, 1.0),
    default: "quick 0.2; 1",
    help: "duration of a trial; the first second counts",
    ..shared::SECONDS
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAME, SECONDS];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let entries = context.count(&FLOWS);
    let (table, traffic) = (Table::Exact, Traffic::Random);
    let base = Setup { table, entries, traffic, ..context.setup() };
    let frame_bytes = context.frame(&shared::FRAME);
    let pass_trial = |is_known: bool| {
        let context = context.clone();
        PassTrial {
            x: f64::from(u8::from(is_known)),
            curve: None,
            setup: Box::new(move |repeat| Setup { shift: repeat, ..base }),
            trial: Box::new(move |setup, _| {
                let seconds = context.parameters.own.number(&SECONDS);
                Trial {
                    warmup: Nanos::ZERO,
                    duration: Nanos::from_secs_f64(seconds),
                    is_cold: !is_known,
                    ..context.trial(setup, frame_bytes, context.link_percent(100.0))
                }
            }),
            flows: 0,
        }
    };
    let course = TrialSequence::new(context, AXIS, vec![pass_trial(false), pass_trial(true)]);
    Box::new(course.summing(0.0, Metric::RateRatioColdCache, |reports: &[TrialReport]| {
        let [unknown, known] = [0, 1].map(|trial| reports[trial].total.pps_forwarded());
        (known > 0.0).then(|| unknown / known)
    }))
}
