//! Which cores a thread may run on, and how soon it gets one.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;

use packet::time::Nanos;

use crate::sys;

/// Cores that a set can name.
const CORES_MAX: usize = 8 * size_of::<libc::cpu_set_t>();

/// The cores that this thread may run on.
pub fn allowed() -> io::Result<Vec<usize>> {
    // SAFETY: a set of cores is a row of bits, for which all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a set of the size that is given.
    sys::check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) })?;
    // SAFETY: the macro reads bits of the set, and the numbers are within it.
    Ok((0..CORES_MAX).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect())
}

/// Pins this thread, and threads that it starts later, to these cores.
pub fn hold(cores: &[usize]) -> io::Result<()> {
    // SAFETY: as above.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &core in cores.iter().filter(|&&core| core < CORES_MAX) {
        // SAFETY: the macro sets a bit of the set, and the number is within it.
        unsafe { libc::CPU_SET(core, &mut set) };
    }
    // SAFETY: the pointer is to a set of the size that is given.
    sys::check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

/// A thread of this process with low priority.
#[derive(Debug, Clone, Copy)]
pub struct LowPriorityThread(libc::pid_t);

/// Runs this thread only while no other thread uses its core (`SCHED_IDLE`).
pub fn lower_priority() -> io::Result<LowPriorityThread> {
    schedule(0, libc::SCHED_IDLE, 0)?;
    // SAFETY: the call only returns a number.
    Ok(LowPriorityThread(unsafe { libc::gettid() }))
}

impl LowPriorityThread {
    /// Gives the thread normal priority, after it has waited too long.
    pub fn restore_priority(self) -> io::Result<()> {
        schedule(self.0, libc::SCHED_OTHER, 0)
    }

    /// Gives the thread low priority again.
    pub fn lower_priority(self) -> io::Result<()> {
        schedule(self.0, libc::SCHED_IDLE, 0)
    }
}

fn schedule(thread: libc::pid_t, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the pointer is to the parameters of this call.
    sys::check(unsafe { libc::sched_setscheduler(thread, policy, &parameters) })?;
    Ok(())
}

/// Real-time priority of the calling thread. Dropping this on the same thread restores its
/// attributes.
#[derive(Debug)]
pub struct RealTimePriority {
    before: libc::sched_attr,
    /// The attributes are those of one thread.
    _of_thread: PhantomData<*const ()>,
}

impl RealTimePriority {
    /// Has this thread preempt all threads with normal priority on its core as soon as it wakes
    /// (`SCHED_FIFO`). They run only while it sleeps. Requires `CAP_SYS_NICE`.
    pub fn take() -> io::Result<RealTimePriority> {
        let before = scheduling()?;
        // Threads that this one starts have normal priority.
        schedule(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)?;
        Ok(RealTimePriority { before, _of_thread: PhantomData })
    }
}

impl Drop for RealTimePriority {
    fn drop(&mut self) {
        // It was possible before, and a lower priority needs no right.
        let _ = set_scheduling(&self.before);
    }
}

/// Minimum slice of the scheduler.
const SHORTEST_SLICE: Nanos = Nanos::from_micros(100);

/// Requests short slices from the scheduler.
///
/// When this thread wakes, it then preempts threads with longer slices. Otherwise it waits
/// milliseconds until they have used theirs. Kernels before 6.12 ignore the request.
///
/// Source: `sched_setattr(2)`, `sched_runtime` of `SCHED_OTHER`.
pub fn take_short_slices() -> io::Result<()> {
    // Read first: the nice value stays as it is.
    let mut attributes = scheduling()?;
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        // Threads of real-time policies have no slices.
        return Ok(());
    }
    attributes.sched_runtime = SHORTEST_SLICE.0;
    set_scheduling(&attributes)
}

/// Sets the scheduling attributes of this thread.
fn set_scheduling(attributes: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the pointer is to attributes that state their size.
    sys::check(unsafe {
        libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(attributes), 0) as libc::c_int
    })?;
    Ok(())
}

/// Reads the scheduling attributes of this thread.
fn scheduling() -> io::Result<libc::sched_attr> {
    // SAFETY: attributes are numbers, for which zero is valid.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the pointer is to attributes of the size that is given.
    sys::check(unsafe {
        libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, bytes, 0) as libc::c_int
    })?;
    Ok(attributes)
}

/// Has the system end this thread's waits when they are over, and not when it suits others too.
pub fn wake_on_time() -> io::Result<()> {
    // SAFETY: the call takes numbers only, and concerns this thread only.
    sys::check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_slices_do_not_change_the_policy_and_the_nice_value() {
        let (before, after) = std::thread::spawn(|| {
            let before = scheduling().unwrap();
            take_short_slices().unwrap();
            (before, scheduling().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(after.sched_policy, before.sched_policy);
        assert_eq!(after.sched_nice, before.sched_nice);
        // Kernels before 6.12 report no slice.
        if before.sched_runtime > 0 {
            assert_eq!(after.sched_runtime, SHORTEST_SLICE.0);
        }
    }

    #[test]
    fn real_time_priority_ends_with_its_guard() {
        let thread = std::thread::spawn(|| {
            take_short_slices().unwrap();
            let before = scheduling().unwrap();
            let Ok(priority) = RealTimePriority::take() else {
                return println!("skipped: real-time priority requires CAP_SYS_NICE");
            };
            assert_eq!(scheduling().unwrap().sched_policy, libc::SCHED_FIFO as u32);
            let child = std::thread::spawn(|| scheduling().unwrap().sched_policy);
            assert_eq!(child.join().unwrap(), libc::SCHED_OTHER as u32);
            drop(priority);
            let after = scheduling().unwrap();
            assert_eq!(after.sched_policy, before.sched_policy);
            assert_eq!(after.sched_nice, before.sched_nice);
            assert_eq!(after.sched_runtime, before.sched_runtime);
        });
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_is_pinned_to_its_core_only() {
        let before = allowed().unwrap();
        let last = *before.last().unwrap();
        let thread = std::thread::spawn(move || {
            hold(&[last]).unwrap();
            allowed().unwrap()
        });
        assert_eq!(thread.join().unwrap(), [last]);
        assert_eq!(allowed().unwrap(), before);
        assert!(hold(&[]).is_err() && hold(&[CORES_MAX + 1]).is_err());
    }
}
