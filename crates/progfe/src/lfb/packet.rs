//! A packet in the graph: bytes, metadata and header positions.
//!
//! - Each metadata item has a fixed slot from [`Slots`], so blocks need no search.
//! - Headers are located on demand, and again after the bytes changed.
//! - After a link-layer header was removed, the bytes start with another format, which `start`
//!   contains.

use forces::Catalog;
use packet::frame::Frame;
use packet::time::Nanos;

use crate::condition::{Facts, Operand};
use crate::frames::{FormatId, FrameSet, Located};

/// Maximum number of metadata items in a program's libraries.
pub const METADATA_MAX: usize = 64;

/// Slots of metadata items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    ids: Vec<u32>,
}

impl Slots {
    /// Assigns a slot to each metadata item of a catalog. Returns `None` if there are more than
    /// [`METADATA_MAX`].
    pub fn of(catalog: &Catalog) -> Option<Slots> {
        let mut ids: Vec<u32> = catalog.all_metadata().map(|metadata| metadata.id).collect();
        ids.sort_unstable();
        (ids.len() <= METADATA_MAX).then_some(Slots { ids })
    }

    /// Returns the slot of a metadata item.
    #[inline]
    pub fn slot(&self, id: u32) -> Option<usize> {
        // The ids of RFC 6956 start with 1 and have no gaps.
        let guess = (id as usize).wrapping_sub(1);
        if self.ids.get(guess) == Some(&id) {
            return Some(guess);
        }
        self.ids.binary_search(&id).ok()
    }

    /// Returns the metadata ids in slot order.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

/// Values of metadata: numbers, or addresses as big-endian numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    set: u64,
    values: Vec<u128>,
}

impl Meta {
    /// Returns the value in a slot, if it is set.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<u128> {
        (self.set >> slot & 1 == 1).then(|| self.values[slot])
    }

    /// Sets a slot.
    #[inline]
    pub fn set(&mut self, slot: usize, value: u128) {
        self.values[slot] = value;
        self.set |= 1 << slot;
    }

    /// Clears a slot.
    #[inline]
    pub fn clear(&mut self, slot: usize) {
        self.set &= !(1 << slot);
    }

    /// Returns the values that are set, in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u128)> + '_ {
        (0..self.values.len()).filter_map(|slot| Some((slot, self.get(slot)?)))
    }
}

/// A packet in the graph.
#[derive(Debug)]
pub struct Packet {
    /// Bytes of the packet.
    frame: Frame,
    /// Metadata that blocks set.
    pub meta: Meta,
    /// Format of the first byte; none if unknown.
    start: Option<FormatId>,
    located: Option<Located>,
    /// Receive time.
    pub came: Nanos,
    /// Generation of the program that it entered.
    pub generation: u64,
}

impl Packet {
    /// Creates an empty packet.
    pub fn new(slots: &Slots) -> Packet {
        let meta = Meta { set: 0, values: vec![0; slots.ids.len()] };
        let (frame, came) = (Frame::default(), Nanos::ZERO);
        Packet { frame, meta, start: None, located: None, came, generation: 0 }
    }

    /// Takes a received frame by swapping buffers.
    pub fn begin(&mut self, frame: &mut Frame, start: Option<FormatId>, slots: usize, came: Nanos) {
        std::mem::swap(&mut self.frame, frame);
        self.meta.set = 0;
        self.meta.values.resize(slots, 0);
        (self.start, self.located, self.came) = (start, None, came);
    }

    /// Copies another packet.
    pub fn copy_from(&mut self, other: &Packet) {
        self.frame.copy_from(&other.frame);
        self.meta.clone_from(&other.meta);
        self.located.clone_from(&other.located);
        (self.start, self.came, self.generation) = (other.start, other.came, other.generation);
    }

    /// Returns the bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// Returns the frame.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Returns the frame, mutable. Headers are located again afterwards.
    pub fn frame_mut(&mut self) -> &mut Frame {
        self.located = None;
        &mut self.frame
    }

    /// Returns the format of the first byte.
    pub fn start(&self) -> Option<FormatId> {
        self.start
    }

    /// Locates the headers.
    pub fn located(&mut self, frames: &FrameSet) -> &Located {
        let Packet { frame, start, located, .. } = self;
        located.get_or_insert_with(|| frames.locate_from(*start, frame.bytes()))
    }

    /// Removes the first bytes. The packet then starts with the header at that position.
    pub fn strip(&mut self, count: usize, frames: &FrameSet) -> bool {
        let told = self.start.and_then(|start| frames.told(start, self.bytes(), count));
        let inner = told.unwrap_or_else(|| {
            let headers = &self.located(frames).headers;
            headers.iter().find(|header| header.at == count).map(|header| header.format)
        });
        let done = self.frame_mut().remove(0, count);
        if done {
            self.start = inner;
        }
        done
    }

    /// Prepends a header; the frame then starts with the start format of the set. Returns false
    /// without room.
    pub fn prepend(&mut self, header: &[u8], frames: &FrameSet) -> bool {
        let frame = self.frame_mut();
        if !frame.insert(0, header.len()) {
            return false;
        }
        frame.bytes_mut()[..header.len()].copy_from_slice(header);
        self.start = frames.start;
        true
    }

    /// Returns a metadata item, if it is set.
    #[inline]
    pub fn meta(&self, slots: &Slots, id: u32) -> Option<u128> {
        self.meta.get(slots.slot(id)?)
    }

    /// Sets a metadata item, if a library defines it.
    #[inline]
    pub fn set_meta(&mut self, slots: &Slots, id: u32, value: u128) {
        if let Some(slot) = slots.slot(id) {
            self.meta.set(slot, value);
        }
    }

    /// Calls a function with the inputs of conditions.
    pub fn facts<R>(
        &mut self,
        frames: &FrameSet,
        slots: &Slots,
        ask: impl FnOnce(&Facts<'_>) -> R,
    ) -> R {
        self.located(frames);
        let (Some(located), meta) = (&self.located, &self.meta) else {
            unreachable!("the field was located before")
        };
        let read = |id: u32| meta.get(slots.slot(id)?);
        ask(&Facts { bytes: self.frame.bytes(), located, meta: &read })
    }

    /// Returns the number of an operand.
    pub fn number(&mut self, operand: &Operand, frames: &FrameSet, slots: &Slots) -> Option<u128> {
        match operand {
            Operand::Meta { id, .. } => self.meta(slots, *id),
            Operand::Field { .. } => self.facts(frames, slots, |facts| facts.number(operand)),
        }
    }
}
