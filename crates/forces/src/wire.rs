//! Encodes and decodes ForCES messages (RFC 5810, RFC 7391).
//!
//! - A message is a header of 24 octets and nested TLVs.
//! - FULLDATA and SPARSEDATA need a data type to be decoded. A message has them as octets; [`data`]
//!   encodes and decodes those.
//! - Decoding ignores reserved bits, padding and vendor TLVs, as the standard requires. It accepts
//!   both positions that the RFCs give the selector flags. Otherwise it is strict.
//! - Every decoded message can be encoded.
//! - A small multiple of the message's length bounds memory. PATH-DATA nests at most
//!   [`PATH_DEPTH_MAX`] deep.

pub mod data;
mod decode;
mod encode;
mod fault;
mod header;
mod message;
mod outcome;
mod tlv;

pub use decode::decode;
pub use encode::{TooLong, encode, message_octets, path_octets};
pub use fault::{WireFault, WireFaultKind};
pub use header::{Ack, Flags, Framing, Header, Id, Mode, Phase, frame_octets};
pub use message::{
    Body, Content, Data, Message, MessageKind, Operation, OperationKind, PathData, Redirect,
    Select, Selector, SetupResult, TeardownReason,
};
pub use outcome::{Outcome, ResultCode};
pub use tlv::Tlv;

/// Octets of the header.
pub const HEADER_OCTETS: usize = 24;
/// Maximum octets of a message: a 16-bit number of four-octet words.
pub const MESSAGE_OCTETS_MAX: usize = 65_535 * 4;
/// Maximum octets of a TLV, including its header of four.
pub const TLV_OCTETS_MAX: usize = 65_535;
/// Maximum nesting depth of PATH-DATA.
pub const PATH_DEPTH_MAX: usize = 32;
/// Protocol version.
pub const VERSION: u8 = 1;

#[cfg(test)]
mod tests;
