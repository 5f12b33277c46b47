//! `planimeter run FILE.tar.gz`: repeats the run in a bundle.
//!
//! A bundle may come from another user. Invariants:
//! - Commands, scripts, other programs and interfaces of this host are used only with `--allow-commands`.
//! - A bundle's plan names no file outside the bundle.
//! - Its runs get a folder of their own, together with the bundle's files, so that file names in
//!   the plan stay valid.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{ENDING, FILES_FOLDER, refused, unpack};
use crate::cli::failure::Failure;
use crate::cli::output::remark;
use crate::cli::plan;
use crate::cli::run::Arguments;
use crate::cli::trust::ExternalCode;

/// Runs the plan of a bundle.
pub fn run(arguments: &Arguments, file: &str) -> Result<ExitCode, Failure> {
    plan::refuse(arguments, file)?;
    let arguments = &plan::rooted(arguments);
    // Resolved before the working directory changes.
    let out = arguments.out_folder();
    let out = std::path::absolute(&out).map_err(|error| refused(&out, error))?;
    let day = runner::environment::wall_clock();
    let day = day.split('T').next().unwrap_or_default();
    let path = Path::new(file);
    let name = path.file_name().map_or_else(|| file.into(), |it| it.to_string_lossy());
    let name = name.trim_end_matches(ENDING).trim_end_matches(".bundle").to_string();
    // Errors in the file are reported before a folder is created.
    fs::metadata(path).map_err(|error| refused(path, error))?;
    let made_out = !out.exists();
    let folder = store::new_folder(&out, day, &format!("again-{name}")).map_err(|error| {
        Failure::usage(format!("{error} (hint: choose another folder with --output DIR)"))
    })?;
    // Until the campaign begins, the folder contains only unpacked files.
    let undone = CleanupOnDrop { folder: folder.clone(), out: made_out.then_some(out) };
    let campaign = begun(arguments, path, &folder, &name);
    match campaign {
        Ok(Some(campaign)) => {
            undone.keep();
            campaign.carry_out(arguments)
        }
        Ok(None) => Ok(ExitCode::SUCCESS),
        Err(failure) => Err(failure),
    }
}

/// Returns the campaign of a bundle that was unpacked into this folder; `None` for a dry run.
fn begun(
    arguments: &Arguments,
    file: &Path,
    folder: &Path,
    name: &str,
) -> Result<Option<plan::campaign::Campaign>, Failure> {
    let files = folder.join(FILES_FOLDER);
    fs::create_dir(&files).map_err(|error| refused(&files, error))?;
    let opened =
        unpack::unpack(file, FILES_FOLDER, &files).map_err(|error| refused(file, error))?;
    let foreign = ExternalCode::of_plan(&opened.plan, &files);
    if let Some(path) = foreign.missing.first() {
        return Err(refused(
            file,
            format!(
                "cannot run the bundle: its plan names {path:?}, which the bundle does not contain"
            ),
        ));
    }
    if foreign.needs_trust() && !arguments.trust {
        return Err(refused(
            file,
            format!(
                "the bundle contains {foreign} (hint: add --allow-commands if you trust its author)"
            ),
        ));
    }
    for changed in &opened.facts.changed {
        remark!("warning: {changed} in this bundle changed after its run started");
    }
    plan::enter(folder)?;
    plan::of_bundle(arguments, opened.plan, name, folder.to_path_buf())
}

/// A folder that is removed on drop unless it is kept.
struct CleanupOnDrop {
    folder: PathBuf,
    /// The folder of runs, if it was created too.
    out: Option<PathBuf>,
}

impl CleanupOnDrop {
    fn keep(mut self) {
        self.folder = PathBuf::new();
    }
}

impl Drop for CleanupOnDrop {
    fn drop(&mut self) {
        if self.folder.as_os_str().is_empty() {
            return;
        }
        let _ = fs::remove_dir_all(&self.folder);
        if let Some(out) = &self.out {
            // Fails if the folder contains anything else.
            let _ = fs::remove_dir(out);
        }
    }
}
