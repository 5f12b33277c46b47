//! Network namespaces without names, referenced by a descriptor.
//!
//! - A namespace made by `ip netns add` outlives its creator because it is mounted in the file
//!   system. Ours are only open descriptors and the processes inside. The kernel removes them, with
//!   all their interfaces, when this process ends for any reason.
//! - Work inside a namespace runs on a thread that enters it, because a namespace belongs to a
//!   thread.
//!
//! Source: `namespaces(7)`, `setns(2)`, `network_namespaces(7)`, `user_namespaces(7)`.
//!
//! Invariant: no namespace, mount or user mapping of the calling thread changes, except by
//! [`enter_rootless`] and [`Namespace::enter`].

#![allow(unsafe_code)]

use crate::LabError;
use crate::netlink::Netlink;
use crate::requirement::{self, Requirement};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

/// A network namespace, referenced by an open descriptor; clones are the same namespace.
#[derive(Debug, Clone)]
pub struct Namespace {
    descriptor: Arc<OwnedFd>,
}

impl Namespace {
    /// Creates a namespace without background traffic: only the loopback interface, up. IPv6 is
    /// disabled, so that the kernel sends no frames on the cables.
    pub fn create() -> Result<Namespace, LabError> {
        let namespace = in_thread(|| {
            unshare(libc::CLONE_NEWNET)?;
            Namespace::current()
        })?;
        namespace.run(quieten)??;
        let mut netlink = namespace.netlink()?;
        let loopback = netlink.link("lo")?;
        netlink.link_up(loopback.index)?;
        Ok(namespace)
    }

    /// Returns the namespace of the calling thread.
    pub fn current() -> Result<Namespace, LabError> {
        let path = "/proc/thread-self/ns/net";
        let file = File::open(path)
            .map_err(|error| LabError::system("open the network namespace", path, error))?;
        Ok(Namespace { descriptor: Arc::new(OwnedFd::from(file)) })
    }

    /// Moves the calling thread into the namespace permanently. Sockets that it opens later belong
    /// to the namespace.
    pub fn enter(&self) -> Result<(), LabError> {
        // SAFETY: the descriptor is open and setns touches no memory.
        if unsafe { libc::setns(self.descriptor.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::EPERM) => Requirement::Privilege.into(),
                _ => LabError::system("enter a network namespace", self.label(), error),
            });
        }
        Ok(())
    }

    /// Runs `work` inside the namespace on a new thread, and returns its result.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        in_thread(|| self.enter().map(|()| work()))
    }

    /// Runs `work` inside the namespace with a private mount of `/sys`, which shows the namespace's
    /// own interfaces.
    pub fn run_with_sysfs<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        in_thread(|| {
            self.enter()?;
            unshare(libc::CLONE_NEWNS)?;
            mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
            let sysfs = Some(c"sysfs");
            mount(sysfs, c"/sys", sysfs, libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)?;
            Ok(work())
        })
    }

    /// Opens a netlink socket of this namespace, usable from any thread.
    pub fn netlink(&self) -> Result<Netlink, LabError> {
        self.run(Netlink::open)?
    }

    /// Writes a kernel setting of this namespace, such as ("net/ipv4/ip_forward", "1").
    pub fn set(&self, setting: &str, value: &str) -> Result<(), LabError> {
        self.run(|| write_setting(setting, value))?
    }

    /// Reads a kernel setting of this namespace, without its line end.
    pub fn setting(&self, setting: &str) -> Result<String, LabError> {
        let path = format!("/proc/sys/{setting}");
        let read = || fs::read_to_string(&path);
        let text =
            self.run(read)?.map_err(|error| LabError::system("read a setting", &*path, error))?;
        Ok(text.trim_end().to_owned())
    }

    /// Returns the namespace's unique label, such as `net:[4026532008]`.
    pub fn label(&self) -> String {
        let path = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        fs::read_link(path).map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// How this process got the privilege to create networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivilegeSource {
    /// It was privileged from the start (root, or the capabilities).
    Privileged,
    /// It is now root inside its own user namespace: enough for everything but pinning kernel
    /// threads.
    Rootless,
}

/// Gives this process the privileges to build a lab. An unprivileged process moves into a new user
/// namespace.
///
/// Call this at program start, while there is only one thread (the kernel rejects it otherwise).
/// Namespaces, mounts and children created later belong to the user namespace.
pub fn enter_rootless() -> Result<PrivilegeSource, Requirement> {
    if requirement::privileged() {
        return Ok(PrivilegeSource::Privileged);
    }
    // SAFETY: these calls only read the identity of the process.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    unshare(libc::CLONE_NEWUSER).map_err(|error| Requirement::user_namespaces(&error))?;
    let map = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).map_err(|error| {
            Requirement::user_namespaces(&LabError::system("map the user ID", &*path, error))
        })
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {user} 1"))?;
    map("gid_map", format!("0 {group} 1"))?;
    Ok(PrivilegeSource::Rootless)
}

/// Runs `work` on a new thread, so that its changes to the thread end with it.
pub(crate) fn in_thread<T: Send>(
    work: impl FnOnce() -> Result<T, LabError> + Send,
) -> Result<T, LabError> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

pub(crate) fn unshare(flags: libc::c_int) -> Result<(), LabError> {
    // SAFETY: unshare touches no memory.
    if unsafe { libc::unshare(flags) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let what = match flags {
        libc::CLONE_NEWNET => "create a network namespace",
        libc::CLONE_NEWNS => "create a mount namespace",
        libc::CLONE_NEWPID => "create a PID namespace",
        _ => "create a user namespace",
    };
    if flags != libc::CLONE_NEWUSER && error.raw_os_error() == Some(libc::EPERM) {
        return Err(Requirement::Privilege.into());
    }
    Err(LabError::system(what, "unshare", error))
}

pub(crate) fn mount(
    source: Option<&std::ffi::CStr>,
    place: &std::ffi::CStr,
    kind: Option<&std::ffi::CStr>,
    flags: libc::c_ulong,
) -> Result<(), LabError> {
    let pointer = |text: Option<&std::ffi::CStr>| text.map_or(std::ptr::null(), |t| t.as_ptr());
    // SAFETY: every pointer is null or a C string that lives through the call; no data is given.
    let failed = unsafe {
        libc::mount(pointer(source), place.as_ptr(), pointer(kind), flags, std::ptr::null())
    } != 0;
    if failed {
        return Err(LabError::last("mount", place.to_string_lossy()));
    }
    Ok(())
}

/// Disables IPv6 for all future interfaces: no router solicitation, no duplicate address detection,
/// no multicast listener report.
fn quieten() -> Result<(), LabError> {
    if fs::metadata("/proc/sys/net/ipv6").is_err() {
        return Ok(());
    }
    write_setting("net/ipv6/conf/all/disable_ipv6", "1")?;
    write_setting("net/ipv6/conf/default/disable_ipv6", "1")
}

fn write_setting(setting: &str, value: &str) -> Result<(), LabError> {
    let path = format!("/proc/sys/{setting}");
    fs::write(&path, value).map_err(|error| LabError::system("change a setting", path, error))
}
