//! Parsing and building of frames and protocol headers.
//!
//! Modules are listed in the order in which a frame passes through them. The crate does no I/O, reads no clock and
//! has no unsafe code. Malformed bytes return `error::Malformed` and never panic.

/// Frames and bounded batches of frames.
pub mod frame;
/// Compact storage for copies of frames.
pub mod copies;
/// Times and time stamps with their clock.
pub mod time;
/// Errors of decoders: offset and reason.
pub mod error;
/// Protocol headers, one file per header.
pub mod header;
/// Match and set fields of OpenFlow.
pub mod field;
/// Layers of a frame, located in one pass.
pub mod parse;
/// Builds frames from headers, with correct lengths and checksums.
pub mod build;
/// Segmentation of merged frames.
pub mod segment;
/// Checksums of headers and payloads: complete and incremental computation.
pub mod checksum;
/// Capture filter.
pub mod filter;
/// Traffic counters by protocol and size.
pub mod traffic;
/// One-line text form of a frame.
pub mod show;
/// Reader and writer for the capture file formats pcap and pcapng.
pub mod capture;
