//! Reading `claims.csv`: nine columns, quoted where a field holds commas.
//!
//! Source: RFC 4180 for quoting. Invariant: a row that cannot be read is an error with its line,
//! never left out.

use std::fmt;

use record::{Claim, Relation};

/// The columns, in order.
const COLUMNS: [&str; 9] =
    ["study", "item", "place", "subject", "condition", "claim", "value", "unit", "relation"];

/// What is wrong with the text of a claims file; lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimsError {
    /// The first line does not name the nine columns.
    Header,
    /// A line does not have nine fields.
    Fields {
        /// The line.
        line: usize,
        /// Fields that it has.
        have: usize,
    },
    /// A quoted field does not end on its line.
    OpenQuote {
        /// The line.
        line: usize,
    },
    /// The last field is not a relation.
    Relation {
        /// The line.
        line: usize,
        /// What stands there.
        have: String,
    },
}

impl fmt::Display for ClaimsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimsError::Header => write!(f, "line 1: should be {}", COLUMNS.join(",")),
            ClaimsError::Fields { line, have } => {
                write!(f, "line {line}: has {have} fields, not {}", COLUMNS.len())
            }
            ClaimsError::OpenQuote { line } => write!(f, "line {line}: a quote does not end"),
            ClaimsError::Relation { line, have } => {
                write!(f, "line {line}: {have:?} is not a relation")
            }
        }
    }
}

impl std::error::Error for ClaimsError {}

/// The claims in the text of a claims file.
pub fn parse(text: &str) -> Result<Vec<Claim>, ClaimsError> {
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, header)) if header.trim() == COLUMNS.join(",") => {}
        _ => return Err(ClaimsError::Header),
    }
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| claim(index + 1, line))
        .collect()
}

fn claim(line: usize, text: &str) -> Result<Claim, ClaimsError> {
    let fields = fields(text).ok_or(ClaimsError::OpenQuote { line })?;
    let have = fields.len();
    let [study, item, place, subject, condition, claim, value, unit, relation]: [String; 9] =
        fields.try_into().map_err(|_| ClaimsError::Fields { line, have })?;
    let relation = match relation.as_str() {
        "from" => Relation::From,
        "about" => Relation::About,
        "below" => Relation::Below,
        "up to" => Relation::UpTo,
        "value" => Relation::Value,
        "range" => Relation::Range,
        "shape" => Relation::Shape,
        _ => return Err(ClaimsError::Relation { line, have: relation }),
    };
    Ok(Claim { study, item, place, subject, condition, claim, value, unit, relation })
}

/// The fields of one line; absent if a quote does not end.
fn fields(text: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = text.trim_end_matches('\r').chars().peekable();
    while let Some(letter) = letters.next() {
        let field = fields.last_mut().expect("there is always a field");
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => field.push(letter),
        }
    }
    (!quoted).then_some(fields)
}
