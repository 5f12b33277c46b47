//! MAC addresses that a bridge learns from frames before a measurement.
//!
//! Each station sends frames into the port behind which the traffic will expect it. A frame may be
//! lost, or not be learned from (Open vSwitch learns in the slow path and may fall behind). All
//! frames are then sent again until the target reports all addresses.

use packet::time::Nanos;
use tester::rig::RigError;
use tester::stream::Rate;
use tester::trial::Trial;

use super::TargetError;
use super::memif::cache_fill::{DRAIN, RATE_PPS};
use super::name::TargetKind;
use workload::Technology;
use workload::{Addresses, Setup};

/// Limit of passes over all stations.
const LEARNING_PASSES_MAX: u32 = 8;

/// Shortest pass, in seconds.
const PASS_SECONDS_MIN: f64 = 0.05;

/// Teaches a target the addresses that the setup requires, if any.
///
/// `pass` runs a trial, and returns how many addresses the target then has if it reports them.
pub fn populate_mac_table(
    kind: TargetKind,
    setup: &Setup,
    addresses: &Addresses,
    mut pass: impl FnMut(&Trial) -> Result<Option<u64>, TargetError>,
) -> Result<(), TargetError> {
    let learning = setup.learning(addresses, Rate::FramesPerSecond(RATE_PPS));
    let Some(stream) = learning.filter(|_| kind.technology() != Technology::Wire) else {
        return Ok(());
    };
    let frames = f64::from(setup.entries) + 1.0;
    let duration = Nanos::from_secs_f64((frames / RATE_PPS).max(PASS_SECONDS_MIN));
    let trial = Trial::new(vec![stream], Nanos::ZERO, duration, DRAIN);
    let trial = Trial { catch_up_frames: u32::MAX, ..trial };
    let mut known = 0;
    for _ in 0..LEARNING_PASSES_MAX {
        match pass(&trial)? {
            Some(count) if count < setup.entries.into() => known = count,
            _ => return Ok(()),
        }
    }
    let entries = setup.entries;
    Err(TargetError::CannotHold(format!(
        "the bridge learned only {known} of {entries} addresses (hint: use --set entries={known})"
    )))
}

/// Converts the error of such a trial. An interruption is ignored: the next trial reports it.
pub fn failed(error: RigError) -> Result<(), TargetError> {
    match error {
        RigError::Interrupted => Ok(()),
        error => Err(TargetError::failed("cannot send frames for address learning", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::ADDRESSES;
    use workload::parameter::Table;

    const KIND: TargetKind = TargetKind::Bridge;

    fn passes(table: Table, reported: &[Option<u64>]) -> (usize, bool) {
        let setup = Setup { table, entries: 1000, ..Setup::single(1) };
        let mut passes = 0;
        let outcome = populate_mac_table(KIND, &setup, &ADDRESSES, |trial| {
            let stream = &trial.streams[0];
            assert_eq!(stream.validate(), []);
            let stations = (0..1000).map(|frame| stream.headers_at(frame).mac_source);
            assert_eq!(stations.collect::<std::collections::HashSet<_>>().len(), 1000);
            assert_eq!((stream.from, stream.to), (1, 0));
            passes += 1;
            Ok(reported[(passes - 1).min(reported.len() - 1)])
        });
        (passes, outcome.is_ok())
    }

    #[test]
    fn learning_repeats_until_all_addresses_are_known_or_fails() {
        assert_eq!(passes(Table::Mac, &[None]), (0, true));
        assert_eq!(passes(Table::Learned, &[None]), (1, true));
        assert_eq!(passes(Table::Learned, &[Some(3), Some(900), Some(1001)]), (3, true));
        assert_eq!(passes(Table::Learned, &[Some(999)]), (LEARNING_PASSES_MAX as usize, false));
    }
}
