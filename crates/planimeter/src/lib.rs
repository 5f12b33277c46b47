//! What we measure, and how you ask for it.
//!
//! Modules are listed in the order in which a run meets them: what can be asked for, what is
//! measured and how, on what, in which order, and what is kept of it.

/// This build: its version, with the commit where it is optimised and made from a checkout.
pub const VERSION: &str = env!("PLANIMETER_VERSION");

/// What a run can be told: parameters with their defaults, ranges and units.
pub mod parameter;
/// The known name that is most like a wrong one.
mod nearest;
/// What a target must hold before a trial, and the traffic that suits it.
pub mod workload;
/// The studies' figures and the standard methods, one file each.
pub mod experiments;
/// Activation times of rules, each known to lie between two probes.
pub mod activation_times;
/// What the studies print and state.
pub mod papers;
/// Every experiment by name.
pub mod catalog;
/// What can be measured, and how it is joined to the instrument.
pub mod target;
/// Models of switches from what was measured on them.
pub mod fit;
/// A proxied control channel as a run.
pub mod proxied;
/// Modules that users write in Python.
pub mod python;
/// The machine that a run happens on.
pub mod environment;
/// A run as those see it who watch.
pub mod live;
/// A plan carried out: targets in turn, trial by trial, into the store.
pub mod runner;
/// What is new of a run, on its way to a store for teams.
pub mod sending;
/// Runs in a browser.
pub mod serve;
/// The command line.
#[deny(clippy::print_stdout, clippy::print_stderr)]
pub mod cli;
