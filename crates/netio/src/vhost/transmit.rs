//! The device's sending end of a ring: copies frames into the driver's empty chains.
//!
//! A frame uses one chain. If the driver negotiated VIRTIO_NET_F_MRG_RXBUF, it may use several.
//! Nothing is taken from the ring for a frame that does not fit. The driver sees nothing before
//! [`TransmitEnd::flush`].

#![allow(unsafe_code)]

use super::ring::{CHAIN_MAX, FLAG_INDIRECT, FLAG_NEXT, FLAG_WRITE, Ring};
use crate::in_place::View;
use crate::in_place::copy::copy;
use crate::memif::fault::Fault;
use crate::memif::transmit::{PutError, Refusal};

/// Bytes of the longest header, which has the number of chains (VIRTIO 1.2, 5.1.6).
const HEADER_BYTES_MAX: usize = 12;

/// The sending end of a ring.
pub struct TransmitEnd {
    ring: Ring,
    header_bytes: u32,
    /// Whether a frame may be in several chains.
    merges: bool,
}

/// A piece of an empty chain, checked to be inside the driver's memory.
type MemoryPiece = (*mut u8, u32);

impl TransmitEnd {
    /// Creates the sending end of this ring, whose frames follow headers of this many bytes.
    pub fn new(ring: Ring, header_bytes: u32, merges: bool) -> Self {
        TransmitEnd { ring, header_bytes, merges }
    }

    /// Returns the ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Puts a frame in two parts into the next empty chain.
    #[inline(always)]
    pub fn put(&mut self, first: View<'_>, second: View<'_>) -> Result<(), PutError> {
        if self.ring.waiting(1)? == 0 {
            return Err(PutError::Refused(Refusal::Full));
        }
        let head = self.ring.head(0)?;
        let descriptor = self.ring.descriptor(head)?;
        let header = self.header_bytes;
        let bytes = (first.len() + second.len()) as u64 + u64::from(header);
        if descriptor.flags != FLAG_WRITE || u64::from(descriptor.length) < bytes {
            return self.put_pieces(first, second);
        }
        // Only the bytes in use are looked up, because the rest of the buffer may be in another
        // region.
        let bytes = bytes as u32;
        let Some(to) = self.ring.memory().guest(descriptor.address, bytes) else {
            return self.put_pieces(first, second);
        };
        let written = header_of(1);
        // SAFETY: the buffer was checked to be inside one region for header and frame together, and
        // a header is at least as long as the copied bytes. A view overlaps it only if the driver
        // provided the same memory twice; then these copies corrupt only the driver's bytes.
        unsafe {
            copy(written.as_ptr(), to, header as usize);
            let to = to.add(header as usize);
            copy(first.start(), to, first.len());
            if second.len() > 0 {
                copy(second.start(), to.add(first.len()), second.len());
            }
        }
        self.ring.take(1);
        self.ring.give_back(head, bytes);
        Ok(())
    }

    /// Publishes the put frames, and wakes the driver if it sleeps.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Fault> {
        self.ring.publish();
        if self.ring.memory().is_broken() { Err(Fault::RegionShrunk) } else { Ok(()) }
    }

    /// Puts a frame into a chain of several buffers, or into several chains.
    #[cold]
    fn put_pieces(&mut self, first: View<'_>, second: View<'_>) -> Result<(), PutError> {
        let mut pieces = [(std::ptr::null_mut(), 0); CHAIN_MAX];
        // Per chain: its first descriptor, and the number of pieces up to its end.
        let mut chains = [(0, 0); CHAIN_MAX];
        let (mut room, mut count, mut chain) = (0, 0, 0);
        let wanted = (first.len() + second.len()) as u64 + u64::from(self.header_bytes);
        while room < wanted {
            if chain == CHAIN_MAX || (chain > 0 && !self.merges) {
                return Err(PutError::Refused(Refusal::TooLong));
            }
            if usize::from(self.ring.waiting(chain as u16 + 1)?) <= chain {
                return Err(PutError::Refused(Refusal::Full));
            }
            let head = self.ring.head(chain as u16)?;
            let before = count;
            count = self.walk(head, wanted - room, &mut pieces, count)?;
            room += pieces[before..count].iter().map(|&(_, bytes)| u64::from(bytes)).sum::<u64>();
            chains[chain] = (head, count);
            chain += 1;
        }
        let header = header_of(chain as u16);
        // First the header, then the frame; each may span several pieces.
        let mut sources = [View::of(&header[..self.header_bytes as usize]), first, second];
        let mut begin = 0;
        for &(head, end) in &chains[..chain] {
            let mut written = 0;
            for &(to, room) in &pieces[begin..end] {
                let mut at = 0;
                for source in &mut sources {
                    let bytes = source.len().min(room as usize - at);
                    // SAFETY: the piece was checked to be in one region, and the source has the
                    // bytes. As in `put`, an overlapping view corrupts only the driver's bytes.
                    unsafe { copy(source.start(), to.add(at), bytes) };
                    *source = source.after(bytes);
                    at += bytes;
                }
                written += at as u32;
            }
            begin = end;
            self.ring.give_back(head, written);
        }
        self.ring.take(chain as u16);
        Ok(())
    }

    /// Adds pieces of an empty chain, enough for `wanted` bytes if it has them. Returns the new
    /// number of pieces.
    fn walk(
        &self,
        head: u16,
        mut wanted: u64,
        pieces: &mut [MemoryPiece; CHAIN_MAX],
        mut count: usize,
    ) -> Result<usize, Fault> {
        let mut number = head;
        for _ in 0..CHAIN_MAX {
            let descriptor = self.ring.descriptor(number)?;
            if descriptor.flags & FLAG_WRITE == 0 || descriptor.flags & FLAG_INDIRECT != 0 {
                return Err(Fault::Chain);
            }
            let (mut address, mut left) = (descriptor.address, descriptor.length);
            while left > 0 && wanted > 0 {
                let bytes = self.ring.memory().reach(address, left);
                let start = self.ring.memory().guest(address, bytes).filter(|_| bytes > 0);
                let place = pieces.get_mut(count).ok_or(Fault::Chain)?;
                *place = (start.ok_or(Fault::BufferPlace)?, bytes);
                count += 1;
                (address, left) = (address.wrapping_add(u64::from(bytes)), left - bytes);
                wanted = wanted.saturating_sub(bytes.into());
            }
            if wanted == 0 || descriptor.flags & FLAG_NEXT == 0 {
                return Ok(count);
            }
            number = descriptor.next;
        }
        Err(Fault::Chain)
    }
}

/// Returns a header without offloads, with the number of chains of the frame.
#[inline(always)]
fn header_of(chains: u16) -> [u8; HEADER_BYTES_MAX] {
    let mut header = [0; HEADER_BYTES_MAX];
    header[10..].copy_from_slice(&chains.to_le_bytes());
    header
}
