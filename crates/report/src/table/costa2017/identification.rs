//! Table I: descriptions of the study's switches and of the targets.
//!
//! Source: costa2017, table I, as printed and stored in the record. Invariant: a target's row
//! contains what the target reports or the lab knows. Nothing is guessed.

use super::{Entry, Table};
use record::links::Naming;
use record::number;
use record::{Experiment, Metric, Name, PROCESSOR, Published, Record, Target, Technology, Trial};

/// Explanation of the table.
pub(super) const READING: &str = "OpenFlow targets report manufacturer, hardware and software in their \
                                  description reply, and ports in their features reply. Each supported \
                                  version was tested with its own connection. The lab provides the \
                                  version of targets that it started. The processor is this host's for \
                                  targets on this host, and the modelled switch's for models.";

/// Text for an unknown entry.
const NOT_TOLD: &str = "unknown";

/// The study's rows, followed by a row per queried target.
pub(super) fn table(record: &Record, experiment: &Experiment) -> Table {
    let columns = [
        "switch",
        "from",
        "brand and model",
        "system or firmware",
        "ports",
        "processor",
        "versions",
    ];
    let naming = Naming::within(record, &experiment.id);
    let asked = record.targets.iter().filter_map(|target| {
        let here =
            |trial: &&Trial| trial.experiment == experiment.source() && trial.target == target.name;
        let trial = record.trials.iter().find(here)?;
        Some(row(record, experiment, target, trial, naming.of(&target.name)))
    });
    let asked: Vec<Vec<Entry>> = asked.collect();
    let mut rows = if asked.is_empty() { Vec::new() } else { printed(record) };
    rows.extend(asked);
    Table { columns: columns.map(Into::into).into(), rows }
}

/// The study's rows, in its order.
fn printed(record: &Record) -> Vec<Vec<Entry>> {
    let here = |it: &&Published| it.study == "costa2017" && it.item == "table1";
    let values: Vec<&Published> = record.published.iter().filter(here).collect();
    let mut switches: Vec<&str> = values.iter().map(|it| it.subject.as_str()).collect();
    switches.dedup();
    let row = |switch: &&str| {
        let of = |metric: &str| {
            let found = values.iter().find(|it| it.subject == **switch && it.metric == metric);
            found.map_or_else(Entry::default, |it| match &it.text {
                Some(text) => Entry::word(text),
                None => Entry::word(number::count(it.value as i64)),
            })
        };
        let mut row = vec![Entry::word(*switch), Entry::word("the study")];
        let told = ["hardware_bytes", "software_bytes", "ports_count", "processor_bytes"];
        row.extend(told.into_iter().chain(["versions_count"]).map(of));
        row
    };
    switches.iter().map(row).collect()
}

/// A target's processor, if known. In virtual time only a model has one.
fn processor(record: &Record, target: &Target) -> String {
    let model = target.settings.get(PROCESSOR).cloned();
    let is_here = target.family != "device" && target.model().is_none();
    let host = record.environment.cpu_model.clone().filter(|_| is_here);
    let host = host.filter(|_| !record.environment.simulated);
    model.or(host).unwrap_or_else(|| NOT_TOLD.into())
}

fn row(
    record: &Record,
    experiment: &Experiment,
    target: &Target,
    trial: &Trial,
    name: String,
) -> Vec<Entry> {
    let notes = trial.module.as_ref().map_or(&[][..], |module| &module.notes);
    let note = |what: &str| {
        let begins = format!("{what}: ");
        notes.iter().find_map(|note| note.strip_prefix(&begins)).unwrap_or_default().to_string()
    };
    let ports = Metric::Named(Name::of("ports_count"));
    let ports = record.cells_of(&experiment.id, &target.name, ports).next();
    let ports = ports.map_or_else(String::new, |cell| format!("{:.0}", cell.value));
    let model = [note("manufacturer_bytes"), note("hardware_bytes")];
    let version = target.version.clone().unwrap_or_default();
    let system = [note("software_bytes"), version];
    let mut versions = note("versions_count");
    if target.technology != Technology::Openflow {
        versions = "no OpenFlow".into();
    }
    let joined = |texts: [String; 2]| {
        texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
    };
    vec![
        Entry::word(name),
        Entry::word("measured"),
        Entry::word(or_not_told(joined(model))),
        Entry::word(or_not_told(joined(system))),
        Entry::word(ports),
        Entry::word(processor(record, target)),
        Entry::word(versions),
    ]
}

fn or_not_told(text: String) -> String {
    if text.is_empty() { NOT_TOLD.into() } else { text }
}
