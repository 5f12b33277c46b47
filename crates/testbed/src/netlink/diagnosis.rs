//! Lists the sockets of a namespace (`sock_diag(7)`).

use std::io;

use netlink_sys::Socket;

use super::Message;
use crate::{LabError, Namespace};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const FLAGS_REQUEST_DUMP: u16 = 0x301;
const HEADER_BYTES: usize = 16;

/// Opens a netlink socket for queries about a namespace's sockets.
pub(crate) fn socket(namespace: &Namespace) -> Result<Socket, LabError> {
    namespace.run(|| super::socket(netlink_sys::protocols::NETLINK_SOCK_DIAG))?
}

/// Sends a request, given without its header, and returns what `parse` finds in each reply.
pub(crate) fn list<T>(
    socket: &Socket,
    what: &'static str,
    request: &[u8],
    parse: impl Fn(&Message<'_>) -> Option<T>,
) -> Result<Vec<T>, LabError> {
    super::send(socket, what, &with_header(request))?;
    let mut found = Vec::new();
    loop {
        let bytes = super::receive(socket, what)?;
        for message in super::messages(&bytes) {
            if message.is_end() {
                return Ok(found);
            }
            if message.is_error() {
                let error = io::Error::from_raw_os_error(-message.code());
                return Err(LabError::system(what, "sock_diag", error));
            }
            found.extend(parse(&message));
        }
    }
}

fn with_header(request: &[u8]) -> Vec<u8> {
    let length = HEADER_BYTES + request.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(FLAGS_REQUEST_DUMP.to_ne_bytes());
    bytes.extend([1_u32.to_ne_bytes(), [0; 4]].concat());
    bytes.extend(request);
    bytes
}
