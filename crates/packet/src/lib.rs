//! Bytes to headers and back: what is in a frame, and how to build one.
//!
//! Modules are listed in the order in which a frame meets them. Nothing here does I/O, reads a
//! clock, or is unsafe; malformed bytes give `error::Malformed`, never a panic.

/// A frame on a link, and a bounded batch of them.
pub mod frame;
/// Frames copied side by side.
pub mod copies;
/// A moment, and who took it.
pub mod time;
/// What is wrong with some bytes, and where.
pub mod error;
/// One file per header: its bits, a view of them, and their meaning.
pub mod header;
/// The fields by which a frame can be matched and changed.
pub mod field;
/// The layers of a frame, found once.
pub mod parse;
/// A frame from its headers, with lengths and checksums that are right.
pub mod build;
/// Merged frames, segmented into the frames that they stand for.
pub mod segment;
/// The sums that guard headers and payloads, whole and incremental.
pub mod checksum;
/// Which frames a capture keeps.
pub mod filter;
/// Frames and bytes by protocol and size.
pub mod traffic;
/// Any bytes as one line of text.
pub mod show;
/// Capture files: frames and what is known of them as pcap and pcapng, and back.
pub mod capture;
