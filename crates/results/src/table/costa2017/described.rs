//! Table I: the study's switches and the targets, by what they say of themselves.
//!
//! Source: costa2017, table I, as printed. Invariant: a target's row has what it said, or what the lab knows of
//! it; nothing is guessed.

use super::{Entry, Table};
use crate::links::Naming;
use crate::record::{Experiment, Metric, Name, Record, Target, Trial};

/// How to read it.
pub(super) const READING: &str = "Targets tell their maker, hardware and software when they are asked (OpenFlow's description), ports by their \
                                  features, versions by a connection of each; a processor is not told. What the \
                                  lab started itself has the lab's word for its version beside.";

/// Brand and model, operating system, ports, processor, versions.
const PRINTED: [[&str; 5]; 9] = [
    ["Extreme Summit x460-24p", "ExtremeXOS 15.4.2.8", "28", "Single Core CPU 500 MHz", "1.0, 1.3"],
    ["Extreme Summit x440-48p", "ExtremeXOS 15.4.2.8", "52", "Single Core CPU 500 MHz", "1.0, 1.3"],
    [
        "NetFPGA Xilinx Virtex-II Pro 50",
        "CentOS 5.11, openvswitch.org OF FPGA",
        "4",
        "AMD Athlon II X4 800 MHz",
        "1.0",
    ],
    ["Datacom DM4001 ETH24GX+2x10GX", "Datacom Flash 2.22", "26", "PowerPC e500 990 MHz", "1.0"],
    ["Pica8 P-3297", "PicOS 2.1.5", "48", "P2020 Triumph2", "1.0, 1.4"],
    ["Mikrotik Atheros AR9344", "RouterOS 6.34.2", "24", "Single Core CPU 600 MHz", "1.0"],
    ["Open vSwitch OvS 2.3.0", "Linux Ubuntu 14.04", "", "Intel Core i7 2.80 GHz", "1.0"],
    ["HP HP2920-24G", "Firmware K 15.5", "24", "Tri Core ARM1176 625 MHz", "1.0, 1.3"],
    ["LinkSys WRT54GL", "OpenWRT + Pantou OF", "4", "Broadcom BCM5352 200 MHz", "1.0, 1.3"],
];

/// The study's rows, and a row for each target that was asked.
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
    let printed = PRINTED.iter().filter(|_| !asked.is_empty()).map(|[model, system, rest @ ..]| {
        let mut row = vec![Entry::word(*model), Entry::word("the study"), Entry::word(*model)];
        row.push(Entry::word(*system));
        row.extend(rest.iter().map(|it| Entry::word(*it)));
        row
    });
    let rows = printed.chain(asked.iter().cloned()).collect();
    Table { columns: columns.map(Into::into).into(), rows }
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
    let joined = |texts: [String; 2]| {
        texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
    };
    vec![
        Entry::word(name),
        Entry::word("measured"),
        Entry::word(joined(model)),
        Entry::word(joined(system)),
        Entry::word(ports),
        Entry::default(),
        Entry::word(note("versions_count")),
    ]
}
