//! Operands at fixed offsets.
//!
//! A field of the first header has the same offset in every frame if all parts before it have a
//! fixed length. Such a read needs no header parsing. [`Reader`] returns the same numbers as
//! [`Packet::number`].

use super::{Packet, Slots};
use crate::condition::Operand;
use crate::frames::{FormatId, FrameSet, Part, bits};

/// How to read an operand.
#[derive(Debug, Clone)]
pub enum Reader {
    /// From a metadata slot.
    Slot(usize),
    /// From fixed bits of frames that start with a format and contain its whole header.
    Place {
        /// Start format.
        start: FormatId,
        /// Bytes of its header.
        header: usize,
        /// First bit.
        at: usize,
        /// Number of bits.
        bits: usize,
        /// The operand, for frames with another start format.
        operand: Operand,
    },
    /// By parsing the headers of the frame.
    Located(Operand),
}

impl Reader {
    /// Determines how to read an operand.
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
        // Such a header is present if and only if the frame has enough bytes.
        let is_plain = format.total.is_none()
            && format.items.iter().all(|it| it.field().is_some_and(|field| field.is.is_none()));
        let header = format.fixed_offset(format.items.len() as u16)?.div_ceil(8) as usize;
        let at = format.fixed_offset(item)? as usize;
        let bits = format.items[usize::from(item)].field()?.number_bits()? as usize;
        let operand = operand.clone();
        is_plain.then_some(Reader::Place { start, header, at, bits, operand })
    }

    /// Reads the number of the operand.
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
