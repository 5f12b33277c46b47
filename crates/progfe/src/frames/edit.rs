//! Modification of frames: sets fields, pushes and pops headers, and updates lengths and checksums.
//!
//! - An [`Editor`] works on one frame. It parses the frame again after each step, so that a pushed
//!   header can be modified immediately.
//! - The `next` field of a header gives the format that follows. If two headers use the same
//!   numbers (`like`), a push or pop transfers the value. Otherwise it uses the first value that
//!   leads to the following format.
//! - Lengths of enclosing headers are updated.
//! - [`Editor::finish`] updates the checksums.

use packet::frame::Frame;

use super::bits;
use super::paths::others;
use super::{
    Expression, FieldRef, Format, FormatId, FrameSet, Header, Item, Located, On, Variable, Width,
};

/// Maximum number of bytes that one push may add.
pub const PUSH_BYTES_MAX: usize = 256;

/// Reason why a step failed. The frame is as it was before the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditFault {
    /// The header or field is absent.
    NotThere,
    /// The value has more bits than the field.
    TooWide,
    /// The frame has no room.
    NoRoom,
    /// No value in the preceding header leads to the next one.
    Unlinked,
    /// The length of a header does not follow from its presets.
    NoLength,
}

/// A frame under modification.
pub struct Editor<'a> {
    set: &'a FrameSet,
    /// Format of the first byte.
    start: Option<FormatId>,
    frame: &'a mut Frame,
    located: Located,
    /// Original sum under the checksum of each header; none for pushed headers.
    before: Vec<Option<u16>>,
}

impl<'a> Editor<'a> {
    /// Starts to modify a frame.
    pub fn new(set: &'a FrameSet, frame: &'a mut Frame) -> Self {
        Editor::from(set, set.start, frame)
    }

    /// Starts to modify a frame whose first byte has another format.
    pub fn from(set: &'a FrameSet, start: Option<FormatId>, frame: &'a mut Frame) -> Self {
        let located = set.locate_from(start, frame.bytes());
        let sums = 0..located.headers.len();
        let before = sums.map(|at| set.checksum_sum(&located, at, frame.bytes())).collect();
        Editor { set, start, frame, located, before }
    }

    /// Returns the current headers.
    pub fn located(&self) -> &Located {
        &self.located
    }

    /// Returns the current frame; its checksums are not updated yet.
    pub fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }

    /// Reads a field.
    pub fn read(&self, field: FieldRef) -> Result<u128, EditFault> {
        self.located.read(self.frame.bytes(), field).ok_or(EditFault::NotThere)
    }

    /// Sets a field.
    pub fn set(&mut self, field: FieldRef, value: u128) -> Result<(), EditFault> {
        let span = self.located.span(field).ok_or(EditFault::NotThere)?;
        if span.bits > 128 || value > bits::most(span.bits) {
            return Err(EditFault::TooWide);
        }
        bits::write(self.frame.bytes_mut(), span.at as usize, span.bits as usize, value);
        self.walk();
        Ok(())
    }

    /// Adds to a field, modulo its width. To subtract one, add all ones.
    pub fn add(&mut self, field: FieldRef, value: u128) -> Result<(), EditFault> {
        let span = self.located.span(field).ok_or(EditFault::NotThere)?;
        let sum = self.read(field)?.wrapping_add(value) & bits::most(span.bits);
        self.set(field, sum)
    }

    /// Pushes new headers after the header with index `after`, or at the front.
    pub fn push(&mut self, formats: &[FormatId], after: Option<usize>) -> Result<(), EditFault> {
        let previous = after.map(|at| self.header(at)).transpose()?.cloned();
        let follower = self.located.headers.get(after.map_or(0, |at| at + 1)).cloned();
        let mut fresh = Vec::new();
        let mut starts = Vec::new();
        for format in formats {
            starts.push(fresh.len());
            fresh.extend(self.set.blank(*format).ok_or(EditFault::NoLength)?);
        }
        let Some(last) = formats.last() else { return Ok(()) };
        if fresh.len() > PUSH_BYTES_MAX {
            return Err(EditFault::NoRoom);
        }
        for (at, pair) in formats.windows(2).enumerate() {
            let format = self.set.format(pair[0]);
            link(format, pair[1], &mut fresh[starts[at]..]).ok_or(EditFault::Unlinked)?;
        }
        // The last new header now leads to what followed.
        let told = previous.as_ref().and_then(|header| self.told_by(header));
        let tail = &mut fresh[starts[starts.len() - 1]..];
        let format = self.set.format(*last);
        let alike = previous.as_ref().is_some_and(|header| {
            self.set
                .number_space(header.format)
                .is_some_and(|space| self.set.number_space(*last) == Some(space))
        });
        match (told, &follower) {
            (Some(value), _) if alike => {
                set_next(format, value, tail).ok_or(EditFault::Unlinked)?
            }
            (_, Some(follower)) => {
                // If no value leads to it, presets or a later step determine it.
                let _ = link(format, follower.format, tail);
            }
            _ => {}
        }
        let at = previous.as_ref().map_or(0, |header| header.end);
        let mut head = self.frame.bytes()[..at].to_vec();
        if let Some(header) = &previous {
            let format = self.set.format(header.format);
            link(format, formats[0], &mut head[header.at..]).ok_or(EditFault::Unlinked)?;
        }
        let lengths = self.lengths(after.map_or(0, |at| at + 1), at, fresh.len() as i64)?;
        if !self.frame.insert(at, fresh.len()) {
            return Err(EditFault::NoRoom);
        }
        let bytes = self.frame.bytes_mut();
        bytes[..at].copy_from_slice(&head);
        bytes[at..at + fresh.len()].copy_from_slice(&fresh);
        write_lengths(bytes, &lengths);
        let place = after.map_or(0, |at| at + 1);
        let none = std::iter::repeat_n(None, formats.len());
        self.before.splice(place.min(self.before.len())..place.min(self.before.len()), none);
        let limit = previous.map_or(self.frame.len(), |header| header.limit + fresh.len());
        for (format, start) in formats.iter().zip(&starts) {
            self.own_length(*format, at + start, limit);
        }
        self.walk();
        Ok(())
    }

    /// Removes `count` headers from index `first` on. `next` is the value for the preceding header,
    /// if the headers themselves do not give it.
    pub fn pop(&mut self, first: usize, count: usize, next: Option<u128>) -> Result<(), EditFault> {
        if count == 0 {
            return Ok(());
        }
        let (start, last) = (self.header(first)?.clone(), self.header(first + count - 1)?.clone());
        let follower = self.located.headers.get(first + count).map(|header| header.format);
        let mut head = self.frame.bytes()[..start.at].to_vec();
        if let Some(previous) = first.checked_sub(1).map(|at| &self.located.headers[at]) {
            let format = self.set.format(previous.format);
            let head = &mut head[previous.at..];
            let space = self.set.number_space(previous.format);
            let alike = space.is_some() && self.set.number_space(last.format) == space;
            let value = next.or_else(|| alike.then(|| self.told_by(&last)).flatten());
            match (value, follower) {
                (Some(value), _) => set_next(format, value, head),
                (None, Some(follower)) => link(format, follower, head),
                (None, None) => None,
            }
            .ok_or(EditFault::Unlinked)?;
        }
        let bytes = last.end - start.at;
        let lengths = self.lengths(first, start.at, -(bytes as i64))?;
        self.frame.bytes_mut()[..start.at].copy_from_slice(&head);
        write_lengths(self.frame.bytes_mut(), &lengths);
        self.frame.remove(start.at, bytes);
        let until = (first + count).min(self.before.len());
        self.before.drain(first.min(until)..until);
        self.walk();
        Ok(())
    }

    /// Requests a complete recomputation of a checksum in `finish`.
    pub fn renew_checksum(&mut self, field: FieldRef) -> Result<(), EditFault> {
        let position = self.located.position(field).ok_or(EditFault::NotThere)?;
        self.set.checksum_site(&self.located, position).ok_or(EditFault::NotThere)?;
        if let Some(before) = self.before.get_mut(position) {
            *before = None;
        }
        Ok(())
    }

    /// Updates the checksums, innermost first, because outer checksums cover inner ones.
    pub fn finish(self) {
        for position in (0..self.located.headers.len()).rev() {
            let bytes = self.frame.bytes();
            let Some(site) = self.set.checksum_site(&self.located, position) else { continue };
            let Some(new) = self.set.checksum_sum(&self.located, position, bytes) else { continue };
            let value = match self.before.get(position).copied().flatten() {
                Some(old) => site.updated(bytes, old, new),
                None => site.fresh(new),
            };
            self.frame.bytes_mut()[site.at..site.at + 2].copy_from_slice(&value.to_be_bytes());
        }
    }

    fn walk(&mut self) {
        self.located = self.set.locate_from(self.start, self.frame.bytes());
    }

    fn header(&self, at: usize) -> Result<&Header, EditFault> {
        self.located.headers.get(at).ok_or(EditFault::NotThere)
    }

    /// Reads the first `next` field of a header.
    fn told_by(&self, header: &Header) -> Option<u128> {
        let item = self.set.format(header.format).next_field()?;
        let span = header.item(item)?;
        bits::read(self.frame.bytes(), span.at as usize, span.bits as usize)
    }

    /// Returns the length fields of the first `count` headers that cover the byte at `at`, with
    /// their values after `change` more bytes.
    fn lengths(&self, count: usize, at: usize, change: i64) -> Result<Vec<Length>, EditFault> {
        let mut lengths = Vec::new();
        for header in self.located.headers.iter().take(count).filter(|header| at <= header.limit) {
            let format = self.set.format(header.format);
            for of in [&format.total, &format.ends].into_iter().flatten() {
                let Some((Variable::Item(item), factor, constant)) = of.linear() else { continue };
                let Some(span) = header.item(item) else { continue };
                let (first, bits) = (span.at as usize, span.bits as usize);
                let value = bits::read(self.frame.bytes(), first, bits).unwrap_or_default() as i64;
                let now = value.checked_mul(factor).and_then(|sum| sum.checked_add(constant));
                if now != i64::try_from(header.limit - header.at).ok() || change % factor != 0 {
                    continue;
                }
                let value = u128::try_from(value + change / factor).ok();
                let value = value.filter(|value| *value <= bits::most(span.bits));
                lengths.push((first, bits, value.ok_or(EditFault::NoRoom)?));
            }
        }
        Ok(lengths)
    }

    /// Sets the length field of a new header.
    fn own_length(&mut self, format: FormatId, at: usize, limit: usize) {
        let format = self.set.format(format);
        for of in [&format.total, &format.ends].into_iter().flatten() {
            let Some((Variable::Item(item), factor, constant)) = of.linear() else { continue };
            let field = format.items[usize::from(item)].field().and_then(|field| field.bits());
            let (Some(offset), Some(bits)) = (format.fixed_offset(item), field) else { continue };
            let value = (limit.saturating_sub(at) as i64 - constant) / factor;
            let value = u128::try_from(value).unwrap_or(0).min(bits::most(bits));
            bits::write(self.frame.bytes_mut(), at * 8 + offset as usize, bits as usize, value);
        }
    }
}

/// A length field: first bit, number of bits, new value.
type Length = (usize, usize, u128);

fn write_lengths(bytes: &mut [u8], lengths: &[Length]) {
    for (at, bits, value) in lengths {
        bits::write(bytes, *at, *bits, *value);
    }
}

/// Makes the header in `bytes` lead to `target`, by the first suitable `next`. Disables the rules
/// before it.
fn link(format: &Format, target: FormatId, bytes: &mut [u8]) -> Option<()> {
    let (next, value) = format.leads_to(target)?;
    for earlier in format.next.iter().take_while(|earlier| !std::ptr::eq(*earlier, next)) {
        match (earlier.on, earlier.default) {
            (On::Field(item), None) => {
                let width = format.items[usize::from(item)].field()?.number_bits()?;
                let (free, _) = *others(earlier, width).first()?;
                write_item(format, item, free, bytes)?;
            }
            (On::Peek(_), None) => {}
            _ => return None,
        }
    }
    match value {
        None => Some(()),
        Some((item, value)) => write_item(format, item, value, bytes),
    }
}

/// Sets the `next` field of the header in `bytes`.
fn set_next(format: &Format, value: u128, bytes: &mut [u8]) -> Option<()> {
    write_item(format, format.next_field()?, value, bytes)
}

fn write_item(format: &Format, item: u16, value: u128, bytes: &mut [u8]) -> Option<()> {
    let width = format.items[usize::from(item)].field()?.number_bits()?;
    let at = format.fixed_offset(item)? as usize;
    (value <= bits::most(width) && bits::write(bytes, at, width as usize, value)).then_some(())
}

impl Format {
    /// Returns the field of the first `next` that tests a field.
    pub fn next_field(&self) -> Option<u16> {
        self.next.iter().find_map(|next| match next.on {
            On::Field(item) => Some(item),
            On::Peek(_) | On::Always => None,
        })
    }
}

impl FrameSet {
    /// Returns the format that defines the numbers in a format's `next` field.
    pub fn number_space(&self, id: FormatId) -> Option<FormatId> {
        let next = self.format(id).next.iter().find(|next| matches!(next.on, On::Field(_)))?;
        Some(next.like.unwrap_or(id))
    }

    /// Returns a new header: constants and presets, otherwise zero. Returns `None` if these do not
    /// determine its length.
    pub fn blank(&self, id: FormatId) -> Option<Vec<u8>> {
        let format = self.format(id);
        let mut bytes: Vec<u8> = Vec::new();
        let mut bit = 0usize;
        let mut values: Vec<Option<i64>> = Vec::new();
        for item in &format.items {
            let value_of = |of: &Expression, values: &[Option<i64>]| {
                of.value(&|variable| match variable {
                    Variable::Item(item) => *values.get(usize::from(item))?,
                    Variable::Round(_) => None,
                })
            };
            let (width, value) = match item {
                Item::Repeat(repeat) => match (&repeat.bytes, &repeat.count) {
                    (Some(length), _) => (value_of(length, &values)?.checked_mul(8)?, None),
                    (None, Some(count)) if value_of(count, &values)? == 0 => (0, None),
                    _ => return None,
                },
                Item::Field(field) => match &field.when {
                    Some(when) if value_of(when, &values)? == 0 => {
                        values.push(None);
                        continue;
                    }
                    _ => {
                        let width = match &field.width {
                            Width::Bits(bits) => i64::from(*bits),
                            Width::Rest => 0,
                            Width::Bytes { length, .. } => {
                                value_of(length, &values)?.checked_mul(8)?
                            }
                        };
                        (width, Some(field.is.or(field.preset).unwrap_or(0)))
                    }
                },
            };
            let width = usize::try_from(width).ok().filter(|bits| *bits <= PUSH_BYTES_MAX * 8)?;
            bytes.resize((bit + width).div_ceil(8), 0);
            if let Some(value) = value.filter(|_| width <= 128) {
                bits::write(&mut bytes, bit, width, value);
            }
            values.push(value.and_then(|value| i64::try_from(value).ok()));
            bit += width;
        }
        (bytes.len() <= PUSH_BYTES_MAX).then_some(bytes)
    }
}
