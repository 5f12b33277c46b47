//! Reset (RFC 2544, 26.6, by RFC 6201): how long a software reset of the target is felt.
//!
//! Method: frames of the smallest size at the throughput; a second into the trial the target is ended, started anew
//! and given what it held (a real device reads that from its settings). The reset time is the longest time
//! without a frame, from the last of the old to the first of the new (6201's time stamps); beside it stands what was
//! lost over the rate (its loss-based time). Where no frame came back, the result is irregular. Targets that no
//! process or device of the lab is cannot be reset, and are left out.

use instrument::stream::Rate;
use instrument::trial::{Trial, TrialReport};
use packet::time::Nanos;
use results::record::Metric;

use super::super::based::{Based, Throughputs};
use super::super::sweep::{Reading, Sweep, SweepPoint};
use super::super::{Context, Method, drain};
use super::AXIS;
use crate::parameter::own::Declared;
use crate::parameter::shared;

/// When the target is reset.
const RESET_AT: Nanos = Nanos::from_secs(1);

/// Loss so near the end of a trial is loss that goes on.
const END: Nanos = Nanos::from_millis(10);

/// Shortest trial, in seconds: the slowest start of a target, and a second before and after.
const SECONDS_MIN: f64 = 6.0;

/// What can be set; the standard wants the smallest frames.
pub const PARAMETERS: &[Declared] = &[shared::FRAMES, shared::REPEATS_OF_SEARCHES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(Based::new(context, context.frames(&shared::FRAMES), at_throughput))
}

fn at_throughput(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    let setup = context.setup();
    let seconds = context.parameters.seconds.max(SECONDS_MIN);
    let point = |(frame_bytes, pps)| {
        let trial = Trial {
            duration: Nanos::from_secs_f64(seconds),
            drain: drain(seconds),
            reset_at: Some(RESET_AT),
            ..context.trial(&setup, frame_bytes, Rate::FramesPerSecond(pps))
        };
        SweepPoint { x: f64::from(frame_bytes), curve: None, setup, trial }
    };
    let points = found.each().map(point).collect();
    Box::new(Sweep::new(AXIS, points, context.searches()).reading(read))
}

fn read(trial: &Trial, report: &TrialReport) -> Vec<Reading> {
    let [stream] = &report.streams[..] else { return Vec::new() };
    let lost = stream.load.offered.saturating_sub(stream.load.forwarded);
    let by_loss = lost as f64 / stream.load.pps_offered().max(1.0) * 1e9;
    // What is still away at the end has no first new frame.
    let came_back = stream.missed.last.is_none_or(|last| trial.duration.since(last) > END);
    let is_irregular = !came_back || stream.load.forwarded == 0;
    let value = stream.missed.silence.0 as f64;
    vec![
        Reading { metric: Metric::ResetNs, value, is_irregular },
        Reading { metric: Metric::ResetNsByLoss, value: by_loss, is_irregular },
    ]
}

#[cfg(test)]
mod tests {
    use instrument::trial::{Load, Missed, StreamReport};

    use super::*;
    use crate::target::ADDRESSES;
    use crate::workload::mesh::between;

    /// What is read of six seconds at 1000 frames/s of which so many were lost, the last one then.
    fn reset(lost: u64, silence_ms: u64, last_ms: Option<u64>) -> [(f64, bool); 2] {
        let stream = between(&ADDRESSES, 1, (0, 1), 64, Rate::FramesPerSecond(1000.0));
        let duration = Nanos::from_secs(6);
        let trial = Trial::new(vec![stream], Nanos::ZERO, duration, Nanos::ZERO);
        let load = Load {
            intended: 6000,
            offered: 6000,
            forwarded: 6000 - lost,
            duration_offered: duration,
            duration_forwarded: duration,
        };
        let mut report = TrialReport::unmeasured(&trial, Nanos::ZERO, load);
        let last = last_ms.map(Nanos::from_millis);
        let missed = Missed { first: last, last, silence: Nanos::from_millis(silence_ms) };
        let blank = StreamReport::unmeasured(&trial.streams[0], load);
        report.streams.push(StreamReport { missed, ..blank });
        let found = read(&trial, &report);
        [0, 1].map(|place| (found[place].value, found[place].is_irregular))
    }

    #[test]
    fn both_times_are_told_and_a_target_that_does_not_come_back_is_marked() {
        assert_eq!(reset(250, 260, Some(1300)), [(260e6, false), (250e6, false)]);
        assert_eq!(reset(0, 1, None), [(1e6, false), (0.0, false)]);
        assert!(reset(4900, 3, Some(5999)).iter().all(|(_, is_irregular)| *is_irregular));
        assert!(reset(6000, 0, Some(5999)).iter().all(|(_, is_irregular)| *is_irregular));
    }
}
