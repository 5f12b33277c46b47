//! Reads `/proc`: the identity of processes and their CPU time.
//!
//! A process number may be reused. A process is therefore identified by its number *and* its start
//! time, which together are unique until the machine restarts (and the boot id distinguishes
//! restarts).
//!
//! Source: `proc_pid_stat(5)`, `proc_stat(5)`, `random(4)` (boot id), `clock_getcpuclockid(3)`.
//!
//! Invariant: parsing never panics for any text.

#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Highest process number that the kernel can be configured for (`PID_MAX_LIMIT`).
const PID_MAX: u32 = 1 << 22;

/// A process, identified uniquely on this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The process number.
    pub pid: u32,
    /// Clock ticks from boot to the start of the process.
    pub start_ticks: u64,
}

impl Identity {
    /// Returns the process that currently has this number, if any; a zombie counts as gone.
    ///
    /// Returns none if `/proc` shows another PID namespace, whose numbers mean other processes.
    pub fn of(pid: u32) -> Option<Identity> {
        if !shows_own_namespace() {
            return None;
        }
        let stat = parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        let gone = matches!(stat.state, 'Z' | 'X');
        (!gone).then_some(Identity { pid, start_ticks: stat.start_ticks })
    }

    /// Returns this process.
    pub fn own() -> Identity {
        let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let stat = parse_stat(&text).expect("a process can read its own /proc/self/stat");
        Identity { pid: std::process::id(), start_ticks: stat.start_ticks }
    }

    /// Returns whether this process still runs.
    pub fn lives(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }
}

/// The fields of `/proc/PID/stat` that the lab uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The command name, without its parentheses.
    pub name: String,
    /// One letter: R running, S sleeping, Z zombie...
    pub state: char,
    /// Field 22: clock ticks from boot to the start.
    pub start_ticks: u64,
}

/// Parses `/proc/PID/stat`; a name may contain spaces and parentheses.
pub fn parse_stat(text: &str) -> Option<Stat> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let name = text.get(open + 1..close)?.to_owned();
    let mut fields = text.get(close + 1..)?.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some(Stat { name, state, start_ticks })
}

/// Returns the current threads of a process; none if it is gone.
pub fn threads(pid: u32) -> Vec<Stat> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stat = |task: fs::DirEntry| parse_stat(&fs::read_to_string(task.path().join("stat")).ok()?);
    tasks.filter_map(stat).collect()
}

/// Returns the id of this boot, which distinguishes it from every other.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Returns the PID namespace of this process, as `pid:[4026531836]`.
pub fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Returns whether `/proc` shows the PID namespace of this process. It does not if the process was
/// moved into a new PID namespace without a new mount of `/proc`.
pub fn shows_own_namespace() -> bool {
    let shown = fs::read_link("/proc/self").ok();
    shown.is_some_and(|shown| shown.as_os_str() == &*std::process::id().to_string())
}

/// Returns the processes with this environment variable and value, as far as this process may read
/// their environment.
pub fn with_variable(name: &str, value: &OsStr) -> Vec<Identity> {
    let wanted = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let has = |identity: &Identity| {
        let text = fs::read(format!("/proc/{}/environ", identity.pid)).unwrap_or_default();
        text.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Identity::of).filter(has).collect()
}

/// Returns the CPU time of a process (all its threads, ended ones included) or kernel thread in
/// nanoseconds; none if it is gone.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    if !(1..=PID_MAX).contains(&pid) {
        return None;
    }
    // The kernel's clock number of another process: the inverted process number above three bits; 2
    // means scheduled time (clock_getcpuclockid returns the same).
    let clock = (!(pid as libc::clockid_t) << 3) | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call only writes to.
    let failed = unsafe { libc::clock_gettime(clock, &mut time) } != 0;
    (!failed).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Returns the resident memory of a process in bytes, including huge pages, which the kernel counts
/// separately.
///
/// Returns `None` if the process is gone or not readable.
pub fn memory_bytes(pid: u32) -> Option<u64> {
    parse_memory(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

/// Returns the sum of the resident pages in `smaps_rollup`.
pub fn parse_memory(text: &str) -> Option<u64> {
    let kibibytes = |line: &str| -> Option<u64> {
        let (name, value) = line.split_once(':')?;
        let counts = ["Rss", "Private_Hugetlb", "Shared_Hugetlb"].contains(&name);
        value.trim().strip_suffix(" kB")?.trim().parse().ok().filter(|_| counts)
    };
    let found: Vec<u64> = text.lines().filter_map(kibibytes).collect();
    (!found.is_empty()).then(|| found.iter().sum::<u64>() * 1024)
}

/// Returns the size of the machine's default huge page, in KiB.
pub fn huge_page_kibibytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    memory_kibibytes(&text, "Hugepagesize").filter(|size| *size > 0)
}

/// Returns the available memory (`MemAvailable`), in KiB.
pub fn memory_available_kibibytes() -> Option<u64> {
    memory_kibibytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// Parses one line of `/proc/meminfo`: "Hugepagesize:       2048 kB".
fn memory_kibibytes(text: &str, name: &str) -> Option<u64> {
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
    text.lines().find_map(value)?.strip_suffix("kB")?.trim().parse().ok()
}

/// Times of one core since boot, in clock ticks (usually 10 ms).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreTime {
    /// User programs.
    pub user: u64,
    /// The kernel on behalf of programs, and kernel threads.
    pub system: u64,
    /// Idle, or waiting for a disk.
    pub idle: u64,
    /// Hardware interrupts.
    pub interrupt: u64,
    /// Softirqs: most of the network stack, unless it has its own threads.
    pub softirq: u64,
    /// Stolen by the hypervisor.
    pub steal: u64,
}

impl CoreTime {
    /// Returns the difference from an earlier reading.
    pub fn since(&self, earlier: &CoreTime) -> CoreTime {
        CoreTime {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            interrupt: self.interrupt.saturating_sub(earlier.interrupt),
            softirq: self.softirq.saturating_sub(earlier.softirq),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }
}

/// Parses the `cpuN` lines of `/proc/stat`, as (core, times).
pub fn parse_core_times(text: &str) -> Vec<(usize, CoreTime)> {
    text.lines().filter_map(parse_core_time).collect()
}

fn parse_core_time(line: &str) -> Option<(usize, CoreTime)> {
    let mut fields = line.split_ascii_whitespace();
    let core = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    let time = CoreTime {
        user: at(0).saturating_add(at(1)),
        system: at(2),
        idle: at(3).saturating_add(at(4)),
        interrupt: at(5),
        softirq: at(6),
        steal: at(7),
    };
    Some((core, time))
}

/// Returns the current times of all cores.
pub fn core_times() -> Vec<(usize, CoreTime)> {
    parse_core_times(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_brackets_in_the_name_is_parsed() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0";
        let stat = parse_stat(text).unwrap();
        assert_eq!(stat, Stat { name: "a) b (c".into(), state: 'S', start_ticks: 987_654 });
    }

    #[test]
    fn a_damaged_stat_is_none() {
        for text in ["", "1", "1 (", "1 )(", "1 (a)", "1 (a) S 1 2", "1 (a) S x", ")("] {
            assert_eq!(parse_stat(text), None, "{text:?}");
        }
    }

    #[test]
    fn core_times_are_parsed_by_core() {
        let text = "cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu3 1 0 0\nintr 5\n";
        let times = parse_core_times(text);
        let first = CoreTime { user: 3, system: 3, idle: 9, interrupt: 6, softirq: 7, steal: 8 };
        assert_eq!(times, vec![(0, first), (3, CoreTime { user: 1, ..CoreTime::default() })]);
    }

    #[test]
    fn memory_values_are_parsed_by_name() {
        let text = "MemTotal:       24592432 kB\nHugePages_Free:        0\nHugepagesize: 2048 kB\n";
        assert_eq!(memory_kibibytes(text, "Hugepagesize"), Some(2048));
        assert_eq!(memory_kibibytes(text, "MemTotal"), Some(24_592_432));
        for name in ["Mem", "HugePages_Free", "Swap"] {
            assert_eq!(memory_kibibytes(text, name), None, "{name}");
        }
    }

    #[test]
    fn an_identity_does_not_match_a_later_process() {
        let own = Identity::own();
        assert!(own.lives());
        assert!(!Identity { start_ticks: own.start_ticks + 1, ..own }.lives());
        assert!(cpu_time(own.pid).unwrap() > Duration::ZERO);
        assert!(threads(own.pid).iter().any(|thread| thread.start_ticks >= own.start_ticks));
        assert_eq!(threads(PID_MAX), []);
        assert_eq!(cpu_time(PID_MAX), None);
        assert_eq!((cpu_time(0), cpu_time(u32::MAX)), (None, None));
    }
}
