//! Noise check before a live run: whether other work interrupts the tester's cores.
//!
//! A thread on each core of the tester reads the clock continuously; a gap of a millisecond or more
//! is a stall, as in a trial ([`tester::trial::STALL`]). Source: RFC 2544, section 6 (the
//! tester's limits must be known before its results are used). Invariants:
//! - There is no check in virtual time.
//! - The check takes at most [`SPAN_MAX`], and at most a tenth of the trials' duration.
//! - A machine whose cores cannot be observed does not count as noisy.

use std::io;

use os::jitter::OsJitter;
use packet::time::Nanos;

use super::failure::Failure;

/// Longest observation of the cores.
pub const SPAN_MAX: Nanos = Nanos::from_secs(2);

/// Shortest observation of the cores.
const SPAN_MIN: Nanos = Nanos::from_millis(200);

/// Maximum duration of the check, as a share of the trials' duration.
const SPAN_SHARE: f64 = 0.1;

/// Share of a core's time from which on stalls disturb trials, as in `report::derive`.
const STALLED_SHARE: f64 = 0.001;

/// Share of disturbed trials from which on a machine is noisy.
const DISTURBED_SHARE: f64 = 0.1;

/// Observes cores for a time; [`os::jitter::watch`] except in tests.
pub type CoreObserver = fn(&[usize], Nanos) -> io::Result<Vec<OsJitter>>;

/// Parameters of the check.
#[derive(Debug, Clone, Copy)]
pub struct Check<'a> {
    /// The cores of the tester.
    pub cores: &'a [usize],
    /// Duration of a trial, in seconds.
    pub trial_s: f64,
    /// Estimated duration of all trials, in seconds.
    pub all_s: f64,
    /// Whether a noisy machine is an error.
    pub is_strict: bool,
}

impl Check<'_> {
    /// Observes the cores; returns a warning if they are noisy, or an error if the check is strict.
    pub fn run(&self, watch: CoreObserver) -> Result<Option<String>, Failure> {
        let span = Nanos::from_secs_f64(self.all_s * SPAN_SHARE).clamp(SPAN_MIN, SPAN_MAX);
        let Ok(found) = watch(self.cores, span) else { return Ok(None) };
        match self.warning(&found) {
            Some(noise) if self.is_strict => Err(Failure::need(format!(
                "cannot start a --strict run: {noise} (hint: stop other programs, or leave out \
                 --strict)"
            ))),
            Some(noise) => Ok(Some(format!("{noise} (hint: stop other programs)"))),
            None => Ok(None),
        }
    }

    /// Returns the effect of the noisiest core on trials; `None` if it is small.
    fn warning(&self, found: &[OsJitter]) -> Option<String> {
        let share = |one: &OsJitter| one.stalled.as_secs_f64() / one.span.as_secs_f64().max(1e-9);
        let noisiest = found.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        let per_s = noisiest.stalls as f64 / noisiest.span.as_secs_f64().max(1e-9);
        // Stalls are independent of trials.
        let disturbed = 1.0 - (-per_s * self.trial_s).exp();
        if share(noisiest) < STALLED_SHARE || disturbed < DISTURBED_SHARE {
            return None;
        }
        Some(format!(
            "the machine is noisy: the tester lost core {} for {:.1} % of {:.1} s, {:.1} ms at the \
             longest; expect about {:.0} % of trials of {} s to be disturbed, and their latencies \
             to be unused",
            noisiest.core,
            share(noisiest) * 100.0,
            noisiest.span.as_secs_f64(),
            noisiest.longest.as_secs_f64() * 1e3,
            disturbed * 100.0,
            self.trial_s,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::failure::FailureKind;

    fn watched(core: usize, span: Nanos, gaps: &[u64]) -> OsJitter {
        let stalls = gaps.iter().filter(|ms| **ms > 0).count() as u64;
        let stalled = Nanos::from_millis(gaps.iter().sum());
        let longest = Nanos::from_millis(gaps.iter().copied().max().unwrap_or(0));
        OsJitter { core, span, count: stalls, total: stalled, longest, stalls, stalled }
    }

    fn quiet(cores: &[usize], span: Nanos) -> io::Result<Vec<OsJitter>> {
        Ok(cores.iter().map(|&core| watched(core, span, &[])).collect())
    }

    /// Core 1 loses 4 ms ten times in two seconds.
    fn noisy(cores: &[usize], span: Nanos) -> io::Result<Vec<OsJitter>> {
        assert_eq!(span, SPAN_MAX);
        let gaps = |core| if core == 1 { vec![4; 10] } else { vec![] };
        Ok(cores.iter().map(|&core| watched(core, span, &gaps(core))).collect())
    }

    fn rare(cores: &[usize], span: Nanos) -> io::Result<Vec<OsJitter>> {
        Ok(cores.iter().map(|&core| watched(core, span, &[1])).collect())
    }

    fn unwatched(_: &[usize], _: Nanos) -> io::Result<Vec<OsJitter>> {
        Err(io::ErrorKind::InvalidInput.into())
    }

    const CHECK: Check<'static> =
        Check { cores: &[0, 1], trial_s: 0.2, all_s: 60.0, is_strict: false };

    #[test]
    fn a_noisy_machine_causes_a_warning_with_the_expected_effect() {
        let warning = CHECK.run(noisy).unwrap().unwrap();
        for wanted in
            ["core 1", "2.0 % of 2.0 s", "4.0 ms at the longest", "63 % of trials of 0.2 s"]
        {
            assert!(warning.contains(wanted), "{warning}");
        }
        assert_eq!(CHECK.run(quiet), Ok(None));
        assert_eq!(CHECK.run(rare), Ok(None), "one millisecond in two seconds");
        assert_eq!(CHECK.run(unwatched), Ok(None));
    }

    #[test]
    fn a_strict_run_on_a_noisy_machine_is_rejected() {
        let strict = Check { is_strict: true, ..CHECK };
        let refused = strict.run(noisy).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Need);
        assert!(
            refused.line.starts_with("cannot start a --strict run: the machine is noisy"),
            "{}",
            refused.line
        );
        assert_eq!(strict.run(quiet), Ok(None));
    }

    #[test]
    fn a_short_run_has_a_short_noise_check() {
        fn short(cores: &[usize], span: Nanos) -> io::Result<Vec<OsJitter>> {
            assert_eq!(span, SPAN_MIN);
            quiet(cores, span)
        }
        assert_eq!(Check { all_s: 1.0, ..CHECK }.run(short), Ok(None));
    }
}
