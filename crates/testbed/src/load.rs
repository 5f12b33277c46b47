//! CPU usage of the cores: by processes, kernel threads and the rest of the kernel.
//!
//! A rate must be reported with the CPU time that it cost, and a target with an idle core was not
//! the bottleneck. A load is a reading; the difference of two readings covers the time in between.
//!
//! Source: `clock_getcpuclockid(3)`, `proc_stat(5)`.
//!
//! Invariant: reading uses no time of the cores that are read.

use crate::proc::{self, CoreTime};
use std::collections::BTreeMap;
use std::time::Duration;

/// A reading of the used CPU time, or the difference of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// CPU time of processes and kernel threads by process number; ended ones are absent.
    pub tasks: BTreeMap<u32, Duration>,
    /// Times of the cores in clock ticks, by core.
    pub cores: BTreeMap<usize, CoreTime>,
}

impl Load {
    /// Reads these processes or kernel threads, and these cores.
    pub fn of(tasks: &[u32], cores: &[usize]) -> Load {
        let task = |pid: &u32| Some((*pid, proc::cpu_time(*pid)?));
        let times = proc::core_times();
        Load {
            tasks: tasks.iter().filter_map(task).collect(),
            cores: times.into_iter().filter(|(core, _)| cores.contains(core)).collect(),
        }
    }

    /// Returns the difference from an earlier reading.
    pub fn since(&self, earlier: &Load) -> Load {
        let task = |(pid, now): (&u32, &Duration)| {
            let before = earlier.tasks.get(pid).copied().unwrap_or_default();
            (*pid, now.saturating_sub(before))
        };
        let core = |(core, now): (&usize, &CoreTime)| {
            let before = earlier.cores.get(core).copied().unwrap_or_default();
            (*core, now.since(&before))
        };
        Load {
            tasks: self.tasks.iter().map(task).collect(),
            cores: self.cores.iter().map(core).collect(),
        }
    }

    /// Returns the time of all tasks together.
    pub fn total(&self) -> Duration {
        self.tasks.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_busy_process_increases() {
        let own = std::process::id();
        let before = Load::of(&[own, u32::MAX], &[0]);
        assert_eq!(before.tasks.len(), 1);
        assert_eq!(before.cores.len(), 1);
        let mut sum = 0_u64;
        (0..1_000_000_u64).for_each(|n| sum = sum.wrapping_add(std::hint::black_box(n)));
        std::hint::black_box(sum);
        let after = Load::of(&[own], &[]);
        assert!(after.since(&before).total() > Duration::ZERO);
        assert!(after.since(&before).total() < after.total());
        assert!(after.cores.is_empty());
    }
}
