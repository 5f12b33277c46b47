//! The eight-byte header of every OpenFlow message.
//!
//! ```text
//!  0         1         2         3         4                            8
//! +---------+---------+-------------------+----------------------------+
//! | version |  type   |      length       |            xid             |
//! +---------+---------+-------------------+----------------------------+
//! ```
//! Source: OpenFlow 1.0.0 section 5.1 (`ofp_header`), the same in every version. The fields are
//! unchecked wire values, except for the length; the codec validates them.

use packet::error::{Malformed, MalformedReason};

/// Bytes of the header, and the smallest value of its length field.
pub const HEADER_BYTES: usize = 8;

/// Maximum bytes of a message, header included: the maximum of the 16-bit length field.
pub const MESSAGE_BYTES_MAX: usize = 65_535;

/// Transaction ID. A reply carries the one of its request.
pub type Xid = u32;

/// The header's fields as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Version number: 1 for 1.0, 4 for 1.3.
    pub version: u8,
    /// Type code; its meaning depends on the version.
    pub kind: u8,
    /// Bytes of the message, header included.
    pub length: u16,
    /// Transaction ID.
    pub xid: Xid,
}

impl Header {
    /// Parses the header at the start of `bytes`; its length is at least [`HEADER_BYTES`].
    pub fn parse(bytes: &[u8]) -> Result<Header, Malformed> {
        let Some(&[version, kind, l0, l1, x0, x1, x2, x3]) = bytes.first_chunk::<HEADER_BYTES>()
        else {
            return Err(Malformed::truncated(0, HEADER_BYTES, bytes.len()));
        };
        let length = u16::from_be_bytes([l0, l1]);
        if usize::from(length) < HEADER_BYTES {
            return Err(Malformed { at: 2, why: MalformedReason::BadLength(length.into()) });
        }
        Ok(Header { version, kind, length, xid: u32::from_be_bytes([x0, x1, x2, x3]) })
    }

    /// Returns the header's bytes.
    pub fn bytes(self) -> [u8; HEADER_BYTES] {
        let [l0, l1] = self.length.to_be_bytes();
        let [x0, x1, x2, x3] = self.xid.to_be_bytes();
        [self.version, self.kind, l0, l1, x0, x1, x2, x3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_offsets_of_the_specification() {
        let bytes = [1, 14, 0, 80, 0xde, 0xad, 0xbe, 0xef];
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header, Header { version: 1, kind: 14, length: 80, xid: 0xdead_beef });
        assert_eq!(header.bytes(), bytes);
    }

    #[test]
    fn short_and_inconsistent_headers_are_rejected() {
        assert_eq!(Header::parse(&[1; 7]), Err(Malformed::truncated(0, 8, 7)));
        let fault = Header::parse(&[1, 0, 0, 7, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(fault, Malformed { at: 2, why: MalformedReason::BadLength(7) });
    }
}
