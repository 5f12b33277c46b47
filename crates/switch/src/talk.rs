//! Staying awake for a controller that has just said something.
//!
//! Most controllers wait for an answer before they go on, and answer it within microseconds; to fall
//! asleep and be woken costs the switch more than that. So it looks at its channels again for a moment.
//! A thread that forwards frames has its core to itself and only looks; one without frames may share
//! its core with the very controller, and offers it around between looks.

use packet::time::Nanos;
use ports::courtesy::Courtesy;

/// How long at most to stay awake on a core of one's own.
const ALONE_MAX: Nanos = Nanos::from_millis(1);

/// How long at most to stay awake on a core that others may want.
const SHARED_MAX: Nanos = Nanos::from_micros(100);

/// Until when to stay awake.
#[derive(Debug)]
pub(crate) struct Talk {
    span: Nanos,
    until: Nanos,
    /// On a core that others may want.
    courtesy: Option<Courtesy>,
}

impl Talk {
    /// For who spins for so long after a frame, on a core of its own if it has frames.
    pub(crate) fn new(spin: Nanos, has_frames: bool) -> Talk {
        let (most, courtesy) = match has_frames {
            true => (ALONE_MAX, None),
            false => (SHARED_MAX, Some(Courtesy::default())),
        };
        Talk { span: spin.min(most), until: Nanos::ZERO, courtesy }
    }

    /// A controller said something.
    pub(crate) fn heard(&mut self, now: Nanos) {
        self.until = now.saturating_add(self.span);
    }

    /// Whether more may come at any moment.
    pub(crate) fn goes_on(&self, now: Nanos) -> bool {
        now < self.until && self.courtesy.is_none_or(|courtesy| courtesy.pays(now))
    }

    /// Between two looks.
    pub(crate) fn pause(&mut self) {
        if let Some(courtesy) = &mut self.courtesy {
            courtesy.offer();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_polling_continues_for_a_while_after_each_message() {
        let mut talk = Talk::new(Nanos::from_secs(1), true);
        assert!(!talk.goes_on(Nanos(0)));
        talk.heard(Nanos(5));
        assert!(talk.goes_on(Nanos::from_micros(900)) && !talk.goes_on(Nanos::from_millis(2)));
        let mut shared = Talk::new(Nanos::from_secs(1), false);
        shared.heard(Nanos(5));
        assert!(shared.goes_on(Nanos::from_micros(90)) && !shared.goes_on(Nanos::from_micros(101)));
        let mut never = Talk::new(Nanos::ZERO, true);
        never.heard(Nanos(5));
        assert!(!never.goes_on(Nanos(5)), "without busy-polling it sleeps immediately");
    }
}
