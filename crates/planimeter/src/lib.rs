//! Tests of network data planes: targets, experiments, runs, and the command line.
//!
//! The modules follow the order of a run: what can be requested, what is measured and how, on which target, in which
//! order, and which results are kept.

/// Version of this build. An optimized build from a checkout includes the commit.
pub const VERSION: &str = env!("PLANIMETER_VERSION");

pub mod parameter;
mod nearest;
pub mod workload;
pub mod experiments;
pub mod activation_times;
pub mod papers;
pub mod catalog;
pub mod target;
pub mod fit;
pub mod proxied;
pub mod python;
pub mod environment;
pub mod live;
pub mod runner;
pub mod sending;
pub mod serve;
#[deny(clippy::print_stdout, clippy::print_stderr)]
pub mod cli;
