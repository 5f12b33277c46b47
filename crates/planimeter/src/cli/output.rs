//! Output of a command: results on stdout, remarks on stderr, and closed pipes.
//!
//! A reader may close a pipe early (`| head`). The command then prints nothing more but runs to its
//! end, because it may hold namespaces, ports and files; it exits as if all output had been read.
//! Any other error of stdout, such as a full disk, is reported at the end and is a failure.
//! Invariant: nothing else in the command line prints.

use std::collections::BTreeSet;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::failure::Failure;

/// The first error of stdout, after which nothing is written to it.
static FAULT: OnceLock<io::Error> = OnceLock::new();

/// Prints a line on stdout; without arguments, an empty one.
macro_rules! say {
    ($($what:tt)*) => {
        $crate::cli::output::to_stdout(format_args!("{}\n", format_args!($($what)*)))
    };
}

/// Prints a line on stderr.
macro_rules! remark {
    ($($what:tt)*) => {
        $crate::cli::output::to_stderr(format_args!("{}\n", format_args!($($what)*)))
    };
}

pub(crate) use {remark, say};

/// Writes to stdout as long as it has a reader.
pub fn to_stdout(what: Arguments<'_>) {
    if FAULT.get().is_none() {
        note(io::stdout().lock().write_fmt(what));
    }
}

/// Prints a summary on stdout: as Markdown to a file or a pipe, in columns to a terminal.
pub fn summary(markdown: &str) {
    match io::stdout().is_terminal() {
        true => to_stdout(format_args!("{}", report::summary::shown(markdown))),
        false => to_stdout(format_args!("{markdown}")),
    }
}

/// Prints a line on stderr, unless this command printed it before.
pub fn remark_once(line: String) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.insert(line.clone()) {
        remark!("{line}");
    }
}

/// Writes to stderr. Errors are ignored, because they cannot be reported.
pub fn to_stderr(what: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(what);
}

/// Flushes stdout; returns a failure if stdout had an error other than a closed pipe.
pub fn ended() -> Result<(), Failure> {
    if FAULT.get().is_none() {
        note(io::stdout().lock().flush());
    }
    match FAULT.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::usage(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

fn note(written: io::Result<()>) {
    if let Err(error) = written {
        let _ = FAULT.set(error);
    }
}
