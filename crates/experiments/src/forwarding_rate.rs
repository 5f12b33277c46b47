//! Forwarding rate under full nominal load (RFC 2285, 3.6.1).
//!
//! Method: full load over frame size, or over table size if a table is requested. By default there are two points:
//! one flow with one entry, and, if the target has exact-match entries, random headers over 131,072 of them. These
//! are the extremes of the lookup cost. If frames get tags, the return direction is measured too. Several frame
//! sizes or loads are curves.

use super::sweep::{Sweep, SweepPoint};
use super::{Context, FRAME_CURVE, LOAD_CURVE, Method, curve_of};
use workload::Setup;
use workload::Technology;
use workload::parameter::declaration::Parameter;
use workload::parameter::{Parameters, Table, Traffic, shared};
use workload::tags::RULES_MAX;

/// Name of the axis.
pub const AXIS: &str = "entries";

/// Variable if frames get tags: the port that receives them, 1 without a tag, 2 with a tag.
const WAY: &str = "from_port";

/// Size of the larger default table.
pub const ENTRIES_LARGE: u32 = 131_072;

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[shared::FRAMES, shared::LOADS];

/// Checks whether these parameters can be measured: a point has one position on the axis and one curve.
pub fn check(parameters: &Parameters, is_tagged: bool) -> Result<(), String> {
    let own = &parameters.own;
    let frames = own.integers(&shared::FRAMES).len();
    let loads = own.numbers(&shared::LOADS).len();
    if !parameters.streams.is_empty() && (own.is_set(&shared::FRAMES) || own.is_set(&shared::LOADS))
    {
        return Err(
            "stream=FILE defines frame sizes and loads itself (hint: remove frame= and load=)"
                .into(),
        );
    }
    if frames > 1 && loads > 1 {
        let hint = "run it once for each load, as steps of a plan";
        return Err(format!("either frame or load takes several values, not both (hint: {hint})"));
    }
    if is_tagged && frames.max(loads) > 1 {
        let hint = "run it once for each value, as steps of a plan";
        return Err(format!(
            "with VLAN tagging, one frame size and one load are valid (hint: {hint})"
        ));
    }
    Ok(())
}

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let (frames, loads) = (context.frames(&shared::FRAMES), context.loads(&shared::LOADS));
    let mut setups = vec![context.setup()];
    let streams = &context.parameters.streams;
    if !streams.is_empty() {
        // Frames from a file: those received on the first port leave by the second.
        let table = context.parameters.table.unwrap_or(Table::Port);
        let setup = Setup { table, ..setups[0] };
        let point =
            SweepPoint { x: 1.0, curve: None, setup, trial: context.trial_of(streams.clone()) };
        return Box::new(Sweep::new("streams", vec![point], context.parameters.repeats));
    }
    let nothing_asked = context.parameters.table.is_none() && context.parameters.entries == 1;
    if nothing_asked && context.technology != Technology::Wire {
        let table = match context.technology {
            Technology::OpenFlow => Table::Exact,
            Technology::Bridging => Table::Mac,
            Technology::Tagging => Table::Tags,
            Technology::Routing | Technology::Wire => Table::Lpm,
        };
        let entries = if table == Table::Tags { RULES_MAX } else { ENTRIES_LARGE };
        let traffic = Traffic::Random;
        setups.push(Setup { table, entries, traffic, ..setups[0] });
    }
    let point = |setup: &Setup, curve, trial| SweepPoint {
        x: f64::from(setup.entries),
        curve,
        setup: *setup,
        trial,
    };
    let of = |setup: Setup, frame_bytes: u16, percent: f64| {
        let rate = context.link_percent(percent);
        let there = context.trial(&setup, frame_bytes, rate);
        if !setup.tags() && context.technology != Technology::Tagging {
            let by_load = || curve_of(LOAD_CURVE, &loads, percent);
            let curve = curve_of(FRAME_CURVE, &frames, frame_bytes).or_else(by_load);
            return vec![point(&setup, curve, there)];
        }
        let (technology, addresses) = (context.technology, &context.addresses);
        let back = setup.stream_back(technology, addresses, frame_bytes, rate);
        let back = context.trial_of(vec![back]);
        vec![point(&setup, Some((WAY, 1.0)), there), point(&setup, Some((WAY, 2.0)), back)]
    };
    let mut points = Vec::new();
    for setup in setups {
        for &frame_bytes in frames.iter() {
            loads.iter().for_each(|&percent| points.extend(of(setup, frame_bytes, percent)));
        }
    }
    Box::new(Sweep::new(AXIS, points, context.parameters.repeats))
}
