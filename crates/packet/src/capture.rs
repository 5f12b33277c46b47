//! Capture files: the bytes of pcap and pcapng as frames and what is known of them, and back.
//!
//! Formats are those of draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. A file is decoded item
//! by item out of a window that its owner moves along, so that a file of any size takes no more
//! memory than its largest item may have; no length in a file is believed before it was held against
//! a limit. Whatever cannot be is an error that names its byte, and what is only odd a warning.

use crate::time::Nanos;

/// What was cut off frames.
pub mod cut;
/// The older format: a header, and records.
mod classic;
/// What is wrong with a capture file, and what is odd.
pub mod fault;
/// Links that are not Ethernet, by name.
mod link_type;
/// The newer format: blocks.
mod ng;
/// What may follow the fixed part of a block.
mod option;
/// Units of time stamps.
pub mod resolution;
/// Capture files as bytes.
pub mod write;

use fault::{Fault, Odd, Warnings, Why};
use resolution::Resolution;

/// Captured bytes of one frame: what other programs take at most, too.
pub const CAPTURED_BYTES_MAX: usize = 262_144;

/// Bytes of a block that has to be looked at whole. Blocks that are passed over may be longer.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Interfaces in one section.
pub const INTERFACES_MAX: usize = 1024;

/// Bytes of a name that are kept.
pub const NAME_BYTES_MAX: usize = 256;

/// Bytes of the header of a pcap file.
const CLASSIC_HEADER_BYTES: usize = 24;

/// The order of bytes in a file's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Least significant first.
    Little,
    /// Most significant first.
    Big,
}

/// What a decoder wants to have done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The window must have at least so many bytes, at most [`BLOCK_BYTES_MAX`].
    More(usize),
    /// The first so many bytes of the window are an item: hand them to [`Decoder::take`].
    Item(usize),
    /// So many bytes say nothing: pass them over and tell [`Decoder::passed`].
    Skip(u64),
}

/// An item of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A file or a section of one begins; interfaces are counted from 0 again.
    Section,
    /// This interface is known from now on; see [`Decoder::interfaces`].
    Interface(u32),
    /// A frame.
    Frame(Captured<'a>),
    /// What was counted at an interface.
    Statistics(Statistics),
    /// A block that says nothing about frames.
    Other,
}

/// A frame in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured<'a> {
    /// Where its record or block begins, in bytes from the start of the file.
    pub offset: u64,
    /// Where it was captured.
    pub interface: u32,
    /// When, since 1970; none where the file does not say, or no such moment exists.
    pub at: Option<Nanos>,
    /// As much of it as was captured.
    pub bytes: &'a [u8],
    /// Where these bytes lie, from the start of the file.
    pub bytes_offset: u64,
    /// How long it was.
    pub original_bytes: u32,
    /// Frames lost between this one and the one before, where the file says it.
    pub dropped: Option<u64>,
    /// Which way it went, where the file says it.
    pub direction: Option<Direction>,
    /// Bytes of frame check sequence at its end.
    pub fcs_bytes: u8,
    options: option::Options<'a>,
}

/// Which way a frame went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It was received.
    Inbound,
    /// It was sent.
    Outbound,
}

/// Where frames were captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, at most [`NAME_BYTES_MAX`] bytes; empty where the file does not say.
    pub name: String,
    /// Its hardware address, where the file says it.
    pub mac: Option<[u8; 6]>,
    /// Frames were cut to so many bytes; 0 for no limit.
    pub snap_bytes: u32,
    /// The unit of its time stamps.
    pub resolution: Resolution,
    /// Seconds to be added to its time stamps.
    pub offset_seconds: i64,
    /// Bytes of frame check sequence that its frames end with.
    pub fcs_bytes: u8,
}

/// What was counted at an interface, as far as the file says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The interface.
    pub interface: u32,
    /// When this was so, since 1970.
    pub at: Option<Nanos>,
    /// When capturing began.
    pub started_at: Option<Nanos>,
    /// When it ended.
    pub ended_at: Option<Nanos>,
    /// Frames that the interface received.
    pub received: Option<u64>,
    /// Frames that the interface lost for lack of room.
    pub dropped: Option<u64>,
    /// Frames that passed the filter.
    pub accepted: Option<u64>,
    /// Frames that the operating system lost.
    pub dropped_by_system: Option<u64>,
    /// Frames that reached the user.
    pub delivered: Option<u64>,
}

/// Takes a file to pieces.
#[derive(Debug)]
pub struct Decoder {
    format: Format,
    /// Where the window begins, in bytes from the start of the file.
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
    /// A decoder at the start of a file.
    pub fn new() -> Self {
        let warnings = Warnings::default();
        Decoder { format: Format::Unknown, offset: 0, latest: None, warnings }
    }

    /// Where the window begins, in bytes from the start of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The interfaces of this section.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.format {
            Format::Unknown => &[],
            Format::Classic(classic) => std::slice::from_ref(&classic.interface),
            Format::Ng(ng) => &ng.interfaces,
        }
    }

    /// What was odd so far.
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// What to do with a window that begins at [`Decoder::offset`].
    #[inline]
    pub fn next(&self, window: &[u8]) -> Result<Next, Fault> {
        let next = match &self.format {
            Format::Unknown => match window.first_chunk() {
                None => Ok(Next::More(4)),
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

    /// The item that [`Decoder::next`] said `item` is; the window begins after it from then on.
    #[inline]
    pub fn take<'a>(&mut self, item: &'a [u8]) -> Result<Event<'a>, Fault> {
        let at = self.offset;
        if matches!(self.format, Format::Unknown) {
            let magic = item.first_chunk().ok_or(Fault::new(at, Why::Empty))?;
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
            Format::Unknown => unreachable!("it was identified above"),
            Format::Classic(classic) => classic.take(item, at, warnings),
            Format::Ng(ng) => ng.take(item, at, warnings),
        };
        let event = event.map_err(|fault| fault.shifted(at))?;
        self.offset += item.len() as u64;
        if let Event::Frame(Captured { at: Some(stamp), .. }) = event {
            if self.latest.is_some_and(|latest| stamp < latest) {
                self.warnings.note(Odd::TimeBackwards, at);
            }
            self.latest = Some(stamp);
        }
        Ok(event)
    }

    /// So many bytes that [`Next::Skip`] named were passed over.
    pub fn passed(&mut self, bytes: u64) {
        self.offset += bytes;
        if let Format::Ng(ng) = &mut self.format {
            ng.passed(bytes);
        }
    }

    /// The file has ended although [`Decoder::next`] asked for `need` bytes and only `have` are left:
    /// nothing is wrong if it did so between two items.
    pub fn ended(&self, need: u64, have: u64) -> Result<(), Fault> {
        let is_between = match &self.format {
            Format::Unknown => false,
            Format::Classic(_) => true,
            Format::Ng(ng) => ng.is_between(),
        };
        match (have, is_between) {
            (0, true) => Ok(()),
            (0, false) if self.offset == 0 => Err(Fault::new(0, Why::Empty)),
            _ => Err(Fault::new(self.offset, Why::Truncated { need, have })),
        }
    }
}

impl<'a> Captured<'a> {
    /// Whether all of it was captured.
    pub fn is_whole(&self) -> bool {
        self.bytes.len() as u64 >= u64::from(self.original_bytes)
    }

    /// What somebody wrote about it.
    pub fn comments(&self) -> impl Iterator<Item = &'a [u8]> {
        self.options.iter().filter(|(code, _)| *code == option::COMMENT).map(|(_, text)| text)
    }
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = *bytes[at..].first_chunk().expect("the length was checked");
        if self == Order::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = *bytes[at..].first_chunk().expect("the length was checked");
        if self == Order::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let bytes = *bytes[at..].first_chunk().expect("the length was checked");
        if self == Order::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
    }

    /// A time stamp in two halves, of which the more significant comes first in either order.
    fn halves(self, bytes: &[u8], at: usize) -> u64 {
        u64::from(self.u32(bytes, at)) << 32 | u64::from(self.u32(bytes, at + 4))
    }
}

/// What a file's first bytes say.
enum Magic {
    Classic(Order, Resolution),
    Ng,
}

fn identify(magic: [u8; 4]) -> Result<Magic, Fault> {
    let (micro, nano) = (Resolution::MICRO, Resolution::NANO);
    Ok(match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => Magic::Classic(Order::Little, micro),
        [0xa1, 0xb2, 0xc3, 0xd4] => Magic::Classic(Order::Big, micro),
        [0x4d, 0x3c, 0xb2, 0xa1] => Magic::Classic(Order::Little, nano),
        [0xa1, 0xb2, 0x3c, 0x4d] => Magic::Classic(Order::Big, nano),
        [0x0a, 0x0d, 0x0d, 0x0a] => Magic::Ng,
        [0x1f, 0x8b, ..] => return Err(Fault::new(0, Why::Compressed("gzip"))),
        [0x28, 0xb5, 0x2f, 0xfd] => return Err(Fault::new(0, Why::Compressed("zstd"))),
        [0x04, 0x22, 0x4d, 0x18] => return Err(Fault::new(0, Why::Compressed("lz4"))),
        other => return Err(Fault::new(0, Why::NotACapture(other))),
    })
}

/// An item of so many bytes, if they are there.
#[inline]
fn whole(window: &[u8], bytes: usize) -> Next {
    if window.len() < bytes { Next::More(bytes) } else { Next::Item(bytes) }
}
