//! Finds the packages for tests in a browser (`tools/needs.sh tests`).

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The folder of the packages; none if one is missing. Panics if they are mandatory.
#[allow(clippy::disallowed_methods)]
pub fn found() -> Option<PathBuf> {
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let place = cache.unwrap_or_default().join("planimeter/browser");
    let is_there = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let missing = [
        ("chromium", is_there("chromium")),
        ("node", is_there("node")),
        ("puppeteer-core and axe-core (npm)", place.join("installed").exists()),
    ];
    let missing: Vec<&str> = missing.iter().filter(|it| !it.1).map(|it| it.0).collect();
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let needed = std::env::var_os("CI").is_some() && root;
    let missing = missing.join(", ");
    assert!(missing.is_empty() || !needed, "required: {missing}: run `sh tools/needs.sh tests`");
    if !missing.is_empty() {
        println!("skipped: {missing} not installed (sh tools/needs.sh tests)");
    }
    missing.is_empty().then_some(place)
}
