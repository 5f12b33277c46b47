//! Times and time stamps with their clock.
//!
//! Every time is a number of nanoseconds on the host's monotonic clock, or on the virtual clock of
//! the simulation. Every time stamp names its clock: the difference between user space and kernel
//! time stamps exceeds the measured values.

pub mod fixed;

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds: a time on the monotonic (or virtual) clock, or a duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero duration, or the start of the clock.
    pub const ZERO: Nanos = Nanos(0);
    /// The maximum, which means "never".
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// Creates a duration of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Nanos(n * 1_000)
    }

    /// Creates a duration of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Nanos(n * 1_000_000)
    }

    /// Creates a duration of `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Nanos(n * 1_000_000_000)
    }

    /// Converts seconds, rounded down to nanoseconds. Negative values and NaN become zero, too
    /// large values `MAX`.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Nanos((seconds * 1e9) as u64)
    }

    /// Converts to seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the duration since `earlier`, or zero if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// Adds a duration, up to `MAX`.
    pub fn saturating_add(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, span: Nanos) -> Nanos {
        Nanos(self.0 + span.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, span: Nanos) {
        self.0 += span.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n} ns"),
            n if n < 10_000_000 => write!(f, "{:.1} us", n as f64 / 1e3),
            n if n < 10_000_000_000 => write!(f, "{:.1} ms", n as f64 / 1e6),
            n => write!(f, "{:.1} s", n as f64 / 1e9),
        }
    }
}

/// Source of a time stamp. Time stamps that the host takes are converted to its monotonic clock
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Read by the program after it received the frame.
    UserSpace,
    /// Taken by the kernel when its network stack received the frame.
    Kernel,
    /// Taken by an XDP program at the interface where the frame entered the host.
    XdpProgram,
    /// Taken by the network interface (untested on hardware).
    Hardware,
    /// The simulation's virtual clock: exact by construction.
    Virtual,
    /// Taken from a capture file: nanoseconds since 1970, not on this host's monotonic clock.
    File,
}

impl Clock {
    /// Returns the name in files and records.
    pub fn name(self) -> &'static str {
        match self {
            Clock::UserSpace => "user_space",
            Clock::Kernel => "kernel",
            Clock::XdpProgram => "xdp_program",
            Clock::Hardware => "hardware",
            Clock::Virtual => "virtual",
            Clock::File => "file",
        }
    }
}

/// A time stamp: a time with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Time on the monotonic clock.
    pub at: Nanos,
    /// Source of the time stamp.
    pub clock: Clock,
}
