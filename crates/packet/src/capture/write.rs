//! Writer for capture files: each function appends one item of a file to a buffer.
//!
//! The output contains nanosecond time stamps, original and captured lengths, names, comments and
//! drop counts.

use std::fmt;

use super::ng::{BYTE_ORDER_MAGIC, block, code};
use super::option::{COMMENT, END};
use super::resolution::Resolution;
use super::truncation::Cut;
use super::{CAPTURED_BYTES_MAX, Direction, Endianness, INTERFACES_MAX, Interface, Statistics};
use crate::capture::link_type::ETHERNET;
use crate::time::Nanos;

/// Maximum size of a comment or name in bytes; the length of an option has 16 bits.
pub const TEXT_BYTES_MAX: usize = 65_532;

/// Reason why an item cannot be written. Nothing was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureWriteError {
    /// The time is out of range of the format.
    Time(Nanos),
    /// More bytes than [`CAPTURED_BYTES_MAX`] were captured.
    TooLong(usize),
    /// The interface is not defined.
    NoSuchInterface(u32),
    /// There are more than [`INTERFACES_MAX`] interfaces.
    TooManyInterfaces,
}

/// A frame to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Number of the interface, from 0; ignored in pcap.
    pub interface: u32,
    /// Time since 1970.
    pub at: Nanos,
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Original length.
    pub original_bytes: u32,
    /// Data that only pcapng supports.
    pub notes: FrameNotes<'a>,
}

/// Data of a frame that only pcapng supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameNotes<'a> {
    /// Direction.
    pub direction: Option<Direction>,
    /// Number of frames lost since the previous one.
    pub dropped: Option<u64>,
    /// A comment; at most [`TEXT_BYTES_MAX`] bytes of it are written.
    pub comment: Option<&'a str>,
    /// Bytes removed at the end of the frame.
    pub cut: Option<Cut>,
}

/// Writer for pcap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pcap {
    /// Byte order.
    pub order: Endianness,
    /// Whether time stamps have nanoseconds instead of microseconds.
    pub has_nanos: bool,
    /// Snap length in bytes; [`CAPTURED_BYTES_MAX`] for no truncation.
    pub snap_bytes: u32,
}

/// Writer for pcapng, with the interfaces defined so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PcapNg {
    order: Endianness,
    units: Vec<(Resolution, i64)>,
}

impl Pcap {
    /// Writes the file header.
    pub fn begin(&self, out: &mut Vec<u8>) {
        let order = self.order;
        order.put32(out, if self.has_nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
        order.put16(out, 2);
        order.put16(out, 4);
        order.put32(out, 0);
        order.put32(out, 0);
        order.put32(out, self.snap_bytes);
        order.put32(out, u32::from(ETHERNET));
    }

    /// Writes a frame. Its time must be before 2106; microseconds are rounded down.
    pub fn frame(&self, out: &mut Vec<u8>, frame: &Frame) -> Result<(), CaptureWriteError> {
        check_length(frame.bytes)?;
        let (seconds, nanos) = (frame.at.0 / 1_000_000_000, frame.at.0 % 1_000_000_000);
        let seconds = u32::try_from(seconds).map_err(|_| CaptureWriteError::Time(frame.at))?;
        let fraction = if self.has_nanos { nanos } else { nanos / 1_000 } as u32;
        for word in [seconds, fraction, frame.bytes.len() as u32, frame.original_bytes] {
            self.order.put32(out, word);
        }
        out.extend_from_slice(frame.bytes);
        Ok(())
    }
}

impl PcapNg {
    /// Starts a file with a section header that contains the program name and a comment.
    pub fn begin(
        out: &mut Vec<u8>,
        order: Endianness,
        program: &str,
        comment: Option<&str>,
    ) -> Self {
        /// Code of the option with the program name.
        const SHB_USERAPPL: u16 = 4;
        let file = PcapNg { order, units: Vec::new() };
        file.block(out, block::SECTION, |out| {
            order.put32(out, BYTE_ORDER_MAGIC);
            order.put16(out, 1);
            order.put16(out, 0);
            // The length of the section is unknown.
            out.extend_from_slice(&[0xff; 8]);
            let comment = comment.map(|text| (COMMENT, text.as_bytes()));
            let program = (SHB_USERAPPL, program.as_bytes());
            file.options(out, comment.into_iter().chain([program]));
        });
        file
    }

    /// Defines an interface and returns its number.
    pub fn interface(
        &mut self,
        out: &mut Vec<u8>,
        interface: &Interface,
        comment: Option<&str>,
    ) -> Result<u32, CaptureWriteError> {
        if self.units.len() == INTERFACES_MAX {
            return Err(CaptureWriteError::TooManyInterfaces);
        }
        let Interface { name, mac, snap_bytes, resolution, offset_seconds, fcs_bytes } = interface;
        let offset = self.number(*offset_seconds as u64);
        let options = [
            (COMMENT, comment.map(str::as_bytes)),
            (code::IF_NAME, (!name.is_empty()).then_some(name.as_bytes())),
            (code::IF_MACADDR, mac.as_ref().map(|bytes| &bytes[..])),
            (code::IF_TSRESOL, Some(&[resolution.0][..])),
            (code::IF_FCSLEN, (*fcs_bytes > 0).then_some(std::slice::from_ref(fcs_bytes))),
            (code::IF_TSOFFSET, (*offset_seconds != 0).then_some(&offset[..])),
        ];
        self.block(out, block::INTERFACE, |out| {
            self.order.put16(out, ETHERNET);
            self.order.put16(out, 0);
            self.order.put32(out, *snap_bytes);
            self.options(out, options.into_iter().filter_map(|(code, it)| Some((code, it?))));
        });
        self.units.push((*resolution, *offset_seconds));
        Ok(self.units.len() as u32 - 1)
    }

    /// Writes a frame of a defined interface.
    pub fn frame(&self, out: &mut Vec<u8>, frame: &Frame) -> Result<(), CaptureWriteError> {
        check_length(frame.bytes)?;
        let units = self.units(frame.interface, frame.at)?;
        let flags = self.word(match frame.notes.direction {
            None => 0,
            Some(Direction::Inbound) => 1,
            Some(Direction::Outbound) => 2,
        });
        let dropped = frame.notes.dropped.map(|dropped| self.number(dropped));
        let cut = frame.notes.cut.map(|cut| cut.to_string());
        let options = [
            (COMMENT, frame.notes.comment.map(str::as_bytes)),
            (COMMENT, cut.as_ref().map(|text| text.as_bytes())),
            (code::EPB_FLAGS, frame.notes.direction.map(|_| &flags[..])),
            (code::EPB_DROPCOUNT, dropped.as_ref().map(|bytes| &bytes[..])),
        ];
        self.block(out, block::PACKET, |out| {
            self.order.put32(out, frame.interface);
            self.halves(out, units);
            self.order.put32(out, frame.bytes.len() as u32);
            self.order.put32(out, frame.original_bytes);
            out.extend_from_slice(frame.bytes);
            fill(out, frame.bytes.len());
            self.options(out, options.into_iter().filter_map(|(code, it)| Some((code, it?))));
        });
        Ok(())
    }

    /// Writes statistics of an interface. Without a time, the start of its clock is written.
    pub fn statistics(
        &self,
        out: &mut Vec<u8>,
        counted: &Statistics,
    ) -> Result<(), CaptureWriteError> {
        let interface = counted.interface;
        let at = match counted.at {
            Some(at) => self.units(interface, at)?,
            None => self.units(interface, Nanos::ZERO).unwrap_or(0),
        };
        let moment = |at: Option<Nanos>| -> Result<Option<[u8; 8]>, CaptureWriteError> {
            let Some(at) = at else { return Ok(None) };
            let units = self.units(interface, at)?;
            let (high, low) = (self.word((units >> 32) as u32), self.word(units as u32));
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&high);
            bytes[4..].copy_from_slice(&low);
            Ok(Some(bytes))
        };
        let number = |count: Option<u64>| count.map(|count| self.number(count));
        let options = [
            (code::ISB_STARTTIME, moment(counted.started_at)?),
            (code::ISB_ENDTIME, moment(counted.ended_at)?),
            (code::ISB_IFRECV, number(counted.received)),
            (code::ISB_IFDROP, number(counted.dropped)),
            (code::ISB_FILTERACCEPT, number(counted.accepted)),
            (code::ISB_OSDROP, number(counted.dropped_by_system)),
            (code::ISB_USRDELIV, number(counted.delivered)),
        ];
        self.block(out, block::STATISTICS, |out| {
            self.order.put32(out, interface);
            self.halves(out, at);
            let said = options.iter().filter_map(|(code, it)| Some((*code, &it.as_ref()?[..])));
            self.options(out, said);
        });
        Ok(())
    }

    fn units(&self, interface: u32, at: Nanos) -> Result<u64, CaptureWriteError> {
        let known = self.units.get(interface as usize);
        let &(unit, offset) = known.ok_or(CaptureWriteError::NoSuchInterface(interface))?;
        unit.units(at, offset).ok_or(CaptureWriteError::Time(at))
    }

    /// Writes a block around the output of `body`.
    fn block(&self, out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        self.order.put32(out, kind);
        self.order.put32(out, 0);
        body(out);
        let bytes = (out.len() - start + 4) as u32;
        self.order.put32(out, bytes);
        out[start + 4..start + 8].copy_from_slice(&self.word(bytes));
    }

    /// Writes options with an end option; nothing if there are none.
    fn options<'a>(&self, out: &mut Vec<u8>, options: impl Iterator<Item = (u16, &'a [u8])>) {
        let start = out.len();
        for (code, value) in options {
            let value = &value[..value.len().min(TEXT_BYTES_MAX)];
            self.order.put16(out, code);
            self.order.put16(out, value.len() as u16);
            out.extend_from_slice(value);
            fill(out, value.len());
        }
        if out.len() > start {
            self.order.put16(out, END);
            self.order.put16(out, 0);
        }
    }

    fn halves(&self, out: &mut Vec<u8>, number: u64) {
        self.order.put32(out, (number >> 32) as u32);
        self.order.put32(out, number as u32);
    }

    fn word(&self, word: u32) -> [u8; 4] {
        if self.order == Endianness::Little { word.to_le_bytes() } else { word.to_be_bytes() }
    }

    fn number(&self, number: u64) -> [u8; 8] {
        if self.order == Endianness::Little { number.to_le_bytes() } else { number.to_be_bytes() }
    }
}

impl Endianness {
    fn put16(self, out: &mut Vec<u8>, word: u16) {
        let bytes =
            if self == Endianness::Little { word.to_le_bytes() } else { word.to_be_bytes() };
        out.extend_from_slice(&bytes);
    }

    fn put32(self, out: &mut Vec<u8>, word: u32) {
        let bytes =
            if self == Endianness::Little { word.to_le_bytes() } else { word.to_be_bytes() };
        out.extend_from_slice(&bytes);
    }
}

fn check_length(bytes: &[u8]) -> Result<(), CaptureWriteError> {
    if bytes.len() > CAPTURED_BYTES_MAX {
        Err(CaptureWriteError::TooLong(bytes.len()))
    } else {
        Ok(())
    }
}

/// Pads data of this length to a multiple of four bytes.
fn fill(out: &mut Vec<u8>, bytes: usize) {
    out.extend_from_slice(&[0; 3][..bytes.next_multiple_of(4) - bytes]);
}

impl fmt::Display for CaptureWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureWriteError::Time(at) => {
                write!(f, "the format cannot represent the time {} ns since 1970", at.0)
            }
            CaptureWriteError::TooLong(bytes) => write!(
                f,
                "a frame has {bytes} captured bytes, at most {CAPTURED_BYTES_MAX} are allowed \
                 (hint: set a snap length)"
            ),
            CaptureWriteError::NoSuchInterface(number) => {
                write!(f, "interface {number} has no description before its frames")
            }
            CaptureWriteError::TooManyInterfaces => {
                write!(f, "too many interfaces: at most {INTERFACES_MAX}")
            }
        }
    }
}

impl std::error::Error for CaptureWriteError {}
