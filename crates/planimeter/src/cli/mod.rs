//! Command line: the only place that formats errors as text and chooses exit codes.
//!
//! One file per command. Progress goes to stderr; stdout is for the result (PRODUCT.md, "Command line").

/// Failures of commands, and their exit codes.
pub mod failure;
/// Output on stdout and stderr, and closed pipes.
mod out;
/// Shell quoting of command lines.
pub mod words;
/// Progress on stderr: a screen on a terminal, plain lines otherwise.
pub mod progress;
/// Full-screen view of a run.
pub mod screen;
/// Signals that end a command cleanly.
pub mod stop;
/// Environment and privileges of this process.
pub mod place;
/// Choice of links for targets.
mod joining;
/// Anonymization.
mod masking;
/// Connection limits of a listener.
pub mod connections;
/// Team store.
pub mod team;
/// Check for external code in a run.
pub(crate) mod trust;
/// `planimeter run --resume`.
mod resume;
/// `planimeter bundle`.
mod bundle;
/// `planimeter run PLAN.toml`.
pub(crate) mod plan;
/// `planimeter doctor`.
pub mod doctor;
/// `planimeter list`.
pub mod list;
/// The noise check before a live run.
mod noise;
/// `planimeter run`.
pub mod run;
/// `planimeter report`.
pub mod report;
/// `planimeter compare`.
pub mod compare;
/// `planimeter model`.
pub mod model;
/// `planimeter proxy`.
pub mod proxy;
/// `planimeter switch`, `bridge`, `router` and `tagger`.
pub mod element;
/// `planimeter progfe`.
pub mod progfe;
/// `planimeter fe`.
pub mod fe;
/// `planimeter generate`.
pub mod generate;
/// `planimeter capture`.
pub mod capture;
/// `planimeter serve`.
pub mod serve;
/// `planimeter man` and `planimeter completions`.
pub mod manual;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use failure::Failure;
use out::remark;

/// Measures network data planes: OpenFlow switches, bridges and routers, with error bars.
#[derive(Parser)]
#[command(name = "planimeter", version = crate::VERSION, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What this machine allows, what is missing, and how to get it
    Doctor(doctor::Arguments),
    /// What can be measured, on what, and with which parameters
    List(list::Arguments),
    /// Measure targets side by side
    Run(run::Arguments),
    /// Rebuild the report of stored runs
    Report(report::Arguments),
    /// Put a run into one file, which repeats it elsewhere
    Bundle(bundle::Arguments),
    /// Compare runs or targets, and fail where a gate is missed
    Compare(Box<compare::Arguments>),
    /// Derive a model of a switch from runs that measured it
    Model(model::Arguments),
    /// Stand between a controller and its switches, and time what passes
    Proxy(proxy::Arguments),
    /// Be an OpenFlow switch
    Switch(Box<element::SwitchArguments>),
    /// Be a learning bridge
    Bridge(element::BridgeArguments),
    /// Be a router
    Router(element::RouterArguments),
    /// Be a VLAN tagger
    Tagger(element::TaggerArguments),
    /// Be an element that is programmed by a graph, or ask about its program
    Progfe(Box<progfe::Arguments>),
    /// Ask a forwarding element over ForCES, or change it
    Fe(Box<fe::Arguments>),
    /// Send streams or the frames of a capture file
    Generate(Box<generate::Arguments>),
    /// Capture frames, filtered and counted, to a file
    Capture(Box<capture::Arguments>),
    /// Show running and stored runs in a browser
    Serve(serve::Arguments),
    /// Write man pages
    Man(manual::ManArguments),
    /// Print what a shell needs to complete commands
    Completions(manual::CompletionsArguments),
}

/// Runs the command line, and returns the exit code.
pub fn main() -> ExitCode {
    main_of(std::env::args_os())
}

/// Runs the command line in these words, the first of which is the program's name, and returns the exit code.
///
/// A caller in another program first sets the path of this one: [`place::set_program`].
pub fn main_of(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    if let Err(error) = lab::rights::take_up() {
        remark!("planimeter: the rights of this program's file are not in force: {error}");
    }
    if let Some(folder) = place::variable(lab::process::FOLDER_VARIABLE)
        && let Err(error) = lab::process::renew_death_signal(folder.as_ref())
    {
        remark!("planimeter: {error}");
        return failure::EXIT_NEED.into();
    }
    // Without this privilege, only readers of other processes' counters miss data.
    let _ = lab::pid_namespace::mount_own_proc();
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            if !error.use_stderr() {
                // Help or version: a reader may close the pipe early.
                let is_unread = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
                let printed =
                    error.print().or_else(|it| if is_unread(&it) { Ok(()) } else { Err(it) });
                return printed.map_or(failure::EXIT_USAGE.into(), |()| ExitCode::SUCCESS);
            }
            // An empty command line asks for help.
            let is_bare = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            match is_bare {
                true => remark!("{}", error.to_string().trim_end()),
                false => remark!("planimeter: {}", one_line(&error.to_string())),
            }
            return failure::EXIT_USAGE.into();
        }
    };
    let done = match arguments.command {
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Bundle(arguments) => bundle::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Model(arguments) => model::run(&arguments),
        Command::Proxy(arguments) => proxy::run(&arguments),
        Command::Switch(arguments) => element::switch(&arguments),
        Command::Bridge(arguments) => element::bridge(&arguments),
        Command::Router(arguments) => element::router(&arguments),
        Command::Tagger(arguments) => element::tagger(&arguments),
        Command::Progfe(arguments) => progfe::run_command(&arguments),
        Command::Fe(arguments) => fe::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
    };
    let done = done.and_then(|code| out::ended().map(|()| code));
    done.unwrap_or_else(|failure: Failure| {
        remark!("planimeter: {failure}");
        failure.exit_code()
    })
}

/// Returns a command-line error as one line, without indentation and headings.
fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let end = text.find("\n\nFor more information").unwrap_or(text.len());
    let words = |part: &str| part.split_whitespace().collect::<Vec<&str>>().join(" ");
    let parts = text[..end].split("\n\n").map(words).filter(|part| !part.is_empty());
    parts.collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_command_line_gives_a_one_line_error() {
        let error_for = |words: &[&str]| match Arguments::try_parse_from(words) {
            Ok(_) => panic!("{words:?} was accepted"),
            Err(error) => one_line(&error.to_string()),
        };
        assert_eq!(
            error_for(&["planimeter", "run", "latency", "--sed", "1"]),
            "unexpected argument '--sed' found; tip: a similar argument exists: '--seed'; \
             Usage: planimeter run --seed <SEED> <EXPERIMENT>..."
        );
        assert_eq!(
            error_for(&["planimeter", "switch"]),
            "the following required arguments were not provided: --port <N=SPEC>; \
             Usage: planimeter switch --port <N=SPEC>"
        );
    }
}
