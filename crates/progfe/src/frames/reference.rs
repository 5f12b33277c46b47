//! Names of fields and headers: `IPv4.dscp`, `Vlan[1].vid`, `IPv4.options[0].kind`.
//!
//! Headers of the same format are numbered from the outermost, which is number zero and may omit
//! the index.

use super::{Field, FormatId, FrameSet, Item, ROUNDS_MAX};

/// Maximum number of headers of one format that a name can denote.
pub const INSTANCES_MAX: u8 = 32;

/// A header of a frame, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldRef {
    /// Format.
    pub format: FormatId,
    /// Occurrence number within the format, outermost first.
    pub instance: u8,
    /// Part of the header.
    pub part: Part,
}

/// A part of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The whole header.
    Header,
    /// A field, by its index in the format.
    Item(u16),
    /// A field in a round of a repeated part.
    Round {
        /// Index of the repeated part in the format.
        item: u16,
        /// Number of the round, from zero.
        round: u16,
        /// Index of the field in the round; none denotes the whole round.
        field: Option<u16>,
    },
}

impl FieldRef {
    /// Returns the reference to the header of the field.
    pub fn header(self) -> FieldRef {
        FieldRef { part: Part::Header, ..self }
    }
}

impl FrameSet {
    /// Resolves a name. Returns the reason if it is invalid.
    pub fn resolve(&self, name: &str) -> Result<FieldRef, String> {
        let mut pieces = name.split('.');
        let (format_name, instance) = indexed(pieces.next().unwrap_or_default())?;
        let Some(format) = self.find(format_name) else {
            return Err(format!("no frame \"{format_name}\""));
        };
        let instance = instance.unwrap_or(0);
        if instance >= u16::from(INSTANCES_MAX) {
            return Err(format!("too many headers of one format: at most {INSTANCES_MAX}"));
        }
        let header = FieldRef { format, instance: instance as u8, part: Part::Header };
        let Some(piece) = pieces.next() else { return Ok(header) };
        let (item_name, round) = indexed(piece)?;
        let definition = self.format(format);
        let missing = || format!("\"{format_name}\" has no field \"{item_name}\"");
        let item = definition.item(item_name).ok_or_else(missing)?;
        let part = match (&definition.items[usize::from(item)], round, pieces.next()) {
            (Item::Field(_), None, None) => Part::Item(item),
            (Item::Field(_), ..) => return Err(format!("\"{item_name}\" is a single field")),
            (Item::Repeat(_), Some(round), None) => {
                Part::Round { item, round: bounded(round)?, field: None }
            }
            (Item::Repeat(_), None, _) => {
                return Err(format!(
                    "\"{item_name}\" is a repeated part: the first one is {item_name}[0]"
                ));
            }
            (Item::Repeat(repeat), Some(round), Some(last)) => {
                let at = repeat.fields.iter().position(|field| field.name == last);
                let missing = || format!("\"{item_name}\" has no field \"{last}\"");
                let field = Some(at.ok_or_else(missing)? as u16);
                Part::Round { item, round: bounded(round)?, field }
            }
        };
        match pieces.next() {
            None => Ok(FieldRef { part, ..header }),
            Some(more) => Err(format!("unexpected name \"{more}\"")),
        }
    }

    /// Returns the name of a reference.
    pub fn name_of(&self, reference: FieldRef) -> String {
        let format = self.format(reference.format);
        let mut name = format.name.clone();
        if reference.instance > 0 {
            name.push_str(&format!("[{}]", reference.instance));
        }
        match reference.part {
            Part::Header => {}
            Part::Item(item) => {
                name.push('.');
                name.push_str(format.items[usize::from(item)].name());
            }
            Part::Round { item, round, field } => {
                let item = &format.items[usize::from(item)];
                name.push_str(&format!(".{}[{round}]", item.name()));
                if let (Item::Repeat(repeat), Some(field)) = (item, field) {
                    name.push('.');
                    name.push_str(&repeat.fields[usize::from(field)].name);
                }
            }
        }
        name
    }

    /// Returns the definition of the field; `None` for a header or a round.
    pub fn field(&self, reference: FieldRef) -> Option<&Field> {
        let format = self.format(reference.format);
        match reference.part {
            Part::Header => None,
            Part::Item(item) => format.items[usize::from(item)].field(),
            Part::Round { item, field, .. } => match &format.items[usize::from(item)] {
                Item::Repeat(repeat) => repeat.fields.get(usize::from(field?)),
                Item::Field(_) => None,
            },
        }
    }
}

fn bounded(round: u16) -> Result<u16, String> {
    if round < ROUNDS_MAX {
        Ok(round)
    } else {
        Err(format!("repeat index above {}", ROUNDS_MAX - 1))
    }
}

/// Splits `name[3]` into name and index.
fn indexed(piece: &str) -> Result<(&str, Option<u16>), String> {
    let Some((name, index)) = piece.split_once('[') else { return Ok((piece, None)) };
    let digits = index
        .strip_suffix(']')
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(index) => Ok((name, Some(index))),
        None => Err(format!("invalid index \"[{index}\"")),
    }
}
