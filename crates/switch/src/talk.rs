//! Staying awake for a controller that has just said something.
//!
//! Most controllers wait for an answer before they go on, and answer it within microseconds; to fall
//! asleep and be woken costs the switch more than that. So it looks at its channels again for a moment.
//! A thread that forwards frames has its core to itself and only looks; one without frames may share
//! its core with the very controller, and offers it around between looks.

use packet::time::Nanos;
use ports::clock;

/// How long at most to stay awake on a core of one's own.
const ALONE_MAX: Nanos = Nanos::from_millis(1);

/// How long at most to stay awake on a core that others may want.
const SHARED_MAX: Nanos = Nanos::from_micros(100);

/// Who gets the core back only after this long shares it with somebody who is never done, and does
/// better to sleep: who is woken goes first.
const CROWDED: Nanos = Nanos::from_micros(500);

/// For how long nobody stays awake on a core where that happened.
const CROWDED_FOR: Nanos = Nanos::from_secs(1);

/// Until when to stay awake.
#[derive(Debug)]
pub(crate) struct Talk {
    span: Nanos,
    shares: bool,
    until: Nanos,
    crowded_until: Nanos,
}

impl Talk {
    /// For who spins for so long after a frame, on a core of its own if it has frames.
    pub(crate) fn new(spin: Nanos, has_frames: bool) -> Talk {
        let span = spin.min(if has_frames { ALONE_MAX } else { SHARED_MAX });
        Talk { span, shares: !has_frames, until: Nanos::ZERO, crowded_until: Nanos::ZERO }
    }

    /// A controller said something.
    pub(crate) fn heard(&mut self, now: Nanos) {
        if now >= self.crowded_until {
            self.until = now.saturating_add(self.span);
        }
    }

    /// Whether more may come at any moment.
    pub(crate) fn goes_on(&self, now: Nanos) -> bool {
        now < self.until
    }

    /// Between two looks.
    pub(crate) fn pause(&mut self) {
        if self.shares {
            let before = clock::now();
            std::thread::yield_now();
            self.gave_way(before, clock::now());
        }
    }

    /// Others had the core meanwhile.
    fn gave_way(&mut self, before: Nanos, after: Nanos) {
        if after.since(before) > CROWDED {
            self.until = after;
            self.crowded_until = after.saturating_add(CROWDED_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_for_a_moment_after_each_word() {
        let mut talk = Talk::new(Nanos::from_secs(1), true);
        assert!(!talk.goes_on(Nanos(0)));
        talk.heard(Nanos(5));
        assert!(talk.goes_on(Nanos::from_micros(900)) && !talk.goes_on(Nanos::from_millis(2)));
        let mut never = Talk::new(Nanos::ZERO, true);
        never.heard(Nanos(5));
        assert!(!never.goes_on(Nanos(5)), "who does not spin sleeps at once");
    }

    #[test]
    fn on_a_crowded_core_it_ends_at_once_and_is_not_tried_for_a_while() {
        let mut talk = Talk::new(Nanos::from_secs(1), false);
        talk.heard(Nanos(0));
        talk.gave_way(Nanos(1), Nanos::from_micros(50));
        assert!(talk.goes_on(Nanos::from_micros(50)), "others had the core for a moment only");
        let late = Nanos::from_micros(50 + 600);
        talk.gave_way(Nanos::from_micros(50), late);
        assert!(!talk.goes_on(late));
        talk.heard(Nanos::from_millis(900));
        assert!(!talk.goes_on(Nanos::from_millis(900)));
        talk.heard(Nanos::from_millis(1100));
        assert!(talk.goes_on(Nanos::from_millis(1100)));
    }
}
