//! `planimeter progfe send`: sends a program to an element that accepts programs over Ethernet.

use std::path::PathBuf;
use std::process::ExitCode;

use elements::services::ethernet::sender::{Outcome, Sender};
use netio::afpacket::Options;
use os::clock::{self, WaitSet};
use packet::frame::Batch;
use packet::header::ethernet::{self, Mac};
use packet::time::Nanos;

use crate::cli::failure::{EXIT_USAGE, Failure};
use crate::cli::output::say;

/// Its arguments.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Program file
    file: PathBuf,
    /// Port that leads to the element, such as afpacket:eth1
    #[arg(long, value_name = "SPEC")]
    port: String,
    /// MAC address of the element's port [default: broadcast]
    #[arg(long, value_name = "MAC", value_parser = mac)]
    to: Option<Mac>,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter progfe send bridge.fe.xml --port afpacket:eth1";

fn mac(text: &str) -> Result<Mac, String> {
    ethernet::mac_from_text(text)
        .ok_or_else(|| "invalid MAC address (hint: use the form 02:00:00:00:01:01)".to_owned())
}

/// Sends the program, and prints the result.
pub fn send(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let program = crate::cli::element::read(&arguments.file)?;
    let opened = netio::open::open(&arguments.port, &Options::monitor());
    let mut port = opened.map_err(|error| Failure::usage(error.to_string()))?;
    let own = elements::forward::mac_of(1, port.as_ref());
    let to = arguments.to.unwrap_or(ethernet::BROADCAST);
    // Distinguishes it from earlier sessions of this host.
    let session = clock::since_1970().0 as u32 ^ std::process::id().rotate_left(16);
    let sender = Sender::new(own, to, session, program.as_bytes(), clock::now());
    let mut sender = sender.ok_or_else(|| Failure::usage("the program is too long".to_owned()))?;
    let broken = |error: netio::port::PortError| Failure::usage(error.to_string());
    let (mut batch, mut wait) = (Batch::new(64), WaitSet::new());
    let outcome = loop {
        let now = clock::now();
        batch.clear();
        while batch.room() > 0
            && let Some(frame) = sender.next_frame(now)
        {
            batch.push_bytes(&frame);
        }
        // Frames that the port does not accept now are sent again, like lost ones.
        port.transmit(&mut batch, now).map_err(broken)?;
        batch.clear();
        if port.receive(&mut batch, now).map_err(broken)? == 0 {
            wait.clear();
            match port.descriptor() {
                Some(descriptor) => {
                    wait.add(descriptor, false);
                    let _ = wait.until(Some(sender.due()));
                }
                None => clock::sleep_until(now.saturating_add(Nanos::from_millis(1))),
            }
        }
        batch.frames().iter().for_each(|frame| sender.frame_came(frame.bytes(), now));
        if let Some(outcome) = sender.outcome() {
            break outcome;
        }
    };
    match outcome {
        Outcome::Accepted(said) => {
            say!("{said}");
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Refused(problems) => {
            say!("{}", problems.trim_end());
            Ok(ExitCode::from(EXIT_USAGE))
        }
        Outcome::Busy => Err(Failure::usage(
            "the element is receiving another program (hint: try again later)".to_owned(),
        )),
        Outcome::Silent => Err(Failure::usage(format!(
            "no reply of an element on {} (hint: start it with --ethernet N, where N is its port \
             to this host)",
            arguments.port
        ))),
    }
}
