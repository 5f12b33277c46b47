//! `planimeter list`: lists experiments, targets and parameters, and stored runs.

mod about;
mod runs;

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use clap_complete::engine::ArgValueCompleter;

use super::completion;
use super::failure::Failure;
use super::output::say;
use elements::hardware_model::model::keys::Key;
use elements::hardware_model::model::{self, Model, known};
use record::Metric;
use runner::python::script;
use targets::name::{Link, TargetKind};
use workload::nearest;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// Arguments of `planimeter list`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// experiments, targets, links, models, metrics, parameters or runs; or an experiment, study or
    /// script: its parameters, source and limits, and how to read it
    #[arg(
        value_parser = wanted,
        value_name = "WHAT|EXPERIMENT|SCRIPT.py",
        add = ArgValueCompleter::new(completion::listed)
    )]
    pub(crate) what: Option<ListSelection>,
    /// Folder of stored runs, for 'list runs' [default: runs]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// List only stored runs that match: experiment=, target=, link=, metric= (adds its trend),
    /// since=, until=, effort=, version=, partial=, doubtful=
    #[arg(long = "filter", value_name = "KEY=VALUE")]
    pub(crate) filters: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List the runs of a team store, after those of DIR are sent to it:
    /// postgres://USER@HOST:PORT/DATABASE [env: PLANIMETER_STORE]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

/// Examples at the end of the help.
const EXAMPLES: &str = "\
Examples:
  planimeter list experiments
  planimeter list bianco2010/fig2
  planimeter list runs --filter target=ovs --filter metric=throughput_pps";

/// Selection of a list.
#[derive(Clone, PartialEq, Eq)]
pub enum ListSelection {
    /// Items of one kind.
    Kind(ListKind),
    /// An experiment, a study or a script.
    Experiment(String),
}

fn wanted(text: &str) -> Result<ListSelection, String> {
    let is_known = |entry: &studies::CatalogEntry| entry.id == text || entry.set() == text;
    if script::is_script(text) || studies::entries().any(is_known) {
        return Ok(ListSelection::Experiment(text.into()));
    }
    let kinds: Vec<_> =
        ListKind::value_variants().iter().filter_map(ListKind::to_possible_value).collect();
    let names: Vec<&str> = kinds.iter().map(clap::builder::PossibleValue::get_name).collect();
    let experiments = studies::entries().flat_map(|entry| [entry.set(), entry.id]);
    let known = names.iter().copied().chain(experiments);
    let unknown = || match nearest::asked(text, known) {
        Some(asked) => format!("unknown (hint: {asked})"),
        None => format!(
            "unknown (hint: use {}, an experiment, a study, or a script SCRIPT.py)",
            names.join(", ")
        ),
    };
    ListKind::from_str(text, false).map(ListSelection::Kind).map_err(|_| unknown())
}

/// Kinds of things that can be listed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ListKind {
    /// Experiments of studies and standards
    Experiments,
    /// Targets that can be measured
    Targets,
    /// Links between tester and target
    Links,
    /// Models of hardware switches
    Models,
    /// Metrics of results
    Metrics,
    /// Parameters of --set
    Parameters,
    /// Stored runs
    Runs,
}

/// Longest name with its description on the same line; longer names have it below.
const NAME_WIDTH_MAX: usize = 48;

/// A list: its heading, and rows of name and description.
struct Section {
    what: ListKind,
    heading: &'static str,
    rows: Vec<(String, String)>,
}

/// Prints the lists.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.what == Some(ListSelection::Kind(ListKind::Runs)) {
        return runs::run(arguments);
    }
    if arguments.folder.is_some() || !arguments.filters.is_empty() || arguments.store.is_some() {
        return Err(Failure::usage(
            "DIR, --filter and --store need stored runs (hint: run 'planimeter list runs [DIR] \
             [--filter KEY=VALUE]')",
        ));
    }
    let mut texts = Vec::new();
    let sections: Vec<Section> = match &arguments.what {
        // A list of everything must appear immediately; estimates would take most of the time.
        None if !arguments.json => {
            let is_own = |(name, _): &(String, String)| name.starts_with(' ');
            let without = |section: Section| {
                let rows = section.rows.into_iter().filter(|row| !is_own(row)).collect();
                Section { rows, ..section }
            };
            sections().into_iter().map(without).collect()
        }
        None => sections(),
        Some(ListSelection::Kind(what)) => {
            sections().into_iter().filter(|section| section.what == *what).collect()
        }
        Some(ListSelection::Experiment(name)) => {
            let entries = script::find(name);
            let entries = entries.map_err(|error| Failure::usage(error.to_string()))?;
            texts = about::of(&entries);
            vec![experiments(entries.into_iter())]
        }
    };
    if arguments.json {
        let rows = |section: &Section| -> serde_json::Value {
            let row = |(name, about): &(String, String)| serde_json::json!({ "name": name, "about": about });
            match section.what {
                ListKind::Models => known::all().iter().map(|model| model_json(model)).collect(),
                _ => section.rows.iter().map(row).collect(),
            }
        };
        let mut all: serde_json::Map<String, serde_json::Value> =
            sections.iter().map(|it| (it.heading.to_string(), rows(it))).collect();
        all.extend(texts.into_iter().map(|(heading, text)| (heading.to_string(), text.into())));
        say!("{}", serde_json::Value::Object(all));
        return Ok(ExitCode::SUCCESS);
    }
    for (index, section) in sections.iter().enumerate() {
        if index > 0 {
            say!("");
        }
        say!("{}", section.heading);
        let short = |name: &String| Some(name.len()).filter(|&width| width <= NAME_WIDTH_MAX);
        let width = section.rows.iter().filter_map(|(name, _)| short(name)).max().unwrap_or(0);
        for (name, about) in &section.rows {
            match short(name) {
                Some(_) => say!("  {name:width$}  {about}"),
                None => say!("  {name}\n  {:width$}  {about}", ""),
            }
        }
    }
    for (heading, text) in texts {
        say!("\n{heading}");
        text.lines().for_each(|line| say!("{}", format!("  {line}").trim_end()));
    }
    if arguments.what.is_none() {
        say!(
            "\nRun 'planimeter list EXPERIMENT' for its parameters, its source, how to read it and \
             its limits, and 'planimeter list models' for the values of models."
        );
    }
    if arguments.what == Some(ListSelection::Kind(ListKind::Models)) {
        known::all().iter().for_each(|model| say!("\n{}", model_text(model)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the parameters of a model: keys with their values, meanings and sources.
fn known_of(model: &Model) -> impl Iterator<Item = (&'static Key, String, &str)> {
    let mut values = model.clone();
    model::keys::KEYS.iter().filter_map(move |key| {
        let source = model.sources.get(key.path)?;
        Some((key, key.show(*(key.at)(&mut values)), source.as_str()))
    })
}

fn model_text(model: &Model) -> String {
    let mut lines = format!("{}: {}", model.name, model.about);
    for (key, value, source) in known_of(model) {
        write!(lines, "\n  {} = {value}: {}\n      {source}", key.path, key.about)
            .expect("writing to a String cannot fail");
    }
    if model.sources.is_empty() {
        lines += "\n  no values: no costs and no limits";
    }
    lines
}

fn model_json(model: &Model) -> serde_json::Value {
    let row = |(key, value, source): (&Key, String, &str)| {
        let number =
            value.parse::<u64>().map_or_else(|_| value.clone().into(), serde_json::Value::from);
        serde_json::json!({ "key": key.path, "value": number, "about": key.about, "source": source })
    };
    let known: Vec<_> = known_of(model).map(row).collect();
    serde_json::json!({ "name": model.name, "about": model.about, "known": known })
}

/// Returns a parameter with its values and its meaning.
fn declared(it: &Parameter) -> (String, String) {
    let takes = it.takes.words(it.unit);
    let default = if it.default.is_empty() { String::new() } else { format!(" ({})", it.default) };
    (format!("  --set {}={takes}", it.key), format!("{}{default}", it.help))
}

/// Returns experiments with their parameters.
fn experiments(entries: impl Iterator<Item = &'static studies::CatalogEntry>) -> Section {
    let rows = entries.flat_map(|entry| {
        let name = (entry.id.to_string(), entry.title.to_string());
        std::iter::once(name).chain(entry.declared().into_iter().map(declared))
    });
    Section { what: ListKind::Experiments, heading: "experiments", rows: rows.collect() }
}

/// Returns the name and the description of an item.
fn text(name: &str, about: &str) -> (String, String) {
    (name.to_string(), about.to_string())
}

/// Returns the names and descriptions of links.
pub(super) fn links() -> Vec<(String, String)> {
    vec![
        text("memory", "rings of frames in the memory of one process; needs no privileges"),
        text(
            Link::Replay.name(),
            "built-in data planes only: frames from memory are counted by port; needs no \
             privileges",
        ),
        text(
            Link::Veth.name(),
            "virtual Ethernet pairs between network namespaces; needs root or user namespaces",
        ),
        text(
            Link::VethXdp.name(),
            "virtual Ethernet pairs that the target uses by AF_XDP; needs root",
        ),
        text(
            Link::VethLive.name(),
            "virtual Ethernet pairs on which the kernel generates and receives the tester's \
             frames, for rates of several million per second; needs root",
        ),
        text(
            Link::Memif.name(),
            "shared memory between processes, also with DPDK, which needs huge pages",
        ),
        text(
            Link::Nic.name(),
            "interfaces of this host that are cabled to an external device; needs root",
        ),
        text(
            Link::NicXdp.name(),
            "interfaces of this host that the tester uses by AF_XDP; needs root",
        ),
    ]
}

fn sections() -> Vec<Section> {
    let mut targets = TargetKind::ALL.map(|kind| text(kind.name(), kind.about())).to_vec();
    targets.push(text(
        "switch:model=NAME|FILE[,mode=openflow|legacy]",
        "built-in switch that emulates a hardware model (hint: run 'planimeter list models')",
    ));
    let names = progfe::shipped::names().join("|");
    targets.push(text(
        &format!("progfe:FILE|{names}"),
        "ProGFE element with a program, measured as bridge, router or tagger",
    ));
    targets.push(text("topology:FILE", "several linked switches as one target"));
    targets.push(text(
        "openflow:URL,ports=N@IF+N@IF",
        "external OpenFlow switch, with port N cabled to interface IF; add kind=hardware or \
         kind=software (docs/device.md)",
    ));
    targets
        .push(text("device:ports=N@IF+N@IF", "external bridge or router, cabled in the same way"));
    let metrics = Metric::ALL.iter().map(|it| text(it.name(), it.unit())).collect();
    let models = known::all().iter().map(|model| text(&model.name, &model.about));
    let parameters = shared::all().map(|it| {
        let (name, about) = declared(it);
        (name.trim_start_matches("  --set ").to_string(), about)
    });
    vec![
        experiments(studies::entries()),
        Section { what: ListKind::Targets, heading: "targets", rows: targets },
        Section { what: ListKind::Links, heading: "links", rows: links() },
        Section { what: ListKind::Models, heading: "models", rows: models.collect() },
        Section { what: ListKind::Metrics, heading: "metrics", rows: metrics },
        Section { what: ListKind::Parameters, heading: "parameters", rows: parameters.collect() },
    ]
}
