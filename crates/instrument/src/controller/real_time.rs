//! Waiting for a switch in real time, without falling asleep over an answer that is nearly there.
//!
//! A core that has nothing to do is put to sleep by the system, and to wake it costs as much as a
//! fast switch takes to answer. So for a moment the core is only offered to others and taken back.

use std::os::fd::RawFd;

use packet::time::Nanos;
use ports::clock;
use ports::courtesy::Courtesy;

use super::Meanwhile;

/// How long to stay awake: longer than any switch takes that answers at once.
const AWAKE: Nanos = Nanos::from_micros(100);

/// How long to leave a channel alone that cannot say when it is ready.
const BLIND: Nanos = Nanos::from_micros(200);

/// Waits on the machine's clock, and for nothing but the channel.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealTime {
    courtesy: Courtesy,
}

impl RealTime {
    /// Looks at the channel again and again for a moment; whether it is ready.
    fn stay_awake(&mut self, wait: &mut clock::Wait, until: Nanos) -> bool {
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

impl Meanwhile for RealTime {
    fn now(&mut self) -> Nanos {
        clock::now()
    }

    fn rest(&mut self, descriptor: Option<RawFd>, wants_to_write: bool, deadline: Nanos) {
        let mut wait = clock::Wait::new();
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
        // An interrupted wait is a short one; the caller looks at the clock.
        let _ = wait.until(Some(deadline));
    }
}
