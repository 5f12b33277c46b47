//! Plan of a run: experiments, targets with their links, and parameters.
//!
//! Invariant: a plan is a function of its command line, so that a run can be repeated and resumed.

use super::estimate::{self, Estimate};
use super::hooks::Hooks;
use studies::CatalogEntry;
use targets::links::Links;
use targets::name::{Link, TargetKind};
use workload::parameter::{Effort, Parameters};

/// Plan of a run.
#[derive(Clone)]
pub struct Plan {
    /// The experiments, in order.
    pub entries: Vec<&'static CatalogEntry>,
    /// The targets; ratios refer to the first one.
    pub kinds: Vec<TargetKind>,
    /// Their links.
    pub links: Links,
    /// User commands around the run.
    pub hooks: Hooks,
    /// Measurement effort.
    pub effort: Effort,
    /// All parameters.
    pub parameters: Parameters,
    /// The `--set` assignments that changed them, for the record.
    pub assignments: Vec<String>,
    /// Seed of all random values.
    pub seed: u64,
    /// The command that repeats the run.
    pub command_line: String,
    /// Start of a new run, RFC 3339 in UTC, for the record and the folder's name.
    pub created: String,
}

impl Plan {
    /// Returns the experiments that run their own trials, without those that share another's.
    pub(super) fn measured(&self) -> impl Iterator<Item = &'static CatalogEntry> + '_ {
        self.entries.iter().copied().filter(|entry| self.shares(entry).is_none())
    }

    /// Returns the experiment of this plan whose trials also serve `entry`.
    pub(super) fn shares(&self, entry: &CatalogEntry) -> Option<&'static str> {
        let other = entry.shares_trials_of?;
        self.entries.iter().any(|entry| entry.id == other).then_some(other)
    }

    /// Returns the names of the requested targets that an experiment leaves out, each with the
    /// reason: they do not support an experiment about them, or no experiment of the run applies to
    /// them.
    pub(super) fn left_out(&self, entry: &CatalogEntry) -> impl Iterator<Item = (String, String)> {
        self.kinds.iter().filter_map(|kind| {
            let why = match entry.applies(*kind) {
                true => entry.unsupported_reason(*kind, self.links.of(*kind))?.to_string(),
                false => studies::inapplicable(&self.entries, *kind)?,
            };
            Some((kind.name().to_string(), why))
        })
    }

    /// Returns the targets of one experiment: the requested ones that it applies to, each followed
    /// by its companion if that can be connected.
    pub fn kinds_of(&self, entry: &CatalogEntry) -> Vec<TargetKind> {
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

    /// Returns the link of a target; a companion uses the link of its main target.
    pub fn link_of(&self, kind: TargetKind) -> Link {
        let goes_along =
            |asked: &&TargetKind| self.entries.iter().any(|it| it.companion(**asked) == Some(kind));
        match self.kinds.iter().find(goes_along) {
            Some(asked) if !self.kinds.contains(&kind) => self.links.of(*asked),
            _ => self.links.of(kind),
        }
    }

    /// Returns the links of all targets that an experiment measures, without duplicates.
    pub fn links_used(&self) -> Vec<Link> {
        let can_measure = |kind: &TargetKind| {
            self.entries.iter().any(|it| it.can_measure(*kind, self.links.of(*kind)))
        };
        let measured: Vec<TargetKind> = self.kinds.iter().copied().filter(can_measure).collect();
        self.links.used(&measured)
    }

    /// Returns the name of a target's link if the targets' links differ.
    pub(super) fn link_apart(&self, kind: TargetKind) -> Option<String> {
        let several = self.links_used().len() > 1;
        several.then(|| self.link_of(kind).name().into())
    }

    /// Returns whether an earlier experiment of the same set finds the throughputs that this one
    /// requires.
    pub(super) fn finds_throughputs_before(&self, entry: &CatalogEntry) -> bool {
        let mut before = self.measured().take_while(|other| other.id != entry.id);
        before.any(|other| other.set() == entry.set() && other.id.ends_with("/throughput"))
    }

    /// Returns the estimate of each experiment, in order.
    pub fn estimates(&self) -> Vec<Estimate> {
        estimate::of(self)
    }

    /// Returns every target of the plan, companions included, with its number of input ports.
    ///
    /// A target that is measured with one and with two input ports appears twice, so that no idle
    /// port disturbs a measurement.
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
