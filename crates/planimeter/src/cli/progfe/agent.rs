//! `planimeter progfe ask` and `events`: requests to the agents of a running element, over its
//! control socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use os::clock;
use packet::time::Nanos;
use progfe::program::Program;
use progfe::program::document::no_files;
use progfe::xml::Source;
use serde_json::{Map, Value, json};

use crate::cli::failure::Failure;
use crate::cli::output::say;

/// Interval between polls of a measurement in progress.
const PAUSE: Nanos = Nanos::from_millis(20);

/// Arguments of `ask`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Control socket of the element
    control: PathBuf,
    /// Name of the agent in the program
    agent: String,
    /// Request; OAM agents support loopback, linktrace, delay and ccm
    what: String,
    /// Argument of the request: NAME=VALUE
    with: Vec<String>,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter progfe ask element.sock cfm loopback to=02:00:00:00:00:01";

/// Connection to a running element's control socket.
pub(super) struct ControlClient(BufReader<UnixStream>);

impl ControlClient {
    /// Connects to an element.
    pub(super) fn open(control: &Path) -> Result<ControlClient, Failure> {
        let stream = UnixStream::connect(control);
        let stream = stream.map_err(|error| {
            Failure::usage(format!(
                "cannot connect to the element at {}: {error}",
                control.display()
            ))
        })?;
        Ok(ControlClient(BufReader::new(stream)))
    }

    fn line(&mut self) -> Result<Value, Failure> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(1..) => serde_json::from_str(&line)
                .map_err(|error| Failure::usage(format!("invalid reply of the element: {error}"))),
            Ok(0) => Err(Failure::usage("the element has stopped".to_owned())),
            Err(error) => Err(Failure::usage(format!("no reply of the element: {error}"))),
        }
    }

    /// Sends a request, and waits for the reply.
    pub(super) fn ask(&mut self, request: &Value) -> Result<Value, Failure> {
        let sent = writeln!(self.0.get_mut(), "{request}");
        sent.map_err(|error| Failure::usage(format!("cannot send to the element: {error}")))?;
        let mut said = self.line()?;
        match said["error"].as_str() {
            Some(why) => Err(Failure::usage(why.to_owned())),
            None => Ok(said["ok"].take()),
        }
    }

    /// Returns the element's current program.
    pub(super) fn program(&mut self) -> Result<Program, Failure> {
        let said = self.ask(&json!({ "get": "program" }))?;
        let source = Source::new("the running program", said["text"].as_str().unwrap_or_default());
        let (program, problems) = Program::load(&source, &no_files);
        program.ok_or_else(|| Failure::usage(problems.to_string().trim_end().to_owned()))
    }
}

/// Sends a request, and waits for the measurement's result.
pub fn ask(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut with = Map::new();
    for text in &arguments.with {
        let Some((name, value)) = text.split_once('=') else {
            return Err(Failure::usage(format!("{text}: invalid argument (hint: use NAME=VALUE)")));
        };
        with.insert(name.to_owned(), value.into());
    }
    let mut asking = ControlClient::open(&arguments.control)?;
    let request = |what: &str, with: &Value| json!({ "ask_agent": { "agent": arguments.agent, "what": what, "with": with } });
    let mut said = asking.ask(&request(&arguments.what, &Value::Object(with)))?;
    // A measurement has a number, which is polled until the measurement is complete.
    let begun = said.clone();
    if arguments.what != "result" && begun.get("id").is_some() {
        while said["done"] != true {
            clock::sleep_until(clock::now().saturating_add(PAUSE));
            said = asking.ask(&request("result", &begun))?;
        }
    }
    say!("{said:#}");
    Ok(ExitCode::SUCCESS)
}

/// Prints events until the element ends.
pub fn events(control: &Path) -> Result<ExitCode, Failure> {
    let mut asking = ControlClient::open(control)?;
    asking.ask(&json!({ "watch": {} }))?;
    loop {
        let event = asking.line()?;
        say!("{event}");
    }
}
