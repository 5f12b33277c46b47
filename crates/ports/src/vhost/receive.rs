//! The device's receiving end of a ring: chains that the driver filled, each a header and a frame.
//!
//! A chain is walked once, by copies of its descriptors, and found to be inside the driver's memory
//! before anything of it is touched. Most frames lie in one piece and are shown there; others are put
//! together first. What is shown is read by copying ([`View`]), and the chain is given back after that.

#![allow(unsafe_code)]

use packet::frame::FRAME_BYTES_MAX;

use super::ring::{CHAIN_MAX, FLAG_INDIRECT, FLAG_NEXT, FLAG_WRITE, Ring};
use crate::memif::copy::{copy, will_read};
use crate::memif::fault::Fault;
use crate::memif::view::View;

/// Chains that are looked up before the first of them is read.
const BURST: usize = 32;

/// The receiving end of a ring.
pub struct ReceiveEnd {
    ring: Ring,
    /// Bytes of the header before each frame, none of which matters without offloads.
    header_bytes: u32,
    /// A frame of several pieces, put together.
    joined: Vec<u8>,
}

/// What a look at a ring gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Frames that were shown.
    pub frames: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that were longer than any may be.
    pub too_long: u64,
    /// Why it ended, if the driver broke a rule.
    pub fault: Option<Fault>,
}

/// A chain that was looked up.
#[derive(Clone, Copy)]
struct Found {
    head: u16,
    bytes: u32,
    /// Where the whole frame is; null for one of several pieces.
    start: *const u8,
}

/// A piece of a frame, checked to be inside the driver's memory.
type Piece = (*const u8, u32);

impl ReceiveEnd {
    /// The receiving end of this ring, whose frames follow headers of so many bytes.
    pub fn new(ring: Ring, header_bytes: u32) -> Self {
        ReceiveEnd { ring, header_bytes, joined: Vec::new() }
    }

    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Shows at most `limit` frames and gives them back.
    #[inline]
    pub fn take(&mut self, limit: usize, mut see: impl FnMut(View<'_>)) -> Taken {
        let mut taken = Taken::default();
        while taken.frames < limit && taken.fault.is_none() {
            let wanted = (limit - taken.frames).min(BURST);
            let waiting = match self.ring.waiting(wanted as u16) {
                Ok(0) => break,
                Ok(waiting) => usize::from(waiting).min(wanted),
                Err(fault) => {
                    taken.fault = Some(fault);
                    break;
                }
            };
            self.burst(waiting, &mut taken, &mut see);
        }
        self.ring.publish();
        taken
    }

    /// Takes `count` chains, which wait.
    #[inline(always)]
    fn burst(&mut self, count: usize, taken: &mut Taken, see: &mut impl FnMut(View<'_>)) {
        let nothing = Found { head: 0, bytes: 0, start: std::ptr::null() };
        let mut found = [nothing; BURST];
        let mut good = 0;
        for place in found.iter_mut().take(count) {
            match self.look(good as u16) {
                Ok(chain) => *place = chain,
                // What came before is good.
                Err(fault) => {
                    taken.fault = Some(fault);
                    break;
                }
            }
            good += 1;
        }
        for chain in &found[..good] {
            let bytes = chain.bytes as usize;
            if bytes > FRAME_BYTES_MAX {
                taken.too_long += 1;
            } else if !chain.start.is_null() {
                // SAFETY: the bytes were checked to lie in one region, which the ring keeps.
                see(unsafe { View::new(chain.start, bytes) });
                (taken.frames, taken.bytes) = (taken.frames + 1, taken.bytes + bytes as u64);
            } else {
                match self.join(chain.head) {
                    Ok(()) => see(View::of(&self.joined)),
                    Err(fault) => {
                        taken.fault = Some(fault);
                        return;
                    }
                }
                taken.frames += 1;
                taken.bytes += self.joined.len() as u64;
            }
            self.ring.take(1);
            self.ring.give_back(chain.head, 0);
        }
    }

    /// Looks up the chain `ahead` places on: how long its frame is, and where, if in one piece.
    #[inline(always)]
    fn look(&self, ahead: u16) -> Result<Found, Fault> {
        let head = self.ring.head(ahead)?;
        let first = self.ring.descriptor(head)?;
        let header = self.header_bytes;
        if first.flags == 0 && first.length > header {
            let start = self.ring.memory().guest(first.address, first.length);
            if let Some(start) = start {
                let start = start.wrapping_add(header as usize).cast_const();
                will_read(start);
                return Ok(Found { head, bytes: first.length - header, start });
            }
        }
        let mut pieces = [(std::ptr::null(), 0); CHAIN_MAX];
        let count = self.walk(head, &mut pieces)?;
        let bytes: u64 = pieces[..count].iter().map(|&(_, bytes)| u64::from(bytes)).sum();
        match pieces[..count] {
            [(start, bytes)] => Ok(Found { head, bytes, start }),
            _ => {
                let bytes = bytes.min(FRAME_BYTES_MAX as u64 + 1) as u32;
                Ok(Found { head, bytes, start: std::ptr::null() })
            }
        }
    }

    /// The pieces of a chain's frame, without its header; how many there are.
    #[cold]
    fn walk(&self, head: u16, pieces: &mut [Piece; CHAIN_MAX]) -> Result<usize, Fault> {
        let (mut number, mut count, mut header) = (head, 0, self.header_bytes);
        for _ in 0..CHAIN_MAX {
            let descriptor = self.ring.descriptor(number)?;
            if descriptor.flags & (FLAG_WRITE | FLAG_INDIRECT) != 0 {
                return Err(Fault::Chain);
            }
            let (mut address, mut left) = (descriptor.address, descriptor.length);
            while left > 0 {
                // A buffer may lie in several regions that follow each other.
                let bytes = self.ring.memory().reach(address, left);
                let start = self.ring.memory().guest(address, bytes).filter(|_| bytes > 0);
                let start = start.ok_or(Fault::BufferPlace)?.cast_const();
                let skipped = header.min(bytes);
                if bytes > skipped {
                    let place = pieces.get_mut(count).ok_or(Fault::Chain)?;
                    *place = (start.wrapping_add(skipped as usize), bytes - skipped);
                    count += 1;
                }
                header -= skipped;
                // Both stay in range: the bytes are inside a region, and at most what is left.
                (address, left) = (address.wrapping_add(u64::from(bytes)), left - bytes);
            }
            if descriptor.flags & FLAG_NEXT == 0 {
                return if count > 0 { Ok(count) } else { Err(Fault::BufferLength) };
            }
            number = descriptor.next;
        }
        Err(Fault::Chain)
    }

    /// Puts the frame of the chain that begins here together. It is walked anew, and may have
    /// become another since it was looked up: what is found now is what counts.
    #[cold]
    fn join(&mut self, head: u16) -> Result<(), Fault> {
        let mut pieces = [(std::ptr::null(), 0); CHAIN_MAX];
        let count = self.walk(head, &mut pieces)?;
        self.joined.clear();
        for &(start, bytes) in &pieces[..count] {
            let (at, bytes) = (self.joined.len(), bytes as usize);
            if at + bytes > FRAME_BYTES_MAX {
                return Err(Fault::BufferLength);
            }
            self.joined.resize(at + bytes, 0);
            // SAFETY: the piece was checked to lie in one region; as many bytes were just added.
            unsafe { copy(start, self.joined[at..].as_mut_ptr(), bytes) };
        }
        Ok(())
    }
}
