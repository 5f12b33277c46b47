//! Frame formats as data: any protocol is a few lines of XML.
//!
//! A [`FrameSet`] holds formats; each is a row of fields in bits, or in bytes by an expression, with
//! optional and repeated parts, constants, checksums, and what follows it by the value of a field.
//! Nothing in the code knows a protocol: Ethernet to UDP are a file of such definitions
//! (`libraries/ethernet.frames.xml`), and a program brings its own beside or instead of them.
//!
//! A frame is walked from the set's first format ([`locate`]). All that walks is bounded, by the
//! definitions (checked by [`check`]) and by the frame's bytes.

use std::collections::BTreeMap;

use crate::problem::Place;

/// Whole numbers computed from fields.
pub mod expression;
/// Up to 128 bits anywhere in bytes.
pub mod bits;
/// Definitions read from XML, and written.
pub mod document;
/// What a definition must hold before a frame is walked by it.
pub mod check;
/// Which field of which header a name means.
pub mod reference;
/// Where in a frame its headers and fields are.
pub mod locate;
/// Where fields are for certain, whatever the frame: for compilers.
pub mod ways;
/// Sums over what a checksum covers.
pub mod checksum;
/// Fields written, headers pushed and popped, lengths and checksums kept right.
pub mod edit;

pub use expression::{Expression, Variable};
pub use locate::{Header, Located};
pub use reference::{FieldRef, Part};

/// Formats of one set.
pub const FORMATS_MAX: usize = 1024;
/// Items of a format, and fields of a repeated part.
pub const ITEMS_MAX: usize = 256;
/// Cases of all formats of a set, those taken over by `like` included.
pub const CASES_MAX: usize = 65_536;
/// Bits of a field that is a number.
pub const FIELD_BITS_MAX: u16 = 128;
/// Bits of a field that expressions may use.
pub const COUNTED_BITS_MAX: u16 = 32;
/// Rounds of a repeated part.
pub const ROUNDS_MAX: u16 = 256;
/// Definitions of the protocols of Ethernet networks, as they ship.
pub const ETHERNET: &str = include_str!("../libraries/ethernet.frames.xml");

/// The place of a format in its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormatId(pub u16);

/// Formats by number and by name. Sets are the same that say the same, wherever they stand.
#[derive(Debug, Clone, Default)]
pub struct FrameSet {
    formats: Vec<Format>,
    names: BTreeMap<String, FormatId>,
    /// The format of a frame's first byte; `None` in an empty set.
    pub start: Option<FormatId>,
}

impl PartialEq for FrameSet {
    fn eq(&self, other: &FrameSet) -> bool {
        // Most that are compared stand at the same places too, which is quick to see.
        (&self.formats, self.start) == (&other.formats, other.start)
            || self.to_xml(0) == other.to_xml(0)
    }
}

/// How the bytes of one header are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Format {
    /// Its name: `IPv4`.
    pub name: String,
    /// What it consists of, first byte first.
    pub items: Vec<Item>,
    /// Bytes of the header with all that it encloses; a header for which this does not fit into
    /// what encloses it is not there.
    pub total: Option<Expression>,
    /// As `total`, but ignored where it makes no sense.
    pub ends: Option<Expression>,
    /// What follows: the first one that has an answer counts.
    pub next: Vec<Next>,
    /// Where it is defined.
    pub place: Place,
}

/// A piece of a header.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// One field.
    Field(Field),
    /// Fields that come several times.
    Repeat(Repeat),
}

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name within the header.
    pub name: String,
    /// How long it is.
    pub width: Width,
    /// It is there only if this is not zero.
    pub when: Option<Expression>,
    /// What it holds in every such header: bytes with another value are no such header.
    pub is: Option<u128>,
    /// What a pushed header holds here first, if not zero.
    pub preset: Option<u128>,
    /// It is a checksum of this kind.
    pub checksum: Option<Checksum>,
    /// It belongs to the pseudo-header of the checksums behind it.
    pub pseudo: bool,
    /// Where it is defined.
    pub place: Place,
}

/// How long a field is.
#[derive(Debug, Clone, PartialEq)]
pub enum Width {
    /// So many bits, at most [`FIELD_BITS_MAX`].
    Bits(u16),
    /// So many bytes; more than `max`, or less than none, and the header is not there.
    Bytes {
        /// The length.
        length: Expression,
        /// A bound below what the expression allows.
        max: Option<u32>,
    },
    /// All that is left of what encloses it.
    Rest,
}

/// Fields that come several times: options, TLVs.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// Its name within the header.
    pub name: String,
    /// The fields of one round.
    pub fields: Vec<Field>,
    /// Bytes of all rounds together, padding included.
    pub bytes: Option<Expression>,
    /// How many rounds.
    pub count: Option<Expression>,
    /// The round in which this is not zero is the last one.
    pub until: Option<Expression>,
    /// Rounds that are looked at; at most [`ROUNDS_MAX`].
    pub max: u16,
    /// Where it is defined.
    pub place: Place,
}

/// Which format follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    /// Whose value says it.
    pub on: On,
    /// It says nothing if this is not zero.
    pub unless: Option<Expression>,
    /// Values and formats, in the order of the values.
    pub cases: Vec<Case>,
    /// What follows for all other values.
    pub default: Option<FormatId>,
    /// The format from which it has its cases: its values mean the same as those there.
    pub like: Option<FormatId>,
    /// Where it is defined.
    pub place: Place,
}

/// What a `next` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// A field, by its place in the format.
    Field(u16),
    /// So many bits behind the header, at most 64.
    Peek(u8),
    /// Nothing: the default follows always.
    Always,
}

/// A value, or several, with the format that follows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The least value.
    pub low: u128,
    /// The greatest value.
    pub high: u128,
    /// What follows.
    pub format: FormatId,
    /// Whether it is written here, not taken over from another format.
    pub own: bool,
}

/// What a 16-bit ones-complement checksum (RFC 1071) covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// What is summed.
    pub cover: Cover,
    /// Zero means that there is none (RFC 768).
    pub optional: bool,
}

/// What is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// The header.
    Header,
    /// The header with all that it encloses.
    Rest,
    /// The same, with the pseudo-header: the marked fields of the header around it, the length and
    /// this protocol number.
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

    /// The kind of a name: one of [`Checksum::NAMES`], or `pseudo:` with a protocol number.
    pub fn by_name(name: &str) -> Option<Checksum> {
        if let Some(protocol) = name.strip_prefix("pseudo:") {
            let cover = Cover::Pseudo(protocol.parse().ok()?);
            return Some(Checksum { cover, optional: false });
        }
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// The name of the kind.
    pub fn name(self) -> String {
        match (Self::NAMES.iter().find(|(_, kind)| *kind == self), self.cover) {
            (Some((name, _)), _) => (*name).to_owned(),
            (None, Cover::Pseudo(protocol)) => format!("pseudo:{protocol}"),
            (None, _) => "inet".to_owned(),
        }
    }
}

impl FrameSet {
    /// A set of formats; names that come twice keep their first meaning.
    pub(crate) fn of(formats: Vec<Format>, start: Option<FormatId>) -> FrameSet {
        let mut names = BTreeMap::new();
        for (at, format) in formats.iter().enumerate() {
            names.entry(format.name.clone()).or_insert(FormatId(at as u16));
        }
        FrameSet { formats, names, start }
    }

    /// Every format with its number.
    pub fn formats(&self) -> impl Iterator<Item = (FormatId, &Format)> {
        self.formats.iter().enumerate().map(|(at, format)| (FormatId(at as u16), format))
    }

    /// The format of a number of this set.
    pub fn format(&self, id: FormatId) -> &Format {
        &self.formats[usize::from(id.0)]
    }

    /// The number of a name.
    pub fn find(&self, name: &str) -> Option<FormatId> {
        self.names.get(name).copied()
    }

    /// What bytes that begin with a format say of the header at `end`, if that is where the first one
    /// ends, and if one field says it; whether there is such a header the bytes behind it show. `None` if
    /// headers have to be located to know it.
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
            // What it encloses ends before the frame does: there may be no room for another header.
            let value = value.and_then(|value| usize::try_from(value).ok());
            if value.is_some_and(|value| (end..bytes.len()).contains(&value)) {
                return None;
            }
        }
        Some(next.of(read(item)?))
    }

    /// Whether it has no format at all.
    pub fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }
}

impl Item {
    /// Its name within the header.
    pub fn name(&self) -> &str {
        match self {
            Item::Field(field) => &field.name,
            Item::Repeat(repeat) => &repeat.name,
        }
    }

    /// The field, if it is one.
    pub fn field(&self) -> Option<&Field> {
        match self {
            Item::Field(field) => Some(field),
            Item::Repeat(_) => None,
        }
    }
}

impl Field {
    /// Its bits, if they are the same in every header in which it is there.
    pub fn bits(&self) -> Option<u32> {
        match &self.width {
            Width::Bits(bits) => Some(u32::from(*bits)),
            Width::Bytes { length: Expression::Number(bytes), .. } => {
                u32::try_from(*bytes).ok()?.checked_mul(8)
            }
            _ => None,
        }
    }

    /// Bits of a field whose value is a number.
    pub fn number_bits(&self) -> Option<u32> {
        self.bits().filter(|bits| *bits <= u32::from(FIELD_BITS_MAX))
    }

    /// Whether it is always there and always as long.
    pub fn is_fixed(&self) -> bool {
        self.when.is_none() && self.bits().is_some()
    }
}

impl Format {
    /// The place of an item.
    pub fn item(&self, name: &str) -> Option<u16> {
        self.items.iter().position(|item| item.name() == name).map(|at| at as u16)
    }

    /// Where an item begins, in bits from the header's first, if that is the same in every header.
    pub fn fixed_offset(&self, item: u16) -> Option<u32> {
        let before = self.items.get(..usize::from(item))?;
        before.iter().try_fold(0u32, |sum, item| {
            let field = item.field().filter(|field| field.is_fixed())?;
            sum.checked_add(field.bits()?)
        })
    }

    /// Bytes of the header, if every one is as long.
    pub fn fixed_bytes(&self) -> Option<u32> {
        self.fixed_offset(self.items.len() as u16).map(|bits| bits / 8)
    }

    /// The first `next` that leads to `format`, and the field and value by which it does so.
    pub fn leads_to(&self, format: FormatId) -> Option<(&Next, Option<(u16, u128)>)> {
        self.next.iter().find_map(|next| match next.on {
            On::Field(item) => {
                let case = next.cases.iter().find(|case| case.format == format);
                let value = case.map(|case| case.low).or_else(|| {
                    let field = self.items.get(usize::from(item))?.field()?;
                    let free = ways::others(next, field.number_bits()?);
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
    /// What follows a value.
    pub fn of(&self, value: u128) -> Option<FormatId> {
        let at = self.cases.partition_point(|case| case.low <= value);
        let case = at.checked_sub(1).map(|at| self.cases[at]);
        case.filter(|case| value <= case.high).map(|case| case.format).or(self.default)
    }

    /// Every format that can follow.
    pub fn targets(&self) -> impl Iterator<Item = FormatId> {
        self.cases.iter().map(|case| case.format).chain(self.default)
    }
}

#[cfg(test)]
mod tests;
