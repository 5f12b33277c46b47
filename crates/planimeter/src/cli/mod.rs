//! Command line: the only place that formats errors as text and chooses exit codes.
//!
//! One file per command. Progress goes to stderr; stdout is for the result (PRODUCT.md, "Command
//! line").

pub mod failure;
mod output;
pub mod shell_words;
pub mod progress;
pub mod screen;
pub mod signals;
pub mod variables;
mod link_arguments;
mod anonymize;
pub mod connections;
mod earlier_flags;
pub mod team_store;
pub(crate) mod trust;
mod resume;
mod bundle;
mod completion;
pub(crate) mod plan;
pub mod doctor;
pub mod list;
mod noise;
pub mod quick;
pub mod run;
pub mod report;
pub mod compare;
pub mod model;
pub mod proxy;
pub mod element;
pub mod progfe;
pub mod fe;
pub mod generate;
pub mod capture;
pub mod serve;
pub mod manual;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::builder::Styles;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use output::remark;

/// Measures the data planes of switches, bridges, routers, taggers and programmable elements
#[derive(Parser)]
#[command(name = "planimeter", version = crate::VERSION, max_term_width = 100)]
#[command(help_template = help_template(), after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure switch, bridge and router in seconds, and print the forwarding rates
    Quick(quick::Arguments),
    /// Measure targets and write a report
    Run(run::Arguments),
    /// Compare two runs or two targets, and check gates
    Compare(Box<compare::Arguments>),
    /// List experiments, targets, links, models, metrics, parameters and stored runs
    List(list::Arguments),
    /// Run an OpenFlow switch
    Switch(Box<element::SwitchArguments>),
    /// Run a learning bridge
    Bridge(element::BridgeArguments),
    /// Run an IP router
    Router(element::RouterArguments),
    /// Run a VLAN tagger
    Tagger(element::TaggerArguments),
    /// Run a ProGFE forwarding element, or inspect its program
    Progfe(Box<progfe::Arguments>),
    /// Read, change and watch a forwarding element over ForCES
    Fe(Box<fe::Arguments>),
    /// Derive a model of a hardware switch from stored runs
    Model(model::Arguments),
    /// Send streams, or the frames of a capture file
    Generate(Box<generate::Arguments>),
    /// Capture, filter and count frames
    Capture(Box<capture::Arguments>),
    /// Forward control channels between controllers and switches, and time the messages
    Proxy(proxy::Arguments),
    /// Rebuild the report of stored runs
    Report(report::Arguments),
    /// Show running and stored runs in a browser
    Serve(serve::Arguments),
    /// Pack a run into one file that repeats it on another host
    Bundle(bundle::Arguments),
    /// Check the requirements of targets on this machine, and print fixes
    Doctor(doctor::Arguments),
    /// Write man pages
    Man(manual::ManArguments),
    /// Print a completion script for a shell
    Completions(manual::CompletionsArguments),
}

/// Commands by purpose, in the order of the help text.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Measure", &["quick", "run", "compare", "list"]),
    ("Elements", &["switch", "bridge", "router", "tagger", "progfe", "fe", "model"]),
    ("Traffic", &["generate", "capture", "proxy"]),
    ("Results", &["report", "serve", "bundle"]),
    ("Tools", &["doctor", "man", "completions"]),
];

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter quick
  planimeter doctor
  planimeter run throughput --on switch --on ovs

'planimeter COMMAND --help' prints the options of a command.";

/// Returns the template of the help text, which lists the commands by purpose.
fn help_template() -> String {
    let commands = Command::augment_subcommands(clap::Command::new("planimeter"));
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        text += &format!("\n{header}{group}:{header:#}\n");
        for name in names {
            let command = commands.find_subcommand(name);
            let about = command.and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {literal}{name:11}{literal:#}  {about}\n");
        }
    }
    text + &format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}")
}

/// Runs the command line, and returns the exit code.
pub fn main() -> ExitCode {
    main_of(std::env::args_os())
}

/// Runs this command line, which starts with the program's name, and returns the exit code.
///
/// A caller in another program first sets the path of this one: [`variables::set_program`].
pub fn main_of(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<OsString> = words.into_iter().collect();
    match completion::answer(&words) {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => {
            remark!("planimeter: {}", one_line(&error.to_string()));
            return failure::EXIT_USAGE.into();
        }
    }
    if let Err(error) = testbed::capabilities::take_up() {
        remark!("planimeter: cannot use the capabilities of this program's file: {error}");
    }
    if let Some(folder) = variables::variable(testbed::runfolder::FOLDER_VARIABLE)
        && let Err(error) = testbed::process::renew_death_signal(folder.as_ref())
    {
        remark!("planimeter: {error}");
        return failure::EXIT_NEED.into();
    }
    // Without this privilege, only readers of other processes' counters miss data.
    let _ = testbed::pid_namespace::mount_own_proc();
    targets::name::on_earlier_spelling(|hint| remark!("{hint}"));
    let words = without_help_flags(words);
    let words = earlier_flags::current(words, &mut |hint| remark!("{hint}"));
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
            // An empty command line prints the help.
            let is_bare = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            match is_bare {
                true => remark!("{}", error.to_string().trim_end()),
                false => remark!("planimeter: {}", one_line(&error.to_string())),
            }
            return failure::EXIT_USAGE.into();
        }
    };
    let done = match arguments.command {
        Command::Quick(arguments) => quick::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Switch(arguments) => element::switch(&arguments),
        Command::Bridge(arguments) => element::bridge(&arguments),
        Command::Router(arguments) => element::router(&arguments),
        Command::Tagger(arguments) => element::tagger(&arguments),
        Command::Progfe(arguments) => progfe::run_command(&arguments),
        Command::Fe(arguments) => fe::run(&arguments),
        Command::Model(arguments) => model::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Proxy(arguments) => proxy::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Bundle(arguments) => bundle::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
    };
    let done = done.and_then(|code| output::ended().map(|()| code));
    done.unwrap_or_else(|failure: Failure| {
        remark!("planimeter: {failure}");
        failure.exit_code()
    })
}

/// Removes help flags after the command `help`, which takes names of commands only.
fn without_help_flags(mut words: Vec<OsString>) -> Vec<OsString> {
    let program = Arguments::command();
    let is_group =
        |name: &OsString| program.find_subcommand(name).is_some_and(clap::Command::has_subcommands);
    let has_help = |at: usize| words.get(at).is_some_and(|word| word == "help");
    if has_help(1) || (has_help(2) && is_group(&words[1])) {
        words.retain(|word| word != "--help" && word != "-h");
    }
    words
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

    /// Lines of a help text that fit on a screen.
    const HELP_LINES_MAX: usize = 45;

    #[test]
    fn an_invalid_command_line_is_reported_in_one_line() {
        let report = |words: &[&str]| match Arguments::try_parse_from(words) {
            Ok(_) => panic!("{words:?} was accepted"),
            Err(error) => one_line(&error.to_string()),
        };
        assert_eq!(
            report(&["planimeter", "run", "latency", "--sed", "1"]),
            "unexpected argument '--sed' found; tip: a similar argument exists: '--seed'; \
             Usage: planimeter run --seed <SEED> <EXPERIMENT>..."
        );
        assert_eq!(
            report(&["planimeter", "switch"]),
            "the following required arguments were not provided: --port <N=SPEC>; \
             Usage: planimeter switch --port <N=SPEC>"
        );
    }

    #[test]
    fn help_flags_after_the_help_command_are_ignored() {
        let rest = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words = without_help_flags(words).into_iter();
            words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(rest("planimeter help --help"), "planimeter help");
        assert_eq!(rest("planimeter help run -h"), "planimeter help run");
        assert_eq!(rest("planimeter progfe help --help"), "planimeter progfe help");
        assert_eq!(rest("planimeter run help --help"), "planimeter run help --help");
    }

    #[test]
    fn every_command_belongs_to_a_group() {
        let commands = Arguments::command();
        let mut names: Vec<&str> = commands.get_subcommands().map(|it| it.get_name()).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
    }

    /// Returns the help text of a command and of its subcommands.
    fn helps(command: &mut clap::Command, texts: &mut Vec<String>) {
        texts.push(command.render_help().to_string());
        for subcommand in command.get_subcommands_mut().filter(|it| it.get_name() != "help") {
            helps(subcommand, texts);
        }
    }

    #[test]
    fn every_help_fits_one_screen_and_has_valid_examples() {
        let mut command = Arguments::command().term_width(100);
        command.build();
        let mut texts = Vec::new();
        helps(&mut command, &mut texts);
        assert!(texts.len() > 20);
        for text in texts {
            assert!(text.lines().count() <= HELP_LINES_MAX, "{text}");
            let examples = text.lines().filter(|line| line.starts_with("  planimeter "));
            let examples: Vec<&str> = examples.collect();
            assert!(!examples.is_empty() || text.contains("Commands:"), "{text}");
            for example in examples {
                let example = example.split(" > ").next().unwrap_or_default();
                let parsed = Arguments::try_parse_from(shell_words::split(example));
                assert!(parsed.is_ok(), "{example}: {}", parsed.err().unwrap());
            }
        }
    }
}
