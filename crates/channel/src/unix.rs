//! Channels over Unix sockets.
//!
//! A listening socket leaves its file behind when its process dies. Such a stale file is replaced.
//! A file with a listener is in use, and a file that is not a socket is never touched. The file is
//! removed when its listener is dropped, unless another process has replaced it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use os::sys;

use super::stream::Stream;
use super::{Channel, Source};

/// Creates a channel over a Unix socket connection; the file gives the peer's name.
pub(super) fn channel(socket: UnixStream, path: &Path) -> io::Result<Box<dyn Channel>> {
    socket.set_nonblocking(true)?;
    let peer: io::Result<libc::ucred> =
        sys::option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED);
    let source = peer.ok().map(|peer| Source::User(peer.uid));
    Ok(Box::new(Stream::new(socket, format!("unix:{}", path.display()), source)))
}

/// A listening socket with its file.
pub(super) struct Listening {
    pub(super) socket: UnixListener,
    pub(super) path: PathBuf,
    /// Device and inode of the file that this listener created.
    identity: Option<(u64, u64)>,
}

impl Listening {
    /// Listens on `path`, replacing the stale file of a dead process.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let socket = match UnixListener::bind(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_stale(path) => {
                fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            other => other?,
        };
        socket.set_nonblocking(true)?;
        Ok(Listening { socket, path: path.to_owned(), identity: identity(path) })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            // A failure is harmless: the next listener finds the file stale.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Returns whether `path` is a socket file without a listener.
fn is_stale(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}
