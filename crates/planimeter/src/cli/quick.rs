//! `planimeter quick`: a first measurement, in seconds and without configuration.
//!
//! It chooses experiment, targets, links and parameters; each link is an ordinary run with its own
//! folder. Invariants:
//! - Over memory it needs no privileges and no other programs.
//! - The parameters alone bound the work, so that `planimeter run` repeats each run exactly.

mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap_complete::engine::ArgValueCompleter;
use serde_json::json;
use testbed::namespace::{self, PrivilegeSource};

use super::completion;
use super::failure::Failure;
use super::output::{remark, say};
use super::run;
use super::team_store;
use super::variables;
use report::analysis::REPEATS_WANTED;
use runner::{Destination, Plan};
use targets::name::{Link, TargetKind};
use workload::parameter::shared;

/// Experiment; without parameters it measures one entry and a large table.
const EXPERIMENT: &str = "forwarding-rate";

/// Experiment that the output suggests next.
const EXPERIMENT_NEXT: &str = "throughput";

/// Targets; each link measures those that support it. None needs another program.
const TARGETS: [TargetKind; 5] = [
    TargetKind::Switch,
    TargetKind::Bridge,
    TargetKind::Router,
    TargetKind::LinuxBridge,
    TargetKind::LinuxRouter,
];

/// Duration of a trial, in seconds.
const SECONDS: f64 = 0.1;

/// Duration of the traffic before a trial, in seconds.
const WARMUP_S: f64 = 0.02;

/// Arguments of `planimeter quick`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Link to measure over; repeat for more [default: memory, and veth where permitted]
    #[arg(long = "link", value_name = "LINK", add = ArgValueCompleter::new(completion::links))]
    links: Vec<Link>,
    /// Set a parameter, see 'planimeter list forwarding-rate'
    #[arg(
        long = "set",
        value_name = "KEY=VALUE",
        add = ArgValueCompleter::new(completion::quick_assignments)
    )]
    set: Vec<String>,
    /// Folder in which each run creates its own folder [default: runs]
    #[arg(long = "output", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the records as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter quick
  planimeter quick --link memory --output results";

/// Privileges of this process, as far as links need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rights {
    /// None: only links in memory.
    Memory,
    /// Networks in a user namespace.
    Rootless,
    /// Networks, and kernel threads on chosen cores.
    Root,
}

impl Rights {
    /// Finds the privileges; without root, the process enters a user namespace if possible.
    fn find() -> Rights {
        let entered = namespace::enter_rootless();
        match (variables::best_link(), entered) {
            (Link::Veth, Ok(PrivilegeSource::Rootless)) => Rights::Rootless,
            (Link::Veth, Ok(PrivilegeSource::Privileged)) => Rights::Root,
            _ => Rights::Memory,
        }
    }

    /// Returns the links to measure over.
    fn links(self) -> &'static [Link] {
        match self {
            Rights::Memory => &[Link::Memory],
            Rights::Rootless | Rights::Root => &[Link::Memory, Link::Veth],
        }
    }

    /// Returns what more privileges would add.
    fn lacking(self) -> Option<&'static str> {
        match self {
            Rights::Memory => Some(
                "As root, or where user namespaces are allowed, this command also measures the \
                 Linux bridge and router over veth (hint: run 'planimeter doctor' to see what is \
                 missing).",
            ),
            Rights::Rootless => {
                Some("As root, the Linux bridge and router run on a core of their own.")
            }
            Rights::Root => None,
        }
    }
}

/// Measures over each link in turn, and prints a table for each.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let store = team_store::asked(None)?;
    // Before the process enters a user namespace, in which it appears to be root.
    let surroundings = variables::surroundings()?;
    // Before any thread exists: a process with threads cannot enter a user namespace.
    let rights = Rights::find();
    let is_by_rights = arguments.links.is_empty();
    let links = if is_by_rights { rights.links() } else { &arguments.links };
    let plans = links.iter().map(|link| run::new_plan(&request(arguments, *link, rights)));
    let plans = plans.collect::<Result<Vec<Plan>, Failure>>()?;
    let mut code = ExitCode::SUCCESS;
    let (mut records, mut reports) = (Vec::new(), Vec::new());
    for plan in &plans {
        let out = Destination::New(run::out_folder(arguments.out.as_ref()));
        let finished = run::execute_plan(plan, out, &surroundings, store.as_ref(), false)?;
        if !arguments.json {
            say!("{}", table::text(&finished.record));
        }
        reports.push((plan.links.base, finished.folder.join("report.html")));
        code = run::exit_code(&finished, false);
        records.push(finished.record);
        if code != ExitCode::SUCCESS {
            break;
        }
    }
    if arguments.json {
        say!("{:#}", json!({ "runs": records }));
        reports.iter().for_each(|(_, report)| remark!("{}", report.display()));
        return Ok(code);
    }
    if let Some(lacking) = rights.lacking().filter(|_| is_by_rights) {
        table::wrapped(lacking).iter().for_each(|line| say!("{line}"));
        say!("");
    }
    for (link, report) in &reports {
        say!("Report over {}: {}", link.name(), report.display());
    }
    say!("Next: {}", next(links));
    Ok(code)
}

/// Returns the request of the run over a link.
fn request(arguments: &Arguments, link: Link, rights: Rights) -> run::Arguments {
    let mut targets = Vec::new();
    for kind in TARGETS.into_iter().filter(|kind| kind.runs_on(link)) {
        // Without rights, the run itself reports what its link lacks.
        let has_rights = rights != Rights::Memory;
        match variables::missing(kind, link).filter(|_| has_rights) {
            Some(why) => remark!("skipped target {}: {why}", kind.name()),
            None => targets.push(kind.name().to_string()),
        }
    }
    // Of two values for a key, the last one counts.
    let defaults = [
        format!("{}={REPEATS_WANTED}", shared::REPEATS.key),
        format!("{}={SECONDS}", shared::SECONDS.key),
        format!("{}={WARMUP_S}", shared::WARMUP.key),
    ];
    let key = |text: &str| text.split('=').next().unwrap_or_default().to_string();
    let is_own = |text: &String| arguments.set.iter().all(|set| key(set) != key(text));
    run::Arguments {
        experiments: vec![EXPERIMENT.into()],
        targets,
        links: vec![link.name().into()],
        set: defaults.into_iter().filter(is_own).chain(arguments.set.clone()).collect(),
        ..run::Arguments::empty()
    }
}

/// Returns the command to try next.
fn next(links: &[Link]) -> String {
    let [kind, on] = match links.contains(&Link::Veth) {
        true => [TargetKind::LinuxBridge.name(), ""],
        false => [TargetKind::Bridge.name(), " --link memory"],
    };
    let ours = TargetKind::Switch.name();
    format!("planimeter run {EXPERIMENT_NEXT} --on {ours} --on {kind}{on}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::shell_words;

    fn asked(links: &[Link], set: &[&str]) -> Arguments {
        let set = set.iter().map(ToString::to_string).collect();
        Arguments { links: links.to_vec(), set, out: None, json: false }
    }

    #[test]
    fn each_link_measures_the_targets_that_support_it() {
        let names = |link| request(&asked(&[], &[]), link, Rights::Memory).targets;
        let ours = [TargetKind::Switch, TargetKind::Bridge, TargetKind::Router];
        assert_eq!(names(Link::Memory), ours.map(TargetKind::name));
        assert!(names(Link::Veth).ends_with(&[TargetKind::LinuxRouter.name().to_string()]));
    }

    #[test]
    fn a_given_parameter_replaces_the_default_and_the_plan_measures_both_table_sizes() {
        let repeats = format!("{}=1", shared::REPEATS.key);
        let request = request(&asked(&[], &[&repeats]), Link::Memory, Rights::Memory);
        assert_eq!(request.set.iter().filter(|set| **set == repeats).count(), 1);
        assert_eq!(request.set.len(), 3, "{:?}", request.set);
        let plan = run::new_plan(&request).unwrap();
        let cost = plan.estimates()[0].whole();
        assert_eq!(cost.trials, 2 * 3, "two table sizes on three targets");
    }

    #[test]
    fn more_rights_add_links() {
        assert_eq!(Rights::Memory.links(), [Link::Memory]);
        assert_eq!(Rights::Rootless.links(), Rights::Root.links());
        assert!(Rights::Memory.lacking().unwrap().contains("Linux bridge and router over veth"));
        assert_eq!(Rights::Root.lacking(), None);
    }

    #[test]
    fn the_suggested_command_is_a_valid_run() {
        for links in [Rights::Memory.links(), Rights::Root.links()] {
            let request = run::parsed(&shell_words::split(&next(links))).unwrap();
            for target in &request.targets {
                target.parse::<TargetKind>().unwrap();
            }
            studies::find(&request.experiments[0]).unwrap();
        }
    }
}
