//! What can go wrong in the lab: each variant is a fact with its values.
//!
//! Invariant: an error names what was being done and to what, so that one line tells a person what
//! failed, where, and (through [`Need::mend`]) how to mend it.

use crate::need::Need;
use crate::netlink::uses::Use;
use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// Why the lab could not do what it was asked.
#[derive(Debug)]
pub enum LabError {
    /// This machine lacks something.
    Need(Need),
    /// The kernel refused.
    System {
        /// What was being done, as a verb: "create the link".
        what: &'static str,
        /// To what: a path, an interface, a process.
        subject: String,
        /// What the kernel answered.
        error: io::Error,
    },
    /// A process ended although it should have kept running.
    Exited {
        /// The program, by its file name.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines it printed.
        last: Vec<String>,
    },
    /// A process runs but did not become ready in time.
    NotReady {
        /// The program or peer.
        program: String,
        /// How long was waited.
        waited: Duration,
        /// The last lines it printed.
        last: Vec<String>,
    },
    /// An argument that cannot be used, such as an interface name that is too long.
    Argument {
        /// What the argument is.
        what: &'static str,
        /// Its value.
        value: String,
    },
    /// This host has no interface of this name.
    NoInterface(String),
    /// An interface that is to be taken is in use.
    InterfaceUsed {
        /// Its name.
        name: String,
        /// What for.
        uses: Vec<Use>,
    },
    /// An interface that is switched on has no link.
    NoLink {
        /// Its name.
        name: String,
        /// How long was waited for it.
        waited: Duration,
    },
    /// A peer or the kernel answered something else than was agreed.
    Answer {
        /// Who answered.
        from: String,
        /// What was asked.
        request: String,
        /// What came back, shortened.
        answer: String,
    },
}

impl LabError {
    /// A refusal of the kernel, with what was being done to what.
    pub fn system(what: &'static str, subject: impl Into<String>, error: io::Error) -> Self {
        LabError::System { what, subject: subject.into(), error }
    }

    /// The refusal that the last system call of this thread left in `errno`.
    pub fn last(what: &'static str, subject: impl Into<String>) -> Self {
        LabError::system(what, subject, io::Error::last_os_error())
    }

    /// The kernel's error number, where the kernel was the one that refused.
    pub fn number(&self) -> Option<i32> {
        match self {
            LabError::System { error, .. } => error.raw_os_error(),
            _ => None,
        }
    }
}

impl From<Need> for LabError {
    fn from(need: Need) -> Self {
        LabError::Need(need)
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Need(need) => write!(f, "{need}"),
            LabError::System { what, subject, error } => {
                write!(f, "cannot {what} ({subject}): {error}")
            }
            LabError::Exited { program, status, last } => {
                write!(f, "{program} ended early ({status}){}", Lines(last))
            }
            LabError::NotReady { program, waited, last } => {
                write!(f, "{program} was not ready after {:.1} s", waited.as_secs_f64())?;
                write!(f, "{}", Lines(last))
            }
            LabError::Argument { what, value } => write!(f, "{what} cannot be {value:?}"),
            LabError::NoInterface(name) => write!(f, "there is no interface {name} here"),
            LabError::InterfaceUsed { name, uses } => {
                let uses: Vec<String> = uses.iter().map(ToString::to_string).collect();
                write!(f, "the interface {name} is in use: {}", uses.join(", "))
            }
            LabError::NoLink { name, waited } => {
                write!(f, "the interface {name} has no link after {:.0} s", waited.as_secs_f64())
            }
            LabError::Answer { from, request, answer } => {
                write!(f, "{from} answered {request} with {answer:?}")
            }
        }
    }
}

impl std::error::Error for LabError {}

/// The last lines of a log, in one line.
struct Lines<'a>(&'a [String]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; it last said: {}", self.0.join(" | "))
    }
}
