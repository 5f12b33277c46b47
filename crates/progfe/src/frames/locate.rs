//! Where in a frame its headers and fields are.
//!
//! A walk begins with the set's first format at the frame's first byte and goes on with what each
//! header says follows. It ends where nothing is said, or at the first header that is not there:
//! too few bytes, a constant with another value, a length that cannot be. It looks at
//! [`HEADERS_MAX`] headers at most, and every offset that it gives lies in the frame, whatever the
//! bytes are. A set that [`check`](super::check) accepts consumes bytes on every cycle.

use super::bits;
use super::{
    COUNTED_BITS_MAX, Expression, Field, FieldRef, Format, FormatId, FrameSet, Item, Next, On,
    Part, Repeat, Variable, Width,
};

/// Headers that are looked at in one frame.
pub const HEADERS_MAX: usize = 32;
/// Bytes of a frame that are looked at.
pub const WALK_BYTES_MAX: usize = packet::frame::FRAME_BYTES_MAX;

/// Bits of a frame, counted from its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first one.
    pub at: u32,
    /// How many.
    pub bits: u32,
}

/// A header that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// How it is read.
    pub format: FormatId,
    /// Which one of its format, the outermost first.
    pub instance: u8,
    /// Its first byte.
    pub at: usize,
    /// The byte behind its last.
    pub end: usize,
    /// The byte behind all that it encloses, as it says or as what is around it says.
    pub limit: usize,
    /// Where its items are, those that are there; a repeated part's rounds together.
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
    /// Where an item is, if it is there.
    pub fn item(&self, item: u16) -> Option<Span> {
        *self.spans.get(usize::from(item))?
    }
}

/// Why a walk ended before the definitions did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The header needs more bytes than there are.
    Truncated,
    /// A constant has another value.
    Constant,
    /// A length is negative, beyond its bound, or no number.
    Length,
    /// More headers than are looked at.
    TooMany,
}

/// The headers of a frame, the outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Those that are there.
    pub headers: Vec<Header>,
    /// The format that was expected but is not there, where, and why.
    pub fault: Option<(FormatId, usize, Fault)>,
}

impl Located {
    /// The header that a reference is about.
    pub fn header(&self, reference: FieldRef) -> Option<&Header> {
        self.position(reference).map(|at| &self.headers[at])
    }

    /// Its place among the headers.
    pub fn position(&self, reference: FieldRef) -> Option<usize> {
        self.headers.iter().position(|header| {
            header.format == reference.format && header.instance == reference.instance
        })
    }

    /// Where what is meant is, if it is there.
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

    /// Whether what is meant is there.
    pub fn has(&self, reference: FieldRef) -> bool {
        self.span(reference).is_some()
    }

    /// The number that a field holds; `None` if it is not there or longer than 128 bits.
    pub fn read(&self, bytes: &[u8], reference: FieldRef) -> Option<u128> {
        let span = self.span(reference)?;
        bits::read(bytes, span.at as usize, span.bits as usize)
    }

    /// The bytes of a field, if it is there and consists of whole ones.
    pub fn bytes<'b>(&self, bytes: &'b [u8], reference: FieldRef) -> Option<&'b [u8]> {
        let span = self.span(reference)?;
        if span.at % 8 != 0 || span.bits % 8 != 0 {
            return None;
        }
        bytes.get(span.at as usize / 8..(span.at + span.bits) as usize / 8)
    }

    /// The first byte behind the last header.
    pub fn payload_at(&self) -> usize {
        self.headers.last().map_or(0, |header| header.end)
    }
}

impl FrameSet {
    /// Walks a frame from the set's first format.
    pub fn locate(&self, bytes: &[u8]) -> Located {
        self.locate_from(self.start, bytes)
    }

    /// Walks bytes that begin with another format; without one they have no headers.
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

/// Reading one header.
struct Walk<'a> {
    format: &'a Format,
    /// What is around the header, from the frame's first byte.
    bytes: &'a [u8],
    at: usize,
    /// The next bit.
    bit: usize,
    /// The byte behind what the header encloses.
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

    /// Reads one field, which moves on unless it is not there.
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

    /// Reads a repeated part. Within a given length, a round that does not fit ends the rounds and
    /// leaves the header as it is; without one, it means that the header is not there.
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

    /// One round, and whether it is the last.
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

    /// What an expression is, by the fields that were read.
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

    /// How far what it encloses goes, by its own lengths.
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

    /// Which format follows.
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
