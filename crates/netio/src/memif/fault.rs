//! Protocol violations of a peer, and their counters.
//!
//! A fault ends the connection. The port sends its text to the peer if it still can, and counts it.
//! A fault is never an error of the port, which continues with the next peer.

/// A rule that the peer violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fault {
    /// A control message has a wrong size or an unknown type.
    Message = 1,
    /// A control message is not valid in the current state.
    Unexpected,
    /// The peer does not support memif 2.0.
    Version,
    /// The peer requests a mode other than Ethernet frames.
    Mode,
    /// The peer requests an interface with another number.
    Id,
    /// The secret is missing or wrong.
    Secret,
    /// The port has a peer already.
    Taken,
    /// A region or ring lacks its descriptor, or another message has one.
    Descriptor,
    /// Regions are out of order, or too many.
    RegionIndex,
    /// A region is too large, larger than its file, or empty.
    RegionSize,
    /// The region's file is not sealed against shrinking, so an access could kill this process.
    RegionUnsealed,
    /// The region's file uses huge pages and belongs to another user.
    RegionHuge,
    /// The system could not map a region.
    RegionMapping,
    /// Rings are out of order, or too many.
    RingIndex,
    /// A ring's size is not allowed.
    RingSize,
    /// A ring is not inside its region, or not aligned.
    RingPlace,
    /// A ring has no valid header.
    RingCookie,
    /// A ring's descriptor is not an eventfd.
    Doorbell,
    /// The peer did not finish its handshake in time, or does not read messages.
    Slow,
    /// A ring index moved by more than the ring's size.
    IndexJump,
    /// A descriptor has an unknown region, or bytes outside it.
    BufferPlace,
    /// A descriptor is longer than its buffer, or a buffer has no room.
    BufferLength,
    /// A frame has too many buffers, or its chain does not end.
    Chain,
    /// The region's file was truncated while in use.
    RegionShrunk,
    /// The peer requests a feature that was not offered.
    Features,
    /// A descriptor number is outside the ring.
    Slot,
}

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 26] = [
        Fault::Message,
        Fault::Unexpected,
        Fault::Version,
        Fault::Mode,
        Fault::Id,
        Fault::Secret,
        Fault::Taken,
        Fault::Descriptor,
        Fault::RegionIndex,
        Fault::RegionSize,
        Fault::RegionUnsealed,
        Fault::RegionHuge,
        Fault::RegionMapping,
        Fault::RingIndex,
        Fault::RingSize,
        Fault::RingPlace,
        Fault::RingCookie,
        Fault::Doorbell,
        Fault::Slow,
        Fault::IndexJump,
        Fault::BufferPlace,
        Fault::BufferLength,
        Fault::Chain,
        Fault::RegionShrunk,
        Fault::Features,
        Fault::Slot,
    ];

    /// Returns the text for the peer and for reports: at most 95 bytes.
    pub fn text(self) -> &'static str {
        match self {
            Fault::Message => "malformed control message",
            Fault::Unexpected => "unexpected control message",
            Fault::Version => "only memif 2.0 is supported",
            Fault::Mode => "only Ethernet mode is supported",
            Fault::Id => "no interface with this ID",
            Fault::Secret => "secret missing or wrong",
            Fault::Taken => "already connected",
            Fault::Descriptor => "descriptor missing or unwanted",
            Fault::RegionIndex => "region out of order, or too many",
            Fault::RegionSize => "region empty, too large, or larger than its file",
            Fault::RegionUnsealed => "region without seal against shrinking (F_SEAL_SHRINK)",
            Fault::RegionHuge => "region of huge pages from another user",
            Fault::RegionMapping => "region cannot be mapped",
            Fault::RingIndex => "ring out of order, or too many",
            Fault::RingSize => "ring size not allowed",
            Fault::RingPlace => "ring outside its region, or not aligned",
            Fault::RingCookie => "ring without cookie",
            Fault::Doorbell => "interrupt descriptor is not an eventfd",
            Fault::Slow => "too slow",
            Fault::IndexJump => "ring index jumped",
            Fault::BufferPlace => "buffer outside its region",
            Fault::BufferLength => "frame longer than its buffer, or buffer empty",
            Fault::Chain => "frame with too many buffers, or without end",
            Fault::RegionShrunk => "region removed while in use",
            Fault::Features => "feature that was not offered",
            Fault::Slot => "descriptor outside its ring",
        }
    }

    /// Returns the fault with this number, if there is one.
    pub(super) fn from_number(number: u8) -> Option<Fault> {
        Fault::ALL.into_iter().find(|fault| *fault as u8 == number)
    }
}

/// Counts of each fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    counts: [u64; Fault::ALL.len()],
}

impl Faults {
    /// Counts a fault.
    pub(crate) fn add(&mut self, fault: Fault) {
        self.counts[fault as usize - 1] += 1;
    }

    /// Returns the number of occurrences of `fault`.
    pub fn of(&self, fault: Fault) -> u64 {
        self.counts[fault as usize - 1]
    }

    /// Returns the total of all faults.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_an_index_and_a_text_that_fits_a_message() {
        for (place, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place + 1);
            assert_eq!(Fault::from_number(fault as u8), Some(fault));
            assert!((5..96).contains(&fault.text().len()), "{fault:?}");
        }
        assert_eq!(Fault::from_number(0), None);
    }
}
