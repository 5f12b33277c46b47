//! What a run depends on: the program, the machine, the targets, the experiments, the tester.
//!
//! Source: the provenance lists of RFC 2544 section 26 and RFC 8456 section 4.8. Invariant: these
//! are facts written down before or while measuring; nothing here is derived.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Bound, ClockFacts, Distribution, Metric, Stalls};

/// The program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name, `planimeter`.
    pub name: String,
    /// Its version, with the commit where known.
    pub version: String,
}

/// How much was repeated, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Enough to see: at least three repeats of short trials.
    Quick,
    /// Enough to rely on.
    Standard,
    /// As long and as often as the study or the standard prescribes.
    Full,
}

/// The machine that the run happened on. Absent fields could not be found out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Operating system, as it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Kernel release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Model name of the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Cores that the run could use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<u32>,
    /// Frequency governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_governor: Option<String>,
    /// The kernel's clock source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// How the tester's clock went over the run; absent in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockFacts>,
    /// Installed memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The hypervisor, where the machine is a virtual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualised: Option<String>,
    /// Whether time was the simulation's and not a clock's.
    #[serde(default)]
    pub simulated: bool,
    /// Versions of foreign programs that took part, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
}

/// What a target does with frames; the studies compare by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Technology {
    /// Flow table, installed by a controller.
    Openflow,
    /// Learning bridge (layer 2).
    Bridging,
    /// Router (layer 3).
    Routing,
    /// VLAN tagger (802.1Q).
    Tagging,
    /// Programmable forwarding element.
    Programmable,
    /// No target: the cable.
    Cable,
}

impl Technology {
    /// The word for it, as the studies use it.
    pub fn word(self) -> &'static str {
        match self {
            Technology::Openflow => "OpenFlow",
            Technology::Bridging => "bridging",
            Technology::Routing => "routing",
            Technology::Tagging => "VLAN tagging",
            Technology::Programmable => "programmable",
            Technology::Cable => "cable",
        }
    }
}

/// The setting of a target that names the processor of what it behaves like.
pub const PROCESSOR: &str = "processor";

/// The setting of a target that states whether it forwards in hardware or in software.
pub const IMPLEMENTATION: &str = "implementation";

/// The settings of a target that is a model: the model's name, and its mode (`openflow` or `legacy`).
pub const MODEL: &str = "model";
/// See [`MODEL`].
pub const MODEL_MODE: &str = "model_mode";

/// The setting of a target that names the studies from which a model was made, with a space between.
pub const MODEL_STUDIES: &str = "model_studies";

/// What forwards frames in a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    /// Forwarding hardware, or a model of it.
    Hardware,
    /// A program on a processor.
    Software,
}

impl Implementation {
    /// The word for it, as settings hold it.
    pub fn word(self) -> &'static str {
        match self {
            Implementation::Hardware => "hardware",
            Implementation::Software => "software",
        }
    }

    /// The one that a word names.
    pub fn of(word: &str) -> Option<Implementation> {
        [Implementation::Hardware, Implementation::Software]
            .into_iter()
            .find(|it| it.word() == word)
    }
}

/// A device under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Label, unique in the record; trials refer to it.
    pub name: String,
    /// What was asked for with `--on`.
    pub spec: String,
    /// What it does with frames.
    pub technology: Technology,
    /// Who it belongs to: targets of one family are compared as the study compares its three.
    /// `planimeter` for ours, `system` for what the operating system or other projects bring.
    pub family: String,
    /// By which link it was joined, where the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Its version, as it states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Settings that matter, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl Target {
    /// Whether it is hardware or software; none where neither its user nor its description says so.
    pub fn implementation(&self) -> Option<Implementation> {
        Implementation::of(self.settings.get(IMPLEMENTATION)?)
    }

    /// The name of the model that it is, and its mode; none if it is no model.
    pub fn model(&self) -> Option<(&str, &str)> {
        let mode = self.settings.get(MODEL_MODE).map_or("openflow", String::as_str);
        Some((self.settings.get(MODEL)?, mode))
    }
}

/// An experiment that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    /// How it is asked for: `bianco2010/fig2`.
    pub id: String,
    /// What it measures, in words.
    pub title: String,
    /// Short name of the study, where it repeats one: `bianco2010`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
    /// The figure or table of the study: `fig2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// What is varied, with its unit in the name: `frame_bytes`, `load_pps_intended`.
    pub x_name: String,
    /// How it is done, in a few sentences; absent when the title says it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The value of each parameter that it declares, as it would be set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The experiment whose trials serve this one too, where they were measured once for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials_of: Option<String>,
    /// What its report shows, where its module says so; empty for what is known by its metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<Show>,
    /// Targets that it is about and could not be done with, or not to its end: why, by target.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
}

/// A figure and table of an experiment that a measurement module carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Show {
    /// Its heading.
    pub title: String,
    /// What is drawn over the experiment's axis: metrics of one unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drawn: Vec<Metric>,
    /// What stands in the table below besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Metric>,
    /// Series of that name that are drawn instead, as each target's first trial of the last point gave
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// Whether the axis of what is drawn is logarithmic.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_logarithmic: bool,
}

impl Experiment {
    /// The experiment under whose id this one's trials are stored.
    pub fn source(&self) -> &str {
        self.trials_of.as_deref().unwrap_or(&self.id)
    }
}

/// The tester measured by itself, looped without a target: its ceiling, bias and pacing error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Name that trials refer to.
    pub id: String,
    /// The link that it was looped over.
    pub link: String,
    /// Frame size, frame check sequence counted.
    pub frame_bytes: u32,
    /// The largest offered load that came back without loss and within 0.1 % of what was intended.
    pub rate_pps_ceiling: u64,
    /// Set where the ceiling is the largest load that the calibration tries, so that it only bounds the true one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// What it offered when asked for more than it can.
    pub rate_pps_saturated: u64,
    /// Latency of the loop: what the tester itself adds to every latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// How far the mean of that may be off: 99 % by the scatter from trial to trial. A mean delay
    /// less this bias is known no better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns_error: Option<f64>,
    /// How far frames left from their scheduled time, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error: Option<Distribution>,
    /// Frames that the tester lost in rings of its own, although they had come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_dropped: Option<u64>,
    /// When the tester was away from its work meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// What each core was taken away for from a thread that never rests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<CoreGaps>,
    /// Who stamped received frames.
    pub clock: super::ClockSource,
    /// What the tester's controller says and hears at most, where results rest on that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerCeiling>,
}

/// What the tester's own controller says and hears in a second at most, before a peer that costs next to nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerCeiling {
    /// Over which kind of channel: `memory`, `unix`, `tcp`.
    pub channel: String,
    /// Messages in a second, with their answers, by kind: `echo`, `barrier`, `flow_mod` and `packet_out` (each with a
    /// barrier behind it), `packet_in`, `packet_round_trip`, `flow_mod_played` (encoded before).
    pub per_s: BTreeMap<String, f64>,
}

/// Gaps in the time of a thread that read the clock without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreGaps {
    /// The core.
    pub core: u32,
    /// For how long it was watched.
    pub ns_watched: u64,
    /// Gaps of 5 us and more.
    pub count: u64,
    /// All of them together.
    pub ns_total: u64,
    /// The longest, however short.
    pub ns_longest: u64,
}
