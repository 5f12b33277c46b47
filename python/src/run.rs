//! Stored runs: their record, tables, figures and histograms.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use planimeter::cli::report as command;
use pyo3::prelude::*;
use report::Run;
use report::figure::{self, Figure};
use report::summary;
use store::columns;

use crate::failure::{raised, usage};
use crate::table::Table;

/// A stored run.
#[pyclass(frozen, module = "planimeter._native")]
pub struct Stored {
    folder: PathBuf,
    run: Run,
}

#[pymethods]
impl Stored {
    /// Reads the run in this folder, complete or not.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf) -> PyResult<Stored> {
        let run = py.detach(|| command::read(&folder)).map_err(|failure| raised(&failure))?;
        Ok(Stored { folder, run })
    }

    /// The record as JSON, as in `record.json`.
    fn record(&self) -> String {
        store::record_text(&self.run.record)
    }

    /// All trials, one per row.
    fn trials(&self) -> Table {
        Table(columns::trial_rows(&self.run.record))
    }

    /// All values with their intervals, one per row.
    fn values(&self) -> Table {
        Table(columns::cell_rows(&self.run.record))
    }

    /// The report as Markdown.
    fn summary(&self) -> String {
        summary::markdown(std::slice::from_ref(&self.run.record))
    }

    /// The warnings: scope and sentence of each.
    fn warnings(&self) -> Vec<(String, String)> {
        let notices = self.run.record.warnings.iter();
        notices.map(|it| (it.about.clone(), it.warning.sentence())).collect()
    }

    /// The figures: name and title of each.
    fn figures(&self) -> Vec<(String, String)> {
        self.drawn().into_iter().map(|figure| (figure.id, figure.title)).collect()
    }

    /// A figure: title, description, SVG and its data as JSON. None if no figure has this name.
    fn figure(&self, name: &str) -> Option<(String, String, String, String)> {
        let figure = self.drawn().into_iter().find(|figure| figure.id == name)?;
        let (picture, data) = (figure::svg(&figure), crate::figure::json(&figure));
        Some((figure.title, figure.description, picture, data))
    }

    /// The latency histogram of a trial; None if it has none.
    fn histogram(&self, trial: u64) -> PyResult<Option<Histogram>> {
        let trial = self.run.record.trials.iter().find(|it| it.id == trial);
        let file = trial.and_then(|it| it.latency.as_ref()?.file.as_deref());
        let read = |file: &str| {
            let found = store::read_histogram(&self.folder, file);
            found.map(Histogram).map_err(|error| usage(error.to_string()))
        };
        file.map(read).transpose()
    }

    /// Writes the report into a folder and returns the path of its page.
    fn report(&self, py: Python<'_>, out: PathBuf) -> PyResult<PathBuf> {
        let written = py.detach(|| command::written(std::slice::from_ref(&self.run), &out));
        written.map_err(|failure| raised(&failure))
    }
}

impl Stored {
    /// All figures of the report.
    fn drawn(&self) -> Vec<Figure> {
        let record = &self.run.record;
        let of = |experiment| {
            let views = figure::views(record, experiment);
            let drawn: Vec<Figure> = views
                .iter()
                .filter_map(|view| figure::figure(record, experiment, view))
                .chain(figure::of_series(record, experiment))
                .chain(figure::of_spectra(record, experiment, &self.run.spectra))
                .collect();
            drawn
        };
        record.experiments.iter().flat_map(of).collect()
    }
}

/// A latency histogram.
#[pyclass(frozen, module = "planimeter._native")]
pub struct Histogram(stats::histogram::Histogram);

#[pymethods]
impl Histogram {
    /// Number of samples.
    fn __len__(&self) -> usize {
        usize::try_from(self.0.count()).unwrap_or(usize::MAX)
    }

    /// The smallest value in nanoseconds.
    #[getter]
    fn ns_min(&self) -> Option<u64> {
        self.0.ns_min()
    }

    /// The largest value in nanoseconds.
    #[getter]
    fn ns_max(&self) -> Option<u64> {
        self.0.ns_max()
    }

    /// The exact mean in nanoseconds.
    #[getter]
    fn ns_mean(&self) -> Option<f64> {
        self.0.ns_mean()
    }

    /// The percentile in nanoseconds; None if too few samples are above it.
    fn ns_at(&self, percent: f64) -> PyResult<Option<u64>> {
        if !(0.0..=100.0).contains(&percent) {
            return Err(usage(format!("invalid percentile {percent} (hint: use 0 to 100)")));
        }
        Ok(self.0.ns_at_quantile(percent / 100.0))
    }

    /// Its buckets: the upper limit and the count of each.
    fn buckets(&self) -> Table {
        let unit = |name: &str, unit: &str| {
            let unit = HashMap::from([(columns::UNIT.to_string(), unit.to_string())]);
            Field::new(name, DataType::UInt64, true).with_metadata(unit)
        };
        let schema = Schema::new(vec![unit("ns", "ns"), unit("frames", "frames")]);
        let (times, counts): (Vec<u64>, Vec<u64>) = self.0.buckets().unzip();
        let of = |values: Vec<u64>| Arc::new(UInt64Array::from(values)) as _;
        let rows = RecordBatch::try_new(Arc::new(schema), vec![of(times), of(counts)]);
        Table(rows.expect("both columns have a value for each bucket"))
    }
}
