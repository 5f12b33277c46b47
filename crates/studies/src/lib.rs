//! Catalog of all experiments: what each measures, how, and its source.
//!
//! The command line, the runner and the report use only the entries of the files below.

pub mod bianco2010;
pub mod oflops2018;
pub mod costa2017;
pub mod gelberger2013;
mod standards;
mod workloads;
mod modules;
mod rules;
mod statistics;
mod control_messages;
mod metrics;
pub mod pages;
pub mod taking;
pub mod papers;

use std::path::Path;

use experiments::show::Chart;
use experiments::{Context, Method, latency};
use targets::name::{Link, NameError, TargetKind};
use workload::Technology;
use workload::parameter::Parameters;
use workload::parameter::declaration::Parameter;
use workload::parameter::shared;

/// An experiment of the catalog.
pub struct CatalogEntry {
    /// Name on the command line.
    pub id: &'static str,
    /// Title: what it measures.
    pub title: &'static str,
    /// Short name of the study that it reproduces, and the figure.
    pub paper: Option<(&'static str, &'static str)>,
    /// Name of the axis.
    pub axis: &'static str,
    /// Description of the method.
    pub method: &'static str,
    /// Creates the method for one target.
    pub build: fn(&Context) -> Box<dyn Method>,
    /// Experiment whose trials also serve this one if both run together.
    pub shares_trials_of: Option<&'static str>,
    /// Parameter with the number of flows that a controller uses, if one does.
    pub flows: Option<&'static Parameter>,
    /// Number of entries that its module installs, for which Planimeter's own switch gets room; 0 for the default.
    pub entries: u32,
    /// Targets that are added to a requested one.
    pub paired_targets: &'static [(TargetKind, TargetKind)],
    /// Names of targets that a run without `--on` measures in addition to those of every run.
    pub default_targets: &'static [&'static str],
    /// Whether the legacy mode of a hardware model is added.
    pub has_modes: bool,
    /// Technologies that the experiment applies to.
    pub technologies: &'static [Technology],
    /// Number of input ports.
    pub inputs: u8,
    /// Whether the target has the configured number of ports, if that is higher.
    pub is_meshed: bool,
    /// Whether a module controls every switch of the path; other modules measure one switch.
    pub spans_path: bool,
    /// Whether the target is reset during the experiment.
    pub resets: bool,
    /// Whether programs are swapped in the target during the experiment.
    pub swaps: bool,
    /// Whether hosts with sockets are required at the ends of the links.
    pub wants_hosts: bool,
    /// Parameters that the experiment declares itself.
    pub parameters: &'static [Parameter],
    /// Groups of shared parameters in addition to those of every run.
    pub shared: &'static [&'static [Parameter]],
    /// Figures and tables of its report; empty if they follow from the measured values.
    pub shows: &'static [Chart],
    /// Program outside this one that creates the method, such as a Python script.
    pub external: Option<&'static dyn External>,
}

/// Technologies with a table of exact entries and one of other entries.
const OPENFLOW: &[Technology] = &[Technology::OpenFlow];

/// Technologies that forward by MAC addresses.
const BRIDGES: &[Technology] = &[Technology::Bridging];

/// Technologies that forward by a table.
const FORWARDERS: &[Technology] =
    &[Technology::OpenFlow, Technology::Bridging, Technology::Routing];

/// All technologies, including a cable.
const ALL: &[Technology] = &[
    Technology::OpenFlow,
    Technology::Bridging,
    Technology::Routing,
    Technology::Tagging,
    Technology::Wire,
];

/// Returns the set of an experiment with this name: the part before the slash.
pub fn set_of(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

/// An experiment whose method is a program outside this one.
pub trait External: Sync {
    /// Returns the program's file, as the user named it.
    fn path(&self) -> &Path;

    /// Creates the method for one target.
    fn method(&'static self, context: &Context) -> Box<dyn Method>;
}

impl CatalogEntry {
    /// Creates the method for one target.
    pub fn method_on(&self, context: &Context) -> Box<dyn Method> {
        let context = &Context { parameters: self.its(&context.parameters), ..context.clone() };
        match self.external {
            Some(external) => external.method(context),
            None => (self.build)(context),
        }
    }

    /// Returns the name for a command line.
    pub fn asked(&self) -> String {
        self.external.map_or(self.id.into(), |external| external.path().display().to_string())
    }

    /// Returns whether a module runs the experiment.
    pub fn is_module(&self) -> bool {
        self.external.is_some() || !self.shows.is_empty()
    }

    /// Returns the number of input ports with these parameters.
    pub fn inputs(&self, parameters: &Parameters) -> u8 {
        let asked = if self.is_meshed { parameters.methods.ports - 1 } else { 0 };
        self.inputs.max(asked)
    }

    /// Returns the set of the experiment.
    pub fn set(&self) -> &'static str {
        set_of(self.id)
    }

    /// Returns the target that is added to this one.
    pub fn companion(&self, kind: TargetKind) -> Option<TargetKind> {
        match kind {
            TargetKind::Model(model) if self.has_modes => model.legacy().map(TargetKind::Model),
            _ => self.paired_targets.iter().find(|(asked, _)| *asked == kind).map(|(_, it)| *it),
        }
    }

    /// Returns whether the experiment applies to this target.
    pub fn applies(&self, kind: TargetKind) -> bool {
        let is_programmed = matches!(kind, TargetKind::ProGfe(_));
        self.technologies.contains(&kind.technology()) && (!self.swaps || is_programmed)
    }

    /// Returns why the experiment cannot run with this target over this link, although it applies to the target.
    pub fn unsupported_reason(&self, kind: TargetKind, link: Link) -> Option<&'static str> {
        if self.resets && !kind.resets_on(link) {
            return Some("the lab cannot restart this target on this link");
        }
        if self.swaps && link == Link::Replay {
            return Some("programs cannot be swapped while frames are replayed from memory");
        }
        if self.wants_hosts && link != Link::Veth {
            return Some("this link cannot connect hosts with sockets (hint: use --link veth)");
        }
        if self.wants_hosts && kind == TargetKind::Direct {
            return Some("a cable without a target has no hosts at its ends");
        }
        if matches!(kind, TargetKind::Network(_)) {
            if self.inputs > 1 || self.is_meshed {
                return Some("a path through a topology has one input port");
            }
            let is_about_one = self.is_module() && self.external.is_none() && !self.spans_path;
            if is_about_one || self.flows.is_some() {
                return Some("the experiment measures one switch (hint: name it with --on)");
            }
        }
        let inputs = usize::from(self.inputs);
        if kind.ports().is_some_and(|ports| ports <= inputs) {
            return Some(match kind {
                TargetKind::ProGfe(_) => "its program declares too few ports for the experiment",
                _ => "it has too few ports for the experiment (hint: add ports to ports=)",
            });
        }
        let has_one = link == Link::Replay || (link == Link::Memif && kind.is_dpdk());
        (self.inputs > 1 && has_one).then_some("it has one input port")
    }

    /// Returns whether the experiment can run with this target over this link.
    pub fn can_measure(&self, kind: TargetKind, link: Link) -> bool {
        self.applies(kind) && self.unsupported_reason(kind, link).is_none()
    }
}

/// Returns why none of these experiments applies to a target; `None` if one does.
pub fn inapplicable(entries: &[&CatalogEntry], kind: TargetKind) -> Option<String> {
    if entries.iter().any(|entry| entry.applies(kind)) {
        return None;
    }
    let mut about: Vec<&str> = Vec::new();
    for technology in entries.iter().flat_map(|entry| entry.technologies) {
        if *technology == kind.technology() {
            return Some("it has no program that can be swapped".into());
        }
        if !about.contains(&technology.plural()) {
            about.push(technology.plural());
        }
    }
    Some(format!("the run is about {} only", about.join(", ")))
}

/// Iterates over all experiments in listing order: studies, standards, plain methods.
pub fn entries() -> impl Iterator<Item = &'static CatalogEntry> {
    let methods = standards::ENTRIES.iter().chain(workloads::ENTRIES);
    bianco2010::entries::ENTRIES
        .iter()
        .chain(oflops2018::entries::ENTRIES)
        .chain(costa2017::entries::ENTRIES)
        .chain(gelberger2013::entries::ENTRIES)
        .chain(methods)
        .chain(modules::ENTRIES)
        .chain(rules::ENTRIES)
        .chain(statistics::ENTRIES)
        .chain(control_messages::ENTRIES)
}

/// Parameters of trials with a table that the user selects.
const TRIALS_OVER: &[&[Parameter]] = &[shared::TRIALS, shared::TABLES];

/// Parameters of trials at loads from a throughput search.
const SEARCHED: &[&[Parameter]] = &[shared::TRIALS, shared::TABLES, shared::SEARCHES];

/// Common fields of most experiments.
pub const WORKLOAD: CatalogEntry = CatalogEntry {
    id: "",
    title: "",
    paper: None,
    axis: "",
    method: "",
    build: latency::method,
    shares_trials_of: None,
    paired_targets: &[],
    default_targets: &[],
    has_modes: false,
    flows: None,
    entries: 0,
    technologies: ALL,
    inputs: 1,
    is_meshed: false,
    spans_path: false,
    resets: false,
    swaps: false,
    wants_hosts: false,
    parameters: &[],
    shared: &[],
    shows: &[],
    external: None,
};

/// Finds the experiments for a name: a single one, or all items of a study.
pub fn find(name: &str) -> Result<Vec<&'static CatalogEntry>, NameError> {
    let found: Vec<&CatalogEntry> =
        entries().filter(|entry| entry.id == name || entry.set() == name).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut known: Vec<&str> = entries().map(CatalogEntry::set).collect();
    known.dedup();
    known.extend(entries().map(|entry| entry.id));
    Err(NameError::Unknown { what: "experiment", text: name.into(), known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_name_selects_all_its_items() {
        let ids: Vec<&str> = find("bianco2010").unwrap().iter().map(|entry| entry.id).collect();
        let items = ["fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "table1", "fig9", "fig10"];
        assert_eq!(ids, items.map(|item| format!("bianco2010/{item}")));
    }

    #[test]
    fn a_wrong_name_is_unknown() {
        assert!(matches!(find("bianca2010"), Err(NameError::Unknown { .. })));
    }
}
