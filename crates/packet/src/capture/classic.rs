//! The pcap format: a header of 24 bytes, then records of a 16-byte header and the captured bytes
//! of a frame (draft-ietf-opsawg-pcap).

use super::fault::{CaptureAnomaly, CaptureFaultKind, Fault, Warnings, captured};
use super::link_type::ETHERNET;
use super::option::Options;
use super::resolution::Resolution;
use super::{CLASSIC_HEADER_BYTES, Captured, DecoderAction, Endianness, Event, Interface, whole};
use crate::time::Nanos;

/// Bytes of a record header.
const RECORD_BYTES: usize = 16;

/// Flag in the link type word: the upper bits contain the length of the FCS.
const HAS_FCS_LENGTH: u32 = 1 << 26;

/// Decoder state of a pcap file.
#[derive(Debug)]
pub struct Classic {
    order: Endianness,
    /// Nanoseconds per unit of the fraction of a time stamp.
    unit: u64,
    pub interface: Interface,
}

impl Classic {
    /// Parses the file header.
    pub fn new(header: &[u8], order: Endianness, resolution: Resolution) -> Result<Self, Fault> {
        if header.len() < CLASSIC_HEADER_BYTES {
            let (need, have) = (CLASSIC_HEADER_BYTES as u64, header.len() as u64);
            return Err(Fault::new(0, CaptureFaultKind::Truncated { need, have }));
        }
        let (major, minor) = (order.u16(header, 4), order.u16(header, 6));
        if (major, minor) != (2, 4) {
            return Err(Fault::new(4, CaptureFaultKind::Version { major, minor }));
        }
        let link = order.u32(header, 20);
        if link as u16 != ETHERNET {
            return Err(Fault::new(20, CaptureFaultKind::LinkType(link as u16)));
        }
        let fcs_bytes = if link & HAS_FCS_LENGTH != 0 { (link >> 28) as u8 * 2 } else { 0 };
        let snap_bytes = order.u32(header, 16);
        let name = String::new();
        let (mac, offset_seconds) = (None, 0);
        let interface = Interface { name, mac, snap_bytes, resolution, offset_seconds, fcs_bytes };
        let unit = if resolution == Resolution::NANO { 1 } else { 1_000 };
        Ok(Classic { order, unit, interface })
    }

    #[inline]
    pub fn next(&self, window: &[u8]) -> Result<DecoderAction, Fault> {
        if window.len() < RECORD_BYTES {
            return Ok(DecoderAction::More(RECORD_BYTES));
        }
        let bytes = captured(self.order.u32(window, 8), 8)?;
        Ok(whole(window, RECORD_BYTES + bytes))
    }

    #[inline]
    pub fn take<'a>(
        &mut self,
        item: &'a [u8],
        offset: u64,
        warnings: &mut Warnings,
    ) -> Result<Event<'a>, Fault> {
        let (header, bytes) = item.split_at(RECORD_BYTES.min(item.len()));
        if header.len() < RECORD_BYTES {
            let (need, have) = (RECORD_BYTES as u64, header.len() as u64);
            return Err(Fault::new(0, CaptureFaultKind::Truncated { need, have }));
        }
        let word = |at| self.order.u32(header, at);
        let (seconds, fraction, original_bytes) = (word(0), word(4), word(12));
        let fraction_nanos = u64::from(fraction) * self.unit;
        if fraction_nanos >= 1_000_000_000 {
            warnings.note(CaptureAnomaly::FractionTooLarge, offset);
        }
        note_lengths(bytes, original_bytes, self.interface.snap_bytes, offset, warnings);
        Ok(Event::Frame(Captured {
            offset,
            interface: 0,
            at: Some(Nanos(u64::from(seconds) * 1_000_000_000 + fraction_nanos)),
            bytes,
            bytes_offset: offset + RECORD_BYTES as u64,
            original_bytes,
            dropped: None,
            direction: None,
            fcs_bytes: self.interface.fcs_bytes,
            options: Options::NONE,
        }))
    }
}

/// Records a warning if more bytes were captured than expected.
#[inline]
pub fn note_lengths(
    bytes: &[u8],
    original_bytes: u32,
    snap_bytes: u32,
    offset: u64,
    warnings: &mut Warnings,
) {
    if bytes.len() > original_bytes as usize {
        warnings.note(CaptureAnomaly::LongerThanOriginal, offset);
    }
    if snap_bytes > 0 && bytes.len() > snap_bytes as usize {
        warnings.note(CaptureAnomaly::LongerThanSnap, offset);
    }
}
