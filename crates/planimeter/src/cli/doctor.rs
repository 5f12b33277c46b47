//! `planimeter doctor`: what this machine allows, what is missing, and how to get it.

mod qualify;

use std::process::ExitCode;

use lab::need::{self, Finding};
use serde_json::json;

use super::failure::Failure;
use super::noise::{Check, SPAN_MAX};
use super::out::say;
use super::place;
use crate::environment;
use crate::parameter::{Effort, Parameters};
use crate::runner::clock::ClockWatch;
use crate::target::veth::lab_error;

/// Arguments of `planimeter doctor`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Measure the tester without a target over each link: its ceiling, its own latency and how well that
    /// is known, its pacing, what it loses, how long it is away (about half a minute)
    #[arg(long)]
    pub calibrate: bool,
    /// Remove what dead runs left behind, and only that
    #[arg(long)]
    pub clean: bool,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Room for the names of findings.
const NAME_WIDTH: usize = 28;

/// What was never tried on real hardware.
const UNTESTED: &[&str] = &[
    "time stamps of network interfaces (link nic): untested on hardware, not in this version",
    "links over vhost-user: not in this version (our elements have such ports)",
    "clocks outside this machine (/dev/pps*, /dev/ptp*), which a run's clock is held against: untested on \
     hardware",
];

/// Looks, and says what was found.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.clean {
        return clean(arguments.json);
    }
    // The survey moves to where this process has rights, and takes itself for root there.
    let surroundings = place::surroundings()?;
    let findings = need::survey();
    let noise = noise()?;
    let mut watch = ClockWatch::begin();
    let environment = environment::read();
    let calibrations = match arguments.calibrate {
        true => Some(qualify::all(&surroundings)?),
        false => None,
    };
    watch.settle();
    let facts = watch.facts();
    if arguments.json {
        let rows: Vec<_> = findings.iter().map(row).collect();
        let senders: serde_json::Map<String, serde_json::Value> = kernel_senders()
            .into_iter()
            .map(|(name, found)| {
                let is_there = found.is_ok();
                let said = found.unwrap_or_else(|why| why);
                (name.to_string(), json!({ "ok": is_there, "said": said }))
            })
            .collect();
        let all = json!({
            "environment": environment,
            "needs": rows,
            "noise": noise,
            "kernel_senders": senders,
            "untested": UNTESTED,
            "clock": facts,
            "calibrations": calibrations.as_deref().map(qualify::json),
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
            say!("         a virtual machine ({hypervisor}): neighbours may disturb it");
        }
        say!("noise    {}", noise.as_deref().unwrap_or("the noise check has no warning"));
        say!("");
        for finding in &findings {
            say!("{}", line(finding));
        }
        for (name, found) in kernel_senders() {
            match found {
                Ok(said) => say!("  ok   {name:NAME_WIDTH$} {said}"),
                Err(why) => say!("  --   {name:NAME_WIDTH$} {why}"),
            }
        }
        say!("");
        for untested in UNTESTED {
            say!("  --   {untested}");
        }
        if let Some(rows) = &calibrations {
            say!("\n{}", qualify::table(rows));
        }
        say!("\n{}", advice(&findings));
    }
    Ok(ExitCode::SUCCESS)
}

/// What the noise check before a run at quick effort says of this machine.
fn noise() -> Result<Option<String>, Failure> {
    let cores =
        lab::pin::Cores::of_machine().map_err(lab_error).map_err(place::failure)?.instrument;
    let trial_s = Parameters::at(Effort::Quick).seconds;
    // Of a run that is long enough for the whole check.
    let all_s = 10.0 * SPAN_MAX.as_secs_f64();
    Check { cores: &cores, trial_s, all_s, is_strict: false }.run(ports::hiccup::watch)
}

/// What of the kernel can send frames past every socket, each tried.
fn kernel_senders() -> [(&'static str, Result<String, String>); 2] {
    let live = match ports::xdp::live::probe() {
        Ok(()) => Ok("ports live:INTERFACE".to_string()),
        Err(error) => Err(format!(
            "for ports live:INTERFACE: needs Linux 5.18 and root (CAP_BPF, CAP_NET_ADMIN): {error}"
        )),
    };
    let pktgen = match std::fs::metadata("/proc/net/pktgen") {
        Ok(_) => Ok("there; nothing here uses it".to_string()),
        Err(_) => {
            Err("not in this kernel, or `modprobe pktgen`; nothing here needs it".to_string())
        }
    };
    [("XDP live frames", live), ("pktgen", pktgen)]
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

fn line(finding: &Finding) -> String {
    match &finding.result {
        Ok(said) => format!("  ok   {:NAME_WIDTH$} {said}", finding.name),
        Err(need) => format!("  --   {:NAME_WIDTH$} for {}: {need}", finding.name, finding.purpose),
    }
}

/// What the user can do with this machine, in a sentence.
fn advice(findings: &[Finding]) -> String {
    let ok = |name: &str| {
        findings.iter().find(|finding| finding.name == name).is_some_and(|it| it.result.is_ok())
    };
    let veth = ok("veth interfaces") && ok("packet sockets");
    match (veth && ok("privilege"), veth && ok("user namespaces")) {
        (true, _) => "Everything that is joined by veth can be measured here: planimeter run bianco2010/fig2 --effort quick".into(),
        (false, true) => "Everything that is joined by veth can be measured here, without root; \
                          as root, kernel threads get cores of their own"
            .into(),
        (false, false) => {
            "Only links in memory can be measured here; with root or user namespaces \
                           also the kernel's bridge and router and Open vSwitch"
                .into()
        }
    }
}

fn clean(as_json: bool) -> Result<ExitCode, Failure> {
    let root = crate::environment::run_root();
    let swept = lab::runfolder::sweep(&root).map_err(lab_error).map_err(place::failure)?;
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
        say!("nothing was left behind under {}", root.display());
    } else {
        for folder in &swept.removed {
            say!("removed {}", folder.display());
        }
        for pid in &swept.killed {
            say!("ended process {pid}");
        }
        if swept.pages > 0 {
            say!("gave back {} huge pages", swept.pages);
        }
    }
    Ok(ExitCode::SUCCESS)
}
