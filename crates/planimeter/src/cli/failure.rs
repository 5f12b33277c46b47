//! Failures of commands: one line with what failed, where and a hint, and an exit code.
//!
//! [`EXIT_CODES`] describes all codes; the manual page and the reference are generated from it.

use std::fmt;
use std::process::ExitCode;

/// Success.
pub const EXIT_DONE: u8 = 0;
/// A gate failed.
pub const EXIT_GATE: u8 = 1;
/// Usage or invalid input.
pub const EXIT_USAGE: u8 = 2;
/// Every trial failed, a module failed in one, or with `--strict` a result is irregular or
/// tester-limited.
pub const EXIT_IRREGULAR: u8 = 3;
/// A requirement is missing.
pub const EXIT_NEED: u8 = 4;
/// No gate failed, and one is inconclusive.
pub const EXIT_INCONCLUSIVE: u8 = 5;
/// Interrupted; partial results are kept.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Every exit code with its meaning.
pub const EXIT_CODES: [(u8, &str); 7] = [
    (EXIT_DONE, "Success. Every gate passed, if there are gates."),
    (EXIT_GATE, "A gate failed, or with --strict one is inconclusive."),
    (
        EXIT_USAGE,
        "The input is invalid: the command line, a file, a name, a value, or a gate that matches \
         no result.",
    ),
    (
        EXIT_IRREGULAR,
        "Every trial failed; a module failed in a trial; no gate failed, but one depends on a \
         result that is missing, irregular or limited by the tester; or with --strict any result \
         is irregular or limited by the tester.",
    ),
    (
        EXIT_NEED,
        "A requirement is missing: a privilege, a program, a kernel feature, a connection; or with \
         --strict the machine is too noisy to measure.",
    ),
    (EXIT_INCONCLUSIVE, "No gate failed or is doubtful, and one is inconclusive."),
    (EXIT_INTERRUPTED, "The command was interrupted. The results until then are kept."),
];

/// Failure of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class of failure.
    pub kind: FailureKind,
    /// One line: what failed, where, and a hint.
    pub line: String,
}

/// Classes of failures with their own exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Invalid input: the command line, a file, an interface that does not exist.
    Usage,
    /// No trial succeeded; or a result is irregular or tester-limited, and this is not accepted.
    Irregular,
    /// Privileges, a program or a kernel feature are missing.
    Need,
    /// Stopped by a signal.
    Interrupted,
}

impl Failure {
    /// Creates a failure of invalid input.
    pub fn usage(line: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Usage, line: line.into() }
    }

    /// Creates a failure of a missing requirement.
    pub fn need(line: impl Into<String>) -> Self {
        Failure { kind: FailureKind::Need, line: line.into() }
    }

    /// Returns the exit code of this class of failure.
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
