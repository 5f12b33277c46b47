//! Table features from words: the switch's own features, with reductions.
//!
//! `features [modify|enable|disable] table=N CHANGE... table=M ... [rest]`. A row starts as the
//! switch first reported that table; `rest` means all other tables unchanged. A change removes
//! names from a list (`without=match:ipv4_src|ipv4_dst`, with list names as in the row's text
//! form), gives the table-miss entry its own list (`miss_without=LIST:NAMES`), or sets a number.

use openflow::model::matching::field_id::FieldId;
use openflow::model::table::features::*;
use openflow::model::{Message, MultipartRequest, MultipartRequestBody};

use crate::frame::number;

/// Rows of one part of a request, which fit into a message in every version.
const PART_ROWS: usize = 24;

/// A request to change table features.
pub struct FeaturesChange {
    command: TableFeaturesCommand,
    rows: Vec<(u8, Vec<Change>)>,
    rest: bool,
}

enum Change {
    Without { list: String, names: Vec<String>, miss: bool },
    NoMask(String),
    Entries(u32),
    MetadataMatch(u64),
    MetadataWrite(u64),
    FirstEgress,
}

/// Parses the request.
pub fn change(words: &[&str]) -> Result<FeaturesChange, String> {
    let command = match words.first() {
        Some(&"modify") => TableFeaturesCommand::Modify,
        Some(&"enable") => TableFeaturesCommand::Enable,
        Some(&"disable") => TableFeaturesCommand::Disable,
        _ => TableFeaturesCommand::Replace,
    };
    let words = if command == TableFeaturesCommand::Replace { words } else { &words[1..] };
    let mut change = FeaturesChange { command, rows: Vec::new(), rest: false };
    for word in words {
        match word.split_once('=') {
            Some(("table", text)) => change.rows.push((number(text)? as u8, Vec::new())),
            None if *word == "rest" => change.rest = true,
            _ => {
                let (_, changes) = change.rows.last_mut().ok_or("table=N comes first")?;
                changes.push(one_change(word)?);
            }
        }
    }
    Ok(change)
}

fn one_change(word: &str) -> Result<Change, String> {
    let (name, text) = word.split_once('=').unwrap_or((word, ""));
    Ok(match name {
        "without" | "miss_without" => {
            let (list, names) = text.split_once(':').ok_or("without=LIST:NAMES")?;
            let names = names.split('|').map(str::to_owned).collect();
            Change::Without { list: list.to_owned(), names, miss: name != "without" }
        }
        "no_mask" => Change::NoMask(text.to_owned()),
        "entries" => Change::Entries(number(text)? as u32),
        "metadata_match" => Change::MetadataMatch(number(text)?),
        "metadata_write" => Change::MetadataWrite(number(text)?),
        "first_egress" => Change::FirstEgress,
        _ => return Err(format!("what a table can do has no {word}")),
    })
}

impl FeaturesChange {
    /// Returns the parts of the request, from the rows that the switch reported.
    pub fn messages(&self, reported: &[TableFeatures]) -> Result<Vec<Message>, String> {
        let mut rows = Vec::new();
        for (table, changes) in &self.rows {
            let row = reported.iter().find(|row| row.table == *table).or(reported.first());
            let row = row.ok_or("the switch reports no table")?;
            let mut row = TableFeatures { table: *table, command: self.command, ..row.clone() };
            changes.iter().try_for_each(|change| change.make(&mut row))?;
            rows.push(row);
        }
        if self.rest {
            let named =
                |row: &&TableFeatures| self.rows.iter().any(|(table, _)| row.table == *table);
            rows.extend(reported.iter().filter(|row| !named(row)).cloned());
        }
        Ok(in_parts(&rows))
    }
}

/// Returns requests that replace all table features with these rows, part by part.
pub fn in_parts(rows: &[TableFeatures]) -> Vec<Message> {
    let count = rows.len().div_ceil(PART_ROWS);
    let part = |(at, rows): (usize, &[TableFeatures])| {
        let body = MultipartRequestBody::TableFeatures(rows.to_vec());
        Message::MultipartRequest(MultipartRequest { more: at + 1 < count, body })
    };
    rows.chunks(PART_ROWS).enumerate().map(part).collect()
}

impl Change {
    fn make(&self, row: &mut TableFeatures) -> Result<(), String> {
        match self {
            Change::Entries(count) => row.entries_max = *count,
            Change::MetadataMatch(bits) => row.metadata_match = *bits,
            Change::MetadataWrite(bits) => row.metadata_write = *bits,
            Change::FirstEgress => {
                row.flags = TableFeatureFlags::EGRESS | TableFeatureFlags::FIRST_EGRESS;
            }
            Change::NoMask(name) => return no_mask(row, name),
            Change::Without { list, names, miss } => {
                let found = row.properties.iter().position(|it| list_of(it) == *list);
                let at = found.ok_or_else(|| format!("table {} has no list {list}", row.table))?;
                let less = without(&row.properties[at], names, *miss)?;
                if *miss {
                    row.properties.insert(at + 1, less);
                } else {
                    row.properties[at] = less;
                }
            }
        }
        Ok(())
    }
}

/// Returns the name of a list in a row's text form.
fn list_of(property: &TableProperty) -> String {
    let text = property.to_string();
    text.split_once('=').map_or(text.clone(), |(name, _)| name.to_owned())
}

/// Removes these names from a list, for entries in general or for table-miss entries.
fn without(
    property: &TableProperty,
    names: &[String],
    is_miss: bool,
) -> Result<TableProperty, String> {
    let mut less = property.clone();
    let gone = match &mut less {
        TableProperty::Instructions { miss, ids } => {
            *miss = is_miss;
            take(ids, names)
        }
        TableProperty::NextTables { miss, tables } => {
            *miss = is_miss;
            take(tables, names)
        }
        TableProperty::Actions { miss, ids, .. } => {
            *miss = is_miss;
            take(ids, names)
        }
        TableProperty::SetField { miss, ids, .. } | TableProperty::CopyField { miss, ids, .. } => {
            *miss = is_miss;
            take(ids, names)
        }
        TableProperty::Match(ids) | TableProperty::Wildcards(ids) => take(ids, names),
        _ => 0,
    };
    if gone == names.len() { Ok(less) } else { Err(format!("not all of {names:?} are in a list")) }
}

/// Removes these names; returns how many were removed.
fn take<T: std::fmt::Display>(from: &mut Vec<T>, names: &[String]) -> usize {
    let before = from.len();
    from.retain(|one| !names.iter().any(|name| one.to_string().trim_end_matches('/') == name));
    before - from.len()
}

/// The field is still supported, but without a mask.
fn no_mask(row: &mut TableFeatures, name: &str) -> Result<(), String> {
    for property in &mut row.properties {
        let TableProperty::Match(ids) = property else { continue };
        for id in ids {
            if let FieldId::Known { field, masked } = id
                && field.to_string() == name
            {
                *masked = false;
                return Ok(());
            }
        }
    }
    Err(format!("table {} has no field {name}", row.table))
}
