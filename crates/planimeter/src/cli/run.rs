//! `planimeter run`: measures targets side by side and writes a run's folder.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use instrument::stage::CONNECTIONS_MAX;
use instrument::stream::Stream;
use ports::hiccup;
use results::derive::failed;
use results::store::team::address::Address;
use rustix::process::{Resource, getrlimit, setrlimit};
use snmp::Credentials;

use super::bundle;
use super::failure::{self, Failure, FailureKind};
use super::joining::{self, Asked};
use super::noise::Check;
use super::out::{remark, say, summary, to_stdout};
use super::place;
use super::plan;
use super::progress::Progress;
use super::resume;
use super::team;
use super::words::quoted;
use crate::catalog::{self, taking};
use crate::experiments::{forwarding_rate, rfc9971};
use crate::parameter::shared::{EXACT_ENTRIES_MAX, STREAM, WILDCARD_ENTRIES_MAX};
use crate::parameter::witness::{self, CREDENTIALS, CREDENTIALS_VARIABLE};
use crate::parameter::{Capacity, Effort, Parameters, Table};
use crate::runner::hooks::Hooks;
use crate::runner::{self, Destination, Finished, Plan, RunError};
use crate::target::links::Links;
use crate::target::name::{Link, NameError, TargetKind, Technology};
use crate::target::network;
use crate::target::{Benches, Surroundings};
use crate::workload::tags::RULES_MAX;

/// Seconds of a quick trial over memory.
const SECONDS_MEMORY: f64 = 0.1;

/// Nominal link of workloads over memory, where no real link sets one, bit/s.
const CAPACITY_BPS_MEMORY: f64 = 10e9;

/// Nominal link of a replay, bit/s: more than any data plane takes, so that it gets what it asks for.
const CAPACITY_BPS_REPLAY: f64 = 100e9;

/// Rules with open fields that our switch holds where a module may install many.
const RULES_MODULES_MAX: u32 = 131_072;

/// Open files that a run may want: both ends of its connections, and all else many times over.
const FILES_MAX: u64 = 1 << 14;

/// The experiment that asks for nothing but the rate.
const FORWARDING_RATE: &str = "forwarding-rate";

/// What counts of frames are enough for, which is all that is known over the link `replay`.
const REPLAYED: [&str; 2] = [FORWARDING_RATE, "match-types"];

/// The experiment whose goals have to fit the link.
const RFC9971: &str = "rfc9971";

/// Arguments of `planimeter run`.
#[derive(Clone, clap::Args)]
pub struct Arguments {
    /// Experiments: a study's figure (bianco2010/fig2), a whole study (bianco2010), a workload
    /// (forwarding-rate, throughput, latency), or a Python script (my_module.py); `planimeter list` shows
    /// them. Or a plan (PLAN.toml), in which experiments, targets, parameters and gates are written down, or a bundle
    /// (FILE.tar.gz), whose run is repeated
    #[arg(required_unless_present = "resume", value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// What to measure, first the one that ratios refer to; without any, all that can run here
    #[arg(long = "on", value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Measure the switches of a topology file end to end, after the targets that are named: short for
    /// --on topology:FILE
    #[arg(long = "topology", value_name = "FILE")]
    pub topologies: Vec<String>,
    /// How tester and targets are joined: veth, veth:xdp, memif, memory or replay; TARGET=LINK is for that
    /// target only. Without it, the best link that is allowed and carries all; where none does, each target
    /// has the one that is most like the others'
    #[arg(long = "link", value_name = "[TARGET=]LINK")]
    pub links: Vec<String>,
    /// Measurement effort: length of trials and repeats; quick unless set, a first look. Publish at standard or full
    #[arg(long, value_enum)]
    pub effort: Option<EffortArgument>,
    /// Change a parameter; `planimeter list parameters` shows them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Run a command before a target is met, such as one that puts your device into a mode
    #[arg(long, value_name = "CMD")]
    pub before: Option<String>,
    /// Run a command before each further experiment on a target, and when its switch does not answer any more, such as
    /// one that restarts your device
    #[arg(long, value_name = "CMD")]
    pub between: Option<String>,
    /// Run a command after a target's last trial, whatever came of it
    #[arg(long, value_name = "CMD")]
    pub after: Option<String>,
    /// Seed of everything random; 1 unless said
    #[arg(long)]
    pub seed: Option<u64>,
    /// Folder in which the run's own folder is made; runs unless said
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with an interrupted run, or with that of a plan, at its next trial
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["experiments", "targets", "topologies", "links", "effort", "set", "before", "between", "after", "seed", "out"]
    )]
    pub resume: Option<PathBuf>,
    /// Refuse a noisy machine (exit 4), and exit 3 if a result is irregular or limited by the tester, or the run is not
    /// usable
    #[arg(long)]
    pub strict: bool,
    /// Say what would be done and how long it would take, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the run's record on stdout
    #[arg(long)]
    pub json: bool,
    /// Write the gates of a plan as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the gates of a plan as Markdown, fit for a comment on a pull request
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Send the run to a store for teams as it goes, and what lies beside it and is not there yet:
    /// postgres://USER@HOST:PORT/DATABASE; PLANIMETER_STORE unless said
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Let a bundle, or a stored run that you did not begin on this host, run the commands, scripts and programs that it names,
    /// and use interfaces of this host
    #[arg(long)]
    pub trust: bool,
}

/// Where runs' folders are made unless it is said.
const OUT: &str = "runs";

/// The seed of everything random unless it is said.
const SEED: u64 = 1;

/// The words that `--effort` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EffortArgument {
    /// Five repeats of a fifth of a second
    Quick,
    /// Five repeats of two seconds
    Standard,
    /// Three runs of 60 seconds, as published
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

/// Measures.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let store = team::asked(arguments.store.as_ref())?;
    if let Some(done) = bundle::again::asked(arguments).or_else(|| plan::asked(arguments)) {
        return done;
    }
    let is_dry = arguments.dry_run;
    if let Some(done) = arguments.resume.as_ref().and_then(|it| resume::complete(it, is_dry)) {
        return done;
    }
    let surroundings = place::surroundings()?;
    // Before any thread exists: a process with threads cannot enter a user namespace.
    let (plan, destination) = match &arguments.resume {
        // Another process may go on with it meanwhile.
        Some(folder) if is_dry => (resume::planned(folder, arguments.trust)?, None),
        Some(folder) => {
            let (plan, destination) = resume::opened(folder, arguments.trust)?;
            (plan, Some(destination))
        }
        None => (new_plan(arguments)?, Some(Destination::New(arguments.out_folder()))),
    };
    let Some(destination) = destination.filter(|_| !is_dry) else {
        let Dry { text, trials, seconds } = dry(&plan);
        to_stdout(format_args!("{text}"));
        say!("{}", estimate(trials, seconds));
        return Ok(ExitCode::SUCCESS);
    };
    let finished =
        carried_out(&plan, destination, &surroundings, store.as_ref(), arguments.strict)?;
    let report = finished.folder.join("report.html");
    if arguments.json {
        to_stdout(format_args!("{}", results::store::record_text(&finished.record)));
        remark!("{}", report.display());
    } else {
        summary(&results::summary::markdown(std::slice::from_ref(&finished.record)));
        say!("\n{}", report.display());
    }
    Ok(exit_code(arguments, &finished))
}

/// Measures what the arguments ask for, as a new run, and prints nothing but its progress.
pub(super) fn measure(arguments: &Arguments) -> Result<Finished, Failure> {
    let store = team::asked(arguments.store.as_ref())?;
    let surroundings = place::surroundings()?;
    let plan = new_plan(arguments)?;
    let destination = Destination::New(arguments.out_folder());
    carried_out(&plan, destination, &surroundings, store.as_ref(), arguments.strict)
}

/// Measures what a plan asks for, and sends it to a store for teams, if there is one.
pub(super) fn carried_out(
    plan: &Plan,
    destination: Destination,
    surroundings: &Surroundings,
    store: Option<&Address>,
    is_strict: bool,
) -> Result<Finished, Failure> {
    raise_file_limit();
    let stop = super::stop::flag()?;
    let mut benches = Benches::open(&plan.links_used(), surroundings, &plan.parameters, &stop)
        .map_err(place::failure)?;
    if let Some(noise) = noise(plan, &mut benches, is_strict)? {
        remark!("{noise}");
    }
    let mut progress = Progress::new(&plan.command_line, store);
    let finished = runner::run(plan, destination, &mut benches, &stop, &mut progress);
    progress.finish();
    finished.map_err(explained)
}

/// What the noise check says before a live run.
fn noise(plan: &Plan, benches: &mut Benches, is_strict: bool) -> Result<Option<String>, Failure> {
    if plan.parameters.simulated {
        return Ok(None);
    }
    let cores = benches.all().next().map(|bench| bench.cores().instrument.clone());
    let cores = cores.unwrap_or_default();
    let (trial_s, all_s) = (plan.parameters.seconds, dry(plan).seconds);
    Check { cores: &cores, trial_s, all_s, is_strict }.run(hiccup::watch)
}

/// Raises the limit of open files of this process and of the targets that it starts, as far as the system lets it: some
/// modules open a thousand connections.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(FILES_MAX, |most| most.min(FILES_MAX));
    if limit.current.is_some_and(|files| files < most) {
        limit.current = Some(most);
        // Who may not raise it has fewer connections, which their module tells.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// The arguments of the run that these words were.
pub(super) fn parsed(words: &[String]) -> Option<Arguments> {
    match super::Arguments::try_parse_from(words).ok()?.command {
        super::Command::Run(arguments) => Some(arguments),
        _ => None,
    }
}

impl Arguments {
    /// A run of nothing, with everything else as it is by default.
    pub(super) fn nothing() -> Arguments {
        let words = ["planimeter", "run", "nothing"].map(String::from);
        let parsed = parsed(&words).expect("a run needs an experiment and nothing else");
        Arguments { experiments: Vec::new(), ..parsed }
    }

    /// The folder in which runs' folders are made.
    pub(super) fn out_folder(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| OUT.into())
    }

    /// The seed of everything random.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(SEED)
    }

    /// How much is measured.
    pub(super) fn effort(&self) -> Effort {
        self.effort.map_or(Effort::Quick, Effort::from)
    }
}

fn exit_code(arguments: &Arguments, finished: &Finished) -> ExitCode {
    let Finished { record, folder } = finished;
    if record.partial {
        let again = resume::resume_command(folder);
        remark!("interrupted: what was measured is kept; go on with `{again}`");
        return failure::EXIT_INTERRUPTED.into();
    }
    if failed::has_failed(record) || failed::has_failed_module(record) {
        remark!("{}", failed::sentence(record).unwrap_or_default());
        return failure::EXIT_IRREGULAR.into();
    }
    if arguments.strict && record.is_doubtful() {
        remark!("a result is irregular or limited by the tester, and --strict was given");
        return failure::EXIT_IRREGULAR.into();
    }
    ExitCode::SUCCESS
}

/// What the arguments ask for, checked.
pub(super) fn new_plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let usage = |error: NameError| Failure::usage(error.to_string());
    let mut entries = Vec::new();
    for name in &arguments.experiments {
        for entry in catalog::find(name).map_err(usage)? {
            if !entries.iter().any(|known: &&catalog::Entry| known.id == entry.id) {
                entries.push(entry);
            }
        }
    }
    let effort = arguments.effort();
    let mut parameters = Parameters::at(effort);
    if let Some(text) = place::variable(CREDENTIALS_VARIABLE) {
        let read = witness::credentials(&text);
        let usage = |why| Failure::usage(format!("{CREDENTIALS_VARIABLE}: {why}"));
        parameters.witness.credentials = read.map_err(usage)?;
    }
    for assignment in &arguments.set {
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
    let topologies = arguments.topologies.iter().map(|file| format!("{}{file}", network::PREFIX));
    let named: Result<Vec<TargetKind>, _> =
        arguments.targets.iter().cloned().chain(topologies).map(|name| name.parse()).collect();
    let named = named.map_err(usage)?;
    for kind in &named {
        // What a device's name says of its agent is as if it had been set.
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
    let links = Asked::read(&arguments.links)?.links(&named, parameters.simulated)?;
    let used = links.used(&named);
    if used.iter().any(|link| matches!(link, Link::Veth | Link::VethXdp | Link::Memif)) {
        lab::namespace::enter_rootless().map_err(|need| Failure::need(need.to_string()))?;
    } else if !used.contains(&Link::Nic) && hooks.all().next().is_some() {
        // Without rights the processes of the commands could not be kept together.
        let _ = lab::namespace::enter_rootless();
    }
    let says = |key: &str| arguments.set.iter().any(|it| it.split('=').next() == Some(key));
    let in_process = used.iter().all(|link| matches!(link, Link::Memory | Link::Replay));
    if in_process && effort == Effort::Quick && !says("seconds") && !says("warmup") {
        // Nothing there has to warm up or drain for long.
        parameters.seconds = SECONDS_MEMORY;
        parameters.warmup_s = SECONDS_MEMORY / 5.0;
    }
    // A table that holds all that a controller is going to add.
    let flows = entries.iter().filter_map(|entry| entry.flows);
    let flows = flows.map(|declared| parameters.own.integer(declared) as u32).max().unwrap_or(0);
    if flows > 0 {
        let flows = flows.saturating_add(parameters.entries_most);
        parameters.exact_entries_max = parameters.exact_entries_max.max(flows);
    }
    // A table that holds all that a module is going to install.
    let held = entries.iter().map(|entry| entry.entries).max().unwrap_or(0);
    if !says(EXACT_ENTRIES_MAX) {
        parameters.exact_entries_max = parameters.exact_entries_max.max(held);
    }
    if held > 0 {
        parameters.connections_max = CONNECTIONS_MAX as u32;
    }
    // Rules of modules name one field, and there are many of them.
    if entries.iter().any(|entry| entry.is_module()) && !says(WILDCARD_ENTRIES_MAX) {
        parameters.wildcard_entries_max = parameters.wildcard_entries_max.max(RULES_MODULES_MAX);
    }
    let is_workload = entries.iter().all(|entry| entry.paper.is_none());
    let is_real = |link: &Link| matches!(link, Link::Veth | Link::Nic | Link::NicXdp);
    if !used.iter().any(is_real) && is_workload && !parameters.simulated && !says("capacity") {
        // What a study's link carries, a data plane in memory does with ease.
        let is_replay = used == [Link::Replay];
        let bits = if is_replay { CAPACITY_BPS_REPLAY } else { CAPACITY_BPS_MEMORY };
        parameters.capacity = Capacity::BitsPerSecond(bits);
    }
    let kinds = if named.is_empty() {
        let (mut kinds, missing) = place::all_targets(links.base);
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
    if let Some(line) = joining::told(&kinds, &links) {
        remark!("{line}");
    }
    let entries = measurable(entries, &kinds, &links)?;
    let assignments = arguments.set.clone();
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
        created: crate::environment::wall_clock(),
    };
    checked(&plan)?;
    plan.command_line = command_line(&plan);
    Ok(plan)
}

/// The experiments that are about one of these targets, if one of them can be done over this link; the others, and
/// targets with which one cannot be done, are named and left out.
fn measurable(
    entries: Vec<&'static catalog::Entry>,
    kinds: &[TargetKind],
    links: &Links,
) -> Result<Vec<&'static catalog::Entry>, Failure> {
    let mut kept = Vec::new();
    let mut why = Vec::new();
    let mut can_any = false;
    for entry in entries {
        if !kinds.iter().any(|kind| entry.applies(*kind)) {
            let about: Vec<&str> = entry.technologies.iter().map(|it| it.plural()).collect();
            let about = about.join(", ");
            why.push(format!("{} is about {about}, of which none is to be measured", entry.id));
            continue;
        }
        let concerned = kinds.iter().filter(|kind| entry.applies(**kind));
        let hindered =
            concerned.filter_map(|kind| Some((kind, entry.hindrance(*kind, links.of(*kind))?)));
        why.extend(hindered.map(|(kind, hindrance)| {
            format!("{} on {} over {}: {hindrance}", entry.id, kind.name(), links.of(*kind).name())
        }));
        // What is left out of it is told in the report too.
        can_any |= kinds.iter().any(|kind| entry.can_measure(*kind, links.of(*kind)));
        kept.push(entry);
    }
    why.extend(kinds.iter().filter_map(|kind| {
        Some(format!("{}: {}", kind.name(), catalog::inapplicable(&kept, *kind)?))
    }));
    if !can_any {
        return Err(Failure::usage(why.join("; ")));
    }
    why.iter().for_each(|line| remark!("left out: {line}"));
    Ok(kept)
}

/// Credentials for an SNMP agent, of a file.
fn credentials(file: &Path) -> Result<Credentials, Failure> {
    let usage = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let text =
        std::fs::read_to_string(file).map_err(|error| usage(format!("cannot read: {error}")))?;
    witness::credentials(&text).map_err(usage)
}

/// The streams of a file; the rig has a port on each side of the target.
fn streams(file: &Path) -> Result<Vec<Stream>, Failure> {
    let usage = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let text =
        std::fs::read_to_string(file).map_err(|error| usage(format!("cannot read: {error}")))?;
    instrument::stream::file::read(&text, 2).map_err(|error| usage(error.to_string()))
}

/// What cannot be measured together is refused before anything is started.
fn checked(plan: &Plan) -> Result<(), Failure> {
    for (place, kind) in plan.kinds.iter().enumerate() {
        if plan.kinds[..place].contains(kind) {
            return Err(Failure::usage(format!("--on {} was given twice", kind.name())));
        }
    }
    let learned = plan.parameters.table == Some(Table::Learned);
    if let Some(kind) = plan.kinds.iter().find(|kind| learned && !kind.learns()) {
        return Err(Failure::usage(format!(
            "--set table=learned: {} is no bridge that learns addresses and keeps them: measure bridge, \
             linux-bridge or Open vSwitch",
            kind.name()
        )));
    }
    let tags = plan.parameters.table == Some(Table::Tags);
    let others = [Technology::Bridging, Technology::Routing];
    if let Some(kind) = plan.kinds.iter().find(|it| tags && others.contains(&it.technology())) {
        return Err(Failure::usage(format!(
            "--set table=tags: {} puts no tags on: measure tagger, linux-tagger, OpenFlow switches or a program \
             that tags",
            kind.name()
        )));
    }
    if tags && plan.parameters.entries > RULES_MAX {
        return Err(Failure::usage(format!(
            "--set table=tags has 1 to {RULES_MAX} rules: give --set entries=N"
        )));
    }
    let used = plan.links_used();
    let is_replayed = used.contains(&Link::Replay);
    if is_replayed {
        if let Some(entry) = plan.entries.iter().find(|it| !REPLAYED.contains(&it.id)) {
            return Err(Failure::usage(format!(
                "--link replay goes with {}: {} looks at the frames that come back",
                REPLAYED.join(" and "),
                entry.id
            )));
        }
        if !plan.parameters.streams.is_empty() {
            return Err(Failure::usage("--set stream=FILE: --link replay tells no streams apart"));
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
            "{} is about flows that a controller adds, which {} has none of",
            entry.id,
            kind.name()
        )));
    }
    if let Some(entry) = plan.entries.iter().find(|entry| entry.flows.is_some())
        && is_replayed
    {
        return Err(Failure::usage(format!(
            "{} needs a controller beside the frames: give --link memif, veth or memory",
            entry.id
        )));
    }
    if let Some(leader) = plan.parameters.control.load_of
        && !plan.kinds.contains(&leader)
    {
        let name = leader.name();
        return Err(Failure::usage(format!("--set load_of={name} needs --on {name}")));
    }
    if let (Some(entry), Capacity::BitsPerSecond(bits)) =
        (plan.entries.iter().find(|entry| entry.id == RFC9971), plan.parameters.capacity)
    {
        let checked = rfc9971::check(&entry.its(&plan.parameters), bits as u64);
        checked.map_err(|why| Failure::usage(format!("{}: {why}", entry.id)))?;
    }
    if plan.parameters.simulated && used != [Link::Memory] {
        return Err(Failure::usage("--set rig=sim goes with --link memory"));
    }
    if plan.parameters.simulated && plan.parameters.capacity == Capacity::Auto {
        return Err(Failure::usage(
            "--set capacity=auto measures real time; with rig=sim give bit/s",
        ));
    }
    Ok(())
}

/// The command that repeats the run, with everything that was found by default written out.
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
    words.extend(hooks.map(|(when, command)| format!("--{} {}", when.name(), quoted(command))));
    words.push(format!("--seed {}", plan.seed));
    words.join(" ")
}

/// What a run would do.
pub(super) struct Dry {
    /// Its command and each experiment, a line each.
    pub text: String,
    /// About how many trials.
    pub trials: u64,
    /// About how many seconds they take, what goes before and after their frames included.
    pub seconds: f64,
}

/// What a run would do, and about how long.
pub(super) fn dry(plan: &Plan) -> Dry {
    let mut text = format!("{}\n", plan.command_line);
    if let Some(links) = joining::told(&plan.kinds, &plan.links) {
        text += &format!("  {links}\n");
    }
    for (when, command) in plan.hooks.all() {
        text += &format!("  {}: {command}\n", when.name());
    }
    let (mut trials, mut seconds) = (0, 0.0);
    // What nothing is left of was said to be left out.
    for estimate in plan.estimates().iter().filter(|it| !it.costs.is_empty()) {
        let names: Vec<&str> = estimate.costs.iter().map(|(kind, _)| kind.name()).collect();
        let (id, names, whole) = (estimate.entry.id, names.join(", "), estimate.whole());
        let time = span(whole.seconds);
        text += &format!("  {id}: {} trials on {names}, {time} in all\n", whole.trials);
        trials += whole.trials;
        seconds += whole.seconds;
    }
    Dry { text, trials, seconds }
}

/// How long so many trials take, as far as that can be known before.
pub(super) fn estimate(trials: u64, seconds: f64) -> String {
    let time = span(seconds);
    format!(
        "about {trials} trials, {time}: an estimate; starting targets and filling large tables take longer, and a search \
         may need more trials or fewer"
    )
}

/// A time as people say it.
fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 10.0 => format!("{seconds:.1} seconds"),
        seconds if seconds < 120.0 => format!("{seconds:.0} seconds"),
        seconds if seconds < 7200.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{:.1} hours", seconds / 3600.0),
    }
}

fn explained(error: RunError) -> Failure {
    match error {
        RunError::Target(kind, error) => {
            let failure = place::failure(error);
            Failure { line: format!("{}: {}", kind.name(), failure.line), ..failure }
        }
        RunError::Trial(..) => Failure::need(format!("{error}; what was measured is kept")),
        RunError::Hook(error) => Failure::need(format!("{error}; what was measured is kept")),
        RunError::Store(error) => {
            Failure::usage(format!("{error}; choose another folder with --out DIR"))
        }
        RunError::Unwritten(error, folder) => Failure::usage(format!(
            "{error}; what was measured is kept (hint: make it possible to write there, then go on with `{}`)",
            resume::resume_command(&folder)
        )),
        RunError::Unreported(error, folder) => Failure::usage(format!(
            "{error}; everything is measured and kept, and the report is not written (hint: make it possible to write there, \
             then write it with `{}`)",
            resume::report_command(&folder)
        )),
        RunError::Claims(why) => Failure::need(why),
        RunError::NoResult(error) => {
            Failure { kind: FailureKind::Irregular, line: format!("no trial succeeded: {error}") }
        }
    }
}
