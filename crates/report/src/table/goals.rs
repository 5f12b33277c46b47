//! The report of a search with several goals as the standard prescribes it: each goal's attributes
//! and its bounds.
//!
//! Source: RFC 9971, which requires that every attribute of a goal and its relevant lower bound be
//! reported, and that irregular results be marked as such.

use super::{Entry, Mark, Table};
use record::number;
use record::target_name::label;
use record::{Experiment, GoalResult, Metric, Outcome, Record};

/// Explanation above the two tables.
pub const READING: &str = "Loads are those of the single sending port. The upper bound is the smallest \
     load that missed the goal. The lower bound is the largest load below it that reached the goal. \
     The conditional throughput is the expected forwarding rate at the lower bound. The width is \
     the difference of the bounds divided by the upper bound. Trials and time are those chosen for \
     the goal, without warm-up and drain; every trial counts for every goal. If the tester sent \
     fewer frames than intended, the missing frames count as lost. Warm-up and drain are shorter \
     than in RFC 2544, section 23; the record has both.";

fn results<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
) -> impl Iterator<Item = (&'a Outcome, &'a GoalResult)> {
    record
        .outcomes
        .iter()
        .filter(|outcome| outcome.experiment == experiment.source())
        .filter_map(|outcome| Some((outcome, outcome.goal.as_ref()?)))
}

fn rate(pps: Option<f64>) -> Entry {
    pps.map_or_else(Entry::default, |pps| Entry::number(number::text(pps)))
}

fn percent(ratio: f64) -> Entry {
    Entry::number(number::text(ratio * 100.0))
}

fn seconds(ns: u64) -> Entry {
    Entry::number(number::text(ns as f64 / 1e9))
}

/// Results: a row per point, target, goal and search.
pub fn of_goals(record: &Record, experiment: &Experiment) -> Table {
    let unit = number::shown(Metric::ThroughputPpsNdr).unit;
    let columns = vec![
        number::axis(&experiment.x_name),
        "target".into(),
        "goal".into(),
        "search".into(),
        format!("lower bound, {unit}"),
        format!("upper bound, {unit}"),
        format!("conditional throughput, {unit}"),
        "width, %".into(),
        "trials".into(),
        "time, s".into(),
        "result".into(),
    ];
    let mut found: Vec<(&Outcome, &GoalResult)> = results(record, experiment).collect();
    let target = |name: &str| record.targets.iter().position(|target| target.name == name);
    found.sort_by(|(one, _), (other, _)| {
        let order = one.point.value.total_cmp(&other.point.value);
        order
            .then(target(&one.target).cmp(&target(&other.target)))
            .then(one.metric.cmp(&other.metric))
    });
    let row = |(outcome, goal): &(&Outcome, &GoalResult)| {
        let words: Vec<&str> = goal.remarks.iter().map(|remark| remark.words()).collect();
        let mut result =
            Entry::word(if words.is_empty() { "regular".into() } else { words.join("; ") });
        result.warnings.extend(words.iter().map(|words| Mark::new("remark", *words)));
        result.trials.clone_from(&outcome.trials);
        vec![
            Entry::number(number::setting(outcome.point.value)),
            Entry::word(label(&outcome.target)),
            Entry::word(&goal.goal),
            Entry::number(outcome.repeat.to_string()),
            rate(goal.rate_pps_lower),
            rate(goal.rate_pps_upper),
            rate(goal.rate_pps_conditional),
            goal.width_ratio().map_or_else(Entry::default, percent),
            Entry::number(number::count(goal.trials_chosen as i64)),
            seconds(goal.duration_ns_trials),
            result,
        ]
    };
    Table { columns, rows: found.iter().map(row).collect() }
}

/// Attributes of the goals: a row per goal.
pub fn of_goal_attributes(record: &Record, experiment: &Experiment) -> Table {
    let columns = [
        "goal",
        "allowed loss, %",
        "exceed ratio, %",
        "width, %",
        "initial trial, s",
        "final trial, s",
        "duration sum, s",
    ];
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for (_, goal) in results(record, experiment) {
        let row = vec![
            Entry::word(&goal.goal),
            percent(goal.loss_ratio_allowed),
            percent(goal.exceed_ratio),
            percent(goal.width_ratio_wanted),
            seconds(goal.duration_ns_initial),
            seconds(goal.duration_ns_final),
            seconds(goal.duration_ns_sum),
        ];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Table { columns: columns.map(Into::into).into(), rows }
}
