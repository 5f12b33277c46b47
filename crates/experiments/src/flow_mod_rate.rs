//! Flow-mod rate: number of flow-mods per second that add, modify and delete single entries.
//!
//! Method: the controller adds exact-match entries in addition to the installed one, changes their action by strict
//! modify, and deletes them by strict delete. There is a barrier request after each flow-mod (the next waits for
//! the reply), after each thousand (eight thousand outstanding), or the flow-mods are in committed bundles. The
//! rate covers the time from the first byte sent to the last reply received. All messages are encoded beforehand,
//! and replies are only counted, so that the tester is not the limit. Traffic runs at the same time if requested.
//!
//! [`impact`] measures the reverse: the cost of flow-mods at a steady rate for forwarded frames.

use record::{ControllerCommand, Metric};
use tester::controller::script::Commit;
use tester::trial::{Trial, TrialReport};

use super::controller_trials::{PassTrial, TrialSequence, share};
use super::{Context, Method, flow_mod_scripts};
use workload::parameter::declaration::Parameter;
use workload::parameter::{control, shared};

/// Name of the axis.
pub const AXIS: &str = "flow_mods_per_answer";

/// Name of the axis of [`impact`].
pub const AXIS_IMPACT: &str = "flow_mods_per_s";

/// Number of flows.
pub const FLOWS: Parameter = control::FLOWS.with_default("quick 10000; 100000");

/// Divisor of the number of flows if each flow-mod waits for its reply.
const SINGLES_SHARE: u32 = 10;

/// Load of the background traffic, in percent of the target's own maximum.
pub const TRAFFIC_PERCENT: f64 = 80.0;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let control = &context.parameters.control;
    let (setup, traffic) = (context.setup(), control.traffic_percent);
    let count = context.count(&FLOWS);
    let mut pass_trials = Vec::new();
    for &commit in &control.batches {
        let is_single = commit.flow_mods() < SINGLES_SHARE;
        let count = if is_single { count.div_ceil(SINGLES_SHARE) } else { count };
        for deed in [ControllerCommand::Add, ControllerCommand::Modify, ControllerCommand::Delete] {
            let context = context.clone();
            pass_trials.push(PassTrial {
                x: f64::from(commit.flow_mods()),
                curve: None,
                setup: Box::new(move |_| setup),
                trial: Box::new(move |setup, most| {
                    let script =
                        flow_mod_scripts::each(&context, deed, capped(commit, count), count);
                    match traffic {
                        Some(percent) => {
                            context.trial(setup, 64, share(most, percent)).beside(script)
                        }
                        None => Trial::of_orders(script),
                    }
                }),
                flows: 0,
            });
        }
    }
    let course = TrialSequence::new(context, AXIS, pass_trials);
    Box::new(if traffic.is_some() { course.after_maximum(setup, 64) } else { course })
}

/// Limits the batch size to the number of flows.
fn capped(commit: Commit, count: u32) -> Commit {
    match commit {
        Commit::Barrier(each) => Commit::Barrier(each.min(count)),
        Commit::Bundle(each) => Commit::Bundle(each.min(count)),
    }
}

/// Parameters of [`impact`].
pub const PARAMETERS_IMPACT: &[Parameter] = &[shared::FRAME];

/// Creates the method for the cost of a steady flow-mod rate: a trial without flow-mods, and one with them.
pub fn impact(context: &Context) -> Box<dyn Method> {
    let control = &context.parameters.control;
    let percent = control.traffic_percent.unwrap_or(TRAFFIC_PERCENT);
    let frame_bytes = context.frame(&shared::FRAME);
    let pass_trial = |per_second: f64| {
        let (context, setup) = (context.clone(), context.setup());
        PassTrial {
            x: per_second,
            curve: None,
            setup: Box::new(move |_| setup),
            trial: Box::new(move |setup, most| {
                let trial = context.trial(setup, frame_bytes, share(most, percent));
                let script = (per_second > 0.0).then(|| flow_mod_scripts::steadily(&context));
                script.map_or(trial.clone(), |script| trial.beside(script))
            }),
            flows: 0,
        }
    };
    let per_second = control.flow_mods_per_s;
    let pass_trials = vec![pass_trial(0.0), pass_trial(per_second)];
    let course = TrialSequence::new(context, AXIS_IMPACT, pass_trials)
        .after_maximum(context.setup(), frame_bytes);
    Box::new(course.summing(per_second, Metric::CyclesBusyRatio, cycles_ratio))
}

/// Returns the ratio of busy cycles per frame between the second and the first trial, if the target reports them.
pub fn cycles_ratio(reports: &[TrialReport]) -> Option<f64> {
    let per_frame = |report: &TrialReport| {
        let work = report.work.filter(|work| work.frames > 0)?;
        Some(work.cycles_busy as f64 / work.frames as f64)
    };
    Some(per_frame(&reports[1])? / per_frame(&reports[0])?)
}
