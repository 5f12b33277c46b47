//! Clocks, waiting, cores and the system calls that several crates need.
//!
//! Reading a clock is input, so crates without I/O do not import this one. Times are monotonic
//! nanoseconds ([`packet::time::Nanos`]):
//!
//! ```
//! use packet::time::Nanos;
//!
//! let before = os::clock::now();
//! os::clock::sleep_until(before + Nanos::from_micros(10));
//! assert!(os::clock::now() >= before + Nanos::from_micros(10));
//! ```

pub mod clock;
pub mod core;
pub mod jitter;
pub mod pages;
pub mod steal;
pub mod sys;
pub mod yield_poll;
