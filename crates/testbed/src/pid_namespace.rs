//! PID namespaces, so that every process of a run ends with the run.
//!
//! No process can leave its PID namespace: neither `setsid` nor a second fork nor the death of its
//! parent changes that. When the first process of a namespace ends, the kernel kills all others.
//! The first process is `cat` here. It reads from a pipe whose only writer is this process, so it
//! ends when this process ends, also by SIGKILL. `PR_SET_PDEATHSIG` alone is not enough: the kernel
//! clears it when a program gains capabilities from its file, and it does not reach grandchildren.
//!
//! Mounts are not changed: `/proc` shows the processes of the namespace in which it was mounted,
//! and what a command mounts (`ip netns add`) is visible to all.
//!
//! Source: `pid_namespaces(7)`, `setns(2)`.
//! Invariants:
//! - A dropped namespace has no process left.
//! - The calling thread's own namespaces do not change, except by [`mount_own_proc`].

#![allow(unsafe_code)]

use crate::namespace::{in_thread, mount, unshare};
use crate::{LabError, proc, requirement};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A PID namespace; its processes die when it is dropped, or when this process ends.
#[derive(Debug)]
pub(crate) struct PidNamespace {
    init: Child,
    descriptor: OwnedFd,
}

impl PidNamespace {
    /// Creates a namespace and starts its first process.
    pub(crate) fn create() -> Result<PidNamespace, LabError> {
        let program = requirement::tool("cat", "coreutils")?;
        let refused = |error| LabError::system("start", program.display().to_string(), error);
        let mut command = Command::new(&program);
        command.env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: the closure makes one system call that is allowed between fork and exec.
        unsafe { command.pre_exec(ignore_children) };
        in_thread(|| {
            unshare(libc::CLONE_NEWPID)?;
            let mut init = command.spawn().map_err(refused)?;
            let opened = open("/proc/thread-self/ns/pid_for_children");
            if opened.is_err() {
                end(&mut init);
            }
            Ok(PidNamespace { descriptor: opened?, init })
        })
    }

    /// Starts a program in the namespace, on a new thread.
    ///
    /// A thread whose children belong to another namespace cannot return if its privileges come
    /// from a user namespace. Wait for the child before you drop the namespace: the kernel keeps
    /// the first process until then.
    pub(crate) fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        in_thread(|| {
            // SAFETY: the descriptor is open and setns touches no memory.
            if unsafe { libc::setns(self.descriptor.as_raw_fd(), libc::CLONE_NEWPID) } != 0 {
                return Err(LabError::last("enter", "a PID namespace"));
            }
            let spawned = command.spawn();
            let name = command.get_program().to_string_lossy();
            spawned.map_err(|error| LabError::system("start", name, error))
        })
    }
}

impl Drop for PidNamespace {
    fn drop(&mut self) {
        end(&mut self.init);
    }
}

/// Mounts a `/proc` of this process's own PID namespace, if the present one shows another, whose
/// process numbers differ.
///
/// Requires `CAP_SYS_ADMIN`. Call this at program start, while there is only one thread.
pub fn mount_own_proc() -> Result<(), LabError> {
    if proc::shows_own_namespace() {
        return Ok(());
    }
    unshare(libc::CLONE_NEWNS)?;
    mount(None, c"/", None, libc::MS_REC | libc::MS_SLAVE)?;
    let kind = Some(c"proc");
    mount(kind, c"/proc", kind, libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
}

/// Kills the first process, and waits until the kernel has ended all others.
fn end(init: &mut Child) {
    let _ = init.kill();
    let _ = init.wait();
}

fn open(path: &'static str) -> Result<OwnedFd, LabError> {
    let opened = File::open(path).map(OwnedFd::from);
    opened.map_err(|error| LabError::system("open the PID namespace", path, error))
}

/// Ignores SIGCHLD, so that the kernel reaps ended children: orphans belong to the first process,
/// and `cat` does not wait for them.
fn ignore_children() -> io::Result<()> {
    // SAFETY: signal takes integers only.
    match unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
