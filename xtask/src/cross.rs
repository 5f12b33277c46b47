//! The second architecture: all code must compile for it, and code specific to it is tested in an
//! emulator.
//!
//! A linker, a C compiler and an emulator come from Debian (`gcc-aarch64-linux-gnu`,
//! `libc6-dev-arm64-cross`, `qemu-user`), the standard library from rustup. Missing tools are
//! reported, and the steps that require them are skipped.

use std::process::Command;

use crate::ci::{cargo, step};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

/// Folder of the architecture's libraries.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// Crates with architecture-specific code, or with byte order and forwarding decisions.
const TESTED: &[&str] = &["packet", "openflow", "dataplane"];

/// Runs the checks and tests that this machine supports. Returns whether none failed.
pub fn run() -> bool {
    let has_library = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .is_ok_and(|found| {
            let folder = String::from_utf8_lossy(&found.stdout).trim().to_owned();
            std::path::Path::new(&folder).is_dir()
        });
    if !has_library || !is_there(COMPILER) {
        println!(
            "== cross: skipped, requires `rustup target add {TARGET}` and gcc-aarch64-linux-gnu"
        );
        return true;
    }
    let check = ["check", "--workspace", "--quiet", "--target", TARGET];
    if !step("cross: compile", cargo(&check)) {
        return false;
    }
    if !is_there(EMULATOR) {
        println!("== cross: tests skipped, requires qemu-user and libc6-dev-arm64-cross");
        return true;
    }
    let mut tests = cargo(&["test", "--quiet", "--target", TARGET, "--lib"]);
    tests.args(TESTED.iter().flat_map(|name| ["-p", name]));
    tests
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{EMULATOR} -L {LIBRARIES}"));
    step("cross: tests in the emulator", tests)
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|found| found.status.success())
}
