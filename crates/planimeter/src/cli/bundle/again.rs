//! `planimeter run FILE.tar.gz`: what a bundle holds, run again here.
//!
//! A bundle comes from somebody else. Invariants: a command, a script, another program or an interface of this host is used only where
//! `--trust` says so; a plan of a bundle names no file that the bundle does not hold; its runs are made in a folder of
//! their own, with its files beside them, where its words mean what they meant.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use results::store;

use super::{ENDING, FILES_FOLDER, refused, unpack};
use crate::cli::failure::Failure;
use crate::cli::out::remark;
use crate::cli::plan;
use crate::cli::run::Arguments;
use crate::cli::trust::Foreign;

/// What came of a run's arguments if they name a bundle; none if they do not.
pub fn asked(arguments: &Arguments) -> Option<Result<ExitCode, Failure>> {
    let file = arguments.experiments.iter().find(|name| name.ends_with(ENDING));
    match file {
        Some(file) => Some(run(arguments, file)),
        None if arguments.trust && arguments.resume.is_none() => {
            let line = "--trust goes with a bundle or a stored run: `planimeter run FILE.tar.gz --trust`, \
                        `planimeter run --resume RUN --trust`";
            Some(Err(Failure::usage(line)))
        }
        None => None,
    }
}

fn run(arguments: &Arguments, file: &str) -> Result<ExitCode, Failure> {
    plan::refuse(arguments, file)?;
    let arguments = &plan::rooted(arguments);
    // Whatever folder is entered meanwhile.
    let out = arguments.out_folder();
    let out = std::path::absolute(&out).map_err(|error| refused(&out, error))?;
    let day = crate::environment::wall_clock();
    let day = day.split('T').next().unwrap_or_default();
    let path = Path::new(file);
    let name = path.file_name().map_or_else(|| file.into(), |it| it.to_string_lossy());
    let name = name.trim_end_matches(ENDING).trim_end_matches(".bundle").to_string();
    // What is wrong with the file is told before a folder is made.
    fs::metadata(path).map_err(|error| refused(path, error))?;
    let made_out = !out.exists();
    let folder = store::new_folder(&out, day, &format!("again-{name}")).map_err(|error| {
        Failure::usage(format!("{error}; choose another folder with --out DIR"))
    })?;
    // Nothing but what was unpacked is in it until the campaign begins.
    let undone = Undone { folder: folder.clone(), out: made_out.then_some(out) };
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

/// The campaign of a bundle that was unpacked into this folder; none where only that was asked what it would do.
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
    let foreign = Foreign::of_plan(&opened.plan, &files);
    if let Some(path) = foreign.missing.first() {
        return Err(refused(
            file,
            format!("its plan names {path:?}, which is not in it: it is not run"),
        ));
    }
    if foreign.needs_trust() && !arguments.trust {
        return Err(refused(
            file,
            format!("it comes with {foreign}; give --trust to let whoever made it do that here"),
        ));
    }
    for changed in &opened.facts.changed {
        remark!(
            "{changed} in this bundle is not what its run read: it was changed after that began"
        );
    }
    plan::enter(folder)?;
    plan::of_bundle(arguments, opened.plan, name, folder.to_path_buf())
}

/// A folder that goes again unless it is kept.
struct Undone {
    folder: PathBuf,
    /// The folder of runs, if it was made too.
    out: Option<PathBuf>,
}

impl Undone {
    fn keep(mut self) {
        self.folder = PathBuf::new();
    }
}

impl Drop for Undone {
    fn drop(&mut self) {
        if self.folder.as_os_str().is_empty() {
            return;
        }
        let _ = fs::remove_dir_all(&self.folder);
        if let Some(out) = &self.out {
            // Only if nothing else is in it.
            let _ = fs::remove_dir(out);
        }
    }
}
