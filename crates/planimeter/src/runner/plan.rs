//! What a run is to do: experiments, targets with their links, parameters.
//!
//! Invariant: a plan is a function of its command line, so that a run can be repeated and resumed.

use super::estimate::{self, Estimate};
use super::hooks::Hooks;
use crate::catalog::Entry;
use crate::parameter::{Effort, Parameters};
use crate::target::links::Links;
use crate::target::name::{Link, TargetKind};

/// What is to be done.
#[derive(Clone)]
pub struct Plan {
    /// The experiments, in order.
    pub entries: Vec<&'static Entry>,
    /// The targets, the one that ratios refer to first.
    pub kinds: Vec<TargetKind>,
    /// How they are joined.
    pub links: Links,
    /// Commands around it.
    pub hooks: Hooks,
    /// How much.
    pub effort: Effort,
    /// Everything that can be set.
    pub parameters: Parameters,
    /// The `--set` words that made them, for the record.
    pub assignments: Vec<String>,
    /// Seed of everything random.
    pub seed: u64,
    /// The command that repeats the run.
    pub command_line: String,
    /// When a new run begins, RFC 3339 in UTC: for the record and the folder's name.
    pub created: String,
}

impl Plan {
    /// The experiments whose trials are run, without those that share another's.
    pub(super) fn measured(&self) -> impl Iterator<Item = &'static Entry> + '_ {
        self.entries.iter().copied().filter(|entry| self.shares(entry).is_none())
    }

    /// The experiment of this plan whose trials serve `entry` too.
    pub(super) fn shares(&self, entry: &Entry) -> Option<&'static str> {
        let other = entry.shares_trials_of?;
        self.entries.iter().any(|entry| entry.id == other).then_some(other)
    }

    /// The targets asked for that an experiment is about and cannot be done with, by name, with why.
    pub(super) fn left_out(&self, entry: &Entry) -> impl Iterator<Item = (String, String)> {
        let concerned = self.kinds.iter().filter(|kind| entry.applies(**kind));
        concerned.filter_map(|kind| {
            let why = entry.hindrance(*kind, self.links.of(*kind))?;
            Some((kind.name().to_string(), why.to_string()))
        })
    }

    /// The targets of one experiment: those asked for that it is about, each followed by its
    /// companion where that can be joined.
    pub fn kinds_of(&self, entry: &Entry) -> Vec<TargetKind> {
        let mut kinds = Vec::new();
        for &kind in
            self.kinds.iter().filter(|kind| entry.can_measure(**kind, self.links.of(**kind)))
        {
            kinds.push(kind);
            kinds.extend(
                entry
                    .companion(kind)
                    .filter(|it| !self.kinds.contains(it) && it.runs_on(self.links.of(kind))),
            );
        }
        kinds
    }

    /// By which link a target is joined: a companion by that of the target that it goes along with.
    pub fn link_of(&self, kind: TargetKind) -> Link {
        let goes_along =
            |asked: &&TargetKind| self.entries.iter().any(|it| it.companion(**asked) == Some(kind));
        match self.kinds.iter().find(goes_along) {
            Some(asked) if !self.kinds.contains(&kind) => self.links.of(*asked),
            _ => self.links.of(kind),
        }
    }

    /// The links of all its targets, each once.
    pub fn links_used(&self) -> Vec<Link> {
        self.links.used(&self.kinds)
    }

    /// The name of a target's link where not all have the same.
    pub(super) fn link_apart(&self, kind: TargetKind) -> Option<String> {
        let several = self.links_used().len() > 1;
        several.then(|| self.link_of(kind).name().into())
    }

    /// Whether an earlier experiment of the same set finds the throughputs that this one needs.
    pub(super) fn finds_throughputs_before(&self, entry: &Entry) -> bool {
        let mut before = self.measured().take_while(|other| other.id != entry.id);
        before.any(|other| other.set() == entry.set() && other.id.ends_with("/throughput"))
    }

    /// What each experiment takes, in order.
    pub fn estimates(&self) -> Vec<Estimate> {
        estimate::of(self)
    }

    /// Every target of the plan, companions included, with its ports to send into: one that is
    /// measured with one and with two is there twice, so that an idle port is in nobody's way.
    pub fn all_kinds(&self) -> Vec<(TargetKind, u8)> {
        let mut kinds: Vec<(TargetKind, u8)> = Vec::new();
        for entry in self.measured() {
            for kind in
                self.kinds_of(entry).into_iter().map(|kind| (kind, entry.inputs(&self.parameters)))
            {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
        kinds
    }
}
