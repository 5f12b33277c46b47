//! `planimeter run --resume`: resumes a stored run from its record.
//!
//! Invariants:
//! - Only one process can resume a run.
//! - External code that the record names runs only if this user began the run on this host, or
//!   trusts it.
//! - A complete run is not measured again.

use std::path::Path;
use std::process::ExitCode;

use store::StoreError;
use store::lock::Locked;

use super::failure::Failure;
use super::output::{remark, say};
use super::report;
use super::run;
use super::shell_words::{self, quoted};
use super::trust;
use runner::{Destination, Plan};

/// The page, which is the last file to be written.
const REPORT_FILE: &str = "report.html";

/// Returns the plan of a stored run, and the run, locked against other processes.
pub(super) fn opened(folder: &Path, is_trusted: bool) -> Result<(Plan, Destination), Failure> {
    // Checked before anything in the folder changes.
    let line = allowed(folder, is_trusted)?;
    let destination = Destination::resume(folder).map_err(|error| refused(&error))?;
    Ok((plan_of(folder, &line)?, destination))
}

/// Returns the plan of a stored run for inspection only.
pub(super) fn planned(folder: &Path, is_trusted: bool) -> Result<Plan, Failure> {
    plan_of(folder, &allowed(folder, is_trusted)?)
}

/// Returns the command line of a stored run, if it may be repeated.
fn allowed(folder: &Path, is_trusted: bool) -> Result<String, Failure> {
    let record = store::read_results(folder).map_err(|error| report::unreadable(&error))?;
    trust::allow_line(folder, &record.command_line, is_trusted)?;
    Ok(record.command_line)
}

fn plan_of(folder: &Path, line: &str) -> Result<Plan, Failure> {
    match run::parsed(&shell_words::split(line)) {
        Some(arguments) => run::new_plan(&arguments),
        None => Err(Failure::usage(format!(
            "{}: this version cannot parse the command line of the run",
            folder.display()
        ))),
    }
}

/// Returns whether all trials of a stored run were measured.
pub(super) fn is_complete(folder: &Path) -> Result<bool, Failure> {
    let record = store::read_results(folder).map_err(|error| report::unreadable(&error))?;
    Ok(!record.partial)
}

/// Writes the missing report of a complete run; it is an error if there is nothing to do.
pub(super) fn complete(folder: &Path, is_dry: bool) -> Result<ExitCode, Failure> {
    if !is_dry && reported(folder)? {
        remark!("{} is complete; wrote its missing report", folder.display());
        say!("\n{}", folder.join(REPORT_FILE).display());
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure::usage(format!(
        "{} is complete: nothing to resume (hint: run '{}' to rebuild its report)",
        folder.display(),
        report_command(folder)
    )))
}

/// Writes the report of a complete run if it is missing or older than the record; returns whether
/// it did.
pub(super) fn reported(folder: &Path) -> Result<bool, Failure> {
    let changed = |name: &str| folder.join(name).metadata().and_then(|facts| facts.modified());
    let is_missing = match (changed(store::RECORD_FILE), changed(REPORT_FILE)) {
        (Ok(record), Ok(report)) => report < record,
        _ => true,
    };
    if is_missing {
        let _lock = Locked::take(folder).map_err(|error| refused(&error))?;
        report::written(&[report::read(folder)?], folder)?;
    }
    Ok(is_missing)
}

/// Returns the command that writes the report of a run again.
pub(super) fn report_command(folder: &Path) -> String {
    format!("planimeter report {}", quoted(&folder.to_string_lossy()))
}

/// Returns the command that resumes a run.
pub(super) fn resume_command(folder: &Path) -> String {
    format!("planimeter run --resume {}", quoted(&folder.to_string_lossy()))
}

fn refused(error: &StoreError) -> Failure {
    match error {
        StoreError::Locked { .. } => Failure::usage(error.to_string()),
        _ => report::unreadable(error),
    }
}
