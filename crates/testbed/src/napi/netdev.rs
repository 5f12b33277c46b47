//! Queries the kernel for the NAPI threads of an interface.
//!
//! Source: the generic netlink family "netdev" (the kernel's `netdev.yaml`, since Linux 6.8), found
//! by `genetlink`'s own "get family" request.
//!
//! Invariant: an invalid reply counts as no reply.

use crate::netlink::{self, Message};
use crate::{LabError, Namespace};
use netlink_sys::Socket;

const WHAT: &str = "request the NAPI threads of an interface";
const CONTROL_FAMILY: u16 = 0x10;
const CONTROL_GET_FAMILY: u8 = 3;
const CONTROL_FAMILY_ID: u16 = 1;
const CONTROL_FAMILY_NAME: u16 = 2;
const NAPI_GET: u8 = 11;
const NAPI_INTERFACE: u16 = 1;
const NAPI_THREAD: u16 = 4;
const FLAG_REQUEST: u16 = 0x1;
const FLAG_ACKNOWLEDGE: u16 = 0x4;
const FLAG_DUMP: u16 = 0x300;

/// Returns the process numbers of the threads; none if the kernel does not support the query.
pub(super) fn threads(namespace: &Namespace, interface: u32) -> Result<Option<Vec<u32>>, LabError> {
    let socket = namespace.run(|| netlink::socket(netlink_sys::protocols::NETLINK_GENERIC))??;
    let Some(family) = family(&socket)? else {
        return Ok(None);
    };
    let body = attribute(NAPI_INTERFACE, &interface.to_ne_bytes());
    let answers = exchange(&socket, request(family, FLAG_DUMP, NAPI_GET, &body), |message| {
        find(message, NAPI_THREAD).and_then(|value| Some(u32::from_ne_bytes(*value.first_chunk()?)))
    })?;
    Ok(answers)
}

/// Returns this kernel's number of the family.
fn family(socket: &Socket) -> Result<Option<u16>, LabError> {
    let body = attribute(CONTROL_FAMILY_NAME, b"netdev\0");
    let request = request(CONTROL_FAMILY, FLAG_ACKNOWLEDGE, CONTROL_GET_FAMILY, &body);
    let answers = exchange(socket, request, |message| {
        let value = find(message, CONTROL_FAMILY_ID)?;
        Some(u16::from_ne_bytes(*value.first_chunk()?))
    })?;
    Ok(answers.and_then(|found| found.first().copied()))
}

/// Sends a request and collects the values that `read` finds in the replies; none if the kernel
/// rejects it.
fn exchange<T>(
    socket: &Socket,
    request: Vec<u8>,
    read: impl Fn(&Message<'_>) -> Option<T>,
) -> Result<Option<Vec<T>>, LabError> {
    netlink::send(socket, WHAT, &request)?;
    let mut found = Vec::new();
    loop {
        let bytes = netlink::receive(socket, WHAT)?;
        for message in netlink::messages(&bytes) {
            if message.is_end() || (message.is_error() && message.code() == 0) {
                return Ok(Some(found));
            }
            if message.is_error() {
                return Ok(None);
            }
            found.extend(read(&message));
        }
    }
}

/// Builds a message: a netlink header of 16 bytes, a generic header of 4, attributes.
fn request(family: u16, flags: u16, command: u8, body: &[u8]) -> Vec<u8> {
    let length = (20 + body.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(family.to_ne_bytes());
    bytes.extend((FLAG_REQUEST | flags).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(body);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Finds an attribute of a reply, which begins with the generic header.
fn find<'a>(message: &Message<'a>, wanted: u16) -> Option<&'a [u8]> {
    let mut attributes = netlink::attributes(message.body.get(4..)?);
    attributes.find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}
