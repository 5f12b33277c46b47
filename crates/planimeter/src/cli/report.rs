//! `planimeter report`: rebuilds a report from stored runs, and nothing but them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use results::report::Run;
use results::store;

use super::failure::Failure;
use super::out::say;
use crate::papers;

/// Arguments of `planimeter report`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folders of runs, or of campaigns, whose runs go into one report
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Where the report goes; the run's own folder if there is one run, otherwise this is needed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Rebuilds the report and prints where it lies.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let out: &Path = match (&arguments.out, arguments.runs.as_slice()) {
        (Some(out), _) => out,
        (None, [only]) => only,
        (None, _) => {
            return Err(Failure::usage("a report over several runs needs a folder: --out DIR"));
        }
    };
    let mut runs = Vec::new();
    for folder in &arguments.runs {
        for run in store::campaign::runs(folder).map_err(|error| unreadable(&error))? {
            runs.push(read(&run)?);
        }
    }
    if runs.is_empty() {
        return Err(Failure::usage(format!("no run of {} has begun", arguments.runs[0].display())));
    }
    say!("{}", written(&runs, out)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the report over these runs into a folder, which is made if it is not there; where the page lies.
pub fn written(runs: &[Run], out: &Path) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(out)
        .map_err(|error| Failure::usage(format!("cannot make {}: {error}", out.display())))?;
    store::write_outputs(out, &results::report::build(runs))
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(out.join("report.html"))
}

/// A run as far as it came.
pub fn read(run: &Path) -> Result<Run, Failure> {
    let (mut record, is_behind) = store::read_run(run).map_err(|error| unreadable(&error))?;
    if is_behind {
        let claims = papers::claims().map_err(Failure::usage)?;
        results::derive::finish(&mut record, &claims);
    }
    Ok(Run::of(record, run))
}

/// A folder that holds no run.
pub fn unreadable(error: &store::StoreError) -> Failure {
    let example = "runs/2026-01-31-latency-1";
    Failure::usage(format!("{error}; give a run's folder, which holds record.json: {example}"))
}
