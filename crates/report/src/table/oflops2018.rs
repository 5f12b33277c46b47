//! Table I of oflops2018: the rows of the study, followed by the rows of this run.
//!
//! Source: table I of the study, processor load in cores and packet loss at line rate. Each row
//! states whether it is from the study or measured. Invariant: a packet size without a value is
//! empty.

use super::rfc::Sheet;
use super::{Entry, Mark, Table};
use crate::analysis::bianco2010::WIRE_OVERHEAD_BYTES;
use record::links::Naming;
use record::number;
use record::{Cell, Experiment, Metric, Published, Record};

const READING: &str = "\
    Processor load in cores and lost share of the packets, at the full rate of the nominal link: 10 \
    Gbit/s in the study. Measured rows state the share of that rate that the tester offered. The load \
    is that of the target's processes and of the kernel threads that work for them; a polling thread \
    counts its cycles spent on packets.";

/// Quantities of the study: the name of its values, a heading, and the measured metric.
const QUANTITIES: [(&str, &str, Metric); 2] = [
    ("processor_load_cores", "processor load, cores", Metric::CpuLoadRatio),
    ("loss_ratio", "packet loss, %", Metric::LossRatio),
];

/// The sheets of an item of the study.
pub(super) fn sheets(record: &Record, experiment: &Experiment, item: &str) -> Vec<Sheet> {
    let table = match item {
        "table1" => rows(record, experiment),
        _ => return Vec::new(),
    };
    let title = "Table I: processor load and packet loss at line rate";
    let sheet = Sheet { title, reading: READING, tables: vec![table] };
    let is_measured = record.cells.iter().any(|cell| cell.experiment == experiment.id);
    if is_measured { vec![sheet] } else { Vec::new() }
}

fn rows(record: &Record, experiment: &Experiment) -> Table {
    let printed: Vec<&Published> = record
        .published
        .iter()
        .filter(|it| it.study == "oflops2018" && it.item == "table1")
        .collect();
    let cells = record.cells.iter().filter(|cell| cell.experiment == experiment.id);
    let mut sizes: Vec<f64> = cells.map(|cell| cell.point.value).collect();
    sizes.extend(printed.iter().map(|it| it.point.value));
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let mut columns: Vec<String> = ["switch", "from", "quantity"].map(Into::into).into();
    columns.extend(sizes.iter().map(|size| format!("{} bytes", number::setting(*size))));
    let mut rows = of_study(&printed, &sizes);
    let naming = Naming::within(record, &experiment.id);
    for target in &record.targets {
        let name = naming.of(&target.name);
        rows.extend(measured(record, experiment, (&target.name, &name), &sizes));
    }
    Table { columns, rows }
}

fn row(name: &str, from: &str, quantity: &str, values: Vec<Entry>) -> Vec<Entry> {
    [name, from, quantity].into_iter().map(Entry::word).chain(values).collect()
}

/// A quantity in the unit of its row.
fn shown(metric: Metric, value: f64) -> String {
    number::text(if metric == Metric::LossRatio { value * 100.0 } else { value })
}

fn of_study(printed: &[&Published], sizes: &[f64]) -> Vec<Vec<Entry>> {
    let mut subjects: Vec<&str> = printed.iter().map(|it| it.subject.as_str()).collect();
    subjects.dedup();
    let rows_of = |subject: &str| {
        QUANTITIES.map(|(name, heading, metric)| {
            let value = |size: &f64| {
                let is_it = |it: &&&Published| {
                    it.subject == subject && it.metric == name && it.point.value == *size
                };
                let found = printed.iter().find(is_it);
                found.map_or_else(Entry::default, |it| Entry::number(shown(metric, it.value)))
            };
            row(subject, "the study", heading, sizes.iter().map(value).collect())
        })
    };
    subjects.into_iter().flat_map(rows_of).collect()
}

/// The rows of a target at the highest rate; none if it was not measured.
fn measured(
    record: &Record,
    experiment: &Experiment,
    (target, name): (&str, &str),
    sizes: &[f64],
) -> Vec<Vec<Entry>> {
    let all = |metric| record.cells_of(&experiment.id, target, metric);
    let rate = |cell: &Cell| cell.point.within.as_ref().map_or(0.0, |within| within.value);
    let Some(full) = all(Metric::RatePpsOffered).map(rate).reduce(f64::max) else {
        return Vec::new();
    };
    let at =
        |metric, size: f64| all(metric).find(|cell| cell.point.value == size && rate(cell) == full);
    let mut rows = QUANTITIES.map(|(_, heading, metric)| {
        let value = |&size: &f64| at(metric, size).map_or_else(Entry::default, entry);
        row(name, "measured", heading, sizes.iter().map(value).collect())
    });
    let offered = |&size: &f64| {
        let nominal_pps = full * 1e6 / (8.0 * (size + WIRE_OVERHEAD_BYTES));
        at(Metric::RatePpsOffered, size).map_or_else(Entry::default, |cell| {
            let share = number::text(100.0 * cell.value / nominal_pps);
            Entry { trials: cell.trials.clone(), ..Entry::number(share) }
        })
    };
    let heading = format!("offered load, % of {} Gbit/s", number::text(full / 1e3));
    let offered = row(name, "measured", &heading, sizes.iter().map(offered).collect());
    rows.iter_mut().map(std::mem::take).chain([offered]).collect()
}

fn entry(cell: &Cell) -> Entry {
    let mut entry = Entry::number(shown(cell.metric, cell.value));
    entry.range = cell.interval.map_or("n=1".into(), |it| {
        format!("{} to {}", shown(cell.metric, it.low), shown(cell.metric, it.high))
    });
    entry.warnings = cell.warnings.iter().map(Mark::from).collect();
    entry.trials.clone_from(&cell.trials);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Point;

    #[test]
    fn measured_rows_follow_the_printed_ones_at_line_rate() {
        let mut record = sample::record();
        record.targets.truncate(1);
        let experiment = &mut record.experiments[0];
        experiment.id = "oflops2018/table1".into();
        (experiment.study, experiment.item) = (Some("oflops2018".into()), Some("table1".into()));
        let like = record.cells[0].clone();
        let target = record.targets[0].name.clone();
        let cell = |metric: Metric, mbps: f64, value: f64| Cell {
            experiment: "oflops2018/table1".into(),
            target: target.clone(),
            point: Point::new("frame_bytes", 96.0).within("load_mbps", mbps),
            metric,
            value,
            ..like.clone()
        };
        record.cells = vec![
            cell(Metric::CpuLoadRatio, 100.0, 0.1),
            cell(Metric::CpuLoadRatio, 10_000.0, 1.5),
            cell(Metric::LossRatio, 100.0, 0.0),
            cell(Metric::LossRatio, 10_000.0, 0.25),
            cell(Metric::RatePpsOffered, 100.0, 107_758.0),
            cell(Metric::RatePpsOffered, 10_000.0, 1e10 / 8.0 / 116.0 / 2.0),
        ];
        let printed = |metric: &str, value: f64| Published {
            study: "oflops2018".into(),
            item: "table1".into(),
            subject: "OVS-kernel".into(),
            point: Point::new("frame_bytes", 128.0),
            metric: metric.into(),
            value,
            text: None,
        };
        record.published = vec![printed("processor_load_cores", 6.0), printed("loss_ratio", 0.24)];
        let sheets = sheets(&record, &record.experiments[0], "table1");
        let table = &sheets[0].tables[0];
        assert_eq!(table.columns[3..], ["96 bytes", "128 bytes"]);
        let rows: Vec<Vec<&str>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|entry| entry.text.as_str()).collect())
            .collect();
        assert_eq!(rows[0], ["OVS-kernel", "the study", "processor load, cores", "", "6"]);
        assert_eq!(rows[1][2..], ["packet loss, %", "", "24"]);
        assert_eq!(rows[2][1..], ["measured", "processor load, cores", "1.5", ""]);
        assert_eq!(rows[3][1..], ["measured", "packet loss, %", "25", ""]);
        assert_eq!(rows[4][1..], ["measured", "offered load, % of 10 Gbit/s", "50", ""]);
    }
}
