//! `planimeter progfe`: runs a ProGFE forwarding element, or inspects programs.
//!
//! `--program FILE` with ports runs an element until it is stopped. `check` lists all errors of a
//! program, `plan` shows the difference between two, `show` draws the graph, and `trace` follows a
//! frame block by block. The last three also inspect running elements over their control sockets.
//! Programs may refer to files in their folder.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use elements::config::{ForcesConfig, Kind, ProGfeConfig};
use elements::control::request::OBSERVED_MS_MAX;
use progfe::diagnostic::Problems;
use progfe::program::Program;
use progfe::shipped;
use progfe::xml::Source;

use super::element::{CommonArguments, FastPathArguments, read, run, told};
use super::failure::Failure;
use super::output::{remark, say};

mod agent;
mod live;
mod plan;
mod send;
mod show;
mod trace;
mod services;

use services::Services;

/// Arguments of `planimeter progfe`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    about: Option<ProgramCommand>,
    /// Program: file, bridge, bridge-complex, router, vlan or vlan16
    #[arg(long, value_name = "FILE", required = true)]
    program: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    fast_path: FastPathArguments,
    #[command(flatten)]
    forces: Forces,
    #[command(flatten)]
    services: Services,
    /// Let other hosts use --forces and --http unauthenticated
    #[arg(long)]
    insecure: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter progfe --program bridge.fe.xml --port 1=afpacket:eth1 --port 2=afpacket:eth2
  planimeter progfe check bridge.fe.xml
  planimeter progfe show --control-socket element.sock";

/// Control elements.
#[derive(clap::Args)]
struct Forces {
    /// Control element: tcp:, ssl: or unix: to connect; ptcp:, pssl: or punix: to listen; the first
    /// is the primary one
    #[arg(long = "forces", value_name = "URL[,id=ID]")]
    ces: Vec<String>,
    /// Private key of --certificate, PEM
    #[arg(long, value_name = "FILE", requires = "ces")]
    private_key: Option<PathBuf>,
    /// Certificate of the element for ssl: and pssl:, PEM
    #[arg(long, value_name = "FILE", requires = "ces")]
    certificate: Option<PathBuf>,
    /// CA certificate that verifies control elements, PEM
    #[arg(long, value_name = "FILE", requires = "ces")]
    ca_cert: Option<PathBuf>,
}

impl Forces {
    fn config(&self, is_insecure: bool) -> Result<ForcesConfig, Failure> {
        let ces = self
            .ces
            .iter()
            .map(|text| text.parse().map_err(|error| Failure::usage(format!("--forces: {error}"))));
        Ok(ForcesConfig {
            ces: ces.collect::<Result<_, _>>()?,
            private_key: self.private_key.clone(),
            certificate: self.certificate.clone(),
            ca_cert: self.ca_cert.clone(),
            is_insecure,
        })
    }
}

/// Operations on programs.
#[derive(clap::Subcommand)]
enum ProgramCommand {
    /// Print all problems of a program
    #[command(after_help = "Examples:\n  planimeter progfe check bridge.fe.xml")]
    Check {
        /// Program file
        file: PathBuf,
    },
    /// Print what changes if a program replaces another one, and which blocks run in the kernel
    Plan(plan::Arguments),
    /// Draw a program's graph, or a running element with rates, losses and costs
    Show(show::Arguments),
    /// Send a program over Ethernet to an element
    Send(send::Arguments),
    /// Send a request to an agent of a running element
    Ask(agent::Arguments),
    /// Print events of a running element, one line of JSON each
    #[command(after_help = "Examples:\n  planimeter progfe events element.sock")]
    Events {
        /// Control socket of the element
        control: PathBuf,
    },
    /// Trace a frame, or the next frames of a running element, block by block
    Trace(trace::Arguments),
}

/// Runs the command.
pub fn run_command(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.about {
        None => element(arguments),
        Some(ProgramCommand::Check { file }) => check(file),
        Some(ProgramCommand::Plan(arguments)) => plan::plan(arguments),
        Some(ProgramCommand::Show(arguments)) => show::show(arguments),
        Some(ProgramCommand::Send(arguments)) => send::send(arguments),
        Some(ProgramCommand::Ask(arguments)) => agent::ask(arguments),
        Some(ProgramCommand::Events { control }) => agent::events(control),
        Some(ProgramCommand::Trace(arguments)) => trace::trace(arguments),
    }
}

fn element(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let file = arguments.program.as_deref().unwrap_or(Path::new(""));
    let mut config = ProGfeConfig::new(Arc::new(load(file)?));
    config.forces = arguments.forces.config(arguments.insecure)?;
    arguments.services.tell(&mut config, arguments.insecure)?;
    let mut config = told(Kind::ProGfe(config), &arguments.common)?;
    config.fast_path = arguments.fast_path.mode();
    run(&config)
}

fn check(file: &Path) -> Result<ExitCode, Failure> {
    let (_, problems) = loaded(file)?;
    if !problems.is_empty() {
        say!("{}", problems.to_string().trim_end());
    }
    if problems.refuses() {
        return Ok(ExitCode::from(super::failure::EXIT_USAGE));
    }
    say!("{}: valid", file.display());
    Ok(ExitCode::SUCCESS)
}

/// Reads and checks a program.
pub fn loaded(file: &Path) -> Result<(Option<Program>, Problems), Failure> {
    let text = match file.to_str().and_then(shipped::text) {
        Some(text) => text.to_owned(),
        None => read(file)?,
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let beside =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    Ok(Program::load(&Source::new(&file.display().to_string(), &text), &beside))
}

/// Reads a runnable program; its warnings go to stderr.
pub fn load(file: &Path) -> Result<Program, Failure> {
    let (program, problems) = loaded(file)?;
    match program {
        Some(program) => {
            for problem in problems.sorted() {
                remark!("{problem}");
            }
            Ok(program)
        }
        None => Err(Failure::usage(problems.to_string().trim_end().to_owned())),
    }
}

/// Converts an option in seconds to milliseconds.
fn milliseconds(flag: &str, seconds: f64) -> Result<u64, Failure> {
    let ms = (seconds * 1e3).round();
    if (1.0..=OBSERVED_MS_MAX as f64).contains(&ms) {
        return Ok(ms as u64);
    }
    let most = OBSERVED_MS_MAX / 1000;
    Err(Failure::usage(format!(
        "{flag} {seconds}: out of range (hint: use 0.001 to {most} seconds)"
    )))
}

/// Parses hexadecimal digits.
pub(super) fn bytes_of(hex: &str) -> Result<Vec<u8>, Failure> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !b" :.".contains(byte)).collect();
    let wrong = || {
        Failure::usage(format!(
            "--frame {hex}: invalid frame (hint: use pairs of hexadecimal digits)"
        ))
    };
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect::<Option<Vec<u8>>>().ok_or_else(wrong)
}
