//! Memory that live ports share with their programs, and its layout.
//!
//! Frames are in byte rings. A record starts at its position modulo the ring's length and is
//! contiguous: it may extend into the bytes after the ring. Records are padded to whole words.
//! Positions only grow; each is written by one side.

use std::io;

use ebpf::SharedMemory;

use crate::departure::{ChecksumPlace, SendSchedule, StampPlace};

/// Maximum number of live ports in one process: a power of two. A run opens the ports of all its
/// targets.
pub(super) const SLOTS: usize = 64;

/// Bytes of the longest frame that a port sends.
pub(super) const SENT_BYTES_MAX: usize = 1514;

/// Bytes of the longest frame that a port receives.
pub(super) const RECEIVED_BYTES_MAX: usize = 2000;

/// Bytes of an Ethernet header without tags, the shortest frame.
pub(super) const HEADER_BYTES: usize = 14;

/// Bytes of a ring of frames to send: 1,724 different frames of 60 bytes, or 163 of 1,514.
pub(super) const SEND_RING_BYTES: usize = 1 << 18;

/// Result of a frame that was not sent because it was too late. Other results are the time at which
/// the frame left, or 0 if it was rejected.
pub(super) const TOO_LATE: u64 = 1;

/// Frames of a slot without a known result, at most: this many results fit into their ring.
pub(super) const RESULTS: usize = 1 << 11;

/// Bytes of a ring of received frames: 26,214 frames of 60 bytes.
pub(super) const RECEIVE_RING_BYTES: usize = 1 << 21;

/// Bytes after a ring, for the end of its last record.
const BEHIND: usize = 2048;

/// Distance of the rings of frames to send.
pub(super) const SEND_RING_DISTANCE: usize = SEND_RING_BYTES + BEHIND;

/// Offsets in the memory for control.
pub(super) mod control {
    /// Number of slots that send in turn.
    pub const COUNT: usize = 0;
    /// Turn of the last frame. Only the program uses it.
    pub const TURN: usize = 64;
    /// The numbers of these slots: two in a word.
    pub const TURNS: usize = 128;
    /// Positions of the first slot.
    pub const SLOT: usize = TURNS + 4 * super::SLOTS;
    /// Distance of the slots.
    pub const SLOT_BYTES: usize = 128;
    /// In a slot, the position after the last frame.
    pub const PRODUCED: usize = SLOT;
    /// In a slot, the position of the next frame to send, which the program writes.
    pub const CONSUMED: usize = SLOT + 64;
    /// In a slot, the number of frames that were sent or rejected, which the program writes.
    pub const DONE: usize = SLOT + 72;
    /// Length of the memory.
    pub const BYTES: usize = SLOT + super::SLOTS * SLOT_BYTES;
}

/// Offsets in the record of a frame to send. The program changes the fields that differ in the
/// next repetition of the frame.
pub(super) mod sent {
    /// Length of the frame: 4 bytes.
    pub const LENGTH: usize = 0;
    /// Offset of number and send time in the frame, or 0: 2 bytes.
    pub const STAMP_AT: usize = 4;
    /// Offset of the checksum in the frame, or 0: 2 bytes.
    pub const CHECKSUM_AT: usize = 6;
    /// When the frame is due.
    pub const DUE: usize = 8;
    /// Number of frames that are left: 4 bytes.
    pub const FRAMES: usize = 16;
    /// How late the frame may leave in nanoseconds, or the maximum for no limit: 4 bytes.
    pub const SLACK: usize = 20;
    /// Number, key and seed of the frame.
    pub const NUMBER: usize = 24;
    pub const KEY: usize = 32;
    pub const SEED: usize = 40;
    /// Sum of the checksum: 4 bytes.
    pub const SUM: usize = 48;
    /// Replacement for a checksum of zero: 4 bytes.
    pub const ZERO: usize = 52;
    /// Time to the next frame, in nanoseconds and parts of one.
    pub const GAP: usize = 56;
    pub const GAP_REST: usize = 64;
    pub const GAP_PARTS: usize = 72;
    pub const GAP_CARRIED: usize = 80;
    /// The frame.
    pub const BYTES: usize = 88;
}

/// Offsets in the memory for received frames.
pub(super) mod arrivals {
    /// Position after the last frame, which the program writes.
    pub const PRODUCED: usize = 0;
    /// Frames that found the ring full, which the program counts.
    pub const LOST: usize = 8;
    /// Frames that are too long, which the program counts.
    pub const TOO_LONG: usize = 16;
    /// Position of the next frame to receive.
    pub const CONSUMED: usize = 64;
    /// The ring.
    pub const RING: usize = 128;
}

/// Offsets in the record of a received frame.
pub(super) mod received {
    /// Length of the frame: 4 bytes.
    pub const LENGTH: usize = 0;
    /// When the frame arrived.
    pub const ARRIVED: usize = 8;
    /// The frame.
    pub const BYTES: usize = 16;
}

/// Returns the length of a record whose frame of this length is at offset `at`.
#[inline]
pub(super) fn record_bytes(at: usize, frame_bytes: usize) -> u64 {
    (at + frame_bytes).next_multiple_of(8) as u64
}

/// Returns the part of a record before a frame of this length.
#[inline]
pub(super) fn record_head(frame_bytes: usize, departure: &SendSchedule) -> [u8; sent::BYTES] {
    let mut head = [0; sent::BYTES];
    let mut put = |at: usize, value: &[u8]| head[at..at + value.len()].copy_from_slice(value);
    let SendSchedule { due, slack, frames, gap, stamp } = departure;
    put(sent::LENGTH, &(frame_bytes as u32).to_ne_bytes());
    put(sent::DUE, &due.0.to_ne_bytes());
    put(sent::FRAMES, &frames.to_ne_bytes());
    put(sent::SLACK, &u32::try_from(slack.0).unwrap_or(u32::MAX).to_ne_bytes());
    if *frames > 1 {
        put(sent::GAP, &gap.whole.to_ne_bytes());
        put(sent::GAP_REST, &gap.rest.to_ne_bytes());
        // Without a rest nothing is ever carried.
        put(sent::GAP_PARTS, &gap.parts.max(1).to_ne_bytes());
        put(sent::GAP_CARRIED, &gap.carried.to_ne_bytes());
    }
    if let Some(StampPlace { at, number, key, seed, checksum }) = stamp {
        put(sent::STAMP_AT, &(*at as u16).to_ne_bytes());
        put(sent::NUMBER, &number.to_ne_bytes());
        put(sent::KEY, &key.to_ne_bytes());
        put(sent::SEED, &seed.to_ne_bytes());
        if let Some(ChecksumPlace { at, sum, zero }) = checksum {
            put(sent::CHECKSUM_AT, &(*at as u16).to_ne_bytes());
            put(sent::SUM, &u32::from(*sum).to_ne_bytes());
            put(sent::ZERO, &u32::from(*zero).to_ne_bytes());
        }
    }
    head
}

/// Creates the memory for received frames.
pub(super) fn create_arrivals() -> io::Result<SharedMemory> {
    SharedMemory::new(arrivals::RING + RECEIVE_RING_BYTES + BEHIND)
}

/// Memory for sending, which all slots share.
#[derive(Debug)]
pub(super) struct SendMemory {
    pub control: SharedMemory,
    /// A ring of frames per slot.
    pub frames: SharedMemory,
    /// A ring of results per slot.
    pub results: SharedMemory,
}

impl SendMemory {
    pub(super) fn create() -> io::Result<SendMemory> {
        Ok(SendMemory {
            control: SharedMemory::new(control::BYTES)?,
            frames: SharedMemory::new(SLOTS * SEND_RING_DISTANCE)?,
            results: SharedMemory::new(8 * SLOTS * RESULTS)?,
        })
    }
}
