//! The record of a run before anything is measured: what was asked for, of what, on what machine.

use results::record::{self, PROCESSOR, Record, SCHEMA, Tool};

use super::plan::Plan;
use crate::catalog::{Entry, Show};
use crate::papers;
use crate::parameter::Effort;
use crate::target::name::{TargetKind, Technology};
use crate::target::{Benches, Target};

/// A record that holds no trial yet.
pub(super) fn new_record(plan: &Plan, benches: &Benches) -> Record {
    let mut environment = crate::environment::read();
    environment.simulated = plan.parameters.simulated;
    let mut parameters = serde_json::Map::new();
    parameters.insert("set".into(), plan.assignments.clone().into());
    parameters.insert("seconds".into(), plan.parameters.seconds.into());
    parameters.insert("repeats".into(), plan.parameters.repeats.into());
    parameters.insert("warmup_s".into(), plan.parameters.warmup_s.into());
    let drain = crate::experiments::drain(plan.parameters.seconds);
    parameters.insert("drain_s".into(), drain.as_secs_f64().into());
    let has_bursts = |entry: &&Entry| matches!(entry.id, "rfc2544/back-to-back" | "rfc9004");
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
        trials_of: plan.shares(entry).map(Into::into),
        shows: entry.shows.iter().map(Show::stored).collect(),
        left_out: plan.left_out(entry).collect(),
    });
    Record {
        schema: SCHEMA,
        tool: Tool { name: "planimeter".into(), version: crate::VERSION.into() },
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

/// A target as the record names it; its link where not all have the same.
pub(super) fn describe(target: &dyn Target, link: Option<String>) -> record::Target {
    let kind = target.kind();
    let mut description = target.describe();
    if let TargetKind::Model(model) = kind
        && let processor = model.model().processor.clone()
        && !processor.is_empty()
    {
        description.settings.insert(PROCESSOR.into(), processor);
    }
    let ours = kind.is_ours();
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
