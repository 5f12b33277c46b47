//! Tests of network data planes: targets, experiments, runs, and the command line.
//!
//! The modules follow the order of a run: what can be requested, what is measured and how, on which target, in which
//! order, and which results are kept.

/// Version of this build. An optimized build from a checkout includes the commit.
pub const VERSION: &str = env!("PLANIMETER_VERSION");

/// Parameters of a run, with their defaults, ranges and units.
pub mod parameter;
/// Suggestion of the known name that is most similar to a wrong one.
mod nearest;
/// Set-up of a target before a trial, and the matching traffic.
pub mod workload;
/// Figures of the studies and the standard methods, one file each.
pub mod experiments;
/// Activation times of flow entries, each known to be between two probes.
pub mod activation_times;
/// Results and statements printed in the studies.
pub mod papers;
/// Catalog of experiments.
pub mod catalog;
/// Targets and their links to the tester.
pub mod target;
/// Fits models of switches to measurements.
pub mod fit;
/// Record of a proxied control channel as a run.
pub mod proxied;
/// Measurement modules in Python.
pub mod python;
/// Machine of a run.
pub mod environment;
/// Live view of a run.
pub mod live;
/// Runs a plan: targets in turn, trial by trial, with stored results.
pub mod runner;
/// Background upload of a run to a team store.
pub mod sending;
/// Web interface.
pub mod serve;
/// The command line.
#[deny(clippy::print_stdout, clippy::print_stderr)]
pub mod cli;
