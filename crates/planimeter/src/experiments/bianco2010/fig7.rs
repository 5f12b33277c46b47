//! Figure 7: forwarding rate of an OpenFlow switch against the share of traffic for its linear table.
//!
//! Claim: whatever the mix, the rate is bounded by those of the two pure cases, and drops in proportion
//! to the share of the linear table, since the hash table comes first in the chain.
//! Method: both tables filled at once, 131,072 exact entries and 100 that leave fields open; full
//! nominal load of 96-byte frames (or the first size of `--set frame`) as two streams, one uniformly
//! random over the entries of each table, whose rates make the share. Only OpenFlow targets take part.
//! Parameters: `--set entries=` changes the hash table's.

use super::super::sweep::SweepPoint;
use super::super::{Context, Method};
use super::{FRAME_BYTES_SMALL, HASH_ENTRIES, LINEAR_ENTRIES};
use crate::parameter::{Table, Traffic};
use crate::workload::Setup;

/// Shares of the traffic that match the linear table, in percent.
pub const LINEAR_PERCENT: [f64; 7] = [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 100.0];

/// Name of the axis.
pub const AXIS: &str = "linear_percent";

/// The method on one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    let frame_bytes = context.frames_or(&[FRAME_BYTES_SMALL])[0];
    let hash = context.entries_or(&[HASH_ENTRIES])[0].max(LINEAR_ENTRIES);
    let (table, traffic, entries) = (Table::Chain, Traffic::Random, hash + LINEAR_ENTRIES);
    let setup = Setup { table, traffic, entries, ..context.setup() };
    let points = LINEAR_PERCENT.map(|percent| {
        let shares = [100.0 - percent, percent].map(|share| context.link_percent(share));
        let streams = setup.chain_streams(&context.addresses, frame_bytes, shares);
        let used = streams.into_iter().zip([percent < 100.0, percent > 0.0]);
        let used = used.filter(|(_, is_used)| *is_used).map(|(stream, _)| stream);
        let trial = context.trial_of(used.collect());
        SweepPoint { x: percent, curve: None, setup, trial }
    });
    super::sweep(context, AXIS, points.into())
}
