//! The kernel's work for one veth end on a thread that can be held on a core.
//!
//! A frame put into a veth normally is carried on by the *sender's* core, up to and through a
//! bridge or router: the generator would pay for the target. With GRO on, a veth end collects its
//! frames by NAPI, and NAPI can be told to run on kernel threads (`napi/IF-ID`), which we hold on
//! the core the work belongs to.
//!
//! A thread exists while its interface is up with GRO on: the kernel refuses the setting otherwise,
//! and after down and up there is a new thread, on no particular core.
//!
//! Source: `Documentation/networking/napi.rst` (threaded NAPI), `/sys/class/net/IF/threaded`.
//! Invariant: only threads of the interface named are pinned; they end when it goes down.

mod netdev;

use crate::{LabError, Namespace, pin};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::Mutex;

/// Where the kernel works for an interface, as far as it did what was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NapiThreads {
    /// The kernel threads; empty where they cannot be seen (from another process namespace).
    pub threads: Vec<u32>,
    /// Whether they are held on the cores asked for.
    pub pinned: bool,
    /// What the kernel refused, and why: without root or from another process namespace, threads
    /// are not held; without a sysfs to write to, or before Linux 5.12, there are none.
    pub refused: Option<String>,
}

/// Why threads that exist are not held: as in a container with processes of its own.
const UNSEEN: &str = "the kernel's threads cannot be seen from this process namespace";

/// One at a time, so that where the kernel cannot tell, the threads that appear are the
/// interface's.
static SWITCHING: Mutex<()> = Mutex::new(());

/// Moves an interface's work to kernel threads and holds them on `cores`, as far as the kernel
/// allows. The interface must be up with GRO on.
pub fn pin_threads(namespace: &Namespace, interface: &str, cores: &[usize]) -> NapiThreads {
    let threads = match switch_over(namespace, interface) {
        Ok(threads) => threads,
        Err(error) => {
            return NapiThreads { refused: Some(error.to_string()), ..NapiThreads::default() };
        }
    };
    let refusal = threads.iter().find_map(|thread| pin::pin(*thread, cores).err());
    let refused = match refusal {
        Some(error) => Some(error.to_string()),
        None if threads.is_empty() => Some(UNSEEN.to_owned()),
        None => None,
    };
    NapiThreads { pinned: refused.is_none() && !cores.is_empty(), threads, refused }
}

/// Moves an interface's work to kernel threads and says which.
fn switch_over(namespace: &Namespace, interface: &str) -> Result<Vec<u32>, LabError> {
    let _alone = SWITCHING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = named_threads(interface);
    let path = format!("/sys/class/net/{interface}/threaded");
    namespace
        .run_with_sysfs(|| fs::write(&path, "1"))?
        .map_err(|error| LabError::system("move network work to threads", &*path, error))?;
    let visible = named_threads(interface);
    let index = namespace.netlink()?.link(interface)?.index;
    let threads: Vec<u32> = match netdev::threads(namespace, index)? {
        // Seen from another process namespace, the numbers would be those of strangers.
        Some(told) => told.into_iter().filter(|thread| visible.contains(thread)).collect(),
        None => visible.difference(&before).copied().collect(),
    };
    if threads.is_empty() && !visible.is_empty() {
        let error = io::Error::from_raw_os_error(libc::ESRCH);
        return Err(LabError::system("find the network threads", interface, error));
    }
    Ok(threads)
}

/// The kernel threads that work for interfaces of this name, in whatever namespace.
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

/// Kernels before 5.17 cut a thread's name to 15 bytes, which may cut off the number.
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
    fn thread_names() {
        assert!(is_thread_name("napi/p1-8193", "napi/p1-"));
        assert!(!is_thread_name("napi/p1-8193", "napi/p-"));
        assert!(!is_thread_name("napi/p11-8193", "napi/p1-"));
        assert!(!is_thread_name("napi/p1-x-8193", "napi/p1-"));
        assert!(is_thread_name("napi/linux-brid", "napi/linux-bridge-1-"));
        assert!(!is_thread_name("napi/", "napi/p1-"));
    }
}
