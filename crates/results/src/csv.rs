//! Derived numbers as CSV, one value a line, in stored units with all their digits.
//!
//! Source: RFC 4180. Invariant: names and units are those of the record, so that a line can be
//! found again in `record.json`; what was not measured has no line or an empty field.

use std::fmt::Write;

use crate::links;
use crate::record::{Experiment, IntervalMethod, Point, Record};

/// Every cell of an experiment.
pub fn cells(record: &Record, experiment: &Experiment) -> String {
    let mut out = String::from(
        "experiment,target,x_name,x,curve_name,curve,metric,unit,value,n,interval_low,interval_high,\
         interval_level_percent,interval_method,interval_99_low,interval_99_high,resolution,warnings,link\n",
    );
    for cell in record.cells.iter().filter(|cell| cell.experiment == experiment.id) {
        let (low, high, level, method) = match &cell.interval {
            Some(interval) => (
                interval.low.to_string(),
                interval.high.to_string(),
                interval.level_percent.to_string(),
                method_word(interval.method),
            ),
            None => Default::default(),
        };
        let warnings: Vec<String> = cell.warnings.iter().map(|w| w.sentence()).collect();
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{low},{high},{level},{method},{},{},{},{},{}",
            field(&cell.experiment),
            field(&cell.target),
            field(&cell.point.name),
            cell.point.value,
            curve(&cell.point),
            cell.metric.name(),
            field(&cell.unit),
            cell.value,
            cell.n,
            optional(cell.interval_99.map(|interval| interval.low)),
            optional(cell.interval_99.map(|interval| interval.high)),
            optional(cell.resolution),
            field(&warnings.join("; ")),
            field(links::of(record, &cell.target)),
        );
    }
    out
}

/// Every trial: its load and the account of its frames.
pub fn trials(record: &Record) -> String {
    let mut out = String::from(
        "id,experiment,target,repeat,x_name,x,curve_name,curve,frame_bytes,rate_pps_intended,frames_offered,\
         frames_forwarded,duration_ns_effective,correct,reordered,misrouted,corrupt,flooded,\
         duplicate,foreign,dropped,unexplained,latency_ns_mean,latency_ns_p50,latency_ns_p99,seed,goal\n",
    );
    for trial in &record.trials {
        let latency = trial.latency.as_ref();
        let dropped: u64 = trial.drops.iter().map(|drop| drop.frames).sum();
        let classes = &trial.classes;
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{dropped},{},{},{},{},{},{}",
            trial.id,
            field(&trial.experiment),
            field(&trial.target),
            trial.repeat,
            field(&trial.point.name),
            trial.point.value,
            curve(&trial.point),
            optional(trial.frame_bytes),
            trial.rate_pps_intended,
            trial.frames_offered,
            trial.frames_forwarded,
            trial.duration_ns_effective,
            classes.correct,
            classes.reordered,
            classes.misrouted,
            classes.corrupt,
            classes.flooded,
            classes.duplicate,
            classes.foreign,
            trial.frames_unexplained,
            optional(latency.map(|found| found.ns_mean)),
            optional(latency.and_then(|found| found.ns_p50)),
            optional(latency.and_then(|found| found.ns_p99)),
            trial.seed,
            field(trial.goal.as_deref().unwrap_or_default()),
        );
    }
    out
}

/// The two fields of a point's curve.
fn curve(point: &Point) -> String {
    match &point.within {
        Some(curve) => format!("{},{}", field(&curve.name), curve.value),
        None => ",".into(),
    }
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// How an interval was found, as the record words it.
pub(crate) fn method_word(method: IntervalMethod) -> &'static str {
    match method {
        IntervalMethod::StudentT => "student_t",
        IntervalMethod::StudentTLog => "student_t_log",
        IntervalMethod::OrderStatistics => "order_statistics",
        IntervalMethod::Bootstrap => "bootstrap",
        IntervalMethod::Ranks => "ranks",
    }
}

/// A field, quoted where it must be; a leading sign that a spreadsheet would run is kept as text.
fn field(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text.to_string(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn every_line_has_the_fields_of_its_header() {
        let record = sample::record();
        for text in [cells(&record, &record.experiments[0]), trials(&record)] {
            let wanted = text.lines().next().unwrap().split(',').count();
            assert!(text.lines().count() > 100);
            assert!(text.lines().all(|line| line.split(',').count() >= wanted));
        }
        assert_eq!(trials(&record).lines().count(), record.trials.len() + 1);
    }

    #[test]
    fn fields_are_quoted_and_never_formulas() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("=1+1"), "'=1+1");
    }
}
