//! The device's sending end of a ring: copies frames into chains that the driver left empty.
//!
//! A frame goes into one chain, or, where the driver agreed to it (VIRTIO_NET_F_MRG_RXBUF), into as
//! many as it needs. Nothing is taken from the ring for a frame that does not fit, and nothing is seen by
//! the driver before [`TransmitEnd::flush`].

#![allow(unsafe_code)]

use super::ring::{CHAIN_MAX, FLAG_INDIRECT, FLAG_NEXT, FLAG_WRITE, Ring};
use crate::memif::copy::copy;
use crate::memif::fault::Fault;
use crate::memif::transmit::{Refusal, Stop};
use crate::memif::view::View;

/// Bytes of a header with the number of chains (VIRTIO 1.2, 5.1.6), the longest there is.
const HEADER_BYTES_MAX: usize = 12;

/// The sending end of a ring.
pub struct TransmitEnd {
    ring: Ring,
    header_bytes: u32,
    /// Whether a frame may lie in several chains.
    merges: bool,
}

/// A piece of an empty chain, checked to be inside the driver's memory.
type Piece = (*mut u8, u32);

impl TransmitEnd {
    /// The sending end of this ring, whose frames follow headers of so many bytes.
    pub fn new(ring: Ring, header_bytes: u32, merges: bool) -> Self {
        TransmitEnd { ring, header_bytes, merges }
    }

    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Puts a frame of two parts into the next empty chain.
    #[inline(always)]
    pub fn put(&mut self, first: View<'_>, second: View<'_>) -> Result<(), Stop> {
        if self.ring.waiting(1)? == 0 {
            return Err(Stop::Refused(Refusal::Full));
        }
        let head = self.ring.head(0)?;
        let descriptor = self.ring.descriptor(head)?;
        let header = self.header_bytes;
        let bytes = (first.len() + second.len()) as u64 + u64::from(header);
        if descriptor.flags != FLAG_WRITE || u64::from(descriptor.length) < bytes {
            return self.put_pieces(first, second);
        }
        // No more is asked for than is used: the rest of the buffer may lie in another region.
        let bytes = bytes as u32;
        let Some(to) = self.ring.memory().guest(descriptor.address, bytes) else {
            return self.put_pieces(first, second);
        };
        let written = header_of(1);
        // SAFETY: the buffer was checked to be inside one region for header and frame together; a
        // header is at least as long as what is copied of it; a view may lie there too only if the
        // driver lent the same memory twice, and then these copies garble its own bytes.
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

    /// Shows the driver what was put, and wakes it if it sleeps.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Fault> {
        self.ring.publish();
        if self.ring.memory().is_broken() { Err(Fault::RegionShrunk) } else { Ok(()) }
    }

    /// Puts a frame into a chain of several buffers, or into several chains.
    #[cold]
    fn put_pieces(&mut self, first: View<'_>, second: View<'_>) -> Result<(), Stop> {
        let mut pieces = [(std::ptr::null_mut(), 0); CHAIN_MAX];
        // Of each chain: where it begins, and how many pieces there are with it.
        let mut chains = [(0, 0); CHAIN_MAX];
        let (mut room, mut count, mut chain) = (0, 0, 0);
        let wanted = (first.len() + second.len()) as u64 + u64::from(self.header_bytes);
        while room < wanted {
            if chain == CHAIN_MAX || (chain > 0 && !self.merges) {
                return Err(Stop::Refused(Refusal::TooLong));
            }
            if usize::from(self.ring.waiting(chain as u16 + 1)?) <= chain {
                return Err(Stop::Refused(Refusal::Full));
            }
            let head = self.ring.head(chain as u16)?;
            let before = count;
            count = self.walk(head, wanted - room, &mut pieces, count)?;
            room += pieces[before..count].iter().map(|&(_, bytes)| u64::from(bytes)).sum::<u64>();
            chains[chain] = (head, count);
            chain += 1;
        }
        let header = header_of(chain as u16);
        // Header first, then the frame: either may go over several pieces.
        let mut sources = [View::of(&header[..self.header_bytes as usize]), first, second];
        let mut begin = 0;
        for &(head, end) in &chains[..chain] {
            let mut written = 0;
            for &(to, room) in &pieces[begin..end] {
                let mut at = 0;
                for source in &mut sources {
                    let bytes = source.len().min(room as usize - at);
                    // SAFETY: the piece was checked to lie in one region, and the source has the
                    // bytes; as in `put`, a view that lies there too garbles the driver's own.
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

    /// Adds pieces of an empty chain, at least as many as `wanted` bytes need if it has them; how
    /// many pieces there are then.
    fn walk(
        &self,
        head: u16,
        mut wanted: u64,
        pieces: &mut [Piece; CHAIN_MAX],
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

/// A header that asks for nothing and says in how many chains the frame is.
#[inline(always)]
fn header_of(chains: u16) -> [u8; HEADER_BYTES_MAX] {
    let mut header = [0; HEADER_BYTES_MAX];
    header[10..].copy_from_slice(&chains.to_le_bytes());
    header
}
