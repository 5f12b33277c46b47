//! A frame under way: bytes, metadata, where its headers are.
//!
//! Metadata lie side by side, each in the slot that [`Slots`] has for its number, so that no block
//! searches for them. Headers are located when somebody asks, and again after the bytes changed. Once
//! a link-layer header is taken off, bytes begin with another format: `start` says with which.

use forces::Catalog;
use packet::frame::Frame;
use packet::time::Nanos;

use crate::condition::{Facts, Operand};
use crate::frames::{FormatId, FrameSet, Located};

/// Metadata that a program's libraries may define.
pub const METADATA_MAX: usize = 64;

/// Which metadatum is where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slots {
    ids: Vec<u32>,
}

impl Slots {
    /// A slot for each metadatum of a catalog; `None` if there are more than [`METADATA_MAX`].
    pub fn of(catalog: &Catalog) -> Option<Slots> {
        let mut ids: Vec<u32> = catalog.all_metadata().map(|metadata| metadata.id).collect();
        ids.sort_unstable();
        (ids.len() <= METADATA_MAX).then_some(Slots { ids })
    }

    /// The slot of a metadatum.
    #[inline]
    pub fn slot(&self, id: u32) -> Option<usize> {
        // The numbers of RFC 6956 begin with 1 and have no gaps.
        let guess = (id as usize).wrapping_sub(1);
        if self.ids.get(guess) == Some(&id) {
            return Some(guess);
        }
        self.ids.binary_search(&id).ok()
    }

    /// Metadata in the order of their slots.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

/// Values of metadata: numbers, addresses as numbers with the first octet first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    set: u64,
    values: Vec<u128>,
}

impl Meta {
    /// The value in a slot, if it is set.
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

    /// Empties a slot.
    #[inline]
    pub fn clear(&mut self, slot: usize) {
        self.set &= !(1 << slot);
    }

    /// What is set, in the order of the slots.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u128)> + '_ {
        (0..self.values.len()).filter_map(|slot| Some((slot, self.get(slot)?)))
    }
}

/// A frame under way.
#[derive(Debug)]
pub struct Packet {
    /// Its bytes.
    frame: Frame,
    /// What blocks said about it.
    pub meta: Meta,
    /// The format of its first byte; none if that is not known.
    start: Option<FormatId>,
    located: Option<Located>,
    /// When the element got it.
    pub came: Nanos,
    /// The generation of the program that it entered.
    pub generation: u64,
}

impl Packet {
    /// An empty one.
    pub fn new(slots: &Slots) -> Packet {
        let meta = Meta { set: 0, values: vec![0; slots.ids.len()] };
        let (frame, came) = (Frame::default(), Nanos::ZERO);
        Packet { frame, meta, start: None, located: None, came, generation: 0 }
    }

    /// Makes it a frame that just came, by swapping buffers.
    pub fn begin(&mut self, frame: &mut Frame, start: Option<FormatId>, slots: usize, came: Nanos) {
        std::mem::swap(&mut self.frame, frame);
        self.meta.set = 0;
        self.meta.values.resize(slots, 0);
        (self.start, self.located, self.came) = (start, None, came);
    }

    /// Makes it the same as another.
    pub fn copy_from(&mut self, other: &Packet) {
        self.frame.copy_from(&other.frame);
        self.meta.clone_from(&other.meta);
        self.located.clone_from(&other.located);
        (self.start, self.came, self.generation) = (other.start, other.came, other.generation);
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// The frame.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The frame, to be changed: headers are located anew afterwards.
    pub fn frame_mut(&mut self) -> &mut Frame {
        self.located = None;
        &mut self.frame
    }

    /// The format of its first byte.
    pub fn start(&self) -> Option<FormatId> {
        self.start
    }

    /// Where its headers are.
    pub fn located(&mut self, frames: &FrameSet) -> &Located {
        let Packet { frame, start, located, .. } = self;
        located.get_or_insert_with(|| frames.locate_from(*start, frame.bytes()))
    }

    /// Takes the first bytes off; what is left begins with the header that stood there.
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

    /// Puts a header in front; the frame begins as frames of the set do. False without room.
    pub fn prepend(&mut self, header: &[u8], frames: &FrameSet) -> bool {
        let frame = self.frame_mut();
        if !frame.insert(0, header.len()) {
            return false;
        }
        frame.bytes_mut()[..header.len()].copy_from_slice(header);
        self.start = frames.start;
        true
    }

    /// A metadatum, if it is set.
    #[inline]
    pub fn meta(&self, slots: &Slots, id: u32) -> Option<u128> {
        self.meta.get(slots.slot(id)?)
    }

    /// Sets a metadatum, if any library defines it.
    #[inline]
    pub fn set_meta(&mut self, slots: &Slots, id: u32, value: u128) {
        if let Some(slot) = slots.slot(id) {
            self.meta.set(slot, value);
        }
    }

    /// What conditions ask for.
    pub fn facts<R>(
        &mut self,
        frames: &FrameSet,
        slots: &Slots,
        ask: impl FnOnce(&Facts<'_>) -> R,
    ) -> R {
        self.located(frames);
        let (Some(located), meta) = (&self.located, &self.meta) else {
            unreachable!("it was located just now")
        };
        let read = |id: u32| meta.get(slots.slot(id)?);
        ask(&Facts { bytes: self.frame.bytes(), located, meta: &read })
    }

    /// The number that an operand holds.
    pub fn number(&mut self, operand: &Operand, frames: &FrameSet, slots: &Slots) -> Option<u128> {
        match operand {
            Operand::Meta { id, .. } => self.meta(slots, *id),
            Operand::Field { .. } => self.facts(frames, slots, |facts| facts.number(operand)),
        }
    }
}
