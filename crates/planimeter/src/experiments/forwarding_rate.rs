//! Forwarding rate: what comes out under full nominal load (RFC 2285, 3.6.1).
//!
//! Method: full load against frame size, or against table size when a table is asked for. Without
//! any wish, one flow over one entry and, where the target has exact entries, random headers over
//! 131,072 of them: the two ends of what a lookup costs. Where frames get tags, they are sent on the way back too.

use super::sweep::{Sweep, SweepPoint};
use super::{Context, Method};
use crate::parameter::{Table, Traffic};
use crate::target::name::Technology;
use crate::workload::Setup;
use crate::workload::tags::RULES_MAX;

/// Name of the axis.
pub const AXIS: &str = "entries";

/// What is varied where frames get tags: the port that they are sent into, 1 without a tag, 2 with one.
const WAY: &str = "from_port";

/// The larger table that is measured unless another is asked for.
pub const ENTRIES_LARGE: u32 = 131_072;

/// The method on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let frame_bytes = context.frames_or(&[64])[0];
    let mut setups = vec![context.setup()];
    let streams = &context.parameters.streams;
    if !streams.is_empty() {
        // Whatever the file's frames are: what comes in by the first port leaves by the second.
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
    let percent = context.loads_or(&[100.0])[0];
    let rate = context.link_percent(percent);
    let point = |setup: &Setup, curve, trial| SweepPoint {
        x: f64::from(setup.entries),
        curve,
        setup: *setup,
        trial,
    };
    let of = |setup: Setup| {
        let there = context.trial(&setup, frame_bytes, rate);
        if !setup.tags() && context.technology != Technology::Tagging {
            return vec![point(&setup, None, there)];
        }
        let (technology, addresses) = (context.technology, &context.addresses);
        let back = setup.stream_back(technology, addresses, frame_bytes, rate);
        let back = context.trial_of(vec![back]);
        vec![point(&setup, Some((WAY, 1.0)), there), point(&setup, Some((WAY, 2.0)), back)]
    };
    let points = setups.into_iter().flat_map(of);
    Box::new(Sweep::new(AXIS, points.collect(), context.parameters.repeats))
}
