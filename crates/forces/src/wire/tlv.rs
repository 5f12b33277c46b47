//! Types and lengths: reading them within bounds, writing them with their padding.
//!
//! A TLV's length is its own four octets and its value's, padding not counted (RFC 5810 section
//! 6.2); an ILV has 32 bits for each (section 6.3). Both end on a multiple of four octets. Padding
//! that is missing behind the very last one is not missed.

use super::fault::{WireFault, WireWhy};

/// What a TLV is. Operations within LFBselect have numbers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Tlv {
    /// A redirected packet.
    Redirect = 0x0001,
    /// The answer to an association's setup.
    AsResult = 0x0010,
    /// Why an association ends.
    AsReason = 0x0011,
    /// A path and what stands there.
    PathData = 0x0110,
    /// A row by its content.
    KeyInfo = 0x0111,
    /// A whole value.
    FullData = 0x0112,
    /// Some parts of a value.
    SparseData = 0x0113,
    /// How an operation ended.
    Result = 0x0114,
    /// Metadata of a redirected packet.
    Metadata = 0x0115,
    /// A redirected packet's octets.
    RedirectData = 0x0116,
    /// Rows from one index to another.
    TableRange = 0x0117,
    /// How an operation ended, at length.
    ExtendedResult = 0x0118,
    /// An instance.
    Select = 0x1000,
}

/// Types from here on are vendors' own.
pub(super) const VENDOR: u16 = 0x8000;

/// Octets that are missing to a multiple of four.
pub(super) fn padding(octets: usize) -> usize {
    octets.wrapping_neg() % 4
}

/// Part of a message that is being read, and where in it that stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Part<'a> {
    pub fn fault(&self, why: WireWhy) -> WireFault {
        WireFault { at: self.at, why }
    }

    /// A number of 16 bits, taken off the front.
    pub fn half(&mut self) -> Result<u16, WireFault> {
        let bytes = self.take(2)?.bytes;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A number of 32 bits, taken off the front.
    pub fn word(&mut self) -> Result<u32, WireFault> {
        let bytes = self.take(4)?.bytes;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// So many octets, taken off the front.
    pub fn take(&mut self, octets: usize) -> Result<Part<'a>, WireFault> {
        match self.bytes.split_at_checked(octets) {
            Some((bytes, rest)) => {
                let taken = Part { bytes, at: self.at };
                *self = Part { bytes: rest, at: self.at + octets };
                Ok(taken)
            }
            None => {
                let at = self.at + self.bytes.len();
                Err(WireFault { at, why: WireWhy::Short { octets } })
            }
        }
    }

    /// The type and value of the TLV at the front, taken off with its padding.
    pub fn tlv(&mut self) -> Result<(u16, Part<'a>), WireFault> {
        let start = *self;
        let (kind, octets) = (self.half()?, usize::from(self.half()?));
        let wrong = start.fault(WireWhy::Length { octets });
        let value = octets.checked_sub(4).and_then(|octets| self.take(octets).ok()).ok_or(wrong)?;
        self.skip_padding(octets);
        Ok((kind, value))
    }

    /// The id and value of the ILV at the front, taken off with its padding.
    pub fn ilv(&mut self) -> Result<(u32, Part<'a>), WireFault> {
        let start = *self;
        let (id, octets) = (self.word()?, self.word()? as usize);
        let wrong = start.fault(WireWhy::Length { octets });
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

/// Appends a TLV whose value `write` appends, and pads it. The length of one that is too long is
/// cut; whoever writes a message looks at lengths first.
pub(super) fn put_tlv(out: &mut Vec<u8>, kind: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_be_bytes());
    out.extend([0; 2]);
    write(out);
    let octets = out.len() - start;
    out[start + 2..start + 4].copy_from_slice(&(octets as u16).to_be_bytes());
    out.resize(out.len() + padding(octets), 0);
}

/// Appends an ILV whose value `write` appends, and pads it.
pub(super) fn put_ilv(out: &mut Vec<u8>, id: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(id.to_be_bytes());
    out.extend([0; 4]);
    write(out);
    let octets = out.len() - start;
    out[start + 4..start + 8].copy_from_slice(&(octets as u32).to_be_bytes());
    out.resize(out.len() + padding(octets), 0);
}
