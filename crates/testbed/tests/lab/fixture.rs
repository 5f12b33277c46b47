//! A lab with its own root directory, and waits for conditions.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use testbed::{Lab, Wiring};

/// Timeout far longer than any test; only a failure takes this long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A root directory for runs, removed afterwards.
pub struct Root(pub PathBuf);

impl Root {
    pub fn new() -> Root {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Root(std::env::temp_dir().join(format!("planimeter-lab-{}-{number}", std::process::id())))
    }

    pub fn lab(&self) -> Lab {
        Lab::open(&self.0).unwrap()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Two ports, all receive work on threads, on the available cores.
pub fn wiring() -> Wiring {
    Wiring { instrument_threaded: true, ..Wiring::of_machine().unwrap() }
}

/// Returns whether a condition becomes true before the timeout.
pub fn in_time(mut is_true: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !is_true() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Returns the processes whose command line contains this text.
pub fn processes_with(text: &str) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != std::process::id() && String::from_utf8_lossy(&line).contains(text)
    };
    pids.filter(has).collect()
}
