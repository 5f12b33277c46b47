//! Time budget of the control work in one turn.
//!
//! Control work of any kind asks its [`Budget`] after a bounded piece of work whether it may go on. The rest waits
//! for the next turn, so that frames and other connections wait for one budget at most.
//!
//! - In real time the budget reads the clock that it is given.
//! - Without a clock (in virtual time and in tests) each step stands for a fixed time, so that runs repeat.

use packet::time::Nanos;

/// What one step stands for: the work on one flow entry, such as looking at it for statistics.
pub const STEP: Nanos = Nanos(25);

/// Steps of one message of a controller: to decode it, to change one flow entry and to answer.
pub const MESSAGE_STEPS: u32 = 32;

/// The clock is read again after this many steps.
const READ_STEPS: u32 = MESSAGE_STEPS;

/// Steps that work in the tables may do before it asks again: some 10 us.
pub const RUN_STEPS: usize = 256;

/// Least share of a connection: with shorter ones, the change between connections costs more than their work.
const SHARE_MIN: Nanos = Nanos::from_micros(10);

/// How long control work may go on in one turn, and how much of that one connection has.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    clock: Option<&'a dyn Fn() -> Nanos>,
    /// The time when the clock was last read, or what all steps so far stand for.
    now: Nanos,
    /// Steps since the clock was last read.
    unread: u32,
    span: Nanos,
    end: Nanos,
    share_end: Nanos,
}

impl Budget<'static> {
    /// A budget without a clock: what so many steps stand for.
    pub fn of_steps(steps: u64) -> Self {
        let end = Nanos(STEP.0.saturating_mul(steps));
        Budget { clock: None, now: Nanos::ZERO, unread: 0, span: end, end, share_end: end }
    }
}

impl<'a> Budget<'a> {
    /// A budget of so much time by this clock, from now on.
    pub fn of_time(span: Nanos, clock: &'a dyn Fn() -> Nanos) -> Self {
        let now = clock();
        let end = now.saturating_add(span);
        Budget { clock: Some(clock), now, unread: 0, span, end, share_end: end }
    }

    /// Counts so many steps.
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

    /// Has `work` done, which takes the steps that it does from those that it is given. Counts them, and returns
    /// how many there were. With more than [`RUN_STEPS`] the turn may become longer than its budget.
    #[inline]
    pub fn run<T>(&mut self, most: usize, work: impl FnOnce(&mut usize) -> T) -> (T, usize) {
        let mut left = most;
        let done = work(&mut left);
        let used = most - left;
        self.spend(used as u32);
        (done, used)
    }

    /// Counts work whose cost is not known in steps, such as a TLS record, of at least so many.
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

    /// Begins the share of one of so many connections that have yet to be served.
    pub fn begin_share(&mut self, connections: usize) {
        let left = self.end.since(self.now).0 / connections.max(1) as u64;
        let share = Nanos(left).max(SHARE_MIN);
        self.share_end = self.now.saturating_add(share).min(self.end);
    }

    /// Ends the shares of connections. What concerns all of them has the rest of the budget, and a quarter more, so
    /// that it goes on whatever they did.
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
    fn steps_count_without_a_clock() {
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
    fn the_clock_is_read_after_enough_steps() {
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
    fn a_share_has_a_least_length_and_ends_with_the_budget() {
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
