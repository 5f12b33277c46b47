//! A rig runs trials: over real ports in real time, or over simulated ones in virtual time.
//!
//! Both drive the same engine, which knows no clock; what differs is who says what time it is.

use std::path::PathBuf;

use packet::time::Nanos;
use ports::capture::CaptureError;
use ports::port::PortError;

use crate::controller::ControlError;
use crate::stream::Problem;
use crate::trial::{Trial, TrialReport};

/// What to send, what to make of what comes back, and when it is over.
pub mod engine;
/// Real ports, real time.
pub mod live;
/// Virtual time and a device that lives in it.
pub mod sim;

/// Whoever can run a trial.
pub trait Rig {
    /// Runs one trial to the end of its drain.
    fn trial(&mut self, trial: &Trial) -> Result<TrialReport, RigError>;

    /// How many ports the rig has; streams name them from 0.
    fn ports(&self) -> usize;

    /// What kind of rig it is.
    fn kind(&self) -> RigKind;
}

/// What kind of rig ran a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RigKind {
    /// Real ports in real time.
    Live,
    /// Virtual time.
    Simulated,
}

/// Why a trial could not be run to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum RigError {
    /// The trial makes no sense: each fault, with the number of the stream it concerns.
    Unusable(Vec<(u16, Problem)>),
    /// A port failed: its index, and how.
    Port(usize, PortError),
    /// A port failed in the middle of a trial: its index, how, and what was seen until then.
    Broken(usize, PortError, Box<TrialReport>),
    /// A capture file cannot be read: the number of its replay, the file, and why.
    Trace(u16, PathBuf, CaptureError),
    /// Someone asked to stop.
    Interrupted,
    /// The orders that a controller was to give meanwhile could not be given.
    Orders(ControlError),
    /// The target was to be reset meanwhile, and was not: why.
    Reset(String),
    /// Programs were to take each other's place in the target meanwhile, and did not: why.
    Swap(String),
    /// The simulated device wants to go on at the same moment without end.
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
            RigError::Reset(why) => write!(f, "resetting the target: {why}"),
            RigError::Swap(why) => write!(f, "putting a program in place: {why}"),
            RigError::Interrupted => write!(f, "interrupted"),
            RigError::Restless(now) => {
                write!(f, "the simulated device does not come to rest at {now}")
            }
        }
    }
}

impl std::error::Error for RigError {}
