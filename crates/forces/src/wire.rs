//! ForCES messages: bytes to messages and back (RFC 5810, RFC 7391).
//!
//! A message is a header of 24 octets and TLVs within TLVs. What stands in FULLDATA and SPARSEDATA
//! only a data type can tell, so a message keeps it as octets, and [`data`] reads and writes those.
//! Reading is lenient where the standard says that something is ignored (reserved bits, padding,
//! TLVs of vendors), takes both places that the RFCs give the selector flags, and is strict where a
//! guess would change a meaning. Whatever it reads it can write, memory is bounded by a small
//! multiple of the message's length, and nothing nests deeper than [`PATH_DEPTH_MAX`].

/// Values as FULLDATA and SPARSEDATA.
pub mod data;
/// Bytes to messages.
mod decode;
/// Messages to bytes.
mod encode;
/// What is wrong with bytes, or cannot be said.
mod fault;
/// The 24 octets in front of each message, and the messages in a stream.
mod header;
/// Messages and what is in them.
mod message;
/// How an operation ended.
mod outcome;
/// Types and lengths.
mod tlv;

pub use decode::decode;
pub use encode::{TooLong, encode, message_octets, path_octets};
pub use fault::{WireFault, WireWhy};
pub use header::{Ack, Flags, Framing, Header, Id, Mode, Phase, frame_octets};
pub use message::{
    Body, Content, Data, Message, MessageKind, Operation, OperationKind, PathData, Redirect,
    Select, Selector, SetupResult, TeardownReason,
};
pub use outcome::{Outcome, ResultCode};
pub use tlv::Tlv;

/// Octets of the header.
pub const HEADER_OCTETS: usize = 24;
/// Most octets of a message: its length counts words in 16 bits.
pub const MESSAGE_OCTETS_MAX: usize = 65_535 * 4;
/// Most octets of a TLV, its own four among them.
pub const TLV_OCTETS_MAX: usize = 65_535;
/// Deepest nesting of PATH-DATA within PATH-DATA.
pub const PATH_DEPTH_MAX: usize = 32;
/// The version of the protocol that is spoken.
pub const VERSION: u8 = 1;

#[cfg(test)]
mod tests;
