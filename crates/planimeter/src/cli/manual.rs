//! `planimeter man` and `planimeter completions`: the documentation of the command line for
//! `man(1)` and for shells.
//!
//! Both are generated from the definition of the command line, so that they cannot be out of date.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::failure::Failure;
use super::output::{say, to_stdout};

/// Arguments of `planimeter man`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  planimeter man man1")]
pub struct ManArguments {
    /// Folder for the pages, one per command; created if missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of `planimeter completions`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  planimeter completions bash > planimeter.bash")]
pub struct CompletionsArguments {
    /// Shell to generate the script for
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Writes a page for each command.
pub fn man(arguments: &ManArguments) -> Result<ExitCode, Failure> {
    let folder = &arguments.folder;
    let failed =
        |error| Failure::usage(format!("cannot write man pages to {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(super::Arguments::command(), folder).map_err(failed)?;
    say!(
        "man pages are in {} (hint: run 'man {}')",
        folder.display(),
        folder.join("planimeter.1").display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Prints the completion script of a shell.
pub fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut super::Arguments::command(),
        "planimeter",
        &mut script,
    );
    to_stdout(format_args!("{}", String::from_utf8_lossy(&script)));
    Ok(ExitCode::SUCCESS)
}
