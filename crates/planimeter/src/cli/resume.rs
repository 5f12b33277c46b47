//! `planimeter run --resume`: goes on with a stored run, as its record says.
//!
//! Invariants: one process goes on with a run at a time; what the record names of others runs only if this user began the run on this
//! host, or trusts it; a run that is complete is not measured again.

use std::path::Path;
use std::process::ExitCode;

use results::store::lock::Locked;
use results::store::{self, StoreError};

use super::failure::Failure;
use super::out::{remark, say};
use super::report;
use super::run;
use super::trust;
use super::words::{self, quoted};
use crate::runner::{Destination, Plan};

/// The page that is written last of all.
const REPORT_FILE: &str = "report.html";

/// The plan of a stored run, and the run, which no other process can go on with from here on.
pub(super) fn opened(folder: &Path, is_trusted: bool) -> Result<(Plan, Destination), Failure> {
    // Checked before anything in the folder is touched.
    let line = allowed(folder, is_trusted)?;
    let destination = Destination::resume(folder).map_err(|error| refused(&error))?;
    Ok((plan_of(folder, &line)?, destination))
}

/// The plan of a stored run that is only looked at.
pub(super) fn planned(folder: &Path, is_trusted: bool) -> Result<Plan, Failure> {
    plan_of(folder, &allowed(folder, is_trusted)?)
}

/// The command line that a stored run keeps, if it may be repeated.
fn allowed(folder: &Path, is_trusted: bool) -> Result<String, Failure> {
    let record = store::read_results(folder).map_err(|error| report::unreadable(&error))?;
    trust::allow_line(folder, &record.command_line, is_trusted)?;
    Ok(record.command_line)
}

fn plan_of(folder: &Path, line: &str) -> Result<Plan, Failure> {
    match run::parsed(&words::split(line)) {
        Some(arguments) => run::new_plan(&arguments),
        None => Err(Failure::usage(format!(
            "{}: its command line cannot be repeated by this version",
            folder.display()
        ))),
    }
}

/// What comes of resuming a run that is complete, or of asking what would come of it; none if it is not complete.
pub(super) fn complete(folder: &Path, is_dry: bool) -> Option<Result<ExitCode, Failure>> {
    let record = store::read_results(folder).map_err(|error| report::unreadable(&error));
    let is_complete = |record: &results::record::Record| !record.partial;
    if !record.as_ref().is_ok_and(is_complete) {
        return record.err().map(Err);
    }
    let written = if is_dry { Ok(false) } else { reported(folder) };
    Some(written.and_then(|is_new| match is_new {
        true => {
            remark!("{} is complete; its report was missing and is written", folder.display());
            say!("\n{}", folder.join(REPORT_FILE).display());
            Ok(ExitCode::SUCCESS)
        }
        false => Err(Failure::usage(format!(
            "{} is complete: there is nothing to resume (hint: `{}` writes its report again)",
            folder.display(),
            report_command(folder)
        ))),
    }))
}

/// Writes the report of a complete run where it is missing or older than the record; whether it did.
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

/// The command that writes the report of a run again.
pub(super) fn report_command(folder: &Path) -> String {
    format!("planimeter report {}", quoted(&folder.to_string_lossy()))
}

/// The command that goes on with a run.
pub(super) fn resume_command(folder: &Path) -> String {
    format!("planimeter run --resume {}", quoted(&folder.to_string_lossy()))
}

fn refused(error: &StoreError) -> Failure {
    match error {
        StoreError::Locked { .. } => Failure::usage(error.to_string()),
        _ => report::unreadable(error),
    }
}
