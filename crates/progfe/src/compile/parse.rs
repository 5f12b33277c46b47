//! Header parsing by decisions.
//!
//! [`locate`](crate::frames::locate) parses one frame; this module does the same for all frames of
//! a path. If the result depends on bytes of the frame, the tree tests them, but only as far as
//! necessary to locate the requested headers. Headers with variable parts, and other rare cases,
//! are left to the slow path.

use std::collections::HashMap;
use std::rc::Rc;

use super::build::{Continuation, TreeBuilder};
use super::path_state::{Header, Limit, Next, PathState, Ranges};
use super::symbolic_bytes::{Field, Read};
use super::tree::NodeId;
use crate::frames::{Expression, FieldRef, FormatId, Item, On, Part, Variable, Width};

/// Maximum width of a field whose values are all evaluated.
const TRIED_BITS_MAX: u8 = 16;

/// Location of a field or header.
pub enum Place {
    /// Known: index of the header, first bit, number of bits.
    Here(usize, usize, usize),
    /// It is absent.
    Nowhere,
    /// The next header must be known first.
    Further,
    /// Only the frame itself gives the location.
    Hidden,
}

/// A header under parsing.
#[derive(Clone)]
struct Scan {
    format: FormatId,
    at: usize,
    bit: usize,
    items: Vec<Option<(usize, usize)>>,
}

/// Value of an expression.
enum Outcome<K> {
    /// The same in every frame.
    Is(K),
    /// It depends on a field: results with the field values that give them.
    Depends(Field, Vec<(K, Ranges)>),
    /// It depends on several fields or on unknown bytes.
    Hidden,
}

/// A range of inputs for which an expression has the same value.
pub(super) type Step = (u64, u64, Option<i64>);

/// Cache of evaluated expressions, by address and operands.
pub(super) type ExpressionCache = HashMap<(usize, Vec<(u16, Option<Read>)>), Rc<[Step]>>;

/// Format of the header that follows, if any.
type Follower = Option<FormatId>;

impl<'a> TreeBuilder<'a> {
    /// Returns the formats that can precede one of these, directly or indirectly, and these formats
    /// themselves.
    pub fn leading_to(&self, formats: impl Iterator<Item = FormatId>) -> Vec<bool> {
        let mut all = vec![false; self.frames.formats().count()];
        for format in formats {
            let lead = self.leading(format);
            all.iter_mut().zip(&*lead).for_each(|(all, leads)| *all |= leads);
        }
        all
    }

    /// Returns the location of a field or header on a path. A previous search must have included
    /// it.
    pub fn place(&self, way: &PathState, of: FieldRef) -> Place {
        let mut headers = way.headers.list.iter();
        let found = headers.position(|it| (it.format, it.instance) == (of.format, of.instance));
        let Some(found) = found else {
            return match way.headers.next {
                // Otherwise the search included it, or restarts.
                Next::Nothing | Next::Other => Place::Nowhere,
                Next::Maybe(next) => match self.leading(of.format)[usize::from(next.0)] {
                    true => Place::Further,
                    false => Place::Nowhere,
                },
            };
        };
        let header = &way.headers.list[found];
        match of.part {
            Part::Header => Place::Here(found, header.at * 8, (header.end - header.at) * 8),
            Part::Item(item) => match header.items[usize::from(item)] {
                Some((at, bits)) => Place::Here(found, at, bits),
                None => Place::Nowhere,
            },
            Part::Round { .. } => Place::Hidden,
        }
    }

    /// Continues when the next header is known, or known to be absent. `wanted` marks the formats
    /// that are requested or can precede a requested one.
    pub fn next_header(
        &mut self,
        way: PathState,
        wanted: &[bool],
        then: Continuation<'_, 'a>,
    ) -> NodeId {
        let Next::Maybe(format) = way.headers.next else { return then(self, way) };
        if way.headers.list.len() >= self.headers_max() {
            return self.stand(way);
        }
        let at = way.headers.end();
        let scan = Scan { format, at, bit: at * 8, items: Vec::new() };
        self.scan(way, scan, wanted, then)
    }

    /// Continues with no further header.
    fn absent(&mut self, mut way: PathState, then: Continuation<'_, 'a>) -> NodeId {
        way.headers.next = Next::Nothing;
        then(self, way)
    }

    /// Branches on whether the enclosing data extends to byte `end`.
    fn within(
        &mut self,
        way: PathState,
        end: usize,
        yes: Continuation<'_, 'a>,
        no: Continuation<'_, 'a>,
    ) -> NodeId {
        match way.headers.limit {
            Limit::Frame => self.length(way, end, yes, no),
            Limit::Field(field, more) => {
                let least = end.saturating_sub(more) as u64;
                let groups = [
                    vec![(least, u64::MAX)],
                    super::path_state::others(&[(least, u64::MAX)], u64::MAX),
                ];
                self.choose(way, Read::Field(field), &groups, &mut |grower, way, group| {
                    if group == 0 { yes(grower, way) } else { no(grower, way) }
                })
            }
        }
    }

    /// Reads the remaining items of a header.
    fn scan(
        &mut self,
        way: PathState,
        mut scan: Scan,
        wanted: &[bool],
        then: Continuation<'_, 'a>,
    ) -> NodeId {
        let format = self.frames.format(scan.format);
        while let Some(item) = format.items.get(scan.items.len()) {
            let (when, length, max) = match item {
                Item::Field(field) => match &field.width {
                    Width::Bits(bits) => (&field.when, Ok(usize::from(*bits)), None),
                    Width::Bytes { length, max } => (&field.when, Err(length), *max),
                    Width::Rest => return self.stand(way),
                },
                Item::Repeat(repeat) => match (&repeat.bytes, &repeat.count) {
                    (Some(length), None) => (&None, Err(length), None),
                    _ => return self.stand(way),
                },
            };
            if let Some(when) = when {
                match self.outcome(&way, &scan, when, |value| value.map(|value| value != 0)) {
                    Outcome::Is(Some(false)) => {
                        scan.items.push(None);
                        continue;
                    }
                    Outcome::Is(Some(true)) => {}
                    Outcome::Is(None) => return self.absent(way, then),
                    Outcome::Hidden => return self.stand(way),
                    Outcome::Depends(field, groups) => {
                        let groups = groups.into_iter().map(|(_, ranges)| (false, ranges));
                        return self.settle(way, scan, (field, groups.collect()), wanted, then);
                    }
                }
            }
            let bits = match length {
                Ok(bits) => bits,
                Err(length) => {
                    let bytes = |value: Option<i64>| {
                        let bytes = value.and_then(|value| u32::try_from(value).ok());
                        bytes.filter(|bytes| max.is_none_or(|max| *bytes <= max))
                    };
                    match self.outcome(&way, &scan, length, bytes) {
                        Outcome::Is(None) => return self.absent(way, then),
                        Outcome::Is(Some(1..)) if matches!(item, Item::Repeat(_)) => {
                            return self.stand(way);
                        }
                        Outcome::Is(Some(bytes)) => bytes as usize * 8,
                        Outcome::Hidden => return self.stand(way),
                        Outcome::Depends(field, groups) => {
                            // Most headers have no optional parts.
                            let groups = groups
                                .into_iter()
                                .map(|(bytes, ranges)| (bytes.is_some_and(|it| it > 0), ranges));
                            return self.settle(way, scan, (field, groups.collect()), wanted, then);
                        }
                    }
                }
            };
            scan.items.push(Some((scan.bit, bits)));
            scan.bit += bits;
        }
        let end = scan.bit.div_ceil(8);
        // Both branches continue in the same way.
        let then = std::cell::RefCell::new(then);
        let whole = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
            grower.constants(way, &scan, 0, wanted, &mut **then.borrow_mut())
        };
        let short = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
            grower.absent(way, &mut **then.borrow_mut())
        };
        self.within(way, end, whole, short)
    }

    /// Continues the scan after it is known which group contains the value of a field. Frames of
    /// some groups leave the tree.
    fn settle(
        &mut self,
        way: PathState,
        scan: Scan,
        (field, groups): (Field, Vec<(bool, Ranges)>),
        wanted: &[bool],
        then: Continuation<'_, 'a>,
    ) -> NodeId {
        let ranges: Vec<Ranges> = groups.iter().map(|(_, ranges)| ranges.clone()).collect();
        let then = std::cell::RefCell::new(then);
        let read = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
            grower.choose(way, Read::Field(field), &ranges, &mut |grower, way, group| match groups
                [group]
                .0
            {
                true => grower.stand(way),
                false => grower.scan(way, scan.clone(), wanted, &mut **then.borrow_mut()),
            })
        };
        let short = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
            grower.absent(way, &mut **then.borrow_mut())
        };
        self.within(way, scan.bit.div_ceil(8), read, short)
    }

    /// Checks the constants of a header that is long enough, from index `from` on.
    fn constants(
        &mut self,
        way: PathState,
        scan: &Scan,
        from: usize,
        wanted: &[bool],
        then: Continuation<'_, 'a>,
    ) -> NodeId {
        let format = self.frames.format(scan.format);
        for (at, item) in format.items.iter().enumerate().skip(from) {
            let Some(is) = item.field().and_then(|field| field.is) else { continue };
            let Some((bit, bits)) = scan.items[at] else { continue };
            let (Some(read), Ok(is)) = (way.read(bit, bits), u64::try_from(is)) else {
                return self.stand(way);
            };
            let then = std::cell::RefCell::new(then);
            let right = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
                grower.constants(way, scan, at + 1, wanted, &mut **then.borrow_mut())
            };
            let wrong = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
                grower.absent(way, &mut **then.borrow_mut())
            };
            return self.is(way, read, is, right, wrong);
        }
        self.total(way, scan, wanted, then)
    }

    /// Checks the total length that a complete header specifies.
    fn total(
        &mut self,
        way: PathState,
        scan: &Scan,
        wanted: &[bool],
        then: Continuation<'_, 'a>,
    ) -> NodeId {
        let Some(total) = &self.frames.format(scan.format).total else {
            return self.follow(way, scan, 0, wanted, then);
        };
        let Some((field, more)) = self.line(&way, scan, total) else { return self.stand(way) };
        if way.headers.limit != Limit::Frame {
            return self.stand(way);
        }
        let end = scan.bit.div_ceil(8);
        let least = end.saturating_sub(more) as u64;
        let came = more as i64 - i64::from(way.view.grown);
        let Ok(came) = usize::try_from(came) else { return self.stand(way) };
        let groups =
            [vec![(least, u64::MAX)], super::path_state::others(&[(least, u64::MAX)], u64::MAX)];
        let then = std::cell::RefCell::new(then);
        self.choose(way, Read::Field(field), &groups, &mut |grower, way, group| {
            if group > 0 {
                return grower.absent(way, &mut **then.borrow_mut());
            }
            let fits = &mut |grower: &mut TreeBuilder<'a>, mut way: PathState| {
                way.headers.limit = Limit::Field(field, more);
                grower.follow(way, scan, 0, wanted, &mut **then.borrow_mut())
            };
            let long = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
                grower.absent(way, &mut **then.borrow_mut())
            };
            grower.fits(way, field, came, fits, long)
        })
    }

    /// Returns an expression as one field plus a constant, relative to the start of the frame.
    fn line(&self, way: &PathState, scan: &Scan, of: &Expression) -> Option<(Field, usize)> {
        let (Variable::Item(item), 1, constant) = of.linear()? else { return None };
        let (at, bits) = scan.items[usize::from(item)]?;
        let Read::Field(field) = way.view.read(at, bits)? else { return None };
        Some((field, usize::try_from(scan.at as i64 + constant).ok()?))
    }

    /// Branches on the next header, with the rules from index `from` on.
    fn follow(
        &mut self,
        way: PathState,
        scan: &Scan,
        from: usize,
        wanted: &[bool],
        then: Continuation<'_, 'a>,
    ) -> NodeId {
        let format = self.frames.format(scan.format);
        let Some(next) = format.next.get(from) else {
            return self.found(way, scan, None, wanted, then);
        };
        if let Some(unless) = &next.unless {
            match self.outcome(&way, scan, unless, |value| value == Some(0)) {
                Outcome::Is(true) => {}
                Outcome::Is(false) => return self.follow(way, scan, from + 1, wanted, then),
                Outcome::Hidden => return self.stand(way),
                Outcome::Depends(field, groups) => {
                    let groups: Vec<Ranges> = groups.into_iter().map(|(_, it)| it).collect();
                    let read = Read::Field(field);
                    return self.choose(way, read, &groups, &mut |grower, way, _| {
                        grower.follow(way, scan, from, wanted, then)
                    });
                }
            }
        }
        let (at, bits) = match next.on {
            On::Always => {
                return match next.default {
                    Some(_) => self.found(way, scan, next.default, wanted, then),
                    None => self.follow(way, scan, from + 1, wanted, then),
                };
            }
            On::Field(item) => match scan.items[usize::from(item)] {
                Some(span) => span,
                None => return self.follow(way, scan, from + 1, wanted, then),
            },
            On::Peek(bits) => (scan.bit, usize::from(bits)),
        };
        let Some(read) = way.read(at, bits) else { return self.stand(way) };
        let mut groups: Vec<(Follower, Ranges)> = Vec::new();
        let mut add = |to: Follower, range: (u64, u64)| {
            // Formats that are not wanted differ from "none", but not from each other.
            let alike = |it: &Follower| match (*it, to) {
                (Some(it), Some(to)) => {
                    let wants = |it: FormatId| wanted[usize::from(it.0)];
                    it == to || (!wants(it) && !wants(to))
                }
                (it, to) => it.is_none() && to.is_none(),
            };
            match groups.iter_mut().find(|(it, _)| alike(it)) {
                Some((_, ranges)) => ranges.push(range),
                None => groups.push((to, vec![range])),
            }
        };
        let mut rest = Ranges::new();
        for case in &next.cases {
            let (Ok(low), Ok(high)) = (u64::try_from(case.low), u64::try_from(case.high)) else {
                return self.stand(way);
            };
            rest.push((low, high));
            add(Some(case.format), (low, high));
        }
        for range in super::path_state::others(&rest, u64::MAX) {
            add(next.default, range);
        }
        let ranges: Vec<Ranges> = groups.iter().map(|(_, ranges)| ranges.clone()).collect();
        let then = std::cell::RefCell::new(then);
        let known = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
            grower.choose(way, read, &ranges, &mut |grower, way, group| match groups[group].0 {
                None => grower.follow(way, scan, from + 1, wanted, &mut **then.borrow_mut()),
                to => grower.found(way, scan, to, wanted, &mut **then.borrow_mut()),
            })
        };
        let short = &mut |grower: &mut TreeBuilder<'a>, way: PathState| {
            grower.follow(way, scan, from + 1, wanted, &mut **then.borrow_mut())
        };
        self.within(way, (at + bits).div_ceil(8), known, short)
    }

    /// Adds a header whose next header is known.
    fn found(
        &mut self,
        mut way: PathState,
        scan: &Scan,
        to: Follower,
        wanted: &[bool],
        then: Continuation<'_, 'a>,
    ) -> NodeId {
        let format = self.frames.format(scan.format);
        way.headers.next = match to {
            None => Next::Nothing,
            Some(to) if wanted[usize::from(to.0)] => Next::Maybe(to),
            Some(_) => Next::Other,
        };
        if let (Some(ends), Next::Maybe(_)) = (&format.ends, way.headers.next) {
            // The length may be absent. Other lengths are rare in front of further headers.
            match self.outcome(&way, scan, ends, |value| is_ignored(value, scan)) {
                Outcome::Is(true) => {}
                Outcome::Depends(field, groups) => {
                    let ranges: Vec<Ranges> = groups.iter().map(|(_, it)| it.clone()).collect();
                    let read = Read::Field(field);
                    return self.choose(way, read, &ranges, &mut |grower, way, group| match groups
                        [group]
                        .0
                    {
                        true => grower.found(way, scan, to, wanted, then),
                        false => grower.stand(way),
                    });
                }
                _ => return self.stand(way),
            }
        }
        let alike = way.headers.list.iter().filter(|header| header.format == scan.format);
        let instance = alike.count() as u8;
        let (at, end) = (scan.at, scan.bit.div_ceil(8));
        let items = scan.items.clone();
        let header = Header { format: scan.format, instance, at, end, items };
        Rc::make_mut(&mut way.headers.list).push(header);
        then(self, way)
    }

    /// Continues with frames in which none of these headers limits its payload.
    pub(super) fn unlimited(
        &mut self,
        way: PathState,
        headers: &[Header],
        then: Continuation<'_, 'a>,
    ) -> NodeId {
        let Some((header, rest)) = headers.split_first() else { return then(self, way) };
        let Some(ends) = &self.frames.format(header.format).ends else {
            return self.unlimited(way, rest, then);
        };
        let Header { format, at, end, items, .. } = header.clone();
        let scan = Scan { format, at, bit: end * 8, items };
        match self.outcome(&way, &scan, ends, |value| is_ignored(value, &scan)) {
            Outcome::Is(true) => self.unlimited(way, rest, then),
            Outcome::Depends(field, groups) => {
                let ranges: Vec<Ranges> = groups.iter().map(|(_, it)| it.clone()).collect();
                let read = Read::Field(field);
                self.choose(way, read, &ranges, &mut |grower, way, group| match groups[group].0 {
                    true => grower.unlimited(way, rest, then),
                    false => grower.stand(way),
                })
            }
            _ => self.stand(way),
        }
    }

    /// Evaluates an expression over the fields of a header and maps its value.
    fn outcome<K: PartialEq>(
        &self,
        way: &PathState,
        scan: &Scan,
        of: &Expression,
        kind: impl Fn(Option<i64>) -> K,
    ) -> Outcome<K> {
        let mut reads: Vec<(u16, Option<Read>)> = Vec::new();
        let mut hidden = false;
        of.fields(&mut |variable| match variable {
            Variable::Item(item) if reads.iter().all(|(known, _)| *known != item) => {
                // An absent field has no value.
                let span = scan.items.get(usize::from(item)).copied().flatten();
                let read = span.map(|(at, bits)| way.read(at, bits));
                hidden |= matches!(read, Some(None)) || span.is_some_and(|(_, bits)| bits > 32);
                reads.push((item, read.flatten()));
            }
            Variable::Item(_) => {}
            Variable::Round(_) => hidden = true,
        });
        let mut open = reads.iter().filter_map(|(_, read)| match read {
            Some(Read::Field(field)) => Some(*field),
            _ => None,
        });
        let field = open.next();
        if hidden || open.any(|other| Some(other) != field) {
            return Outcome::Hidden;
        }
        let value = |tried: u64| {
            of.value(&|variable| {
                let Variable::Item(item) = variable else { return None };
                match reads.iter().find(|(known, _)| *known == item)?.1? {
                    Read::Constant(value) => i64::try_from(value).ok(),
                    Read::Field(_) => i64::try_from(tried).ok(),
                }
            })
        };
        let Some(field) = field else { return Outcome::Is(kind(value(0))) };
        if field.bits > TRIED_BITS_MAX {
            return Outcome::Hidden;
        }
        let key = (std::ptr::from_ref(of) as usize, reads.clone());
        let known = self.tried.borrow().get(&key).cloned();
        let tried = known.unwrap_or_else(|| {
            let tried = steps(field.most(), value);
            self.tried.borrow_mut().insert(key, tried.clone());
            tried
        });
        let mut groups: Vec<(K, Ranges)> = Vec::new();
        for (least, most) in way.ranges(field) {
            let first = tried.partition_point(|(_, high, _)| *high < least);
            for (low, high, value) in &tried[first..] {
                let (low, high) = (least.max(*low), most.min(*high));
                if low > high {
                    break;
                }
                let is = kind(*value);
                let known = match groups.iter_mut().find(|(known, _)| *known == is) {
                    Some((_, known)) => known,
                    None => {
                        groups.push((is, vec![(low, high)]));
                        continue;
                    }
                };
                match known.last_mut() {
                    Some((_, end)) if *end + 1 == low => *end = high,
                    _ => known.push((low, high)),
                }
            }
        }
        match groups.len() {
            1 => groups.pop().map_or(Outcome::Hidden, |(is, _)| Outcome::Is(is)),
            _ => Outcome::Depends(field, groups),
        }
    }

    /// Returns the maximum number of headers from a format on; none if there is no bound.
    pub(super) fn depth_of(&self, format: FormatId) -> Option<usize> {
        if let Some(known) = self.depths.borrow().get(&format) {
            return *known;
        }
        // A format that leads to itself has no bound; the recursion then finds this entry.
        self.depths.borrow_mut().insert(format, None);
        let next = self.frames.format(format).next.iter();
        let depths: Option<Vec<usize>> =
            next.flat_map(|next| next.targets()).map(|to| self.depth_of(to)).collect();
        let depth = depths.map(|depths| 1 + depths.into_iter().max().unwrap_or(0));
        self.depths.borrow_mut().insert(format, depth);
        depth
    }
}

/// Evaluates a function for inputs up to `most` and merges equal neighbours into ranges.
fn steps(most: u64, value: impl Fn(u64) -> Option<i64>) -> Rc<[Step]> {
    let mut steps: Vec<Step> = Vec::new();
    for at in 0..=most {
        let is = value(at);
        match steps.last_mut() {
            Some((_, high, before)) if *before == is => *high = at,
            _ => steps.push((at, at, is)),
        }
    }
    steps.into()
}

/// Returns true if a payload length of a header is ignored in every frame.
fn is_ignored(value: Option<i64>, scan: &Scan) -> bool {
    let header = (scan.bit.div_ceil(8) - scan.at) as i64;
    value.is_none_or(|value| value < header)
}
