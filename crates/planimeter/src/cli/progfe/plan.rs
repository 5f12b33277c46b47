//! `planimeter progfe plan`: shows what changes if a program replaces another, or that of a running
//! element, which learned state and counters survive, and which blocks the fast path has.

use std::path::PathBuf;
use std::process::ExitCode;

use elements::fast_path::block_paths;
use progfe::program::Program;
use serde_json::{Value, json};

use super::agent::ControlClient;
use super::load;
use crate::cli::failure::Failure;
use crate::cli::output::{remark, say};

/// Arguments of `plan`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The current and the new program; only the new one with --control-socket, or to see its blocks
    #[arg(value_name = "PROGRAM", required = true, num_args = 1..=2)]
    programs: Vec<PathBuf>,
    /// Control socket of the element that runs the current program
    #[arg(long = "control-socket", value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter progfe plan old.fe.xml new.fe.xml
  planimeter progfe plan router
  planimeter progfe plan new.fe.xml --control-socket element.sock";

/// Runs the command.
pub fn plan(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let told = match (&arguments.control, &arguments.programs[..]) {
        (None, [old, new]) => {
            let new = load(new)?;
            let all = progfe::plan::plan(&load(old)?, &new);
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            json!({ "differences": all, "fast_path": blocks(new)? })
        }
        (None, [new]) => json!({ "fast_path": blocks(load(new)?)? }),
        (Some(control), [new]) => {
            // Files that it names are in its folder here, not in the element's.
            let text = load(new)?.to_xml();
            let name = new.display().to_string();
            ControlClient::open(control)?.ask(&json!({ "plan": { "name": name, "text": text } }))?
        }
        (None, _) => {
            let what = "a program is missing (hint: give the current and the new program, or the \
                        new one and --control-socket SOCKET)";
            return Err(Failure::usage(what.to_owned()));
        }
        (Some(_), _) => {
            let what = "--control-socket: too many programs (hint: give the new program only)";
            return Err(Failure::usage(what.to_owned()));
        }
    };
    match arguments.json {
        true => say!("{told}"),
        false => say_plan(&told, arguments.control.is_some()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns which blocks of a program the fast path has.
fn blocks(program: Program) -> Result<Value, Failure> {
    block_paths(program)
        .map_err(|problems| Failure::usage(problems.to_string().trim_end().to_owned()))
}

fn say_plan(told: &Value, is_running: bool) {
    if let Some(problems) = told["problems"].as_str().filter(|it| !it.is_empty()) {
        remark!("{problems}");
    }
    let list = |name: &str| told[name].as_array().map(Vec::as_slice).unwrap_or_default();
    for line in list("differences").iter().filter_map(Value::as_str) {
        say!("{line}");
    }
    if is_running {
        say_state(told);
    }
    for (path, blocks) in told["fast_path"].as_object().into_iter().flatten() {
        let names = blocks.as_array().into_iter().flatten().filter_map(Value::as_str);
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            say!("fast path: {}: {}", path.replace('_', " "), names.join(", "));
        }
    }
}

/// Prints what happens to the state of a running element.
fn say_state(told: &Value) {
    let list = |name: &str| told[name].as_array().map(Vec::as_slice).unwrap_or_default();
    if list("differences").is_empty() {
        say!("no changes to {}", told["runs"].as_str().unwrap_or_default());
    }
    for block in list("state") {
        let name = block["instance"].as_str().unwrap_or_default();
        let held =
            block["holds"].as_object().into_iter().flatten().map(|(what, held)| match held["rows"]
                .as_u64()
            {
                Some(rows) => format!("{what} {rows} rows"),
                None => format!("{what} {held}"),
            });
        let dropped = block["dropped_frames"].as_u64().filter(|frames| *frames > 0);
        let all: Vec<String> =
            held.chain(dropped.map(|frames| format!("{frames} frames dropped"))).collect();
        say!("= {name}: {}: {}", block["fate"].as_str().unwrap_or_default(), all.join(", "));
    }
    if let Some(links @ 1..) = told["links_lost"].as_u64() {
        say!("= counters of {links} used links: lost");
    }
}
