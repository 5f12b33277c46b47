//! `planimeter run`: measures targets in turn, and writes the folder of the run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use clap_complete::engine::ArgValueCompleter;
use os::jitter;
use report::analysis::failed;
use report::finding;
use rustix::process::{Resource, getrlimit, setrlimit};
pub use snmp::Credentials;
use store::campaign::is_campaign;
use store::database::address::Address;
use tester::executor::CONNECTIONS_MAX;
use tester::stream::Stream;

use super::bundle;
use super::completion;
use super::element::read;
use super::failure::{self, Failure, FailureKind};
use super::link_arguments::{self, LinkArguments};
use super::noise::Check;
use super::output::{remark, remark_once, say, summary, to_stdout};
use super::plan;
use super::progress::Progress;
use super::resume;
use super::shell_words::quoted;
use super::team_store;
use super::variables;
use experiments::{forwarding_rate, rfc9971};
use runner::hooks::Hooks;
use runner::python::script;
use runner::{Destination, Finished, Plan, RunError};
use studies::taking;
use targets::links::Links;
use targets::name::{Link, NameError, TargetKind};
use targets::network;
use targets::{Benches, HostPaths};
use workload::Technology;
use workload::parameter::shared::{EXACT_ENTRIES_MAX, STREAM, WILDCARD_ENTRIES_MAX};
use workload::parameter::snmp::{self, CREDENTIALS, CREDENTIALS_VARIABLE};
use workload::parameter::{Capacity, Effort, Parameters, Table};
use workload::tags::RULES_MAX;

/// Duration of a quick trial over memory, in seconds.
const SECONDS_MEMORY: f64 = 0.1;

/// Nominal link rate of workloads over memory, in bit/s.
const CAPACITY_BPS_MEMORY: f64 = 10e9;

/// Nominal link rate of a replay, in bit/s: more than any data plane forwards.
const CAPACITY_BPS_REPLAY: f64 = 100e9;

/// Size of the wildcard table of the built-in switch for modules, which may install many entries.
const RULES_MODULES_MAX: u32 = 131_072;

/// Maximum number of open files of a run: both ends of its connections, and ample room for the
/// rest.
const FILES_MAX: u64 = 1 << 14;

/// Experiment that measures the rate only.
pub(super) const FORWARDING_RATE: &str = "forwarding-rate";

/// Experiments that need only frame counts, as link `replay` has no other results.
const REPLAYED: [&str; 2] = [FORWARDING_RATE, "match-types"];

/// Experiment whose goals must fit the link.
const RFC9971: &str = "rfc9971";

/// Arguments of `planimeter run`.
#[derive(Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Experiments, studies or Python scripts (FILE.py), one plan (FILE.toml), or one bundle
    /// (FILE.tar.gz); see 'planimeter list experiments'
    #[arg(
        required_unless_present = "resume",
        value_name = "EXPERIMENT",
        add = ArgValueCompleter::new(completion::experiments)
    )]
    pub(crate) experiments: Vec<String>,
    /// Target to measure; repeat for more, ratios refer to the first [default: all that can run
    /// here]
    #[arg(
        long = "on",
        value_name = "TARGET",
        add = ArgValueCompleter::new(completion::targets)
    )]
    pub(crate) targets: Vec<String>,
    /// Link between tester and targets, see 'planimeter list links' [default: the best one that all
    /// targets support, otherwise one for each target]
    #[arg(
        long = "link",
        value_name = "[TARGET=]LINK",
        add = ArgValueCompleter::new(completion::links)
    )]
    pub(crate) links: Vec<String>,
    /// Repeats and trial length: quick (5 x 0.2 s), standard (5 x 2 s), full (3 x 60 s) [default:
    /// quick]
    #[arg(long, value_enum, hide_possible_values = true)]
    pub(crate) effort: Option<EffortArgument>,
    /// Set a parameter, see 'planimeter list parameters'
    #[arg(
        long = "set",
        value_name = "KEY=VALUE",
        add = ArgValueCompleter::new(completion::assignments)
    )]
    pub(crate) set: Vec<String>,
    /// Seed of all random choices [default: 1]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Folder in which the run creates its own folder [default: runs]
    #[arg(long = "output", value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Continue an interrupted run or campaign at its next trial
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["experiments", "targets", "topologies", "links", "effort", "set", "before", "between", "after", "seed", "out"]
    )]
    pub(crate) resume: Option<PathBuf>,
    /// Print what would be measured and the estimated duration, and exit
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit with 4 if the machine is noisy, and with 3 if a result is irregular or tester-limited
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the record as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the gates of a plan to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the gates of a plan to this file as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Measure a topology file as one target, like --on topology:FILE
    #[arg(long = "topology", value_name = "FILE")]
    pub(crate) topologies: Vec<String>,
    /// Command to run before the first experiment on a target
    #[arg(long = "setup", value_name = "CMD")]
    pub(crate) before: Option<String>,
    /// Command to run before each further experiment on a target, and when its switch stops
    /// replying
    #[arg(long = "prepare", value_name = "CMD")]
    pub(crate) between: Option<String>,
    /// Command to run after the last trial on a target, even if trials failed
    #[arg(long = "cleanup", value_name = "CMD")]
    pub(crate) after: Option<String>,
    /// Team store: postgres://USER@HOST:PORT/DATABASE [env: PLANIMETER_STORE]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// Let a bundle or another user's run execute its commands, scripts and programs, and use
    /// interfaces of this host
    #[arg(long = "allow-commands")]
    pub(crate) trust: bool,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter run throughput --on switch --on ovs --link veth
  planimeter run bianco2010/fig2 --effort standard --output results
  planimeter run latency --on bridge --set frame=64,1518 --set load=50 --dry-run
  planimeter run plan.toml --junit gates.xml
  planimeter run --resume runs/RUN";

/// Default parent folder of runs.
const OUT: &str = "runs";

/// Default seed.
const SEED: u64 = 1;

/// Values of `--effort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EffortArgument {
    /// 5 repeats of 0.2 s
    Quick,
    /// 5 repeats of 2 s
    Standard,
    /// 3 repeats of 60 s, as in the studies
    Full,
}

impl From<EffortArgument> for Effort {
    fn from(argument: EffortArgument) -> Effort {
        match argument {
            EffortArgument::Quick => Effort::Quick,
            EffortArgument::Standard => Effort::Standard,
            EffortArgument::Full => Effort::Full,
        }
    }
}

/// What a command line asks to measure.
enum Request<'a> {
    /// Experiments on targets.
    Experiments,
    /// The plan in this file.
    Plan(&'a str),
    /// The plan in this bundle.
    Bundle(&'a str),
    /// The rest of the campaign in this folder.
    Campaign(&'a Path),
    /// The rest of the run in this folder.
    Resume(&'a Path),
}

impl Request<'_> {
    fn of(arguments: &Arguments) -> Result<Request<'_>, Failure> {
        let named = |ending| arguments.experiments.iter().find(|name| name.ends_with(ending));
        let request = match &arguments.resume {
            Some(folder) if is_campaign(folder) => return Ok(Request::Campaign(folder)),
            Some(folder) => Request::Resume(folder),
            None => match (named(bundle::ENDING), named(plan::ENDING)) {
                (Some(file), _) => return Ok(Request::Bundle(file)),
                _ if arguments.trust => {
                    return Err(Failure::usage(
                        "--allow-commands needs a bundle or a stored run (hint: run 'planimeter \
                         run FILE.tar.gz --allow-commands' or 'planimeter run --resume RUN \
                         --allow-commands')",
                    ));
                }
                (_, Some(file)) => return Ok(Request::Plan(file)),
                (None, None) => Request::Experiments,
            },
        };
        let gates = [("--junit", &arguments.junit), ("--markdown", &arguments.markdown)];
        match gates.iter().find(|(_, file)| file.is_some()) {
            Some((flag, _)) => Err(Failure::usage(format!(
                "{flag} needs a plan with gates (hint: run 'planimeter run PLAN.toml {flag} FILE' \
                 or 'planimeter compare')"
            ))),
            None => Ok(request),
        }
    }
}

/// Measures, and prints the summary.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let store = team_store::asked(arguments.store.as_ref())?;
    let is_dry = arguments.dry_run;
    let resumed = match Request::of(arguments)? {
        Request::Plan(file) => return plan::run(arguments, file),
        Request::Bundle(file) => return bundle::rerun::run(arguments, file),
        Request::Campaign(folder) => return plan::resume(arguments, folder),
        Request::Resume(folder) if resume::is_complete(folder)? => {
            return resume::complete(folder, is_dry);
        }
        Request::Resume(folder) => Some(folder),
        Request::Experiments => None,
    };
    let surroundings = variables::surroundings()?;
    // Before any thread exists: a process with threads cannot enter a user namespace.
    let (plan, destination) = match resumed {
        // Another process may continue the run at the same time.
        Some(folder) if is_dry => (resume::planned(folder, arguments.trust)?, None),
        Some(folder) => {
            let (plan, destination) = resume::opened(folder, arguments.trust)?;
            (plan, Some(destination))
        }
        None => (new_plan(arguments)?, Some(Destination::New(arguments.out_folder()))),
    };
    let Some(destination) = destination.filter(|_| !is_dry) else {
        let DryRun { text, trials, seconds } = dry(&plan);
        to_stdout(format_args!("{text}"));
        say!("{}", estimate(trials, seconds));
        return Ok(ExitCode::SUCCESS);
    };
    let finished =
        execute_plan(&plan, destination, &surroundings, store.as_ref(), arguments.strict)?;
    let report = finished.folder.join("report.html");
    if arguments.json {
        to_stdout(format_args!("{}", store::record_text(&finished.record)));
        remark!("{}", report.display());
    } else {
        summary(&report::summary::markdown(std::slice::from_ref(&finished.record)));
        say!("\n{}", report.display());
    }
    Ok(exit_code(&finished, arguments.strict))
}

/// Measures a new run with these arguments; prints its progress only.
pub(super) fn measure(arguments: &Arguments) -> Result<Finished, Failure> {
    let store = team_store::asked(arguments.store.as_ref())?;
    let surroundings = variables::surroundings()?;
    let plan = new_plan(arguments)?;
    let destination = Destination::New(arguments.out_folder());
    execute_plan(&plan, destination, &surroundings, store.as_ref(), arguments.strict)
}

/// Measures a plan, and sends the run to a team store, if there is one.
pub(super) fn execute_plan(
    plan: &Plan,
    destination: Destination,
    surroundings: &HostPaths,
    store: Option<&Address>,
    is_strict: bool,
) -> Result<Finished, Failure> {
    raise_file_limit();
    let stop = super::signals::flag()?;
    let mut benches = Benches::open(&plan.links_used(), surroundings, &plan.parameters, &stop)
        .map_err(variables::failure)?;
    if let Some(noise) = noise(plan, &mut benches, is_strict)? {
        remark!("warning: {noise}");
    }
    let mut progress = Progress::new(&plan.command_line, store);
    let finished = runner::run(plan, destination, &mut benches, &stop, &mut progress);
    progress.finish();
    finished.map_err(into_failure)
}

/// Runs the noise check before a live run; returns its warning.
fn noise(plan: &Plan, benches: &mut Benches, is_strict: bool) -> Result<Option<String>, Failure> {
    if plan.parameters.simulated {
        return Ok(None);
    }
    let cores = benches.all().next().map(|bench| bench.cores().instrument.clone());
    let cores = cores.unwrap_or_default();
    let (trial_s, all_s) = (plan.parameters.seconds, dry(plan).seconds);
    Check { cores: &cores, trial_s, all_s, is_strict }.run(jitter::watch)
}

/// Raises the limit of open files of this process and of the targets that it starts, up to the hard
/// limit: some modules open a thousand connections.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(FILES_MAX, |most| most.min(FILES_MAX));
    if limit.current.is_some_and(|files| files < most) {
        limit.current = Some(most);
        // With a lower limit, a module opens fewer connections and reports this.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// Returns the parent folder of runs: the given one, or the default.
pub(super) fn out_folder(out: Option<&PathBuf>) -> PathBuf {
    out.cloned().unwrap_or_else(|| OUT.into())
}

/// Parses the command line of a run.
pub(super) fn parsed(words: &[String]) -> Option<Arguments> {
    let words = words.iter().map(OsString::from);
    let words = super::earlier_flags::current(words, &mut |_| {});
    match super::Arguments::try_parse_from(words).ok()?.command {
        super::Command::Run(arguments) => Some(arguments),
        _ => None,
    }
}

impl Arguments {
    /// Returns the default arguments, without experiments.
    pub(super) fn empty() -> Arguments {
        let words = ["planimeter", "run", "nothing"].map(String::from);
        let parsed = parsed(&words).expect("a run needs an experiment and nothing else");
        Arguments { experiments: Vec::new(), ..parsed }
    }

    /// Returns the parent folder of the run.
    pub(super) fn out_folder(&self) -> PathBuf {
        out_folder(self.out.as_ref())
    }

    /// Returns the seed.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED)
    }

    /// Returns the measurement effort.
    pub(super) fn effort(&self) -> Effort {
        self.effort.map_or(Effort::Quick, Effort::from)
    }
}

/// Returns the exit code of a run, and prints the reason if it is not success.
pub(super) fn exit_code(finished: &Finished, is_strict: bool) -> ExitCode {
    let Finished { record, folder } = finished;
    if record.partial {
        let again = resume::resume_command(folder);
        remark!("interrupted: partial results are kept (hint: continue with '{again}')");
        return failure::EXIT_INTERRUPTED.into();
    }
    if failed::has_failed(record) || failed::has_failed_module(record) {
        remark!("{}", finding::failure(record).unwrap_or_default());
        return failure::EXIT_IRREGULAR.into();
    }
    if is_strict && record.is_doubtful() {
        remark!("a result is irregular or tester-limited (--strict)");
        return failure::EXIT_IRREGULAR.into();
    }
    ExitCode::SUCCESS
}

/// Converts the arguments to a checked plan.
pub(super) fn new_plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let usage = |error: NameError| Failure::usage(error.to_string());
    let mut entries = Vec::new();
    for name in &arguments.experiments {
        for entry in script::find(name).map_err(usage)? {
            if !entries.iter().any(|known: &&studies::CatalogEntry| known.id == entry.id) {
                entries.push(entry);
            }
        }
    }
    let effort = arguments.effort();
    let mut parameters = Parameters::at(effort);
    if let Some(text) = variables::variable(CREDENTIALS_VARIABLE) {
        let read = snmp::credentials(&text);
        let usage = |why| Failure::usage(format!("{CREDENTIALS_VARIABLE}: {why}"));
        parameters.witness.credentials = read.map_err(usage)?;
    }
    let assignments: Vec<String> = arguments
        .set
        .iter()
        .map(|given| {
            let now = taking::current(&entries, given);
            if now != *given {
                remark_once(taking::renamed(given, &now));
            }
            now.into_owned()
        })
        .collect();
    for assignment in &assignments {
        let without = taking::assign(&mut parameters, &entries, assignment);
        let without = without.map_err(|error| Failure::usage(error.to_string()))?;
        if !without.is_empty() {
            remark!("--set {assignment} does not apply to {}", without.join(", "));
        }
        if let Some((STREAM, file)) = assignment.split_once('=') {
            parameters.streams = streams(Path::new(file))?;
        }
        if let Some((CREDENTIALS, file)) = assignment.split_once('=') {
            parameters.witness.credentials = credentials(Path::new(file))?;
        }
    }
    if let Some(name) = &mut parameters.control.load_of {
        *name = targets::name::current(name).into_owned();
    }
    let topologies = arguments.topologies.iter().map(|file| format!("{}{file}", network::PREFIX));
    let named: Result<Vec<TargetKind>, _> =
        arguments.targets.iter().cloned().chain(topologies).map(|name| name.parse()).collect();
    let named = named.map_err(usage)?;
    for kind in &named {
        // The agent in the name of a device is equivalent to `--set snmp=`.
        if let TargetKind::Device(device) = kind
            && let Some(agent) = &device.said().snmp
        {
            let set = parameters.set(&format!("snmp={agent}"));
            set.map_err(|error| Failure::usage(format!("{}: {error}", kind.name())))?;
        }
    }
    let hooks = Hooks {
        before: arguments.before.clone(),
        between: arguments.between.clone(),
        after: arguments.after.clone(),
    };
    let links = LinkArguments::read(&arguments.links)?.links(&named, parameters.simulated)?;
    let used = links.used(&named);
    let is_in_lab =
        |link: &Link| matches!(link, Link::Veth | Link::VethXdp | Link::VethLive | Link::Memif);
    if used.iter().any(is_in_lab) {
        testbed::namespace::enter_rootless().map_err(|need| Failure::need(need.to_string()))?;
    } else if !used.contains(&Link::Nic) && hooks.all().next().is_some() {
        // Without privileges, the processes of the commands cannot be grouped.
        let _ = testbed::namespace::enter_rootless();
    }
    let says = |key: &str| assignments.iter().any(|it| it.split('=').next() == Some(key));
    let in_process = used.iter().all(|link| matches!(link, Link::Memory | Link::Replay));
    if in_process && effort == Effort::Quick && !says("seconds") && !says("warmup") {
        // Warm-up and drain are short in one process.
        parameters.seconds = SECONDS_MEMORY;
        parameters.warmup_s = SECONDS_MEMORY / 5.0;
    }
    // The table must hold all flows that a controller adds.
    let flows = entries.iter().filter_map(|entry| entry.flows);
    let flows = flows.map(|declared| parameters.own.integer(declared) as u32).max().unwrap_or(0);
    if flows > 0 {
        let flows = flows.saturating_add(parameters.entries_most);
        parameters.exact_entries_max = parameters.exact_entries_max.max(flows);
    }
    // The table must hold all entries that a module installs.
    let held = entries.iter().map(|entry| entry.entries).max().unwrap_or(0);
    if !says(EXACT_ENTRIES_MAX) {
        parameters.exact_entries_max = parameters.exact_entries_max.max(held);
    }
    if held > 0 {
        parameters.connections_max = CONNECTIONS_MAX as u32;
    }
    // Modules install many wildcard entries that match one field.
    if entries.iter().any(|entry| entry.is_module()) && !says(WILDCARD_ENTRIES_MAX) {
        parameters.wildcard_entries_max = parameters.wildcard_entries_max.max(RULES_MODULES_MAX);
    }
    let is_workload = entries.iter().all(|entry| entry.paper.is_none());
    let is_real = |link: &Link| matches!(link, Link::Veth | Link::Nic | Link::NicXdp);
    if !used.iter().any(is_real) && is_workload && !parameters.simulated && !says("capacity") {
        // A data plane in memory is faster than the link of a study.
        let is_replay = used == [Link::Replay];
        let bits = if is_replay { CAPACITY_BPS_REPLAY } else { CAPACITY_BPS_MEMORY };
        parameters.capacity = Capacity::BitsPerSecond(bits);
    }
    let kinds = if named.is_empty() {
        let (mut kinds, missing) = variables::all_targets(links.base);
        for name in entries.iter().flat_map(|entry| entry.default_targets) {
            let kind: TargetKind = name.parse().map_err(usage)?;
            if !kinds.contains(&kind) && variables::missing(kind, links.base).is_none() {
                kinds.push(kind);
            }
        }
        if flows > 0 {
            kinds.retain(|kind| kind.technology() == Technology::OpenFlow);
        }
        for line in missing {
            remark!("{line}");
        }
        // Only a target that the user names is reported as left out.
        kinds.retain(|kind| entries.iter().any(|entry| entry.applies(*kind)));
        kinds
    } else {
        named
    };
    if let Some(line) = link_arguments::told(&kinds, &links) {
        remark!("{line}");
    }
    let entries = measurable(entries, &kinds, &links)?;
    let seed = arguments.seed();
    let mut plan = Plan {
        entries,
        kinds,
        links,
        hooks,
        effort,
        parameters,
        assignments,
        seed,
        command_line: String::new(),
        created: runner::environment::wall_clock(),
    };
    checked(&plan)?;
    plan.command_line = command_line(&plan);
    Ok(plan)
}

/// Returns the experiments that apply to one of these targets. Others, and targets that an
/// experiment cannot measure over their link, are skipped with a message. It is an error if nothing
/// can be measured.
fn measurable(
    entries: Vec<&'static studies::CatalogEntry>,
    kinds: &[TargetKind],
    links: &Links,
) -> Result<Vec<&'static studies::CatalogEntry>, Failure> {
    let mut kept = Vec::new();
    let mut why = Vec::new();
    let mut can_any = false;
    for entry in entries {
        if !kinds.iter().any(|kind| entry.applies(*kind)) {
            let about: Vec<&str> = entry.technologies.iter().map(|it| it.plural()).collect();
            let about = about.join(", ");
            why.push(format!("{} is for {about}, and no target is one", entry.id));
            continue;
        }
        let concerned = kinds.iter().filter(|kind| entry.applies(**kind));
        let hindered = concerned
            .filter_map(|kind| Some((kind, entry.unsupported_reason(*kind, links.of(*kind))?)));
        why.extend(hindered.map(|(kind, hindrance)| {
            format!("{} on {} over {}: {hindrance}", entry.id, kind.name(), links.of(*kind).name())
        }));
        // The report names the skipped targets too.
        can_any |= kinds.iter().any(|kind| entry.can_measure(*kind, links.of(*kind)));
        kept.push(entry);
    }
    why.extend(kinds.iter().filter_map(|kind| {
        Some(format!("{}: {}", kind.name(), studies::inapplicable(&kept, *kind)?))
    }));
    if !can_any {
        return Err(Failure::usage(why.join("; ")));
    }
    why.iter().for_each(|line| remark!("skipped: {line}"));
    Ok(kept)
}

/// Reads the credentials for an SNMP agent from a file.
fn credentials(file: &Path) -> Result<Credentials, Failure> {
    let usage = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    snmp::credentials(&read(file)?).map_err(usage)
}

/// Reads the streams of a file; the tester has one port on each side of the target.
fn streams(file: &Path) -> Result<Vec<Stream>, Failure> {
    let usage = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    tester::stream::file::read(&read(file)?, 2).map_err(|error| usage(error.to_string()))
}

/// Rejects combinations that cannot be measured, before anything is started.
fn checked(plan: &Plan) -> Result<(), Failure> {
    for (place, kind) in plan.kinds.iter().enumerate() {
        if plan.kinds[..place].contains(kind) {
            return Err(Failure::usage(format!("--on {} is given twice", kind.name())));
        }
    }
    let learned = plan.parameters.table == Some(Table::Learned);
    if let Some(kind) = plan.kinds.iter().find(|kind| learned && !kind.learns()) {
        return Err(Failure::usage(format!(
            "--set table=learned: {} does not learn and keep addresses (hint: use bridge, \
             linux-bridge or Open vSwitch)",
            kind.name()
        )));
    }
    let tags = plan.parameters.table == Some(Table::Tags);
    let others = [Technology::Bridging, Technology::Routing];
    if let Some(kind) = plan.kinds.iter().find(|it| tags && others.contains(&it.technology())) {
        return Err(Failure::usage(format!(
            "--set table=tags: {} does not tag frames (hint: use tagger, linux-tagger, an OpenFlow \
             switch or a tagging program)",
            kind.name()
        )));
    }
    if tags && plan.parameters.entries > RULES_MAX {
        return Err(Failure::usage(format!(
            "--set table=tags: too many entries (hint: use --set entries=N with 1 to {RULES_MAX})"
        )));
    }
    let used = plan.links_used();
    let is_replayed = used.contains(&Link::Replay);
    if is_replayed {
        if let Some(entry) = plan.entries.iter().find(|it| !REPLAYED.contains(&it.id)) {
            return Err(Failure::usage(format!(
                "--link replay supports only {}: {} checks the received frames",
                REPLAYED.join(" and "),
                entry.id
            )));
        }
        if !plan.parameters.streams.is_empty() {
            return Err(Failure::usage(
                "--set stream=FILE: --link replay does not support streams",
            ));
        }
    }
    if let Some(entry) = plan.entries.iter().find(|entry| entry.id == FORWARDING_RATE) {
        let is_tagged = tags || plan.kinds.iter().any(|it| it.technology() == Technology::Tagging);
        let checked = forwarding_rate::check(&entry.its(&plan.parameters), is_tagged);
        checked.map_err(|why| Failure::usage(format!("{}: {why}", entry.id)))?;
    }
    if let Some(entry) = plan.entries.iter().find(|entry| entry.flows.is_some())
        && let Some(kind) = plan.kinds.iter().find(|it| it.technology() != Technology::OpenFlow)
    {
        return Err(Failure::usage(format!(
            "{} needs a controller, which {} does not support",
            entry.id,
            kind.name()
        )));
    }
    if let Some(entry) = plan.entries.iter().find(|entry| entry.flows.is_some())
        && is_replayed
    {
        return Err(Failure::usage(format!(
            "{} needs a controller, which --link replay does not support (hint: use --link memif, \
             veth or memory)",
            entry.id
        )));
    }
    if let Some(name) = &plan.parameters.control.load_of {
        let leader: TargetKind =
            name.parse().map_err(|error| Failure::usage(format!("--set load_of: {error}")))?;
        if !plan.kinds.contains(&leader) {
            return Err(Failure::usage(format!(
                "--set load_reference={name}: not a target of the run (hint: add --on {name})"
            )));
        }
    }
    if let (Some(entry), Capacity::BitsPerSecond(bits)) =
        (plan.entries.iter().find(|entry| entry.id == RFC9971), plan.parameters.capacity)
    {
        let checked = rfc9971::check(&entry.its(&plan.parameters), bits as u64);
        checked.map_err(|why| Failure::usage(format!("{}: {why}", entry.id)))?;
    }
    if plan.parameters.simulated && used != [Link::Memory] {
        return Err(Failure::usage("--set simulate=true needs --link memory"));
    }
    if plan.parameters.simulated && plan.parameters.capacity == Capacity::Auto {
        return Err(Failure::usage(
            "--set capacity=auto needs real time (hint: with simulate=true, set capacity in bit/s)",
        ));
    }
    Ok(())
}

/// Returns the command that repeats the run, with all defaults written out.
fn command_line(plan: &Plan) -> String {
    let mut words = vec!["planimeter".to_string(), "run".to_string()];
    words.extend(plan.entries.iter().map(|entry| quoted(&entry.asked())));
    for kind in &plan.kinds {
        words.push(format!("--on {}", quoted(kind.name())));
    }
    words.extend(plan.links.words().map(|link| format!("--link {}", quoted(&link))));
    words.push(format!("--effort {}", plan.effort.name()));
    words.extend(plan.assignments.iter().map(|assignment| format!("--set {}", quoted(assignment))));
    let hooks = plan.hooks.all();
    words.extend(hooks.map(|(when, command)| format!("{} {}", when.flag(), quoted(command))));
    words.push(format!("--seed {}", plan.seed));
    words.join(" ")
}

/// Result of a dry run.
pub(super) struct DryRun {
    /// The command, and a line for each experiment.
    pub text: String,
    /// Estimated number of trials.
    pub trials: u64,
    /// Estimated duration in seconds, including the overhead of trials.
    pub seconds: f64,
}

/// Describes the trials of a run and their estimated duration.
pub(super) fn dry(plan: &Plan) -> DryRun {
    let mut text = format!("{}\n", plan.command_line);
    if let Some(links) = link_arguments::told(&plan.kinds, &plan.links) {
        text += &format!("  {links}\n");
    }
    for (when, command) in plan.hooks.all() {
        text += &format!("  {}: {command}\n", when.name());
    }
    let (mut trials, mut seconds) = (0, 0.0);
    // Experiments without targets were reported as skipped.
    for estimate in plan.estimates().iter().filter(|it| !it.costs.is_empty()) {
        let names: Vec<&str> = estimate.costs.iter().map(|(kind, _)| kind.name()).collect();
        let (id, names, whole) = (estimate.entry.id, names.join(", "), estimate.whole());
        let time = span(whole.seconds);
        text += &format!("  {id}: {} trials on {names}, {time} in total\n", whole.trials);
        trials += whole.trials;
        seconds += whole.seconds;
    }
    DryRun { text, trials, seconds }
}

/// Formats the estimated duration of this number of trials.
pub(super) fn estimate(trials: u64, seconds: f64) -> String {
    let time = span(seconds);
    format!(
        "estimate: {trials} trials, {time}; starting targets and filling large tables take longer, \
         and a search may need more or fewer trials"
    )
}

/// Formats a duration with its unit.
fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 10.0 => format!("{seconds:.1} seconds"),
        seconds if seconds < 120.0 => format!("{seconds:.0} seconds"),
        seconds if seconds < 7200.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{:.1} hours", seconds / 3600.0),
    }
}

fn into_failure(error: RunError) -> Failure {
    match error {
        RunError::Target(kind, error) => {
            let failure = variables::failure(error);
            Failure { line: format!("{}: {}", kind.name(), failure.line), ..failure }
        }
        RunError::Trial(..) => Failure::need(format!("{error}; partial results are kept")),
        RunError::Hook(error) => Failure::need(format!("{error}; partial results are kept")),
        RunError::Store(error) => {
            Failure::usage(format!("{error} (hint: choose another folder with --output DIR)"))
        }
        RunError::Unwritten(error, folder) => Failure::usage(format!(
            "{error}; partial results are kept (hint: make the folder writable, then continue with \
             '{}')",
            resume::resume_command(&folder)
        )),
        RunError::Unreported(error, folder) => Failure::usage(format!(
            "{error}; all results are kept, but the report is not written (hint: make the folder \
             writable, then run '{}')",
            resume::report_command(&folder)
        )),
        RunError::Claims(why) => Failure::need(why),
        RunError::NoResult(error) => {
            Failure { kind: FailureKind::Irregular, line: format!("no trial succeeded: {error}") }
        }
    }
}
