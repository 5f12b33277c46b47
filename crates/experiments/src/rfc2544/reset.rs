//! Reset (RFC 2544, 26.6, updated by RFC 6201): recovery time after a software reset of the target.
//!
//! Method: frames of the smallest size at the throughput. One second into the trial, the lab stops the target,
//! starts it again and restores its setup, which a real device would read from its configuration. The reset time is
//! the longest time without a frame, from the last frame before to the first frame after (RFC 6201's time stamps).
//! The lost frames divided by the rate are reported too (its loss-based time). The result is irregular if no frame
//! arrived afterwards. Targets that are not a process or a device of the lab cannot be reset, and are left out.

use packet::time::Nanos;
use record::Metric;
use tester::stream::Rate;
use tester::trial::{Trial, TrialReport};

use super::super::sweep::{Reading, Sweep, SweepPoint};
use super::super::throughput_based::{AtThroughput, Throughputs};
use super::super::{Context, Method, drain};
use super::AXIS;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Time of the reset in the trial.
const RESET_AT: Nanos = Nanos::from_secs(1);

/// Loss this close to the end of a trial means that loss continues.
const END: Nanos = Nanos::from_millis(10);

/// Minimum duration of a trial, in seconds: the slowest start of a target, and a second before and after.
const SECONDS_MIN: f64 = 6.0;

/// Parameters of the experiment; the standard requires the smallest frames.
pub const PARAMETERS: &[Parameter] = &[shared::FRAMES, shared::REPEATS_OF_SEARCHES];

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(AtThroughput::new(context, context.frames(&shared::FRAMES), at_throughput))
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
    // If loss continues at the end, there is no first frame after the reset.
    let came_back = stream.missed.last.is_none_or(|last| trial.duration.since(last) > END);
    let is_irregular = !came_back || stream.load.forwarded == 0;
    let value = stream.missed.silence.0 as f64;
    vec![
        Reading { metric: Metric::ResetNs, value, is_irregular },
        Reading { metric: Metric::ResetNsFrameLossMethod, value: by_loss, is_irregular },
    ]
}

#[cfg(test)]
mod tests {
    use tester::trial::{Load, MissingSpan, StreamReport};

    use super::*;
    use workload::ADDRESSES;
    use workload::mesh::between;

    /// Derives the result of six seconds at 1000 frames/s with this loss.
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
        let missed = MissingSpan { first: last, last, silence: Nanos::from_millis(silence_ms) };
        let blank = StreamReport::unmeasured(&trial.streams[0], load);
        report.streams.push(StreamReport { missed, ..blank });
        let found = read(&trial, &report);
        [0, 1].map(|place| (found[place].value, found[place].is_irregular))
    }

    #[test]
    fn both_times_are_reported_and_a_missing_recovery_is_marked() {
        assert_eq!(reset(250, 260, Some(1300)), [(260e6, false), (250e6, false)]);
        assert_eq!(reset(0, 1, None), [(1e6, false), (0.0, false)]);
        assert!(reset(4900, 3, Some(5999)).iter().all(|(_, is_irregular)| *is_irregular));
        assert!(reset(6000, 0, Some(5999)).iter().all(|(_, is_irregular)| *is_irregular));
    }
}
