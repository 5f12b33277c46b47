//! Simulated stalls of the tester: it loses its core at a random time in every other trial.
//!
//! A real tester on a shared machine cannot avoid stalls. In virtual time they occur only on
//! request (`--set sim_tester_pause_ns=`), to test their effect on results. The same trials are disturbed in
//! every run.

use packet::time::Nanos;

/// Schedule of the tester's stalls.
pub struct SimulatedPause {
    span: Nanos,
    state: u64,
}

impl SimulatedPause {
    /// Creates a schedule with stalls of this length; zero for none.
    pub fn new(span: Nanos) -> Self {
        SimulatedPause { span, state: 1 }
    }

    /// Returns the start and length of the stall in the next trial, which takes `length`; `None`
    /// for no stall.
    pub fn next(&mut self, length: Nanos) -> Option<(Nanos, Nanos)> {
        // A linear congruential generator; its high bits look random.
        self.state =
            self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let is_disturbed = self.state >> 63 == 1 && self.span > Nanos::ZERO;
        let room = u128::from(length.0.saturating_sub(self.span.0));
        let share = u128::from((self.state >> 31) & 0xffff_ffff);
        is_disturbed.then(|| (Nanos(((room * share) >> 32) as u64), self.span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_every_second_trial_is_disturbed() {
        let (mut some, length) = (SimulatedPause::new(Nanos(10)), Nanos(1000));
        let drawn: Vec<(Nanos, Nanos)> = (0..1000).filter_map(|_| some.next(length)).collect();
        assert!((400..600).contains(&drawn.len()), "{}", drawn.len());
        assert!(drawn.iter().all(|(after, span)| *span == Nanos(10) && after.0 <= 990));
        let early = drawn.iter().filter(|(after, _)| after.0 < 495).count();
        assert!((150..350).contains(&early), "{early}");
        assert_eq!(SimulatedPause::new(Nanos::ZERO).next(length), None);
    }
}
