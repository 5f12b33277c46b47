//! How a command can fail: one line that says what, where and how to mend it, and an exit code.
//!
//! Exit codes: 0 done, 1 a gate failed, 2 usage or bad input, 3 every trial or a module failed, or a result is irregular under
//! `--strict`, 4 a need is missing, 5 a gate is inconclusive, 130 interrupted.

use std::fmt;
use std::process::ExitCode;

/// Done as asked.
pub const EXIT_DONE: u8 = 0;
/// A gate failed.
pub const EXIT_GATE: u8 = 1;
/// Usage or bad input.
pub const EXIT_USAGE: u8 = 2;
/// Every trial failed, a module failed in one, or a result is irregular or limited by the tester, and `--strict` was given.
pub const EXIT_IRREGULAR: u8 = 3;
/// A need is missing.
pub const EXIT_NEED: u8 = 4;
/// No gate failed, and one is inconclusive.
pub const EXIT_INCONCLUSIVE: u8 = 5;
/// Interrupted; partial results are kept.
pub const EXIT_INTERRUPTED: u8 = 130;

/// A command that could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What its exit code says.
    pub kind: FailureKind,
    /// One line: what, where and how to mend it.
    pub line: String,
}

/// The classes of failure that exit codes tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The input is wrong: the command line, a file, an interface that does not exist.
    Usage,
    /// No trial succeeded; or a result is irregular or tester-limited, and that was not accepted.
    Irregular,
    /// Rights, a program or a kernel feature are missing.
    Need,
    /// Stopped by a signal.
    Interrupted,
}

impl Failure {
    /// Bad input.
    pub fn usage(line: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Usage, line: line.into() }
    }

    /// Something that the machine lacks.
    pub fn need(line: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Need, line: line.into() }
    }

    /// The exit code that says which class of failure this is.
    pub fn exit_code(&self) -> ExitCode {
        match self.kind {
            FailureKind::Usage => EXIT_USAGE,
            FailureKind::Irregular => EXIT_IRREGULAR,
            FailureKind::Need => EXIT_NEED,
            FailureKind::Interrupted => EXIT_INTERRUPTED,
        }
        .into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for Failure {}
