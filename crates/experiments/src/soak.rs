//! Soak test: a fixed load for minutes to days, with changing table contents, and the drift of its results.
//!
//! Method: 80 % of the throughput (or `--set load=` percent of it) in sixty consecutive trials of equal length.
//! Three trials make one point of the series, so that memory does not grow with the duration. For OpenFlow targets,
//! a controller adds and deletes flows continuously (`--set flow_mods_per_s=`). For bridges, source addresses
//! change from frame to frame, over the number in `--set addresses=`.
//!
//! Each point reports rate, loss, latency and the memory of the target's processes. For each value, a linear
//! regression over all trials gives the slope with its interval. A slope whose interval excludes zero is a drift.
//! Parameter `--set soak_seconds=` is the total length of all trials of a frame size; several sizes follow each
//! other.

use packet::time::Nanos;
use tester::stream::{Field, FieldVariation, IndexOrder, Rate, Values};
use tester::trial::Trial;

use super::sweep::{Sweep, SweepPoint};
use super::throughput_based::{AtThroughput, Throughputs};
use super::{Context, FRAME_CURVE, Method, curve_of, drain, flow_mod_scripts};
use workload::FIRST_MAC;
use workload::Technology;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "time_s";

/// Number of points of the series.
const POINTS: u32 = 20;

/// Trials per point.
const TRIALS: u32 = 3;

/// Load in percent of the throughput.
const LOAD: Parameter =
    Parameter { default: "80", help: "offered load, in percent of the throughput", ..shared::LOAD };

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAMES, LOAD, shared::REPEATS_OF_SEARCHES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(AtThroughput::new(context, context.frames(&shared::FRAMES), series))
}

fn series(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    let slice_s = context.parameters.methods.soak_s / f64::from(POINTS * TRIALS);
    let (percent, frames) = (context.load(&LOAD), context.frames(&shared::FRAMES));
    let setup = context.setup();
    let point = |frame_bytes: u16, pps: f64, place: u32| {
        let rate = Rate::FramesPerSecond(pps * percent / 100.0);
        let mut trial = Trial {
            duration: Nanos::from_secs_f64(slice_s),
            drain: drain(slice_s),
            ..context.trial(&setup, frame_bytes, rate)
        };
        match context.technology {
            Technology::OpenFlow => trial = trial.beside(flow_mod_scripts::steadily(context)),
            Technology::Bridging => trial.streams[0].vary.push(senders(context)),
            Technology::Routing | Technology::Tagging | Technology::Wire => {}
        }
        // Middle of its trials.
        let x = (f64::from(place) + 0.5) * slice_s * f64::from(TRIALS);
        SweepPoint { x, curve: curve_of(FRAME_CURVE, &frames, frame_bytes), setup, trial }
    };
    let points =
        found.each().flat_map(|(size, pps)| (0..POINTS).map(move |place| (size, pps, place)));
    let points = points.map(|(size, pps, place)| point(size, pps, place)).collect();
    Box::new(Sweep::point_by_point(AXIS, points, TRIALS))
}

/// Varies source addresses from frame to frame, including addresses that the MAC table does not have yet.
fn senders(context: &Context) -> FieldVariation {
    let count = u64::from(context.parameters.methods.addresses);
    let first = FIRST_MAC | 0x80_00_00_00;
    let fields = vec![(Field::MacSource, Values::Range { first, step: 1 })];
    FieldVariation { count, order: IndexOrder::Sequential, fields }
}
