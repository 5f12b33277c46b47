//! Disables offloads, so that the frames on a cable are the frames that were sent, with their
//! checksums.
//!
//! Source: `SIOCETHTOOL` in the kernel's `ethtool.h`.
//!
//! Invariant: receive aggregation (GRO) is the only offload that may stay enabled, and only where a
//! veth end needs it for a separate kernel thread. It is then configured not to merge frames.

#![allow(unsafe_code)]

use crate::{LabError, Namespace};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// An offload; the value is the command that sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Offload {
    /// Receive checksums.
    ReceiveChecksum = 0x15,
    /// Transmit checksums.
    TransmitChecksum = 0x17,
    /// Scatter-gather.
    ScatterGather = 0x19,
    /// TCP segmentation offload.
    Tso = 0x1f,
    /// Generic segmentation offload.
    Gso = 0x24,
    /// Generic receive offload.
    Gro = 0x2c,
}

/// The order matters: the kernel rejects segmentation offload without scatter-gather and checksums.
const OFF: [Offload; 5] = [
    Offload::Tso,
    Offload::Gso,
    Offload::ScatterGather,
    Offload::TransmitChecksum,
    Offload::ReceiveChecksum,
];

/// Disables all offloads of an interface and sets GRO. Skips offloads that the interface does not
/// support.
pub fn offloads_off(namespace: &Namespace, interface: &str, gro: bool) -> Result<(), LabError> {
    namespace.run(|| {
        let socket = control_socket()?;
        for offload in OFF {
            set(&socket, interface, offload, false)?;
        }
        set(&socket, interface, Offload::Gro, gro)
    })?
}

/// Returns whether an offload of an interface is enabled.
pub fn offload(namespace: &Namespace, interface: &str, offload: Offload) -> Result<bool, LabError> {
    let get = offload as u32 - 1;
    namespace.run(|| {
        let mut value = Value { command: get, data: 0 };
        ask(&control_socket()?, interface, &mut value)
            .map_err(|error| LabError::system("read an offload setting", interface, error))?;
        Ok(value.data != 0)
    })?
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

fn set(socket: &OwnedFd, interface: &str, offload: Offload, on: bool) -> Result<(), LabError> {
    let mut value = Value { command: offload as u32, data: u32::from(on) };
    match ask(socket, interface, &mut value) {
        Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => Err(LabError::system(
            "change an offload setting",
            format!("{offload:?} of {interface}"),
            error,
        )),
        _ => Ok(()),
    }
}

fn ask(socket: &OwnedFd, interface: &str, value: &mut Value) -> io::Result<()> {
    // SAFETY: ifreq is a plain structure for which all zeroes is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(room)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut *value).cast();
    // SAFETY: the request has an interface name with a final zero and points to an ethtool_value
    // that lives through the call.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request) } != 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn control_socket() -> Result<OwnedFd, LabError> {
    // SAFETY: socket takes no pointers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(LabError::last("open a socket", "ethtool"));
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}
