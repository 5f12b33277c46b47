//! The network namespace that a port was opened in: where its sockets have to be made, whoever makes them later.
//!
//! A socket belongs for good to the namespace of the thread that made it, and so do the interfaces that it can be
//! bound to. A port that is opened in one namespace and used by a thread in another makes its next
//! socket by way of a thread that goes there and ends. Source: `network_namespaces(7)`, `setns(2)`.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::sys;

/// A network namespace.
#[derive(Debug)]
pub struct Home(Option<File>);

impl Home {
    /// That of the calling thread. Where the system does not tell, it is taken to be that of whoever asks later.
    pub fn of_this_thread() -> Home {
        Home(File::open("/proc/thread-self/ns/net").ok())
    }

    /// Does something there: at once where the calling thread is there, else in a thread that may go there.
    pub fn enter<T: Send>(
        &self,
        make: impl FnOnce() -> Result<T, (&'static str, io::Error)> + Send,
    ) -> Result<T, (&'static str, io::Error)> {
        let Some(home) = self.0.as_ref().filter(|home| !is_here(home)) else { return make() };
        let make = || {
            // SAFETY: the descriptor is open, and only this thread, which ends with `make`, moves.
            let moved = unsafe { libc::setns(home.as_raw_fd(), libc::CLONE_NEWNET) };
            sys::check(moved).map_err(|error| ("entering the namespace of", error))?;
            make()
        };
        std::thread::scope(|scope| match scope.spawn(make).join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

/// Whether the calling thread is in this namespace.
fn is_here(home: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |file: &File| file.metadata().map(|it| (it.dev(), it.ino())).ok();
    let here = File::open("/proc/thread-self/ns/net").ok().and_then(|here| of(&here));
    here.is_some() && here == of(home)
}
