//! Search for the highest rate of operations per second: overall, and without loss.
//!
//! Source: RFC 8456, sections 5.1.2 and 5.1.3, with the switch instead of the controller under test. RFC 8456
//! begins at the highest rate and decreases it until nothing is lost and trials agree. It decreases the rate by a
//! fixed step; this search halves the interval between passed and failed rates instead.
//!
//! A control channel rarely loses messages, but delays them. A step therefore passes only if the completions take
//! hardly longer than the requests. Otherwise a queue grew.
//!
//! Invariant: the search ends after [`STEPS_MAX`] steps, whatever their outcome.

use packet::time::Nanos;
use record::BoundCause;
use tester::module::{MeasuredValue, Series};
use tester::search::bracket::{Bracket, SearchQuantity};

/// Maximum number of steps of a search.
pub const STEPS_MAX: usize = 28;

/// The search ends when the ratio of the lowest failed to the highest passed rate is at most this.
const AGREE: f64 = 1.05;

/// Completions may take longer than the requests by this share of the time...
const LONGER_SHARE: f64 = 0.05;

/// ...plus this time, because batches arrive in bursts.
const LONGER: Nanos = Nanos::from_millis(2);

/// Share of a step by which a final burst, whose duration is not visible, may distort the time.
const BURST_SHARE: f64 = 0.1;

/// The offered rate must reach this share of the intended rate.
const SHORT: f64 = 0.95;

/// Retries of a failed step before it counts: one, because trials must agree...
const AGAIN: u32 = 1;

/// ...and more if the tester was descheduled.
const AGAIN_DISTURBED: u32 = 3;

/// Requests of one step and their completions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Step {
    /// Operations requested.
    pub asked: u64,
    /// Operations completed.
    pub done: u64,
    /// Time from the first request to the last.
    pub asked_in: Nanos,
    /// Time from the first completion to the last.
    pub done_in: Nanos,
    /// Whether the tester was descheduled; the step is then invalid.
    pub is_disturbed: bool,
}

/// Search for the highest rates.
#[derive(Debug, Clone)]
pub struct RateSearch {
    least: f64,
    most: f64,
    next: f64,
    /// Highest requested rate that passed and was not refuted, and how often it passed.
    kept: Option<(f64, u32)>,
    /// Completions per second at that rate.
    kept_per_s: f64,
    /// Lowest rate that failed.
    missed: Option<f64>,
    /// Whether the failed rate was never reached: the tester was too slow, or the link took no more.
    is_short: bool,
    steps: Vec<Step>,
    again: u32,
    is_over: bool,
}

impl Step {
    /// Returns the requests per second.
    pub fn asked_per_s(&self) -> f64 {
        per_second(self.asked, self.asked_in)
    }

    /// Returns the completions per second, limited to the requests per second.
    pub fn done_per_s(&self) -> f64 {
        per_second(self.done, self.done_in.max(self.asked_in))
    }

    /// Returns whether all operations completed as fast as they were requested.
    pub fn is_kept(&self) -> bool {
        let longer = self.asked_in.0 as f64 * LONGER_SHARE + LONGER.0 as f64;
        let is_in_time = self.done_in.0 as f64 <= self.asked_in.0 as f64 + longer;
        self.asked > 0 && self.done >= self.asked && is_in_time
    }
}

fn per_second(count: u64, span: Nanos) -> f64 {
    count as f64 * 1e9 / (span.0 as f64).max(1.0)
}

impl RateSearch {
    /// Creates a search between these rates, in operations per second.
    pub fn new(least: f64, most: f64) -> RateSearch {
        let (kept, missed, steps) = (None, None, Vec::new());
        RateSearch {
            least,
            most,
            next: most,
            kept,
            kept_per_s: 0.0,
            missed,
            is_short: false,
            steps,
            again: 0,
            is_over: false,
        }
    }

    /// Returns the rate of the next step; `None` if the search is over.
    pub fn next(&self) -> Option<f64> {
        (!self.is_over && self.steps.len() < STEPS_MAX).then_some(self.next)
    }

    /// Returns the progress of the search; `None` if it is over.
    pub fn bracket(&self, what: &'static str, unit: &'static str) -> Option<Bracket> {
        Some(Bracket {
            sought: SearchQuantity::new(what, "all completed in time", unit),
            tried: self.next()?,
            met: self.kept.map(|(rate, _)| rate),
            missed: self.missed,
            most: self.most,
            width: Some(self.missed.unwrap_or(self.most) * (1.0 - 1.0 / AGREE)),
        })
    }

    /// Adds the outcome of the step at [`RateSearch::next`].
    pub fn note(&mut self, step: Step) {
        self.steps.push(step);
        let (wanted, rate) = (self.next, step.asked_per_s());
        let is_short = rate < wanted * SHORT;
        let is_kept = step.is_kept() && !is_short;
        let again = if step.is_disturbed { AGAIN_DISTURBED } else { AGAIN };
        if !is_kept && self.again < again {
            self.again += 1;
            return;
        }
        self.again = 0;
        match is_kept {
            true => self.keep(rate, step.done_per_s()),
            false => self.miss(if is_short { wanted } else { rate }, step.done_per_s(), is_short),
        }
    }

    fn keep(&mut self, rate: f64, done_per_s: f64) {
        let (known, times) = self.kept.unwrap_or((0.0, 0));
        let is_again = rate >= known * 0.95;
        self.kept = Some((rate.max(known), if is_again { times + 1 } else { 1 }));
        // Of trials that agree, the lower rate counts: a queue may have grown a little.
        let is_same = times > 0 && is_again && rate <= known * AGREE;
        self.kept_per_s = if is_same { self.kept_per_s.min(done_per_s) } else { done_per_s };
        self.choose(rate);
    }

    fn miss(&mut self, rate: f64, done_per_s: f64, is_short: bool) {
        if self.missed.is_none_or(|known| rate <= known) {
            (self.missed, self.is_short) = (Some(rate), is_short);
        }
        // A rate that passed once and then failed passed by chance.
        self.kept = self.kept.filter(|(known, _)| *known < rate);
        self.choose(done_per_s);
    }

    /// Chooses the next rate from the brackets and the outcome of the last step.
    fn choose(&mut self, about: f64) {
        match (self.kept, self.missed) {
            (None, None) => {}
            (None, Some(missed)) if missed <= self.least * AGREE => self.is_over = true,
            (None, Some(missed)) => {
                self.next = about.clamp(missed / 8.0, missed * 0.6).max(self.least);
            }
            // The search ends when two trials agree.
            (Some((kept, times)), None) => {
                self.is_over = times >= 2;
                self.next = self.most.min(kept.max(self.next));
            }
            (Some((kept, times)), Some(missed)) if missed <= kept * AGREE => {
                self.is_over = times >= 2;
                self.next = kept;
            }
            (Some((kept, _)), Some(missed)) => {
                self.next = (kept * missed).sqrt();
                self.kept = Some((kept, 0));
            }
        }
    }

    /// Returns the completions per second at the highest passed rate, once the search is over.
    pub fn kept_per_s(&self) -> Option<f64> {
        self.kept.filter(|_| self.is_over).map(|_| self.kept_per_s)
    }

    /// Returns whether the last step had no completions at all: the device under test no longer replies.
    pub fn ended_in_silence(&self) -> bool {
        self.steps.last().is_some_and(|step| step.done == 0)
    }

    /// Reports the results as `NAME_per_s_lossfree` and `NAME_per_s_peak`, and every step as a row.
    pub fn tell(&self, name: &str, what: &'static str, tell: &mut impl FnMut(MeasuredValue)) {
        let count = self.steps.len() as u64;
        let rates = self.steps.iter().map(Step::done_per_s);
        let Some(peak) = rates.max_by(f64::total_cmp) else { return };
        let limited = |found: MeasuredValue| match (self.missed, self.is_short) {
            (None, _) => {
                found.at_least(BoundCause::SearchLimit, "the search did not request a higher rate")
            }
            (_, true) => {
                let note = "the tester or the link was the limit";
                found.at_least(BoundCause::TesterLimit, note)
            }
            _ => found,
        };
        let named =
            MeasuredValue::new(format!("{name}_per_s_peak"), what, peak, peak * BURST_SHARE);
        tell(limited(named.of(count)));
        let done = self.kept_per_s;
        let (kept, half) = match (self.kept, self.missed) {
            (Some(_), Some(missed)) => (done, (missed - done).max(done * LONGER_SHARE)),
            (Some(_), None) => (done, done * LONGER_SHARE),
            (None, Some(missed)) if self.is_over => (0.0, missed),
            // The search did not converge.
            (None, _) => return,
        };
        let named = MeasuredValue::new(format!("{name}_per_s_lossfree"), what, kept, half);
        tell(limited(named.of(count)));
    }

    /// Returns the completed rate over the requested rate of all steps, in rising order.
    pub fn series(&self, name: &'static str) -> Series {
        let point = |step: &Step| (step.asked_per_s(), step.done_per_s());
        let mut points: Vec<(f64, f64)> = self.steps.iter().map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Series {
            name: name.into(),
            unit: "per_s".into(),
            x_name: "asked_per_s".into(),
            x_unit: "per_s".into(),
            points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a 100 ms step against a device of this capacity per second, which queues or drops
    /// the excess.
    fn step(rate: f64, capacity: f64, queues: bool) -> Step {
        let asked = (rate * 0.1) as u64;
        let most = (capacity * 0.1) as u64;
        let longer = if queues { (asked as f64 / capacity).max(0.1) } else { 0.1 };
        Step {
            asked,
            done: if queues { asked } else { asked.min(most) },
            asked_in: Nanos::from_millis(100),
            done_in: Nanos::from_secs_f64(longer),
            is_disturbed: false,
        }
    }

    fn check(capacity: f64, queues: bool) {
        let mut search = RateSearch::new(100.0, 1e6);
        let mut steps = 0;
        while let Some(rate) = search.next() {
            search.note(step(rate, capacity, queues));
            steps += 1;
        }
        assert!(steps <= STEPS_MAX);
        let mut found = Vec::new();
        search.tell("x", "per_s", &mut |it| found.push((it.value, it.half_width.unwrap())));
        let [(peak, _), (kept, half)] = found[..] else { panic!("{found:?}") };
        let most = capacity.min(1e6);
        assert!((peak / most - 1.0).abs() < 0.02, "{capacity}: peak {peak}");
        assert!((kept - half..=kept + half).contains(&most), "{capacity}: {kept} ± {half}");
        assert!(half <= most * 0.12, "{capacity}: {kept} ± {half}");
    }

    #[test]
    fn the_search_finds_the_highest_rates_with_queues_and_with_losses() {
        for capacity in [700.0, 5_000.0, 12_345.0, 90_000.0, 800_000.0, 5e6] {
            check(capacity, true);
            check(capacity, false);
        }
    }

    #[test]
    fn total_loss_gives_no_loss_free_rate() {
        let mut search = RateSearch::new(100.0, 1e6);
        while let Some(rate) = search.next() {
            search.note(Step { done: 0, ..step(rate, 1e9, false) });
        }
        let mut found = Vec::new();
        search.tell("x", "per_s", &mut |it| found.push(it.value));
        assert_eq!(found, [0.0, 0.0]);
    }

    #[test]
    fn a_failed_step_is_repeated_before_it_counts() {
        for (is_disturbed, times) in [(false, AGAIN), (true, AGAIN_DISTURBED)] {
            let mut search = RateSearch::new(100.0, 1000.0);
            let missed = Step { is_disturbed, done: 0, ..step(1000.0, 1e6, false) };
            for _ in 0..times {
                search.note(missed);
                assert_eq!(search.next(), Some(1000.0));
            }
            search.note(missed);
            assert_ne!(search.next(), Some(1000.0));
        }
    }
}
