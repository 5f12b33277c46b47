//! What a command says: results on stdout, remarks on stderr, and a reader who has gone away.
//!
//! Whoever reads through a pipe may close it early (`| head`). The command then says no more and goes on to
//! its end, for it may hold namespaces, ports and files; it exits as if all had been read. Any other
//! fault of stdout, a full disk for one, is told at the end and is a failure. Invariant: nothing else in the
//! command line prints.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use super::failure::Failure;

/// The first fault of stdout, after which nothing is written to it.
static FAULT: OnceLock<io::Error> = OnceLock::new();

/// A line on stdout; without anything, an empty one.
macro_rules! say {
    ($($what:tt)*) => {
        $crate::cli::out::to_stdout(format_args!("{}\n", format_args!($($what)*)))
    };
}

/// A line on stderr.
macro_rules! remark {
    ($($what:tt)*) => {
        $crate::cli::out::to_stderr(format_args!("{}\n", format_args!($($what)*)))
    };
}

pub(crate) use {remark, say};

/// Writes to stdout as long as somebody reads it.
pub fn to_stdout(what: Arguments<'_>) {
    if FAULT.get().is_none() {
        note(io::stdout().lock().write_fmt(what));
    }
}

/// A summary on stdout: for a file or a pipe as Markdown, which others show, and for a reader in columns.
pub fn summary(markdown: &str) {
    match io::stdout().is_terminal() {
        true => to_stdout(format_args!("{}", results::summary::shown(markdown))),
        false => to_stdout(format_args!("{markdown}")),
    }
}

/// Writes to stderr. That nobody reads it can be told to nobody.
pub fn to_stderr(what: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(what);
}

/// Hands over what waits to be written; a failure if stdout had a fault other than a reader who left.
pub fn ended() -> Result<(), Failure> {
    if FAULT.get().is_none() {
        note(io::stdout().lock().flush());
    }
    match FAULT.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::usage(format!("stdout: {error}")))
        }
        _ => Ok(()),
    }
}

fn note(written: io::Result<()>) {
    if let Err(error) = written {
        let _ = FAULT.set(error);
    }
}
