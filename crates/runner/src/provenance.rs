//! Record of a run before its first trial: command, targets and machine.

use std::collections::BTreeMap;

use record::{
    IMPLEMENTATION, Implementation, MODEL, MODEL_MODE, MODEL_STUDIES, PROCESSOR, Record, SCHEMA,
    Tool,
};

use super::plan::Plan;
use experiments::show::Chart;
use studies::CatalogEntry;
use studies::papers;
use targets::model::Mode;
use targets::name::TargetKind;
use targets::{Benches, Description, Target};
use workload::Technology;
use workload::parameter::Effort;

/// Creates a record without trials.
pub(super) fn new_record(plan: &Plan, benches: &Benches) -> Record {
    let mut environment = crate::environment::read();
    environment.simulated = plan.parameters.simulated;
    let mut parameters = serde_json::Map::new();
    parameters.insert("set".into(), plan.assignments.clone().into());
    parameters.insert("seconds".into(), plan.parameters.seconds.into());
    parameters.insert("repeats".into(), plan.parameters.repeats.into());
    parameters.insert("warmup_s".into(), plan.parameters.warmup_s.into());
    let drain = experiments::drain(plan.parameters.seconds);
    parameters.insert("drain_s".into(), drain.as_secs_f64().into());
    let has_bursts = |entry: &&CatalogEntry| matches!(entry.id, "rfc2544/back-to-back" | "rfc9004");
    if plan.entries.iter().any(has_bursts) {
        parameters.insert("burst_seconds".into(), plan.parameters.methods.burst_s.into());
        parameters.insert("burst_step".into(), plan.parameters.methods.burst_step.into());
    }
    for (name, value) in benches.settings() {
        parameters.insert(name, value.into());
    }
    let experiments = plan.entries.iter().map(|entry| record::Experiment {
        id: entry.id.into(),
        title: entry.title.into(),
        study: entry.paper.map(|(study, _)| study.into()),
        item: entry.paper.map(|(_, item)| item.into()),
        x_name: entry.axis.into(),
        method: Some(entry.method.into()),
        parameters: entry.effective(plan.effort, &plan.assignments),
        shares_trials_with: plan.shares(entry).map(Into::into),
        shows: entry.shows.iter().map(Chart::stored).collect(),
        left_out: plan.left_out(entry).collect(),
    });
    Record {
        schema: SCHEMA,
        tool: Tool { name: "planimeter".into(), version: targets::VERSION.into() },
        created: plan.created.clone(),
        command_line: plan.command_line.clone(),
        seed: plan.seed,
        effort: match plan.effort {
            Effort::Quick => record::Effort::Quick,
            Effort::Standard => record::Effort::Standard,
            Effort::Full => record::Effort::Full,
        },
        partial: true,
        failure: None,
        trials_planned: None,
        link: plan.links_used().iter().map(|it| it.name()).collect::<Vec<_>>().join(", "),
        environment,
        parameters,
        calibrations: Vec::new(),
        targets: Vec::new(),
        experiments: experiments.collect(),
        trials: Vec::new(),
        outcomes: Vec::new(),
        cells: Vec::new(),
        ratios: Vec::new(),
        published: plan.entries.iter().flat_map(|entry| papers::published(entry.paper)).collect(),
        claims: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Returns the studies that a model's description and sources name.
fn studies(model: &elements::hardware_model::model::Model) -> Vec<&'static str> {
    const NAMES: [(&str, &[&str]); 4] = [
        ("bianco2010", &["bianco2010"]),
        ("costa2017", &["costa2017"]),
        ("gelberger2013", &["gelberger2013"]),
        ("oflops2018", &["oflops2018", "OFLOPS-SUME"]),
    ];
    let texts = || model.sources.values().chain([&model.about]);
    let is_named = |words: &[&str]| texts().any(|text| words.iter().any(|it| text.contains(it)));
    NAMES.into_iter().filter(|(_, words)| is_named(words)).map(|(study, _)| study).collect()
}

/// Returns the record of a target, with its link if links differ.
pub(super) fn describe(target: &dyn Target, link: Option<String>) -> record::Target {
    let kind = target.kind();
    let mut description = target.describe();
    if let TargetKind::Model(target) = kind {
        let model = target.model();
        let mode = match target.mode() {
            Mode::OpenFlow => "openflow",
            Mode::Legacy => "legacy",
        };
        description.settings.insert(MODEL.into(), model.name.clone());
        description.settings.insert(MODEL_MODE.into(), mode.into());
        let studies = studies(&model);
        if !studies.is_empty() {
            description.settings.insert(MODEL_STUDIES.into(), studies.join(" "));
        }
        if !model.processor.is_empty() {
            description.settings.insert(PROCESSOR.into(), model.processor.clone());
        }
    }
    if let Some(found) = implementation(kind, &description) {
        description.settings.insert(IMPLEMENTATION.into(), found.word().into());
    }
    let ours = kind.is_planimeter();
    record::Target {
        name: kind.name().into(),
        spec: kind.name().into(),
        technology: match kind.technology() {
            Technology::OpenFlow => record::Technology::Openflow,
            Technology::Bridging => record::Technology::Bridging,
            Technology::Routing => record::Technology::Routing,
            Technology::Tagging => record::Technology::Tagging,
            Technology::Wire => record::Technology::Cable,
        },
        family: match kind {
            TargetKind::Device(_) => "device",
            _ if ours => "planimeter",
            _ => "system",
        }
        .into(),
        link,
        version: description.version,
        settings: description.settings,
    }
}

/// Words in the OpenFlow description of software switches, in lower case.
const SOFTWARE_WORDS: [&str; 6] =
    ["open vswitch", "openvswitch", "planimeter", "user-space", "userspace", "software switch"];

/// Words in the OpenFlow description of hardware switches, in lower case: vendors and chips. They
/// take precedence, because many hardware switches run Open vSwitch as their agent.
const HARDWARE_WORDS: [&str; 20] = [
    "arista",
    "aruba",
    "broadcom",
    "cisco",
    "datacom",
    "dell",
    "edgecore",
    "edge-core",
    "extreme",
    "hewlett",
    "hp ",
    "huawei",
    "ibm",
    "juniper",
    "mikrotik",
    "netfpga",
    "noviflow",
    "pica8",
    "procurve",
    "tofino",
];

/// Returns whether a target is hardware or software; `None` for the cable and if it is unknown.
///
/// A model's file states it, a device's name or its OpenFlow description (`OFPST_DESC`). All other
/// targets on this host are software.
fn implementation(kind: TargetKind, description: &Description) -> Option<Implementation> {
    match kind {
        TargetKind::Direct => None,
        TargetKind::Model(target) => Some(match target.model().is_software {
            true => Implementation::Software,
            false => Implementation::Hardware,
        }),
        TargetKind::Device(device) => {
            device.said().implementation.or_else(|| described(&description.settings))
        }
        TargetKind::Network(network) => {
            let switches = network.network().switches.iter();
            let mut kinds = switches.map(|it| implementation(it.kind, &Description::default()));
            let first = kinds.next().flatten();
            first.filter(|first| kinds.all(|it| it == Some(*first)))
        }
        _ => Some(Implementation::Software),
    }
}

/// Returns the implementation that an OpenFlow description states.
fn described(settings: &BTreeMap<String, String>) -> Option<Implementation> {
    let texts = ["manufacturer", "hardware", "software", "datapath"];
    let texts: Vec<&str> =
        texts.iter().filter_map(|key| settings.get(*key)).map(String::as_str).collect();
    let text = texts.join(" ").to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match () {
        () if has(&HARDWARE_WORDS) => Some(Implementation::Hardware),
        () if has(&SOFTWARE_WORDS) => Some(Implementation::Software),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, settings: &[(&str, &str)]) -> Option<Implementation> {
        let settings = settings.iter().map(|(key, text)| ((*key).into(), (*text).into())).collect();
        implementation(name.parse().unwrap(), &Description { version: None, settings })
    }

    #[test]
    fn hardware_is_declared_by_the_user_or_a_description_and_not_by_name() {
        let device = "openflow:tcp:192.0.2.7:6653,ports=1@eth1+2@eth2";
        let pica8 = [("manufacturer", "Pica8, Inc."), ("software", "Open vSwitch 2.3")];
        let ovs = [("manufacturer", "Nicira, Inc."), ("hardware", "Open vSwitch")];
        assert_eq!(of(device, &pica8), Some(Implementation::Hardware));
        assert_eq!(of(device, &ovs), Some(Implementation::Software));
        assert_eq!(of(device, &[]), None);
        assert_eq!(of(&format!("{device},kind=hardware"), &ovs), Some(Implementation::Hardware));
        assert_eq!(of(&format!("{device},kind=software"), &pica8), Some(Implementation::Software));
        assert_eq!(of("switch:model=edgecore-as5812", &[]), Some(Implementation::Hardware));
        assert_eq!(of("switch:model=ovs-2.3", &[]), Some(Implementation::Software));
        assert_eq!(of("switch", &[]), Some(Implementation::Software));
        assert_eq!(of("direct", &[]), None);
    }
}
