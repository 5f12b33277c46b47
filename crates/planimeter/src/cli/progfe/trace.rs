//! `planimeter progfe trace`: follows a frame block by block, in a program file or in a running
//! element.
//!
//! In a running element these are the next matching frames, which are forwarded as usual. A capture
//! file contains each frame as received, and again for each port that sent it immediately, with the
//! trace as a comment.

use std::fmt::Write;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use dataplane::forwarder::Outputs;
use elements::control::answer::observed;
use netio::capture::{CaptureError, CaptureOptions, CaptureWriter};
use os::clock;
use packet::capture::Direction;
use packet::capture::write::{Frame as Written, FrameNotes};
use packet::frame::{Frame, PortNo};
use packet::time::Nanos;
use progfe::diagnostic::Problems;
use progfe::element::Element;
use progfe::program::Program;
use serde_json::{Value, json};

use super::agent::ControlClient;
use super::{bytes_of, load};
use crate::cli::failure::Failure;
use crate::cli::output::{remark, say};
use crate::cli::signals;

/// Interval between polls of a running element.
const PAUSE: Nanos = Nanos::from_millis(20);

/// Arguments of `trace`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Program file
    #[arg(required_unless_present = "control", conflicts_with = "control")]
    file: Option<PathBuf>,
    /// Frame in hexadecimal, without frame check sequence
    #[arg(long, value_name = "HEX", required_unless_present_any = ["pcap", "control"])]
    frame: Option<String>,
    /// Trace each frame of a capture file
    #[arg(long, value_name = "FILE", conflicts_with = "frame")]
    pcap: Option<PathBuf>,
    /// Control socket of a running element whose next frames are traced
    #[arg(long = "control-socket", value_name = "SOCKET", conflicts_with_all = ["frame", "pcap"])]
    control: Option<PathBuf>,
    /// Input port [default: 1; any with --control-socket]
    #[arg(long, value_name = "N")]
    port: Option<PortNo>,
    /// Condition for frames, as in rules of Match, such as: IPv4.proto = 17 and not Vlan
    #[arg(long, value_name = "CONDITION", requires = "control", default_value = "")]
    when: String,
    /// Stop after this number of frames
    #[arg(long, value_name = "N", requires = "control", default_value_t = 1)]
    count: u64,
    /// Stop after this time
    #[arg(long = "duration", value_name = "SECONDS", requires = "control", default_value_t = 10.0)]
    seconds: f64,
    /// Write the received and sent frames to this file too (pcapng)
    #[arg(long, value_name = "FILE", requires = "control")]
    write: Option<PathBuf>,
    /// Print JSON, one line per frame
    #[arg(long)]
    json: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter progfe trace bridge.fe.xml --pcap frames.pcapng
  planimeter progfe trace --control-socket element.sock --count 5 --when 'IPv4.proto = 17'";

/// Runs the command.
pub fn trace(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(control) = &arguments.control {
        return running(control, arguments);
    }
    let frames = match (&arguments.frame, &arguments.pcap) {
        (Some(hex), _) => vec![bytes_of(hex)?],
        (None, Some(file)) => frames_of(file)?,
        (None, None) => Vec::new(),
    };
    let program = load(arguments.file.as_deref().unwrap_or(Path::new("")))?;
    let port = arguments.port.unwrap_or(1);
    let ports: Vec<PortNo> = program.ports.iter().map(|port| port.number).collect();
    if !ports.contains(&port) {
        return Err(Failure::usage(format!(
            "--port {port}: not a port of the program (hint: use one of {ports:?})"
        )));
    }
    let element: Result<Element, Problems> = Element::start(program.clone(), 0);
    let mut element = element.map_err(|all| Failure::usage(all.to_string()))?;
    let mut out = Outputs::new(&ports);
    for bytes in frames {
        let trace = element.trace(port, &mut Frame::from_bytes(&bytes), Nanos::ZERO, &mut out);
        out.queues_mut().iter_mut().for_each(|(_, queue)| queue.clear());
        while element.next_told().is_some() {}
        tell(&observed::trace(&program, &trace), arguments.json);
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the frames of a capture file.
fn frames_of(file: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let spec = format!("pcap:{}", file.display());
    let opened = netio::open::open(&spec, &netio::afpacket::Options::monitor());
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

/// Traces the next frames of a running element.
fn running(control: &Path, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { count, seconds, when, port, .. } = arguments;
    let for_ms = super::milliseconds("--duration", *seconds)?;
    let stop = signals::flag()?;
    let mut asking = ControlClient::open(control)?;
    let asked = json!({ "count": count, "for_ms": for_ms, "port": port, "when": when });
    // Before any request: if the file cannot be written, the element is not touched.
    let file = arguments.write.as_deref().map(|file| Recording::begin(file, &mut asking));
    let mut file = file.transpose()?;
    let id = asking.ask(&json!({ "trace_next": asked }))?["id"].take();
    let (mut told, mut missed) = (0_u64, 0);
    let ended = loop {
        let end = stop.load(Ordering::Relaxed);
        let said = asking.ask(&json!({ "traced": { "id": id, "end": end } }))?;
        for frame in said["frames"].as_array().into_iter().flatten() {
            told += 1;
            if !arguments.json {
                say!(
                    "frame {told}, port {}, {} bytes",
                    frame["port"],
                    octets(&frame["came"]).len()
                );
            }
            tell(frame, arguments.json);
            if let Some(file) = &mut file {
                file.add(frame)?;
            }
        }
        missed = said["missed"].as_u64().unwrap_or(missed);
        match said["ended"].as_str() {
            Some(ended) => break ended.to_owned(),
            None if end => break "stop".to_owned(),
            None => clock::sleep_until(clock::now().saturating_add(PAUSE)),
        }
    };
    if let Some(file) = file {
        file.end()?;
    }
    match ended.as_str() {
        "time" => remark!("timeout: {told} of {count} frames in {seconds} s"),
        "program" => remark!("the program was replaced after {told} of {count} frames"),
        "stop" => remark!("stopped after {told} of {count} frames"),
        _ => {}
    }
    if missed > 0 {
        remark!("warning: {missed} matching frames arrived too fast and are not traced");
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(frame: &Value, as_json: bool) {
    match as_json {
        true => say!("{frame}"),
        false => say!("{}", text(frame).trim_end()),
    }
}

/// Formats the trace of a frame, a line for each block.
fn text(frame: &Value) -> String {
    let mut text = String::new();
    for step in frame["steps"].as_array().into_iter().flatten() {
        let word = |name: &str| step[name].as_str().unwrap_or_default();
        let copy = step["copy"].as_u64().filter(|copy| *copy > 0);
        let copy = copy.map_or_else(String::new, |copy| format!("copy {copy} "));
        let _ = writeln!(text, "{copy}{}: {}", word("instance"), word("outcome"));
        for (name, value) in step["after"].as_object().into_iter().flatten() {
            if step["before"].get(name) != Some(value) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = writeln!(text, "    {name} = {value}");
            }
        }
        if let Some(bytes) = step["bytes"].as_str() {
            let _ = writeln!(text, "    bytes {bytes}");
        }
    }
    if let Some(more @ 1..) = frame["left_out"].as_u64() {
        let _ = writeln!(text, "{more} more steps");
    }
    text
}

fn octets(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap_or_default().as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).filter_map(pair).collect()
}

/// Writer of frames as received and as sent.
struct Recording {
    writer: CaptureWriter<File>,
    name: String,
    /// The ports, in the order of interfaces.
    ports: Vec<PortNo>,
    /// Start of the element's clock, in nanoseconds since 1970.
    epoch: u64,
}

impl Recording {
    fn begin(path: &Path, asking: &mut ControlClient) -> Result<Recording, Failure> {
        let program = asking.program()?;
        let name = path.display().to_string();
        let failed = |error: &dyn std::fmt::Display| Failure::usage(format!("{name}: {error}"));
        let file = File::create(path).map_err(|error| failed(&error))?;
        let ports: Vec<PortNo> = program.ports.iter().map(|port| port.number).collect();
        let about = |port: &PortNo| described(&program, *port);
        let first = ports.first().map(about).unwrap_or_else(|| CaptureOptions::pcapng("no port"));
        let mut writer = CaptureWriter::new(file, &first).map_err(|error| failed(&error))?;
        for port in ports.iter().skip(1) {
            writer.add_interface(&about(port)).map_err(|error| failed(&error))?;
        }
        let epoch = clock::since_1970().0.saturating_sub(clock::now().0);
        Ok(Recording { writer, name, ports, epoch })
    }

    fn add(&mut self, frame: &Value) -> Result<(), Failure> {
        let written = self.write(frame);
        written.map_err(|error| Failure::usage(format!("{}: {error}", self.name)))
    }

    fn write(&mut self, frame: &Value) -> Result<(), CaptureError> {
        let at = Nanos(self.epoch.saturating_add(frame["at_ns"].as_u64().unwrap_or(0)));
        let remark = text(frame);
        let came = (&frame["port"], &frame["came"], Direction::Inbound, Some(remark.trim_end()));
        let left = frame["left"].as_array().into_iter().flatten();
        let left = left.map(|it| (&it["port"], &it["bytes"], Direction::Outbound, None));
        for (port, bytes, direction, comment) in std::iter::once(came).chain(left) {
            let interface = self.ports.iter().position(|it| port.as_u64() == Some((*it).into()));
            let bytes = octets(bytes);
            self.writer.write(&Written {
                interface: interface.unwrap_or(0) as u32,
                at,
                bytes: &bytes,
                original_bytes: bytes.len() as u32,
                notes: FrameNotes { direction: Some(direction), comment, ..FrameNotes::default() },
            })?;
        }
        Ok(())
    }

    fn end(self) -> Result<(), Failure> {
        let Recording { writer, name, .. } = self;
        writer.finish(None).map(drop).map_err(|error| Failure::usage(format!("{name}: {error}")))
    }
}

/// Describes a port as an interface of a capture file.
fn described(program: &Program, port: PortNo) -> CaptureOptions {
    let declared = program.ports.iter().find(|it| it.number == port);
    let device = declared.map(|it| it.device.as_str()).filter(|it| !it.is_empty());
    CaptureOptions {
        interface_comment: device
            .map(|device| format!("device {device} in program {}", program.name)),
        comment: Some(format!(
            "frames received and sent by {}; the trace is the comment of the received frame",
            program.name
        )),
        ..CaptureOptions::pcapng(&format!("port {port}"))
    }
}
