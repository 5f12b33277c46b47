//! Values and trials as Arrow tables and Parquet files. Each field of the schema states its unit.
//!
//! Source: the Parquet format with the key `ARROW:schema`, as pandas, Polars, DuckDB and R read it.
//! The [CSV files](crate::csv) have the same columns. Invariants:
//!
//! - Equal records give equal bytes.
//! - A value that was not measured is null, never zero.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;

use record::links;
use record::{BoundCause, BoundSide, Cell, IntervalMethod, Point, Record, Trial};

/// Key of a field's unit in its metadata.
pub const UNIT: &str = "unit";

/// [`cell_rows`] as a Parquet file.
pub fn cells(record: &Record) -> Vec<u8> {
    file(&cell_rows(record))
}

/// [`trial_rows`] as a Parquet file.
pub fn trials(record: &Record) -> Vec<u8> {
    file(&trial_rows(record))
}

/// All values of a run, one per row. The column `unit` has the unit of each value.
pub fn cell_rows(record: &Record) -> RecordBatch {
    cell_rows_of(record, |_| true)
}

/// The selected values of a run, one per row.
pub fn cell_rows_of(record: &Record, is_wanted: impl Fn(&Cell) -> bool) -> RecordBatch {
    let rows = || record.cells.iter().filter(|cell| is_wanted(cell));
    let mut table = Columns::default();
    let of_row = "as in the column unit";
    table.words("experiment", rows().map(|it| Some(it.experiment.clone())));
    table.words("target", rows().map(|it| Some(it.target.clone())));
    table.words("link", rows().map(|it| Some(links::of(record, &it.target).to_string())));
    table.points(|| rows().map(|it| &it.point));
    table.words("metric", rows().map(|it| Some(it.metric.name().to_string())));
    table.words("unit", rows().map(|it| Some(it.unit.clone())));
    table.numbers("value", of_row, rows().map(|it| Some(it.value)));
    table.counts("n", "repeats", rows().map(|it| Some(u64::from(it.n))));
    table.numbers("interval_low", of_row, rows().map(|it| it.interval.map(|it| it.low)));
    table.numbers("interval_high", of_row, rows().map(|it| it.interval.map(|it| it.high)));
    table.numbers(
        "interval_level_percent",
        "percent",
        rows().map(|it| it.interval.map(|it| it.level_percent)),
    );
    let method = |it: &Cell| it.interval.map(|it| method_word(it.method).to_string());
    table.words("interval_method", rows().map(method));
    table.numbers("interval_99_low", of_row, rows().map(|it| it.interval_99.map(|it| it.low)));
    table.numbers("interval_99_high", of_row, rows().map(|it| it.interval_99.map(|it| it.high)));
    table.numbers("resolution", of_row, rows().map(|it| it.resolution));
    let bound = |it: &Cell| it.bound.map(|bound| side_word(bound.side).to_string());
    table.words("bound", rows().map(bound));
    let cause = |it: &Cell| it.bound.map(|bound| cause_word(bound.cause).to_string());
    table.words("bound_cause", rows().map(cause));
    table.counts("disturbed_repeats", "repeats", rows().map(|it| Some(disturbed_repeats(it))));
    let disturbances = |it: &Cell| {
        let causes = it.disturbances.iter().map(|found| found.cause.to_string());
        joined(causes.collect())
    };
    table.words("disturbances", rows().map(disturbances));
    let exclusion = |it: &Cell| it.exclusion.map(|exclusion| exclusion.to_string());
    table.words("exclusion", rows().map(exclusion));
    let warnings =
        |it: &Cell| joined(it.warnings.iter().map(|warning| warning.sentence()).collect());
    table.words("warnings", rows().map(warnings));
    table.rows()
}

fn joined(sentences: Vec<String>) -> Option<String> {
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Number of disturbed repeats of a value.
fn disturbed_repeats(cell: &Cell) -> u64 {
    let repeats = cell.disturbances.iter().flat_map(|found| &found.repeats);
    repeats.collect::<BTreeSet<_>>().len() as u64
}

fn side_word(side: BoundSide) -> &'static str {
    match side {
        BoundSide::Lower => "lower",
        BoundSide::Upper => "upper",
    }
}

fn cause_word(cause: BoundCause) -> &'static str {
    match cause {
        BoundCause::SearchLimit => "search_limit",
        BoundCause::TesterLimit => "tester_limit",
        BoundCause::LinkLimit => "link_limit",
        BoundCause::Resolution => "resolution",
    }
}

fn method_word(method: IntervalMethod) -> &'static str {
    match method {
        IntervalMethod::StudentT => "student_t",
        IntervalMethod::StudentTLog => "student_t_log",
        IntervalMethod::OrderStatistics => "order_statistics",
        IntervalMethod::Bootstrap => "bootstrap",
        IntervalMethod::Ranks => "ranks",
    }
}

/// All trials of a run: their load and frame accounting.
pub fn trial_rows(record: &Record) -> RecordBatch {
    let rows = || record.trials.iter();
    let mut table = Columns::default();
    table.counts("id", "number", rows().map(|it| Some(it.id)));
    table.words("experiment", rows().map(|it| Some(it.experiment.clone())));
    table.words("target", rows().map(|it| Some(it.target.clone())));
    table.counts("repeat", "number", rows().map(|it| Some(u64::from(it.repeat))));
    table.points(|| rows().map(|it| &it.point));
    table.counts("frame_bytes", "bytes", rows().map(|it| it.frame_bytes.map(u64::from)));
    table.numbers("rate_pps_intended", "frames/s", rows().map(|it| Some(it.rate_pps_intended)));
    table.numbers("rate_pps_offered", "frames/s", rows().map(Trial::rate_pps_offered));
    table.numbers("rate_pps_forwarded", "frames/s", rows().map(Trial::rate_pps_forwarded));
    table.counts("frames_offered", "frames", rows().map(|it| Some(it.frames_offered)));
    table.counts("frames_forwarded", "frames", rows().map(|it| Some(it.frames_forwarded)));
    table.counts("duration_ns_effective", "ns", rows().map(|it| Some(it.duration_ns_effective)));
    for (name, of) in CLASSES {
        table.counts(name, "frames", rows().map(|it| Some(of(it))));
    }
    let unexplained = rows().map(|it| it.frames_unexplained).collect::<Vec<i64>>();
    table.add("unexplained", "frames", DataType::Int64, Arc::new(Int64Array::from(unexplained)));
    let latency = |it: &Trial| it.latency.clone();
    table.numbers("latency_ns_mean", "ns", rows().map(|it| latency(it).map(|it| it.ns_mean)));
    table.counts("latency_ns_p50", "ns", rows().map(|it| latency(it).and_then(|it| it.ns_p50)));
    table.counts("latency_ns_p99", "ns", rows().map(|it| latency(it).and_then(|it| it.ns_p99)));
    table.counts("seed", "number", rows().map(|it| Some(it.seed)));
    table.words("goal", rows().map(|it| it.goal.clone()));
    table.rows()
}

/// A column that counts frames of a trial: its name and its value.
type CountColumn = (&'static str, fn(&Trial) -> u64);

/// Columns of a trial's frames by class.
const CLASSES: [CountColumn; 8] = [
    ("correct", |it| it.classes.correct),
    ("reordered", |it| it.classes.reordered),
    ("misrouted", |it| it.classes.misrouted),
    ("corrupt", |it| it.classes.corrupt),
    ("flooded", |it| it.classes.flooded),
    ("duplicate", |it| it.classes.duplicate),
    ("foreign", |it| it.classes.foreign),
    ("dropped", |it| it.drops.iter().map(|drop| drop.frames).sum()),
];

/// A table under construction.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    /// Adds the four columns for the point of each row.
    fn points<'a, I: Iterator<Item = &'a Point>>(&mut self, points: impl Fn() -> I) {
        let curve = |it: &Point| it.within.clone();
        self.words("x_name", points().map(|it| Some(it.name.clone())));
        self.numbers("x", "as in the column x_name", points().map(|it| Some(it.value)));
        self.words("curve_name", points().map(|it| curve(it).map(|it| it.name)));
        let of_curve = points().map(|it| curve(it).map(|it| it.value));
        self.numbers("curve", "as in the column curve_name", of_curve);
    }

    fn words(&mut self, name: &str, values: impl Iterator<Item = Option<String>>) {
        self.add(name, "", DataType::Utf8, Arc::new(values.collect::<StringArray>()));
    }

    fn numbers(&mut self, name: &str, unit: &str, values: impl Iterator<Item = Option<f64>>) {
        self.add(name, unit, DataType::Float64, Arc::new(values.collect::<Float64Array>()));
    }

    fn counts(&mut self, name: &str, unit: &str, values: impl Iterator<Item = Option<u64>>) {
        self.add(name, unit, DataType::UInt64, Arc::new(values.collect::<UInt64Array>()));
    }

    fn add(&mut self, name: &str, unit: &str, kind: DataType, values: ArrayRef) {
        let field = Field::new(name, kind, true);
        let field = match unit {
            "" => field,
            unit => field.with_metadata(HashMap::from([(UNIT.into(), unit.into())])),
        };
        self.fields.push(field);
        self.arrays.push(values);
    }

    fn rows(self) -> RecordBatch {
        let rows = RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays);
        rows.expect("every column has a value for each row")
    }
}

fn file(rows: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, rows.schema(), None).expect("these kinds can be written");
    writer.write(rows).expect("memory takes all bytes");
    writer.close().expect("memory takes all bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, UInt64Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;
    use record::{Bound, Disturbance, DisturbanceCause, Exclusion};

    /// Returns the complete file as one table, read from a file like other readers do.
    fn read(bytes: &[u8], name: &str) -> RecordBatch {
        let path = std::env::temp_dir().join(format!("planimeter-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let mut reader = reader.with_batch_size(1_000_000).build().unwrap();
        reader.next().unwrap().unwrap()
    }

    #[test]
    fn written_columns_have_every_value_and_unit() {
        let record = sample::record();
        let found = read(&cells(&record), "cells.parquet");
        let values = found.column_by_name("value").unwrap().as_primitive::<Float64Type>();
        let wanted: Vec<f64> = record.cells.iter().map(|cell| cell.value).collect();
        assert_eq!(values.values(), &wanted[..]);
        let low = found.column_by_name("interval_low").unwrap();
        let without = record.cells.iter().filter(|cell| cell.interval.is_none()).count();
        assert_eq!(low.null_count(), without, "unknown values are null");

        let found = read(&trials(&record), "trials.parquet");
        assert_eq!(found.num_rows(), record.trials.len());
        let schema = found.schema();
        let unit = |name: &str| schema.field_with_name(name).unwrap().metadata().get(UNIT).cloned();
        assert_eq!(unit("rate_pps_forwarded").as_deref(), Some("frames/s"));
        assert_eq!(unit("latency_ns_p99").as_deref(), Some("ns"));
        assert_eq!(unit("target"), None);
        assert_eq!(trials(&record), trials(&record), "equal records give equal bytes");
    }

    #[test]
    fn bounds_and_disturbances_have_columns() {
        let mut record = sample::record();
        let cell = &mut record.cells[0];
        cell.bound = Some(Bound { side: BoundSide::Lower, cause: BoundCause::TesterLimit });
        let disturbance = |cause, repeats: &[u32]| Disturbance { cause, repeats: repeats.to_vec() };
        cell.disturbances = vec![
            disturbance(DisturbanceCause::Descheduled, &[1, 3]),
            disturbance(DisturbanceCause::TesterLimited, &[3]),
        ];
        cell.exclusion = Some(Exclusion::RunDisturbed { trials: 7, of: 9 });
        let rows = cell_rows(&record);
        let word = |name: &str| rows.column_by_name(name).unwrap().as_string::<i32>().value(0);
        assert_eq!((word("bound"), word("bound_cause")), ("lower", "tester_limit"));
        assert!(word("disturbances").starts_with("the tester was descheduled; the tester offered"));
        assert_eq!(word("exclusion"), "the tester was descheduled in 7 of 9 trials");
        let repeats = rows.column_by_name("disturbed_repeats").unwrap();
        assert_eq!(repeats.as_primitive::<UInt64Type>().value(0), 2);
    }

    #[test]
    fn a_run_without_trials_is_an_empty_table() {
        let mut record = sample::record();
        record.trials.clear();
        record.cells.clear();
        for bytes in [trials(&record), cells(&record)] {
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        }
    }
}
