//! Reports that standards prescribe, if these require more than a value and its interval.
//!
//! Source: RFC 9971 (goals and bounds), RFC 2544 section 26.1, RFC 9004 section 6, RFC 8219 section
//! 7. Pages and summaries show the same sheets, below the figures of their experiment. Invariant: a
//! sheet is a function of cells and outcomes, and exists only if there are some.

use super::{Entry, Table, costa2017, gelberger2013, goals, oflops2018};
use crate::analysis::bianco2010::{self, WIRE_OVERHEAD_BYTES};
use record::number;
use record::target_name::label;
use record::{Cell, Experiment, Metric, Reason, Record, Trial};
use stats::conclude::{Conclusion, DIFFERENT_PERCENT, Estimate};
use stats::interval::{self, LEVEL_PERCENT};
use stats::series;

/// A prescribed report: title, explanation and tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// Its heading.
    pub title: &'static str,
    /// Explanation of the numbers and their method.
    pub reading: &'static str,
    /// The tables, in order.
    pub tables: Vec<Table>,
}

/// The sheets of an experiment; empty if there are none.
pub fn sheets(record: &Record, experiment: &Experiment) -> Vec<Sheet> {
    let goals = || {
        let tables = vec![
            goals::of_goal_attributes(record, experiment),
            goals::of_goals(record, experiment),
        ];
        Sheet { title: "Goals and bounds", reading: goals::READING, tables }
    };
    if let (Some("costa2017"), Some(item)) = (experiment.study.as_deref(), &experiment.item) {
        return costa2017::sheets(record, experiment, item);
    }
    if let (Some("gelberger2013"), Some(item)) = (experiment.study.as_deref(), &experiment.item) {
        return gelberger2013::sheets(record, experiment, item);
    }
    if let (Some("oflops2018"), Some(item)) = (experiment.study.as_deref(), &experiment.item) {
        return oflops2018::sheets(record, experiment, item);
    }
    let found = match experiment.id.as_str() {
        "rfc2544/throughput" => throughput(record, experiment),
        "rfc2544/back-to-back" | "rfc9004" => bursts(record, experiment),
        "rfc8219" => variation(record, experiment),
        "soak" => trend(record, experiment),
        "rfc2889/caching" | "rfc2889/learning" => iterations(record, experiment),
        _ => goals(),
    };
    let is_filled = found.tables.iter().all(|table| !table.rows.is_empty());
    if is_filled { vec![found] } else { Vec::new() }
}

/// The cells of a metric, by target in the record's order, then by point.
fn cells<'a>(
    record: &'a Record,
    experiment: &'a Experiment,
    metric: Metric,
) -> impl Iterator<Item = &'a Cell> {
    let targets = record.targets.iter();
    targets.flat_map(move |target| record.cells_of(&experiment.id, &target.name, metric))
}

fn value(metric: Metric, stored: f64) -> Entry {
    Entry::number(number::value(metric, stored))
}

fn place(cell: &Cell) -> [Entry; 2] {
    [Entry::word(label(&cell.target)), Entry::number(number::setting(cell.point.value))]
}

fn throughput(record: &Record, experiment: &Experiment) -> Sheet {
    let capacity_bps = bianco2010::capacity_bps(record);
    let mut columns: Vec<String> =
        ["target", "frame size, bytes", "throughput, frames/s", "throughput, Mbit/s"]
            .map(Into::into)
            .into();
    if capacity_bps.is_some() {
        columns.extend(["theoretical maximum, frames/s", "share of maximum, %"].map(String::from));
    }
    columns.push("searches".into());
    let row = |cell: &Cell| {
        let bytes = cell.point.value;
        let mut row = place(cell).to_vec();
        row.extend([Entry::cell(cell), Entry::number(number::text(cell.value * bytes * 8e-6))]);
        if let Some(capacity) = capacity_bps {
            let most = capacity / (8.0 * (bytes + WIRE_OVERHEAD_BYTES));
            row.extend([most, cell.value / most * 100.0].map(|it| Entry::number(number::text(it))));
        }
        row.push(Entry::number(cell.n.to_string()));
        row
    };
    let rows = cells(record, experiment, Metric::ThroughputPps).map(row).collect();
    Sheet {
        title: "Report format of RFC 2544, 26.1",
        reading: "The throughput is the largest load without frame loss in a search trial and in a \
                  confirmation trial of four times the duration. Frame sizes include the frame \
                  check sequence. Only links that serialize frames have a theoretical maximum; \
                  veth pairs and shared memory have none.",
        tables: vec![Table { columns, rows }],
    }
}

fn bursts(record: &Record, experiment: &Experiment) -> Sheet {
    let columns = [
        "target",
        "frame size, bytes",
        "N",
        "step, frames",
        "mean burst, frames",
        "minimum",
        "maximum",
        "standard deviation",
        "throughput, frames/s",
        "implied buffer time, µs",
        "corrected buffer time, µs",
    ];
    let step = record.parameters.get("burst_step").and_then(|step| step.as_u64()).unwrap_or(1);
    let row = |cell: &Cell| {
        let beside = |metric| {
            let mut found = record.cells_of(&experiment.id, &cell.target, metric);
            let found = found.find(|other| other.point == cell.point);
            found.map_or_else(Entry::default, |found| value(metric, found.value))
        };
        let sorted = series::sorted(&cell.samples);
        let edge = |it: Option<&f64>| it.map_or_else(Entry::default, |&it| value(cell.metric, it));
        let deviation = series::deviation(&cell.samples);
        let mut row = place(cell).to_vec();
        row.extend([
            Entry::number(cell.n.to_string()),
            Entry::number(number::count(step as i64)),
            Entry::cell(cell),
            edge(sorted.first()),
            edge(sorted.last()),
            deviation.map_or_else(Entry::default, |it| Entry::number(number::text(it))),
            beside(Metric::ThroughputPps),
            beside(Metric::BufferNsImplied),
            beside(Metric::BufferNsCorrected),
        ]);
        row
    };
    let rows = cells(record, experiment, Metric::BurstFrames).map(row).collect();
    Sheet {
        title: "Report format of RFC 9004",
        reading: "N searches for the longest burst without frame loss, at the maximum rate of link and \
                  tester. Frame sizes that the target forwards at that rate show no buffer and have no \
                  row. The corrected buffer time excludes frames that the target forwards during the \
                  burst. At a lower rate, the same buffer lasts proportionally longer. A burst near \
                  the longest tested burst is marked irregular and is a lower bound.",
        tables: vec![Table { columns: columns.map(Into::into).into(), rows }],
    }
}

fn variation(record: &Record, experiment: &Experiment) -> Sheet {
    const SHOWN: [(&str, Metric); 6] = [
        ("typical latency (median)", Metric::LatencyNsP50),
        ("worst-case latency (p99.9)", Metric::LatencyNsP999),
        ("PDV (p99.9 minus minimum)", Metric::PdvNsP999),
        ("minimum IPDV", Metric::IpdvNsMin),
        ("median IPDV", Metric::IpdvNsP50),
        ("maximum IPDV", Metric::IpdvNsMax),
    ];
    let columns =
        ["target", "frame size, bytes", "metric", "repeats", "median, µs", "p1, µs", "p99, µs"];
    let mut rows = Vec::new();
    for first in cells(record, experiment, Metric::LatencyNsP50) {
        for (name, metric) in SHOWN {
            let mut beside = record.cells_of(&experiment.id, &first.target, metric);
            let Some(cell) = beside.find(|cell| cell.point == first.point) else { continue };
            let sorted = series::sorted(&cell.samples);
            let mut row = place(cell).to_vec();
            row.extend([Entry::word(name), Entry::number(cell.n.to_string())]);
            row.push(value(metric, cell.value));
            row.extend([0.01, 0.99].map(|share| {
                rank(&sorted, share).map_or_else(Entry::default, |it| value(metric, it))
            }));
            rows.push(row);
        }
    }
    Sheet {
        title: "Report format of RFC 8219, 7.2 and 7.3",
        reading: "Medians of the repeats, and the 1st and 99th percentile of the repeats (nearest rank: \
                  minimum and maximum of 20 repeats). Every frame had a time stamp. IPDV is \
                  signed: below zero, the later frame had the lower latency. A worst-case latency \
                  requires at least ten frames above it.",
        tables: vec![Table { columns: columns.map(Into::into).into(), rows }],
    }
}

fn trend(record: &Record, experiment: &Experiment) -> Sheet {
    const SHOWN: [Metric; 5] = [
        Metric::RatePpsForwarded,
        Metric::LossRatio,
        Metric::LatencyNsP50,
        Metric::LatencyNsP99,
        Metric::MemoryBytes,
    ];
    const HOUR_S: f64 = 3600.0;
    let columns = ["target", "metric", "first point", "last point", "change per hour", "drift"];
    let mut rows = Vec::new();
    for target in &record.targets {
        for metric in SHOWN {
            let series: Vec<&Cell> =
                record.cells_of(&experiment.id, &target.name, metric).collect();
            let (Some(first), Some(last)) = (series.first(), series.last()) else { continue };
            let samples = series.iter().flat_map(|cell| {
                cell.samples.iter().map(|sample| (cell.point.value / HOUR_S, *sample))
            });
            let samples: Vec<(f64, f64)> = samples.collect();
            let Some((slope, range)) = interval::of_slope(&samples, LEVEL_PERCENT) else {
                continue;
            };
            let wide = interval::of_slope(&samples, DIFFERENT_PERCENT).map(|(_, range)| range);
            let n = samples.len() as u32;
            let drift = match Estimate::of_interval(slope, n, wide, &series).against(0.0) {
                Conclusion::Greater => "increases".to_string(),
                Conclusion::Smaller => "decreases".to_string(),
                Conclusion::Equivalent | Conclusion::Undecided(Reason::Overlap) => {
                    "not significant".to_string()
                }
                Conclusion::Undecided(reason) => reason.to_string(),
            };
            let mut change = value(metric, slope);
            change.range = number::interval(metric, &range);
            let what = number::heading(metric);
            let mut row = vec![Entry::word(label(&target.name)), Entry::word(what)];
            row.extend([Entry::cell(first), Entry::cell(last), change, Entry::word(drift)]);
            rows.push(row);
        }
    }
    Sheet {
        title: "Drift",
        reading: "Linear regression over all trials of the series: slope per hour with its 95 % \
                  confidence interval, for independent trials. A drift requires that the 99 % \
                  interval excludes zero. The load pauses between trials for the drain and for \
                  reading counters.",
        tables: vec![Table { columns: columns.map(Into::into).into(), rows }],
    }
}

fn iterations(record: &Record, experiment: &Experiment) -> Sheet {
    let columns = [
        "target",
        "search",
        "stations",
        "learning rate, frames/s",
        "received at the test port",
        "test frames sent",
        "received at the learning port",
        "flooded or misrouted",
    ];
    let row = |trial: &Trial| {
        let [_, taught, asked] = &trial.streams[..] else { return None };
        let count = |frames: u64| Entry::number(number::count(frames as i64));
        let mut row =
            vec![Entry::word(label(&trial.target)), Entry::number(trial.repeat.to_string())];
        row.extend([
            count(asked.frames_intended),
            Entry::number(number::text(taught.rate_pps_intended)),
        ]);
        row.extend(
            [taught.classes.correct, asked.frames_offered, asked.classes.correct].map(count),
        );
        row.push(count(asked.classes.flooded + asked.classes.misrouted));
        Some(row)
    };
    let own = record.trials.iter().filter(|trial| trial.experiment == experiment.source());
    Sheet {
        title: "Address table, trial by trial (RFC 2889, 5.7 and 5.8)",
        reading: "Each trial starts with an empty address table. The learning port sends one frame per \
                  station; then the test port sends one frame to each station. All of these must \
                  arrive at the learning port. Frames at other ports were flooded, because the \
                  address was not in the table. The station at the test port is one more address.",
        tables: vec![Table {
            columns: columns.map(Into::into).into(),
            rows: own.filter_map(row).collect(),
        }],
    }
}

/// The value at this share of sorted values (nearest rank).
fn rank(sorted: &[f64], share: f64) -> Option<f64> {
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(at.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_across_repeats_are_observed_values() {
        let row: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!((rank(&row, 0.01), rank(&row, 0.99)), (Some(2.0), Some(198.0)));
        assert_eq!((rank(&row[..20], 0.01), rank(&row[..20], 0.99)), (Some(1.0), Some(20.0)));
        assert_eq!(rank(&[], 0.5), None);
    }
}
