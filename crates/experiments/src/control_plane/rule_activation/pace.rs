//! Probe rate that the path carries, from the probes that return before an update.
//!
//! Probes beyond that rate wait in queues or are lost, at the tester or at the target. Both widen the windows of the
//! entries, so a lower rate resolves more.
//!
//! Invariants:
//! - One window with losses does not lower the rate, because the first frames of an entry may take a slow path.
//! - If a lower rate loses as large a share, the rate is not the cause, and the rate before is used again.

use packet::time::Nanos;

use super::STREAMS;

/// Share of the probes that may be missing on a path that carries them.
const LOSS_SHARE: f64 = 0.01;

/// Number of probes that may be missing besides: the pacing of each stream is inexact by one.
const LOSS_PROBES: f64 = STREAMS as f64;

/// Share of the returned rate that is used after a loss.
const LOAD_SHARE: f64 = 0.8;

/// The rate decreases at most by this factor at once, since an overloaded path carries less than it could.
const SLOWER_MIN: f64 = 0.5;

/// Maximum number of decreases.
const SLOWDOWNS_MAX: u32 = 6;

/// Factor by which the share of returned probes has to grow with each decrease.
const GROWTH_MIN: f64 = 1.2;

/// What a window of probes shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Finding {
    /// The path carries the probes.
    Carried,
    /// Probes are missing; another window decides.
    Unclear,
    /// The path does not carry the probes; this rate is to be tried.
    Try(f64),
    /// No rate that was tried is without losses.
    Overloaded,
}

/// Probes of a window that returned.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    begun_at: Nanos,
    /// First and last departure.
    sent: Option<[Nanos; 2]>,
    returned: u64,
    was_lossy: bool,
    slowdowns: u32,
    /// Rate before the last decrease, and the share that returned.
    before: Option<(f64, f64)>,
}

impl Pace {
    /// Begins a window.
    pub fn begin(&mut self, now: Nanos) {
        (self.begun_at, self.sent, self.returned) = (now, None, 0);
    }

    /// Records a returned probe.
    pub fn note(&mut self, sent_at: Nanos) {
        if sent_at < self.begun_at {
            return;
        }
        let [first, last] = self.sent.unwrap_or([sent_at; 2]);
        self.sent = Some([first.min(sent_at), last.max(sent_at)]);
        self.returned += 1;
    }

    /// Ends the window, in which probes left at this rate.
    pub fn end(&mut self, pps: f64, now: Nanos) -> Finding {
        // Probes behind the last one that returned are still on their way.
        let span = match self.sent {
            Some([first, last]) if first < last => last.since(first),
            _ => now.since(self.begun_at),
        };
        let expected = pps * span.as_secs_f64();
        let is_lossy = expected - self.returned as f64 > LOSS_SHARE * expected + LOSS_PROBES;
        let was_lossy = std::mem::replace(&mut self.was_lossy, is_lossy);
        match (is_lossy, was_lossy) {
            (false, _) => Finding::Carried,
            (true, false) => Finding::Unclear,
            (true, true) if self.slowdowns == SLOWDOWNS_MAX => Finding::Overloaded,
            (true, true) => {
                self.was_lossy = false;
                self.slowdowns += 1;
                let share = self.returned as f64 / expected;
                match self.before.replace((pps, share)) {
                    Some((pps_before, share_before)) if share < GROWTH_MIN * share_before => {
                        self.slowdowns = SLOWDOWNS_MAX;
                        Finding::Try(pps_before)
                    }
                    _ => Finding::Try(pps * (LOAD_SHARE * share).max(SLOWER_MIN)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of 50 ms in which probes leave at this rate and so many of a thousand return.
    fn window(pace: &mut Pace, from_ms: u64, pps: f64, per_mille: u64) -> Finding {
        let from = Nanos::from_millis(from_ms);
        pace.begin(from);
        let gap = Nanos::from_secs_f64(1.0 / pps);
        for probe in (0..(pps * 0.05) as u64).filter(|probe| probe % 1000 < per_mille) {
            pace.note(from.saturating_add(Nanos(gap.0 * probe)));
        }
        pace.end(pps, Nanos::from_millis(from_ms + 50))
    }

    #[test]
    fn a_path_that_returns_all_probes_keeps_the_rate() {
        let mut pace = Pace::default();
        assert_eq!(window(&mut pace, 0, 1e5, 1000), Finding::Carried);
        // A burst of losses, as of first frames on a slow path, decides nothing.
        assert_eq!(window(&mut pace, 50, 1e5, 300), Finding::Unclear);
        assert_eq!(window(&mut pace, 100, 1e5, 1000), Finding::Carried);
        // With few probes, those at the ends of the window are no loss.
        assert_eq!(window(&mut pace, 150, 500.0, 1000), Finding::Carried);
    }

    #[test]
    fn a_path_that_loses_probes_gets_fewer_until_it_carries_them() {
        let mut pace = Pace::default();
        assert_eq!(window(&mut pace, 0, 1e5, 900), Finding::Unclear);
        let Finding::Try(pps) = window(&mut pace, 50, 1e5, 900) else { panic!("not slower") };
        assert!((0.70e5..0.74e5).contains(&pps), "{pps}");
        assert_eq!(window(&mut pace, 100, pps, 1000), Finding::Carried);
        // An overloaded path returns less than it could carry.
        let mut pace = Pace::default();
        for (place, [pps, per_mille]) in [[1e5, 50.0], [5e4, 200.0]].into_iter().enumerate() {
            let from_ms = 100 * place as u64;
            assert_eq!(window(&mut pace, from_ms, pps, per_mille as u64), Finding::Unclear);
            let found = window(&mut pace, from_ms + 50, pps, per_mille as u64);
            assert_eq!(found, Finding::Try(pps / 2.0));
        }
        assert_eq!(window(&mut pace, 200, 2.5e4, 1000), Finding::Carried);
    }

    /// The rate at the end, and what the last window shows, if so many of a thousand probes return at any rate.
    fn searched(per_mille: u64) -> (f64, Finding) {
        let (mut pace, mut pps) = (Pace::default(), 1e5);
        for place in 0..20 {
            match window(&mut pace, place * 50, pps, per_mille) {
                Finding::Try(next) => pps = next,
                Finding::Unclear => {}
                found => return (pps, found),
            }
        }
        panic!("the search does not end");
    }

    #[test]
    fn losses_that_do_not_depend_on_the_rate_do_not_lower_it() {
        assert_eq!(searched(700), (1e5, Finding::Overloaded));
        let (pps, found) = searched(0);
        assert!(pps > 1e3 && found == Finding::Overloaded, "{pps}, {found:?}");
    }
}
