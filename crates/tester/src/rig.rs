//! Rigs: executors of trials, over real ports in real time or simulated ports in virtual time.
//!
//! Both drive the same engine, which reads no clock. They differ only in the source of time.

use std::path::PathBuf;

use netio::capture::CaptureError;
use netio::port::PortError;
use packet::time::Nanos;

use crate::controller::ControlError;
use crate::stream::Problem;
use crate::trial::{Trial, TrialReport};

pub mod agents;
pub mod engine;
pub mod hosts;
pub mod live;
pub mod sim;

/// An executor of trials.
pub trait Rig {
    /// Runs one trial to the end of its drain.
    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError>;

    /// Returns the number of ports. Streams refer to them by index.
    fn ports(&self) -> usize;

    /// Returns the kind of the rig.
    fn kind(&self) -> RigKind;
}

/// Kind of a rig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RigKind {
    /// Real ports in real time.
    Live,
    /// Virtual time.
    Simulated,
}

/// Why a trial could not be completed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RigError {
    /// The trial is invalid: each problem with its stream id.
    Unusable(Vec<(u16, Problem)>),
    /// A port failed: index and error.
    Port(usize, PortError),
    /// A port failed during the trial: index, error, and the results so far.
    Broken(usize, PortError, Box<TrialReport>),
    /// A capture file cannot be read: replay id, file and error.
    Trace(u16, PathBuf, CaptureError),
    /// A user interrupted it.
    Interrupted,
    /// The controller script failed.
    Orders(ControlError),
    /// The target could not be reset during the trial, with the reason.
    Reset(String),
    /// The target's program could not be swapped during the trial, with the reason.
    Swap(String),
    /// The simulated device stays active at the same virtual time without end.
    Restless(Nanos),
}

impl std::fmt::Display for RigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RigError::Unusable(problems) => {
                let lines = problems.iter().map(|(id, problem)| format!("stream {id}: {problem}"));
                f.write_str(&lines.collect::<Vec<_>>().join("; "))
            }
            RigError::Trace(id, file, error) => {
                write!(f, "replay {id}: {}: {error}", file.display())
            }
            RigError::Port(port, error) | RigError::Broken(port, error, _) => {
                write!(f, "port {}: {error}", port + 1)
            }
            RigError::Orders(error) => write!(f, "{error}"),
            RigError::Reset(why) => write!(f, "cannot reset the target: {why}"),
            RigError::Swap(why) => write!(f, "cannot swap the program: {why}"),
            RigError::Interrupted => write!(f, "interrupted"),
            RigError::Restless(now) => {
                write!(f, "the simulated device stays active at {now}")
            }
        }
    }
}

impl std::error::Error for RigError {}
