//! How many flow-mods a second a switch does: added, modified and deleted one by one.
//!
//! Method: exact matches beside the one that the switch holds are added, given another action by
//! strict modification, and strictly deleted; with a barrier after each (the next one waits for the
//! answer), after each thousand (eight thousand under way), and in committed bundles. The rate is from
//! the first byte sent to the last answer received. Everything is encoded before the clock runs, and
//! answers are only counted, so that the tester is not the limit. Beside traffic if that is asked for.
//!
//! [`impact`] turns the question round: what flow-mods at a steady rate cost the frames.

use instrument::controller::script::Commit;
use instrument::trial::{Trial, TrialReport};
use results::record::{Deed, Metric};

use super::course::{Course, Leg, share};
use super::{Context, Method, orders};
use crate::parameter::own::Declared;
use crate::parameter::{control, shared};

/// Name of the axis.
pub const AXIS: &str = "flow_mods_per_answer";

/// Name of the axis of [`impact`].
pub const AXIS_IMPACT: &str = "flow_mods_per_s";

/// How many flows there are.
pub const FLOWS: Declared = control::FLOWS.with_default("quick 10000; 100000");

/// Where each waits for its answer there are fewer.
const SINGLES_SHARE: u32 = 10;

/// Load of the traffic that flow-mods are to disturb, in percent of the target's own maximum.
pub const TRAFFIC_PERCENT: f64 = 80.0;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let control = &context.parameters.control;
    let (setup, traffic) = (context.setup(), control.traffic_percent);
    let count = context.count(&FLOWS);
    let mut legs = Vec::new();
    for &commit in &control.batches {
        let is_single = commit.flow_mods() < SINGLES_SHARE;
        let count = if is_single { count.div_ceil(SINGLES_SHARE) } else { count };
        for deed in [Deed::Add, Deed::Modify, Deed::Delete] {
            let context = context.clone();
            legs.push(Leg {
                x: f64::from(commit.flow_mods()),
                curve: None,
                setup: Box::new(move |_| setup),
                trial: Box::new(move |setup, most| {
                    let script = orders::each(&context, deed, capped(commit, count), count);
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
    let course = Course::new(context, AXIS, legs);
    Box::new(if traffic.is_some() { course.after_maximum(setup, 64) } else { course })
}

/// No more than there are.
fn capped(commit: Commit, count: u32) -> Commit {
    match commit {
        Commit::Barrier(each) => Commit::Barrier(each.min(count)),
        Commit::Bundle(each) => Commit::Bundle(each.min(count)),
    }
}

/// What can be set of [`impact`].
pub const PARAMETERS_IMPACT: &[Declared] = &[shared::FRAME];

/// What a steady rate of flow-mods costs the frames: a quiet trial, and one with flow-mods.
pub fn impact(context: &Context) -> Box<dyn Method> {
    let control = &context.parameters.control;
    let percent = control.traffic_percent.unwrap_or(TRAFFIC_PERCENT);
    let frame_bytes = context.frame(&shared::FRAME);
    let leg = |per_second: f64| {
        let (context, setup) = (context.clone(), context.setup());
        Leg {
            x: per_second,
            curve: None,
            setup: Box::new(move |_| setup),
            trial: Box::new(move |setup, most| {
                let trial = context.trial(setup, frame_bytes, share(most, percent));
                let script = (per_second > 0.0).then(|| orders::steadily(&context));
                script.map_or(trial.clone(), |script| trial.beside(script))
            }),
            flows: 0,
        }
    };
    let per_second = control.flow_mods_per_s;
    let legs = vec![leg(0.0), leg(per_second)];
    let course =
        Course::new(context, AXIS_IMPACT, legs).after_maximum(context.setup(), frame_bytes);
    Box::new(course.summing(per_second, Metric::CyclesBusyRatio, cycles_ratio))
}

/// Busy cycles per frame of the second trial over those of the first, where the target tells them.
pub fn cycles_ratio(reports: &[TrialReport]) -> Option<f64> {
    let per_frame = |report: &TrialReport| {
        let work = report.work.filter(|work| work.frames > 0)?;
        Some(work.cycles_busy as f64 / work.frames as f64)
    };
    Some(per_frame(&reports[1])? / per_frame(&reports[0])?)
}
