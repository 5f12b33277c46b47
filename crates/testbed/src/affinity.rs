//! Cores of the machine, their assignment, and CPU affinity of threads.
//!
//! A generator that shares its core with the switch under test affects the measurement. The split
//! gives the target its own core. If there are enough cores, this core is not a hyper-thread
//! sibling of a core of the tester.
//!
//! Source: `sched_setaffinity(2)`, `/sys/devices/system/cpu/cpuN/topology`.
//!
//! Invariant: this process may run on every core of a split.

#![allow(unsafe_code)]

use crate::LabError;
use std::fs;

/// A logical core and the logical cores that share its hardware (itself included).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    /// The kernel's number of the core.
    pub number: usize,
    /// Logical cores of the same physical core, in order.
    pub siblings: Vec<usize>,
}

/// Assignment of cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// Cores of the generator and the analyzer.
    pub instrument: Vec<usize>,
    /// Cores of the device under test: one, as in the studies that planimeter repeats.
    pub target: Vec<usize>,
}

impl Cores {
    /// Splits the cores that the calling thread may use; call this before the thread is pinned.
    pub fn of_machine() -> Result<Cores, LabError> {
        Ok(split(&available()?))
    }

    /// Returns whether tester and target share a core, because there is only one.
    pub fn shared(&self) -> bool {
        self.instrument.iter().any(|core| self.target.contains(core))
    }
}

/// Returns the cores that this process may use.
pub fn available() -> Result<Vec<Core>, LabError> {
    let numbers = affinity(0)?;
    Ok(numbers.into_iter().map(|number| Core { number, siblings: siblings(number) }).collect())
}

/// Splits cores between target and tester.
///
/// The target gets the last core. The tester gets all others that do not share hardware with it, or
/// simply all others if there are none of these. With one core, both share it.
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

/// Parses a core list as the kernel prints it: "0-3,8,10-11". Limited to 4,096 cores.
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

/// Returns the cores on which a thread may run; 0 is the calling thread.
pub fn affinity(thread: u32) -> Result<Vec<usize>, LabError> {
    let mut set = empty_set();
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: `set` is a cpu_set_t of the size given, which the call only writes to.
    if unsafe { libc::sched_getaffinity(thread as libc::pid_t, size, &mut set) } != 0 {
        return Err(LabError::last("read the cores of a thread", thread.to_string()));
    }
    // SAFETY: the core numbers are below CPU_SETSIZE.
    let has = |core: &usize| unsafe { libc::CPU_ISSET(*core, &set) };
    Ok((0..libc::CPU_SETSIZE as usize).filter(has).collect())
}

/// Pins a thread (0: the calling one) to these cores. An empty list changes nothing.
pub fn pin(thread: u32, cores: &[usize]) -> Result<(), LabError> {
    if cores.is_empty() {
        return Ok(());
    }
    let set = core_set(cores);
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: `set` is a valid cpu_set_t of the size given.
    if unsafe { libc::sched_setaffinity(thread as libc::pid_t, size, &set) } != 0 {
        return Err(LabError::last("pin a thread to its core", format!("{thread} on {cores:?}")));
    }
    Ok(())
}

/// Converts a list of cores to the kernel's format; numbers beyond its size are skipped.
pub(crate) fn core_set(cores: &[usize]) -> libc::cpu_set_t {
    let mut set = empty_set();
    for core in cores.iter().filter(|core| **core < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number is below CPU_SETSIZE.
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
    fn a_single_core_is_shared() {
        let cores = split(&machine(&[&[0]]));
        assert_eq!(cores, Cores { instrument: vec![0], target: vec![0] });
        assert!(cores.shared());
    }

    #[test]
    fn two_siblings_are_preferred_to_one_core() {
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
    fn core_lists_are_parsed() {
        assert_eq!(parse_core_list("0-3,8,10-11\n"), vec![0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_core_list("x,3-1,,5"), vec![5]);
        assert_eq!(parse_core_list("4000-18446744073709551615").len(), 96);
    }

    #[test]
    fn a_pinned_thread_stays_on_its_core() {
        std::thread::spawn(|| {
            let core = affinity(0).unwrap()[0];
            pin(0, &[core]).unwrap();
            assert_eq!(affinity(0).unwrap(), vec![core]);
        })
        .join()
        .unwrap();
    }
}
