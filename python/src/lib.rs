//! The compiled part of the Python package: commands, stored runs, streams and switches as Python
//! objects.
//!
//! Measurements run in a separate process with the normal command line
//! (`docs/decisions/0037-the-python-package-contains-the-program.md`). This module reads, draws and
//! forwards in memory. Users see the Python files in `python/planimeter/`. Invariant: every error
//! raises an exception with the text that the command line prints.

/// Errors as exceptions.
mod failure;
mod figure;
/// Columns in Arrow format.
mod table;
/// Stored runs.
mod run;
/// Streams of frames.
mod stream;
/// An in-memory switch.
mod switch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use pyo3::prelude::*;

/// The Python module `planimeter._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::run::{Histogram, Stored};
    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::switch::Switch;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::{current_name, main, version};
}

/// Executes a command line, whose first word is the program's name, and returns the exit code.
/// `program` is an executable that does the same in a separate process.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>, program: PathBuf) -> u8 {
    planimeter::cli::variables::set_program(program);
    let code = py.detach(|| planimeter::cli::main_of(words));
    // `ExitCode` does not expose its number, but supports comparison.
    (0..=u8::MAX).find(|it| ExitCode::from(*it) == code).unwrap_or(u8::MAX)
}

/// The current spelling of a target's name.
#[pyfunction]
fn current_name(name: &str) -> String {
    record::target_name::current(name).into_owned()
}

/// The version of the program, as in `planimeter --version`.
#[pyfunction]
fn version() -> &'static str {
    planimeter::VERSION
}
