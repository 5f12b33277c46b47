//! The host's monotonic clock: the only place where planimeter reads the time.
//!
//! - All times are `CLOCK_MONOTONIC` in nanoseconds.
//! - The kernel timestamps frames with the realtime clock. [`RealtimeLine`] converts such
//!   timestamps with an offset. It measures the offset again every tenth of a second, because the
//!   realtime clock is adjusted and may be set.
//! - This module also waits: for a time ([`sleep_until`]), or for descriptors with a deadline
//!   ([`WaitSet`]).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use packet::time::Nanos;

pub mod tsc;
pub mod reference;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a valid timespec; both clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the current monotonic time.
#[inline]
pub fn now() -> Nanos {
    Nanos(read(libc::CLOCK_MONOTONIC))
}

/// Returns the processor's time-stamp counter, to measure work on one core. Without one, returns
/// the monotonic time in nanoseconds.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads a counter into registers and touches no memory.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    now().0
}

/// Returns the realtime clock in nanoseconds since 1970: for dates in reports, never for
/// differences.
pub fn since_1970() -> Nanos {
    Nanos(read(libc::CLOCK_REALTIME))
}

/// Sleeps until `at`; returns immediately if it has passed. Signals do not shorten the sleep.
pub fn sleep_until(at: Nanos) {
    let time = timespec(at);
    // SAFETY: the pointer is to a valid timespec, and the null remainder is allowed.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

fn timespec(span: Nanos) -> libc::timespec {
    libc::timespec {
        tv_sec: (span.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (span.0 % 1_000_000_000) as libc::c_long,
    }
}

/// Longest use of a measured offset between the realtime and the monotonic clock.
const OFFSET_AGE_MAX: Nanos = Nanos::from_millis(100);

/// Number of readings; the one with the smallest error gives the offset.
const OFFSET_READINGS: usize = 5;

/// Converts realtime timestamps to monotonic ones.
#[derive(Debug, Clone)]
pub struct RealtimeLine {
    /// Realtime minus monotonic; wraps, so that a realtime clock behind the monotonic one works.
    offset: u64,
    measured: Nanos,
    /// Largest error of the offset: half the duration of its reading.
    pub error: Nanos,
}

impl RealtimeLine {
    /// Measures the offset now.
    pub fn measure() -> Self {
        let mut best = RealtimeLine { offset: 0, measured: Nanos::ZERO, error: Nanos::MAX };
        for _ in 0..OFFSET_READINGS {
            let before = now();
            let realtime = read(libc::CLOCK_REALTIME);
            let after = now();
            let half = (after - before).0 / 2;
            if half < best.error.0 {
                let offset = realtime.wrapping_sub(before.0 + half);
                best = RealtimeLine { offset, measured: after, error: Nanos(half) };
            }
        }
        best
    }

    /// Converts `realtime_ns` (nanoseconds since 1970) to a monotonic time.
    ///
    /// First measures the offset again if it is older than a tenth of a second at `now`.
    #[inline]
    pub fn monotonic(&mut self, realtime_ns: u64, now: Nanos) -> Nanos {
        self.renew(now);
        Nanos(realtime_ns.wrapping_sub(self.offset))
    }

    /// Converts the monotonic time `at` to nanoseconds since 1970; renews the offset like
    /// [`RealtimeLine::monotonic`].
    #[inline]
    pub fn since_1970(&mut self, at: Nanos, now: Nanos) -> Nanos {
        self.renew(now);
        Nanos(at.0.wrapping_add(self.offset))
    }

    #[inline]
    fn renew(&mut self, now: Nanos) {
        if now.since(self.measured) > OFFSET_AGE_MAX {
            *self = Self::measure();
        }
    }
}

/// A set of descriptors to wait for together; reusable.
#[derive(Debug, Default)]
pub struct WaitSet {
    set: Vec<libc::pollfd>,
}

impl WaitSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        WaitSet::default()
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.set.clear();
    }

    /// Adds a descriptor to wait for until it is readable, or writable if `writable`. Returns its
    /// place in the set.
    pub fn add(&mut self, descriptor: RawFd, writable: bool) -> usize {
        let events = libc::POLLIN | if writable { libc::POLLOUT } else { 0 };
        self.set.push(libc::pollfd { fd: descriptor, events, revents: 0 });
        self.set.len() - 1
    }

    /// Adds a descriptor to wait for only until it is writable, even if it is readable.
    pub fn add_to_write(&mut self, descriptor: RawFd) -> usize {
        self.set.push(libc::pollfd { fd: descriptor, events: libc::POLLOUT, revents: 0 });
        self.set.len() - 1
    }

    /// Adds a descriptor to wait for only until it fails.
    pub fn add_to_fail(&mut self, descriptor: RawFd) -> usize {
        self.set.push(libc::pollfd { fd: descriptor, events: 0, revents: 0 });
        self.set.len() - 1
    }

    /// Waits until a descriptor of the set is ready or the monotonic clock reaches `deadline`
    /// (`None`: no limit).
    ///
    /// Returns how many are ready. A signal ends the wait with 0.
    pub fn until(&mut self, deadline: Option<Nanos>) -> io::Result<usize> {
        let span = deadline.map(|at| timespec(at.since(now())));
        let pointer = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the pointer and the length describe the set's vector. The time is null or points
        // to `span`, which outlives the call. The signal mask is null.
        let ready = unsafe {
            libc::ppoll(
                self.set.as_mut_ptr(),
                self.set.len() as libc::nfds_t,
                pointer,
                std::ptr::null(),
            )
        };
        if ready >= 0 {
            return Ok(ready as usize);
        }
        self.set.iter_mut().for_each(|entry| entry.revents = 0);
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        }
    }

    /// Returns whether the descriptor at `place` is readable, has failed or has ended; a read
    /// reports which.
    pub fn readable(&self, place: usize) -> bool {
        self.set[place].revents & !libc::POLLOUT != 0
    }

    /// Returns whether the descriptor at `place` is writable or has failed; a write reports which.
    pub fn writable(&self, place: usize) -> bool {
        self.set[place].revents & !libc::POLLIN != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn sleeping_never_ends_early() {
        let at = now() + Nanos::from_micros(500);
        sleep_until(at);
        assert!(now() >= at);
        sleep_until(Nanos::ZERO);
    }

    #[test]
    fn a_converted_realtime_is_between_two_monotonic_readings() {
        let mut line = RealtimeLine::measure();
        for _ in 0..1000 {
            let before = now();
            let realtime = since_1970().0;
            let after = now();
            let moment = line.monotonic(realtime, after);
            assert!(moment + line.error + Nanos(100_000) >= before, "{moment} before {before}");
            assert!(moment <= after + line.error + Nanos(100_000), "{moment} after {after}");
        }
    }

    #[test]
    fn an_old_offset_is_measured_again() {
        let mut line = RealtimeLine { offset: 7, measured: Nanos::ZERO, error: Nanos::ZERO };
        assert_eq!(line.monotonic(1_007, Nanos(5)), Nanos(1_000));
        assert_eq!(line.since_1970(Nanos(1_000), Nanos(5)), Nanos(1_007));
        line.monotonic(since_1970().0, now());
        assert_ne!(line.offset, 7);
    }

    #[test]
    fn waiting_returns_the_ready_descriptors() {
        let (mut left, right) = UnixStream::pair().unwrap();
        let mut wait = WaitSet::new();
        let place = wait.add(right.as_raw_fd(), false);
        assert_eq!(wait.until(Some(Nanos::ZERO)).unwrap(), 0);
        assert!(!wait.readable(place));
        left.write_all(b"x").unwrap();
        let other = wait.add(left.as_raw_fd(), true);
        assert_eq!(wait.until(None).unwrap(), 2);
        assert!(wait.readable(place) && wait.writable(other) && !wait.readable(other));
    }

    #[test]
    fn waiting_until_a_past_deadline_returns_immediately() {
        let mut wait = WaitSet::new();
        assert_eq!(wait.until(Some(Nanos(1))).unwrap(), 0);
    }
}
