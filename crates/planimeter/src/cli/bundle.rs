//! `planimeter bundle RUN`: a run in one file, with all that another person needs to repeat it by `planimeter run FILE`.
//!
//! A bundle is a tar file packed by gzip: `bundle.json` says what it is, `plan.toml` what is to be run, `files/` what that names
//! (topologies, programs, models, streams, scripts), `run/` is the folder that was bundled. Invariants: whatever is not in a
//! bundle is said, in it and when it is made; a secret never is in it.

/// What is run from a bundle.
pub mod again;
/// What belongs in a bundle.
mod contents;
/// The files that arguments name.
pub mod inputs;
/// Made-up names in place of real ones.
mod mask;
/// Entries into a file.
mod pack;
/// A plan in words.
mod plan;
/// Entries out of a file.
pub mod unpack;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::failure::Failure;
use super::masking::Masking;
use super::out::{remark, say};
use contents::Contents;

pub use contents::without_dots;

/// How a bundle's file ends.
pub const ENDING: &str = ".tar.gz";

/// What is in a bundle.
pub const FACTS_FILE: &str = "bundle.json";

/// The folder with files that the plan names.
pub const FILES_FOLDER: &str = "files";

/// The folder with the run.
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

/// Makes a bundle and prints where it lies.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let contents = Contents::of(&arguments.run)?;
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => {
            // The file's own name goes wherever the file goes.
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

/// A fault of a file.
fn refused(file: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: {why}", file.display()))
}
