//! Checks of frame definitions before any frame is parsed:
//!
//! - Headers consist of whole octets.
//! - No length can exceed the buffer, for any input.
//! - Values fit their fields, and each leads to one format.
//! - No format can follow itself, directly or indirectly, without consuming a byte.

use super::{
    Expression, FIELD_BITS_MAX, Field, Format, FormatId, FrameSet, Item, Next, On, Repeat,
    Variable, Width, bits,
};
use crate::diagnostic::{Code, Place, Problems};

/// Maximum size of a header, and of each part of it, in bytes.
pub const HEADER_BYTES_MAX: i64 = packet::frame::FRAME_BYTES_MAX as i64;

/// Adds all problems of a set.
pub fn check(set: &FrameSet, problems: &mut Problems) {
    for (_, format) in set.formats() {
        let mut one = One { format, problems };
        one.items();
        one.octets();
        for next in &format.next {
            one.next(set, next);
        }
    }
    loops(set, problems);
}

/// Checks of one format.
struct One<'a> {
    format: &'a Format,
    problems: &'a mut Problems,
}

impl One<'_> {
    fn wrong(&mut self, code: Code, place: &Place, name: &str, what: String, hint: &str) {
        let path = if name.is_empty() {
            self.format.name.clone()
        } else {
            format!("{}.{name}", self.format.name)
        };
        self.problems.add(code, place, path, what, hint);
    }

    fn items(&mut self) {
        let format = self.format;
        let last = format.items.len().saturating_sub(1);
        let mut most = 0i64;
        for (at, item) in format.items.iter().enumerate() {
            match item {
                Item::Field(field) => {
                    self.field(field, None);
                    if field.width == Width::Rest && (at != last || !format.next.is_empty()) {
                        let what = "no field can follow the rest of the frame".to_owned();
                        self.wrong(Code::FrameField, &field.place, &field.name, what, "");
                    }
                    if field.checksum.is_some() {
                        self.checksum(field, at as u16);
                    }
                }
                Item::Repeat(repeat) => self.repeat(repeat),
            }
            // An item that is too long has another problem.
            let bits = range(format, item).1;
            most = most.saturating_add(if bits > HEADER_BYTES_MAX * 8 { 0 } else { bits });
        }
        if format.items.is_empty() {
            let what = "a header without fields".to_owned();
            self.wrong(Code::FrameField, &format.place, "", what, "");
        }
        if most > HEADER_BYTES_MAX * 8 {
            let what = format!(
                "the header can have {} bytes, at most {HEADER_BYTES_MAX} are allowed",
                most / 8
            );
            self.wrong(
                Code::FrameLength,
                &format.place,
                "",
                what,
                "bound its parts with max=\"...\"",
            );
        }
    }

    fn field(&mut self, field: &Field, round: Option<&[Field]>) {
        let (place, name) = (&field.place, field.name.as_str());
        if let Width::Bytes { length, max } = &field.width {
            let (low, high) = range_of(self.format, round, length);
            let bound = max.map_or(high, |max| high.min(max.into()));
            if high < 0 {
                let what = format!("the length {length} is always negative");
                self.wrong(Code::FrameLength, place, name, what, "");
            } else if bound > HEADER_BYTES_MAX {
                let what = format!("the length {length} can be {bound}, more than the buffer");
                self.wrong(Code::FrameLength, place, name, what, "bound it with max=\"...\"");
            } else if max.is_some_and(|max| i64::from(max) < low) {
                let what = format!("the length {length} is at least {low}, more than max");
                self.wrong(Code::FrameLength, place, name, what, "");
            }
        }
        for value in [field.is, field.preset].into_iter().flatten() {
            match field.number_bits() {
                Some(width) if value <= bits::most(width) => {}
                Some(width) => {
                    let what = format!("{value} does not fit into {width} bits");
                    self.wrong(Code::FrameField, place, name, what, "");
                }
                None => {
                    let what = format!("a constant needs a field of at most {FIELD_BITS_MAX} bits");
                    self.wrong(Code::FrameField, place, name, what, "");
                }
            }
        }
        if round.is_some() && (field.checksum.is_some() || field.pseudo) {
            let what = "checksum or pseudo-header in a repeated part".to_owned();
            self.wrong(Code::FrameField, place, name, what, "");
        }
        if field.pseudo && (field.bits().is_none_or(|bits| bits % 16 != 0)) {
            let what = "the size of a pseudo-header field is not a multiple of 16 bits".to_owned();
            self.wrong(Code::FrameField, place, name, what, "");
        }
    }

    fn checksum(&mut self, field: &Field, item: u16) {
        let at = self.format.fixed_offset(item);
        if field.bits() != Some(16) || at.is_none_or(|at| at % 16 != 0) {
            let what = "a checksum needs 16 bits at a fixed, even offset".to_owned();
            self.wrong(Code::FrameField, &field.place, &field.name, what, "");
        }
    }

    fn repeat(&mut self, repeat: &Repeat) {
        for field in &repeat.fields {
            self.field(field, Some(&repeat.fields));
            if field.width == Width::Rest {
                let what = "the rest of the frame cannot be repeated".to_owned();
                self.wrong(Code::FrameField, &field.place, &field.name, what, "");
            }
        }
        let (place, name) = (&repeat.place, repeat.name.as_str());
        let (least, most) = round_range(self.format, repeat);
        if least < 8 {
            let what = "a repeat can be empty and never end".to_owned();
            self.wrong(Code::FrameLoop, place, name, what, "add a field that is always present");
        }
        if repeat.bytes.is_none() && repeat.count.is_none() && repeat.until.is_none() {
            let what = "the number of repeats is not defined".to_owned();
            self.wrong(Code::FrameLength, place, name, what, "add bytes, count or until");
        }
        let rounds = most.saturating_mul(repeat.max.into()) / 8;
        let bytes = repeat.bytes.as_ref().map(|bytes| range_of(self.format, None, bytes).1);
        let bound = bytes.map_or(rounds, |bytes| bytes.min(rounds));
        if bound > HEADER_BYTES_MAX {
            let what = format!("it can have {bound} bytes, more than the buffer");
            self.wrong(Code::FrameLength, place, name, what, "bound the repeats with max=\"...\"");
        }
    }

    /// Checks that bits add up to octets before every part in bytes, and before every optional
    /// part.
    fn octets(&mut self) {
        let format = self.format;
        let whole: Vec<&Field> = format.items.iter().filter_map(Item::field).collect();
        if whole.len() == format.items.len() {
            self.run(&whole);
        } else {
            for run in format.items.split(|item| item.field().is_none()) {
                self.run(&run.iter().filter_map(Item::field).collect::<Vec<_>>());
            }
        }
        for item in &format.items {
            if let Item::Repeat(repeat) = item {
                self.run(&repeat.fields.iter().collect::<Vec<_>>());
            }
        }
    }

    fn run(&mut self, fields: &[&Field]) {
        let mut sum = 0u32;
        for (at, field) in fields.iter().enumerate() {
            match field.width {
                Width::Bits(bits) => sum += u32::from(bits),
                Width::Bytes { .. } | Width::Rest => {}
            }
            let next = fields.get(at + 1);
            let goes_on = next.is_some_and(|next| {
                matches!(next.width, Width::Bits(_)) && next.when == field.when
            });
            if !goes_on && !sum.is_multiple_of(8) {
                let what = format!("{sum} bits up to here are not whole octets");
                let (place, name) = (field.place.clone(), field.name.clone());
                self.wrong(Code::FrameOctets, &place, &name, what, "add a reserved field");
                return;
            }
        }
    }

    fn next(&mut self, set: &FrameSet, next: &Next) {
        let width = match next.on {
            On::Field(item) => {
                let field = self.format.items.get(usize::from(item)).and_then(Item::field);
                field.and_then(Field::number_bits).unwrap_or(u32::from(FIELD_BITS_MAX))
            }
            On::Peek(bits) => bits.into(),
            On::Always => 128,
        };
        for pair in next.cases.windows(2) {
            if pair[1].low <= pair[0].high && pair[0].format != pair[1].format {
                let [first, second] = [pair[0], pair[1]].map(|case| &set.format(case.format).name);
                let what = format!("{} selects both \"{first}\" and \"{second}\"", pair[1].low);
                self.wrong(
                    Code::FrameNext,
                    &next.place,
                    "next",
                    what,
                    "use one frame for each value",
                );
            } else if pair[1].low <= pair[0].high {
                let what = format!("{} is listed twice", pair[1].low);
                self.wrong(Code::FrameNext, &next.place, "next", what, "remove one of the cases");
            }
        }
        if let Some(case) = next.cases.iter().find(|case| case.high > bits::most(width)) {
            let what = format!("the value {} does not fit into {width} bits", case.high);
            self.wrong(Code::FrameNext, &next.place, "next", what, "");
        }
    }
}

/// Finds formats that can follow themselves without consuming a byte.
fn loops(set: &FrameSet, problems: &mut Problems) {
    let empty: Vec<bool> = set.formats().map(|(_, format)| least_bits(format) == 0).collect();
    for (id, format) in set.formats().filter(|(id, _)| empty[usize::from(id.0)]) {
        let mut seen = vec![false; empty.len()];
        let mut waiting: Vec<FormatId> = vec![id];
        while let Some(at) = waiting.pop() {
            for target in set.format(at).next.iter().flat_map(Next::targets) {
                if target == id {
                    let what = "the frame can follow itself without consuming a byte".to_owned();
                    let hint = "add a field that is always present";
                    problems.add(Code::FrameLoop, &format.place, &format.name, what, hint);
                    waiting.clear();
                    break;
                }
                if empty[usize::from(target.0)]
                    && !std::mem::replace(&mut seen[usize::from(target.0)], true)
                {
                    waiting.push(target);
                }
            }
        }
    }
}

/// Returns the minimum size of a header in bits.
pub fn least_bits(format: &Format) -> i64 {
    format.items.iter().map(|item| range(format, item).0).sum()
}

/// Returns minimum and maximum size of an item in bits.
fn range(format: &Format, item: &Item) -> (i64, i64) {
    match item {
        Item::Field(field) => field_range(format, None, field),
        Item::Repeat(repeat) => {
            let (least, most) = round_range(format, repeat);
            let rounds = most.saturating_mul(repeat.max.into());
            match (&repeat.bytes, &repeat.count) {
                (Some(bytes), _) => {
                    let (low, high) = range_of(format, None, bytes);
                    let bits = |bytes: i64| bytes.max(0).saturating_mul(8);
                    (bits(low), bits(high).min(rounds.max(bits(low))))
                }
                (None, Some(count)) => {
                    let (low, _) = range_of(format, None, count);
                    (least.saturating_mul(low.clamp(0, repeat.max.into())), rounds)
                }
                (None, None) => (0, rounds),
            }
        }
    }
}

fn round_range(format: &Format, repeat: &Repeat) -> (i64, i64) {
    repeat.fields.iter().fold((0, 0), |sum: (i64, i64), field| {
        let (low, high) = field_range(format, Some(&repeat.fields), field);
        (sum.0.saturating_add(low), sum.1.saturating_add(high))
    })
}

/// Returns minimum and maximum size of a field in bits.
fn field_range(format: &Format, round: Option<&[Field]>, field: &Field) -> (i64, i64) {
    let (low, high) = match &field.width {
        Width::Bits(bits) => (i64::from(*bits), i64::from(*bits)),
        Width::Rest => (0, 0),
        Width::Bytes { length, max } => {
            let (low, high) = range_of(format, round, length);
            let high = max.map_or(high, |max| high.min(max.into())).max(0);
            (low.clamp(0, high).saturating_mul(8), high.saturating_mul(8))
        }
    };
    (if field.when.is_some() { 0 } else { low }, high)
}

/// Returns minimum and maximum value of an expression over the fields of a format.
fn range_of(format: &Format, round: Option<&[Field]>, of: &Expression) -> (i64, i64) {
    of.range(&|variable| {
        let field = match variable {
            Variable::Item(item) => format.items.get(usize::from(item)).and_then(Item::field),
            Variable::Round(field) => round.and_then(|fields| fields.get(usize::from(field))),
        };
        match field {
            Some(Field { is: Some(value), .. }) => {
                let value = i64::try_from(*value).unwrap_or(i64::MAX);
                (value, value)
            }
            Some(field) => {
                let most = bits::most(field.number_bits().unwrap_or(63).min(63));
                (0, i64::try_from(most).unwrap_or(i64::MAX))
            }
            None => (0, i64::MAX),
        }
    })
}
