//! System recovery (RFC 2544, 26.5): the time until loss ends after an overload.
//!
//! Method: at each frame size, the overload is 110 % of the throughput, as far as link and tester carry it. It
//! lasts as long as a trial (the standard's 60 seconds with full effort). Immediately afterwards, the load is 50 %
//! of the throughput for the same time. The recovery time is from that change to the last lost frame. It uses the
//! times at which frames were due, so that its resolution is one frame. It is 0 without any loss after the change.
//! The result is irregular if the overload caused no loss, or if loss continued to the end.

use packet::time::Nanos;
use record::Metric;
use tester::stream::{Rate, Stream};
use tester::trial::{Trial, TrialReport, Window};

use super::super::sweep::{Reading, Sweep, SweepPoint};
use super::super::throughput_based::{AtThroughput, Throughputs};
use super::super::{Context, Method, drain};
use super::{AXIS, FRAMES};

/// Overload, as a share of the throughput.
const OVER: f64 = 1.1;

/// Load after the overload, as a share of the throughput.
const UNDER: f64 = 0.5;

/// Loss in this last share of the lower load means that loss continues.
const END_SHARE: f64 = 0.02;

/// Creates the method for one target.
pub fn method(context: &Context) -> Box<dyn Method> {
    Box::new(AtThroughput::new(context, context.frames(&FRAMES), at_throughput))
}

fn at_throughput(context: &Context, found: &Throughputs) -> Box<dyn Method> {
    let points = found.each().map(|(frame_bytes, pps)| point(context, frame_bytes, pps)).collect();
    Box::new(Sweep::new(AXIS, points, context.searches()).reading(read))
}

fn point(context: &Context, frame_bytes: u16, throughput_pps: f64) -> SweepPoint {
    let setup = context.setup();
    let most_pps = context.most_pps(frame_bytes).max(throughput_pps);
    let rates = [(throughput_pps * OVER).min(most_pps), throughput_pps * UNDER];
    let stream = |place: usize| Stream {
        id: place as u16 + 1,
        ..setup.stream(
            context.technology,
            &context.addresses,
            frame_bytes,
            Rate::FramesPerSecond(rates[place]),
        )
    };
    let phase = Nanos::from_secs_f64(context.parameters.seconds);
    let whole = phase.saturating_add(phase);
    let windows =
        vec![Window { from: Nanos::ZERO, until: phase }, Window { from: phase, until: whole }];
    let trial = Trial {
        windows,
        duration: whole,
        drain: drain(whole.as_secs_f64()),
        ..context.trial_of(vec![stream(0), stream(1)])
    };
    SweepPoint { x: f64::from(frame_bytes), curve: None, setup, trial }
}

fn read(trial: &Trial, report: &TrialReport) -> Vec<Reading> {
    let [over, under] = &report.streams[..] else { return Vec::new() };
    let fell_at = trial.window(1).from;
    let last = over.missed.last.max(under.missed.last);
    let took = last.map_or(Nanos::ZERO, |last| last.since(fell_at));
    let end = trial.window(1).span().as_secs_f64() * END_SHARE;
    let goes_on = last.is_some_and(|last| trial.duration.since(last).as_secs_f64() < end);
    let is_irregular = over.missed.last.is_none() || goes_on;
    vec![Reading { metric: Metric::RecoveryNs, value: took.0 as f64, is_irregular }]
}

#[cfg(test)]
mod tests {
    use tester::trial::{Load, MissingSpan, StreamReport};

    use super::*;
    use workload::ADDRESSES;
    use workload::mesh::between;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// Derives the result of one second of overload and one of half the load; the arguments are the
    /// times of the last loss.
    fn recovery(over_ms: Option<u64>, under_ms: Option<u64>) -> (f64, bool) {
        let rate = Rate::FramesPerSecond(1000.0);
        let stream = |id| between(&ADDRESSES, id, (0, 1), 64, rate);
        let whole = SECOND.saturating_add(SECOND);
        let windows = vec![
            Window { from: Nanos::ZERO, until: SECOND },
            Window { from: SECOND, until: whole },
        ];
        let streams = vec![stream(1), stream(2)];
        let trial = Trial::new(streams, Nanos::ZERO, whole, Nanos::ZERO);
        let trial = Trial { windows, ..trial };
        let mut report = TrialReport::unmeasured(&trial, Nanos::ZERO, Load::default());
        for (stream, last_ms) in trial.streams.iter().zip([over_ms, under_ms]) {
            let last = last_ms.map(Nanos::from_millis);
            let missed = MissingSpan { first: last, last, silence: Nanos::ZERO };
            let blank = StreamReport::unmeasured(stream, Load::default());
            report.streams.push(StreamReport { missed, ..blank });
        }
        let [found] = &read(&trial, &report)[..] else { panic!("one value") };
        assert_eq!(found.metric, Metric::RecoveryNs);
        (found.value, found.is_irregular)
    }

    #[test]
    fn recovery_lasts_from_the_change_to_the_last_loss() {
        assert_eq!(recovery(Some(990), Some(1030)), (30e6, false));
        assert_eq!(recovery(Some(990), None), (0.0, false));
        assert_eq!(recovery(None, None), (0.0, true), "no overload");
        assert_eq!(recovery(Some(990), Some(1999)), (999e6, true), "loss continued to the end");
    }
}
