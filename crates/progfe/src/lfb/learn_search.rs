//! Ext-PG-LearnSearch: a table that learns from frames.
//!
//! The block learns LearnKey with LearnValue from a frame and then looks up SearchKey. Bridge keys
//! use the MAC table of the built-in bridge. These are link-layer addresses with or without a VLAN,
//! learned with the port. Other keys use a hash table. Group addresses are neither learned nor
//! found.

use std::collections::BTreeSet;

use forces::Value;
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use dataplane::forwarder::SIGHTS_MAX;
use dataplane::mac_table::{Hint, Learned, MacKey, MacTable};

use super::aged_table::{Entry, Keyed, key_text, read_key};
use super::fixed::Reader;
use super::{At, Block, Env, Packet, Row, Setup, Verdict, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState};
use crate::compile::symbolic_bytes::Read;
use crate::compile::tree::{LearnQuestion, MacAt, NodeId, TableLookup, Word};
use crate::condition::{Choice, Operand};
use crate::diagnostic::Code;
use crate::program::text;

const KNOWN: u32 = 0;
const UNKNOWN: u32 = 1;
const SAME_PORT: u32 = 2;

/// Component ids.
const ENTRIES: u32 = 8;
const LEARNED: u32 = 9;
const MOVED: u32 = 10;
const FULL: u32 = 11;

/// Event ids.
const ENTRY_LEARNED: u32 = 1;
const ENTRY_MOVED: u32 = 2;
const ENTRY_FORGOTTEN: u32 = 3;
const TABLE_FULL: u32 = 4;

/// Limit of the values that have branches of their own in a tree.
const KNOWN_WAYS_MAX: u32 = 4096;
/// First index of learned rows. Configured rows have lower indices.
pub const LEARNT_FROM: u32 = 1 << 31;
/// Maximum capacity of a table.
pub const ENTRIES_MAX: u32 = 1 << 24;
/// Maximum number of entries that one tick examines.
const AGE_STEPS: usize = 256;

/// The LearnSearch block.
#[derive(Debug)]
pub struct LearnSearch {
    learn_key: Vec<Operand>,
    learn_value: Option<Operand>,
    search_key: Vec<Operand>,
    /// Readers of both keys and the value.
    readers: Readers,
    result: Option<usize>,
    value_limit: u32,
    /// Keys, values, rows.
    statics: Vec<(Vec<u128>, u32, u32)>,
    limits: (u32, Option<Nanos>),
    table: Table,
    /// Counters: learned, moved, full.
    counts: [u64; 3],
    /// Time of the last frame.
    now: Nanos,
    scratch: Vec<u128>,
}

/// Readers of keys and values.
#[derive(Debug)]
struct Readers {
    learn: Vec<Reader>,
    value: Option<Reader>,
    search: Vec<Reader>,
}

/// Lookup state of a frame in a bridge table.
#[derive(Debug, Clone, Copy)]
struct Lookup {
    /// The key to learn, with its value.
    learn: Option<(MacKey, u32)>,
    search: Option<MacKey>,
    hints: [Hint; 2],
    /// The value as read, for comparison.
    own: Option<u128>,
}

/// Storage of the entries.
#[derive(Debug)]
enum Table {
    Mac(MacTable),
    Any(Keyed<u32>),
}

impl Table {
    fn new(is_mac: bool, (entries_max, age): (u32, Option<Nanos>), seed: u64) -> Table {
        if is_mac {
            Table::Mac(MacTable::new(entries_max as usize, age, seed))
        } else {
            Table::Any(Keyed::new(entries_max as usize, age, seed))
        }
    }

    fn learn(&mut self, key: &[u128], value: u32, now: Nanos, has_room: bool) -> Learned {
        match self {
            Table::Mac(table) => {
                let key = mac_key(key);
                match table.lookup(key, now) {
                    None if !has_room => Learned::Full,
                    _ => table.learn(key, value, now),
                }
            }
            Table::Any(table) => match table.find(key, now) {
                Some(place) => {
                    let entry = table.entry_mut(place);
                    if entry.is_static {
                        return Learned::Static;
                    }
                    entry.touched = now;
                    let before = std::mem::replace(&mut entry.value, value);
                    if before == value { Learned::Known } else { Learned::Moved }
                }
                None if !has_room => Learned::Full,
                None => match table.insert(key, value, now, false) {
                    Some(_) => Learned::New,
                    None => Learned::Full,
                },
            },
        }
    }

    fn find(&self, key: &[u128], now: Nanos) -> Option<u32> {
        match self {
            Table::Mac(table) => table.lookup(mac_key(key), now),
            Table::Any(table) => table.find(key, now).map(|place| table.entry(place).value),
        }
    }

    fn set_static(&mut self, key: &[u128], value: u32) -> bool {
        match self {
            Table::Mac(table) => table.set_static(mac_key(key), value),
            Table::Any(table) => table.insert(key, value, Nanos::ZERO, true).is_some(),
        }
    }

    /// Returns the number of entries learned with a value.
    fn count_of(&self, value: u32, now: Nanos) -> usize {
        match self {
            Table::Mac(table) => {
                table.iter(now).filter(|entry| entry.port == value && entry.age.is_some()).count()
            }
            Table::Any(table) => {
                table.iter().filter(|entry| entry.value == value && !entry.is_static).count()
            }
        }
    }

    /// Returns the learned entries: key, value, time of the last use.
    fn learnt(&self, wide: bool, now: Nanos) -> Vec<(Vec<u128>, u32, Nanos)> {
        match self {
            Table::Mac(table) => {
                let learnt = table.iter(now).filter_map(|entry| {
                    let key = numbers_of(entry.mac, entry.vid, wide);
                    Some((key, entry.port, Nanos(now.0.saturating_sub(entry.age?.0))))
                });
                learnt.collect()
            }
            Table::Any(table) => {
                let learnt = table.iter().filter(|entry| !entry.is_static);
                learnt.map(|entry| (entry.key.to_vec(), entry.value, entry.touched)).collect()
            }
        }
    }

    /// Returns all entries: key, value, whether it is static, number.
    fn entries(&self, wide: bool, now: Nanos) -> Vec<(Vec<u128>, u32, bool, u32)> {
        match self {
            Table::Mac(table) => {
                let entry = |entry: dataplane::mac_table::MacEntry| {
                    let key = numbers_of(entry.mac, entry.vid, wide);
                    (key, entry.port, entry.age.is_none(), entry.place)
                };
                let mut all: Vec<_> = table.iter(now).map(entry).collect();
                all.sort_unstable();
                all
            }
            Table::Any(table) => {
                let entry = |(place, it): (u32, &Entry<u32>)| {
                    (it.key.to_vec(), it.value, it.is_static, place)
                };
                table.iter_placed().map(entry).collect()
            }
        }
    }
}

/// Returns an address, and a VLAN if `wide`, as the numbers of a key.
fn numbers_of(mac: Mac, vid: u16, wide: bool) -> Vec<u128> {
    let mac = mac.iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
    if wide { vec![mac, vid.into()] } else { vec![mac] }
}

/// Converts the numbers of a key to a bridge key: address, and VLAN if there are two numbers.
fn mac_key(key: &[u128]) -> MacKey {
    let [_, _, mac @ ..] = (key[0] as u64).to_be_bytes();
    MacKey::new(mac, key.get(1).map_or(0, |vid| *vid as u16))
}

/// Returns true if a key starts with a group address.
fn is_group(operands: &[Operand], key: &[u128]) -> bool {
    operands.first().is_some_and(|of| of.bits() == 48) && key[0] >> 40 & 1 == 1
}

/// Returns the position of a key in the frames of a path, and the frame length that it requires.
fn mac_at(readers: &[Reader], way: &PathState) -> Option<(MacAt, usize)> {
    let mut words = [None; 2];
    let mut bytes = 0;
    for (word, reader) in words.iter_mut().zip(readers) {
        let Reader::Place { start, header, at, bits, .. } = reader else { return None };
        let Read::Field(field) = way.view.read(*at, *bits).filter(|_| way.start == Some(*start))?
        else {
            return None;
        };
        *word = Some(Word::of(field));
        bytes = bytes.max(*header);
    }
    Some((MacAt { mac: words[0]?, vid: words[1] }, bytes))
}

/// Converts a bridge key to the numbers of a key.
fn mac_numbers(key: MacKey, wide: bool, into: &mut Vec<u128>) {
    into.clear();
    into.push(key.mac().iter().fold(0u128, |sum, byte| sum << 8 | u128::from(*byte)));
    into.extend(wide.then_some(u128::from(key.vid())));
}

impl Lookup {
    const NONE: Lookup = Lookup { learn: None, search: None, hints: [Hint::NONE; 2], own: None };
}

impl Readers {
    /// Reads the keys of a frame for a bridge table, and starts both lookups.
    #[inline]
    fn ask(&self, packet: &mut Packet, env: &Env<'_>, table: &MacTable) -> Lookup {
        let own = self.value.as_ref().and_then(|of| of.number(packet, env.frames, env.slots));
        let value = own.and_then(|value| u32::try_from(value).ok());
        let mut key = |readers: &[Reader]| {
            let mut numbers = [0u128; 2];
            for (number, reader) in numbers.iter_mut().zip(readers) {
                *number = reader.number(packet, env.frames, env.slots)?;
            }
            let key = mac_key(&numbers[..readers.len()]);
            (!key.is_group()).then_some(key)
        };
        let learn = value.and_then(|value| Some((key(&self.learn)?, value)));
        let search = key(&self.search);
        let hint = |key: Option<MacKey>| key.map_or(Hint::NONE, |key| table.hint(key));
        Lookup { learn, search, hints: [hint(learn.map(|(key, _)| key)), hint(search)], own }
    }
}

impl LearnSearch {
    /// Returns the number of entries, including static ones.
    pub fn known(&self) -> usize {
        match &self.table {
            Table::Mac(table) => table.len(),
            Table::Any(table) => table.len(),
        }
    }

    /// Returns the upper bound of entry numbers (exclusive).
    pub fn places_end(&self) -> usize {
        match &self.table {
            Table::Mac(table) => table.places_end() as usize,
            Table::Any(table) => table.places_end(),
        }
    }

    /// Returns the entry of a number: its key, its value, and whether it is static. An entry keeps its number until
    /// it is removed.
    pub fn entry(&self, place: usize, now: Nanos) -> Option<(String, u32, bool)> {
        let (key, value, is_static) = match &self.table {
            Table::Mac(table) => {
                let entry = table.entry(place as u32, now)?;
                let key = numbers_of(entry.mac, entry.vid, self.learn_key.len() > 1);
                (key, entry.port, entry.age.is_none())
            }
            Table::Any(table) => {
                let entry = table.at(place)?;
                (entry.key.to_vec(), entry.value, entry.is_static)
            }
        };
        Some((key_text(&self.learn_key, &key), value, is_static))
    }

    /// Returns the bridge table, if the keys are bridge keys.
    #[inline]
    pub fn stations(&self) -> Option<&MacTable> {
        match &self.table {
            Table::Mac(table) => Some(table),
            Table::Any(_) => None,
        }
    }

    /// Returns the bridge table for changes, if the keys are bridge keys.
    pub fn stations_mut(&mut self) -> Option<&mut MacTable> {
        match &mut self.table {
            Table::Mac(table) => Some(table),
            Table::Any(_) => None,
        }
    }

    /// Learns a bridge key with a value, if it is a unicast address. Returns true if learning it
    /// again has no effect.
    #[inline]
    pub fn learn_key(
        &mut self,
        key: MacKey,
        hint: Hint,
        value: Option<u32>,
        env: &mut Env<'_>,
    ) -> bool {
        self.now = env.now;
        let (Table::Mac(table), Some(value), false) = (&mut self.table, value, key.is_group())
        else {
            return true;
        };
        let learned = table.learn_at(key, hint, value, env.now);
        if learned != Learned::Known {
            mac_numbers(key, self.learn_key.len() > 1, &mut self.scratch);
            self.note(learned, value, env);
        }
        learned != Learned::Full
    }

    /// Looks up the value of a bridge key, if it is a unicast address.
    #[inline]
    pub fn find_key(&self, key: MacKey, hint: Hint, now: Nanos) -> Option<u32> {
        match &self.table {
            Table::Mac(table) if !key.is_group() => table.lookup_at(key, hint, now),
            _ => None,
        }
    }

    /// Returns the value of an address, and a VLAN if the key has one.
    pub fn station(&self, mac: Mac, vid: u16, now: Nanos) -> Option<u32> {
        let widths = self.learn_key.iter().map(Operand::bits).collect::<Vec<_>>();
        matches!(widths[..], [48] | [48, 12]).then_some(())?;
        self.table.find(&numbers_of(mac, vid, widths.len() > 1), now)
    }

    fn learn(&mut self, packet: &mut Packet, env: &mut Env<'_>) {
        let around = (env.frames, env.slots);
        let value =
            self.learn_value.as_ref().and_then(|of| packet.number(of, env.frames, env.slots));
        let Some(value) = value.and_then(|value| u32::try_from(value).ok()) else { return };
        if !read_key(&self.learn_key, packet, around, &mut self.scratch)
            || is_group(&self.learn_key, &self.scratch)
        {
            return;
        }
        let limit = self.value_limit as usize;
        let has_room = limit == 0
            || self.table.find(&self.scratch, env.now).is_some()
            || self.table.count_of(value, env.now) < limit;
        let learned = self.table.learn(&self.scratch, value, env.now, has_room);
        self.note(learned, value, env);
    }

    /// Counts and reports what happened to the key in `scratch`.
    fn note(&mut self, learned: Learned, value: u32, env: &mut Env<'_>) {
        let (count, event) = match learned {
            Learned::Known | Learned::Static => return,
            Learned::New => (0, ENTRY_LEARNED),
            Learned::Moved => (1, ENTRY_MOVED),
            Learned::Full => (2, TABLE_FULL),
        };
        self.counts[count] += 1;
        let (operands, key) = (&self.learn_key, &self.scratch);
        env.event(event, &[], || {
            let entry =
                [(1, Value::Text(key_text(operands, key))), (2, Value::Unsigned(value.into()))];
            vec![(vec![ENTRIES], Value::struct_of(entry))]
        });
    }
}

impl Block for LearnSearch {
    fn new(setup: &mut Setup<'_>) -> Self {
        let learn_key = setup.key(1, false);
        let value = setup.text(2);
        let learn_value = setup.operand(&[2], &value);
        let search_key = setup.key(3, false);
        let widths = |key: &[Operand]| key.iter().map(Operand::bits).collect::<Vec<_>>();
        if !learn_key.is_empty()
            && !search_key.is_empty()
            && widths(&learn_key) != widths(&search_key)
        {
            let what = "LearnKey and SearchKey have fields of different widths";
            setup.wrong(&[3], what, "use fields of the same widths, in the same order");
        }
        let entries_max = setup.number(6);
        if entries_max > ENTRIES_MAX {
            let what = format!("{entries_max} entries");
            setup.refuse(Code::Resources, &[6], what, &format!("use at most {ENTRIES_MAX}"));
        }
        let is_port = matches!(&learn_value, Some(Operand::Meta { id: meta_id::PHY_PORT, .. }));
        let is_mac = is_port && matches!(widths(&learn_key)[..], [48] | [48, 12]);
        let age = setup.unsigned(5);
        let age = (age > 0).then(|| Nanos::from_secs(age));
        let limits = (entries_max.min(ENTRIES_MAX), age);
        let mut table = Table::new(is_mac, limits, setup.seed);
        let mut statics = Vec::new();
        for row in setup.rows(ENTRIES).iter().filter(|_| !learn_key.is_empty()) {
            let choices = text::key_values(row.text(1), &learn_key);
            let one = |choice: &Choice| match choice {
                Choice::One(value) => Some(value.value),
                _ => None,
            };
            let key = choices.and_then(|choices| {
                let key: Option<Vec<u128>> = choices.iter().map(one).collect();
                key.ok_or("a key is one value for each field".to_owned())
            });
            let value = row.number(2);
            match key {
                Err(what) => {
                    setup.wrong(&row.path, what, "write a value for each field of LearnKey")
                }
                Ok(_) if is_mac && value > 0xffff => {
                    setup.wrong(
                        &row.path,
                        format!("there is no port {value}"),
                        "use a port up to 65535",
                    );
                }
                Ok(key) if table.set_static(&key, value) => statics.push((key, value, row.index)),
                Ok(_) => {
                    let what = format!("the table is full: at most {entries_max} entries");
                    setup.refuse(Code::Resources, &row.path, what, "raise MaxEntries");
                }
            }
        }
        let (result, value_limit) = (setup.meta_slot(4), setup.number(7));
        let (counts, scratch) = ([0; 3], Vec::new());
        let reader = |of: &Operand| Reader::of(of, setup.frames(), setup.slots);
        let readers = Readers {
            learn: learn_key.iter().map(reader).collect(),
            value: learn_value.as_ref().map(reader),
            search: search_key.iter().map(reader).collect(),
        };
        LearnSearch {
            readers,
            learn_key,
            learn_value,
            search_key,
            result,
            value_limit,
            statics,
            limits,
            table,
            counts,
            now: Nanos::ZERO,
            scratch,
        }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        self.now = env.now;
        self.learn(packet, env);
        let around = (env.frames, env.slots);
        if !read_key(&self.search_key, packet, around, &mut self.scratch)
            || is_group(&self.search_key, &self.scratch)
        {
            return Verdict::Out(UNKNOWN, 0);
        }
        let Some(value) = self.table.find(&self.scratch, env.now) else {
            return Verdict::Out(UNKNOWN, 0);
        };
        if let Some(slot) = self.result {
            packet.meta.set(slot, value.into());
        }
        let own = self.learn_value.as_ref().and_then(|of| packet.number(of, env.frames, env.slots));
        Verdict::Out(if own == Some(value.into()) { SAME_PORT } else { KNOWN }, 0)
    }

    fn process_row(&mut self, row: &mut Row<'_>, env: &mut Env<'_>) -> bool {
        let Table::Mac(table) = &self.table else { return false };
        if self.value_limit != 0 {
            return false;
        }
        self.now = env.now;
        let mut asked = [Lookup::NONE; SIGHTS_MAX];
        let count = row.members.len();
        for (asked, member) in asked.iter_mut().zip(row.members) {
            *asked = self.readers.ask(&mut row.packets[*member as usize], env, table);
        }
        for asked in &mut asked[..count] {
            asked.hints.iter_mut().for_each(|hint| table.guess(hint));
        }
        let result = self.result;
        for (place, asked) in asked[..count].iter().enumerate() {
            let Table::Mac(table) = &mut self.table else { return false };
            if let Some((key, value)) = asked.learn {
                let learned = table.learn_at(key, asked.hints[0], value, env.now);
                if learned != Learned::Known {
                    mac_numbers(key, self.learn_key.len() > 1, &mut self.scratch);
                    self.note(learned, value, env);
                    row.happened(place, env.told.happenings.len());
                }
            }
            let Table::Mac(table) = &self.table else { return false };
            let found = asked.search.and_then(|key| table.lookup_at(key, asked.hints[1], env.now));
            row.verdicts[place] = match found {
                None => Verdict::Out(UNKNOWN, 0),
                Some(value) => {
                    if let Some(slot) = result {
                        row.packets[row.members[place] as usize].meta.set(slot, value.into());
                    }
                    // The learned value is read again, because the result may have replaced it.
                    let is_own = match (&self.readers.value, result) {
                        (Some(Reader::Slot(own)), Some(slot)) if *own == slot => true,
                        _ => asked.own == Some(value.into()),
                    };
                    Verdict::Out(if is_own { SAME_PORT } else { KNOWN }, 0)
                }
            };
        }
        true
    }

    fn grow(&self, mut way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        if self.value_limit != 0 || way.meta.contains(&Some(Known::Found)) {
            return None;
        }
        let Table::Mac(_) = self.table else { return None };
        let (learn, header) = mac_at(&self.readers.learn, &way)?;
        let (search, other) = mac_at(&self.readers.search, &way)?;
        let (own_slot, own) = match self.readers.value {
            Some(Reader::Slot(slot)) => match way.meta[slot] {
                Some(Known::Constant(value)) => (slot, u32::try_from(value).ok()),
                _ => return None,
            },
            _ => return None,
        };
        let came = way.clone();
        if !grower.learns(&mut way) {
            return None;
        }
        let ports = grower.ports().chain(self.statics.iter().map(|(_, value, _)| *value));
        let ports: BTreeSet<u32> = ports.filter(|value| *value < KNOWN_WAYS_MAX).collect();
        let instance = way.instance as u32;
        let known = &mut |grower: &mut TreeBuilder<'_>, mut way: PathState, found: Option<u32>| {
            let meta = found.map_or(Known::Found, |found| Known::Constant(found.into()));
            way.set(self.result, meta);
            let is_own = self.result == Some(own_slot) || found.is_some() && found == own;
            grower.go(way, if is_own { SAME_PORT } else { KNOWN }, 0)
        };
        let ask = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            let stand = grower.stand(came.clone());
            let unknown = grower.go(way.clone(), UNKNOWN, 0);
            let rest = known(grower, way.clone(), None);
            let mut ways = vec![rest; ports.last().map_or(0, |last| *last as usize + 1)];
            for &port in &ports {
                ways[port as usize] = known(grower, way.clone(), Some(port));
            }
            grower.ask(TableLookup::Learn(LearnQuestion {
                instance,
                learn,
                value: own,
                search,
                unknown,
                known: ways.into(),
                other: rest,
                stand,
            }))
        };
        // Without a complete header there is no key.
        let short = &mut |grower: &mut TreeBuilder<'_>, way: PathState| grower.go(way, UNKNOWN, 0);
        Some(grower.length(way, header.max(other), ask, short))
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.counts, &mut old.counts);
        self.now = self.now.max(old.now);
        old.now = self.now;
        let same_keys = (&self.learn_key, &self.learn_value) == (&old.learn_key, &old.learn_value);
        if !same_keys {
            return;
        }
        if self.limits == old.limits && self.statics == old.statics {
            std::mem::swap(&mut self.table, &mut old.table);
            return;
        }
        // Capacity, timeout or static entries differ: learn the entries again with their old times.
        for (key, value, touched) in old.table.learnt(self.learn_key.len() > 1, old.now) {
            self.table.learn(&key, value, touched, true);
        }
    }

    fn tick(&mut self, env: &mut Env<'_>) -> Option<Nanos> {
        let operands = &self.learn_key;
        match &mut self.table {
            Table::Mac(table) => {
                let before = table.counters.aged;
                let due = table.age(env.now, AGE_STEPS);
                for _ in before..table.counters.aged {
                    env.event(ENTRY_FORGOTTEN, &[], Vec::new);
                }
                due
            }
            Table::Any(table) => table.age(env.now, AGE_STEPS, |entry| {
                env.event(ENTRY_FORGOTTEN, &[], || {
                    let key = Value::Text(key_text(operands, &entry.key));
                    vec![(vec![ENTRIES], Value::struct_of([(1, key)]))]
                });
            }),
        }
    }

    fn get(&self, component: u32, now: Nanos) -> Option<Value> {
        let rows = self.statics.iter().map(|(key, _, index)| (&key[..], *index));
        let rows: std::collections::HashMap<&[u128], u32> =
            if component == ENTRIES { rows.collect() } else { Default::default() };
        let row = |(key, value, is_static, place): (Vec<u128>, u32, bool, u32)| {
            let set = rows.get(&key[..]).filter(|_| is_static);
            let index = set.copied().unwrap_or(LEARNT_FROM | place);
            let row = Value::struct_of([
                (1, Value::Text(key_text(&self.learn_key, &key))),
                (2, Value::Unsigned(value.into())),
                (3, Value::Boolean(is_static)),
            ]);
            (index, row)
        };
        match component {
            ENTRIES => {
                let entries = self.table.entries(self.learn_key.len() > 1, now);
                Some(Value::Array(entries.into_iter().map(row).collect()))
            }
            LEARNED => Some(Value::Unsigned(self.counts[0])),
            MOVED => Some(Value::Unsigned(self.counts[1])),
            FULL => Some(Value::Unsigned(self.counts[2])),
            _ => None,
        }
    }

    fn forget(&mut self, component: u32, index: u32) -> bool {
        if component != ENTRIES || index < LEARNT_FROM {
            return false;
        }
        let (wide, now) = (self.learn_key.len() > 1, self.now);
        let place = index & !LEARNT_FROM;
        match &mut self.table {
            Table::Mac(table) => {
                let mut all = table.iter(now);
                let found = all.find(|it| it.place == place && it.age.is_some());
                let key = found.map(|it| numbers_of(it.mac, it.vid, wide));
                drop(all);
                key.is_some_and(|key| table.remove(mac_key(&key)))
            }
            Table::Any(table) => {
                let is_learnt = table.iter_placed().any(|(at, it)| at == place && !it.is_static);
                is_learnt && table.remove(place).is_some()
            }
        }
    }

    fn reset(&mut self, component: u32) {
        if (LEARNED..=FULL).contains(&component) {
            self.counts[(component - LEARNED) as usize] = 0;
        }
    }
}
