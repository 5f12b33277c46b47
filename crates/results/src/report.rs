//! Everything that is shown of runs, as files in memory.
//!
//! Invariant: the files are a function of the records alone, so that deleting a report and making
//! it again gives the same bytes.

pub(crate) mod words;
#[cfg(test)]
mod tests;

use crate::csv;
use crate::figure::{figure, of_series, svg, views};
use crate::page;
use crate::record::Record;
use crate::store::Output;
use crate::summary;

/// The files of a report over these runs: `report.html`, `summary.md`, `figures/*.svg` and
/// `*.csv`. Files of several runs begin with the run's number.
pub fn build(records: &[Record]) -> Vec<Output> {
    let mut outputs = vec![
        Output { path: "report.html".into(), text: page::html(records) },
        Output { path: "summary.md".into(), text: summary::markdown(records) },
    ];
    for (index, record) in records.iter().enumerate() {
        outputs.extend(files_of(record, index, records.len()));
    }
    outputs
}

fn files_of(record: &Record, index: usize, runs: usize) -> Vec<Output> {
    let trials = figure_id("trials", index, runs);
    let mut outputs = vec![Output { path: format!("{trials}.csv"), text: csv::trials(record) }];
    for experiment in &record.experiments {
        let stem = experiment.id.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let path = format!("{}.csv", figure_id(&stem, index, runs));
        outputs.push(Output { path, text: csv::cells(record, experiment) });
        for mut figure in of_series(record, experiment) {
            figure.id = figure_id(&figure.id, index, runs);
            outputs.push(Output { path: format!("figures/{}.svg", figure.id), text: svg(&figure) });
        }
        for view in views(record, experiment) {
            if let Some(mut figure) = figure(record, experiment, &view) {
                figure.id = figure_id(&figure.id, index, runs);
                let path = format!("figures/{}.svg", figure.id);
                outputs.push(Output { path, text: svg(&figure) });
            }
        }
    }
    outputs
}

/// A name that stays apart from the other runs' in one report.
pub(crate) fn figure_id(id: &str, index: usize, runs: usize) -> String {
    if runs > 1 { format!("run{}-{id}", index + 1) } else { id.to_string() }
}
