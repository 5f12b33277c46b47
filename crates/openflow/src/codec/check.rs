//! Helpers of the codec's tests: encode and decode messages of any version.

#![allow(clippy::unwrap_used, reason = "for tests")]

use super::MessagePart;
use super::bytes::Reader;
use super::message::{append, read_body};
use crate::header::HEADER_BYTES;
use crate::model::message::Message;
use crate::version::{ErrorCode, MessageKind, Version};

/// Transaction ID of every message in the tests.
const XID: u32 = 7;

/// Encodes a message and returns the bytes after the header.
pub(super) fn body_of(version: Version, message: &Message) -> Result<Vec<u8>, MessagePart> {
    let mut bytes = Vec::new();
    append(version, XID, message, &mut bytes, 0)?;
    Ok(bytes[HEADER_BYTES..].to_vec())
}

/// Decodes a body of this message type, or returns the error to reply with.
pub(super) fn read(version: Version, kind: MessageKind, body: &[u8]) -> Result<Message, ErrorCode> {
    let bytes = [&[0; HEADER_BYTES], body].concat();
    let mut reader = Reader::new(&bytes, HEADER_BYTES);
    let message = read_body(version, XID, kind, &mut reader)
        .map_err(|fault| fault.answer.nearest(version))?;
    reader.finish().map_err(|_| ErrorCode::RequestBadLength)?;
    Ok(message)
}

/// Checks that the message encodes to these bytes after its header, and that they decode to it.
pub(super) fn check(version: Version, message: &Message, hex: &str) {
    let body = body_of(version, message).unwrap();
    assert_eq!(shown(&body), hex.split_whitespace().collect::<String>(), "{version} {message}");
    assert_eq!(read(version, message.kind(), &body).as_ref(), Ok(message), "{version}");
}

/// Converts hexadecimal digits to bytes.
pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Returns the error for these invalid bytes after the header.
pub(super) fn refused(version: Version, kind: MessageKind, hex: &str) -> ErrorCode {
    read(version, kind, &bytes(hex)).expect_err(hex)
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
