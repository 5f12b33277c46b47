//! Figure 5: forwarding rate over frame size with tables of 8K, 64K and 128K entries.
//!
//! Claim: the larger the table, the lower the rate; routing and OpenFlow lose little, switching collapses. These
//! are the losses with 96-byte packets and 8K, 64K and 128K entries, in percent of the offered load:
//!
//! - routing: 0.1, 5.4 and 8.9
//! - OpenFlow: 0.6, 5.0 and 11.3
//! - switching: 13.6, 70.4 and 89.5
//!
//! For small tables, routing and OpenFlow reach wire speed from 256 bytes, switching from 1024.
//!
//! Method: full nominal load of frames of 96 to 1500 bytes with uniformly random headers over all entries, so that
//! no cache of recent flows helps. The offered load is drawn behind. A router has routes to C-class networks, an
//! OpenFlow switch has exact entries that differ in both UDP ports. A bridge learns its addresses beforehand, from
//! a frame of each station, with an ageing time of an hour. Parameters: `--set entries=` replaces the three sizes,
//! `--set frame=` the frame sizes.

use super::FRAMES_MULTI;
use experiments::sweep::SweepPoint;
use experiments::{Context, Method};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Variable of the curves.
pub const CURVE: &str = "entries";

/// The small, the medium and the large table of section IV.B.
const ENTRIES: Parameter = shared::SIZES.with_default("8192,65536,131072");

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES_MULTI, ENTRIES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let mut points = Vec::new();
    for entries in context.parameters.own.integers(&ENTRIES).map(|entries| entries as u32) {
        let setup = super::full_table(context, entries);
        points.extend(context.frames(&FRAMES_MULTI).into_iter().map(|frame_bytes| SweepPoint {
            x: f64::from(frame_bytes),
            curve: Some((CURVE, f64::from(entries))),
            setup,
            trial: context.trial(&setup, frame_bytes, context.link_percent(100.0)),
        }));
    }
    super::sweep(context, AXIS, points)
}
