//! The network namespace in which a port was opened, so that later sockets can be created in it.
//!
//! A socket belongs for good to the namespace of the thread that created it, and so do the
//! interfaces that it can bind to. A port may be opened in one namespace and used by a thread in
//! another. It then creates its next socket in a short-lived thread that enters the first
//! namespace. Source: `network_namespaces(7)`, `setns(2)`.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use os::sys;

/// A network namespace.
#[derive(Debug)]
pub struct NetNs(Option<File>);

impl NetNs {
    /// Returns the namespace of the calling thread.
    ///
    /// If the system does not report it, [`NetNs::enter`] uses the namespace of its own caller.
    pub fn of_this_thread() -> NetNs {
        NetNs(File::open("/proc/thread-self/ns/net").ok())
    }

    /// Calls `make` in this namespace: directly if the calling thread is in it, else in a new
    /// thread that enters it.
    pub fn enter<T: Send>(
        &self,
        make: impl FnOnce() -> Result<T, (&'static str, io::Error)> + Send,
    ) -> Result<T, (&'static str, io::Error)> {
        let Some(home) = self.0.as_ref().filter(|home| !is_here(home)) else { return make() };
        let make = || {
            // SAFETY: the descriptor is open, and only this thread, which ends with `make`, changes
            // namespace.
            let moved = unsafe { libc::setns(home.as_raw_fd(), libc::CLONE_NEWNET) };
            sys::check(moved).map_err(|error| ("enter the namespace of", error))?;
            make()
        };
        std::thread::scope(|scope| match scope.spawn(make).join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

/// Returns whether the calling thread is in this namespace.
fn is_here(home: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |file: &File| file.metadata().map(|it| (it.dev(), it.ino())).ok();
    let here = File::open("/proc/thread-self/ns/net").ok().and_then(|here| of(&here));
    here.is_some() && here == of(home)
}
