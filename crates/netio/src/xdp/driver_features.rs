//! What an interface supports of XDP, by generic netlink.
//!
//! A veth sends redirected frames only while its peer polls: with an XDP program in native mode
//! there, or with generic receive offload. Otherwise the frames are lost without a counter.
//!
//! Source: Linux `Documentation/netlink/specs/netdev.yaml` (since Linux 6.3) and
//! `include/uapi/linux/genetlink.h`.

use std::fs::File;
use std::io::{Read, Write};

use os::sys;

/// Identifiers of message types: the controller of families, and an error.
const CONTROLLER: u16 = 16;
const ERROR: u16 = 2;

/// Flag of a request (`NLM_F_REQUEST`).
const REQUEST: u16 = 1;

// Commands and attributes of the controller.
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

// Commands and attributes of the family `netdev`.
const GET_DEVICE: u8 = 1;
const INTERFACE: u16 = 1;
const XDP_FEATURES: u16 = 3;

/// Feature bit of an interface that sends redirected frames (`NETDEV_XDP_ACT_NDO_XMIT`).
const SENDS_REDIRECTS: u64 = 1 << 2;

/// Bytes of the headers before the attributes of a message.
const HEADERS: usize = 20;

/// Bytes before the value of an attribute.
const ATTRIBUTE_HEADER: usize = 4;

/// Queries about the interfaces of a network namespace.
pub(super) struct DriverFeatures {
    socket: File,
    /// Identifier of the messages of the family `netdev`.
    family: u16,
}

impl DriverFeatures {
    /// Prepares queries in the namespace of the calling thread; `None` if the kernel does not
    /// support them.
    pub(super) fn open() -> Option<Self> {
        let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC).ok()?;
        let mut socket = File::from(socket);
        let family = ask(&mut socket, CONTROLLER, GET_FAMILY, FAMILY_NAME, b"netdev\0")?;
        let family = u16::from_ne_bytes(attribute(&family, FAMILY_ID)?.try_into().ok()?);
        Some(DriverFeatures { socket, family })
    }

    /// Whether the interface with this index now sends frames that programs redirect to it; `None`
    /// if there is no such interface.
    pub(super) fn sends_redirects(&mut self, interface: u32) -> Option<bool> {
        let number = interface.to_ne_bytes();
        let device = ask(&mut self.socket, self.family, GET_DEVICE, INTERFACE, &number)?;
        let features = u64::from_ne_bytes(attribute(&device, XDP_FEATURES)?.try_into().ok()?);
        Some(features & SENDS_REDIRECTS != 0)
    }
}

/// Sends a request with one attribute, and returns the attributes of the reply.
fn ask(socket: &mut File, kind: u16, command: u8, key: u16, value: &[u8]) -> Option<Vec<u8>> {
    let length = ATTRIBUTE_HEADER + value.len();
    let mut message = Vec::new();
    message.extend(((HEADERS + length.next_multiple_of(4)) as u32).to_ne_bytes());
    message.extend([kind, REQUEST].iter().flat_map(|half| half.to_ne_bytes()));
    // Sequence number and port of the sender, which the kernel sets, and the version.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend([length as u16, key].iter().flat_map(|half| half.to_ne_bytes()));
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
    socket.write_all(&message).ok()?;
    let mut reply = vec![0; 1 << 14];
    let length = socket.read(&mut reply).ok()?;
    reply.truncate(length);
    let kind = u16::from_ne_bytes(reply.get(4..6)?.try_into().ok()?);
    (kind != ERROR).then(|| reply.split_off(HEADERS.min(length)))
}

/// Returns the value of an attribute.
fn attribute(mut attributes: &[u8], key: u16) -> Option<&[u8]> {
    loop {
        let half =
            |at: usize| Some(u16::from_ne_bytes([*attributes.get(at)?, *attributes.get(at + 1)?]));
        let (length, kind) = (usize::from(half(0)?), half(2)?);
        if kind == key {
            return attributes.get(ATTRIBUTE_HEADER..length);
        }
        attributes = attributes.get(length.max(ATTRIBUTE_HEADER).next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_runs_no_programs_and_sends_no_redirected_frames() {
        let Some(mut features) = DriverFeatures::open() else {
            eprintln!("skipped; need: Linux 6.3");
            return;
        };
        assert_eq!(features.sends_redirects(1), Some(false));
        assert_eq!(features.sends_redirects(u32::MAX >> 1), None, "there is no such interface");
    }

    #[test]
    fn an_attribute_is_found_after_others_and_damaged_ones_end_the_search() {
        let attributes = [&[5, 0, 1, 0, 9, 0, 0, 0][..], &[6, 0, 2, 0, 1, 2, 0, 0]].concat();
        assert_eq!(attribute(&attributes, 2), Some(&[1, 2][..]));
        assert_eq!(attribute(&attributes, 1), Some(&[9][..]));
        for length in 0..14 {
            assert_eq!(attribute(&attributes[..length], 2), None, "{length}");
        }
        assert_eq!(attribute(&[0; 8], 2), None);
    }
}
