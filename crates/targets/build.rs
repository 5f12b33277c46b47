//! Sets the version that `--version` prints and that every record states.
//!
//! Only optimised builds state their commit. For other builds it would cause a rebuild after each
//! commit; they state that they are not optimised.

use std::process::Command;

#[allow(clippy::disallowed_methods, reason = "cargo configures build scripts by the environment")]
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

/// The commit that is checked out, and whether files differ from it; absent outside a checkout.
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
