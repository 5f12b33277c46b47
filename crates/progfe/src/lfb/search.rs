//! Ext-PG-Search: looks up field values in a table.
//!
//! - Exact keys use a hash table.
//! - Longest prefix match: the last field of the key has `/length`. Each prefix length has a hash
//!   table; the longest is searched first.
//! - Ranges: the first row by index that contains the key matches.
//!
//! A frame without one of the fields does not match.

use std::collections::{BTreeMap, HashMap};

use dataplane::hash::Seeded;
use forces::Value;
use packet::time::Nanos;

use super::aged_table::{Key, read_key};
use super::{At, Block, Env, Packet, Setup, Verdict};
use crate::condition::{Choice, Operand};
use crate::diagnostic::Code;
use crate::frames::bits;
use crate::program::text;

const HIT: u32 = 0;
const MISS: u32 = 1;
/// The component Lookups.
const LOOKUPS: u32 = 6;
/// The component Misses.
const MISSES: u32 = 7;

/// The Search block.
#[derive(Debug)]
pub struct Search {
    operands: Vec<Operand>,
    table: Table,
    result: Option<usize>,
    lookups: u64,
    misses: u64,
    scratch: Vec<u128>,
}

/// Result of a row.
#[derive(Debug, Clone, Copy)]
struct Found {
    value: u32,
    output: u32,
}

type Exact = HashMap<Key, Found, Seeded>;

/// Rows, organized by kind of search.
#[derive(Debug)]
enum Table {
    Exact(Exact),
    /// By prefix length of the last field.
    Lpm(BTreeMap<u8, Exact>),
    /// Minimum and maximum of each field.
    Range(Vec<(Vec<Choice>, Found)>),
}

impl Table {
    fn find(&self, key: &mut [u128], operands: &[Operand]) -> Option<Found> {
        match self {
            Table::Exact(rows) => rows.get(&*key).copied(),
            Table::Range(rows) => {
                let holds = |choices: &[Choice]| {
                    let parts = choices.iter().zip(operands).zip(&*key);
                    let mut parts =
                        parts.map(|((choice, of), value)| choice.holds(of.bits(), *value));
                    parts.all(|holds| holds)
                };
                rows.iter().find(|(choices, _)| holds(choices)).map(|(_, found)| *found)
            }
            Table::Lpm(lengths) => {
                let width = operands.last()?.bits();
                for (length, rows) in lengths.iter().rev() {
                    *key.last_mut()? &= prefix_mask(width, *length);
                    if let Some(found) = rows.get(&*key) {
                        return Some(*found);
                    }
                }
                None
            }
        }
    }

    /// Adds a row. Returns the reason if the row is invalid.
    fn add(
        &mut self,
        choices: Vec<Choice>,
        found: Found,
        context: (&[Operand], u64),
    ) -> Option<&'static str> {
        let (operands, seed) = context;
        let one = |choice: &Choice| match choice {
            Choice::One(value) => Some(value.value),
            _ => None,
        };
        let twice = "another row has this key";
        match self {
            Table::Range(rows) => rows.push((choices, found)),
            Table::Exact(rows) => {
                let key: Option<Vec<u128>> = choices.iter().map(one).collect();
                let Some(key) = key else {
                    return Some("an exact key needs one value for each field");
                };
                if rows.insert(key.into(), found).is_some() {
                    return Some(twice);
                }
            }
            Table::Lpm(lengths) => {
                let (Some(last), Some(of)) = (choices.last(), operands.last()) else { return None };
                let (value, length) = match last {
                    Choice::Prefix(value, length) => (value.value, *length),
                    Choice::One(value) => (value.value, of.bits() as u8),
                    _ => return Some("the last field of a prefix needs a value with /length"),
                };
                let before = choices[..choices.len() - 1].iter().map(one).collect();
                let before: Option<Vec<u128>> = before;
                let Some(mut key) = before else {
                    return Some("only the last field can have a prefix");
                };
                key.push(value & prefix_mask(of.bits(), length));
                let rows =
                    lengths.entry(length).or_insert_with(|| HashMap::with_hasher(Seeded(seed)));
                if rows.insert(key.into(), found).is_some() {
                    return Some(twice);
                }
            }
        }
        None
    }
}

fn prefix_mask(width: u32, length: u8) -> u128 {
    bits::most(width) & !bits::most(width.saturating_sub(length.into()))
}

impl Block for Search {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let operands = setup.key(1, false);
        let rows = setup.rows(3);
        let mut table = match setup.unsigned(2) {
            0 => Table::Exact(HashMap::with_capacity_and_hasher(rows.len(), Seeded(setup.seed))),
            1 => Table::Lpm(BTreeMap::new()),
            _ => Table::Range(Vec::with_capacity(rows.len())),
        };
        let entries_max = setup.number(5) as usize;
        if rows.len() > entries_max {
            let what = format!("{} rows, but MaxEntries is {entries_max}", rows.len());
            setup.refuse(Code::Resources, &[3], what, "raise MaxEntries");
        }
        for row in rows.iter().filter(|_| !operands.is_empty()) {
            let found = Found { value: row.number(2), output: row.number(3) };
            let wrong = match text::key_values(row.text(1), &operands) {
                Ok(choices) => {
                    table.add(choices, found, (&operands, setup.seed)).map(str::to_owned)
                }
                Err(what) => Some(what),
            };
            if let Some(what) = wrong {
                let path = [&row.path[..], &[1]].concat();
                setup.wrong(&path, what, "write a value for each field of Key");
            }
        }
        let result = setup.meta_slot(4);
        Search { operands, table, result, lookups: 0, misses: 0, scratch: Vec::new() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        self.lookups += 1;
        let around = (env.frames, env.slots);
        let found = read_key(&self.operands, packet, around, &mut self.scratch)
            .then(|| self.table.find(&mut self.scratch, &self.operands))
            .flatten();
        let Some(found) = found else {
            self.misses += 1;
            return Verdict::Out(MISS, 0);
        };
        if let Some(slot) = self.result {
            packet.meta.set(slot, found.value.into());
        }
        Verdict::Out(HIT, found.output)
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.lookups, &mut old.lookups);
        std::mem::swap(&mut self.misses, &mut old.misses);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        match component {
            LOOKUPS => Some(Value::Unsigned(self.lookups)),
            MISSES => Some(Value::Unsigned(self.misses)),
            _ => None,
        }
    }

    fn reset(&mut self, component: u32) {
        match component {
            LOOKUPS => self.lookups = 0,
            MISSES => self.misses = 0,
            _ => {}
        }
    }
}
