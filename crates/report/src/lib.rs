//! Everything that is shown of runs, as files in memory.
//!
//! Invariant: the files are a function of the records alone, so that deleting a report and making
//! it again gives the same bytes.

pub mod analysis;
pub mod claims;
pub mod finding;
pub mod figure;
pub mod table;
pub mod summary;
pub mod page;
mod sentence;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::analysis::counts;
use crate::figure::{figure, of_series, of_spectra, of_study, shows_latency, svg, views};
use record::{Claim, Experiment, Record, Trial};
use stats::spectrum::Spectra;
use store::Output;
use store::columns;
use store::csv;

/// A run as far as a report shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its record.
    pub record: Record,
    /// Latencies of its trials by percentile, where its histograms are at hand.
    pub spectra: Spectra,
    /// What it is called beside others: `step first`. By its number where it has no name.
    pub name: Option<String>,
}

impl From<Record> for Run {
    fn from(record: Record) -> Run {
        Run { record, spectra: Spectra::default(), name: None }
    }
}

impl Run {
    /// A run with those histograms of its folder that its figures show.
    pub fn of(record: Record, folder: &Path) -> Run {
        let about: Vec<&str> = record
            .experiments
            .iter()
            .filter(|experiment| shows_latency(&record, experiment))
            .map(Experiment::source)
            .collect();
        let shown = |trial: &&Trial| about.contains(&trial.experiment.as_str()) && counts(trial);
        let spectra = store::read_spectra(folder, record.trials.iter().filter(shown));
        Run { record, spectra, name: None }
    }

    /// The same as a step of a campaign.
    #[must_use]
    pub fn as_step(self, name: &str) -> Run {
        Run { name: Some(format!("step {name}")), ..self }
    }

    /// The same by the name of its folder.
    #[must_use]
    pub fn in_folder(self, folder: &Path) -> Run {
        let name = folder.file_name().map(|name| format!("run {}", name.to_string_lossy()));
        Run { name, ..self }
    }

    /// What it is called among so many; nothing where it is alone.
    pub(crate) fn called(&self, index: usize, runs: usize) -> Option<String> {
        let name = || self.name.clone().unwrap_or_else(|| format!("run {}", index + 1));
        (runs > 1).then(name)
    }
}

/// The files of a report over these runs: `report.html`, `summary.md`, `figures/*.svg`,
/// `*.csv` and `*.parquet`. Files of several runs begin with the run's number.
pub fn build(runs: &[Run]) -> Vec<Output> {
    build_of(None, runs)
}

/// The same of a campaign, by its name.
pub fn build_of(campaign: Option<&str>, runs: &[Run]) -> Vec<Output> {
    let named: Vec<(Option<String>, &Record)> = runs
        .iter()
        .enumerate()
        .map(|(index, run)| (run.called(index, runs.len()), &run.record))
        .collect();
    let mut outputs = vec![
        Output::text("report.html", page::html(campaign, runs)),
        Output::text("summary.md", summary::markdown_of(campaign, &named)),
    ];
    for (index, run) in runs.iter().enumerate() {
        outputs.extend(files_of(run, index, runs.len()));
    }
    outputs
}

/// Computes all derived values: cells, ratios, warnings, and the verdict on each claim about the
/// record's experiments.
pub fn finish(record: &mut Record, claims: &[Claim]) {
    analysis::derive_values(record);
    record.claims = claims::judge(record, claims);
    analysis::add_warnings(record);
}

fn files_of(run: &Run, index: usize, runs: usize) -> Vec<Output> {
    let record = &run.record;
    let name = |stem: &str| figure_id(stem, index, runs);
    let mut outputs = vec![
        Output::text(format!("{}.csv", name("trials")), csv::trials(record)),
        Output { path: format!("{}.parquet", name("trials")), bytes: columns::trials(record) },
        Output { path: format!("{}.parquet", name("values")), bytes: columns::cells(record) },
    ];
    for experiment in &record.experiments {
        let stem = experiment.id.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let path = format!("{}.csv", figure_id(&stem, index, runs));
        outputs.push(Output::text(path, csv::cells(record, experiment)));
        let spectrum = of_spectra(record, experiment, &run.spectra);
        let further = of_study(record, experiment).into_iter().chain(of_series(record, experiment));
        for mut figure in further.chain(spectrum) {
            figure.id = figure_id(&figure.id, index, runs);
            figure.of = run.called(index, runs);
            outputs.push(Output::text(format!("figures/{}.svg", figure.id), svg(&figure)));
        }
        for view in views(record, experiment) {
            if let Some(mut figure) = figure(record, experiment, &view) {
                figure.id = figure_id(&figure.id, index, runs);
                figure.of = run.called(index, runs);
                let path = format!("figures/{}.svg", figure.id);
                outputs.push(Output::text(path, svg(&figure)));
            }
        }
    }
    outputs
}

/// A name that stays apart from the other runs' in one report.
pub(crate) fn figure_id(id: &str, index: usize, runs: usize) -> String {
    if runs > 1 { format!("run{}-{id}", index + 1) } else { id.to_string() }
}
