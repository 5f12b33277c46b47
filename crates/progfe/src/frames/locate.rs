//! Positions of headers and fields in a frame.
//!
//! The parser starts with the set's first format at the first byte and follows the `next` rules of
//! each header. It ends when no format follows, or at the first header that is absent. Reasons for
//! absence are too few bytes, a constant with another value, or an invalid length.
//!
//! Invariants:
//!
//! - The parser visits at most [`HEADERS_MAX`] headers.
//! - Every returned offset is within the frame, for any input.
//! - A set that [`check`](super::check) accepts consumes bytes on every cycle.

use super::bits;
use super::{
    COUNTED_BITS_MAX, Expression, Field, FieldRef, Format, FormatId, FrameSet, Item, Next, On,
    Part, Repeat, Variable, Width,
};

/// Maximum number of headers that are parsed in a frame.
pub const HEADERS_MAX: usize = 32;
/// Maximum number of bytes of a frame that are parsed.
pub const WALK_BYTES_MAX: usize = packet::frame::FRAME_BYTES_MAX;

/// A range of bits in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First bit.
    pub at: u32,
    /// Number of bits.
    pub bits: u32,
}

/// A header in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Format.
    pub format: FormatId,
    /// Occurrence number within the format, outermost first.
    pub instance: u8,
    /// Offset of its first byte.
    pub at: usize,
    /// Offset after its last byte.
    pub end: usize,
    /// Offset after its payload, limited by its own length and by the enclosing data.
    pub limit: usize,
    /// Positions of the items that are present; all rounds of a repeated part are one range.
    spans: Vec<Option<Span>>,
    rounds: Vec<Round>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Round {
    item: u16,
    number: u16,
    span: Span,
    spans: Vec<Option<Span>>,
}

impl Header {
    /// Returns the position of an item, if it is present.
    pub fn item(&self, item: u16) -> Option<Span> {
        *self.spans.get(usize::from(item))?
    }
}

/// Reason why parsing ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The header needs more bytes than available.
    Truncated,
    /// A constant has another value.
    Constant,
    /// A length is negative, out of bounds or has no value.
    Length,
    /// The frame has more headers than the limit.
    TooMany,
}

/// Headers of a frame, outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Headers that are present.
    pub headers: Vec<Header>,
    /// The expected format that is absent, its position, and the reason.
    pub fault: Option<(FormatId, usize, Fault)>,
}

impl Located {
    /// Returns the header that a reference denotes.
    pub fn header(&self, reference: FieldRef) -> Option<&Header> {
        self.position(reference).map(|at| &self.headers[at])
    }

    /// Returns the index of that header.
    pub fn position(&self, reference: FieldRef) -> Option<usize> {
        self.headers.iter().position(|header| {
            header.format == reference.format && header.instance == reference.instance
        })
    }

    /// Returns the position of the referenced part, if it is present.
    pub fn span(&self, reference: FieldRef) -> Option<Span> {
        let header = self.header(reference)?;
        match reference.part {
            Part::Header => {
                let (at, end) = (header.at as u32 * 8, header.end as u32 * 8);
                Some(Span { at, bits: end - at })
            }
            Part::Item(item) => header.item(item),
            Part::Round { item, round, field } => {
                let mut rounds = header.rounds.iter();
                let found = rounds.find(|found| (found.item, found.number) == (item, round))?;
                match field {
                    None => Some(found.span),
                    Some(field) => *found.spans.get(usize::from(field))?,
                }
            }
        }
    }

    /// Returns true if the referenced part is present.
    pub fn has(&self, reference: FieldRef) -> bool {
        self.span(reference).is_some()
    }

    /// Reads the number in a field. Returns `None` if it is absent or longer than 128 bits.
    pub fn read(&self, bytes: &[u8], reference: FieldRef) -> Option<u128> {
        let span = self.span(reference)?;
        bits::read(bytes, span.at as usize, span.bits as usize)
    }

    /// Returns the bytes of a field, if it is present and consists of whole bytes.
    pub fn bytes<'b>(&self, bytes: &'b [u8], reference: FieldRef) -> Option<&'b [u8]> {
        let span = self.span(reference)?;
        if span.at % 8 != 0 || span.bits % 8 != 0 {
            return None;
        }
        bytes.get(span.at as usize / 8..(span.at + span.bits) as usize / 8)
    }

    /// Returns the offset after the last header.
    pub fn payload_at(&self) -> usize {
        self.headers.last().map_or(0, |header| header.end)
    }
}

impl FrameSet {
    /// Parses a frame from the set's first format.
    pub fn locate(&self, bytes: &[u8]) -> Located {
        self.locate_from(self.start, bytes)
    }

    /// Parses bytes that start with another format. Without a format they have no headers.
    pub fn locate_from(&self, start: Option<FormatId>, bytes: &[u8]) -> Located {
        let mut located = Located { headers: Vec::new(), fault: None };
        let mut limit = bytes.len().min(WALK_BYTES_MAX);
        let (mut at, mut next) = (0, start);
        while let Some(format) = next {
            if located.headers.len() == HEADERS_MAX {
                located.fault = Some((format, at, Fault::TooMany));
                break;
            }
            let walk = match Walk::header(self.format(format), &bytes[..limit], at) {
                Ok(walk) => walk,
                Err(fault) => {
                    located.fault = Some((format, at, fault));
                    break;
                }
            };
            next = walk.follows();
            let alike = located.headers.iter().filter(|header| header.format == format);
            let instance = alike.count() as u8;
            limit = walk.limit;
            let (spans, rounds, end) = (walk.spans, walk.rounds, walk.bit / 8);
            located.headers.push(Header { format, instance, at, end, limit, spans, rounds });
            at = end;
        }
        located
    }
}

/// Parser state of one header.
struct Walk<'a> {
    format: &'a Format,
    /// Data that encloses the header, from the first byte of the frame.
    bytes: &'a [u8],
    at: usize,
    /// Next bit.
    bit: usize,
    /// Offset after the payload of the header.
    limit: usize,
    spans: Vec<Option<Span>>,
    rounds: Vec<Round>,
}

impl<'a> Walk<'a> {
    fn header(format: &'a Format, bytes: &'a [u8], at: usize) -> Result<Self, Fault> {
        let spans = Vec::with_capacity(format.items.len());
        let (bit, limit) = (at * 8, bytes.len());
        let mut walk = Walk { format, bytes, at, bit, limit, spans, rounds: Vec::new() };
        for (item, definition) in format.items.iter().enumerate() {
            let start = walk.bit;
            let there = match definition {
                Item::Field(field) => walk.field(field, &[])?,
                Item::Repeat(repeat) => {
                    walk.repeat(item as u16, repeat)?;
                    Some(Span { at: start as u32, bits: (walk.bit - start) as u32 })
                }
            };
            walk.spans.push(there);
        }
        walk.bound()?;
        Ok(walk)
    }

    /// Reads one field and advances, unless the field is absent.
    fn field(&mut self, field: &Field, round: &[Option<Span>]) -> Result<Option<Span>, Fault> {
        if let Some(when) = &field.when
            && self.value(when, round).ok_or(Fault::Length)? == 0
        {
            return Ok(None);
        }
        let left = self.bytes.len() * 8 - self.bit;
        let bits = match &field.width {
            Width::Bits(bits) => usize::from(*bits),
            Width::Rest => left,
            Width::Bytes { length, max } => {
                let length = self.value(length, round).ok_or(Fault::Length)?;
                let length = u32::try_from(length).map_err(|_| Fault::Length)?;
                if max.is_some_and(|max| length > max) {
                    return Err(Fault::Length);
                }
                length as usize * 8
            }
        };
        if bits > left {
            return Err(Fault::Truncated);
        }
        if field.is.is_some() && bits::read(self.bytes, self.bit, bits) != field.is {
            return Err(Fault::Constant);
        }
        let span = Span { at: self.bit as u32, bits: bits as u32 };
        self.bit += bits;
        Ok(Some(span))
    }

    /// Reads a repeated part. With a given length, a round that does not fit ends the rounds and
    /// the header remains valid. Without a length, it makes the header absent.
    fn repeat(&mut self, item: u16, repeat: &Repeat) -> Result<(), Fault> {
        let length = |walk: &Self, of: &Option<Expression>| match of {
            None => Ok(None),
            Some(of) => {
                let value = walk.value(of, &[]).ok_or(Fault::Length)?;
                usize::try_from(value).map(Some).map_err(|_| Fault::Length)
            }
        };
        let outer = self.bytes;
        let bounded = length(self, &repeat.bytes)?;
        if let Some(length) = bounded {
            let end = (self.bit / 8).checked_add(length).ok_or(Fault::Length)?;
            self.bytes = outer.get(..end).ok_or(Fault::Truncated)?;
        }
        let count = length(self, &repeat.count)?.unwrap_or(usize::MAX);
        let (mut outcome, mut ended) = (Ok(()), count != usize::MAX);
        for number in 0..count.min(repeat.max.into()) {
            let start = self.bit;
            if start == self.bytes.len() * 8 && repeat.count.is_none() {
                ended = true;
                break;
            }
            match self.round(repeat) {
                Ok((spans, last)) => {
                    let span = Span { at: start as u32, bits: (self.bit - start) as u32 };
                    self.rounds.push(Round { item, number: number as u16, span, spans });
                    if last || span.bits == 0 {
                        ended = true;
                        break;
                    }
                }
                Err(fault) => {
                    self.bit = start;
                    outcome = Err(fault);
                    break;
                }
            }
        }
        if bounded.is_some() {
            self.bit = self.bytes.len() * 8;
            self.bytes = outer;
            return Ok(());
        }
        if outcome.is_ok() && (!ended || (count != usize::MAX && count > repeat.max.into())) {
            return Err(Fault::Length);
        }
        outcome
    }

    /// Reads one round. Returns whether it is the last.
    fn round(&mut self, repeat: &Repeat) -> Result<(Vec<Option<Span>>, bool), Fault> {
        let mut spans = Vec::with_capacity(repeat.fields.len());
        for field in &repeat.fields {
            let span = self.field(field, &spans)?;
            spans.push(span);
        }
        let last = match &repeat.until {
            Some(until) => self.value(until, &spans).ok_or(Fault::Length)? != 0,
            None => false,
        };
        Ok((spans, last))
    }

    /// Evaluates an expression with the fields read so far.
    fn value(&self, of: &Expression, round: &[Option<Span>]) -> Option<i64> {
        of.value(&|variable| {
            let span = match variable {
                Variable::Item(item) => self.spans.get(usize::from(item)),
                Variable::Round(field) => round.get(usize::from(field)),
            };
            let span = (*span?)?;
            if span.bits > u32::from(COUNTED_BITS_MAX) {
                return None;
            }
            let value = bits::read(self.bytes, span.at as usize, span.bits as usize)?;
            i64::try_from(value).ok()
        })
    }

    /// Limits the payload by the header's own lengths.
    fn bound(&mut self) -> Result<(), Fault> {
        let end = self.bit.div_ceil(8);
        for (length, strict) in [(&self.format.total, true), (&self.format.ends, false)] {
            let Some(length) = length else { continue };
            let value = self.value(length, &[]).and_then(|value| usize::try_from(value).ok());
            let limit = value.and_then(|value| self.at.checked_add(value));
            match limit.filter(|limit| (end..=self.limit).contains(limit)) {
                Some(limit) => self.limit = limit,
                None if strict => return Err(Fault::Length),
                None => {}
            }
        }
        Ok(())
    }

    /// Returns the format that follows.
    fn follows(&self) -> Option<FormatId> {
        self.format.next.iter().find_map(|next| self.answer(next))
    }

    fn answer(&self, next: &Next) -> Option<FormatId> {
        if let Some(unless) = &next.unless
            && self.value(unless, &[])? != 0
        {
            return None;
        }
        match next.on {
            On::Always => next.default,
            On::Field(item) => {
                let span = (*self.spans.get(usize::from(item))?)?;
                next.of(bits::read(self.bytes, span.at as usize, span.bits as usize)?)
            }
            On::Peek(count) => {
                next.of(bits::read(&self.bytes[..self.limit], self.bit, count.into())?)
            }
        }
    }
}
