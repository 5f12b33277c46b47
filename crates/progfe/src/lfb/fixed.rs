//! Operands that are read at fixed places.
//!
//! A field of the first header is at the same place in every frame if what is before it is always as
//! long; then nothing has to be located. [`Reader`] gives the same numbers as [`Packet::number`].

use super::{Packet, Slots};
use crate::condition::Operand;
use crate::frames::{FormatId, FrameSet, Part, bits};

/// How an operand is read.
#[derive(Debug, Clone)]
pub enum Reader {
    /// From a slot of metadata.
    Slot(usize),
    /// From the bits at a place of frames that begin with a format and are as long as its header.
    Place {
        /// The format.
        start: FormatId,
        /// Bytes of its header.
        header: usize,
        /// The first bit.
        at: usize,
        /// How many.
        bits: usize,
        /// What it is, for frames that begin otherwise.
        operand: Operand,
    },
    /// As the frame's headers say.
    Located(Operand),
}

impl Reader {
    /// How an operand is read.
    pub fn of(operand: &Operand, frames: &FrameSet, slots: &Slots) -> Reader {
        let fixed = match operand {
            Operand::Meta { id, .. } => slots.slot(*id).map(Reader::Slot),
            Operand::Field { .. } => Reader::place(operand, frames),
        };
        fixed.unwrap_or_else(|| Reader::Located(operand.clone()))
    }

    fn place(operand: &Operand, frames: &FrameSet) -> Option<Reader> {
        let Operand::Field { at: reference, .. } = operand else { return None };
        let Part::Item(item) = reference.part else { return None };
        let start = frames.start.filter(|it| (*it, 0) == (reference.format, reference.instance))?;
        let format = frames.format(start);
        // Such a header is there if, and only if, the frame has as many bytes.
        let is_plain = format.total.is_none()
            && format.items.iter().all(|it| it.field().is_some_and(|field| field.is.is_none()));
        let header = format.fixed_offset(format.items.len() as u16)?.div_ceil(8) as usize;
        let at = format.fixed_offset(item)? as usize;
        let bits = format.items[usize::from(item)].field()?.number_bits()? as usize;
        let operand = operand.clone();
        is_plain.then_some(Reader::Place { start, header, at, bits, operand })
    }

    /// The number that the operand holds.
    #[inline]
    pub fn number(&self, packet: &mut Packet, frames: &FrameSet, slots: &Slots) -> Option<u128> {
        match self {
            Reader::Slot(slot) => packet.meta.get(*slot),
            Reader::Place { start, header, at, bits, .. } if packet.start() == Some(*start) => {
                let bytes = packet.bytes();
                (bytes.len() >= *header).then(|| bits::read(bytes, *at, *bits)).flatten()
            }
            Reader::Place { operand, .. } | Reader::Located(operand) => {
                packet.number(operand, frames, slots)
            }
        }
    }
}
