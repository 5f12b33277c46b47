//! `planimeter run`: measures targets side by side and writes a run's folder.

use std::path::PathBuf;
use std::process::ExitCode;

use super::failure::Failure;
use crate::parameter::Effort;

/// Arguments of `planimeter run`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Experiments: a study's figure (bianco2010/fig2), a whole study (bianco2010), or a workload
    /// (forwarding-rate, throughput, latency); `planimeter list` shows them
    #[arg(required_unless_present = "resume", value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// What to measure, first the one that ratios refer to; without any, all that can run here
    #[arg(long = "on", value_name = "TARGET")]
    pub targets: Vec<String>,
    /// How tester and target are joined: veth or memory; without it, the best that is allowed
    #[arg(long, value_name = "LINK")]
    pub link: Option<String>,
    /// How long and how often is measured
    #[arg(long, value_enum, default_value_t = EffortArgument::Standard)]
    pub effort: EffortArgument,
    /// Change a parameter; `planimeter list parameters` shows them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder in which the run's own folder is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Go on with an interrupted run at its next trial
    #[arg(long, value_name = "RUN")]
    pub resume: Option<PathBuf>,
    /// Exit 3 if a result is irregular or limited by the tester
    #[arg(long)]
    pub strict: bool,
    /// Say what would be done and how long it would take, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the run's record on stdout
    #[arg(long)]
    pub json: bool,
}

/// The words that `--effort` takes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum EffortArgument {
    /// Three short repeats
    Quick,
    /// Five repeats of two seconds
    Standard,
    /// Three runs of 60 seconds, as published
    Full,
}

impl From<EffortArgument> for Effort {
    fn from(argument: EffortArgument) -> Effort {
        match argument {
            EffortArgument::Quick => Effort::Quick,
            EffortArgument::Standard => Effort::Standard,
            EffortArgument::Full => Effort::Full,
        }
    }
}
