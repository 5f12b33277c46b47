//! Waiting for a switch in real time, with a short busy-poll phase.
//!
//! The system puts an idle core to sleep, and a wakeup costs as much as a fast switch's reply. So
//! the controller first yields the core repeatedly for a short time, and then blocks.

use std::os::fd::RawFd;

use os::clock;
use os::yield_poll::YieldPolicy;
use packet::time::Nanos;

use super::WaitHook;

/// Length of the busy-poll phase: longer than an immediate reply of any switch.
const AWAKE: Nanos = Nanos::from_micros(100);

/// Poll interval for a channel without a descriptor.
const BLIND: Nanos = Nanos::from_micros(200);

/// Waits for the channel in real time.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealTime {
    courtesy: YieldPolicy,
}

impl RealTime {
    /// Busy-polls the channel for a short time. Returns whether it is ready.
    fn stay_awake(&mut self, wait: &mut clock::WaitSet, until: Nanos) -> bool {
        let mut now = clock::now();
        let until = until.min(now.saturating_add(AWAKE));
        while now < until && self.courtesy.pays(now) {
            if wait.until(Some(now)).is_ok_and(|ready| ready > 0) {
                return true;
            }
            now = self.courtesy.offer();
        }
        false
    }
}

impl WaitHook for RealTime {
    fn now(&mut self) -> Nanos {
        clock::now()
    }

    fn rest(&mut self, descriptor: Option<RawFd>, wants_to_write: bool, deadline: Nanos) {
        let mut wait = clock::WaitSet::new();
        let deadline = match descriptor {
            Some(descriptor) => {
                wait.add(descriptor, wants_to_write);
                if self.stay_awake(&mut wait, deadline) {
                    return;
                }
                deadline
            }
            None => deadline.min(clock::now().saturating_add(BLIND)),
        };
        // An interrupted wait returns early, and the caller reads the clock.
        let _ = wait.until(Some(deadline));
    }
}
