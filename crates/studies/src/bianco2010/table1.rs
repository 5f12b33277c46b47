//! Table I: processing time of a frame in an OpenFlow switch, by table, table size and frame size.
//!
//! Claim: the time in the hash table does not depend on its size. Against the authors' expectation, that in the
//! linear table does not either. Neither depends on the packet size.
//!
//! Method: Tp = L - 2 (Tt + D), formula (1) of the study. L is the mean latency at a load that every target can
//! carry. Frames have 96 to 1500 bytes and are uniformly random over all entries: 1 to 100 in the linear table, 1
//! to 131,072 in the hash table. Tt = S / C if the link serialises at C, as in simulated time. Over other links Tt
//! is 0, and D is half of the mean latency of the tester's loop. The report states which applies. Only OpenFlow
//! targets take part.
//!
//! Parameters: `--set load=` changes the load, in percent of the link; `--set frame=` the frame sizes; `--set
//! entries=` the sizes of the hash table.

use super::{FRAMES_MULTI, HASH, LINEAR};
use experiments::sweep::SweepPoint;
use experiments::{Context, Method};
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Numbers of entries in the linear table.
pub const LINEAR_ENTRIES: [u32; 5] = [1, 25, 50, 75, 100];

/// Load for latency: the study's switch is underloaded, at an unknown load.
const LOAD: Parameter = shared::LOAD.with_default("5");

/// Entries of the hash table.
const SIZES: Parameter = Parameter {
    help: "number of entries in the hash table",
    ..shared::SIZES.with_default("1,32768,65536,98304,131072")
};

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES_MULTI, LOAD, SIZES];

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let percent = context.load(&LOAD);
    let linear = LINEAR_ENTRIES.map(|entries| (LINEAR, super::linear_table(context, entries)));
    let sizes = context.parameters.own.integers(&SIZES).map(|entries| entries as u32);
    let hash = sizes.into_iter().map(|entries| (HASH, super::hash_table(context, entries)));
    let mut points = Vec::new();
    for (curve, setup) in linear.into_iter().chain(hash) {
        points.extend(context.frames(&FRAMES_MULTI).into_iter().map(|frame_bytes| SweepPoint {
            x: f64::from(frame_bytes),
            curve: Some((curve, f64::from(setup.entries))),
            setup,
            trial: context.trial(&setup, frame_bytes, context.link_percent(percent)),
        }));
    }
    super::sweep(context, AXIS, points)
}
