//! Reader and writer for the capture file formats pcap and pcapng.
//!
//! Source: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
//!
//! - The decoder processes a file item by item in a window that the caller advances. Memory use is
//!   limited to the largest permitted item, for a file of any size.
//! - Every length in a file is checked against a limit before use.
//! - Invalid data is an error with a byte offset. Unusual but usable data is a warning.

use crate::time::Nanos;

pub mod truncation;
mod classic;
pub mod fault;
mod link_type;
mod ng;
mod option;
pub mod resolution;
pub mod write;

use fault::{CaptureAnomaly, CaptureFaultKind, Fault, Warnings};
use resolution::Resolution;

/// Maximum number of captured bytes of a frame; other programs have the same limit.
pub const CAPTURED_BYTES_MAX: usize = 262_144;

/// Maximum size in bytes of a block that is read as a whole. Skipped blocks may be longer.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Maximum number of interfaces in a section.
pub const INTERFACES_MAX: usize = 1024;

/// Maximum number of stored bytes of a name.
pub const NAME_BYTES_MAX: usize = 256;

/// Bytes of the header of a pcap file.
const CLASSIC_HEADER_BYTES: usize = 24;

/// Byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endianness {
    /// Little-endian.
    Little,
    /// Big-endian.
    Big,
}

/// The next action that a decoder requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecoderAction {
    /// Extend the window to at least this many bytes, at most [`BLOCK_BYTES_MAX`].
    More(usize),
    /// The first bytes of the window are an item of this length: pass them to [`Decoder::take`].
    Item(usize),
    /// Skip this many bytes and report that with [`Decoder::passed`].
    Skip(u64),
}

/// An item of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// Start of a file or section. Interface numbers restart at 0.
    Section,
    /// Description of an interface; see [`Decoder::interfaces`].
    Interface(u32),
    /// A frame.
    Frame(Captured<'a>),
    /// Statistics of an interface.
    Statistics(Statistics),
    /// A block without information about frames.
    Other,
}

/// A frame in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured<'a> {
    /// Offset of its record or block in the file.
    pub offset: u64,
    /// Number of its interface.
    pub interface: u32,
    /// Time since 1970; none if the file has none or the value is out of range.
    pub at: Option<Nanos>,
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Offset of the captured bytes in the file.
    pub bytes_offset: u64,
    /// Original length.
    pub original_bytes: u32,
    /// Number of frames lost since the previous one, if the file contains it.
    pub dropped: Option<u64>,
    /// Direction, if the file contains it.
    pub direction: Option<Direction>,
    /// Bytes of FCS at the end of the frame.
    pub fcs_bytes: u8,
    options: option::Options<'a>,
}

/// Direction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// A capture interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name, at most [`NAME_BYTES_MAX`] bytes; empty if the file has none.
    pub name: String,
    /// Hardware address, if the file contains it.
    pub mac: Option<[u8; 6]>,
    /// Snap length in bytes; 0 for no limit.
    pub snap_bytes: u32,
    /// Time stamp resolution.
    pub resolution: Resolution,
    /// Seconds to add to its time stamps.
    pub offset_seconds: i64,
    /// Bytes of FCS at the end of its frames.
    pub fcs_bytes: u8,
}

/// Statistics of an interface, as far as the file contains them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of the interface.
    pub interface: u32,
    /// Time of the statistics, since 1970.
    pub at: Option<Nanos>,
    /// Start of the capture.
    pub started_at: Option<Nanos>,
    /// End of the capture.
    pub ended_at: Option<Nanos>,
    /// Frames that the interface received.
    pub received: Option<u64>,
    /// Frames that the interface dropped for lack of resources.
    pub dropped: Option<u64>,
    /// Frames that passed the filter.
    pub accepted: Option<u64>,
    /// Frames that the operating system dropped.
    pub dropped_by_system: Option<u64>,
    /// Frames delivered to the user.
    pub delivered: Option<u64>,
}

/// Incremental decoder of a capture file.
#[derive(Debug)]
pub struct Decoder {
    format: Format,
    /// Offset of the window in the file.
    offset: u64,
    latest: Option<Nanos>,
    warnings: Warnings,
}

#[derive(Debug)]
enum Format {
    Unknown,
    Classic(classic::Classic),
    Ng(ng::Ng),
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// Creates a decoder for the start of a file.
    pub fn new() -> Self {
        let warnings = Warnings::default();
        Decoder { format: Format::Unknown, offset: 0, latest: None, warnings }
    }

    /// Returns the offset of the window in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the interfaces of this section.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.format {
            Format::Unknown => &[],
            Format::Classic(classic) => std::slice::from_ref(&classic.interface),
            Format::Ng(ng) => &ng.interfaces,
        }
    }

    /// Returns the warnings so far.
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// Returns the next action for a window that starts at [`Decoder::offset`].
    #[inline]
    pub fn next(&self, window: &[u8]) -> Result<DecoderAction, Fault> {
        let next = match &self.format {
            Format::Unknown => match window.first_chunk() {
                None => Ok(DecoderAction::More(4)),
                Some(magic) => match identify(*magic)? {
                    Magic::Classic(..) => Ok(whole(window, CLASSIC_HEADER_BYTES)),
                    Magic::Ng => ng::Ng::new().next(window),
                },
            },
            Format::Classic(classic) => classic.next(window),
            Format::Ng(ng) => ng.next(window),
        };
        next.map_err(|fault: Fault| fault.shifted(self.offset))
    }

    /// Decodes the item that [`Decoder::next`] announced, and moves the window start after it.
    #[inline]
    pub fn take<'a>(&mut self, item: &'a [u8]) -> Result<Event<'a>, Fault> {
        let at = self.offset;
        if matches!(self.format, Format::Unknown) {
            let magic = item.first_chunk().ok_or(Fault::new(at, CaptureFaultKind::Empty))?;
            self.format = match identify(*magic)? {
                Magic::Classic(order, unit) => {
                    Format::Classic(classic::Classic::new(item, order, unit)?)
                }
                Magic::Ng => Format::Ng(ng::Ng::new()),
            };
            if matches!(self.format, Format::Classic(_)) {
                self.offset += item.len() as u64;
                return Ok(Event::Section);
            }
        }
        let warnings = &mut self.warnings;
        let event = match &mut self.format {
            Format::Unknown => unreachable!("the format was identified above"),
            Format::Classic(classic) => classic.take(item, at, warnings),
            Format::Ng(ng) => ng.take(item, at, warnings),
        };
        let event = event.map_err(|fault| fault.shifted(at))?;
        self.offset += item.len() as u64;
        if let Event::Frame(Captured { at: Some(stamp), .. }) = event {
            if self.latest.is_some_and(|latest| stamp < latest) {
                self.warnings.note(CaptureAnomaly::TimeBackwards, at);
            }
            self.latest = Some(stamp);
        }
        Ok(event)
    }

    /// Records that the caller skipped bytes for [`DecoderAction::Skip`].
    pub fn passed(&mut self, bytes: u64) {
        self.offset += bytes;
        if let Format::Ng(ng) = &mut self.format {
            ng.passed(bytes);
        }
    }

    /// Checks the end of the file after [`Decoder::next`] requested `need` bytes and only `have`
    /// are left. The end is valid between two items.
    pub fn ended(&self, need: u64, have: u64) -> Result<(), Fault> {
        let is_between = match &self.format {
            Format::Unknown => false,
            Format::Classic(_) => true,
            Format::Ng(ng) => ng.is_between(),
        };
        match (have, is_between) {
            (0, true) => Ok(()),
            (0, false) if self.offset == 0 => Err(Fault::new(0, CaptureFaultKind::Empty)),
            _ => Err(Fault::new(self.offset, CaptureFaultKind::Truncated { need, have })),
        }
    }
}

impl<'a> Captured<'a> {
    /// Returns true if the whole frame was captured.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() as u64 >= u64::from(self.original_bytes)
    }

    /// Returns the comments of the frame.
    pub fn comments(&self) -> impl Iterator<Item = &'a [u8]> {
        self.options.iter().filter(|(code, _)| *code == option::COMMENT).map(|(_, text)| text)
    }
}

impl Endianness {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = *bytes[at..].first_chunk().expect("the length was checked before");
        if self == Endianness::Little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = *bytes[at..].first_chunk().expect("the length was checked before");
        if self == Endianness::Little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let bytes = *bytes[at..].first_chunk().expect("the length was checked before");
        if self == Endianness::Little {
            u64::from_le_bytes(bytes)
        } else {
            u64::from_be_bytes(bytes)
        }
    }

    /// Reads a time stamp in two halves. The more significant half comes first in either byte
    /// order.
    fn halves(self, bytes: &[u8], at: usize) -> u64 {
        u64::from(self.u32(bytes, at)) << 32 | u64::from(self.u32(bytes, at + 4))
    }
}

/// Format and byte order from the first bytes of a file.
enum Magic {
    Classic(Endianness, Resolution),
    Ng,
}

fn identify(magic: [u8; 4]) -> Result<Magic, Fault> {
    let (micro, nano) = (Resolution::MICRO, Resolution::NANO);
    Ok(match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => Magic::Classic(Endianness::Little, micro),
        [0xa1, 0xb2, 0xc3, 0xd4] => Magic::Classic(Endianness::Big, micro),
        [0x4d, 0x3c, 0xb2, 0xa1] => Magic::Classic(Endianness::Little, nano),
        [0xa1, 0xb2, 0x3c, 0x4d] => Magic::Classic(Endianness::Big, nano),
        [0x0a, 0x0d, 0x0d, 0x0a] => Magic::Ng,
        [0x1f, 0x8b, ..] => return Err(Fault::new(0, CaptureFaultKind::Compressed("gzip"))),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            return Err(Fault::new(0, CaptureFaultKind::Compressed("zstd")));
        }
        [0x04, 0x22, 0x4d, 0x18] => return Err(Fault::new(0, CaptureFaultKind::Compressed("lz4"))),
        other => return Err(Fault::new(0, CaptureFaultKind::NotACapture(other))),
    })
}

/// Returns the action for an item of this length: take it if the window contains it.
#[inline]
fn whole(window: &[u8], bytes: usize) -> DecoderAction {
    if window.len() < bytes { DecoderAction::More(bytes) } else { DecoderAction::Item(bytes) }
}
