//! The pcapng format: blocks of type, length, body and repeated length (draft-ietf-opsawg-pcapng,
//! section 4).
//!
//! The decoder skips blocks without information about frames, regardless of their length. It also
//! reads the obsolete packet block; otherwise frames of old files would be lost.

use super::classic::note_lengths;
use super::fault::{CaptureAnomaly, CaptureFaultKind, Fault, Warnings, captured};
use super::link_type::ETHERNET;
use super::option::Options;
use super::resolution::Resolution;
use super::{
    BLOCK_BYTES_MAX, Captured, DecoderAction, Direction, Endianness, Event, INTERFACES_MAX,
    Interface, Statistics, whole,
};
use crate::time::Nanos;

/// Block types.
pub mod block {
    /// Section header; the value is a palindrome and independent of byte order.
    pub const SECTION: u32 = 0x0a0d_0d0a;
    /// Interface description.
    pub const INTERFACE: u32 = 1;
    /// Packet, obsoleted by the enhanced packet.
    pub const PACKET_OLD: u32 = 2;
    /// Simple packet.
    pub const PACKET_SIMPLE: u32 = 3;
    /// Interface statistics.
    pub const STATISTICS: u32 = 5;
    /// Enhanced packet.
    pub const PACKET: u32 = 6;
}

/// Option codes, by block.
pub mod code {
    /// Interface: name.
    pub const IF_NAME: u16 = 2;
    /// Interface: hardware address.
    pub const IF_MACADDR: u16 = 6;
    /// Interface: time stamp resolution.
    pub const IF_TSRESOL: u16 = 9;
    /// Interface: FCS length.
    pub const IF_FCSLEN: u16 = 13;
    /// Interface: seconds to add to time stamps.
    pub const IF_TSOFFSET: u16 = 14;
    /// Packet: direction and other flags.
    pub const EPB_FLAGS: u16 = 2;
    /// Packet: frames lost since the previous one.
    pub const EPB_DROPCOUNT: u16 = 4;
    /// Statistics: start of the capture.
    pub const ISB_STARTTIME: u16 = 2;
    /// Statistics: end of the capture.
    pub const ISB_ENDTIME: u16 = 3;
    /// Statistics: frames received.
    pub const ISB_IFRECV: u16 = 4;
    /// Statistics: frames dropped by the interface.
    pub const ISB_IFDROP: u16 = 5;
    /// Statistics: frames that passed the filter.
    pub const ISB_FILTERACCEPT: u16 = 6;
    /// Statistics: frames dropped by the operating system.
    pub const ISB_OSDROP: u16 = 7;
    /// Statistics: frames delivered.
    pub const ISB_USRDELIV: u16 = 8;
}

/// Byte order magic of a section, read in the correct order.
pub const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Bytes before the frame in a packet block with a time stamp, and in one without.
const ENHANCED_BYTES: usize = 28;
const SIMPLE_BYTES: usize = 12;

/// Unknown number of lost frames in the obsolete packet block.
const DROPS_UNKNOWN: u16 = 0xffff;

/// Decoder state of a pcapng file.
#[derive(Debug)]
pub struct Ng {
    order: Endianness,
    pub interfaces: Vec<Interface>,
    /// The block that is skipped: its length, and the number of bytes left before the repeated
    /// length.
    passing: Option<(u32, u64)>,
}

impl Ng {
    /// Creates the state at the start of a section.
    pub fn new() -> Self {
        Ng { order: Endianness::Little, interfaces: Vec::new(), passing: None }
    }

    /// Returns true if no block is partly read.
    pub fn is_between(&self) -> bool {
        self.passing.is_none()
    }

    #[inline]
    pub fn next(&self, window: &[u8]) -> Result<DecoderAction, Fault> {
        match self.passing {
            Some((_, 0)) => return Ok(whole(window, 4)),
            Some((_, left)) => return Ok(DecoderAction::Skip(left)),
            None => {}
        }
        if window.len() < 8 {
            return Ok(DecoderAction::More(8));
        }
        let kind = self.order.u32(window, 0);
        let order = if kind != block::SECTION {
            self.order
        } else if window.len() < 12 {
            return Ok(DecoderAction::More(12));
        } else {
            order_of(window)?
        };
        let bytes = order.u32(window, 4);
        let least = match kind {
            block::SECTION => 28,
            block::INTERFACE => 20,
            block::PACKET | block::PACKET_OLD => 32,
            block::PACKET_SIMPLE => 16,
            block::STATISTICS => 24,
            _ => 12,
        };
        let is_known = least > 12;
        let most = if is_known { BLOCK_BYTES_MAX as u64 } else { u64::from(u32::MAX) };
        if u64::from(bytes) < least || u64::from(bytes) > most {
            let have = u64::from(bytes);
            return Err(Fault::new(
                4,
                CaptureFaultKind::Length { of: "a block", have, least, most },
            ));
        }
        if !bytes.is_multiple_of(4) {
            return Err(Fault::new(4, CaptureFaultKind::Odd(bytes)));
        }
        Ok(if is_known { whole(window, bytes as usize) } else { whole(window, 8) })
    }

    /// Records that bytes of a skipped block were passed.
    pub fn passed(&mut self, bytes: u64) {
        if let Some((_, left)) = &mut self.passing {
            *left = left.saturating_sub(bytes);
        }
    }

    /// Decodes a block that [`Ng::next`] found complete, or the start or end of a skipped block.
    #[inline]
    pub fn take<'a>(
        &mut self,
        item: &'a [u8],
        offset: u64,
        warnings: &mut Warnings,
    ) -> Result<Event<'a>, Fault> {
        if let Some((first, _)) = self.passing.take() {
            let last = self.order.u32(item, 0);
            let fault = Fault::new(0, CaptureFaultKind::Ends { first, last });
            return if first == last { Ok(Event::Other) } else { Err(fault) };
        }
        let kind = self.order.u32(item, 0);
        if kind == block::SECTION {
            self.order = order_of(item)?;
        }
        let first = self.order.u32(item, 4);
        if first as usize != item.len() {
            self.passing = Some((first, u64::from(first) - 12));
            return Ok(Event::Other);
        }
        let end = item.len() - 4;
        let last = self.order.u32(item, end);
        if first != last {
            return Err(Fault::new(end as u64, CaptureFaultKind::Ends { first, last }));
        }
        let item = &item[..end];
        match kind {
            block::SECTION => self.section(item),
            block::INTERFACE => self.interface(item),
            block::STATISTICS => self.statistics(item, offset, warnings).map(Event::Statistics),
            block::PACKET_SIMPLE => self.simple(item, offset, warnings).map(Event::Frame),
            block::PACKET | block::PACKET_OLD => {
                self.packet(item, kind == block::PACKET, offset, warnings).map(Event::Frame)
            }
            // An empty block of 12 bytes never arrives here, because its first 8 bytes are taken
            // separately.
            _ => Ok(Event::Other),
        }
    }

    fn section(&mut self, item: &[u8]) -> Result<Event<'static>, Fault> {
        let (major, minor) = (self.order.u16(item, 12), self.order.u16(item, 14));
        // Version 1.2 was written for some time and is identical (section 4.1).
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Fault::new(12, CaptureFaultKind::Version { major, minor }));
        }
        Options::new(&item[24..], self.order, 24)?;
        self.interfaces.clear();
        Ok(Event::Section)
    }

    fn interface(&mut self, item: &[u8]) -> Result<Event<'static>, Fault> {
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(Fault::new(0, CaptureFaultKind::Limit("INTERFACES_MAX")));
        }
        let link = self.order.u16(item, 8);
        if link != ETHERNET {
            return Err(Fault::new(8, CaptureFaultKind::LinkType(link)));
        }
        let options = Options::new(&item[16..], self.order, 16)?;
        let [unit] = options.value(code::IF_TSRESOL)?.unwrap_or([Resolution::MICRO.0]);
        let [fcs_bytes] = options.value(code::IF_FCSLEN)?.unwrap_or([0]);
        self.interfaces.push(Interface {
            name: options.text(code::IF_NAME),
            mac: options.value(code::IF_MACADDR)?,
            snap_bytes: self.order.u32(item, 12),
            resolution: Resolution(unit),
            offset_seconds: options.number(code::IF_TSOFFSET)?.unwrap_or(0) as i64,
            fcs_bytes,
        });
        Ok(Event::Interface(self.interfaces.len() as u32 - 1))
    }

    fn known(&self, interface: u32) -> Result<&Interface, Fault> {
        let interfaces = self.interfaces.len();
        let why = CaptureFaultKind::NoSuchInterface { interface, interfaces };
        self.interfaces.get(interface as usize).ok_or(Fault::new(8, why))
    }

    /// Decodes an enhanced or an obsolete packet block, which differ in one word.
    #[inline]
    fn packet<'a>(
        &self,
        item: &'a [u8],
        is_enhanced: bool,
        offset: u64,
        warnings: &mut Warnings,
    ) -> Result<Captured<'a>, Fault> {
        let order = self.order;
        let (interface, drops) = if is_enhanced {
            (order.u32(item, 8), DROPS_UNKNOWN)
        } else {
            (u32::from(order.u16(item, 8)), order.u16(item, 10))
        };
        let Interface { resolution, offset_seconds, snap_bytes, mut fcs_bytes, .. } =
            *self.known(interface)?;
        let bytes = captured(order.u32(item, 20), 20)?;
        let (filled, room) = (bytes.next_multiple_of(4), item.len() - 28);
        if filled > room {
            let (have, most) = (bytes as u64, room as u64);
            let why = CaptureFaultKind::Length { of: "captured bytes", have, least: 0, most };
            return Err(Fault::new(20, why));
        }
        let options = Options::new(&item[28 + filled..], order, 28 + filled)?;
        let mut dropped = (drops != DROPS_UNKNOWN).then_some(u64::from(drops));
        let mut direction = None;
        if !options.is_empty() {
            dropped = options.number(code::EPB_DROPCOUNT)?.or(dropped);
            let flags = options.value::<4>(code::EPB_FLAGS)?.map_or(0, |word| order.u32(&word, 0));
            direction = match flags & 3 {
                1 => Some(Direction::Inbound),
                2 => Some(Direction::Outbound),
                _ => None,
            };
            let said = (flags >> 5 & 15) as u8;
            fcs_bytes = if said > 0 { said } else { fcs_bytes };
        }
        let at = resolution.moment(order.halves(item, 12), offset_seconds);
        if at.is_none() {
            warnings.note(CaptureAnomaly::TimeOutOfRange, offset);
        }
        let (bytes, original_bytes) =
            (&item[ENHANCED_BYTES..ENHANCED_BYTES + bytes], order.u32(item, 24));
        note_lengths(bytes, original_bytes, snap_bytes, offset, warnings);
        Ok(Captured {
            offset,
            interface,
            at,
            bytes,
            bytes_offset: offset + ENHANCED_BYTES as u64,
            original_bytes,
            dropped,
            direction,
            fcs_bytes,
            options,
        })
    }

    /// Decodes a simple packet block. It has no time and belongs to the first interface; its length
    /// follows from the original length and the snap length.
    fn simple<'a>(
        &self,
        item: &'a [u8],
        offset: u64,
        warnings: &mut Warnings,
    ) -> Result<Captured<'a>, Fault> {
        let Interface { snap_bytes, fcs_bytes, .. } = *self.known(0)?;
        let original_bytes = self.order.u32(item, 8);
        let limit = if snap_bytes == 0 { u32::MAX } else { snap_bytes };
        let bytes = captured(original_bytes.min(limit), 8)?;
        let room = item.len() - 12;
        if bytes > room {
            let (have, most) = (bytes as u64, room as u64);
            let why = CaptureFaultKind::Length { of: "captured bytes", have, least: 0, most };
            return Err(Fault::new(8, why));
        }
        let bytes = &item[SIMPLE_BYTES..SIMPLE_BYTES + bytes];
        note_lengths(bytes, original_bytes, snap_bytes, offset, warnings);
        Ok(Captured {
            offset,
            interface: 0,
            at: None,
            bytes,
            bytes_offset: offset + SIMPLE_BYTES as u64,
            original_bytes,
            dropped: None,
            direction: None,
            fcs_bytes,
            options: Options::NONE,
        })
    }

    fn statistics(
        &self,
        item: &[u8],
        offset: u64,
        warnings: &mut Warnings,
    ) -> Result<Statistics, Fault> {
        let order = self.order;
        let interface = order.u32(item, 8);
        let Interface { resolution, offset_seconds, .. } = *self.known(interface)?;
        let options = Options::new(&item[20..], order, 20)?;
        let mut moment = |units: u64| -> Option<Nanos> {
            let moment = resolution.moment(units, offset_seconds);
            if moment.is_none() {
                warnings.note(CaptureAnomaly::TimeOutOfRange, offset);
            }
            moment
        };
        let halves = |code| -> Result<Option<u64>, Fault> {
            Ok(options.value::<8>(code)?.map(|bytes| order.halves(&bytes, 0)))
        };
        Ok(Statistics {
            interface,
            at: moment(order.halves(item, 12)),
            started_at: halves(code::ISB_STARTTIME)?.and_then(&mut moment),
            ended_at: halves(code::ISB_ENDTIME)?.and_then(&mut moment),
            received: options.number(code::ISB_IFRECV)?,
            dropped: options.number(code::ISB_IFDROP)?,
            accepted: options.number(code::ISB_FILTERACCEPT)?,
            dropped_by_system: options.number(code::ISB_OSDROP)?,
            delivered: options.number(code::ISB_USRDELIV)?,
        })
    }
}

/// Returns the byte order of a section header.
fn order_of(section: &[u8]) -> Result<Endianness, Fault> {
    if Endianness::Little.u32(section, 8) == BYTE_ORDER_MAGIC {
        Ok(Endianness::Little)
    } else if Endianness::Big.u32(section, 8) == BYTE_ORDER_MAGIC {
        Ok(Endianness::Big)
    } else {
        let bytes = [section[8], section[9], section[10], section[11]];
        Err(Fault::new(8, CaptureFaultKind::ByteOrder(bytes)))
    }
}
