//! Edits as decisions.
//!
//! Most programs push or pop a header without effect on outer lengths and checksums, or write a
//! field on which nothing else depends. The compiler computes the result of these edits in advance.
//! The [`Editor`](crate::frames::edit::Editor) performs all other edits, including all that can
//! fail.

use packet::frame::FRAME_BYTES_MAX;

use super::build::{Continuation, TreeBuilder};
use super::parse::Place;
use super::path_state::{Header, Headers, Next, PathState};
use super::tree::NodeId;
use crate::frames::locate::HEADERS_MAX;
use crate::frames::{FieldRef, Format, FormatId, Item, On, Part, Variable, Width};
use crate::lfb::edit::Operation;

impl<'a> TreeBuilder<'a> {
    /// Applies operations to the frames of a path and continues.
    pub fn edit(
        &mut self,
        mut way: PathState,
        operations: &[Operation],
        done: Continuation<'_, 'a>,
    ) -> NodeId {
        let Some((operation, rest)) = operations.split_first() else { return done(self, way) };
        if way.start.is_none() {
            return self.stand(way);
        }
        if way.headers.next == Next::Other {
            way.headers = Headers::from(way.start);
        }
        let header = match operation {
            Operation::Push(formats, Some(after)) if formats.len() == 1 => *after,
            Operation::Pop(headers, None) if headers.len() == 1 => headers[0],
            Operation::Set(field, _) => field.header(),
            _ => return self.stand(way),
        };
        let at = match self.place(&way, header) {
            Place::Here(at, ..) => at,
            Place::Further => return self.edit_further(way, operations, done),
            Place::Nowhere | Place::Hidden => return self.stand(way),
        };
        if let Operation::Set(field, value) = operation {
            return match self.write(&mut way, at, *field, *value) {
                true => self.edit(way, rest, done),
                false => self.stand(way),
            };
        }
        match self.has_bound(&way) {
            true => {}
            false if way.headers.next == Next::Nothing => return self.stand(way),
            false => return self.edit_further(way, operations, done),
        }
        let outer = way.headers.list[..=at].to_vec();
        if !outer.iter().all(|header| is_plain(self.frames.format(header.format))) {
            return self.stand(way);
        }
        // Before any change, test for room and for header lengths.
        let most = FRAME_BYTES_MAX - crate::frames::edit::PUSH_BYTES_MAX;
        let done = std::cell::RefCell::new(done);
        let fits = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
            grower.unlimited(way, &outer, &mut |grower, mut way| {
                let changed = match operation {
                    Operation::Push(formats, _) => grower.push(&mut way, &outer[at], formats[0]),
                    _ if at > 0 => grower.pop(&mut way, &outer[at - 1], &outer[at]),
                    _ => false,
                };
                if !changed {
                    return grower.stand(way);
                }
                way.headers = Headers::from(way.start);
                let last = at - usize::from(matches!(operation, Operation::Pop(..)));
                grower.unlimited(way, &outer[..=last], &mut |grower, way| {
                    grower.edit(way, rest, &mut **done.borrow_mut())
                })
            })
        };
        self.length(way, most + 1, &mut |grower, way| grower.stand(way), fits)
    }

    /// Continues an edit after the next header is known.
    fn edit_further(
        &mut self,
        way: PathState,
        operations: &[Operation],
        done: Continuation<'_, 'a>,
    ) -> NodeId {
        let all = vec![true; self.frames.formats().count()];
        self.next_header(way, &all, &mut |grower, way| grower.edit(way, operations, done))
    }

    /// Returns true if the number of headers plus one is certainly within the limit.
    fn has_bound(&self, way: &PathState) -> bool {
        let more = match way.headers.next {
            Next::Nothing => Some(0),
            Next::Maybe(format) => self.depth_of(format),
            Next::Other => None,
        };
        more.is_some_and(|more| way.headers.list.len() + more < HEADERS_MAX)
    }

    /// Pushes a header after another one with the same encoding of the next header.
    fn push(&self, way: &mut PathState, previous: &Header, fresh: FormatId) -> bool {
        let (format, before) = (self.frames.format(fresh), self.frames.format(previous.format));
        let mut push = || {
            let bytes = self.frames.blank(fresh).filter(|_| is_plain(format))?;
            if format.ends.is_some() || !tell_alike(self, previous.format, fresh) {
                return None;
            }
            let (item, own) = (before.next_field()?, format.next_field()?);
            let (told, bits) = previous.items[usize::from(item)]?;
            let offset = format.fixed_offset(own)? as usize;
            let own_bits = format.items[usize::from(own)].field()?.number_bits()? as usize;
            let (_, Some((to, value))) = before.leads_to(fresh)? else { return None };
            let is_whole = [told, bits, offset].iter().all(|it| it % 8 == 0);
            if !is_whole || own_bits != bits || to != item {
                return None;
            }
            let value = u64::try_from(value).ok()?;
            let view = &mut way.view;
            let at = previous.end;
            (view.insert(at, &bytes)
                && view.copy(told / 8, at + offset / 8, bits / 8)
                && view.write(told, bits, value))
            .then_some(())
        };
        push().is_some()
    }

    /// Pops a header after another one with the same encoding of the next header.
    fn pop(&self, way: &mut PathState, previous: &Header, header: &Header) -> bool {
        let mut pop = || {
            let (format, before) =
                (self.frames.format(header.format), self.frames.format(previous.format));
            if !tell_alike(self, previous.format, header.format) {
                return None;
            }
            let (told, bits) = previous.items[usize::from(before.next_field()?)]?;
            let (own, own_bits) = header.items[usize::from(format.next_field()?)]?;
            if own_bits != bits || [told, own, bits].iter().any(|it| it % 8 != 0) {
                return None;
            }
            let view = &mut way.view;
            (view.copy(own / 8, told / 8, bits / 8)
                && view.remove(header.at, header.end - header.at))
            .then_some(())
        };
        pop().is_some()
    }

    /// Writes a field of a header if nothing else depends on it.
    fn write(&self, way: &mut PathState, at: usize, field: FieldRef, value: u128) -> bool {
        let outer = &way.headers.list[..=at];
        let has_sum = |header: &Header| {
            let items = self.frames.format(header.format).items.iter();
            items.filter_map(Item::field).any(|field| field.checksum.is_some())
        };
        let Part::Item(item) = field.part else { return false };
        let format = self.frames.format(field.format);
        let is_free = format.items[usize::from(item)]
            .field()
            .is_some_and(|field| field.is.is_none() && !field.pseudo);
        if !is_free || outer.iter().any(has_sum) || says_more(format, item) {
            return false;
        }
        let Some((bit, bits)) = outer[at].items[usize::from(item)] else { return false };
        u64::try_from(value).is_ok_and(|value| way.view.write(bit, bits, value))
    }
}

/// Returns true if neither a length nor a checksum of a format depends on its payload, and no
/// payload checksum covers its fields.
fn is_plain(format: &Format) -> bool {
    let plain =
        |item: &Item| item.field().is_some_and(|field| field.checksum.is_none() && !field.pseudo);
    format.total.is_none()
        && format.ends.as_ref().is_none_or(|ends| ends.linear().is_none())
        && format.items.iter().all(plain)
}

/// Returns true if two formats encode the next header in one field with the same numbers.
fn tell_alike(grower: &TreeBuilder<'_>, one: FormatId, other: FormatId) -> bool {
    let frames = grower.frames;
    let ([a], [b]) = (&frames.format(one).next[..], &frames.format(other).next[..]) else {
        return false;
    };
    let space = frames.number_space(one);
    let cases = |next: &crate::frames::Next| {
        next.cases.iter().map(|case| (case.low, case.high, case.format)).collect::<Vec<_>>()
    };
    space.is_some()
        && space == frames.number_space(other)
        && a.unless.is_none()
        && b.unless.is_none()
        && a.default == b.default
        && cases(a) == cases(b)
}

/// Returns true if another part of a header, or the next header, depends on an item.
fn says_more(format: &Format, item: u16) -> bool {
    let mut says = format.next.iter().any(|next| next.on == On::Field(item));
    let mut look = |variable: Variable| says |= variable == Variable::Item(item);
    for next in &format.next {
        next.unless.iter().for_each(|it| it.fields(&mut look));
    }
    format.total.iter().chain(&format.ends).for_each(|it| it.fields(&mut look));
    for of in &format.items {
        match of {
            Item::Field(field) => {
                field.when.iter().for_each(|it| it.fields(&mut look));
                if let Width::Bytes { length, .. } = &field.width {
                    length.fields(&mut look);
                }
            }
            Item::Repeat(repeat) => {
                let all = [&repeat.bytes, &repeat.count, &repeat.until];
                all.into_iter().flatten().for_each(|it| it.fields(&mut look));
            }
        }
    }
    says
}
