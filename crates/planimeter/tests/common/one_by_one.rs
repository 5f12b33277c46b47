//! Runner of tests that need a lab. Tests run in sequence, and each may name a missing requirement.
//!
//! Invariant: if `CI` is set for root over all users, no test may be skipped.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use testbed::requirement;

/// A test's name, its requirements, and the test.
pub type Test<E> = (&'static str, fn() -> Result<(), E>, fn());

/// Runs the tests whose names contain an argument, or all. Must be called while there is one thread
/// only: without root, this process becomes root in a namespace.
#[allow(dead_code, reason = "not every test that includes this file has a list")]
pub fn run<E: Display>(tests: &[Test<E>]) -> ExitCode {
    run_where(tests, testbed::namespace::enter_rootless().map(drop))
}

/// Runs tests that need no lab.
#[allow(dead_code, reason = "most tests that include this file need one")]
pub fn run_anywhere<E: Display>(tests: &[Test<E>]) -> ExitCode {
    run_where(tests, Ok(()))
}

fn run_where<E: Display>(
    tests: &[Test<E>],
    entered: Result<(), requirement::Requirement>,
) -> ExitCode {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|it| name.contains(it));
    let mut failed = 0;
    for (name, needs, test) in tests.iter().filter(|(name, ..)| is_wanted(name)) {
        let entered = entered.clone().map_err(|need| need.to_string());
        let ready = entered.and_then(|()| needs().map_err(|need| need.to_string()));
        let started = Instant::now();
        let outcome = match ready {
            Err(need) if must_not_skip() => format!("FAILED: it may not be skipped, but {need}"),
            Err(need) => format!("skipped: {need}"),
            Ok(()) => match catch_unwind(AssertUnwindSafe(test)) {
                Ok(()) => "ok".to_owned(),
                Err(_) => "FAILED".to_owned(),
            },
        };
        failed += usize::from(outcome.starts_with("FAILED"));
        println!("test {name} ... {outcome} ({:.1} s)", started.elapsed().as_secs_f64());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns whether a missing requirement is a failure.
pub fn must_not_skip() -> bool {
    std::env::var_os("CI").is_some() && is_real_root()
}

/// Returns whether this process is root over all users, not in a user namespace.
pub fn is_real_root() -> bool {
    let users = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let all = users.split_ascii_whitespace().nth(2) == Some("4294967295");
    all && requirement::privileged()
}
