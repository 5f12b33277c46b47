//! Parser for conditions. Errors have a byte offset.

use crate::frames::{FrameSet, Part, Width, bits};
use crate::literal;

use super::{Choice, Condition, Form, Literal, Operand, Relation};

/// Maximum size of the text of a condition in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;
/// Maximum nesting of parentheses and `not`.
const DEPTH_MAX: usize = 32;
/// Maximum number of operands and values in a condition.
const PARTS_MAX: usize = 512;

/// Syntax error in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionError {
    /// Byte offset in the text.
    pub at: usize,
    /// Description of the error.
    pub what: String,
    /// Hint for a fix; may be empty.
    pub hint: &'static str,
}

/// A metadata item that a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadatum {
    /// Id of the item.
    pub id: u32,
    /// Width in bits.
    pub bits: u32,
}

impl Condition {
    /// Parses a condition on frames of a set. `meta` resolves metadata names.
    pub fn parse(
        text: &str,
        set: &FrameSet,
        meta: &dyn Fn(&str) -> Option<Metadatum>,
    ) -> Result<Condition, ConditionError> {
        if text.len() > TEXT_BYTES_MAX {
            let what = format!("condition too long: at most {TEXT_BYTES_MAX} bytes");
            return Err(ConditionError { at: 0, what, hint: "split it into several rules" });
        }
        let mut parser = Parser { text, at: 0, depth: 0, parts: 0, set, meta };
        let condition = parser.either()?;
        match parser.peek() {
            (_, "") => Ok(condition),
            (at, word) => fail(at, format!("unexpected \"{word}\""), "join tests with and, or"),
        }
    }
}

impl Operand {
    /// Parses one operand.
    pub fn parse(
        text: &str,
        set: &FrameSet,
        meta: &dyn Fn(&str) -> Option<Metadatum>,
    ) -> Result<Operand, ConditionError> {
        Parser { text, at: 0, depth: 0, parts: 0, set, meta }.operand(0, text)
    }
}

impl Choice {
    /// Parses a right-hand side: a value, a range or a masked value.
    pub fn parse(text: &str, operand: &Operand) -> Result<Choice, ConditionError> {
        let set = FrameSet::default();
        Parser { text, at: 0, depth: 0, parts: 0, set: &set, meta: &|_| None }
            .choice(0, text, operand)
    }
}

fn fail<T>(at: usize, what: impl Into<String>, hint: &'static str) -> Result<T, ConditionError> {
    Err(ConditionError { at, what: what.into(), hint })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    parts: usize,
    set: &'a FrameSet,
    meta: &'a dyn Fn(&str) -> Option<Metadatum>,
}

impl<'a> Parser<'a> {
    /// Returns the next token and its position; empty at the end.
    fn peek(&self) -> (usize, &'a str) {
        let sign = |c: char| matches!(c, '(' | ')' | '{' | '}' | ',' | '=');
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        match rest.find(|c: char| c.is_whitespace() || sign(c)) {
            Some(0) => (start, &rest[..1]),
            Some(length) => (start, &rest[..length]),
            None => (start, rest),
        }
    }

    fn take(&mut self) -> (usize, &'a str) {
        let (at, word) = self.peek();
        self.at = at + word.len();
        (at, word)
    }

    fn takes(&mut self, wanted: &str) -> bool {
        let found = self.peek().1 == wanted;
        if found {
            self.take();
        }
        found
    }

    fn count(&mut self, at: usize) -> Result<(), ConditionError> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return fail(
                at,
                format!("too many tests and values: at most {PARTS_MAX}"),
                "split the rule",
            );
        }
        Ok(())
    }

    fn either(&mut self) -> Result<Condition, ConditionError> {
        let mut parts = vec![self.all()?];
        while self.takes("or") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() > 1 { Condition::Either(parts) } else { parts.remove(0) })
    }

    fn all(&mut self) -> Result<Condition, ConditionError> {
        let mut parts = vec![self.one()?];
        while self.takes("and") {
            parts.push(self.one()?);
        }
        Ok(if parts.len() > 1 { Condition::All(parts) } else { parts.remove(0) })
    }

    fn one(&mut self) -> Result<Condition, ConditionError> {
        let (at, word) = self.peek();
        if matches!(word, "not" | "(") {
            self.take();
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return fail(at, format!("nesting too deep: at most {DEPTH_MAX} levels"), "");
            }
            let condition = if word == "not" {
                Condition::Not(Box::new(self.one()?))
            } else {
                let inside = self.either()?;
                if !self.takes(")") {
                    return fail(self.peek().0, "missing \")\"", "");
                }
                inside
            };
            self.depth -= 1;
            return Ok(condition);
        }
        if self.takes("any") {
            return Ok(Condition::Any);
        }
        self.test()
    }

    fn test(&mut self) -> Result<Condition, ConditionError> {
        let (at, word) = self.take();
        self.count(at)?;
        let operand = self.operand(at, word)?;
        let (relation_at, relation) = self.peek();
        if !matches!(relation, "=" | "ne" | "in" | "lt" | "le" | "gt" | "ge") {
            let whole = match &operand {
                Operand::Meta { .. } => true,
                Operand::Field { at, .. } => {
                    matches!(at.part, Part::Header | Part::Round { field: None, .. })
                }
            };
            if whole {
                return Ok(Condition::Present(operand));
            }
            return fail(
                relation_at,
                format!("missing comparison of \"{word}\""),
                "write a comparison like = 1 or in 3..5",
            );
        }
        self.take();
        if operand.bits() == 0 {
            let what = format!("\"{word}\" is not a number");
            return fail(at, what, "compare metadata or fields of at most 128 bits");
        }
        let relation = match relation {
            "=" | "ne" => {
                let (at, word) = self.take();
                let choice = self.choice(at, word, &operand)?;
                if relation == "=" { Relation::Is(choice) } else { Relation::Other(choice) }
            }
            "in" => Relation::In(self.choices(&operand)?),
            word => {
                let (at, value) = self.take();
                let bound = self.value(at, value, &operand)?;
                match word {
                    "lt" => Relation::Below(bound),
                    "le" => Relation::AtMost(bound),
                    "gt" => Relation::Above(bound),
                    _ => Relation::AtLeast(bound),
                }
            }
        };
        Ok(Condition::Test(operand, relation))
    }

    fn operand(&self, at: usize, word: &str) -> Result<Operand, ConditionError> {
        if word.is_empty() {
            return fail(at, "missing field, header or meta:NAME", "");
        }
        if let Some(name) = word.strip_prefix("meta:") {
            return match (self.meta)(name) {
                Some(Metadatum { id, bits }) => Ok(Operand::Meta { id, bits, name: name.into() }),
                None => fail(
                    at,
                    format!("no metadata item \"{name}\""),
                    "use a name from the libraries",
                ),
            };
        }
        match self.set.resolve(word) {
            Err(what) => fail(at, what, "write fields as Frame.field"),
            Ok(reference) => {
                let field = self.set.field(reference);
                let bits = field.and_then(|field| match field.width {
                    Width::Bits(bits) => Some(bits.into()),
                    _ => field.number_bits(),
                });
                let name = self.set.name_of(reference);
                Ok(Operand::Field { at: reference, bits: bits.unwrap_or(0), name })
            }
        }
    }

    fn choices(&mut self, operand: &Operand) -> Result<Vec<Choice>, ConditionError> {
        if !self.takes("{") {
            let (at, word) = self.take();
            return Ok(vec![self.choice(at, word, operand)?]);
        }
        let mut choices = Vec::new();
        loop {
            let (at, word) = self.take();
            choices.push(self.choice(at, word, operand)?);
            match self.take() {
                (_, ",") => {}
                (_, "}") => return Ok(choices),
                (at, _) => return fail(at, "missing \",\" or \"}\"", ""),
            }
        }
    }

    fn choice(
        &mut self,
        at: usize,
        word: &str,
        operand: &Operand,
    ) -> Result<Choice, ConditionError> {
        self.count(at)?;
        if let Some((low, high)) = word.split_once("..") {
            let behind = at + low.len() + 2;
            let (low, high) = (self.value(at, low, operand)?, self.value(behind, high, operand)?);
            if low.value > high.value {
                return fail(
                    at,
                    format!("empty range {low}..{high}"),
                    "write the smaller value first",
                );
            }
            return Ok(Choice::Range(low, high));
        }
        let Some((value, mask)) = word.split_once('/') else {
            return Ok(Choice::One(self.value(at, word, operand)?));
        };
        let behind = at + value.len() + 1;
        let value = self.value(at, value, operand)?;
        let mask = self.value(behind, mask, operand)?;
        if mask.form != Form::Decimal {
            return Ok(Choice::Masked(value, mask));
        }
        match u8::try_from(mask.value) {
            Ok(length) if u32::from(length) <= operand.bits() => Ok(Choice::Prefix(value, length)),
            _ => {
                let what = format!("{operand} has {} bits, not {}", operand.bits(), mask.value);
                fail(behind, what, "write other masks in hexadecimal")
            }
        }
    }

    fn value(&self, at: usize, word: &str, operand: &Operand) -> Result<Literal, ConditionError> {
        let Some(literal) = literal::read(word) else {
            let what = if word.is_empty() {
                "missing value".to_owned()
            } else {
                format!("invalid value \"{word}\"")
            };
            return fail(at, what, "use a decimal or 0x... number, or a MAC, IPv4 or IPv6 address");
        };
        let width = operand.bits();
        if literal.form.bits().is_some_and(|bits| bits != width) {
            return fail(
                at,
                format!("{operand} has {width} bits, \"{word}\" has another length"),
                "",
            );
        }
        if literal.value > bits::most(width) {
            return fail(at, format!("{word} does not fit into the {width} bits of {operand}"), "");
        }
        Ok(literal)
    }
}
