//! Reads TLVs and ILVs within bounds, and writes them with padding.
//!
//! - The length of a TLV includes its header of four octets, but no padding (RFC 5810 section 6.2).
//! - An ILV has 32 bits for ID and length (section 6.3).
//! - Both are padded to four octets. Reading accepts missing padding after the last one.

use super::fault::{WireFault, WireFaultKind};

/// TLV type. Operations within LFBselect have their own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Tlv {
    /// A redirected packet.
    Redirect = 0x0001,
    /// Result of an association setup.
    AsResult = 0x0010,
    /// Reason of an association teardown.
    AsReason = 0x0011,
    /// A path with its data.
    PathData = 0x0110,
    /// Content key of a row.
    KeyInfo = 0x0111,
    /// A complete value.
    FullData = 0x0112,
    /// Parts of a value.
    SparseData = 0x0113,
    /// Result of an operation.
    Result = 0x0114,
    /// Metadata of a redirected packet.
    Metadata = 0x0115,
    /// A redirected packet's octets.
    RedirectData = 0x0116,
    /// A range of rows.
    TableRange = 0x0117,
    /// Extended result of an operation.
    ExtendedResult = 0x0118,
    /// An LFB instance.
    Select = 0x1000,
}

/// First type of vendor TLVs.
pub(super) const VENDOR: u16 = 0x8000;

/// Returns the octets of padding to a multiple of four.
pub(super) fn padding(octets: usize) -> usize {
    octets.wrapping_neg() % 4
}

/// Part of a message while it is decoded, with its offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Part<'a> {
    pub fn fault(&self, why: WireFaultKind) -> WireFault {
        WireFault { at: self.at, why }
    }

    /// Reads a 16-bit number.
    pub fn half(&mut self) -> Result<u16, WireFault> {
        let bytes = self.take(2)?.bytes;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Reads a 32-bit number.
    pub fn word(&mut self) -> Result<u32, WireFault> {
        let bytes = self.take(4)?.bytes;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads this many octets.
    pub fn take(&mut self, octets: usize) -> Result<Part<'a>, WireFault> {
        match self.bytes.split_at_checked(octets) {
            Some((bytes, rest)) => {
                let taken = Part { bytes, at: self.at };
                *self = Part { bytes: rest, at: self.at + octets };
                Ok(taken)
            }
            None => {
                let at = self.at + self.bytes.len();
                Err(WireFault { at, why: WireFaultKind::Short { octets } })
            }
        }
    }

    /// Reads a TLV and its padding; returns type and value.
    pub fn tlv(&mut self) -> Result<(u16, Part<'a>), WireFault> {
        let start = *self;
        let (kind, octets) = (self.half()?, usize::from(self.half()?));
        let wrong = start.fault(WireFaultKind::Length { octets });
        let value = octets.checked_sub(4).and_then(|octets| self.take(octets).ok()).ok_or(wrong)?;
        self.skip_padding(octets);
        Ok((kind, value))
    }

    /// Reads an ILV and its padding; returns ID and value.
    pub fn ilv(&mut self) -> Result<(u32, Part<'a>), WireFault> {
        let start = *self;
        let (id, octets) = (self.word()?, self.word()? as usize);
        let wrong = start.fault(WireFaultKind::Length { octets });
        let value = octets.checked_sub(8).and_then(|octets| self.take(octets).ok()).ok_or(wrong)?;
        self.skip_padding(octets);
        Ok((id, value))
    }

    fn skip_padding(&mut self, octets: usize) {
        let skipped = padding(octets).min(self.bytes.len());
        *self = Part { bytes: &self.bytes[skipped..], at: self.at + skipped };
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Appends a TLV with padding; `write` appends the value.
///
/// It truncates a length that is too long, so the caller must check lengths first.
pub(super) fn put_tlv(out: &mut Vec<u8>, kind: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_be_bytes());
    out.extend([0; 2]);
    write(out);
    let octets = out.len() - start;
    out[start + 2..start + 4].copy_from_slice(&(octets as u16).to_be_bytes());
    out.resize(out.len() + padding(octets), 0);
}

/// Appends an ILV with padding; `write` appends the value.
pub(super) fn put_ilv(out: &mut Vec<u8>, id: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(id.to_be_bytes());
    out.extend([0; 4]);
    write(out);
    let octets = out.len() - start;
    out[start + 4..start + 8].copy_from_slice(&(octets as u32).to_be_bytes());
    out.resize(out.len() + padding(octets), 0);
}
