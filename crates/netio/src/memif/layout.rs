//! Layout of shared memory: the header and descriptors of a ring, and the single region that our
//! client creates.
//!
//! - A ring is a header of two cache lines (cookie, flags and head; tail) and an array of 16-byte
//!   descriptors.
//! - In our region the rings are first, those to the server before those to the client. The buffers
//!   follow.
//! - The distance between buffers distributes their starts over all sets of a cache. At the usual
//!   distance of 2048 bytes, the short frames of a whole ring would share one set in 32 and evict
//!   each other.

use super::protocol::{AddRing, Direction};

/// The number at the start of every ring.
pub const COOKIE: u32 = 0x03e3_1f20;

/// Bytes before the first descriptor of a ring.
pub const HEADER_BYTES: usize = 128;

/// Offset of the flags in the header.
pub const FLAGS_AT: usize = 4;

/// Offset of the head in the header.
pub const HEAD_AT: usize = 6;

/// Offset of the tail in the header.
pub const TAIL_AT: usize = 64;

/// Ring flag: the receiver polls and needs no eventfd signal.
pub const FLAG_AWAKE: u16 = 1;

/// Bytes of a descriptor.
pub const DESCRIPTOR_BYTES: usize = 16;

/// Alignment of a ring, so that its descriptors are aligned.
pub const RING_ALIGNMENT: usize = 16;

/// Binary logarithm of the slots of the largest ring.
pub const SLOTS_LOG2_MAX: u8 = 14;

/// Maximum number of rings per direction.
pub const QUEUES_MAX: u16 = 64;

/// Maximum number of bytes of all regions of a connection together.
pub const REGION_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a small page, the alignment of our buffers.
const PAGE_BYTES: usize = 4096;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Returns the bytes of a ring.
pub fn ring_bytes(slots_log2: u8) -> usize {
    HEADER_BYTES + (DESCRIPTOR_BYTES << slots_log2)
}

/// Numbers and sizes of a client's rings and buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rings to the server.
    pub to_server: u16,
    /// Rings to the client.
    pub to_client: u16,
    /// Binary logarithm of the slots of each ring.
    pub slots_log2: u8,
    /// Bytes of a buffer.
    pub buffer_bytes: u32,
}

impl Shape {
    /// Returns the slots of each ring.
    pub fn slots(&self) -> usize {
        1 << self.slots_log2
    }

    /// Returns the distance between the starts of buffers: an odd number of cache lines.
    pub fn buffer_stride(&self) -> usize {
        ((self.buffer_bytes as usize).div_ceil(LINE_BYTES) | 1) * LINE_BYTES
    }

    /// Returns all rings in the order of their offsets and messages.
    pub fn rings(&self) -> impl Iterator<Item = AddRing> + '_ {
        let to_server = (0..self.to_server).map(|index| (Direction::ToServer, index));
        let to_client = (0..self.to_client).map(|index| (Direction::ToClient, index));
        to_server.chain(to_client).enumerate().map(|(place, (direction, index))| AddRing {
            direction,
            index,
            region: 0,
            offset: (place * self.ring_stride()) as u32,
            slots_log2: self.slots_log2,
            private_bytes: 0,
        })
    }

    /// Returns the offset of the first buffer of a ring; the others follow at
    /// [`Shape::buffer_stride`].
    pub fn buffers_at(&self, direction: Direction, index: u16) -> usize {
        let place = match direction {
            Direction::ToServer => usize::from(index),
            Direction::ToClient => usize::from(self.to_server) + usize::from(index),
        };
        self.buffers_start() + place * self.slots() * self.buffer_stride()
    }

    /// Returns the bytes of the region.
    pub fn bytes(&self) -> usize {
        self.buffers_start() + self.ring_count() * self.slots() * self.buffer_stride()
    }

    fn ring_count(&self) -> usize {
        usize::from(self.to_server) + usize::from(self.to_client)
    }

    fn ring_stride(&self) -> usize {
        ring_bytes(self.slots_log2).next_multiple_of(HEADER_BYTES)
    }

    fn buffers_start(&self) -> usize {
        (self.ring_count() * self.ring_stride()).next_multiple_of(PAGE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_region_are_inside_and_do_not_overlap() {
        for (to_server, to_client, slots_log2, buffer_bytes) in
            [(1, 1, 10, 2048), (3, 2, 0, 64), (1, 2, 14, 9216), (2, 5, 3, 100)]
        {
            let shape = Shape { to_server, to_client, slots_log2, buffer_bytes };
            let mut ranges: Vec<(usize, usize)> = Vec::new();
            for ring in shape.rings() {
                let start = ring.offset as usize;
                assert_eq!(start % RING_ALIGNMENT, 0);
                ranges.push((start, start + ring_bytes(slots_log2)));
                let buffers = shape.buffers_at(ring.direction, ring.index);
                for slot in 0..shape.slots() {
                    let start = buffers + slot * shape.buffer_stride();
                    ranges.push((start, start + buffer_bytes as usize));
                }
            }
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{shape:?}");
            assert!(ranges.last().is_some_and(|last| last.1 <= shape.bytes()));
        }
    }

    #[test]
    fn short_frames_of_a_ring_are_distributed_over_cache_sets() {
        let shape = Shape { to_server: 1, to_client: 1, slots_log2: 10, buffer_bytes: 2048 };
        let sets = 1024;
        let used: std::collections::HashSet<usize> = (0..shape.slots())
            .map(|slot| slot * shape.buffer_stride() / LINE_BYTES % sets)
            .collect();
        assert_eq!(used.len(), sets);
    }
}
