//! Values of a trial: from the pass with the best resolution, and the reliability of the barrier reply over all
//! passes.
//!
//! Invariant: within its uncertainty, each value covers everything that the windows of the entries allow.

use packet::time::Nanos;
use tester::module::{MeasuredValue, ModuleContext, Series};

use super::super::activation::Activation;
use super::super::rules::Priorities;
use super::super::summary::Summary;
use super::super::tcam_shifts::Costs;
use super::passes::{UpdateObservations, best};
use super::{FlowModCommand, Probing, RuleActivation};
use crate::activation_times::batches::Grouping;
use crate::activation_times::order::OrderComparison;
use crate::activation_times::{ActivationTimes, Bounds};

/// Note for the report if batches are not resolved.
const UNRESOLVED: &str = "probes are too far apart to show shorter pauses and batches (hint: \
                          increase probes_pps or use fewer entries)";

/// Largest uncertainty of a rank correlation that is reported: it lies between -1 and 1.
const TAU_HALF_MAX: f64 = 1.0;

/// Quantile of the normal distribution for an interval of 95 %.
const Z_95: f64 = 1.96;

impl RuleActivation {
    /// Reports the available values.
    pub(super) fn tell(&mut self, context: &mut ModuleContext) {
        let passes = || self.earlier.iter().chain([&self.pass]).filter(|pass| pass.sent.is_some());
        let Some(pass) = best(passes()) else { return };
        let Some(first) = pass.sent else { return };
        let count = u64::from(self.update.rules.count());
        let turn = context.poll_period();
        let times = pass.activation.times();
        let mut tell = |measured: MeasuredValue| context.measured(measured);
        if let Some(said) = pass.acknowledged_at {
            let span = said.since(first).0 as f64;
            tell(MeasuredValue::new("control_plane_ns", "ns", span, turn.0 as f64).of(count));
        }
        let share = times.len() as f64 / count as f64;
        tell(MeasuredValue::new("rules_active_ratio", "ratio", share, 0.0).of(count));
        tell(MeasuredValue::new("errors_count", "count", pass.errors as f64, 0.0));
        let unready = pass.unready as f64 / count as f64;
        tell(MeasuredValue::new("rules_unready_ratio", "ratio", unready, 0.0).of(count));
        tell_barrier(&passes().collect::<Vec<_>>(), count, &mut tell);
        if let Probing::After(_) = self.update.probing {
            self.late.tell(&mut tell);
            return tell_first_probes(&pass.activation, self.round(), &mut tell);
        }
        tell(MeasuredValue::new("probes_per_s", "per_s", pass.probes_pps, 0.0));
        tell_ways(pass, first, &mut tell);
        tell_times(pass, &times, turn, &mut tell);
        let order = times.order();
        if let Some(order) = &order {
            tau("order_tau_index", order).into_iter().for_each(&mut tell);
            let (inversions, unresolved) = (order.inversions as f64, order.unresolved as f64);
            tell(MeasuredValue::new("inversions_count", "count", inversions, unresolved));
            tell(MeasuredValue::new("unresolved_pairs_count", "count", unresolved, 0.0));
        }
        // If entries are missing, neither batches nor moves are known.
        if pass.activation.is_complete() {
            let is_in_order = order.is_some_and(|it| it.inversions == 0);
            self.tell_grouping(pass, &times, is_in_order, &mut tell);
        }
        for series in series(&times, self.update.prefix) {
            context.series(series);
        }
    }

    fn tell_grouping(
        &self,
        pass: &UpdateObservations,
        times: &ActivationTimes,
        is_in_order: bool,
        tell: &mut impl FnMut(MeasuredValue),
    ) {
        let grouping = times.grouping();
        if let Some(hidden) = times.hidden_pause() {
            let bound = MeasuredValue::new("pause_hidden_ns_max", "ns", hidden, 0.0);
            tell(if grouping == Grouping::Unresolved { bound.noting(UNRESOLVED) } else { bound });
        }
        if let Some(costs) = self.costs(&pass.activation).filter(|_| is_in_order) {
            costs.tell(tell);
        }
        let Grouping::Batches(batches) = grouping else { return };
        let count = batches.groups.len();
        tell(MeasuredValue::new("batches_count", "count", count as f64, 0.0));
        let (size, off) = batches.size();
        tell(MeasuredValue::new("batch_rules_p50", "rules", size, off).of(count as u64 - 1));
        let interval = batches.interval();
        let (mean, half) = (interval.middle(), interval.half());
        tell(MeasuredValue::new("batch_interval_ns_mean", "ns", mean, half).of(count as u64 - 1));
        if let Some(order) = times.order_within(&batches.groups) {
            tau("batch_order_tau_index", &order).into_iter().for_each(tell);
        }
    }

    /// Returns the cost of insertions, if the priorities determine what each one moved.
    ///
    /// With rising priorities these are the entries below, including the lowest entry; with falling priorities the
    /// ones above.
    fn costs(&self, activation: &Activation) -> Option<Costs> {
        let others = match (self.update.deed, self.update.priorities) {
            (FlowModCommand::Add, Priorities::Ascending) => 1,
            (FlowModCommand::Add, Priorities::Descending) => 0,
            _ => return None,
        };
        let moments: Vec<_> = activation.moments().map(|(_, moment)| moment).collect();
        Costs::of(&moments, others)
    }
}

/// Reports the barrier replies against the activation times, over all acknowledged updates.
fn tell_barrier(passes: &[&UpdateObservations], count: u64, tell: &mut impl FnMut(MeasuredValue)) {
    let acknowledged: Vec<&Activation> = passes
        .iter()
        .filter(|pass| pass.acknowledged_at.is_some())
        .map(|pass| &pass.activation)
        .collect();
    let updates = acknowledged.len();
    if updates == 0 {
        return;
    }
    let sum = |of: fn(&Activation) -> usize| acknowledged.iter().map(|it| of(it)).sum::<usize>();
    let rules = (count * updates as u64) as f64;
    // Premature according to a probe, and possibly premature according to the windows.
    let shown = sum(Activation::premature) as f64 / rules;
    let possible = sum(Activation::premature_most) as f64 / rules;
    let premature = MeasuredValue::new("rules_premature_ratio", "ratio", shown, possible - shown);
    tell(premature.of(rules as u64));
    let early = acknowledged.iter().filter(|it| it.premature() > 0).count();
    tell(MeasuredValue::new("updates_count", "count", updates as f64, 0.0));
    let share = early as f64 / updates as f64;
    let half = share_half(early as f64, updates as f64);
    tell(MeasuredValue::new("updates_premature_ratio", "ratio", share, half).of(updates as u64));
    let frames = |of: fn(&Activation) -> u64| acknowledged.iter().map(|it| of(it)).sum::<u64>();
    let stale = frames(Activation::stale) as f64;
    tell(MeasuredValue::new("stale_frames", "frames", stale, 0.0));
    let relapsed = frames(Activation::relapsed) as f64;
    tell(MeasuredValue::new("relapsed_frames", "frames", relapsed, 0.0));
}

/// Returns the half width of the 95 % interval of a share (Wilson).
fn share_half(some: f64, all: f64) -> f64 {
    let (share, square) = (some / all, Z_95 * Z_95);
    let middle = (share + square / (2.0 * all)) / (1.0 + square / all);
    let spread = (share * (1.0 - share) / all + square / (4.0 * all * all)).sqrt();
    (middle - share).abs() + Z_95 * spread / (1.0 + square / all)
}

/// Reports the latency of the first and the last frames of an entry, and the share of frames that returned before.
fn tell_ways(pass: &UpdateObservations, first: Nanos, tell: &mut impl FnMut(MeasuredValue)) {
    let names = ["first_frame_ns", "last_frame_ns"];
    for (name, took) in names.into_iter().zip(pass.activation.took()) {
        if let Some(took) = Summary::of(took) {
            took.tell(name, 0.0, tell);
        }
    }
    let sent = pass.probes_pps * first.since(pass.probed_from).as_secs_f64();
    if pass.back > 0 && sent >= 1.0 {
        let back = (pass.back as f64 / sent).min(1.0);
        tell(MeasuredValue::new("probes_back_ratio", "ratio", back, 0.0).of(pass.back));
    }
}

/// Reports the activation times from the first byte of the update on.
fn tell_times(
    pass: &UpdateObservations,
    times: &ActivationTimes,
    turn: Nanos,
    tell: &mut impl FnMut(MeasuredValue),
) {
    let [lows, highs] = times.ends().map(Summary::of);
    let (Some(lows), Some(highs), Some(last)) = (lows, highs, times.last()) else { return };
    let count = times.len() as u64;
    let value = |name: &'static str, bounds: Bounds, more: f64| {
        MeasuredValue::new(name, "ns", bounds.middle(), bounds.half() + more).of(count)
    };
    Summary::tell_between(&lows, &highs, "activation_ns", tell);
    let half = times.half_median().unwrap_or(0.0);
    tell(MeasuredValue::new("resolution_ns_p50", "ns", half, 0.0).of(count));
    // If entries are missing, the last activation is not known.
    if pass.activation.is_complete() {
        tell(value("data_plane_ns", last, 0.0));
        let per_s = |ns: f64| count as f64 * 1e9 / ns.max(1.0);
        let rate = Bounds { low: per_s(last.high), high: per_s(last.low) };
        // If the shortest time may be zero, the rate has no upper bound.
        if last.low > 0.0 {
            tell(MeasuredValue::new("rules_per_s", "per_s", rate.middle(), rate.half()));
        }
    }
    if let Some((said, first)) = pass.acknowledged_at.zip(pass.sent) {
        // The reply may have waited one event loop iteration before it was read.
        let said = said.since(first).0 as f64;
        let (said, turn) = (Bounds { low: said, high: said }, turn.0 as f64);
        let middle = Bounds { low: lows.quantile(0.5), high: highs.quantile(0.5) };
        tell(value("barrier_gap_ns_p50", middle.since(said), turn));
        tell(value("barrier_gap_ns_max", last.since(said), turn));
    }
    if let Some(pause) = times.longest_pause() {
        tell(value("pause_ns_max", pause.length, 0.0));
        tell(value("pause_begins_ns", pause.begins, 0.0));
    }
}

/// Reports whether entries waited for a frame; for probes that run only long after the barrier reply.
fn tell_first_probes(activation: &Activation, round: Nanos, tell: &mut impl FnMut(MeasuredValue)) {
    let (probed, at_work) = activation.first_probes();
    if probed == 0 {
        return;
    }
    let share = at_work as f64 / probed as f64;
    let named = MeasuredValue::new("first_probe_active_ratio", "ratio", share, 0.0);
    tell(named.of(probed as u64));
    let waits: Vec<f64> = activation.after_first_probe().map(|span| span.0 as f64).collect();
    if let Some(waits) = Summary::of(waits) {
        waits.tell("after_first_probe_ns", round.0 as f64, tell);
    }
}

/// Returns a rank correlation as a value, unless the unresolved pairs allow it to be almost anything.
fn tau(name: &'static str, found: &OrderComparison) -> Option<MeasuredValue> {
    let value = MeasuredValue::new(name, "index", found.tau(), found.tau_half()).of(found.resolved);
    (found.tau_half() < TAU_HALF_MAX).then_some(value)
}

/// Returns the series of the trial.
///
/// - Number of active entries over the time since the first byte of the update (figure 8a).
/// - Place in the order of activation over place in the order of sending (figure 8b); they differ only where probes
///   show it.
/// - Window of each entry.
///
/// Names of the first two begin with `prefix`.
fn series(times: &ActivationTimes, prefix: &str) -> Vec<Series> {
    let acting = (0..times.len()).map(|rank| (times.nth(rank).middle(), rank as f64 + 1.0));
    let ranks = times.ranks();
    let place = ranks.iter().map(|(rule, rank)| (*rule as f64, rank.nearest() as f64));
    let mut windows = times.windows().to_vec();
    windows.sort_by_key(|window| window.rule);
    let end = |of: fn(Bounds) -> f64| {
        windows.iter().map(|window| (window.rule as f64, of(window.acts))).collect()
    };
    let of = |name: &str, unit: &'static str, points: Vec<(f64, f64)>| Series {
        name: name.to_string().into(),
        unit: unit.into(),
        x_name: "place_sent".into(),
        x_unit: "".into(),
        points,
    };
    vec![
        Series {
            x_name: "time_ns".into(),
            x_unit: "ns".into(),
            ..of(&format!("{prefix}rules_acting"), "rules", acting.collect())
        },
        of(&format!("{prefix}place_acting"), "", place.collect()),
        of("acts_after_ns", "ns", end(|acts| acts.low)),
        of("acts_by_ns", "ns", end(|acts| acts.high)),
    ]
}
