//! `planimeter proxy`: forwards the control channel between a production controller and its
//! switches unchanged, and measures its times.
//!
//! A separate thread forwards the bytes; it writes nothing and waits only for them. Its events are
//! in a bounded queue until they are printed. At the end the command prints a summary, and writes a
//! run's folder that `planimeter report` reads. TLS passes through between addresses without TLS;
//! with `ssl:` or `pssl:` the proxy terminates TLS itself.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use channel::tls::Files;
use channel::{ChannelError, Tls, Url};
use openflow::version::End;
use serde_json::{Value, json};
use tester::proxy::decode::Event;
use tester::proxy::overhead::{self, RoundTrips};
use tester::proxy::relay::RelayEnd;
use tester::proxy::{CONNECTIONS, Endpoint, Proxy, ProxyEvent};

use super::connections;
use super::failure::Failure;
use super::output::{remark, say, to_stdout};
use crate::proxy_run::{self, RecordedTraffic};

mod summary;

/// Limit of events in the queue; events beyond are counted and lost.
const NEWS_MAX: usize = 65_536;

/// Interval at which the end of the proxy is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `planimeter proxy`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Listen for the side that has no option here: ptcp:PORT[:IP], pssl:PORT[:IP] or punix:FILE
    #[arg(long, value_name = "URL")]
    listen: Option<String>,
    /// Switch side: address to connect to, or to listen on
    #[arg(long, value_name = "URL")]
    switch: Option<String>,
    /// Controller side: address to connect to, or to listen on
    #[arg(long, value_name = "URL")]
    controller: Option<String>,
    /// Stop after this time [default: at Ctrl-C]
    #[arg(long = "duration", value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Folder in which the run creates its own folder
    #[arg(long = "output", value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Print a line of JSON for each reply, error and connection, and the summary as the last line
    #[arg(long)]
    json: bool,
    /// Private key of --certificate, PEM
    #[arg(long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// Certificate for ssl: and pssl: on both sides, PEM
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// CA certificate that verifies both sides, PEM
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    #[command(flatten)]
    connections: connections::ConnectionArguments,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter proxy --listen ptcp:6653 --controller tcp:127.0.0.1:6654
  planimeter proxy --listen ptcp:6653 --switch tcp:192.0.2.1:6653 --duration 60";

/// Forwards until it is stopped, then prints the measured times.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let [controller, switch] = sides(arguments)?;
    let ends_after = arguments.seconds.map(Duration::try_from_secs_f64).transpose();
    let ends_after = ends_after.map_err(|error| {
        Failure::usage(format!("--duration: {error} (hint: use a positive number)"))
    })?;
    let tls = credentials(arguments)?;
    let open = |url: &Url| Endpoint::open(url, tls.as_ref()).map_err(|error| unusable(&error));
    let doors = [open(&controller)?, open(&switch)?];
    let added = overhead::measure().map_err(|error| {
        Failure::need(format!("cannot measure over the loopback interface: {error}"))
    })?;
    let [controllers, switches] = doors;
    let mut proxy = Proxy::new(controllers, switches, tls.clone());
    proxy.set_limits(arguments.connections.limits(CONNECTIONS));
    let stop = super::signals::flag()?;
    let listens = proxy.listens();
    for (side, url) in ["the controller", "switches"].into_iter().zip(&listens) {
        if let Some(url) = url {
            remark!("listening for {side} on {url}; stop with Ctrl-C");
            if url.accepts_anyone(arguments.ca_cert.is_some()) {
                remark!(
                    "warning: {url} accepts any client without authentication (hint: use pssl: with --ca-cert, or listen on 127.0.0.1)"
                );
            }
        }
    }
    let begun = proxy_run::RecordingStart::now();
    let (sender, receiver) = sync_channel(NEWS_MAX);
    let left_out = Arc::new(AtomicU64::new(0));
    let (flag, lost) = (Arc::clone(&stop), Arc::clone(&left_out));
    let carrying = thread::spawn(move || {
        proxy.run(&flag, &mut |news| {
            if sender.try_send(news).is_err() {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    loop {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(news) => tell(&news, arguments.json, &begun),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if ends_after.is_some_and(|span| begun.elapsed() >= span) {
            stop.store(true, Ordering::Relaxed);
        }
    }
    let tallies = carrying.join().map_err(|_| Failure::need("the proxy's thread failed"))?;
    let tallies = tallies.map_err(|error| Failure::need(format!("the proxy failed: {error}")))?;
    let left_out = left_out.load(Ordering::Relaxed);
    let done = RecordedTraffic { tallies, added, begun, left_out, sides: [controller, switch] };
    summary(arguments, &done)?;
    Ok(ExitCode::SUCCESS)
}

/// Stores the run and prints the results.
fn summary(arguments: &Arguments, done: &RecordedTraffic) -> Result<(), Failure> {
    let folder = match done.tallies.is_empty() {
        true => None,
        false => {
            let stored = proxy_run::store(done, &arguments.out);
            Some(stored.map_err(|error| Failure::usage(error.to_string()))?)
        }
    };
    if arguments.json {
        say!("{}", proxy_run::json(done, folder.as_deref()));
    } else {
        to_stdout(format_args!("{}", summary::words(done)));
        if let Some(folder) = &folder {
            say!("{}", folder.join("report.html").display());
        }
    }
    if done.tallies.is_empty() {
        remark!("no connection was made: nothing is stored");
    }
    Ok(())
}

/// Returns the addresses of the controller side and of the switch side.
fn sides(arguments: &Arguments) -> Result<[Url; 2], Failure> {
    let read = |flag: &str, text: &Option<String>| -> Result<Option<Url>, Failure> {
        let url = text.as_ref().map(|text| text.parse());
        url.transpose().map_err(|error: ChannelError| Failure::usage(format!("{flag}: {error}")))
    };
    let listen = read("--listen", &arguments.listen)?;
    let switch = read("--switch", &arguments.switch)?;
    let controller = read("--controller", &arguments.controller)?;
    if let Some(url) = listen.as_ref().filter(|url| !url.is_passive()) {
        let why = ChannelError::WrongDirection(url.clone());
        return Err(Failure::usage(format!("--listen: {why}")));
    }
    match (controller, switch, listen) {
        (Some(controller), Some(switch), None) => Ok([controller, switch]),
        (Some(controller), None, Some(listen)) => Ok([controller, listen]),
        (None, Some(switch), Some(listen)) => Ok([listen, switch]),
        (Some(_), Some(_), Some(_)) => Err(Failure::usage(
            "--listen, --switch and --controller cannot be combined (hint: leave one out)",
        )),
        _ => Err(Failure::usage(
            "two sides are required (hint: use --listen ptcp:6653:IP --controller tcp:IP:PORT if \
             switches connect, or --listen ptcp:6653:IP --switch tcp:IP:PORT if a switch listens)",
        )),
    }
}

fn credentials(arguments: &Arguments) -> Result<Option<Tls>, Failure> {
    let files = Files {
        private_key: arguments.private_key.clone(),
        certificate: arguments.certificate.clone(),
        ca_cert: arguments.ca_cert.clone(),
    };
    if files.is_empty() {
        return Ok(None);
    }
    Tls::load(&files).map(Some).map_err(|error| Failure::usage(error.to_string()))
}

fn unusable(error: &ChannelError) -> Failure {
    let remedy = match error {
        ChannelError::AddressInUse(_) => {
            " (hint: choose another address, or stop the other process)"
        }
        _ => "",
    };
    Failure::usage(format!("{error}{remedy}"))
}

/// Prints an event.
fn tell(news: &ProxyEvent, as_json: bool, begun: &proxy_run::RecordingStart) {
    if as_json {
        say!("{}", line(news, begun));
        return;
    }
    match news {
        ProxyEvent::Opened(number, [controller, switch]) => {
            remark!("connection {number}: {switch} with {controller}");
        }
        ProxyEvent::Closed(number, over, name) => match over {
            RelayEnd::Ended => remark!("connection {number} of {name} closed"),
            RelayEnd::Broken(end, why) => {
                remark!("connection {number} of {name}: {}: {why}", side(*end));
            }
        },
        ProxyEvent::Failed(why) => remark!("{why}"),
        ProxyEvent::Passed(..) => {}
    }
}

fn side(end: End) -> &'static str {
    if end == End::Switch { "switch" } else { "controller" }
}

fn line(news: &ProxyEvent, begun: &proxy_run::RecordingStart) -> Value {
    match news {
        ProxyEvent::Opened(number, [controller, switch]) => json!({
            "event": "opened", "connection": number, "controller": controller, "switch": switch,
        }),
        ProxyEvent::Closed(number, over, name) => {
            let (how, why) = match over {
                RelayEnd::Ended => ("ended", None),
                RelayEnd::Broken(end, why) => (side(*end), Some(why)),
            };
            json!({ "event": "closed", "connection": number, "switch": name, "how": how, "why": why })
        }
        ProxyEvent::Failed(why) => json!({ "event": "failed", "why": why }),
        ProxyEvent::Passed(number, at, event) => {
            let mut line = passed(event);
            line["connection"] = (*number).into();
            line["at_ns"] = at.since(begun.at).0.into();
            line
        }
    }
}

fn passed(event: &Event) -> Value {
    match event {
        Event::Answered { by, what, xid, took, parts } => json!({
            "event": "answered", "asked_by": side(*by), "what": what, "xid": xid, "ns": took.0, "parts": parts,
        }),
        Event::Updated { xid, flow_mods, took, barrier } => json!({
            "event": "updated", "xid": xid, "flow_mods": flow_mods, "ns": took.0, "barrier_ns": barrier.0,
        }),
        Event::Failed { by, error, xid, about } => json!({
            "event": "error", "sent_by": side(*by), "error": error, "xid": xid,
            "about": about.map(|(what, _)| what), "after_ns": about.map(|(_, after)| after.0),
        }),
    }
}

/// Formats the delay that the proxy adds.
fn added_words(added: &RoundTrips) -> String {
    match added.ns() {
        Some(ns) => format!(
            "the proxy adds {:.1} us per round trip (median of {} round trips over loopback)",
            ns / 1e3,
            added.through.count()
        ),
        None => "the delay that the proxy adds could not be measured".into(),
    }
}
