//! Metrics of bianco2010: fairness between two flows, and processing time in the target.
//!
//! Source: sections IV.C and IV.D of the study.
//!
//! - The loss of a flow is the share of its offered frames that reached the target and did not come
//!   out. Frames that the tester's own port rejected are not included.
//! - The difference is PL(F1) - PL(F2), by the study's formula: above zero, F1 loses more. The
//!   study's text states the opposite of its formula.
//! - Jain's index (Jain, Chiu, Hawe, 1984) is that of each flow's forwarded share of its offered
//!   load.
//! - The max-min share compares each flow's forwarded load with its part of a max-min fair division
//!   of the total.
//! - Processing time is Tp = L - 2 (Tt + D). L is the mean latency. Tt = S / C if the link
//!   serializes at C, else 0; S includes preamble and gap, because the simulated link delivers a
//!   frame after these have passed. D is the one-way delay of the tester's loop, 0 in simulated
//!   time.
//!
//! Invariant: these metrics are computed only for the items that are about them.

use record::links;
use record::{Experiment, Metric, Record, StreamCount, Trial};

/// Preamble and gap, which take time on the wire and are not part of a frame.
pub const WIRE_OVERHEAD_BYTES: f64 = 20.0;

/// Latency of a target's link, one way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneWayDelay {
    /// Capacity at which the link serializes, bit/s; absent if it does not serialize.
    pub capacity_bps: Option<f64>,
    /// Half of the mean latency of the tester's loop, nanoseconds.
    pub delay_ns: f64,
}

/// Whether an experiment is about a metric.
pub(super) fn is_asked(experiment: &Experiment, metric: Metric) -> bool {
    let item = match experiment.study.as_deref() {
        Some("bianco2010") => experiment.item.as_deref().unwrap_or_default(),
        _ => "",
    };
    match metric {
        Metric::ProcessingNs => item == "table1",
        Metric::LossRatioF1
        | Metric::LossRatioF2
        | Metric::LossRatioDifference
        | Metric::FairnessIndexJain
        | Metric::MaxMinShareRatio => {
            matches!(item, "fig9" | "fig10") || experiment.id.starts_with("fairness/")
        }
        Metric::MemoryBytes => experiment.id == "soak",
        Metric::LossRatioBroadcast => experiment.id.starts_with("rfc2889/broadcast"),
        _ => true,
    }
}

/// Capacity at which the record's links serialize, bit/s; absent if they do not.
pub fn capacity_bps(record: &Record) -> Option<f64> {
    nominal_bps(record).filter(|_| record.environment.simulated)
}

/// Capacity of the nominal link, to which full load refers, bit/s.
pub fn nominal_bps(record: &Record) -> Option<f64> {
    record.parameters.get("capacity_bps").and_then(|it| it.as_f64())
}

/// One-way latency of a target's link; absent if unknown.
fn one_way(record: &Record, target: &str) -> Option<OneWayDelay> {
    if record.environment.simulated {
        return Some(OneWayDelay { capacity_bps: capacity_bps(record), delay_ns: 0.0 });
    }
    let latency = links::calibration(record, target)?.latency.as_ref()?;
    Some(OneWayDelay { capacity_bps: None, delay_ns: latency.ns_mean / 2.0 })
}

/// Processing time Tp = L - 2 (Tt + D) in nanoseconds. Negative if the loop was slower than the
/// target with its links.
pub(super) fn processing_ns(record: &Record, trial: &Trial) -> Option<f64> {
    let latency = trial.latency.as_ref()?;
    let OneWayDelay { capacity_bps, delay_ns } = one_way(record, &trial.target)?;
    let bits = 8.0 * (f64::from(trial.frame_bytes?) + WIRE_OVERHEAD_BYTES);
    let transmission_ns = capacity_bps.map_or(0.0, |capacity| bits * 1e9 / capacity);
    Some(latency.ns_mean - 2.0 * (transmission_ns + delay_ns))
}

/// A fairness metric between the flows of a trial. The last flow is F2.
pub(super) fn fairness(trial: &Trial, metric: Metric) -> Option<f64> {
    let [first, .., last] = &trial.streams[..] else { return None };
    match metric {
        Metric::LossRatioF1 => loss(first),
        Metric::LossRatioF2 => loss(last),
        Metric::LossRatioDifference => Some(loss(first)? - loss(last)?),
        Metric::FairnessIndexJain => {
            let shares = trial.streams.iter().map(|flow| Some(1.0 - loss(flow)?));
            jain(&shares.collect::<Option<Vec<f64>>>()?)
        }
        Metric::MaxMinShareRatio => {
            let of = |count: fn(&StreamCount) -> u64| {
                trial.streams.iter().map(|flow| count(flow) as f64).collect::<Vec<f64>>()
            };
            let (got, offered) = (of(|flow| flow.classes.correct), of(reached));
            let fair = max_min(&offered, got.iter().sum());
            let share = |(got, fair): (f64, f64)| if fair > 0.0 { got / fair } else { 1.0 };
            got.into_iter().zip(fair).map(share).reduce(f64::min)
        }
        _ => None,
    }
}

/// Frames that left the tester's port.
fn reached(flow: &StreamCount) -> u64 {
    flow.frames_offered.saturating_sub(flow.frames_refused)
}

fn loss(flow: &StreamCount) -> Option<f64> {
    let reached = reached(flow) as f64;
    // The distributed share of rejected frames may be inexact by some frames.
    (reached > 0.0).then(|| (1.0 - flow.classes.correct as f64 / reached).max(0.0))
}

/// Frame loss rate of the target over all flows; none if the link could not carry the offered load,
/// so that the target's loss is unknown.
pub(crate) fn overload_loss(record: &Record, trial: &Trial) -> Option<f64> {
    let by = |is: fn(&StreamCount) -> u32, port: u32| {
        let flows = trial.streams.iter().filter(move |flow| is(flow) == port);
        flows.map(|flow| flow.rate_pps_intended).sum::<f64>()
    };
    let ports = trial
        .streams
        .iter()
        .flat_map(|flow| [by(|it| it.port_out, flow.port_out), by(|it| it.port_in, flow.port_in)]);
    let most = ports.fold(0.0, f64::max);
    let bits = 8.0 * (f64::from(trial.frame_bytes?) + WIRE_OVERHEAD_BYTES);
    if capacity_bps(record).is_some_and(|capacity| most * bits > capacity) {
        return None;
    }
    let reached: u64 = trial.streams.iter().map(reached).sum();
    let correct: u64 = trial.streams.iter().map(|flow| flow.classes.correct).sum();
    (reached > 0).then(|| 1.0 - correct as f64 / reached as f64)
}

/// Jain's index: the square of the sum divided by n times the sum of squares; absent if all shares
/// are zero.
fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Divides `total` among these demands: the smallest first, each at most an equal part of the rest.
fn max_min(demands: &[f64], mut total: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|&a, &b| demands[a].total_cmp(&demands[b]));
    let mut shares = vec![0.0; demands.len()];
    for (done, &flow) in order.iter().enumerate() {
        shares[flow] = demands[flow].min(total / (demands.len() - done) as f64);
        total -= shares[flow];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_rejected_by_the_tester_port_are_no_loss_of_the_target() {
        let mut trial = with_flows(&[(1000, 900), (1000, 600)]);
        (trial.streams[0].frames_refused, trial.streams[1].frames_refused) = (100, 400);
        for metric in [Metric::LossRatioF1, Metric::LossRatioF2, Metric::LossRatioDifference] {
            assert_eq!(fairness(&trial, metric), Some(0.0), "{metric:?}");
        }
        for metric in [Metric::FairnessIndexJain, Metric::MaxMinShareRatio] {
            assert!((fairness(&trial, metric).unwrap() - 1.0).abs() < 1e-9, "{metric:?}");
        }
        assert_eq!(overload_loss(&sample::record(), &trial), Some(0.0));
    }
    use record::{Calibration, FrameClasses};

    fn with_flows(flows: &[(u64, u64)]) -> Trial {
        let mut trial = sample::record().trials[0].clone();
        let flow = |(place, &(frames_offered, correct)): (usize, &(u64, u64))| StreamCount {
            stream: place as u32 + 1,
            port_out: 0,
            port_in: 1,
            rate_pps_intended: 0.0,
            frames_intended: frames_offered,
            frames_offered,
            frames_refused: 0,
            classes: FrameClasses { correct, ..FrameClasses::default() },
            frames_wrong_port: 0,
            missed_ns_first: None,
            missed_ns_last: None,
            gap_ns_max: 0,
        };
        trial.streams = flows.iter().enumerate().map(flow).collect();
        trial
    }

    fn found(flows: &[(u64, u64)]) -> Vec<f64> {
        let trial = with_flows(flows);
        let metrics = [
            Metric::LossRatioF1,
            Metric::LossRatioF2,
            Metric::LossRatioDifference,
            Metric::FairnessIndexJain,
            Metric::MaxMinShareRatio,
        ];
        metrics.iter().filter_map(|&metric| fairness(&trial, metric)).collect()
    }

    #[test]
    fn the_sign_shows_the_flow_with_more_loss_and_the_shares_the_fairness() {
        let close = |have: &[f64], want: &[f64]| {
            assert_eq!(have.len(), want.len());
            let near = have.iter().zip(want).all(|(have, want)| (have - want).abs() < 1e-9);
            assert!(near, "{have:?}, not {want:?}");
        };
        close(&found(&[(100, 50), (900, 900)]), &[0.5, 0.0, 0.5, 0.9, 0.5]);
        // Max-min: the small flow has no loss, so its share is one.
        close(&found(&[(100, 100), (900, 450)]), &[0.0, 0.5, -0.5, 0.9, 1.0]);
        // Equal loss ratios: Jain's index is fair, but by max-min the small flow gets too little.
        close(&found(&[(100, 50), (900, 450)]), &[0.5, 0.5, 0.0, 1.0, 0.5]);
        assert!(found(&[(100, 100)]).is_empty(), "one flow has no fairness");
        // Three flows: the difference compares the first and the last; the index includes all.
        close(&found(&[(100, 100), (100, 0), (100, 50)]), &[0.0, 0.5, -0.5, 0.6, 0.0]);
        assert_eq!(found(&[(100, 0), (100, 0)]).len(), 4, "nothing was forwarded: no index");
    }

    #[test]
    fn unused_shares_go_to_flows_with_more_demand() {
        assert_eq!(max_min(&[10.0, 90.0, 40.0], 90.0), [10.0, 40.0, 40.0]);
        assert_eq!(max_min(&[10.0, 20.0], 90.0), [10.0, 20.0]);
    }

    #[test]
    fn processing_time_excludes_the_time_on_the_link() {
        let mut record = sample::record();
        let mut trial = record.trials[0].clone();
        trial.frame_bytes = Some(1000);
        let mean = trial.latency.as_ref().unwrap().ns_mean;
        let loop_mean = record.calibrations[0].latency.as_ref().unwrap().ns_mean;
        let near = |have: Option<f64>, want: f64| (have.unwrap() - want).abs() < 1e-6;
        assert!(near(processing_ns(&record, &trial), mean - loop_mean));
        record.environment.simulated = true;
        record.parameters.insert("capacity_bps".into(), 1_000_000_000u64.into());
        assert!(near(processing_ns(&record, &trial), mean - 16_320.0));
        record.environment.simulated = false;
        record.calibrations = Vec::<Calibration>::new();
        assert_eq!(processing_ns(&record, &trial), None);
    }
}
