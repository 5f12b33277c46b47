//! Reference clocks outside this machine: a pulse per second, or the PTP clock of a network
//! interface.
//!
//! Sources: RFC 2783 and the kernel's `pps.h` for pulses; `clock_gettime(2)` on the descriptor of a
//! PTP hardware clock. Both are written from their descriptions and untested on hardware.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use packet::time::Nanos;

use super::{RealtimeLine, now};
use crate::sys;

/// One time by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Time by this machine's monotonic clock.
    pub local: Nanos,
    /// Time by the reference.
    pub reference: Nanos,
    /// Largest error of the reading.
    pub error: Nanos,
}

/// A reference clock.
pub trait Reference {
    /// Returns the name of the clock for reports.
    fn name(&self) -> String;

    /// Returns the latest time known by both clocks, if there is a new one since the last call.
    fn edge(&mut self) -> io::Result<Option<ClockReading>>;
}

/// A pulse per second, timestamped by the kernel.
pub struct Pulse {
    path: PathBuf,
    file: File,
    line: RealtimeLine,
    last: u32,
}

/// The PTP hardware clock of a network interface.
pub struct InterfaceClock {
    path: PathBuf,
    file: File,
}

/// Returns the device files of this machine's reference clocks.
pub fn devices() -> Vec<PathBuf> {
    let named = |name: &str| name.starts_with("pps") || name.starts_with("ptp");
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(named))
        .map(|entry| entry.path())
        .collect();
    // Pulses first, because they give the second most precisely.
    found.sort();
    found
}

/// Opens a device file; its name selects the type of clock.
pub fn open(path: &Path) -> io::Result<Box<dyn Reference + Send>> {
    let file = File::open(path)?;
    let path = path.to_path_buf();
    let is_pulse = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pps"));
    Ok(match is_pulse {
        true => Box::new(Pulse { path, file, line: RealtimeLine::measure(), last: 0 }),
        false => Box::new(InterfaceClock { path, file }),
    })
}

/// `struct pps_ktime`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct PulseTime {
    seconds: i64,
    nanoseconds: i32,
    flags: u32,
}

/// `struct pps_fdata`: the kernel's data on the last pulses, and the timeout of the request.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct PulseData {
    assert_sequence: u32,
    clear_sequence: u32,
    assert_at: PulseTime,
    clear_at: PulseTime,
    current_mode: i32,
    timeout: PulseTime,
}

/// `PPS_FETCH`: direction both, the size of a pointer, group `p`, number 0xa4.
const PPS_FETCH: libc::c_ulong =
    3 << 30 | (size_of::<usize>() as libc::c_ulong) << 16 | (b'p' as libc::c_ulong) << 8 | 0xa4;

impl Reference for Pulse {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn edge(&mut self) -> io::Result<Option<ClockReading>> {
        // A timeout of zero returns the current data without waiting.
        let mut data = PulseData::default();
        // SAFETY: the request reads and writes one structure of this layout, which outlives it.
        sys::check(unsafe {
            libc::ioctl(self.file.as_raw_fd(), PPS_FETCH as _, std::ptr::from_mut(&mut data))
        })?;
        if data.assert_sequence == self.last {
            return Ok(None);
        }
        self.last = data.assert_sequence;
        let PulseTime { seconds, nanoseconds, .. } = data.assert_at;
        let realtime = seconds.max(0) as u64 * 1_000_000_000 + nanoseconds.max(0) as u64;
        let local = self.line.monotonic(realtime, now());
        Ok(Some(ClockReading {
            local,
            reference: nearest_second(realtime),
            error: self.line.error,
        }))
    }
}

/// Returns the second that a pulse at this time marks.
fn nearest_second(realtime_ns: u64) -> Nanos {
    Nanos::from_secs((realtime_ns + 500_000_000) / 1_000_000_000)
}

impl Reference for InterfaceClock {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn edge(&mut self) -> io::Result<Option<ClockReading>> {
        // The kernel's clock number for a descriptor (clock_gettime(2), "dynamic clocks").
        let clock = (!self.file.as_raw_fd() << 3 | 3) as libc::clockid_t;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let before = now();
        // SAFETY: the pointer is to a valid timespec; an invalid clock number is an error.
        sys::check(unsafe { libc::clock_gettime(clock, &mut time) })?;
        let half = Nanos(now().since(before).0 / 2);
        let reference = Nanos(time.tv_sec.max(0) as u64 * 1_000_000_000 + time.tv_nsec as u64);
        Ok(Some(ClockReading { local: before + half, reference, error: half + Nanos(1) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_sizes_of_the_kernel() {
        assert_eq!((size_of::<PulseTime>(), size_of::<PulseData>()), (16, 64));
        assert_eq!(std::mem::offset_of!(PulseData, timeout), 48);
        #[cfg(target_pointer_width = "64")]
        assert_eq!(PPS_FETCH, 0xc008_70a4);
    }

    #[test]
    fn a_pulse_marks_the_nearest_second() {
        assert_eq!(nearest_second(4_999_999_000), Nanos::from_secs(5));
        assert_eq!(nearest_second(5_000_001_000), Nanos::from_secs(5));
    }

    #[test]
    fn a_file_that_is_not_a_clock_is_an_error() {
        for name in ["pps-none", "ptp-none"] {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            std::fs::write(&path, b"").unwrap();
            let mut reference = open(&path).unwrap();
            assert!(reference.edge().is_err(), "{name}");
            std::fs::remove_file(&path).unwrap();
        }
    }
}
