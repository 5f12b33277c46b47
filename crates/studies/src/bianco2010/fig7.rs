//! Figure 7: forwarding rate of an OpenFlow switch over the share of traffic for its linear table.
//!
//! Claim: the rates of the two pure cases bound that of every mix. The rate decreases in proportion to the share of
//! the linear table, because the hash table comes first in the chain.
//!
//! Method: both tables are filled, with 131,072 exact entries and 100 wildcard entries. Full nominal load of
//! 96-byte frames (or each size of `--set frame`) consists of two streams, one uniformly random over the entries of
//! each table. Their rates make the share. Only OpenFlow targets take part. Parameters: `--set entries=` changes
//! the hash table's.

use super::{FRAMES_SMALL, HASH_ENTRIES, LINEAR_ENTRIES};
use experiments::sweep::SweepPoint;
use experiments::{Context, FRAME_CURVE, Method, curve_of};
use workload::Setup;
use workload::parameter::declaration::Parameter;
use workload::parameter::{Table, Traffic};

/// Shares of the traffic that match the linear table, in percent.
pub const LINEAR_PERCENT: [f64; 7] = [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0];

/// Name of the axis.
pub const AXIS: &str = "linear_percent";

/// Parameters of the experiment.
pub const PARAMETERS: &[Parameter] = &[FRAMES_SMALL, HASH_ENTRIES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let frames = context.frames(&FRAMES_SMALL);
    let hash = context.count(&HASH_ENTRIES).max(LINEAR_ENTRIES);
    let (table, traffic, entries) = (Table::Chain, Traffic::Random, hash + LINEAR_ENTRIES);
    let setup = Setup { table, traffic, entries, ..context.setup() };
    let point = |percent: f64, frame_bytes: u16| {
        let shares = [100.0 - percent, percent].map(|share| context.link_percent(share));
        let streams = setup.chain_streams(&context.addresses, frame_bytes, shares);
        let used = streams.into_iter().zip([percent < 100.0, percent > 0.0]);
        let used = used.filter(|(_, is_used)| *is_used).map(|(stream, _)| stream);
        let (curve, trial) =
            (curve_of(FRAME_CURVE, &frames, frame_bytes), context.trial_of(used.collect()));
        SweepPoint { x: percent, curve, setup, trial }
    };
    let of = |percent| frames.iter().map(move |&size| (percent, size));
    let points = LINEAR_PERCENT.into_iter().flat_map(of).map(|(share, size)| point(share, size));
    super::sweep(context, AXIS, points.collect())
}
