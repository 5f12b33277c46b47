//! Figure 6: hash table and linear table of an OpenFlow switch, over frame size.
//!
//! Claim: despite its small size, the linear table has a lower forwarding rate; with 96-byte packets it is about 33
//! percent below the hash table.
//!
//! Method: full nominal load of frames of 96 to 1500 bytes, uniformly random over all installed entries. The hash
//! table has 131,072 exact entries, the linear table 100 wildcard entries, as many as the study's tables. Both are
//! tables of one switch, so only OpenFlow targets take part; a foreign switch may store them in its own way.
//! Parameters: `--set entries=` changes the hash table's, `--set frame=` the frame sizes.

use super::{FRAMES_MULTI, HASH, HASH_ENTRIES, LINEAR, LINEAR_ENTRIES, hash_table};
use experiments::sweep::SweepPoint;
use experiments::{Context, Method};
use workload::parameter::declaration::Parameter;

/// Name of the axis.
pub const AXIS: &str = "frame_bytes";

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES_MULTI, HASH_ENTRIES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let hash = context.count(&HASH_ENTRIES);
    let tables =
        [(HASH, hash_table(context, hash)), (LINEAR, super::linear_table(context, LINEAR_ENTRIES))];
    let mut points = Vec::new();
    for (curve, setup) in tables {
        points.extend(context.frames(&FRAMES_MULTI).into_iter().map(|frame_bytes| SweepPoint {
            x: f64::from(frame_bytes),
            curve: Some((curve, f64::from(setup.entries))),
            setup,
            trial: context.trial(&setup, frame_bytes, context.link_percent(100.0)),
        }));
    }
    super::sweep(context, AXIS, points)
}
