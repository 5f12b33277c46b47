//! `planimeter report`: rebuilds a report from stored runs only, optionally anonymized.
//!
//! Invariant: an anonymized report never replaces a run's own report, and is made from anonymized
//! records only.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use record::Record;
use report::Run;
use store::database::address::Address;
use store::lock::Locked;
use store::{Output, RECORD_FILE, StoreError};

use super::anonymize::Masking;
use super::failure::Failure;
use super::output::{remark, say};
use super::team_store::{self, DownloadedRun};
use studies::papers;

/// Arguments of `planimeter report`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folders of runs or campaigns for one report; with --store also ids or names of stored runs
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Output folder; required for several runs [default: the folder of the run]
    #[arg(long = "output", value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Anonymize hosts, interfaces, addresses, datapath ids, serial numbers and users consistently
    #[arg(long = "anonymize", requires = "out")]
    pub(crate) mask: bool,
    /// Anonymize this word too, such as the name of a customer
    #[arg(long = "redact", value_name = "WORD", requires = "mask")]
    pub(crate) hide: Vec<String>,
    /// Team store: postgres://USER@HOST:PORT/DATABASE [env: PLANIMETER_STORE]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter report runs/RUN
  planimeter report runs/FIRST runs/SECOND --output report
  planimeter report runs/RUN --output public --anonymize --redact example.net";

/// Runs of one report.
struct ReportRuns {
    /// The campaign's name, if the runs are its steps.
    campaign: Option<String>,
    /// Each run with its folder.
    runs: Vec<(PathBuf, Run)>,
}

/// Rebuilds the report and prints its path.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let store = team_store::asked(arguments.store.as_ref())?;
    let out: &Path = match (&arguments.out, arguments.runs.as_slice()) {
        (Some(out), _) => out,
        (None, [only]) if only.exists() || store.is_none() => only,
        (None, [_]) => {
            return Err(Failure::usage(
                "a run of a team store has no local folder (hint: add --output DIR)",
            ));
        }
        (None, _) => {
            return Err(Failure::usage(
                "a report of several runs needs an output folder (hint: add --output DIR)",
            ));
        }
    };
    let _lock = locked(out)?;
    let mut gathered = ReportRuns::of(&arguments.runs, store.as_ref())?;
    if gathered.runs.is_empty() {
        return Err(Failure::usage(format!(
            "no run of {} has started",
            arguments.runs[0].display()
        )));
    }
    let mut beside = Vec::new();
    if arguments.mask {
        let own = arguments.runs.iter().chain(gathered.runs.iter().map(|(folder, _)| folder));
        apart(out, own)?;
        beside = gathered.mask(&arguments.hide)?;
    }
    let runs: Vec<Run> = gathered.runs.into_iter().map(|(_, run)| run).collect();
    let mut outputs = report::build_of(gathered.campaign.as_deref(), &runs);
    outputs.extend(beside);
    say!("{}", kept(&outputs, out)?.display());
    Ok(ExitCode::SUCCESS)
}

impl ReportRuns {
    /// Reads the runs in these folders. A campaign's runs are named by its steps, others by their
    /// folders.
    fn of(folders: &[PathBuf], elsewhere: Option<&Address>) -> Result<ReportRuns, Failure> {
        let mut gathered = ReportRuns { campaign: None, runs: Vec::new() };
        for folder in folders {
            if let Some(address) = elsewhere.filter(|_| !folder.exists()) {
                let fetched = DownloadedRun::of(address, &folder.display().to_string())?;
                let name = PathBuf::from(fetched.name());
                gathered.runs.push((name.clone(), read(fetched.folder())?.in_folder(&name)));
                continue;
            }
            let facts = match store::campaign::is_campaign(folder) {
                true => Some(store::campaign::read(folder).map_err(|error| unreadable(&error))?.0),
                false => None,
            };
            for at in store::campaign::runs(folder).map_err(|error| unreadable(&error))? {
                let run = read(&at)?;
                let step =
                    facts.iter().flat_map(|it| &it.steps).find(|it| at.ends_with(&it.folder));
                let run = match step {
                    Some(step) => run.as_step(&step.name),
                    None => run.in_folder(&at),
                };
                gathered.runs.push((at, run));
            }
            if let ([_], Some(facts)) = (folders, facts) {
                gathered.campaign = Some(facts.name);
            }
        }
        Ok(gathered)
    }

    /// Anonymizes the runs; returns the records, which then differ from those in the runs' folders.
    fn mask(&mut self, hide: &[String]) -> Result<Vec<Output>, Failure> {
        let mut masking = Masking::new(hide);
        self.runs.iter().for_each(|(_, run)| masking.learn(&run.record));
        self.campaign = self.campaign.as_ref().map(|name| masking.text(name));
        let mut records = Vec::new();
        let all = self.runs.len();
        for (number, (folder, run)) in self.runs.iter_mut().enumerate() {
            run.record = masking
                .record(&run.record)
                .map_err(|why| Failure::usage(format!("{}: {why}", folder.display())))?;
            run.name = run.name.as_ref().map(|name| masking.text(name));
            let name = match all {
                1 => RECORD_FILE.into(),
                _ => format!("run{}-{RECORD_FILE}", number + 1),
            };
            records.push(Output::text(name, store::record_text(&run.record)));
        }
        Ok(records)
    }
}

/// Locks the folder of the report if it is a run's, so that the run's own writer is not disturbed.
fn locked(out: &Path) -> Result<Option<Locked>, Failure> {
    Locked::take(out).map_err(|error| {
        let more = match &error {
            StoreError::Locked { .. } => {
                " (hint: write the report of partial results to another folder with --output DIR)"
            }
            _ => "",
        };
        Failure::usage(format!("{error}{more}"))
    })
}

/// Verifies that an anonymized report is outside the folders of its runs.
fn apart<'a>(out: &Path, mut own: impl Iterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    match own.any(|folder| real(out).starts_with(real(folder))) {
        false => Ok(()),
        true => Err(Failure::usage(format!(
            "--output {} is inside the folder of the run, which is not anonymized (hint: use a folder \
             outside it)",
            out.display()
        ))),
    }
}

/// Writes the report on these runs into a folder, which is created if necessary; returns the page's
/// path.
pub fn written(runs: &[Run], out: &Path) -> Result<PathBuf, Failure> {
    kept(&report::build(runs), out)
}

fn kept(outputs: &[Output], out: &Path) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(out)
        .map_err(|error| Failure::usage(format!("cannot create {}: {error}", out.display())))?;
    store::write_outputs(out, outputs).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(out.join("report.html"))
}

/// Reads a run, also an incomplete one.
pub fn read(run: &Path) -> Result<Run, Failure> {
    results_of(run).map(|record| Run::of(record, run))
}

/// Reads the record of a run, also an incomplete one, with its derived results; damaged parts are
/// reported.
pub fn results_of(folder: &Path) -> Result<Record, Failure> {
    let stored = store::read_run(folder).map_err(|error| unreadable(&error))?;
    stored.damage.iter().for_each(|line| remark!("warning: {line}"));
    let mut record = stored.record;
    if stored.is_behind {
        let claims = papers::claims().map_err(Failure::usage)?;
        report::finish(&mut record, &claims);
    }
    Ok(record)
}

/// Returns the error for a folder that holds no run.
pub fn unreadable(error: &store::StoreError) -> Failure {
    let example = "runs/2026-01-31-latency-1";
    Failure::usage(format!(
        "{error} (hint: use the folder of a run with record.json, such as {example})"
    ))
}
