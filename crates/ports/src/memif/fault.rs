//! What a peer can do wrong, and the count of it.
//!
//! A fault ends the connection: the peer is told by its text where it can still be told, and the
//! port counts it. A fault is never an error of the port, which goes on serving the next peer.

/// A rule that the peer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fault {
    /// A control message of the wrong size or of a type that does not exist.
    Message = 1,
    /// A control message at a time when it makes no sense.
    Unexpected,
    /// The peer does not speak memif 2.0.
    Version,
    /// The peer wants to carry something other than Ethernet frames.
    Mode,
    /// The peer asked for an interface with another number.
    Id,
    /// The secret is missing or wrong.
    Secret,
    /// The port has a peer already.
    Taken,
    /// A region or ring came without its descriptor, or another message with one.
    Descriptor,
    /// Regions out of order, or more of them than are allowed.
    RegionIndex,
    /// Regions larger than are allowed, larger than the file behind them, or empty.
    RegionSize,
    /// The region's file is not sealed against shrinking, so that touching it could kill us.
    RegionUnsealed,
    /// The region's file is of huge pages and its owner is somebody else.
    RegionHuge,
    /// The system refused to map a region.
    RegionMapping,
    /// Rings out of order, or more of them than are allowed.
    RingIndex,
    /// A ring of a size that is not allowed.
    RingSize,
    /// A ring that is not inside its region, or not aligned.
    RingPlace,
    /// A ring whose header is not one.
    RingCookie,
    /// A ring's doorbell is not an event descriptor.
    Doorbell,
    /// The peer did not finish its handshake in time, or does not read what it is told.
    Slow,
    /// A ring index moved by more than the ring holds.
    IndexJump,
    /// A descriptor that names no region, or bytes outside it.
    BufferPlace,
    /// A descriptor longer than the buffer behind it, or a buffer without room.
    BufferLength,
    /// A frame in more buffers than are allowed, or one that does not end.
    Chain,
    /// The region's file was made shorter while it was used.
    RegionShrunk,
    /// The peer wants what was not offered.
    Features,
    /// A number of a descriptor that the ring has not.
    Slot,
}

impl Fault {
    /// Every fault.
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

    /// What the peer is told, and people who read counters: at most 95 bytes.
    pub fn text(self) -> &'static str {
        match self {
            Fault::Message => "malformed control message",
            Fault::Unexpected => "unexpected control message",
            Fault::Version => "only memif 2.0 is spoken here",
            Fault::Mode => "only Ethernet mode is offered",
            Fault::Id => "no interface of this id",
            Fault::Secret => "secret missing or wrong",
            Fault::Taken => "already connected",
            Fault::Descriptor => "descriptor missing or unwanted",
            Fault::RegionIndex => "region out of order, or too many",
            Fault::RegionSize => "region empty, too large, or larger than its file",
            Fault::RegionUnsealed => "region not sealed against shrinking (F_SEAL_SHRINK)",
            Fault::RegionHuge => "region of huge pages from another user",
            Fault::RegionMapping => "region cannot be mapped",
            Fault::RingIndex => "ring out of order, or too many",
            Fault::RingSize => "ring size not allowed",
            Fault::RingPlace => "ring outside its region, or not aligned",
            Fault::RingCookie => "ring without cookie",
            Fault::Doorbell => "interrupt descriptor is no eventfd",
            Fault::Slow => "too slow",
            Fault::IndexJump => "ring index jumped",
            Fault::BufferPlace => "buffer outside its region",
            Fault::BufferLength => "frame longer than its buffer, or buffer empty",
            Fault::Chain => "frame in too many buffers, or without end",
            Fault::RegionShrunk => "region taken away while in use",
            Fault::Features => "feature that was not offered",
            Fault::Slot => "descriptor that its ring has not",
        }
    }

    /// The fault of this number, if there is one.
    pub(super) fn from_number(number: u8) -> Option<Fault> {
        Fault::ALL.into_iter().find(|fault| *fault as u8 == number)
    }
}

/// How often each fault occurred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    counts: [u64; Fault::ALL.len()],
}

impl Faults {
    /// Counts one.
    pub(crate) fn add(&mut self, fault: Fault) {
        self.counts[fault as usize - 1] += 1;
    }

    /// How often `fault` occurred.
    pub fn of(&self, fault: Fault) -> u64 {
        self.counts[fault as usize - 1]
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_place_and_a_text_that_fits_a_message() {
        for (place, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place + 1);
            assert_eq!(Fault::from_number(fault as u8), Some(fault));
            assert!((5..96).contains(&fault.text().len()), "{fault:?}");
        }
        assert_eq!(Fault::from_number(0), None);
    }
}
