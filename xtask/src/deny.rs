//! Licences, versions and sources of what the project depends on, by cargo-deny and `deny.toml`.
//!
//! Building cargo-deny takes minutes, so only a full check installs it, once, below `target/tools`.
//! Other checks use the one that is installed, or name what is missing. Advisories are checked where
//! `cargo deny fetch` has fetched their database once; the check updates it.

use std::path::PathBuf;
use std::process::Command;

use crate::ci::{Extent, cargo, step};

/// The version that is installed.
const PACKAGE: &str = "cargo-deny@0.20.2";

/// Checks the dependencies; whether nothing is wrong.
pub fn run(extent: Extent) -> bool {
    if !is_installed() && extent == Extent::Full {
        let root = tools().display().to_string();
        let install = cargo(&["install", "--quiet", "--locked", "--root", &root, PACKAGE]);
        if !step("dependencies: install cargo-deny", install) {
            return false;
        }
    }
    if !is_installed() {
        println!("== dependencies: skipped, requires `cargo install --locked {PACKAGE}`");
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

fn tools() -> PathBuf {
    crate::root().join("target/tools")
}

/// A command of cargo-deny, found where this program installs it or on the path.
fn deny(words: &[&str]) -> Command {
    let mut command = cargo(&["deny"]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [tools().join("bin")].into_iter().chain(std::env::split_paths(&path));
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
