//! The host's monotonic clock: the only place where planimeter asks what time it is.
//!
//! Every moment is `CLOCK_MONOTONIC` in nanoseconds. The kernel stamps frames on the realtime
//! line instead; [`RealtimeLine`] carries such a stamp over, with an offset that is measured
//! again every tenth of a second, since the realtime clock is steered and may be set. Waiting is
//! here as well: for a moment ([`sleep_until`]), or for descriptors with a deadline ([`Wait`]).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use packet::time::Nanos;

/// The processor's counter beside the kernel's clocks.
pub mod tsc;
/// A clock outside this machine.
pub mod reference;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a valid timespec; both clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// This moment, on the monotonic line.
#[inline]
pub fn now() -> Nanos {
    Nanos(read(libc::CLOCK_MONOTONIC))
}

/// The processor's time-stamp counter, for spans of work on one core; where there is none, this
/// moment in nanoseconds.
#[inline]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads a counter into registers and touches no memory.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    now().0
}

/// Nanoseconds since 1970 by the realtime clock: for dates in records, never for differences.
pub fn since_1970() -> Nanos {
    Nanos(read(libc::CLOCK_REALTIME))
}

/// Sleeps until `at`; returns at once if that has passed. Signals do not cut the sleep short.
pub fn sleep_until(at: Nanos) {
    let time = timespec(at);
    // SAFETY: the pointer is to a valid timespec, and no remainder is asked for.
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

/// What the kernel derives its clocks from (`tsc`, `kvm-clock`, ...), for the record; empty where
/// it does not tell.
pub fn source_name() -> String {
    std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// How long an offset between the realtime and the monotonic line is trusted.
const OFFSET_AGE_MAX: Nanos = Nanos::from_millis(100);

/// Readings of which the tightest gives the offset.
const OFFSET_READINGS: usize = 5;

/// Carries moments of the realtime clock over to the monotonic line.
#[derive(Debug, Clone)]
pub struct RealtimeLine {
    /// Realtime minus monotonic; wraps, so that a realtime clock behind the monotonic one works.
    offset: u64,
    measured: Nanos,
    /// Largest error of the offset: half the time that its reading took.
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

    /// The monotonic moment of `realtime_ns` (nanoseconds since 1970). At `now`, an offset older
    /// than a tenth of a second is measured again first.
    #[inline]
    pub fn monotonic(&mut self, realtime_ns: u64, now: Nanos) -> Nanos {
        self.renew(now);
        Nanos(realtime_ns.wrapping_sub(self.offset))
    }

    /// Nanoseconds since 1970 at the monotonic moment `at`; the offset's age is looked at as for
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

/// A set of descriptors to wait for together, reused from wait to wait.
#[derive(Debug, Default)]
pub struct Wait {
    set: Vec<libc::pollfd>,
}

impl Wait {
    /// An empty set.
    pub fn new() -> Self {
        Wait::default()
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.set.clear();
    }

    /// Adds a descriptor to wait for until it can be read, and until it can be written if
    /// `writable`. Returns its place in the set.
    pub fn add(&mut self, descriptor: RawFd, writable: bool) -> usize {
        let events = libc::POLLIN | if writable { libc::POLLOUT } else { 0 };
        self.set.push(libc::pollfd { fd: descriptor, events, revents: 0 });
        self.set.len() - 1
    }

    /// Adds a descriptor to wait for only until it can be written: what it holds to be read may wait.
    pub fn add_to_write(&mut self, descriptor: RawFd) -> usize {
        self.set.push(libc::pollfd { fd: descriptor, events: libc::POLLOUT, revents: 0 });
        self.set.len() - 1
    }

    /// Adds a descriptor to wait for only until it has failed.
    pub fn add_to_fail(&mut self, descriptor: RawFd) -> usize {
        self.set.push(libc::pollfd { fd: descriptor, events: 0, revents: 0 });
        self.set.len() - 1
    }

    /// Waits until a descriptor of the set is ready or the monotonic clock reaches `deadline`
    /// (`None`: as long as it takes). Returns how many are ready; a signal ends the wait with 0.
    pub fn until(&mut self, deadline: Option<Nanos>) -> io::Result<usize> {
        let span = deadline.map(|at| timespec(at.since(now())));
        let pointer = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the set's pointer and length describe its vector, the time is null or points to
        // `span`, which outlives the call, and no signal mask is passed.
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

    /// Whether the descriptor at `place` can be read (or has failed or ended, which reading
    /// tells).
    pub fn readable(&self, place: usize) -> bool {
        self.set[place].revents & !libc::POLLOUT != 0
    }

    /// Whether the descriptor at `place` can be written (or has failed, which writing tells).
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
    fn a_realtime_moment_lands_between_two_monotonic_ones() {
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
    fn waiting_tells_which_descriptor_is_ready() {
        let (mut left, right) = UnixStream::pair().unwrap();
        let mut wait = Wait::new();
        let place = wait.add(right.as_raw_fd(), false);
        assert_eq!(wait.until(Some(Nanos::ZERO)).unwrap(), 0);
        assert!(!wait.readable(place));
        left.write_all(b"x").unwrap();
        let other = wait.add(left.as_raw_fd(), true);
        assert_eq!(wait.until(None).unwrap(), 2);
        assert!(wait.readable(place) && wait.writable(other) && !wait.readable(other));
    }

    #[test]
    fn an_absent_deadline_far_away_and_a_past_one_both_work() {
        let mut wait = Wait::new();
        assert_eq!(wait.until(Some(Nanos(1))).unwrap(), 0);
    }
}
