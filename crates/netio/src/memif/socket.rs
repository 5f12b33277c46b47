//! The Unix sockets of memif's control messages: `SOCK_SEQPACKET`, by path or abstract name, with
//! descriptors as ancillary data (unix(7)). No function waits.

#![allow(unsafe_code)]

use std::fs;
use std::io::{self, ErrorKind};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use os::sys;

use super::protocol::MESSAGE_BYTES;

/// Maximum number of descriptors that are accepted with one message; more than one is a fault.
const DESCRIPTORS_MAX: usize = 4;

/// Bytes of the control buffer for these descriptors.
const CONTROL_BYTES: usize = 64;

/// Length of the listen queue.
const BACKLOG: libc::c_int = 8;

/// User id that the kernel reports if it cannot map the real one (`user_namespaces(7)`).
const OVERFLOW_UID: libc::uid_t = 65534;

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A file.
    Path(PathBuf),
    /// A name in this network namespace, without a file.
    Abstract(String),
}

impl Address {
    /// Returns whether the address is valid: at most 107 bytes without a zero.
    pub fn is_possible(&self) -> bool {
        let bytes = self.bytes();
        !bytes.is_empty() && bytes.len() < 108 && !bytes.contains(&0)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Address::Path(path) => path.as_os_str().as_bytes(),
            Address::Abstract(name) => name.as_bytes(),
        }
    }

    /// Converts the address for the system, with its length.
    fn raw(&self) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
        if !self.is_possible() {
            return Err(ErrorKind::InvalidInput.into());
        }
        // SAFETY: all-zero bytes are a valid value of this C struct.
        let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        raw.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // An abstract name follows a zero byte and ends with the address; a path ends with a zero
        // byte. Both are one byte longer than the text.
        let skipped = usize::from(matches!(self, Address::Abstract(_)));
        for (place, byte) in raw.sun_path[skipped..].iter_mut().zip(self.bytes()) {
            *place = *byte as libc::c_char;
        }
        let start = size_of::<libc::sa_family_t>();
        Ok((raw, (start + 1 + self.bytes().len()) as libc::socklen_t))
    }
}

/// Type of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Preserves message boundaries, as memif requires.
    Messages,
    /// A byte stream.
    Stream,
}

fn new_socket(kind: Kind) -> io::Result<OwnedFd> {
    let kind = match kind {
        Kind::Messages => libc::SOCK_SEQPACKET,
        Kind::Stream => libc::SOCK_STREAM,
    };
    sys::socket(libc::AF_UNIX, kind | libc::SOCK_NONBLOCK, 0)
}

/// A listening socket, and its file, which is removed with it.
pub struct Listener {
    socket: OwnedFd,
    path: Option<PathBuf>,
    /// Device and inode of the file that this listener created.
    identity: Option<(u64, u64)>,
}

impl Listener {
    /// Listens. Replaces a socket file without a listener; a socket with a listener is in use.
    /// Never touches a file that is not a socket.
    pub fn open(address: &Address) -> io::Result<Self> {
        Listener::open_for(address, Kind::Messages)
    }

    /// Like [`Listener::open`], for sockets of this type.
    pub fn open_for(address: &Address, kind: Kind) -> io::Result<Self> {
        let socket = match bind(address, kind) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_stale(address, kind) => {
                if let Address::Path(path) = address {
                    fs::remove_file(path)?;
                }
                bind(address, kind)?
            }
            other => other?,
        };
        // SAFETY: no pointers are passed.
        sys::check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
        let path = match address {
            Address::Path(path) => Some(path.clone()),
            Address::Abstract(_) => None,
        };
        let identity = path.as_deref().and_then(identity);
        Ok(Listener { socket, path, identity })
    }

    /// Accepts a connection, if one waits.
    pub fn accept(&self) -> io::Result<Option<Socket>> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let null = std::ptr::null_mut();
        // SAFETY: no address is requested, and this process alone owns the returned descriptor.
        let accepted = unsafe {
            sys::check(libc::accept4(self.socket.as_raw_fd(), null, null.cast(), flags))
                .map(|descriptor| OwnedFd::from_raw_fd(descriptor))
        };
        match accepted {
            Ok(socket) => Ok(Some(Socket { socket })),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the descriptor, which is readable when a connection waits.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && self.identity.is_some()
            && identity(path) == self.identity
        {
            // A failure is harmless: the next listener finds the file stale.
            let _ = fs::remove_file(path);
        }
    }
}

fn bind(address: &Address, kind: Kind) -> io::Result<OwnedFd> {
    let socket = new_socket(kind)?;
    let (raw, length) = address.raw()?;
    // SAFETY: the pointer and the length describe `raw`, which outlives the call.
    sys::check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&raw).cast(), length) })?;
    Ok(socket)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn is_stale(address: &Address, kind: Kind) -> bool {
    let Address::Path(path) = address else { return false };
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && Socket::connect_for(address, kind)
            .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Result of [`Socket::receive`].
pub enum SocketInput {
    /// No message waits.
    Nothing,
    /// The peer closed the connection.
    End,
    /// A message and its descriptors.
    Message {
        /// Its first bytes.
        bytes: [u8; MESSAGE_BYTES],
        /// Its length, including bytes beyond the buffer.
        length: usize,
        /// Its descriptors.
        descriptors: Vec<OwnedFd>,
    },
}

/// A connection.
pub struct Socket {
    socket: OwnedFd,
}

impl Socket {
    /// Connects to a server, which must be listening.
    pub fn connect(address: &Address) -> io::Result<Self> {
        Socket::connect_for(address, Kind::Messages)
    }

    /// Like [`Socket::connect`], for sockets of this type.
    pub fn connect_for(address: &Address, kind: Kind) -> io::Result<Self> {
        let socket = new_socket(kind)?;
        let (raw, length) = address.raw()?;
        // SAFETY: the pointer and the length describe `raw`, which outlives the call.
        sys::check(unsafe {
            libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&raw).cast(), length)
        })?;
        Ok(Socket { socket })
    }

    /// Returns the socket's descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Returns the bare socket, for another protocol.
    pub fn into_inner(self) -> OwnedFd {
        self.socket
    }

    /// Sends a message, with a descriptor if given. Also fails if the peer does not read.
    pub fn send(&self, bytes: &[u8; MESSAGE_BYTES], beside: Option<RawFd>) -> io::Result<()> {
        let mut control = Control::new();
        let mut piece =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: MESSAGE_BYTES };
        // SAFETY: all-zero bytes are a valid value of this C struct.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &mut piece;
        header.msg_iovlen = 1;
        if let Some(descriptor) = beside {
            header.msg_control = control.bytes.as_mut_ptr().cast();
            // SAFETY: the control buffer is aligned and has room for one header with one
            // descriptor. The lengths state this, and the first header is that one.
            unsafe {
                header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
                let first = libc::CMSG_FIRSTHDR(&header);
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
                libc::CMSG_DATA(first).cast::<RawFd>().write_unaligned(descriptor);
            }
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the header's pointers are to live buffers with the given lengths; the piece is
        // only read.
        let sent = unsafe { libc::sendmsg(self.socket.as_raw_fd(), &header, flags) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives a message.
    pub fn receive(&self) -> io::Result<SocketInput> {
        let mut bytes = [0; MESSAGE_BYTES];
        let mut control = Control::new();
        let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: MESSAGE_BYTES };
        // SAFETY: all-zero bytes are a valid value of this C struct.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.bytes.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the header's pointers are to live buffers with the given lengths.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &mut header, flags) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(SocketInput::Nothing),
                ErrorKind::ConnectionReset => Ok(SocketInput::End),
                _ => Err(error),
            };
        }
        // SAFETY: the kernel filled the control buffer and its length in the header.
        let descriptors = unsafe { descriptors_of(&header) };
        match length {
            0 => Ok(SocketInput::End),
            length => Ok(SocketInput::Message { bytes, length: length as usize, descriptors }),
        }
    }

    /// Returns whether the peer's process belongs to our user or root, and could harm this process
    /// without memif.
    ///
    /// Returns false if this is unknown. A process outside our PID namespace has process id 0 here,
    /// such as the tester of a run whose targets have a namespace. Its user id is known all the
    /// same.
    pub fn is_of_our_user(&self) -> bool {
        let mut peer = MaybeUninit::<libc::ucred>::zeroed();
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the pointer and the length describe `peer`, a struct of integers that is zeroed
        // and filled. The query of our own user id has no preconditions.
        unsafe {
            let asked = libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                peer.as_mut_ptr().cast(),
                &mut length,
            );
            let peer = peer.assume_init();
            let is_known = asked == 0 && peer.uid != OVERFLOW_UID;
            is_known && (peer.uid == libc::geteuid() || peer.uid == 0)
        }
    }
}

/// A buffer for descriptors, with the alignment of the kernel's headers.
#[repr(align(8))]
struct Control {
    bytes: [u8; CONTROL_BYTES],
}

impl Control {
    fn new() -> Self {
        // SAFETY: computing a size has no preconditions.
        let needed = unsafe { libc::CMSG_SPACE((DESCRIPTORS_MAX * size_of::<RawFd>()) as u32) };
        debug_assert!(needed as usize <= CONTROL_BYTES);
        Control { bytes: [0; CONTROL_BYTES] }
    }
}

/// Takes all descriptors out of a received message.
///
/// # Safety
/// The kernel must have filled the header's control buffer, which must still be alive. The
/// descriptors must not have been taken before.
unsafe fn descriptors_of(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut descriptors = Vec::new();
    // SAFETY: the walk stays inside the control buffer, by the lengths that the kernel wrote. The
    // kernel opened each descriptor in it for this process, which alone owns it.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while !next.is_null() {
            if (*next).cmsg_level == libc::SOL_SOCKET && (*next).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(next).cast::<RawFd>();
                let bytes = (*next).cmsg_len - libc::CMSG_LEN(0) as usize;
                for place in 0..bytes / size_of::<RawFd>() {
                    let descriptor = data.add(place).read_unaligned();
                    descriptors.push(OwnedFd::from_raw_fd(descriptor));
                }
            }
            next = libc::CMSG_NXTHDR(header, next);
        }
    }
    descriptors
}
