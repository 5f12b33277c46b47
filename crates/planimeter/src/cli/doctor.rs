//! `planimeter doctor`: checks the requirements of targets on this machine, and prints fixes.

mod self_test;

use std::process::ExitCode;

use serde_json::json;
use testbed::requirement::Finding;

use super::failure::Failure;
use super::noise::{Check, SPAN_MAX};
use super::output::say;
use super::variables;
use runner::clock::ClockWatch;
use runner::environment;
use targets::veth::lab_error;
use workload::parameter::{Effort, Parameters};

/// Arguments of `planimeter doctor`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Measure the tester itself over each link, without a target: maximum rate, latency, pacing,
    /// loss and stalls (about half a minute)
    #[arg(long)]
    pub(crate) calibrate: bool,
    /// Remove leftover resources of runs that were killed, and exit
    #[arg(long)]
    pub(crate) clean: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter doctor
  planimeter doctor --calibrate
  planimeter doctor --clean";

/// Width of the column with states.
const STATE_WIDTH: usize = 8;

/// Width of the column with names.
const NAME_WIDTH: usize = 28;

/// Features that were never tested on real hardware.
const UNTESTED: &[&str] = &[
    "hardware time stamps of network interfaces (link nic): not in this version",
    "links over vhost-user: not in this version (built-in elements have such ports)",
    "PPS and PTP clocks (/dev/pps*, /dev/ptp*) as references of a run's clock: never tested on \
     hardware",
];

/// Checks the machine, and prints the findings.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.clean {
        return clean(arguments.json);
    }
    // The survey enters a user namespace, in which this process appears to be root.
    let surroundings = variables::surroundings()?;
    let findings = testbed::survey();
    let noise = noise()?;
    let mut watch = ClockWatch::begin();
    let environment = environment::read();
    let calibrations = match arguments.calibrate {
        true => Some(self_test::all(&surroundings)?),
        false => None,
    };
    watch.settle();
    let facts = watch.facts();
    if arguments.json {
        let rows: Vec<_> = findings.iter().map(row).collect();
        let senders: serde_json::Map<String, serde_json::Value> = kernel_senders()
            .into_iter()
            .map(|Sender { name, purpose, found }| {
                let is_there = found.is_ok();
                let said = found.unwrap_or_else(|why| why);
                (name.into(), json!({ "ok": is_there, "purpose": purpose, "said": said }))
            })
            .collect();
        let all = json!({
            "environment": environment,
            "needs": rows,
            "noise": noise,
            "kernel_senders": senders,
            "untested": UNTESTED,
            "clock": facts,
            "calibrations": calibrations.as_deref().map(self_test::json),
        });
        say!("{all}");
    } else {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
        say!("system   {}, Linux {}", shown(&environment.system), shown(&environment.kernel));
        say!(
            "cpu      {}, {} cores, clock source {}",
            shown(&environment.cpu_model),
            environment.cpu_cores.unwrap_or(0),
            shown(&environment.clock_source)
        );
        say!("clock    {}", facts.words());
        if let Some(hypervisor) = &environment.virtualised {
            say!("         virtual machine ({hypervisor}): other guests may disturb measurements");
        }
        say!("noise    {}", noise.as_deref().unwrap_or("low"));
        say!("");
        for finding in &findings {
            say!("{}", line(finding));
        }
        for Sender { name, purpose, found } in kernel_senders() {
            let (state, said) = state(&found);
            say!("  {state:STATE_WIDTH$} {name:NAME_WIDTH$} for {purpose}: {said}");
        }
        say!("");
        for untested in UNTESTED {
            say!("  untested {untested}");
        }
        if let Some(rows) = &calibrations {
            say!("\n{}", self_test::table(rows));
        }
        say!("\n{}", advice(&findings));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the noise check of a run with quick effort.
fn noise() -> Result<Option<String>, Failure> {
    let cores = testbed::affinity::Cores::of_machine()
        .map_err(lab_error)
        .map_err(variables::failure)?
        .instrument;
    let trial_s = Parameters::at(Effort::Quick).seconds;
    // The run is assumed to be long enough for the whole check.
    let all_s = 10.0 * SPAN_MAX.as_secs_f64();
    Check { cores: &cores, trial_s, all_s, is_strict: false }.run(os::jitter::watch)
}

/// A kernel feature that sends frames without a socket, after a test of it.
struct Sender {
    name: &'static str,
    purpose: &'static str,
    found: Result<String, String>,
}

/// Tests the kernel features that send frames without a socket.
fn kernel_senders() -> [Sender; 2] {
    let live = match netio::xdp::live::probe() {
        Ok(()) => Ok("works".to_string()),
        Err(error) => Err(format!(
            "{error} (hint: run as root (CAP_BPF, CAP_NET_ADMIN) on Linux 5.18 or later)"
        )),
    };
    let pktgen = match std::fs::metadata("/proc/net/pktgen") {
        Ok(_) => Ok("works".to_string()),
        Err(_) => Err("no /proc/net/pktgen (hint: run 'modprobe pktgen')".to_string()),
    };
    let senders = [
        ("XDP live frames", "ports live:INTERFACE", live),
        ("pktgen", "other programs; planimeter does not need it", pktgen),
    ];
    senders.map(|(name, purpose, found)| Sender { name, purpose, found })
}

/// Returns the state of a requirement, and what was found.
fn state<E: ToString>(found: &Result<String, E>) -> (&'static str, String) {
    match found {
        Ok(said) => ("ok", said.clone()),
        Err(why) => ("missing", why.to_string()),
    }
}

fn row(finding: &Finding) -> serde_json::Value {
    let (ok, said) = match &finding.result {
        Ok(said) => (true, said.clone()),
        Err(need) => (false, need.to_string()),
    };
    json!({
        "name": finding.name,
        "purpose": finding.purpose,
        "optional": finding.optional,
        "ok": ok,
        "said": said,
    })
}

/// Formats a finding as a line: state, name, purpose, and what was found with a fix.
fn line(finding: &Finding) -> String {
    let Finding { name, purpose, result, .. } = finding;
    let (state, said) = state(result);
    format!("  {state:STATE_WIDTH$} {name:NAME_WIDTH$} for {purpose}: {said}")
}

/// Returns a sentence on the targets that this machine supports.
fn advice(findings: &[Finding]) -> String {
    let ok = |name: &str| {
        findings.iter().find(|finding| finding.name == name).is_some_and(|it| it.result.is_ok())
    };
    let veth = ok("veth interfaces") && ok("packet sockets");
    match (veth && ok("privilege"), veth && ok("user namespaces")) {
        (true, _) => "This machine supports all targets with link veth (hint: run 'planimeter run \
                      bianco2010/fig2 --effort quick')"
            .into(),
        (false, true) => "This machine supports all targets with link veth, without root (hint: \
                          run as root to pin kernel threads to cores)"
            .into(),
        (false, false) => {
            "This machine supports only links in memory (hint: run as root, or allow user \
             namespaces, to measure the kernel's bridge and router and Open vSwitch)"
                .into()
        }
    }
}

fn clean(as_json: bool) -> Result<ExitCode, Failure> {
    let root = runner::environment::run_root();
    let swept = testbed::runfolder::sweep(&root).map_err(lab_error).map_err(variables::failure)?;
    if as_json {
        say!(
            "{}",
            json!({
                "removed": swept.removed,
                "killed": swept.killed,
                "huge_pages": swept.pages,
            })
        );
    } else if swept.removed.is_empty() && swept.killed.is_empty() {
        say!("no leftover resources under {}", root.display());
    } else {
        for folder in &swept.removed {
            say!("removed {}", folder.display());
        }
        for pid in &swept.killed {
            say!("ended process {pid}");
        }
        if swept.pages > 0 {
            say!("released {} huge pages", swept.pages);
        }
    }
    Ok(ExitCode::SUCCESS)
}
