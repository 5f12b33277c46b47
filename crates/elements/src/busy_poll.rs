//! Busy-polling of control channels after a controller's message.
//!
//! Most controllers wait for a reply and respond to it within microseconds. Sleeping and waking up
//! takes the switch longer than that, so it polls its channels for a short time. A thread that
//! forwards frames has its own core and only polls. A thread without frames may share its core with
//! the controller, so it yields the core between polls.

use os::yield_poll::YieldPolicy;
use packet::time::Nanos;

/// Maximum time of polling on an own core.
const ALONE_MAX: Nanos = Nanos::from_millis(1);

/// Maximum time of polling on a shared core.
const SHARED_MAX: Nanos = Nanos::from_micros(100);

/// Time until which the channels are polled.
#[derive(Debug)]
pub(crate) struct BusyPoll {
    span: Nanos,
    until: Nanos,
    /// Yields of the core, if it is shared.
    courtesy: Option<YieldPolicy>,
}

impl BusyPoll {
    /// Creates the state for a thread that busy-polls for `spin` after a frame. With frames, the
    /// thread has its own core.
    pub(crate) fn new(spin: Nanos, has_frames: bool) -> BusyPoll {
        let (most, courtesy) = match has_frames {
            true => (ALONE_MAX, None),
            false => (SHARED_MAX, Some(YieldPolicy::default())),
        };
        BusyPoll { span: spin.min(most), until: Nanos::ZERO, courtesy }
    }

    /// Records a controller's message.
    pub(crate) fn heard(&mut self, now: Nanos) {
        self.until = now.saturating_add(self.span);
    }

    /// Whether to poll for the next message.
    pub(crate) fn goes_on(&self, now: Nanos) -> bool {
        now < self.until && self.courtesy.is_none_or(|courtesy| courtesy.pays(now))
    }

    /// Yields the core between two polls.
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
        let mut talk = BusyPoll::new(Nanos::from_secs(1), true);
        assert!(!talk.goes_on(Nanos(0)));
        talk.heard(Nanos(5));
        assert!(talk.goes_on(Nanos::from_micros(900)) && !talk.goes_on(Nanos::from_millis(2)));
        let mut shared = BusyPoll::new(Nanos::from_secs(1), false);
        shared.heard(Nanos(5));
        assert!(shared.goes_on(Nanos::from_micros(90)) && !shared.goes_on(Nanos::from_micros(101)));
        let mut never = BusyPoll::new(Nanos::ZERO, true);
        never.heard(Nanos(5));
        assert!(!never.goes_on(Nanos(5)), "without busy-polling it sleeps immediately");
    }
}
