//! Experiments: one file per figure of a study or per standard method.
//!
//! A method is a pure state machine ([`Procedure`]). It returns setups and trials as values and processes their
//! outcomes. It does no I/O, reads no clock and never blocks. The same code therefore runs on real interfaces and
//! in virtual time.

pub mod sweep;
pub mod sequence;
pub mod search;
pub mod forwarding_rate;
pub mod match_types;
pub mod throughput;
pub mod rfc9971;
pub mod latency;
pub mod throughput_based;
pub mod rfc2544;
pub mod rfc9004;
pub mod rfc8219;
pub mod rfc2889;
pub mod fairness;
pub mod soak;
pub mod controller_trials;
pub mod flow_mod_scripts;
pub mod flow_mod_rate;
pub mod flow_stats_dump;
pub mod memory_per_flow;
pub mod cold_start;
pub mod program_swap;
pub mod control_plane;
pub mod show;
pub mod activation_times;

use packet::time::Nanos;
use record::{Bound, GoalResult, Metric, Role};
use tester::procedure::Procedure;
use tester::search::bracket::Bracket;
use tester::stream::{Rate, Stream, line_rate_pps};
use tester::trial::Trial;

use targets::name::TargetKind;
use workload::Technology;
use workload::parameter::Parameters;
use workload::parameter::declaration::{Parameter, Values};
use workload::{Addresses, Setup};

/// Everything that a method depends on besides its own definition.
#[derive(Debug, Clone)]
pub struct Context {
    /// The target.
    pub kind: TargetKind,
    /// The target's data plane technology.
    pub technology: Technology,
    /// Addresses at both ends of the links.
    pub addresses: Addresses,
    /// Capacity of the nominal link, bit/s.
    pub capacity_bps: u64,
    /// Parameters set by the user.
    pub parameters: Parameters,
    /// Seed of all random values.
    pub seed: u64,
    /// Highest rate that the tester offers without a target, in frames per second, if it was measured.
    pub ceiling_pps: Option<f64>,
    /// Whether an earlier experiment of the same run searches for the throughput.
    pub has_throughputs: bool,
}

/// Purpose of the trial that was yielded last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Role of the trial.
    pub role: Role,
    /// Number of the repeat that the trial belongs to, from 1.
    pub repeat: u32,
}

/// A result derived from several trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Number of the repeat of the search, from 1.
    pub repeat: u32,
    /// Name of the experiment's axis.
    pub axis: &'static str,
    /// Position on the axis.
    pub x: f64,
    /// Curve that the result belongs to, if the target has several.
    pub curve: Option<(&'static str, f64)>,
    /// Metric of the result.
    pub metric: Metric,
    /// Value of the metric.
    pub value: f64,
    /// Resolution of the method: the true value is within this distance.
    pub resolution: Option<f64>,
    /// Side on which the value only bounds the true value.
    pub bound: Option<Bound>,
    /// Whether the search violated its rules.
    pub irregular: bool,
    /// Whether the tester could not offer a higher load.
    pub tester_limited: bool,
    /// Whether the result depends on a loss that the tester may have caused.
    pub disturbed: bool,
    /// Goal of the search that gave this result, if the search had several goals.
    pub goal: Option<GoalResult>,
}

impl Finding {
    /// Creates a result without any qualification.
    pub fn new(repeat: u32, axis: &'static str, x: f64, metric: Metric, value: f64) -> Self {
        Finding {
            repeat,
            axis,
            x,
            curve: None,
            metric,
            value,
            resolution: None,
            bound: None,
            irregular: false,
            tester_limited: false,
            disturbed: false,
            goal: None,
        }
    }
}

/// A measurement method that runs on one target.
pub trait Method: Procedure<Setup = Setup> + Send {
    /// Returns the purpose of the trial that [`Procedure::next`] yielded last.
    fn tag(&self) -> Tag;

    /// Returns the results found since the last call.
    fn findings(&mut self) -> Vec<Finding> {
        Vec::new()
    }

    /// Returns the loss ratios allowed by the goals that the last yielded trial serves.
    ///
    /// If loss caused by the tester can decide about such a goal, the trial is repeated. Empty if nothing is
    /// searched for.
    fn allowed(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Returns whether a rejected setup is a result of the method.
    ///
    /// If so, the rejection is recorded and the next trial runs on the entries that the target accepted. Otherwise
    /// the rejection ends the run.
    fn tolerates_rejection(&self) -> bool {
        false
    }

    /// Returns the name of the goal for which the last yielded trial was chosen.
    fn goal(&self) -> Option<&'static str> {
        None
    }

    /// Returns the progress of the searches that the last yielded trial is a step of, for progress display.
    ///
    /// There is one bracket, or one for each goal that the trial serves.
    fn brackets(&self) -> Vec<Bracket> {
        Vec::new()
    }

    /// Returns the approximate duration in seconds of the module yielded last; `None` if it was a trial.
    fn module_seconds(&self) -> Option<f64> {
        None
    }

    /// Returns the number of flows added to the target since its creation, once the last yielded trial is over.
    ///
    /// 0 if memory is not measured.
    fn flows_grown(&self) -> u64 {
        0
    }

    /// Returns whether the method cannot continue before it learns a result from another target.
    fn waits(&self) -> bool {
        false
    }

    /// Takes a result of another target of the experiment.
    fn learn(&mut self, _found: &record::Outcome) {}

    /// Takes a result of an earlier experiment of the same set on the same target. The same result may arrive
    /// twice.
    fn inherit(&mut self, _found: &record::Outcome) {}
}

impl Context {
    /// Creates a trial of one stream that hits the entries of `setup`.
    pub fn trial(&self, setup: &Setup, frame_bytes: u16, rate: Rate) -> Trial {
        self.trial_of(vec![setup.stream(self.technology, &self.addresses, frame_bytes, rate)])
    }

    /// Creates a trial of these streams.
    pub fn trial_of(&self, streams: Vec<Stream>) -> Trial {
        let seconds = self.parameters.seconds;
        Trial::new(
            streams,
            Nanos::from_secs_f64(self.parameters.warmup_s),
            Nanos::from_secs_f64(seconds),
            drain(seconds),
        )
    }

    /// Returns this percentage of the nominal link as a rate.
    pub fn link_percent(&self, percent: f64) -> Rate {
        Rate::LinkPercent { percent, link_bits_per_second: self.capacity_bps }
    }

    /// Returns the highest rate to offer at this frame size, in frames per second.
    ///
    /// This is the rate of the nominal link, limited to what the tester can offer.
    pub fn most_pps(&self, frame_bytes: u16) -> f64 {
        let link = line_rate_pps(self.capacity_bps, usize::from(frame_bytes));
        self.ceiling_pps.map_or(link, |ceiling| link.min(ceiling))
    }

    /// Returns the same rate per port if `senders` ports send at the same time.
    pub fn port_pps(&self, frame_bytes: u16, senders: u8) -> f64 {
        let link = line_rate_pps(self.capacity_bps, usize::from(frame_bytes));
        self.ceiling_pps.map_or(link, |ceiling| link.min(ceiling / f64::from(senders.max(1))))
    }

    /// Returns the number of repeats of a whole search: the configured number, or about half the repeats of a
    /// trial.
    pub fn searches(&self) -> u32 {
        self.parameters.repeats_of_searches()
    }

    /// Returns the setup with the defaults for entries and flows, unless the user set others.
    pub fn setup(&self) -> Setup {
        let single = Setup::single(self.seed);
        Setup {
            table: self.parameters.table.unwrap_or(single.table),
            entries: self.parameters.entries,
            traffic: self.parameters.traffic.unwrap_or(match self.parameters.entries {
                1 => workload::parameter::Traffic::One,
                _ => workload::parameter::Traffic::Random,
            }),
            rules: self.parameters.rules,
            style: self.parameters.style,
            seed: self.seed,
            ..single
        }
    }

    /// Returns the frame sizes of an axis.
    pub fn frames(&self, declared: &Parameter) -> Values<u16> {
        self.parameters.own.integers(declared).map(|bytes| bytes as u16)
    }

    /// Returns the frame size of an experiment that takes only one.
    pub fn frame(&self, declared: &Parameter) -> u16 {
        self.parameters.own.integer(declared) as u16
    }

    /// Returns the loads of an axis, in percent.
    pub fn loads(&self, declared: &Parameter) -> Values<f64> {
        self.parameters.own.numbers(declared)
    }

    /// Returns the load of an experiment that takes only one, in percent.
    pub fn load(&self, declared: &Parameter) -> f64 {
        self.parameters.own.number(declared)
    }

    /// Returns the number of entries or flows of an experiment that takes only one.
    pub fn count(&self, declared: &Parameter) -> u32 {
        self.parameters.own.integer(declared) as u32
    }
}

/// Name of curves by frame size.
pub const FRAME_CURVE: &str = "frame_bytes";
/// Name of curves by load.
pub const LOAD_CURVE: &str = "load_percent";

/// Returns the curve of a value if an experiment has several values in addition to its axis.
pub fn curve_of<T: Copy + Into<f64>>(
    name: &'static str,
    values: &Values<T>,
    value: T,
) -> Option<(&'static str, f64)> {
    (values.len() > 1).then(|| (name, value.into()))
}

/// Returns how long to wait for frames in flight after a trial.
///
/// RFC 2544 section 23 waits two seconds. Shorter trials wait less, and the record contains the time.
pub fn drain(seconds: f64) -> Nanos {
    Nanos::from_secs_f64((seconds * 0.4).clamp(0.05, 2.0))
}
