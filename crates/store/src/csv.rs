//! Values and trials as CSV, one per line, in stored units with all digits.
//!
//! Source: RFC 4180. Invariants: the [columns](crate::columns) are those of the Parquet files; a
//! value that was not measured is an empty field.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use crate::columns;
use record::{Experiment, Record};

/// All values of an experiment.
pub fn cells(record: &Record, experiment: &Experiment) -> String {
    lines(&columns::cell_rows_of(record, |cell| cell.experiment == experiment.id))
}

/// All trials: their load and frame accounting.
pub fn trials(record: &Record) -> String {
    lines(&columns::trial_rows(record))
}

/// The names of the columns, then the rows.
fn lines(rows: &RecordBatch) -> String {
    let schema = rows.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let mut out = names.join(",") + "\n";
    for row in 0..rows.num_rows() {
        let fields: Vec<String> = rows.columns().iter().map(|column| field(column, row)).collect();
        out += &fields.join(",");
        out.push('\n');
    }
    out
}

fn field(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    match column.data_type() {
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        _ => quoted(column.as_string::<i32>().value(row)),
    }
}

/// Quotes a text if necessary. Prefixes a text that a spreadsheet would run as a formula.
fn quoted(text: &str) -> String {
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
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=1+1"), "'=1+1");
    }
}
