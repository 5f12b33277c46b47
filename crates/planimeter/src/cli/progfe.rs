//! `planimeter progfe`: an element that is programmed by a graph, and what can be asked of programs.
//!
//! `--program FILE` with ports is such an element until it is told to stop. `check` names every
//! problem of a program, `plan` what would change between two, `show` draws its graph, and `trace` says
//! block by block what happens to a frame. Programs may name files beside them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use dataplane::forwarder::Outputs;
use packet::frame::{Frame, PortNo};
use packet::time::Nanos;
use progfe::element::Element;
use progfe::lfb::Verdict;
use progfe::problem::Problems;
use progfe::program::Program;
use progfe::trace::{Step, Trace};
use progfe::xml::Source;
use serde_json::{Value, json};
use switch::config::{ForcesConfig, Kind, ProGfeConfig};

use super::element::{CommonArguments, read, run, told};
use super::failure::Failure;
use super::out::{remark, say};

/// Agents of a running element, and its events.
mod ask;
/// Programs sent by Ethernet.
mod send;
/// What reaches an element beside its ports and its control socket.
mod services;

use services::Services;

/// Arguments of `planimeter progfe`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    about: Option<About>,
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    forces: Forces,
    /// What the element does: a program, such as examples/progfe/bridge.fe.xml
    #[arg(long, value_name = "FILE", required = true)]
    program: Option<PathBuf>,
    #[command(flatten)]
    services: Services,
}

/// Control elements.
#[derive(clap::Args)]
struct Forces {
    /// A control element: where it is, or where to wait for it (tcp:IP[:PORT], ptcp:[PORT][:IP], ssl:, pssl:,
    /// unix:, punix:), with its id as ,id=0x40000001; the first one is the primary one
    #[arg(long = "forces", value_name = "URL[,id=ID]")]
    ces: Vec<String>,
    /// The private key of --certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "ces")]
    private_key: Option<PathBuf>,
    /// The certificate that ssl: and pssl: show to control elements, in PEM
    #[arg(long, value_name = "FILE", requires = "ces")]
    certificate: Option<PathBuf>,
    /// The certificate of the CA that vouches for control elements, in PEM
    #[arg(long, value_name = "FILE", requires = "ces")]
    ca_cert: Option<PathBuf>,
}

impl Forces {
    fn config(&self) -> Result<ForcesConfig, Failure> {
        let ces = self
            .ces
            .iter()
            .map(|text| text.parse().map_err(|error| Failure::usage(format!("--forces: {error}"))));
        Ok(ForcesConfig {
            ces: ces.collect::<Result<_, _>>()?,
            private_key: self.private_key.clone(),
            certificate: self.certificate.clone(),
            ca_cert: self.ca_cert.clone(),
        })
    }
}

/// What can be asked of programs.
#[derive(clap::Subcommand)]
enum About {
    /// Name every problem of a program
    Check {
        /// The program
        file: PathBuf,
    },
    /// Say what would change if one program took the place of another
    Plan {
        /// The program that runs
        old: PathBuf,
        /// The one that is to run
        new: PathBuf,
    },
    /// Draw a program's graph, in the language of Graphviz
    Show {
        /// The program
        file: PathBuf,
    },
    /// Send a program to an element that takes programs by Ethernet
    Send(send::Arguments),
    /// Have an agent of a running element do something, such as: ask control.sock cfm loopback to=02:00:00:00:00:01
    Ask(ask::Arguments),
    /// Print events of a running element as they happen, one line of JSON each
    Events {
        /// The element's control socket
        control: PathBuf,
    },
    /// Say what happens to a frame, block by block
    Trace {
        /// The program
        file: PathBuf,
        /// The frame's bytes in hexadecimal, without frame check sequence
        #[arg(long, value_name = "HEX", required_unless_present = "pcap")]
        frame: Option<String>,
        /// The frames of a capture file, one after the other
        #[arg(long, value_name = "FILE", conflicts_with = "frame")]
        pcap: Option<PathBuf>,
        /// The port that they come in on
        #[arg(long, value_name = "N", default_value_t = 1)]
        port: PortNo,
        /// Print JSON, one frame a line
        #[arg(long)]
        json: bool,
    },
}

/// Does what `planimeter progfe` is asked.
pub fn run_command(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.about {
        None => element(arguments),
        Some(About::Check { file }) => check(file),
        Some(About::Plan { old, new }) => {
            for difference in progfe::plan::plan(&load(old)?, &load(new)?) {
                say!("{difference}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(About::Show { file }) => {
            let text = progfe::show::dot(&load(file)?, &|_| None);
            say!("{}", text.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Some(About::Send(arguments)) => send::send(arguments),
        Some(About::Ask(arguments)) => ask::ask(arguments),
        Some(About::Events { control }) => ask::events(control),
        Some(About::Trace { file, frame, pcap, port, json }) => {
            let frames = match (frame, pcap) {
                (Some(hex), _) => vec![bytes_of(hex)?],
                (None, Some(file)) => frames_of(file)?,
                (None, None) => Vec::new(),
            };
            traces(&load(file)?, *port, frames, *json)
        }
    }
}

fn element(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let file = arguments.program.as_deref().unwrap_or(Path::new(""));
    let mut config = ProGfeConfig::new(Arc::new(load(file)?));
    config.forces = arguments.forces.config()?;
    arguments.services.tell(&mut config)?;
    run(&told(Kind::ProGfe(config), &arguments.common)?)
}

fn check(file: &Path) -> Result<ExitCode, Failure> {
    let (_, problems) = loaded(file)?;
    if !problems.is_empty() {
        say!("{}", problems.to_string().trim_end());
    }
    if problems.refuses() {
        return Ok(ExitCode::from(super::failure::EXIT_USAGE));
    }
    say!("{}: can be run", file.display());
    Ok(ExitCode::SUCCESS)
}

/// Reads and checks a program.
pub fn loaded(file: &Path) -> Result<(Option<Program>, Problems), Failure> {
    let text = read(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let beside =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    Ok(Program::load(&Source::new(&file.display().to_string(), &text), &beside))
}

/// Reads a program that can be run; its warnings go to stderr.
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

/// The bytes that hexadecimal digits say.
pub(super) fn bytes_of(hex: &str) -> Result<Vec<u8>, Failure> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !b" :.".contains(byte)).collect();
    let wrong = || Failure::usage(format!("--frame {hex}: write pairs of hexadecimal digits"));
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect::<Option<Vec<u8>>>().ok_or_else(wrong)
}

/// The frames of a capture file.
fn frames_of(file: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let spec = format!("pcap:{}", file.display());
    let opened = ports::open::open(&spec, &ports::afpacket::Options::monitor());
    let mut port = opened.map_err(|error| Failure::usage(error.to_string()))?;
    let (mut frames, mut batch) = (Vec::new(), packet::frame::Batch::new(64));
    loop {
        let received = port.receive(&mut batch, Nanos::ZERO);
        let received = received.map_err(|error| Failure::usage(format!("{spec}: {error}")))?;
        if received == 0 {
            return Ok(frames);
        }
        frames.extend(batch.frames().iter().map(|frame| frame.bytes().to_vec()));
        batch.clear();
    }
}

fn traces(
    program: &Program,
    port: PortNo,
    frames: Vec<Vec<u8>>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let ports: Vec<PortNo> = program.ports.iter().map(|port| port.number).collect();
    if !ports.contains(&port) {
        return Err(Failure::usage(format!("--port {port}: the program declares {ports:?}")));
    }
    let element: Result<Element, Problems> = Element::start(program.clone(), 0);
    let mut element = element.map_err(|all| Failure::usage(all.to_string()))?;
    let mut out = Outputs::new(&ports);
    for bytes in frames {
        let trace = element.trace(port, &mut Frame::from_bytes(&bytes), Nanos::ZERO, &mut out);
        out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        while element.next_told().is_some() {}
        if as_json {
            let steps = trace.steps.iter().map(|step| step_json(program, step));
            let all = json!({ "steps": steps.collect::<Vec<Value>>(), "left_out": trace.left_out });
            say!("{all}");
        } else {
            say!("{}", trace_text(program, &trace).trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn meta_name(program: &Program, id: u32) -> String {
    let known = program.catalog.metadata_by_id(id);
    known.map_or_else(|| id.to_string(), |metadata| metadata.name.clone())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn trace_text(program: &Program, trace: &Trace) -> String {
    let mut text = String::new();
    for step in &trace.steps {
        let instance = &program.instances[step.instance].name;
        let copy = if step.copy > 0 { format!("copy {} ", step.copy) } else { String::new() };
        let _ = writeln!(text, "{copy}{instance}: {}", step.outcome(program));
        for (id, value) in step.changed() {
            let _ = writeln!(text, "    {} = {value}", meta_name(program, id));
        }
        if let Some(bytes) = &step.bytes {
            let _ = writeln!(text, "    bytes {}", hex(bytes));
        }
    }
    if trace.left_out > 0 {
        let _ = writeln!(text, "and {} more steps", trace.left_out);
    }
    text
}

fn step_json(program: &Program, step: &Step) -> Value {
    let class = program.class_of(step.instance);
    let named = |meta: &[(u32, u128)]| -> Value {
        let pairs = meta.iter().map(|(id, value)| {
            // JSON's numbers are not as wide as addresses.
            let value =
                u64::try_from(*value).map_or_else(|_| value.to_string().into(), Value::from);
            (meta_name(program, *id), value)
        });
        Value::Object(pairs.collect())
    };
    let input = step.input.and_then(|at| Some((class.inputs.get(at.port as usize)?, at.index)));
    json!({
        "copy": step.copy,
        "instance": program.instances[step.instance].name,
        "class": class.name,
        "input": input.map(|(port, _)| port.name.clone()),
        "input_index": input.filter(|(port, _)| port.group).map(|(_, index)| index),
        "before": named(&step.before),
        "after": named(&step.after),
        "bytes": step.bytes.as_deref().map(hex),
        "outcome": step.outcome(program),
        "dropped": match step.verdict {
            Verdict::Dropped(reason) => Some(reason.name()),
            Verdict::Out(..) if step.link.is_none() => Some(progfe::lfb::Reason::Unlinked.name()),
            _ => None,
        },
        "copies": step.copies,
    })
}
