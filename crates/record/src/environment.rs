//! Provenance of a run: program, machine, targets, experiments and tester.
//!
//! Source: the reporting lists of RFC 2544 section 26 and RFC 8456 section 4.8. Invariant: these
//! facts are recorded before or during the measurement; nothing here is derived.

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

/// Measurement effort: repeats and trial duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// For a first look: at least three repeats of short trials.
    Quick,
    /// For reliable results.
    Standard,
    /// Repeats and durations that the study or standard prescribes.
    Full,
}

/// The machine that the run used. A field is absent if its value is unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Name of the operating system, as it reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Kernel release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Model name of the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Cores available to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<u32>,
    /// Frequency governor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_governor: Option<String>,
    /// The kernel's clock source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Quality of the tester's clock over the run; absent in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockFacts>,
    /// Installed memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The hypervisor, if the machine is virtual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualised: Option<String>,
    /// Whether time was simulated.
    #[serde(default)]
    pub simulated: bool,
    /// Versions of the external programs used, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
}

/// What a target does with frames. Studies compare targets by this.
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
    /// Name of the technology, as the studies use it.
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

/// Setting of a target: the processor of the device that it models.
pub const PROCESSOR: &str = "processor";

/// Setting of a target: whether it forwards in hardware or in software.
pub const IMPLEMENTATION: &str = "implementation";

/// Setting of a target that is a model: the model's name. [`MODEL_MODE`] is its mode (`openflow` or
/// `legacy`).
pub const MODEL: &str = "model";
/// See [`MODEL`].
pub const MODEL_MODE: &str = "model_mode";

/// Setting of a target: the studies that a model was made from, separated by spaces.
pub const MODEL_STUDIES: &str = "model_studies";

/// What forwards frames in a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Implementation {
    /// Forwarding hardware, or a model of it.
    Hardware,
    /// A program on a processor.
    Software,
}

impl Implementation {
    /// Name of the implementation, as stored in settings.
    pub fn word(self) -> &'static str {
        match self {
            Implementation::Hardware => "hardware",
            Implementation::Software => "software",
        }
    }

    /// Parses a name of an implementation.
    pub fn of(word: &str) -> Option<Implementation> {
        [Implementation::Hardware, Implementation::Software]
            .into_iter()
            .find(|it| it.word() == word)
    }
}

/// A device under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Label, unique in the record. Trials refer to it.
    #[serde(deserialize_with = "crate::target_name::read")]
    pub name: String,
    /// The argument of `--on`.
    #[serde(deserialize_with = "crate::target_name::read")]
    pub spec: String,
    /// What it does with frames.
    pub technology: Technology,
    /// Family of the target. Targets of one family are compared as the study compares its three.
    /// `planimeter` for targets of this project, `system` for those of the operating system or
    /// other projects.
    pub family: String,
    /// The link, if the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Version that the target reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Relevant settings, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl Target {
    /// Whether the target is hardware or software; none if neither its user nor its description
    /// states it.
    pub fn implementation(&self) -> Option<Implementation> {
        Implementation::of(self.settings.get(IMPLEMENTATION)?)
    }

    /// Name and mode of the model; none if the target is not a model.
    pub fn model(&self) -> Option<(&str, &str)> {
        let mode = self.settings.get(MODEL_MODE).map_or("openflow", String::as_str);
        Some((self.settings.get(MODEL)?, mode))
    }
}

/// An experiment that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    /// Id on the command line: `bianco2010/fig2`.
    pub id: String,
    /// Title of the measurement.
    pub title: String,
    /// Short name of the study that the experiment repeats, if any: `bianco2010`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<String>,
    /// The figure or table of the study: `fig2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The variable, with its unit in the name: `frame_bytes`, `load_pps_intended`.
    pub x_name: String,
    /// The method in a few sentences; absent if the title is sufficient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The value of each parameter that it declares, as it would be set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The experiment whose trials this one uses, if both share one set of trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares_trials_with: Option<String>,
    /// Figures and tables that the experiment's module defines; empty if the metrics determine
    /// them.
    #[serde(rename = "charts", default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<Show>,
    /// Targets that the experiment skipped or did not complete, with the reason.
    #[serde(
        rename = "skipped",
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "crate::target_name::read_keys"
    )]
    pub left_out: BTreeMap<String, String>,
}

/// A figure and table that a measurement module defines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Show {
    /// Its heading.
    pub title: String,
    /// Metrics to plot over the experiment's axis, all of one unit.
    #[serde(rename = "y_metrics", default, skip_serializing_if = "Vec::is_empty")]
    pub drawn: Vec<Metric>,
    /// Additional metrics in the table.
    #[serde(rename = "table_metrics", default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Metric>,
    /// Series to plot instead, by name, from each target's first trial at the last point of a
    /// curve. The repeats of a distribution are pooled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// Whether the plotted axis is logarithmic.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_logarithmic: bool,
    /// The range to plot at each value, beside its confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ShowRange>,
    /// The targets to show, if another experiment of the run shows the others from the same trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<Implementation>,
}

/// A range around each value of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShowRange {
    /// From one metric to another: minimum and 90th percentile of the frames.
    Metrics([Metric; 2]),
    /// From the minimum of the repeats to their 90th percentile.
    Repeats,
}

impl Experiment {
    /// Id of the experiment that this one's trials are stored under.
    pub fn source(&self) -> &str {
        self.shares_trials_with.as_deref().unwrap_or(&self.id)
    }
}

/// Calibration of the tester in a loop without a target: its maximum load, bias and pacing error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Id that trials refer to.
    pub id: String,
    /// The link of the loop.
    pub link: String,
    /// Frame size, frame check sequence included.
    pub frame_bytes: u32,
    /// The largest offered load that was received without loss and within 0.1 % of the intended
    /// load.
    pub rate_pps_ceiling: u64,
    /// Set if the maximum is the largest load that the calibration tries, so that it is only a
    /// lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// Offered load when the intended load exceeds the tester's maximum.
    pub rate_pps_saturated: u64,
    /// Latency of the loop, which the tester adds to every latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// Uncertainty of the mean of `latency`: 99 % interval from the scatter between trials. A mean
    /// latency minus this bias is at best as accurate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns_error: Option<f64>,
    /// Absolute difference between scheduled and actual send times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error: Option<Distribution>,
    /// Frames that returned to the tester but were dropped in its own rings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_dropped: Option<u64>,
    /// Times when the tester was descheduled during the calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// Interruptions of a busy-polling thread on each core.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<CoreGaps>,
    /// Source of the receive timestamps.
    pub clock: super::ClockSource,
    /// Maximum rates of the tester's controller, if results depend on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerCeiling>,
}

/// Maximum message rates of the tester's controller, measured with a peer of almost no cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControllerCeiling {
    /// Type of the control channel: `memory`, `unix`, `tcp`.
    pub channel: String,
    /// Messages per second, with their replies, by kind: `echo`, `barrier`, `flow_mod` and
    /// `packet_out` (each followed by a barrier), `packet_in`, `packet_round_trip`,
    /// `flow_mod_played` (encoded in advance).
    pub per_s: BTreeMap<String, f64>,
}

/// Gaps in the execution of a thread that reads the clock continuously.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreGaps {
    /// The core.
    pub core: u32,
    /// Observation time.
    pub ns_watched: u64,
    /// Number of gaps of 5 us or more.
    pub count: u64,
    /// Total length of these gaps.
    pub ns_total: u64,
    /// The longest gap of any length.
    pub ns_longest: u64,
}
