//! The compiled part of the Python package: commands, stored runs, streams and switches as Python's objects.
//!
//! Everything that measures happens in a process of its own, which is the same command line as anybody's
//! (`docs/decisions/0037-a-package-that-is-the-program.md`); what is here reads, draws and forwards in memory. The
//! files beside it in `python/planimeter/` are what users see. Invariant: whatever fails raises with the line that
//! the command line would print.

/// Errors as exceptions.
mod failure;
/// Columns that other libraries take as they are.
mod table;
/// Stored runs.
mod run;
/// Streams of frames.
mod stream;
/// A switch in memory.
mod switch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use pyo3::prelude::*;

/// What Python imports as `planimeter._native`.
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
    use super::{main, version};
}

/// Does what the words of a command line say, the first of which is the program's name; returns the exit code.
/// `program` is a file that does the same in a process of its own.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>, program: PathBuf) -> u8 {
    planimeter::cli::place::set_program(program);
    let code = py.detach(|| planimeter::cli::main_of(words));
    // An exit code tells its number by nothing but being equal to one.
    (0..=u8::MAX).find(|it| ExitCode::from(*it) == code).unwrap_or(u8::MAX)
}

/// The version of the program, as `planimeter --version` says it.
#[pyfunction]
fn version() -> &'static str {
    planimeter::VERSION
}
