//! Reports that standards prescribe, if these require more than a value and its interval.
//!
//! Source: RFC 9971 (goals and bounds), RFC 2544 section 26.1, RFC 9004 section 6, RFC 8219 section
//! 7. Pages and summaries show the same sheets, below the figures of their experiment. Invariant: a
//! sheet is a function of cells and outcomes, and exists only if there are some.

use super::{Entry, Table, costa2017, gelberger2013, goals};
use crate::conclude::{Conclusion, DIFFERENT_PERCENT, Estimate};
use crate::derive::study::{self, WIRE_OVERHEAD_BYTES};
use crate::interval::{self, LEVEL_PERCENT};
use crate::number;
use crate::record::{Cell, Experiment, Metric, Reason, Record, Trial};
use crate::series;

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
    [Entry::word(&cell.target), Entry::number(number::setting(cell.point.value))]
}

fn throughput(record: &Record, experiment: &Experiment) -> Sheet {
    let capacity_bps = study::capacity_bps(record);
    let mut columns: Vec<String> =
        ["target", "frame size, bytes", "throughput, frames/s", "Mbit/s of frames"]
            .map(Into::into)
            .into();
    if capacity_bps.is_some() {
        columns.extend(["theoretical maximum, frames/s", "of it, %"].map(String::from));
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
        title: "Report by RFC 2544, 26.1",
        reading: "The largest load of which no frame was lost, in a search trial and in a confirming one four \
                  times as long. Frame sizes count the frame check sequence. A theoretical maximum is \
                  given where the link really serialises; over veth pairs and shared memory there is \
                  none, and no share of a line rate.",
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
        "least",
        "greatest",
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
        title: "Report by RFC 9004",
        reading: "N searches for the longest burst, at what link and tester carry, of which no frame was lost. \
                  Sizes that are not here went through at that rate, and show no buffer. The corrected \
                  time leaves out what the target forwards while the burst comes; at another rate the \
                  same buffer lasts as much longer as the rate is lower. A burst near the longest that \
                  was tried is marked irregular and is a lower bound.",
        tables: vec![Table { columns: columns.map(Into::into).into(), rows }],
    }
}

fn variation(record: &Record, experiment: &Experiment) -> Sheet {
    const SHOWN: [(&str, Metric); 6] = [
        ("typical latency (median)", Metric::LatencyNsP50),
        ("worst-case latency (p99.9)", Metric::LatencyNsP999),
        ("PDV (p99.9 less least)", Metric::PdvNsP999),
        ("IPDV, least", Metric::IpdvNsMin),
        ("IPDV, median", Metric::IpdvNsP50),
        ("IPDV, greatest", Metric::IpdvNsMax),
    ];
    let columns =
        ["target", "frame size, bytes", "what", "repeats", "median, µs", "p1, µs", "p99, µs"];
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
        title: "Report by RFC 8219, 7.2 and 7.3",
        reading: "Medians of the repeats, and the 1st and 99th percentile across them (nearest rank: with 20 \
                  repeats the least and the greatest). Every frame was stamped. IPDV is signed: below zero the \
                  later frame was quicker. A worst case stands only where at least ten frames lie above it.",
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
    let columns = ["target", "what", "first point", "last point", "change an hour", "drift"];
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
                Conclusion::Greater => "rises".to_string(),
                Conclusion::Smaller => "falls".to_string(),
                Conclusion::Equivalent | Conclusion::Undecided(Reason::Overlap) => {
                    "none beyond chance".to_string()
                }
                Conclusion::Undecided(reason) => reason.to_string(),
            };
            let mut change = value(metric, slope);
            change.range = number::interval(metric, &range);
            let what = number::heading(metric);
            let mut row = vec![Entry::word(&target.name), Entry::word(what)];
            row.extend([Entry::cell(first), Entry::cell(last), change, Entry::word(drift)]);
            rows.push(row);
        }
    }
    Sheet {
        title: "Drift",
        reading: "A straight line through all trials of the series (least squares), its slope an hour with the \
                  interval that holds the true one with 95 % confidence if trials are independent. A drift is \
                  one whose interval of 99 % leaves out zero. Between two trials frames under way are awaited and \
                  counters are read, so the load pauses there.",
        tables: vec![Table { columns: columns.map(Into::into).into(), rows }],
    }
}

fn iterations(record: &Record, experiment: &Experiment) -> Sheet {
    let columns = [
        "target",
        "search",
        "stations",
        "taught, frames/s",
        "heard at the test port",
        "asked for",
        "correct at the learning port",
        "elsewhere",
    ];
    let row = |trial: &Trial| {
        let [_, taught, asked] = &trial.streams[..] else { return None };
        let count = |frames: u64| Entry::number(number::count(frames as i64));
        let mut row = vec![Entry::word(&trial.target), Entry::number(trial.repeat.to_string())];
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
        reading: "Each trial with a target that knew nobody: so many stations heard at the learning port, then a \
                  frame for each of them from the test port. All have to come out at the learning port; frames \
                  elsewhere were flooded, since the address was not known. The station at the test port is one \
                  address more.",
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
