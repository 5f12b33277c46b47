//! The condition language of `when`, which selects the frames that a rule matches.
//!
//! ```text
//! meta:PHYPortID = 1 and IPv4.dscp in 40..47 and not Vlan
//! Vlan.vid in {100, 200..299} or IPv6.src = fe80::/10 or IPv4.dst = 10.0.0.1/255.0.0.255
//! ```
//!
//! - Operands are header fields, metadata (`meta:NAME`) and headers. A header alone tests its
//!   presence.
//! - Comparisons are `=`, `ne`, `lt`, `le`, `gt`, `ge` and `in`. Words need no XML escapes.
//! - Right-hand sides are values, ranges `a..b`, masked values `a/bits` or `a/mask`, and sets of
//!   these.
//! - `and` binds tighter than `or`, and `not` tighter than both. `any` is always true.
//! - A comparison with an absent operand is false, including `ne`.

use std::fmt;

use crate::frames::{FieldRef, Located, bits};

mod parse;
pub mod normal;

pub use crate::literal::{Form, Literal};
pub use parse::{ConditionError, Metadatum, TEXT_BYTES_MAX};

/// A condition on frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Every frame.
    Any,
    /// Conjunction of two or more conditions.
    All(Vec<Condition>),
    /// Disjunction of two or more conditions.
    Either(Vec<Condition>),
    /// Negation.
    Not(Box<Condition>),
    /// The operand is present.
    Present(Operand),
    /// The operand is present and its value satisfies the relation.
    Test(Operand, Relation),
}

/// An operand of a condition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operand {
    /// A header, a round of a repeated part, or a field.
    Field {
        /// Reference to the field.
        at: FieldRef,
        /// Width of a field in bits; zero for a header.
        bits: u32,
        /// Name as written.
        name: String,
    },
    /// A metadata item that a preceding block set.
    Meta {
        /// Id of the item.
        id: u32,
        /// Width in bits.
        bits: u32,
        /// Name as written, without `meta:`.
        name: String,
    },
}

/// A comparison.
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

/// Right-hand side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// One value.
    One(Literal),
    /// A range, both ends included.
    Range(Literal, Literal),
    /// Values with the same leading bits.
    Prefix(Literal, u8),
    /// Values with the same bits under a mask.
    Masked(Literal, Literal),
}

/// Inputs of a condition: the data of a frame.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Bytes.
    pub bytes: &'a [u8],
    /// Headers.
    pub located: &'a Located,
    /// Metadata by id, if set.
    pub meta: &'a dyn Fn(u32) -> Option<u128>,
}

impl Facts<'_> {
    /// Returns true if the operand is present.
    pub fn has(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Field { at, .. } => self.located.has(*at),
            Operand::Meta { id, .. } => (self.meta)(*id).is_some(),
        }
    }

    /// Returns the number of the operand.
    pub fn number(&self, operand: &Operand) -> Option<u128> {
        match operand {
            Operand::Field { at, .. } => self.located.read(self.bytes, *at),
            Operand::Meta { id, .. } => (self.meta)(*id),
        }
    }
}

impl Operand {
    /// Returns the width in bits; zero for a header.
    pub fn bits(&self) -> u32 {
        match self {
            Operand::Field { bits, .. } | Operand::Meta { bits, .. } => *bits,
        }
    }
}

impl Choice {
    /// Returns true if the choice includes a value of an operand of `width` bits.
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

    /// Returns the smallest and largest included value of an operand of `width` bits. A masked
    /// choice may not include all values between them.
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

    /// Returns value and mask, if the choice has them.
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
    /// Evaluates the relation for a value of an operand of `width` bits.
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
    /// Evaluates the condition for a frame.
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
