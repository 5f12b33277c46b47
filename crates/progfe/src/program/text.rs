//! Text forms of operands and keys in components.
//!
//! A component names an operand as conditions do: `Eth.src`, `meta:PHYPortID`. Several operands,
//! separated by spaces, form a key. Keys of tables are the values of these operands, one each:
//! `10.0.0.0/8`, `5..9`, `10.0.0.1 53`.

use forces::Catalog;
use forces::model::Kind;

use crate::condition::{Choice, Condition, ConditionError, Metadatum, Operand};
use crate::frames::FrameSet;

/// Maximum number of operands in a key.
pub const KEY_OPERANDS_MAX: usize = 8;

/// Returns the metadata item with a name, and its width. Its type is a number, or up to 16 bytes.
pub fn metadatum(catalog: &Catalog, name: &str) -> Option<Metadatum> {
    let metadata = catalog.metadata(name)?;
    let bits = match &metadata.data_type.target().kind {
        Kind::Atomic(atomic) => atomic.base.width().map_or(0, |bytes| bytes as u32 * 8),
        _ => 0,
    };
    Some(Metadatum { id: metadata.id, bits: if bits <= 128 { bits } else { 0 } })
}

/// Parses a condition with the names of a program.
pub fn condition(
    text: &str,
    frames: &FrameSet,
    catalog: &Catalog,
) -> Result<Condition, ConditionError> {
    Condition::parse(text, frames, &|name| metadatum(catalog, name))
}

/// Parses one operand with a number value.
pub fn operand(text: &str, frames: &FrameSet, catalog: &Catalog) -> Result<Operand, String> {
    let operand = Operand::parse(text.trim(), frames, &|name| metadatum(catalog, name))
        .map_err(|error| error.what)?;
    match operand.bits() {
        0 => Err(format!("\"{text}\" is not a number of at most 128 bits")),
        _ => Ok(operand),
    }
}

/// Parses the operands of a key, one or more.
pub fn key(text: &str, frames: &FrameSet, catalog: &Catalog) -> Result<Vec<Operand>, String> {
    let operands: Vec<Operand> = text
        .split_whitespace()
        .map(|word| operand(word, frames, catalog))
        .collect::<Result<_, _>>()?;
    match operands.len() {
        0 => Err("a key needs at least one field".to_owned()),
        count if count > KEY_OPERANDS_MAX => {
            Err(format!("too many fields in a key: at most {KEY_OPERANDS_MAX}"))
        }
        _ => Ok(operands),
    }
}

/// Parses the values for the operands of a key, one for each.
pub fn key_values(text: &str, operands: &[Operand]) -> Result<Vec<Choice>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() != operands.len() {
        return Err(format!("expected {} values, \"{text}\" has {}", operands.len(), words.len()));
    }
    let pairs = words.iter().zip(operands);
    pairs.map(|(word, of)| Choice::parse(word, of).map_err(|error| error.what)).collect()
}

/// Trigger of a state transition: `in:0`, `count ge 5`, `in:1 and idle ge 10`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trigger {
    /// Input of matching frames; none for any input.
    pub input: Option<u32>,
    /// Additional tests that must hold.
    pub tests: Vec<(Quantity, Comparison, u64)>,
}

/// Quantity that a state machine counts per flow, since the flow entered its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Frames, including the current one.
    Count,
    /// Bytes, including those of the current frame.
    Bytes,
    /// Seconds since it entered the state.
    Age,
    /// Seconds since its last frame.
    Idle,
}

/// Comparison of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`.
    Equal,
    /// `lt`.
    Below,
    /// `le`.
    AtMost,
    /// `gt`.
    Above,
    /// `ge`.
    AtLeast,
}

impl Comparison {
    /// Evaluates the comparison.
    pub fn holds(self, quantity: u64, bound: u64) -> bool {
        match self {
            Comparison::Equal => quantity == bound,
            Comparison::Below => quantity < bound,
            Comparison::AtMost => quantity <= bound,
            Comparison::Above => quantity > bound,
            Comparison::AtLeast => quantity >= bound,
        }
    }
}

impl Trigger {
    /// Parses a trigger. `any` and an empty text match every frame.
    pub fn parse(text: &str) -> Result<Trigger, String> {
        let mut trigger = Trigger::default();
        if matches!(text.trim(), "" | "any") {
            return Ok(trigger);
        }
        for part in text.split(" and ") {
            let words: Vec<&str> = part.split_whitespace().collect();
            match words[..] {
                [word] if word.starts_with("in:") && trigger.input.is_none() => {
                    let index = word[3..].parse();
                    trigger.input = Some(index.map_err(|_| format!("\"{word}\" is not an input"))?);
                }
                [quantity, comparison, number] => {
                    let quantity = match quantity {
                        "count" => Quantity::Count,
                        "bytes" => Quantity::Bytes,
                        "age" => Quantity::Age,
                        "idle" => Quantity::Idle,
                        _ => {
                            return Err(format!("\"{quantity}\" is not count, bytes, age or idle"));
                        }
                    };
                    let comparison = match comparison {
                        "=" => Comparison::Equal,
                        "lt" => Comparison::Below,
                        "le" => Comparison::AtMost,
                        "gt" => Comparison::Above,
                        "ge" => Comparison::AtLeast,
                        _ => return Err(format!("\"{comparison}\" is not =, lt, le, gt or ge")),
                    };
                    let number =
                        number.parse().map_err(|_| format!("\"{number}\" is not a number"))?;
                    trigger.tests.push((quantity, comparison, number));
                }
                _ => return Err(format!("\"{}\" is neither in:N nor a comparison", part.trim())),
            }
        }
        Ok(trigger)
    }
}

/// Parses the bytes of a pattern: `\xHH`, `\\`, `\n`, `\r`, `\t`; all other text as UTF-8.
pub fn pattern(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            bytes.extend(letter.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        match letters.next() {
            Some('\\') => bytes.push(b'\\'),
            Some('n') => bytes.push(b'\n'),
            Some('r') => bytes.push(b'\r'),
            Some('t') => bytes.push(b'\t'),
            Some('x') => {
                let digits: String = letters.by_ref().take(2).collect();
                let plain = digits.len() == 2 && digits.chars().all(|d| d.is_ascii_hexdigit());
                let byte = u8::from_str_radix(&digits, 16).ok().filter(|_| plain);
                bytes.push(byte.ok_or(format!("\"\\x{digits}\" is not a byte"))?);
            }
            other => return Err(format!("unknown escape \"\\{}\"", other.unwrap_or(' '))),
        }
    }
    Ok(bytes)
}

/// Parses an offset: `12`, or `12..200` for the range of a pattern's first byte.
pub fn offsets(text: &str) -> Result<Option<(u32, u32)>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (low.trim().parse(), high.trim().parse()) {
        (Ok(low), Ok(high)) if low <= high => Ok(Some((low, high))),
        _ => Err(format!("\"{text}\" is neither an offset nor a range a..b")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_patterns_and_offsets_are_parsed_or_rejected() {
        let trigger = Trigger::parse("in:1 and count ge 5").unwrap();
        assert_eq!(trigger.input, Some(1));
        assert_eq!(trigger.tests, [(Quantity::Count, Comparison::AtLeast, 5)]);
        assert_eq!(Trigger::parse("any"), Ok(Trigger::default()));
        for bad in ["in:x", "count", "count ge", "hops ge 3", "count above 3", "in:1 and in:2"] {
            assert!(Trigger::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(pattern("\\x03bad\\\\"), Ok(vec![3, b'b', b'a', b'd', b'\\']));
        for bad in ["\\x1", "\\q", "\\", "\\x+1"] {
            assert!(pattern(bad).is_err(), "{bad}");
        }
        assert_eq!(offsets("12..200"), Ok(Some((12, 200))));
        assert_eq!(offsets("7"), Ok(Some((7, 7))));
        assert!(offsets("9..3").is_err());
    }
}
