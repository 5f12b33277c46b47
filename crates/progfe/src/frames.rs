//! Frame formats as data: a few lines of XML describe a protocol.
//!
//! A [`FrameSet`] contains formats. A format is a sequence of fields, with a length in bits or a
//! length in bytes from an expression. It may have optional and repeated parts, constants and
//! checksums. A field value selects the next format. The code knows no protocol: a file defines
//! Ethernet to UDP (`libraries/ethernet.frames.xml`), and a program adds or substitutes its own
//! definitions.
//!
//! [`locate`] parses a frame from the first format of the set. The definitions (checked by
//! [`check`]) and the bytes of the frame bound every traversal.

use std::collections::BTreeMap;

use crate::diagnostic::Place;

pub mod expression;
pub mod bits;
pub mod document;
pub mod check;
pub mod reference;
pub mod locate;
pub mod paths;
pub mod checksum;
pub mod edit;

pub use expression::{Expression, Variable};
pub use locate::{Header, Located};
pub use reference::{FieldRef, Part};

/// Maximum number of formats in a set.
pub const FORMATS_MAX: usize = 1024;
/// Maximum number of items in a format, and of fields in a repeated part.
pub const ITEMS_MAX: usize = 256;
/// Maximum number of cases over all formats of a set, including those from `like`.
pub const CASES_MAX: usize = 65_536;
/// Maximum width of a number field in bits.
pub const FIELD_BITS_MAX: u16 = 128;
/// Maximum width of a field in an expression, in bits.
pub const COUNTED_BITS_MAX: u16 = 32;
/// Maximum number of rounds of a repeated part.
pub const ROUNDS_MAX: u16 = 256;
/// Built-in definitions of the protocols of Ethernet networks.
pub const ETHERNET: &str = include_str!("../libraries/ethernet.frames.xml");

/// Index of a format in its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormatId(pub u16);

/// Formats by index and name. Two sets are equal if their definitions are equal, regardless of
/// their places.
#[derive(Debug, Clone, Default)]
pub struct FrameSet {
    formats: Vec<Format>,
    names: BTreeMap<String, FormatId>,
    /// Format of the first byte of a frame; `None` in an empty set.
    pub start: Option<FormatId>,
}

impl PartialEq for FrameSet {
    fn eq(&self, other: &FrameSet) -> bool {
        // Most compared sets also have equal places, which is faster to compare.
        (&self.formats, self.start) == (&other.formats, other.start)
            || self.to_xml(0) == other.to_xml(0)
    }
}

/// Format of a header.
#[derive(Debug, Clone, PartialEq)]
pub struct Format {
    /// Name: `IPv4`.
    pub name: String,
    /// Items in byte order.
    pub items: Vec<Item>,
    /// Total length of the header with its payload, in bytes. A header is absent if this does not
    /// fit into the enclosing data.
    pub total: Option<Expression>,
    /// Like `total`, but an implausible value is ignored.
    pub ends: Option<Expression>,
    /// Rules for the next format; the first with a result applies.
    pub next: Vec<Next>,
    /// Place of the definition.
    pub place: Place,
}

/// A part of a header.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A field.
    Field(Field),
    /// A repeated group of fields.
    Repeat(Repeat),
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name within the header.
    pub name: String,
    /// Width.
    pub width: Width,
    /// Condition: the field is present only if this is not zero.
    pub when: Option<Expression>,
    /// Constant value. Bytes with another value are not such a header.
    pub is: Option<u128>,
    /// Initial value in a pushed header, if not zero.
    pub preset: Option<u128>,
    /// Kind of checksum, if the field is one.
    pub checksum: Option<Checksum>,
    /// Whether the field belongs to the pseudo-header of checksums in the payload.
    pub pseudo: bool,
    /// Place of the definition.
    pub place: Place,
}

/// Width of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Width {
    /// Number of bits, at most [`FIELD_BITS_MAX`].
    Bits(u16),
    /// Number of bytes. The header is absent if the length exceeds `max` or is negative.
    Bytes {
        /// Length expression.
        length: Expression,
        /// Upper bound, lower than the expression permits.
        max: Option<u32>,
    },
    /// All remaining bytes of the enclosing data.
    Rest,
}

/// A repeated group of fields: options, TLVs.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// Name within the header.
    pub name: String,
    /// Fields of one round.
    pub fields: Vec<Field>,
    /// Total bytes of all rounds, including padding.
    pub bytes: Option<Expression>,
    /// Number of rounds.
    pub count: Option<Expression>,
    /// A round in which this is not zero is the last one.
    pub until: Option<Expression>,
    /// Maximum number of rounds to parse; at most [`ROUNDS_MAX`].
    pub max: u16,
    /// Place of the definition.
    pub place: Place,
}

/// Rule for the next format.
#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    /// The value to test.
    pub on: On,
    /// The rule does not apply if this is not zero.
    pub unless: Option<Expression>,
    /// Values and formats, in value order.
    pub cases: Vec<Case>,
    /// Format for all other values.
    pub default: Option<FormatId>,
    /// Format whose cases are used: the values have the same meaning there.
    pub like: Option<FormatId>,
    /// Place of the definition.
    pub place: Place,
}

/// The value that a `next` rule tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// A field, by its index in the format.
    Field(u16),
    /// Number of bits after the header, at most 64.
    Peek(u8),
    /// No value: the default always follows.
    Always,
}

/// A range of values with the next format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Smallest value.
    pub low: u128,
    /// Largest value.
    pub high: u128,
    /// The next format.
    pub format: FormatId,
    /// Whether the case is defined here and not taken from another format.
    pub own: bool,
}

/// Coverage of a 16-bit ones' complement checksum (RFC 1071).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// Data that is summed.
    pub cover: Cover,
    /// Zero means no checksum (RFC 768).
    pub optional: bool,
}

/// Data that is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// The header.
    Header,
    /// The header with its payload.
    Rest,
    /// The header with its payload and the pseudo-header: marked fields of the enclosing header,
    /// the length, and this protocol number.
    Pseudo(u8),
}

impl Checksum {
    /// Kinds by name.
    pub const NAMES: &[(&str, Checksum)] = &[
        ("inet", Checksum { cover: Cover::Header, optional: false }),
        ("inet-all", Checksum { cover: Cover::Rest, optional: false }),
        ("udp", Checksum { cover: Cover::Pseudo(17), optional: true }),
        ("tcp", Checksum { cover: Cover::Pseudo(6), optional: false }),
        ("icmp6", Checksum { cover: Cover::Pseudo(58), optional: false }),
    ];

    /// Returns the kind with a name: one of [`Checksum::NAMES`], or `pseudo:` with a protocol
    /// number.
    pub fn by_name(name: &str) -> Option<Checksum> {
        if let Some(protocol) = name.strip_prefix("pseudo:") {
            let cover = Cover::Pseudo(protocol.parse().ok()?);
            return Some(Checksum { cover, optional: false });
        }
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Returns the name of the kind.
    pub fn name(self) -> String {
        match (Self::NAMES.iter().find(|(_, kind)| *kind == self), self.cover) {
            (Some((name, _)), _) => (*name).to_owned(),
            (None, Cover::Pseudo(protocol)) => format!("pseudo:{protocol}"),
            (None, _) => "inet".to_owned(),
        }
    }
}

impl FrameSet {
    /// Creates a set of formats. A duplicate name refers to the first format.
    pub(crate) fn of(formats: Vec<Format>, start: Option<FormatId>) -> FrameSet {
        let mut names = BTreeMap::new();
        for (at, format) in formats.iter().enumerate() {
            names.entry(format.name.clone()).or_insert(FormatId(at as u16));
        }
        FrameSet { formats, names, start }
    }

    /// Returns all formats with their ids.
    pub fn formats(&self) -> impl Iterator<Item = (FormatId, &Format)> {
        self.formats.iter().enumerate().map(|(at, format)| (FormatId(at as u16), format))
    }

    /// Returns the format with an id.
    pub fn format(&self, id: FormatId) -> &Format {
        &self.formats[usize::from(id.0)]
    }

    /// Returns the id of a name.
    pub fn find(&self, name: &str) -> Option<FormatId> {
        self.names.get(name).copied()
    }

    /// Determines the format after the first header without parsing, if that header ends at `end`
    /// and one field selects the next format. Whether the next header is complete depends on the
    /// following bytes. Returns `None` if the headers must be located.
    pub fn told(&self, start: FormatId, bytes: &[u8], end: usize) -> Option<Option<FormatId>> {
        let format = self.format(start);
        let plain = |item: &Item| item.field().is_some_and(|field| field.is.is_none());
        let [next] = &format.next[..] else { return None };
        let On::Field(item) = next.on else { return None };
        let is_plain =
            format.total.is_none() && next.unless.is_none() && format.items.iter().all(plain);
        if !is_plain || format.fixed_bytes()? as usize != end || bytes.len() < end {
            return None;
        }
        let read = |item: u16| {
            let at = format.fixed_offset(item)? as usize;
            let bits = format.items[usize::from(item)].field()?.number_bits()? as usize;
            bits::read(bytes, at, bits)
        };
        if let Some(ends) = &format.ends {
            let value = ends.value(&|variable| match variable {
                Variable::Item(item) => read(item).and_then(|value| i64::try_from(value).ok()),
                Variable::Round(_) => None,
            });
            // The payload ends before the frame does: there may be no room for another header.
            let value = value.and_then(|value| usize::try_from(value).ok());
            if value.is_some_and(|value| (end..bytes.len()).contains(&value)) {
                return None;
            }
        }
        Some(next.of(read(item)?))
    }

    /// Returns true if the set has no formats.
    pub fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }
}

impl Item {
    /// Returns the name within the header.
    pub fn name(&self) -> &str {
        match self {
            Item::Field(field) => &field.name,
            Item::Repeat(repeat) => &repeat.name,
        }
    }

    /// Returns the field, if it is one.
    pub fn field(&self) -> Option<&Field> {
        match self {
            Item::Field(field) => Some(field),
            Item::Repeat(_) => None,
        }
    }
}

impl Field {
    /// Returns the number of bits, if it is fixed.
    pub fn bits(&self) -> Option<u32> {
        match &self.width {
            Width::Bits(bits) => Some(u32::from(*bits)),
            Width::Bytes { length: Expression::Number(bytes), .. } => {
                u32::try_from(*bytes).ok()?.checked_mul(8)
            }
            _ => None,
        }
    }

    /// Returns the number of bits of a field whose value is a number.
    pub fn number_bits(&self) -> Option<u32> {
        self.bits().filter(|bits| *bits <= u32::from(FIELD_BITS_MAX))
    }

    /// Returns true if the field is always present with the same width.
    pub fn is_fixed(&self) -> bool {
        self.when.is_none() && self.bits().is_some()
    }
}

impl Format {
    /// Returns the index of an item.
    pub fn item(&self, name: &str) -> Option<u16> {
        self.items.iter().position(|item| item.name() == name).map(|at| at as u16)
    }

    /// Returns the bit offset of an item in the header, if it is fixed.
    pub fn fixed_offset(&self, item: u16) -> Option<u32> {
        let before = self.items.get(..usize::from(item))?;
        before.iter().try_fold(0u32, |sum, item| {
            let field = item.field().filter(|field| field.is_fixed())?;
            sum.checked_add(field.bits()?)
        })
    }

    /// Returns the length of the header in bytes, if it is fixed.
    pub fn fixed_bytes(&self) -> Option<u32> {
        self.fixed_offset(self.items.len() as u16).map(|bits| bits / 8)
    }

    /// Returns the first `next` that leads to `format`, with the field and value that select it.
    pub fn leads_to(&self, format: FormatId) -> Option<(&Next, Option<(u16, u128)>)> {
        self.next.iter().find_map(|next| match next.on {
            On::Field(item) => {
                let case = next.cases.iter().find(|case| case.format == format);
                let value = case.map(|case| case.low).or_else(|| {
                    let field = self.items.get(usize::from(item))?.field()?;
                    let free = paths::others(next, field.number_bits()?);
                    free.first().filter(|_| next.default == Some(format)).map(|(low, _)| *low)
                });
                value.map(|value| (next, Some((item, value))))
            }
            On::Always | On::Peek(_) => {
                next.targets().any(|target| target == format).then_some((next, None))
            }
        })
    }
}

impl Next {
    /// Returns the format that a value selects.
    pub fn of(&self, value: u128) -> Option<FormatId> {
        let at = self.cases.partition_point(|case| case.low <= value);
        let case = at.checked_sub(1).map(|at| self.cases[at]);
        case.filter(|case| value <= case.high).map(|case| case.format).or(self.default)
    }

    /// Returns all formats that can follow.
    pub fn targets(&self) -> impl Iterator<Item = FormatId> {
        self.cases.iter().map(|case| case.format).chain(self.default)
    }
}

#[cfg(test)]
mod tests;
