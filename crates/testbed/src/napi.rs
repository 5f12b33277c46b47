//! Runs the kernel's receive work of a veth end on a kernel thread that can be pinned to a core.
//!
//! - By default, the *sender's* core processes a frame sent into a veth, up to and through a bridge
//!   or router. The traffic generator would then spend its CPU time on the target's work.
//! - With GRO on, a veth end receives by NAPI. Threaded NAPI runs on kernel threads (`napi/IF-ID`),
//!   which this module pins to the right core.
//! - A thread exists while its interface is up with GRO on: the kernel rejects the setting
//!   otherwise. After the interface goes down and up there is a new thread, on no particular core.
//!
//! Source: `Documentation/networking/napi.rst` (threaded NAPI), `/sys/class/net/IF/threaded`.
//!
//! Invariant: only threads of the given interface are pinned; they end when it goes down.

mod netdev;

use crate::{LabError, Namespace, affinity};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::Mutex;

/// Kernel threads of an interface, as far as the kernel allowed the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NapiThreads {
    /// The kernel threads; empty if they are not visible (from another PID namespace).
    pub threads: Vec<u32>,
    /// Whether they are pinned to the requested cores.
    pub pinned: bool,
    /// The rejected operation and the reason.
    ///
    /// Without root or from another PID namespace, threads are not pinned. Without a writable
    /// sysfs, or before Linux 5.12, there are none.
    pub refused: Option<String>,
}

/// Reason for unpinned threads, as in a container with its own PID namespace.
const UNSEEN: &str = "the kernel's threads are invisible from this PID namespace";

/// Serializes the change: if the kernel cannot report the threads, the new ones must be this
/// interface's.
static SWITCHING: Mutex<()> = Mutex::new(());

/// Moves an interface's work to kernel threads and pins them to `cores`, as far as the kernel
/// allows.
///
/// The interface must be up with GRO on.
pub fn pin_threads(namespace: &Namespace, interface: &str, cores: &[usize]) -> NapiThreads {
    let threads = match switch_over(namespace, interface) {
        Ok(threads) => threads,
        Err(error) => {
            return NapiThreads { refused: Some(error.to_string()), ..NapiThreads::default() };
        }
    };
    let refusal = threads.iter().find_map(|thread| affinity::pin(*thread, cores).err());
    let refused = match refusal {
        Some(error) => Some(error.to_string()),
        None if threads.is_empty() => Some(UNSEEN.to_owned()),
        None => None,
    };
    NapiThreads { pinned: refused.is_none() && !cores.is_empty(), threads, refused }
}

/// Moves an interface's work to kernel threads and returns them.
fn switch_over(namespace: &Namespace, interface: &str) -> Result<Vec<u32>, LabError> {
    let _alone = SWITCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = named_threads(interface);
    let path = format!("/sys/class/net/{interface}/threaded");
    namespace
        .run_with_sysfs(|| fs::write(&path, "1"))?
        .map_err(|error| LabError::system("enable threaded NAPI", &*path, error))?;
    let visible = named_threads(interface);
    let index = namespace.netlink()?.link(interface)?.index;
    let threads: Vec<u32> = match netdev::threads(namespace, index)? {
        // From another PID namespace, these numbers would be those of other processes.
        Some(told) => told.into_iter().filter(|thread| visible.contains(thread)).collect(),
        None => visible.difference(&before).copied().collect(),
    };
    if threads.is_empty() && !visible.is_empty() {
        let error = io::Error::from_raw_os_error(libc::ESRCH);
        return Err(LabError::system("find the NAPI threads", interface, error));
    }
    Ok(threads)
}

/// Returns the kernel threads of interfaces with this name, in any namespace.
fn named_threads(interface: &str) -> BTreeSet<u32> {
    let wanted = format!("napi/{interface}-");
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeSet::new();
    };
    let pid = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let is_wanted = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        is_thread_name(name.trim_end(), &wanted)
    };
    entries.filter_map(pid).filter(is_wanted).collect()
}

/// Kernels before 5.17 truncate a thread's name to 15 bytes, which may remove the number.
fn is_thread_name(name: &str, wanted: &str) -> bool {
    match name.strip_prefix(wanted) {
        Some(number) => number.bytes().all(|byte| byte.is_ascii_digit()),
        None => name.len() == 15 && wanted.starts_with(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_names_are_parsed() {
        assert!(is_thread_name("napi/p1-8193", "napi/p1-"));
        assert!(!is_thread_name("napi/p1-8193", "napi/p-"));
        assert!(!is_thread_name("napi/p11-8193", "napi/p1-"));
        assert!(!is_thread_name("napi/p1-x-8193", "napi/p1-"));
        assert!(is_thread_name("napi/linux-brid", "napi/linux-bridge-1-"));
        assert!(!is_thread_name("napi/", "napi/p1-"));
    }
}
