//! How long a switch takes to tell of all its flows and their counters.
//!
//! Method: exact matches are installed, all flow statistics are asked for in one request, and the
//! answer is read as fast as it comes, its rows stepped over and counted. The time is from the first
//! byte sent to the end of the last part. Beside traffic if that is asked for.
//!
//! [`impact`] turns the question round: what one dump after the other costs the frames.

use instrument::trial::Trial;
use results::record::Metric;

use super::course::{Course, Leg, share};
use super::flow_mod_rate::{TRAFFIC_PERCENT, cycles_ratio};
use super::{Context, Method, orders};
use crate::parameter::own::Declared;
use crate::parameter::{Table, Traffic, control};
use crate::workload::Setup;

/// Name of the axis.
pub const AXIS: &str = "entries";

/// Name of the axis of [`impact`]: dumps under way.
pub const AXIS_IMPACT: &str = "dumps";

/// How many flows there are.
pub const FLOWS: Declared = control::FLOWS.with_default("quick 75000; 750000");

fn setup(context: &Context) -> Setup {
    let traffic = context.parameters.traffic.unwrap_or(Traffic::One);
    let entries = context.count(&FLOWS);
    Setup { table: Table::Exact, entries, traffic, ..context.setup() }
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let (setup, traffic) = (setup(context), context.parameters.control.traffic_percent);
    let inside = context.clone();
    let leg = Leg {
        x: f64::from(setup.entries),
        curve: None,
        setup: Box::new(move |_| setup),
        trial: Box::new(move |setup, most| {
            let script = orders::tell_all(&inside);
            match traffic {
                Some(percent) => inside.trial(setup, 64, share(most, percent)).beside(script),
                None => Trial::of_orders(script),
            }
        }),
        flows: 0,
    };
    let course = Course::new(context, AXIS, vec![leg]);
    Box::new(if traffic.is_some() { course.after_maximum(setup, 64) } else { course })
}

/// What dumps cost the frames: a quiet trial, and one with a dump after the other.
pub fn impact(context: &Context) -> Box<dyn Method> {
    let setup = setup(context);
    let percent = context.parameters.control.traffic_percent.unwrap_or(TRAFFIC_PERCENT);
    let leg = |dumps: u8| {
        let context = context.clone();
        Leg {
            x: f64::from(dumps),
            curve: None,
            setup: Box::new(move |_| setup),
            trial: Box::new(move |setup, most| {
                let trial = context.trial(setup, 64, share(most, percent));
                match dumps {
                    0 => trial,
                    _ => trial.beside(orders::tell_all(&context).endless()),
                }
            }),
            flows: 0,
        }
    };
    let course = Course::new(context, AXIS_IMPACT, vec![leg(0), leg(1)]).after_maximum(setup, 64);
    Box::new(course.summing(1.0, Metric::CyclesBusyRatio, cycles_ratio))
}
