//! Which cores there are, who gets which, and how a thread is held there.
//!
//! A generator that shares its core with the switch it measures measures itself. The split gives
//! the target a core of its own, never a hyper-thread sibling of one the instrument uses where
//! there are enough.
//!
//! Source: `sched_setaffinity(2)`, `/sys/devices/system/cpu/cpuN/topology`.
//! Invariant: every core of a split is one this process may run on.

#![allow(unsafe_code)]

use crate::LabError;
use std::fs;

/// A logical core and the logical cores that share its hardware (itself included).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// The kernel's number.
    pub number: usize,
    /// Those that share the same physical core, in order.
    pub siblings: Vec<usize>,
}

/// Who runs where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// The cores of the generator and the monitor.
    pub instrument: Vec<usize>,
    /// The cores of the device under test: one, as in the studies we repeat.
    pub target: Vec<usize>,
}

impl Cores {
    /// The split of the cores that the calling thread may use: to be asked before it is held on
    /// one of them.
    pub fn of_machine() -> Result<Cores, LabError> {
        Ok(split(&available()?))
    }

    /// Whether instrument and target have a core to share, because there is only one.
    pub fn shared(&self) -> bool {
        self.instrument.iter().any(|core| self.target.contains(core))
    }
}

/// The cores this process may use.
pub fn available() -> Result<Vec<Core>, LabError> {
    let numbers = affinity(0)?;
    Ok(numbers.into_iter().map(|number| Core { number, siblings: siblings(number) }).collect())
}

/// The target gets the last core; the instrument all others that do not share hardware with it, or
/// simply all others where that would leave it none, or the same one where there is only one.
pub fn split(cores: &[Core]) -> Cores {
    let Some(last) = cores.last() else {
        return Cores { instrument: Vec::new(), target: Vec::new() };
    };
    let others = || cores.iter().map(|core| core.number).filter(|core| *core != last.number);
    let apart: Vec<usize> = others().filter(|core| !last.siblings.contains(core)).collect();
    let instrument = if !apart.is_empty() {
        apart
    } else if cores.len() > 1 {
        others().collect()
    } else {
        vec![last.number]
    };
    Cores { instrument, target: vec![last.number] }
}

/// Reads a core list as the kernel prints it: "0-3,8,10-11". Limited to 4,096 cores.
pub fn parse_core_list(text: &str) -> Vec<usize> {
    let mut cores = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cores.extend((first..=last).take_while(|core| *core < 4096));
        }
    }
    cores
}

/// The cores a thread may run on; 0 is the calling thread.
pub fn affinity(thread: u32) -> Result<Vec<usize>, LabError> {
    let mut set = empty_set();
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: `set` is a cpu_set_t of the size given, which the call only writes to.
    if unsafe { libc::sched_getaffinity(thread as libc::pid_t, size, &mut set) } != 0 {
        return Err(LabError::last("read the cores of a thread", thread.to_string()));
    }
    // SAFETY: the core numbers asked for lie below CPU_SETSIZE.
    let has = |core: &usize| unsafe { libc::CPU_ISSET(*core, &set) };
    Ok((0..libc::CPU_SETSIZE as usize).filter(has).collect())
}

/// Holds a thread (0: the calling one) on these cores. An empty list leaves it as it is.
pub fn pin(thread: u32, cores: &[usize]) -> Result<(), LabError> {
    if cores.is_empty() {
        return Ok(());
    }
    let set = core_set(cores);
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: `set` is a valid cpu_set_t of the size given.
    if unsafe { libc::sched_setaffinity(thread as libc::pid_t, size, &set) } != 0 {
        return Err(LabError::last("hold a thread on its core", format!("{thread} on {cores:?}")));
    }
    Ok(())
}

/// The kernel's form of a list of cores; numbers beyond its size are left out.
pub(crate) fn core_set(cores: &[usize]) -> libc::cpu_set_t {
    let mut set = empty_set();
    for core in cores.iter().filter(|core| **core < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number lies below CPU_SETSIZE.
        unsafe { libc::CPU_SET(*core, &mut set) };
    }
    set
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: cpu_set_t is an array of integers, for which all zeroes is the empty set.
    unsafe { std::mem::zeroed() }
}

fn siblings(core: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    let listed = parse_core_list(&fs::read_to_string(path).unwrap_or_default());
    if listed.is_empty() { vec![core] } else { listed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(siblings: &[&[usize]]) -> Vec<Core> {
        let core =
            |(number, siblings): (usize, &&[usize])| Core { number, siblings: siblings.to_vec() };
        siblings.iter().enumerate().map(core).collect()
    }

    #[test]
    fn one_core_is_shared() {
        let cores = split(&machine(&[&[0]]));
        assert_eq!(cores, Cores { instrument: vec![0], target: vec![0] });
        assert!(cores.shared());
    }

    #[test]
    fn two_siblings_are_better_than_one_core() {
        let cores = split(&machine(&[&[0, 1], &[0, 1]]));
        assert_eq!(cores, Cores { instrument: vec![0], target: vec![1] });
        assert!(!cores.shared());
    }

    #[test]
    fn the_sibling_of_the_target_stays_idle() {
        let cores = split(&machine(&[&[0, 2], &[1, 3], &[0, 2], &[1, 3]]));
        assert_eq!(cores, Cores { instrument: vec![0, 2], target: vec![3] });
    }

    #[test]
    fn core_lists() {
        assert_eq!(parse_core_list("0-3,8,10-11\n"), vec![0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_core_list("x,3-1,,5"), vec![5]);
        assert_eq!(parse_core_list("4000-18446744073709551615").len(), 96);
    }

    #[test]
    fn a_pinned_thread_stays() {
        std::thread::spawn(|| {
            let core = affinity(0).unwrap()[0];
            pin(0, &[core]).unwrap();
            assert_eq!(affinity(0).unwrap(), vec![core]);
        })
        .join()
        .unwrap();
    }
}
