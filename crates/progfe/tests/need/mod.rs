//! External programs that a test requires. If one is missing, the test reports that and passes. As
//! root with CI set in the environment, the test fails instead.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// Returns true if `program` is available. Panics if it is required but missing.
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
