//! A moment, and who took it.
//!
//! Every time in planimeter is a count of nanoseconds on the host's monotonic clock (or on the
//! simulation's virtual one), and every time stamp says which clock or which part of the system
//! took it, because a stamp taken in user space and one taken in the kernel differ by more than
//! what is being measured.

/// Seconds and their fraction, in 64 bits.
pub mod fixed;

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds: a moment on the monotonic (or virtual) clock, or a span between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time, or the start of the clock.
    pub const ZERO: Nanos = Nanos(0);
    /// The end of time: "never".
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Nanos(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Nanos(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Nanos(n * 1_000_000_000)
    }

    /// Seconds, rounded down to the nanosecond; negative or absurd values become zero or `MAX`.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Nanos((seconds * 1e9) as u64)
    }

    /// This many seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to this moment, zero if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment plus a span, or `MAX`.
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

/// Who took a time stamp. All of them are converted to the host's monotonic time line first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Read by the program, after the frame had reached it.
    UserSpace,
    /// Taken by the kernel when its network stack received the frame.
    Kernel,
    /// Taken by a program at the interface, where the frame entered the host.
    XdpProgram,
    /// Taken by the network interface (untested on hardware).
    Hardware,
    /// The simulation's virtual clock: exact by construction.
    Virtual,
    /// Taken by whoever wrote a capture file: nanoseconds since 1970, on no line of this host.
    File,
}

impl Clock {
    /// Its name in files and records.
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

/// When something happened, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The moment, on the monotonic time line.
    pub at: Nanos,
    /// Who took it.
    pub clock: Clock,
}
