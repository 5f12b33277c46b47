//! Every experiment by name: what it measures, how, and who wrote of it.
//!
//! A row of the files below is all that the command line, the runner and the report know of an experiment.

/// A study's figures.
mod study;
/// Another study's.
mod oflops2018;
/// A third study's.
mod costa2017;
/// A fourth study's.
mod gelberger2013;
/// Methods of standards.
mod standards;
/// Plain methods.
mod workloads;
/// Measurement modules.
mod modules;
/// Those about frames that pass rules.
mod passages;
/// Those about statistics, time-outs and sessions.
mod statistics;
/// Those about what passes between switch and controller.
mod packets;
/// Metrics that can come of them.
mod yields;
/// What each takes, and what is set of it.
pub mod taking;

use crate::experiments::{Context, Method, latency};
use crate::parameter::Parameters;
use crate::parameter::own::Declared;
use crate::parameter::shared;
use crate::python::{Script, script};
use crate::target::name::{Link, NameError, TargetKind, Technology};
use results::record::{self, Metric, Name};

/// One experiment.
pub struct Entry {
    /// How it is asked for.
    pub id: &'static str,
    /// What it measures.
    pub title: &'static str,
    /// Short name of the study that it repeats, and its figure.
    pub paper: Option<(&'static str, &'static str)>,
    /// Name of its axis.
    pub axis: &'static str,
    /// How it is done.
    pub method: &'static str,
    /// Makes the method for one target.
    pub build: fn(&Context) -> Box<dyn Method>,
    /// The experiment whose trials serve this one too, when both run together.
    pub shares_trials_of: Option<&'static str>,
    /// The parameter that says how many flows a controller deals with, where one does.
    pub flows: Option<&'static Declared>,
    /// Entries that its module installs, for which our switch then has room; 0 where that is no more than by default.
    pub entries: u32,
    /// Targets that go along with one that was asked for.
    pub companions: &'static [(TargetKind, TargetKind)],
    /// Whether the legacy mode of a model of hardware goes along with it.
    pub has_modes: bool,
    /// What a target has to be for the experiment to be about it.
    pub technologies: &'static [Technology],
    /// Ports by which frames are sent into a target.
    pub inputs: u8,
    /// Whether the target has as many ports as were asked for, if these are more.
    pub is_meshed: bool,
    /// Whether a module tells every switch on the way of frames what to do; others measure one switch.
    pub spans_path: bool,
    /// Whether the target is reset meanwhile.
    pub resets: bool,
    /// Whether programs take each other's place in the target meanwhile.
    pub swaps: bool,
    /// Whether hosts with sockets of their own have to stand at the ends of its links.
    pub wants_hosts: bool,
    /// The parameters that it declares itself.
    pub parameters: &'static [Declared],
    /// The groups of shared parameters that it includes, beside those of every run.
    pub shared: &'static [&'static [Declared]],
    /// What its report shows; empty where that follows from what is measured.
    pub shows: &'static [Show],
    /// The Python script that it is, which then makes the method.
    pub script: Option<&'static Script>,
}

/// A figure with its table, as an experiment that a module carries out wants it.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// Its heading.
    pub title: &'static str,
    /// What is drawn over the axis: metrics of one unit, by their names.
    pub drawn: &'static [&'static str],
    /// What stands in the table besides.
    pub beside: &'static [&'static str],
    /// Series that are drawn instead.
    pub series: &'static [&'static str],
    /// Whether what is drawn has a logarithmic axis.
    pub is_logarithmic: bool,
}

impl Show {
    /// Values over the axis, and others in the table.
    pub const fn values(
        title: &'static str,
        drawn: &'static [&'static str],
        beside: &'static [&'static str],
    ) -> Show {
        Show { title, drawn, beside, series: &[], is_logarithmic: false }
    }

    /// Series of a trial.
    pub const fn series(title: &'static str, series: &'static [&'static str]) -> Show {
        Show { title, drawn: &[], beside: &[], series, is_logarithmic: false }
    }

    /// As the record keeps it.
    pub fn stored(&self) -> record::Show {
        let metrics = |names: &[&'static str]| names.iter().map(|name| metric(name)).collect();
        record::Show {
            title: self.title.into(),
            drawn: metrics(self.drawn),
            beside: metrics(self.beside),
            series: self.series.iter().map(|&name| name.into()).collect(),
            is_logarithmic: self.is_logarithmic,
        }
    }
}

/// The metric of this name: of the list, or one that a module named.
pub fn metric(name: &'static str) -> Metric {
    let listed = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    listed.unwrap_or(Metric::Named(Name::of(name)))
}

/// What has two tables, one of exact entries and one of others.
const OPENFLOW: &[Technology] = &[Technology::OpenFlow];

/// What forwards by the addresses of frames.
const BRIDGES: &[Technology] = &[Technology::Bridging];

/// What forwards by a table.
const FORWARDERS: &[Technology] =
    &[Technology::OpenFlow, Technology::Bridging, Technology::Routing];

/// Everything, a cable too.
const ALL: &[Technology] = &[
    Technology::OpenFlow,
    Technology::Bridging,
    Technology::Routing,
    Technology::Tagging,
    Technology::Wire,
];

/// The set that an experiment of this name belongs to: what is before the stroke.
pub fn set_of(id: &str) -> &str {
    id.split('/').next().unwrap_or(id)
}

impl Entry {
    /// The method on one target.
    pub fn method_on(&self, context: &Context) -> Box<dyn Method> {
        let context = &Context { parameters: self.its(&context.parameters), ..context.clone() };
        match self.script {
            Some(script) => script.method(context),
            None => (self.build)(context),
        }
    }

    /// How a command asks for it.
    pub fn asked(&self) -> String {
        self.script.map_or(self.id.into(), |script| script.path.display().to_string())
    }

    /// Whether a module carries it out.
    pub fn is_module(&self) -> bool {
        self.script.is_some() || !self.shows.is_empty()
    }

    /// Ports by which frames are sent into a target, with these parameters.
    pub fn inputs(&self, parameters: &Parameters) -> u8 {
        let asked = if self.is_meshed { parameters.methods.ports - 1 } else { 0 };
        self.inputs.max(asked)
    }

    /// The set that it belongs to.
    pub fn set(&self) -> &'static str {
        set_of(self.id)
    }

    /// The target that goes along with this one.
    pub fn companion(&self, kind: TargetKind) -> Option<TargetKind> {
        match kind {
            TargetKind::Model(model) if self.has_modes => model.legacy().map(TargetKind::Model),
            _ => self.companions.iter().find(|(asked, _)| *asked == kind).map(|(_, it)| *it),
        }
    }

    /// Whether the experiment is about this target.
    pub fn applies(&self, kind: TargetKind) -> bool {
        let is_programmed = matches!(kind, TargetKind::ProGfe(_));
        self.technologies.contains(&kind.technology()) && (!self.swaps || is_programmed)
    }

    /// Why the experiment cannot be done with this target over this link, though it is about it.
    pub fn hindrance(&self, kind: TargetKind, link: Link) -> Option<&'static str> {
        if self.resets && !kind.resets_on(link) {
            return Some("the lab cannot start it anew beside its links");
        }
        if self.swaps && link == Link::Replay {
            return Some("nobody can give it another program while frames come from memory");
        }
        if self.wants_hosts && link != Link::Veth {
            return Some(
                "no host with sockets of its own can stand at the ends of that link: give --link veth",
            );
        }
        if self.wants_hosts && kind == TargetKind::Direct {
            return Some("no host stands at the ends of a cable that leads to no target");
        }
        if matches!(kind, TargetKind::Network(_)) {
            if self.inputs > 1 || self.is_meshed {
                return Some("the way through a topology has one port to send into");
            }
            let is_about_one = self.is_module() && self.script.is_none() && !self.spans_path;
            if is_about_one || self.flows.is_some() {
                return Some("it measures one switch: name that by --on");
            }
        }
        let inputs = usize::from(self.inputs);
        if kind.ports().is_some_and(|ports| ports <= inputs) {
            return Some(match kind {
                TargetKind::ProGfe(_) => "its program declares fewer ports than that needs",
                _ => "it has fewer ports than that needs: name more in ports=",
            });
        }
        let has_one = link == Link::Replay || (link == Link::Memif && kind.is_dpdk());
        (self.inputs > 1 && has_one).then_some("it has one port to send into")
    }

    /// Whether the experiment can be done with this target over this link.
    pub fn can_measure(&self, kind: TargetKind, link: Link) -> bool {
        self.applies(kind) && self.hindrance(kind, link).is_none()
    }
}

/// Every experiment, in the order in which they are listed: a study's, those of standards, and plain ones.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    let methods = standards::ENTRIES.iter().chain(workloads::ENTRIES);
    study::ENTRIES
        .iter()
        .chain(oflops2018::ENTRIES)
        .chain(costa2017::ENTRIES)
        .chain(gelberger2013::ENTRIES)
        .chain(methods)
        .chain(modules::ENTRIES)
        .chain(passages::ENTRIES)
        .chain(statistics::ENTRIES)
        .chain(packets::ENTRIES)
}

/// Parameters of trials with a table that the user chooses.
const TRIALS_OVER: &[&[Declared]] = &[shared::TRIALS, shared::TABLES];

/// Those of trials at loads that a search for the throughput finds.
const SEARCHED: &[&[Declared]] = &[shared::TRIALS, shared::TABLES, shared::SEARCHES];

/// What most experiments have in common.
pub(crate) const WORKLOAD: Entry = Entry {
    id: "",
    title: "",
    paper: None,
    axis: "",
    method: "",
    build: latency::method,
    shares_trials_of: None,
    companions: &[],
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
    script: None,
};

/// The experiments that a name stands for: one, every item of a study, or a Python script.
pub fn find(name: &str) -> Result<Vec<&'static Entry>, NameError> {
    if script::is_script(name) {
        return script::entry(name).map(|entry| vec![entry]).map_err(NameError::Script);
    }
    let found: Vec<&Entry> =
        entries().filter(|entry| entry.id == name || entry.set() == name).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut known: Vec<&str> = entries().map(Entry::set).collect();
    known.dedup();
    known.extend(entries().map(|entry| entry.id));
    Err(NameError::Unknown { what: "experiment", text: name.into(), known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_stands_for_all_its_items() {
        let ids: Vec<&str> = find("bianco2010").unwrap().iter().map(|entry| entry.id).collect();
        let items = ["fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "table1", "fig9", "fig10"];
        assert_eq!(ids, items.map(|item| format!("bianco2010/{item}")));
    }

    #[test]
    fn an_item_of_a_later_version_is_told_apart_from_a_wrong_name() {
        assert!(matches!(find("bianca2010"), Err(NameError::Unknown { .. })));
    }
}
