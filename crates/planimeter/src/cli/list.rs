//! `planimeter list`: what can be measured, on what, and with which parameters.

use std::process::ExitCode;

use super::failure::Failure;
use crate::catalog;
use crate::parameter::own::Declared;
use crate::parameter::{KEYS, control, goals, methods};
use crate::target::name::{Link, TargetKind};
use results::record::Metric;

/// Arguments of `planimeter list`.
#[derive(clap::Args)]
pub struct Arguments {
    /// One kind of thing only
    #[arg(value_enum)]
    pub what: Option<What>,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Kinds of things that can be listed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// What can be run
    Experiments,
    /// What can be measured
    Targets,
    /// How tester and target can be joined
    Links,
    /// Models of hardware switches
    Models,
    /// What comes out
    Metrics,
    /// What --set can change
    Parameters,
}

/// A list: its heading, and rows of name and description.
struct Section {
    what: What,
    heading: &'static str,
    rows: Vec<(String, String)>,
}

/// Prints the lists.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let wanted = |section: &Section| arguments.what.is_none_or(|what| what == section.what);
    let sections: Vec<Section> = sections().into_iter().filter(wanted).collect();
    if arguments.json {
        let rows = |section: &Section| -> serde_json::Value {
            let row = |(name, about): &(String, String)| serde_json::json!({ "name": name, "about": about });
            section.rows.iter().map(row).collect()
        };
        let all: serde_json::Map<String, serde_json::Value> =
            sections.iter().map(|it| (it.heading.to_string(), rows(it))).collect();
        println!("{}", serde_json::Value::Object(all));
        return Ok(ExitCode::SUCCESS);
    }
    for (index, section) in sections.iter().enumerate() {
        if index > 0 {
            println!();
        }
        println!("{}", section.heading);
        let width = section.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, about) in &section.rows {
            println!("  {name:width$}  {about}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn sections() -> Vec<Section> {
    let text = |name: &str, about: &str| (name.to_string(), about.to_string());
    let own = |entry: &catalog::Entry| -> Vec<(String, String)> {
        let row = |it: &Declared| {
            let takes = it.takes.words(it.unit);
            (format!("  --set {}={takes}", it.key), format!("{} ({})", it.help, it.default))
        };
        entry.parameters.iter().map(row).collect()
    };
    let experiments = catalog::entries()
        .flat_map(|entry| [vec![text(entry.id, entry.title)], own(entry)].concat())
        .collect();
    let targets = TargetKind::ALL.map(|kind| text(kind.name(), kind.about())).to_vec();
    let links = vec![
        text("memory", "in one process, by rings of frames in memory; no rights needed"),
        text(
            Link::Replay.name(),
            "our data plane alone: frames played from memory, counted on return; no rights needed",
        ),
        text(
            Link::Veth.name(),
            "by virtual Ethernet pairs in network namespaces; needs root or user namespaces",
        ),
        text(
            Link::VethXdp.name(),
            "by the same pairs, which the target reads and writes by AF_XDP; needs root",
        ),
        text(
            Link::Memif.name(),
            "by shared memory between processes, with programs of DPDK too; these need huge pages",
        ),
    ];
    let metrics = Metric::ALL.iter().map(|it| text(it.name(), it.unit())).collect();
    let parameters = KEYS
        .iter()
        .chain(&control::KEYS)
        .chain(&goals::KEYS)
        .chain(&methods::KEYS)
        .map(|(key, takes, about)| (format!("{key}={takes}"), about.to_string()));
    vec![
        Section { what: What::Experiments, heading: "experiments", rows: experiments },
        Section { what: What::Targets, heading: "targets", rows: targets },
        Section { what: What::Links, heading: "links", rows: links },
        Section {
            what: What::Models,
            heading: "models",
            rows: vec![text("none", "models of hardware switches are not in this version")],
        },
        Section { what: What::Metrics, heading: "metrics", rows: metrics },
        Section { what: What::Parameters, heading: "parameters", rows: parameters.collect() },
    ]
}
