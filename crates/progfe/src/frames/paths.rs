//! Fixed positions of fields, for compilers.
//!
//! A [`Way`] is a sequence of headers of known length that leads to a field, so the field has a
//! fixed offset. Its guards are fixed bits that determine whether a frame takes this way. Optional
//! parts count as absent (IPv4 without options) and have a guard. For a frame that matches a way,
//! its positions equal those of [`FrameSet::locate`]. Frames that match no way must be parsed,
//! unless the list of ways is complete.

use super::locate::{HEADERS_MAX, Span, WALK_BYTES_MAX};
use super::{
    Expression, FieldRef, Format, FormatId, FrameSet, Item, Next, On, Part, Variable, Width,
};
use super::{bits, check};

/// Maximum number of ways to a field.
pub const WAYS_MAX: usize = 64;
/// Maximum number of headers that the search visits.
const VISITS_MAX: usize = 4096;

/// Bits that must have one of these values on a way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Position of the bits.
    pub span: Span,
    /// Permitted values as ascending ranges.
    pub ranges: Vec<(u128, u128)>,
}

/// A sequence of headers of known length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Headers, outermost first, with first byte and the byte after the last.
    pub headers: Vec<(FormatId, u32, u32)>,
    /// Guards. All of them must hold.
    pub guards: Vec<Guard>,
    /// Position of the field, or of the whole header.
    pub span: Span,
}

/// Ways to a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ways {
    /// Ways with fixed offsets.
    pub list: Vec<Way>,
    /// Whether the list is complete: a frame that matches none does not have the field.
    pub complete: bool,
}

impl Guard {
    /// Returns true if the bits of a frame have a permitted value.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let value = bits::read(bytes, self.span.at as usize, self.span.bits as usize);
        value.is_some_and(|value| {
            self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&value))
        })
    }
}

impl Way {
    /// Returns true if a frame takes this way: all guards hold, and every header fits into the
    /// enclosing data.
    pub fn applies(&self, set: &FrameSet, bytes: &[u8]) -> bool {
        let mut limit = bytes.len().min(WALK_BYTES_MAX);
        for (format, at, end) in &self.headers {
            let (format, at, end) = (set.format(*format), *at as usize, *end as usize);
            if end > limit {
                return false;
            }
            for (of, strict) in [(&format.total, true), (&format.ends, false)] {
                let Some(of) = of else { continue };
                let value = of.value(&|variable| {
                    let Variable::Item(item) = variable else { return None };
                    let field = format.items.get(usize::from(item))?.field()?;
                    let offset = at * 8 + format.fixed_offset(item)? as usize;
                    i64::try_from(bits::read(bytes, offset, field.number_bits()? as usize)?).ok()
                });
                let inner = value.and_then(|value| at.checked_add(usize::try_from(value).ok()?));
                match inner.filter(|inner| (end..=limit).contains(inner)) {
                    Some(inner) => limit = inner,
                    None if strict => return false,
                    None => {}
                }
            }
        }
        self.guards.iter().all(|guard| guard.holds(bytes))
    }
}

impl FrameSet {
    /// Returns the ways to a field or header over at most `headers` headers.
    pub fn ways(&self, target: FieldRef, headers: usize) -> Ways {
        let mut search = Search {
            set: self,
            target,
            depth: headers.min(HEADERS_MAX),
            reaches: self.reaching(target.format),
            ways: Ways { list: Vec::new(), complete: true },
            way: Vec::new(),
            guards: Vec::new(),
            visits: 0,
        };
        if let Some(start) = self.start {
            search.visit(start, 0, 0);
        }
        search.ways
    }

    /// Returns the formats that can precede the target, directly or indirectly, and the target
    /// itself.
    pub(crate) fn reaching(&self, target: FormatId) -> Vec<bool> {
        let mut reaches: Vec<bool> = self.formats().map(|(id, _)| id == target).collect();
        loop {
            let mut grew = false;
            for (id, format) in self.formats() {
                let leads = |next: &Next| next.targets().any(|to| reaches[usize::from(to.0)]);
                if !reaches[usize::from(id.0)] && format.next.iter().any(leads) {
                    reaches[usize::from(id.0)] = true;
                    grew = true;
                }
            }
            if !grew {
                return reaches;
            }
        }
    }
}

struct Search<'a> {
    set: &'a FrameSet,
    target: FieldRef,
    depth: usize,
    reaches: Vec<bool>,
    ways: Ways,
    way: Vec<(FormatId, u32, u32)>,
    guards: Vec<Guard>,
    visits: usize,
}

impl Search<'_> {
    /// Continues with a header at byte `at`, after `seen` headers of the target's format.
    fn visit(&mut self, id: FormatId, at: u32, seen: u8) {
        if !self.reaches[usize::from(id.0)] {
            return;
        }
        self.visits += 1;
        let enough = self.ways.list.len() == WAYS_MAX || self.visits > VISITS_MAX;
        if self.way.len() == self.depth || enough {
            self.ways.complete = false;
            return;
        }
        let guards = self.guards.len();
        let format = self.set.format(id);
        match self.lay(format, at) {
            None => self.ways.complete = false,
            Some((spans, end)) => {
                self.way.push((id, at, end));
                if id == self.target.format && seen == self.target.instance {
                    self.arrive(&spans, at, end);
                } else {
                    let seen = seen + u8::from(id == self.target.format);
                    self.follow(format, &spans, end, seen);
                }
                self.way.pop();
            }
        }
        self.guards.truncate(guards);
    }

    fn arrive(&mut self, spans: &[Option<Span>], at: u32, end: u32) {
        let span = match self.target.part {
            Part::Header => Some(Span { at: at * 8, bits: (end - at) * 8 }),
            Part::Item(item) => spans[usize::from(item)],
            Part::Round { .. } => None,
        };
        match span {
            Some(span) => {
                let (headers, guards) = (self.way.clone(), self.guards.clone());
                self.ways.list.push(Way { headers, guards, span });
            }
            // The field is in a part that this way treats as absent.
            None => self.ways.complete = false,
        }
    }

    /// Computes the positions of the items of a header at byte `at`, and the offset after it.
    fn lay(&mut self, format: &Format, at: u32) -> Option<(Vec<Option<Span>>, u32)> {
        let mut spans: Vec<Option<Span>> = Vec::with_capacity(format.items.len());
        let mut bit = at * 8;
        for item in &format.items {
            let (length, when) = match item {
                Item::Repeat(repeat) => {
                    (Some(repeat.bytes.as_ref().or(repeat.count.as_ref())?), None)
                }
                Item::Field(field) => match &field.width {
                    Width::Rest => return None,
                    Width::Bytes { length, .. } if field.bits().is_none() => {
                        (Some(length), field.when.as_ref())
                    }
                    Width::Bits(_) | Width::Bytes { .. } => (None, field.when.as_ref()),
                },
            };
            // An optional part counts as absent: its flag, or its length, is zero.
            if let Some(nothing) = when.or(length) {
                let (Variable::Item(of), factor, constant) = nothing.linear()? else { return None };
                let value = u128::try_from(-constant / factor).ok()?;
                let span = (*spans.get(usize::from(of))?).filter(|_| constant % factor == 0)?;
                self.guards.push(Guard { span, ranges: vec![(value, value)] });
                self.ways.complete = false;
                let empty = when.is_none();
                spans.push(empty.then_some(Span { at: bit, bits: 0 }));
                continue;
            }
            let field = item.field()?;
            let span = Span { at: bit, bits: field.bits()? };
            if let Some(value) = field.is {
                self.guards.push(Guard { span, ranges: vec![(value, value)] });
            }
            spans.push(Some(span));
            bit = bit.checked_add(span.bits).filter(|bit| *bit <= WALK_BYTES_MAX as u32 * 8)?;
        }
        Some((spans, bit / 8))
    }

    fn follow(&mut self, format: &Format, spans: &[Option<Span>], end: u32, seen: u8) {
        let guards = self.guards.len();
        for next in &format.next {
            if let Some(unless) = &next.unless {
                let flag = match unless {
                    Expression::Field(Variable::Item(item), _) => spans[usize::from(*item)],
                    _ => None,
                };
                let Some(span) = flag else {
                    self.ways.complete = false;
                    break;
                };
                self.guards.push(Guard { span, ranges: vec![(0, 0)] });
                // If the flag is set, a later `next` may apply.
                if format.next.len() > 1 {
                    self.ways.complete = false;
                }
            }
            let span = match next.on {
                On::Always => None,
                On::Field(item) => match spans[usize::from(item)] {
                    Some(span) => Some(span),
                    None => continue,
                },
                On::Peek(bits) => Some(Span { at: end * 8, bits: bits.into() }),
            };
            let Some(span) = span else {
                if let Some(target) = next.default {
                    self.visit(target, end, seen);
                }
                break;
            };
            let mut targets: Vec<FormatId> = next.targets().collect();
            targets.sort_unstable();
            targets.dedup();
            for target in targets {
                // Peeked bits must be inside the next header; otherwise its end does not bound
                // them.
                let least = check::least_bits(self.set.format(target));
                if matches!(next.on, On::Peek(bits) if i64::from(bits) > least) {
                    self.ways.complete = false;
                    continue;
                }
                let mut ranges: Vec<(u128, u128)> = Vec::new();
                let cases = next.cases.iter().filter(|case| case.format == target);
                ranges.extend(cases.map(|case| (case.low, case.high)));
                if next.default == Some(target) {
                    ranges.extend(others(next, span.bits));
                    ranges.sort_unstable();
                }
                self.guards.push(Guard { span, ranges });
                self.visit(target, end, seen);
                self.guards.pop();
            }
            if next.default.is_some() {
                break;
            }
            self.guards.push(Guard { span, ranges: others(next, span.bits) });
        }
        self.guards.truncate(guards);
    }
}

/// Returns the values of `width` bits that no case names.
pub fn others(next: &Next, width: u32) -> Vec<(u128, u128)> {
    let mut ranges = Vec::new();
    let mut from = 0u128;
    for case in &next.cases {
        if case.low > from {
            ranges.push((from, case.low - 1));
        }
        match case.high.checked_add(1) {
            Some(behind) => from = from.max(behind),
            None => return ranges,
        }
    }
    if from <= bits::most(width) {
        ranges.push((from, bits::most(width)));
    }
    ranges
}
