//! What is measured and how: one file per study's figure or standard method.
//!
//! A method is a pure state machine (`instrument::experiment::Experiment`): it yields set-ups and
//! trials as values and digests what came of them. It does no I/O, reads no clock and never
//! waits, so that it runs unchanged on real interfaces and in virtual time.

/// A fixed list of points, each tried several times.
pub mod sweep;
/// Tasks one after the other.
pub mod row;
/// Searches for the largest load within a loss, and what is measured at shares of it.
pub mod search;
/// Forwarding rate under full load.
pub mod forwarding_rate;
/// What a frame costs by the type of match.
pub mod match_types;
/// RFC 2544 throughput.
pub mod throughput;
/// Several goals in one search (RFC 9971).
pub mod rfc9971;
/// Latency at shares of the throughput.
pub mod latency;
/// What is measured at loads that follow from the throughput.
pub mod based;
/// The methods of RFC 2544.
pub mod rfc2544;
/// Back-to-back frames and buffer time (RFC 9004).
pub mod rfc9004;
/// Latency and its variation (RFC 8219).
pub mod rfc8219;
/// Bridges with several ports (RFC 2889).
pub mod rfc2889;
/// Flows that share a target.
pub mod fairness;
/// A set load for long.
pub mod soak;
/// A row of trials again and again.
pub mod course;
/// What controllers say.
pub mod orders;
/// Flow-mods a second, and what they cost frames.
pub mod flow_mod_rate;
/// All flow statistics, and what they cost frames.
pub mod flow_stats_dump;
/// Memory of a flow.
pub mod memory_per_flow;
/// Flows never met before.
pub mod cold_start;
/// Programs that take each other's place.
pub mod program_swap;
/// Measurement modules.
pub mod modules;
/// The figures of bianco2010.
pub mod bianco2010;
/// The figures of oflops2018.
pub mod oflops2018;
/// The tables and figures of costa2017.
pub mod costa2017;
/// The figures of gelberger2013.
pub mod gelberger2013;

use instrument::experiment::Experiment;
use instrument::search::bracket::Bracket;
use instrument::stream::{Rate, Stream, line_rate_pps};
use instrument::trial::Trial;
use packet::time::Nanos;
use results::record::{self, Bound, GoalResult, Metric, Role};

use crate::parameter::Parameters;
use crate::parameter::own::{Declared, Values};
use crate::target::name::{TargetKind, Technology};
use crate::workload::{Addresses, Setup};

/// Everything that a method depends on besides its own definition.
#[derive(Debug, Clone)]
pub struct Context {
    /// The target.
    pub kind: TargetKind,
    /// What the target does with frames.
    pub technology: Technology,
    /// The addresses at both ends of the links.
    pub addresses: Addresses,
    /// Capacity of the nominal link, bit/s.
    pub capacity_bps: u64,
    /// What the user asked for.
    pub parameters: Parameters,
    /// Seed of everything random.
    pub seed: u64,
    /// What the tester can offer without a target, frames per second, where it was measured.
    pub ceiling_pps: Option<f64>,
    /// Whether throughputs are found by an earlier experiment of the same run.
    pub has_throughputs: bool,
}

/// What the trial that was yielded last was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Its role.
    pub role: Role,
    /// Which repeat it belongs to, from 1.
    pub repeat: u32,
}

/// A result that took several trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which repeat of the search, from 1.
    pub repeat: u32,
    /// Name of the experiment's axis.
    pub axis: &'static str,
    /// Where on the axis it lies.
    pub x: f64,
    /// Which of the target's curves it belongs to, where there are several.
    pub curve: Option<(&'static str, f64)>,
    /// What was found.
    pub metric: Metric,
    /// Its value.
    pub value: f64,
    /// The true value lies within so much of it, as far as the way of looking goes.
    pub resolution: Option<f64>,
    /// On which side it only bounds the true value.
    pub bound: Option<Bound>,
    /// Whether the search broke its rules.
    pub irregular: bool,
    /// Whether the tester could not offer more.
    pub tester_limited: bool,
    /// Whether it rests on a loss that may be the tester's doing.
    pub disturbed: bool,
    /// The goal that it was found for, where the search had several.
    pub goal: Option<GoalResult>,
}

impl Finding {
    /// A result about which there is nothing to say.
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

/// A method at work on one target.
pub trait Method: Experiment<Setup = Setup> + Send {
    /// What the trial that [`Experiment::next`] yielded last was for.
    fn tag(&self) -> Tag;

    /// Takes the results that have been found since this was last asked.
    fn findings(&mut self) -> Vec<Finding> {
        Vec::new()
    }

    /// The shares of loss that the goals allow which the trial that was yielded last serves: where the tester's
    /// own doing can decide about them, the trial is repeated. None where nothing is searched for.
    fn allowed(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Whether a set-up that the target refuses is something to be found: it is said, and the trial that follows shows
    /// what the target does with what it holds. Elsewhere it ends the run.
    fn bears_refusal(&self) -> bool {
        false
    }

    /// The goal, by its name, for which the trial that was yielded last was chosen.
    fn goal(&self) -> Option<&'static str> {
        None
    }

    /// How far the searches have come of which the trial that was yielded last is a step, for whoever watches: one, or one for each
    /// goal that the trial serves.
    fn brackets(&self) -> Vec<Bracket> {
        Vec::new()
    }

    /// About how long the module takes that was yielded last, in seconds; none where it was a trial.
    fn module_seconds(&self) -> Option<f64> {
        None
    }

    /// Flows by which the target's memory has grown, since it was made, when the trial that was
    /// yielded last is over; 0 where its memory is not asked for.
    fn flows_grown(&self) -> u64 {
        0
    }

    /// Whether it cannot go on before it has learned something from another target.
    fn waits(&self) -> bool {
        false
    }

    /// Another target of the experiment found this.
    fn learn(&mut self, _found: &record::Outcome) {}

    /// An earlier experiment of the same set found this on the same target. It may be told twice.
    fn inherit(&mut self, _found: &record::Outcome) {}
}

impl Context {
    /// A trial of one stream that hits `setup`'s entries.
    pub fn trial(&self, setup: &Setup, frame_bytes: u16, rate: Rate) -> Trial {
        self.trial_of(vec![setup.stream(self.technology, &self.addresses, frame_bytes, rate)])
    }

    /// A trial of these streams.
    pub fn trial_of(&self, streams: Vec<Stream>) -> Trial {
        let seconds = self.parameters.seconds;
        Trial::new(
            streams,
            Nanos::from_secs_f64(self.parameters.warmup_s),
            Nanos::from_secs_f64(seconds),
            drain(seconds),
        )
    }

    /// This share of the nominal link.
    pub fn link_percent(&self, percent: f64) -> Rate {
        Rate::LinkPercent { percent, link_bits_per_second: self.capacity_bps }
    }

    /// Frames per second of this size at the most that is to be offered: what the nominal link carries, as
    /// far as the tester can offer it.
    pub fn most_pps(&self, frame_bytes: u16) -> f64 {
        let link = line_rate_pps(self.capacity_bps, usize::from(frame_bytes));
        self.ceiling_pps.map_or(link, |ceiling| link.min(ceiling))
    }

    /// The same for each of so many ports that send at once.
    pub fn port_pps(&self, frame_bytes: u16, senders: u8) -> f64 {
        let link = line_rate_pps(self.capacity_bps, usize::from(frame_bytes));
        self.ceiling_pps.map_or(link, |ceiling| link.min(ceiling / f64::from(senders.max(1))))
    }

    /// How often a whole search is repeated: as often as was set, or about half as often as a single trial.
    pub fn searches(&self) -> u32 {
        self.parameters.repeats_of_searches()
    }

    /// What one entry and one flow are, unless the user asked for something else.
    pub fn setup(&self) -> Setup {
        let single = Setup::single(self.seed);
        Setup {
            table: self.parameters.table.unwrap_or(single.table),
            entries: self.parameters.entries,
            traffic: self.parameters.traffic.unwrap_or(match self.parameters.entries {
                1 => crate::parameter::Traffic::One,
                _ => crate::parameter::Traffic::Random,
            }),
            rules: self.parameters.rules,
            style: self.parameters.style,
            seed: self.seed,
            ..single
        }
    }

    /// The frame sizes of an axis.
    pub fn frames(&self, declared: &Declared) -> Values<u16> {
        self.parameters.own.integers(declared).map(|bytes| bytes as u16)
    }

    /// The one frame size of an experiment that takes one.
    pub fn frame(&self, declared: &Declared) -> u16 {
        self.parameters.own.integer(declared) as u16
    }

    /// The loads of an axis, in percent.
    pub fn loads(&self, declared: &Declared) -> Values<f64> {
        self.parameters.own.numbers(declared)
    }

    /// The one load of an experiment that takes one, in percent.
    pub fn load(&self, declared: &Declared) -> f64 {
        self.parameters.own.number(declared)
    }

    /// The one number of entries or flows of an experiment that takes one.
    pub fn count(&self, declared: &Declared) -> u32 {
        self.parameters.own.integer(declared) as u32
    }
}

/// Name of the curves of frame sizes, and of those of loads.
pub const FRAME_CURVE: &str = "frame_bytes";
/// The same of loads.
pub const LOAD_CURVE: &str = "load_percent";

/// The curve of a value where an experiment has several of them beside its axis.
pub fn curve_of<T: Copy + Into<f64>>(
    name: &'static str,
    values: &Values<T>,
    value: T,
) -> Option<(&'static str, f64)> {
    (values.len() > 1).then(|| (name, value.into()))
}

/// How long is waited for frames under way. RFC 2544 section 23 waits two seconds; shorter trials
/// wait less, and the record says how long.
pub fn drain(seconds: f64) -> Nanos {
    Nanos::from_secs_f64((seconds * 0.4).clamp(0.05, 2.0))
}
