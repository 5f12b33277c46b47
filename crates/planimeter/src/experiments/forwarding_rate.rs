//! Forwarding rate: what comes out under full nominal load (RFC 2285, 3.6.1).
//!
//! Method: full load against frame size, or against table size when a table is asked for. Without
//! any wish, one flow over one entry and, where the target has exact entries, random headers over
//! 131,072 of them: the two ends of what a lookup costs.

use super::sweep::{Sweep, SweepPoint};
use super::{Context, Method};
use crate::parameter::{Table, Traffic};
use crate::target::name::Technology;
use crate::workload::Setup;

/// Name of the axis.
pub const AXIS: &str = "entries";

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
            Technology::Routing | Technology::Wire => Table::Lpm,
        };
        let (entries, traffic) = (ENTRIES_LARGE, Traffic::Random);
        setups.push(Setup { table, entries, traffic, ..setups[0] });
    }
    let percent = context.loads_or(&[100.0])[0];
    let points = setups.into_iter().map(|setup| SweepPoint {
        x: f64::from(setup.entries),
        curve: None,
        setup,
        trial: context.trial(&setup, frame_bytes, context.link_percent(percent)),
    });
    Box::new(Sweep::new(AXIS, points.collect(), context.parameters.repeats))
}
