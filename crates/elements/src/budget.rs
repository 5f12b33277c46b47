//! Time budget of the control work in one turn.
//!
//! Control work checks its [`Budget`] after each bounded piece of work. The rest waits for the next
//! turn, so that frames and other connections wait for at most one budget.
//!
//! - In real time the budget reads the given clock.
//! - Without a clock (in virtual time and in tests) each step counts as a fixed time, so that runs
//!   are reproducible.

use packet::time::Nanos;

/// Time of one step: the work on one flow entry, such as reading it for statistics.
pub const STEP: Nanos = Nanos(25);

/// Steps of one message of a controller: decoding it, changing one flow entry and replying.
pub const MESSAGE_STEPS: u32 = 32;

/// Number of steps after which the clock is read again.
const READ_STEPS: u32 = MESSAGE_STEPS;

/// Maximum steps of work in the tables between two checks: about 10 us.
pub const RUN_STEPS: usize = 256;

/// Minimum share of a connection. With shorter ones, switching between connections costs more than
/// their work.
const SHARE_MIN: Nanos = Nanos::from_micros(10);

/// Time for control work in one turn, and the share of one connection.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    clock: Option<&'a dyn Fn() -> Nanos>,
    /// The time when the clock was last read, or the time of all steps so far.
    now: Nanos,
    /// Steps since the clock was last read.
    unread: u32,
    span: Nanos,
    end: Nanos,
    share_end: Nanos,
}

impl Budget<'static> {
    /// Creates a budget without a clock, of this number of steps.
    pub fn of_steps(steps: u64) -> Self {
        let end = Nanos(STEP.0.saturating_mul(steps));
        Budget { clock: None, now: Nanos::ZERO, unread: 0, span: end, end, share_end: end }
    }
}

impl<'a> Budget<'a> {
    /// Creates a budget of `span` by this clock, from now on.
    pub fn of_time(span: Nanos, clock: &'a dyn Fn() -> Nanos) -> Self {
        let now = clock();
        let end = now.saturating_add(span);
        Budget { clock: Some(clock), now, unread: 0, span, end, share_end: end }
    }

    /// Counts `steps` steps.
    #[inline]
    pub fn spend(&mut self, steps: u32) {
        match self.clock {
            None => self.now = self.now.saturating_add(Nanos(STEP.0 * u64::from(steps))),
            Some(clock) => {
                self.unread = self.unread.saturating_add(steps);
                if self.unread >= READ_STEPS {
                    self.unread = 0;
                    self.now = clock();
                }
            }
        }
    }

    /// Runs `work`, which deducts the steps that it uses from the given number. Counts and returns
    /// them. With more than [`RUN_STEPS`] the turn may exceed its budget.
    #[inline]
    pub fn run<T>(&mut self, most: usize, work: impl FnOnce(&mut usize) -> T) -> (T, usize) {
        let mut left = most;
        let done = work(&mut left);
        let used = most - left;
        self.spend(used as u32);
        (done, used)
    }

    /// Counts work of unknown cost, such as a TLS record, as at least `steps` steps.
    pub fn spend_unknown(&mut self, steps: u32) {
        self.spend(if self.clock.is_some() { READ_STEPS } else { steps });
    }

    /// Whether the current share is used up.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.now >= self.share_end
    }

    /// Whether the whole budget is used up.
    pub fn is_over(&self) -> bool {
        self.now >= self.end
    }

    /// Begins the share of one connection. `connections` is the number that have yet to be served.
    pub fn begin_share(&mut self, connections: usize) {
        let left = self.end.since(self.now).0 / connections.max(1) as u64;
        let share = Nanos(left).max(SHARE_MIN);
        self.share_end = self.now.saturating_add(share).min(self.end);
    }

    /// Ends the shares of connections. Work for all connections gets the rest of the budget and an
    /// additional quarter, so that it proceeds regardless of their use.
    pub fn extend(&mut self) {
        let quarter = Nanos(self.span.0 / 4);
        self.end = self.end.saturating_add(quarter);
        self.share_end = self.end;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn without_a_clock_only_steps_count() {
        let mut budget = Budget::of_steps(1600);
        budget.begin_share(2);
        budget.spend(799);
        assert!(!budget.is_spent());
        budget.spend(1);
        assert!(budget.is_spent() && !budget.is_over());
        budget.begin_share(1);
        budget.spend(800);
        assert!(budget.is_spent() && budget.is_over());
        budget.extend();
        budget.spend(399);
        assert!(!budget.is_spent());
        budget.spend(1);
        assert!(budget.is_spent());
    }

    #[test]
    fn the_clock_is_read_after_a_number_of_steps() {
        let time = Cell::new(Nanos(1_000));
        let clock = || time.get();
        let mut budget = Budget::of_time(Nanos::from_micros(200), &clock);
        time.set(Nanos::from_millis(1));
        budget.spend(READ_STEPS - 1);
        assert!(!budget.is_spent(), "the clock is not read for every step");
        budget.spend(1);
        assert!(budget.is_spent() && budget.is_over());
    }

    #[test]
    fn a_share_has_a_minimum_and_ends_with_the_budget() {
        let mut budget = Budget::of_steps(1000);
        budget.begin_share(1_000_000);
        budget.spend(399);
        assert!(!budget.is_spent());
        budget.spend(1);
        assert!(budget.is_spent());
        budget.spend(500);
        budget.begin_share(7);
        budget.spend(100);
        assert!(budget.is_spent() && budget.is_over());
    }
}
