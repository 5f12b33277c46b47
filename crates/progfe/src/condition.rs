//! The language of `when`: which frames a rule is for.
//!
//! ```text
//! meta:PHYPortID = 1 and IPv4.dscp in 40..47 and not Vlan
//! Vlan.vid in {100, 200..299} or IPv6.src = fe80::/10 or IPv4.dst = 10.0.0.1/255.0.0.255
//! ```
//!
//! Operands are fields of headers, metadata (`meta:NAME`), and headers, which alone say that they are
//! there. Comparisons are `=`, `ne`, `lt`, `le`, `gt`, `ge` and `in`, by words so that no XML escapes
//! are needed; what is compared with are values, ranges `a..b`, values under a mask `a/bits` or
//! `a/mask`, and sets of these. `and` binds closer than `or`, `not` closer than both; `any` holds
//! always. A comparison of something that is not there does not hold, whichever it is, `ne` included.

use std::fmt;

use crate::frames::{FieldRef, Located, bits};

/// Values as people write them.
pub mod literal;
/// Conditions read from text.
mod parse;
/// Conditions as alternatives of simple tests, for compilers.
pub mod normal;

pub use literal::{Form, Literal};
pub use parse::{ConditionError, Metadatum, TEXT_BYTES_MAX};

/// Which frames a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Every frame.
    Any,
    /// Those for which all hold; two or more.
    All(Vec<Condition>),
    /// Those for which one holds; two or more.
    Either(Vec<Condition>),
    /// Those for which it does not hold.
    Not(Box<Condition>),
    /// Those that have it.
    Present(Operand),
    /// Those that have it, with such a value.
    Test(Operand, Relation),
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// A header, a round of a repeated part, or a field.
    Field {
        /// Which one.
        at: FieldRef,
        /// Bits of a field; zero for a header.
        bits: u32,
        /// As it is written.
        name: String,
    },
    /// What the blocks before said about the frame.
    Meta {
        /// The metadatum's number.
        id: u32,
        /// Its bits.
        bits: u32,
        /// As it is written, without `meta:`.
        name: String,
    },
}

/// How a value is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relation {
    /// `=`.
    Is(Choice),
    /// `ne`.
    Other(Choice),
    /// `in`.
    In(Vec<Choice>),
    /// `lt`.
    Below(Literal),
    /// `le`.
    AtMost(Literal),
    /// `gt`.
    Above(Literal),
    /// `ge`.
    AtLeast(Literal),
}

/// Values that are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// One value.
    One(Literal),
    /// From the one to the other, both included.
    Range(Literal, Literal),
    /// Those that agree with it in so many of the first bits.
    Prefix(Literal, u8),
    /// Those that agree with it where the mask has ones.
    Masked(Literal, Literal),
}

/// What is known of a frame where a condition is asked.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its headers.
    pub located: &'a Located,
    /// Metadata by number, if set.
    pub meta: &'a dyn Fn(u32) -> Option<u128>,
}

impl Facts<'_> {
    /// Whether the operand is there.
    pub fn has(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Field { at, .. } => self.located.has(*at),
            Operand::Meta { id, .. } => (self.meta)(*id).is_some(),
        }
    }

    /// The operand's number.
    pub fn number(&self, operand: &Operand) -> Option<u128> {
        match operand {
            Operand::Field { at, .. } => self.located.read(self.bytes, *at),
            Operand::Meta { id, .. } => (self.meta)(*id),
        }
    }
}

impl Operand {
    /// Its bits; zero for a header.
    pub fn bits(&self) -> u32 {
        match self {
            Operand::Field { bits, .. } | Operand::Meta { bits, .. } => *bits,
        }
    }
}

impl Choice {
    /// Whether a value of an operand of `width` bits is meant.
    pub fn holds(&self, width: u32, value: u128) -> bool {
        match self {
            Choice::One(one) => value == one.value,
            Choice::Range(low, high) => (low.value..=high.value).contains(&value),
            Choice::Prefix(..) | Choice::Masked(..) => {
                let (wanted, mask) = self.masked(width);
                value & mask == wanted & mask
            }
        }
    }

    /// The least and the greatest value of an operand of `width` bits that are meant, as far as a
    /// range can say it.
    pub fn bounds(&self, width: u32) -> (u128, u128) {
        match self {
            Choice::One(one) => (one.value, one.value),
            Choice::Range(low, high) => (low.value, high.value),
            Choice::Prefix(..) | Choice::Masked(..) => {
                let (value, mask) = self.masked(width);
                (value & mask, (value & mask) | (bits::most(width) & !mask))
            }
        }
    }

    /// Value and mask, for those that have one.
    fn masked(&self, width: u32) -> (u128, u128) {
        match self {
            Choice::One(one) | Choice::Range(one, _) => (one.value, bits::most(width)),
            Choice::Masked(value, mask) => (value.value, mask.value),
            Choice::Prefix(value, length) => {
                let behind = width.saturating_sub(u32::from(*length));
                (value.value, bits::most(width) & !bits::most(behind))
            }
        }
    }
}

impl Relation {
    /// Whether it holds for a value of an operand of `width` bits.
    pub fn holds(&self, width: u32, value: u128) -> bool {
        match self {
            Relation::Is(choice) => choice.holds(width, value),
            Relation::Other(choice) => !choice.holds(width, value),
            Relation::In(choices) => choices.iter().any(|choice| choice.holds(width, value)),
            Relation::Below(bound) => value < bound.value,
            Relation::AtMost(bound) => value <= bound.value,
            Relation::Above(bound) => value > bound.value,
            Relation::AtLeast(bound) => value >= bound.value,
        }
    }
}

impl Condition {
    /// Whether it holds for a frame.
    pub fn holds(&self, facts: &Facts<'_>) -> bool {
        match self {
            Condition::Any => true,
            Condition::All(all) => all.iter().all(|one| one.holds(facts)),
            Condition::Either(all) => all.iter().any(|one| one.holds(facts)),
            Condition::Not(one) => !one.holds(facts),
            Condition::Present(operand) => facts.has(operand),
            Condition::Test(operand, relation) => {
                facts.number(operand).is_some_and(|value| relation.holds(operand.bits(), value))
            }
        }
    }

    /// Calls `each` with every operand.
    pub fn operands<'c>(&'c self, each: &mut dyn FnMut(&'c Operand)) {
        match self {
            Condition::Any => {}
            Condition::All(all) | Condition::Either(all) => {
                all.iter().for_each(|one| one.operands(each));
            }
            Condition::Not(one) => one.operands(each),
            Condition::Present(operand) | Condition::Test(operand, _) => each(operand),
        }
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, outer: u8) -> fmt::Result {
        let (parts, word, strength) = match self {
            Condition::Either(parts) => (parts, " or ", 1),
            Condition::All(parts) => (parts, " and ", 2),
            Condition::Any => return f.write_str("any"),
            Condition::Present(operand) => return write!(f, "{operand}"),
            Condition::Test(operand, relation) => return write!(f, "{operand} {relation}"),
            Condition::Not(one) => {
                f.write_str("not ")?;
                return one.show(f, 3);
            }
        };
        if strength <= outer {
            f.write_str("(")?;
        }
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                f.write_str(word)?;
            }
            part.show(f, strength)?;
        }
        if strength <= outer { f.write_str(")") } else { Ok(()) }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, 0)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Field { name, .. } => f.write_str(name),
            Operand::Meta { name, .. } => write!(f, "meta:{name}"),
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Relation::Is(choice) => write!(f, "= {choice}"),
            Relation::Other(choice) => write!(f, "ne {choice}"),
            Relation::Below(bound) => write!(f, "lt {bound}"),
            Relation::AtMost(bound) => write!(f, "le {bound}"),
            Relation::Above(bound) => write!(f, "gt {bound}"),
            Relation::AtLeast(bound) => write!(f, "ge {bound}"),
            Relation::In(choices) => {
                let texts: Vec<String> = choices.iter().map(Choice::to_string).collect();
                write!(f, "in {{{}}}", texts.join(", "))
            }
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::One(one) => write!(f, "{one}"),
            Choice::Range(low, high) => write!(f, "{low}..{high}"),
            Choice::Prefix(value, length) => write!(f, "{value}/{length}"),
            Choice::Masked(value, mask) => write!(f, "{value}/{mask}"),
        }
    }
}

#[cfg(test)]
mod tests;
