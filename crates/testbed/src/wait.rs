//! Waits for events of the kernel or of a program.
//!
//! Invariant: every wait has a timeout.

#![allow(clippy::disallowed_methods)]

use crate::LabError;
use std::thread;
use std::time::{Duration, Instant};

/// Polling interval.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until `is_so` returns true, at most `patience`. Returns whether it did.
pub fn until(
    patience: Duration,
    mut is_so: impl FnMut() -> Result<bool, LabError>,
) -> Result<bool, LabError> {
    let start = Instant::now();
    loop {
        if is_so()? {
            return Ok(true);
        }
        if start.elapsed() >= patience {
            return Ok(false);
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_by_the_condition_the_timeout_or_an_error() {
        let mut looks = 0;
        let third = || {
            looks += 1;
            Ok(looks == 3)
        };
        assert!(until(Duration::from_secs(60), third).unwrap());
        assert_eq!(looks, 3);
        assert!(!until(Duration::ZERO, || Ok(false)).unwrap());
        let failing = || Err(LabError::Argument { what: "a test", value: String::new() });
        assert!(until(Duration::from_secs(60), failing).is_err());
    }
}
