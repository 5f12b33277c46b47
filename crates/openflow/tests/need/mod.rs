//! Checks for external programs that a test needs.
//!
//! Without the program a test reports that and passes. As root with CI set in the environment, it
//! fails.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns whether `program` can run; panics if it is required.
#[allow(dead_code, reason = "not every test needs a program")]
pub fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let found = command.status().is_ok_and(|status| status.success());
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let needed = std::env::var_os("CI").is_some() && root;
    assert!(found || !needed, "{program} is required but not installed");
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// Returns the Python of a virtual environment that `tools/needs.sh tests` created; panics if it is
/// required.
#[allow(dead_code, reason = "not every test needs one")]
pub fn python(name: &str) -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let place = cache.unwrap_or_default().join("planimeter/python").join(name);
    let found = place.join("installed").exists();
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let needed = std::env::var_os("CI").is_some() && root;
    assert!(found || !needed, "{name} is required: run `sh tools/needs.sh tests`");
    if !found {
        println!("skipped: {name} is not installed (sh tools/needs.sh tests)");
    }
    found.then(|| place.join("bin/python"))
}
