//! `planimeter man` and `planimeter completions`: the documentation of the command line for
//! `man(1)` and for shells.
//!
//! Both are generated from the definition of the command line, so that they cannot be out of date.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::completion;
use super::failure::{EXIT_CODES, Failure};
use super::output::{say, to_stdout};

/// Arguments of `planimeter man`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  planimeter man man1")]
pub struct ManArguments {
    /// Folder for the pages, one per command; created if missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Examples at the end of the help.
const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  planimeter completions bash > ~/.local/share/bash-completion/completions/planimeter
  planimeter completions fish > ~/.config/fish/completions/planimeter.fish";

/// Arguments of `planimeter completions`.
#[derive(clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
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
    let main = folder.join("planimeter.1");
    let page = std::fs::read_to_string(&main).map_err(failed)? + &exit_status();
    std::fs::write(&main, page).map_err(failed)?;
    say!(
        "man pages are in {} (hint: run 'man {}')",
        folder.display(),
        folder.join("planimeter.1").display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the section about exit codes in the format of man pages.
fn exit_status() -> String {
    let codes = EXIT_CODES.iter().map(|(code, meaning)| {
        format!(".TP\n\\fB{code}\\fR\n{}\n", meaning.replace("--", "\\-\\-"))
    });
    format!(".SH \"EXIT STATUS\"\n{}", codes.collect::<String>())
}

/// Prints the completion script of a shell.
pub fn completions(arguments: &CompletionsArguments) -> Result<ExitCode, Failure> {
    let failed = |error| Failure::usage(format!("cannot write the completion script: {error}"));
    let script = completion::script(arguments.shell).map_err(failed)?;
    to_stdout(format_args!("{}", String::from_utf8_lossy(&script)));
    Ok(ExitCode::SUCCESS)
}
