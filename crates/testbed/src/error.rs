//! Errors of the lab; each variant has the values of its cause.
//!
//! Invariant: an error names the operation and its object. One line shows what failed, where, and
//! (through [`Requirement::mend`]) how to fix it.

use crate::netlink::uses::Use;
use crate::requirement::Requirement;
use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// Error of a lab operation.
#[derive(Debug)]
pub enum LabError {
    /// This machine lacks a requirement.
    Need(Requirement),
    /// A system call failed.
    System {
        /// The operation, as a verb: "create the link".
        what: &'static str,
        /// Its object: a path, an interface, a process.
        subject: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// A process ended although it should have kept running.
    Exited {
        /// The program's file name.
        program: String,
        /// Its exit status.
        status: ExitStatus,
        /// The last lines of its output.
        last: Vec<String>,
    },
    /// A process runs but did not become ready in time.
    NotReady {
        /// The program or peer.
        program: String,
        /// The timeout.
        waited: Duration,
        /// The last lines of its output.
        last: Vec<String>,
    },
    /// An argument is invalid, such as an interface name that is too long.
    Argument {
        /// The kind of argument.
        what: &'static str,
        /// Its value.
        value: String,
    },
    /// This host has no interface of this name.
    NoInterface(String),
    /// A requested interface is in use.
    InterfaceUsed {
        /// Its name.
        name: String,
        /// Its uses.
        uses: Vec<Use>,
    },
    /// An interface that is up has no carrier.
    NoLink {
        /// Its name.
        name: String,
        /// The timeout.
        waited: Duration,
    },
    /// A peer or the kernel sent an unexpected reply.
    Answer {
        /// The sender of the reply.
        from: String,
        /// The request.
        request: String,
        /// The reply, shortened.
        answer: String,
    },
}

impl LabError {
    /// Builds an error of a system call, with operation and object.
    pub fn system(what: &'static str, subject: impl Into<String>, error: io::Error) -> Self {
        LabError::System { what, subject: subject.into(), error }
    }

    /// Builds an error from this thread's `errno`.
    pub fn last(what: &'static str, subject: impl Into<String>) -> Self {
        LabError::system(what, subject, io::Error::last_os_error())
    }

    /// Returns the kernel's error number, if the error is from a system call.
    pub fn number(&self) -> Option<i32> {
        match self {
            LabError::System { error, .. } => error.raw_os_error(),
            _ => None,
        }
    }
}

impl From<Requirement> for LabError {
    fn from(need: Requirement) -> Self {
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
                write!(f, "{program} ended unexpectedly ({status}){}", LastLines(last))
            }
            LabError::NotReady { program, waited, last } => {
                write!(f, "{program} was not ready after {:.1} s", waited.as_secs_f64())?;
                write!(f, "{}", LastLines(last))
            }
            LabError::Argument { what, value } => write!(f, "invalid {what}: {value:?}"),
            LabError::NoInterface(name) => write!(f, "there is no interface {name} here"),
            LabError::InterfaceUsed { name, uses } => {
                let uses: Vec<String> = uses.iter().map(ToString::to_string).collect();
                write!(f, "the interface {name} is in use: {}", uses.join(", "))
            }
            LabError::NoLink { name, waited } => {
                write!(f, "the interface {name} has no link after {:.0} s", waited.as_secs_f64())
            }
            LabError::Answer { from, request, answer } => {
                write!(f, "unexpected reply from {from} ({request}): {answer:?}")
            }
        }
    }
}

impl std::error::Error for LabError {}

/// The last lines of a log, joined into one line.
struct LastLines<'a>(&'a [String]);

impl fmt::Display for LastLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; last output: {}", self.0.join(" | "))
    }
}
