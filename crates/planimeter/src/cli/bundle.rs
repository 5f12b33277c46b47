//! `planimeter bundle RUN`: packs a run into one file, with everything needed to repeat it by `planimeter run FILE`.
//!
//! A bundle is a tar file compressed with gzip: `bundle.json` describes it, `plan.toml` is the plan to run, `files/`
//! holds the files that the plan names (topologies, programs, models, streams, scripts), and `run/` is the bundled
//! folder. Invariants: the bundle and the command's output state everything that was left out; a bundle never
//! contains a secret.

pub mod again;
mod contents;
pub mod inputs;
mod mask;
mod pack;
mod plan;
pub mod unpack;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::failure::Failure;
use super::masking::Masking;
use super::out::{remark, say};
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
pub struct Arguments {
    /// The folder of a run, or of a plan's runs
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The file; RUN's name with .bundle.tar.gz, in the folder in which you are, unless said
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Put made-up names in place of hosts, interfaces, addresses, datapath ids, serial numbers and users, the same for the same
    /// everywhere, and leave out captures
    #[arg(long)]
    pub mask: bool,
    /// A further word to be masked, such as the name of a customer
    #[arg(long, value_name = "WORD", requires = "mask")]
    pub hide: Vec<String>,
}

/// Creates a bundle and prints its path.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let contents = Contents::of(&arguments.run)?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => {
            // The file name is visible wherever the file is copied.
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
        remark!("{file} has changed since the run began: the bundle has it as it is now");
    }
    say!("{}", out.display());
    say!("to repeat it: planimeter run {}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a file.
fn refused(file: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: {why}", file.display()))
}
