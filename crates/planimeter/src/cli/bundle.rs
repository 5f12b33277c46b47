//! `planimeter bundle RUN`: packs a run into one file, with everything needed to repeat it by
//! `planimeter run FILE`.
//!
//! A bundle is a tar file compressed with gzip: `bundle.json` describes it, `plan.toml` is the plan
//! to run, `files/` holds the files that the plan names (topologies, programs, models, streams,
//! scripts), and `run/` is the bundled folder. Invariants: the bundle and the command's output
//! state everything that was left out; a bundle never contains a secret.

pub mod rerun;
mod contents;
pub mod inputs;
mod mask;
mod pack;
mod plan;
pub mod unpack;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::anonymize::Masking;
use super::failure::Failure;
use super::output::{remark, say};
use contents::Contents;

pub use contents::without_dots;

/// File name extension of a bundle.
pub const ENDING: &str = ".tar.gz";

/// File that describes the bundle.
pub const FACTS_FILE: &str = "bundle.json";

/// Folder with the files that the plan names.
pub const FILES_FOLDER: &str = "files";

/// Folder with the run.
pub const RUN_FOLDER: &str = "run";

/// Arguments of `planimeter bundle`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folder of a run or campaign
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Output file [default: RUN.bundle.tar.gz in the current folder]
    #[arg(long = "output", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Anonymize hosts, interfaces, addresses, datapath ids, serial numbers and users consistently,
    /// and leave out captures
    #[arg(long = "anonymize")]
    pub(crate) mask: bool,
    /// Anonymize this word too, such as the name of a customer
    #[arg(long = "redact", value_name = "WORD", requires = "mask")]
    pub(crate) hide: Vec<String>,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter bundle runs/RUN
  planimeter bundle runs/RUN --output public.tar.gz --anonymize
  planimeter run RUN.bundle.tar.gz --allow-commands";

/// Creates a bundle and prints its path.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let contents = Contents::of(&arguments.run)?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => {
            // Every copy of the file shows its name.
            let name = match arguments.mask {
                true => Masking::new(&arguments.hide).text(&contents.name),
                false => contents.name.clone(),
            };
            PathBuf::from(format!("{name}.bundle{ENDING}"))
        }
    };
    let facts = match arguments.mask {
        true => mask::packed(&contents, &arguments.hide, &out)?,
        false => pack::packed(&contents, &out)?,
    };
    for line in &facts.left_out {
        remark!("left out: {line}");
    }
    for file in &facts.changed {
        remark!(
            "warning: {file} changed after the run started; the bundle contains the current version"
        );
    }
    say!("{}", out.display());
    say!("repeat the run with: planimeter run {}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a file.
fn refused(file: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: {why}", file.display()))
}
