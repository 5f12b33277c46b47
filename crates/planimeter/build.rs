//! Determines the version text for `--version` and for records, so that each result can be assigned
//! to a build.
//!
//! The text of an optimised build contains its commit. The text of any other build states instead
//! that it is not optimised. A commit there would recompile the crate after each commit.

use std::process::Command;

#[allow(
    clippy::disallowed_methods,
    reason = "cargo passes settings to a build script in environment variables"
)]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    let is_optimised = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let of = match (is_optimised, is_optimised.then(commit).flatten()) {
        (false, _) => format!("{version} (not optimised)"),
        (true, Some(commit)) => format!("{version} ({commit})"),
        (true, None) => version.to_owned(),
    };
    println!("cargo:rustc-env=PLANIMETER_VERSION={of}");
}

/// Returns the current commit, and whether files differ from it. `None` outside a checkout.
fn commit() -> Option<String> {
    let head = git(&["rev-parse", "--git-path", "HEAD"])?;
    println!("cargo:rerun-if-changed={head}");
    if let Some(branch) = git(&["symbolic-ref", "-q", "HEAD"])
        && let Some(file) = git(&["rev-parse", "--git-path", &branch])
    {
        println!("cargo:rerun-if-changed={file}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, changed") })
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
