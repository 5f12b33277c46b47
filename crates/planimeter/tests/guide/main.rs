//! Tests of the documents: valid links, working commands, and a reference that matches the program.
//!
//! Code fences of the guide have keywords after their language. `run` is a block that a shell runs
//! here, in the folder of the page. `needs=NAME` is a finding of `planimeter doctor` (spaces as
//! dashes; or `postgresql`, which is then started). Without it, the block is skipped. `file=NAME`
//! is a file that exists when later blocks of the page run.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

/// Helpers to run the program.
#[path = "../common/mod.rs"]
mod common;
/// Requirements of tests.
#[path = "../common/one_by_one.rs"]
#[allow(dead_code, reason = "these tests are not one by one")]
mod one_by_one;
/// A test database.
#[path = "../../../store/tests/postgres/mod.rs"]
mod postgres;
/// Pages and their fences.
mod page;
/// Check of links.
mod links;
/// The commands of the guide.
mod commands;
/// The program's own description as pages.
mod reference;
/// A page for each experiment.
mod experiments;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
