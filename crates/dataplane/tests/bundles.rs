//! Tests of lookup threads while bundles swap one complete set of entries for another.
//!
//! A bundle adds, changes, replaces and deletes entries in two tables, with every kind of
//! classifier. Every batch of lookups sees all of a bundle or nothing. No thread sees a bundle that
//! is rolled back.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use dataplane::action::Action;
use dataplane::classifier::exact::BATCH_MAX;
use dataplane::fast::verdict::Verdict;
use dataplane::flow::{FlowFilter, FlowRemovedReason, FlowSpec, ModifyRules};
use dataplane::forwarder::Outputs;
use dataplane::key::wide::Wide;
use dataplane::key::{Field, Key};
use dataplane::matching::Match;
use dataplane::table::{Classifier, ClassifierKind, Lookup, TableSettings, Tables};
use packet::time::Nanos;

const TABLES: u8 = 2;
/// Output ports of the two sets.
const PORTS: [u16; 2] = [10, 11];
const READERS: usize = 2;

/// A kind of classifier, and entries for it.
struct Kind {
    settings: TableSettings,
    /// Number of swapped entries.
    count: u64,
    /// Returns the key of a frame for entry `number`.
    key: fn(u64) -> Key,
    /// Returns the match and priority of an entry, in one of two forms.
    form: fn(u64, u64) -> (Match, u16),
    /// Entries that stay and never win.
    others: Vec<(Match, u16)>,
    /// Whether the table uses the expected classifier.
    is_it: fn(ClassifierKind) -> bool,
}

fn plain(number: u64) -> Key {
    *Match::exact(Key::ZERO.with(Field::EthSrc, number).with(Field::EthType, 0x88b5)).value()
}

/// Returns the match of a destination prefix, and of a source prefix if one is given.
fn route(network: u64, length: u32, source_bits: u32) -> Match {
    let prefix = |length: u32| u64::from(u32::MAX) << (32 - length) & 0xffff_ffff;
    let mask = Key::ZERO.with(Field::EthType, 0xffff).with(Field::IpDst, prefix(length));
    let value = Key::ZERO.with(Field::EthType, 0x0800).with(Field::IpDst, network);
    Match::new(value, mask.with(Field::IpSrc, prefix(source_bits)))
}

fn routed(number: u64) -> Key {
    Key::ZERO.with(Field::EthType, 0x0800).with(Field::IpDst, 0x0a00_0001 | number << 8)
}

fn swapped_route(form: u64, number: u64) -> (Match, u16) {
    let length = 24 + form as u32;
    (route(0x0a00_0000 | number << 8, length, 0), 100 + length as u16)
}

/// Returns the entries of a set: matches in one of two forms, sent to one of two ports.
fn set(kind: &Kind, form: u64, color: usize) -> impl Iterator<Item = FlowSpec> + '_ {
    let each = (0..TABLES).flat_map(|table| (0..kind.count).map(move |number| (table, number)));
    each.map(move |(table, number)| {
        let (matching, priority) = (kind.form)(form, number);
        let actions = [Action::Output { port: PORTS[color].into() }];
        FlowSpec { table, cookie: 1, ..FlowSpec::new(matching, priority, &actions) }
    })
}

/// Filter of the swapped entries.
fn swapped() -> FlowFilter {
    FlowFilter { cookie: (1, 1), ..FlowFilter::ALL }
}

/// State that a lookup thread shares with the thread that changes tables.
#[derive(Default)]
struct Seen {
    batches: AtomicU64,
    /// The set that the last batch saw.
    color: AtomicU64,
}

/// Looks up all keys, batch after batch, until `done`. Returns the number of frames for each set.
fn read(mut lookup: Lookup, kind: &Kind, seen: &Seen, done: &AtomicBool) -> [u64; 2] {
    let mut frames = [0; 2];
    let numbers: Vec<u64> = (0..kind.count).collect();
    while !done.load(Relaxed) {
        lookup.begin();
        let mut colors = [0; 2];
        for table in 0..TABLES {
            for numbers in numbers.chunks(BATCH_MAX) {
                let keys: Vec<Key> = numbers.iter().map(|&number| (kind.key)(number)).collect();
                let mut found = [0; BATCH_MAX];
                lookup.lookup(table, &keys, &[], &mut found);
                for (at, found) in found.iter().take(keys.len()).enumerate() {
                    let single = lookup.find(table, &keys[at], &Wide::ZERO);
                    assert_eq!(single, *found, "single lookups agree with the batch");
                    let verdict = lookup.count(table, *found, 1, 60, Nanos(1));
                    let color = PORTS.iter().position(|&it| Some(Verdict::Output(it)) == verdict);
                    let number = numbers[at];
                    let color = color.unwrap_or_else(|| {
                        panic!("entry {number} of table {table} has the verdict {verdict:?}")
                    });
                    colors[color] += 1;
                }
            }
        }
        assert!(colors.contains(&0), "a batch found {colors:?} entries of the two sets");
        frames[0] += colors[0];
        frames[1] += colors[1];
        seen.color.store(u64::from(colors[1] > 0), Relaxed);
        if frames[0] / 64 % 5 == 0 {
            lookup.rest();
        }
        seen.batches.store(seen.batches.load(Relaxed) + 1, Release);
    }
    frames
}

/// Swaps the sets `turns` times while other threads look up.
fn swap(kind: &Kind, turns: u64) {
    let settings = [kind.settings; TABLES as usize];
    let mut tables = Tables::new(&settings, 7);
    let (mut out, now) = (Outputs::new(&[1]), Nanos(1));
    for table in 0..TABLES {
        for (matching, priority) in &kind.others {
            let actions = [Action::Output { port: 99 }];
            let spec = FlowSpec { table, ..FlowSpec::new(*matching, *priority, &actions) };
            tables.add(&spec, now, &mut out).expect("there is room");
        }
    }
    let (mut form, mut color) = (0, 0);
    for spec in set(kind, form, color) {
        tables.add(&spec, now, &mut out).expect("there is room");
    }
    let how = tables.describe(0).expect("there is a table");
    assert!((kind.is_it)(how), "{how:?}");
    let done = AtomicBool::new(false);
    let seen: [Seen; READERS] = Default::default();
    let readers: [Lookup; READERS] = std::array::from_fn(|_| tables.reader());
    let frames: Vec<[u64; 2]> = std::thread::scope(|scope| {
        let done = &done;
        let readers: Vec<_> = readers.into_iter().zip(&seen).collect();
        let readers = readers
            .into_iter()
            .map(|(lookup, seen)| scope.spawn(move || read(lookup, kind, seen, done)));
        let readers: Vec<_> = readers.collect();
        for turn in 0..turns {
            tables.begin();
            let other = 1 - color;
            match turn % 4 {
                // Changed in place.
                0 => {
                    let spec = set(kind, form, other).next().expect("there are some");
                    let spec = FlowSpec { table: TABLES - 1, ..spec };
                    let rules = ModifyRules::default();
                    tables.modify(&spec, &swapped(), rules, now, &mut out).expect("they can be");
                }
                // Replaced by others.
                1 | 2 => {
                    let added = |tables: &mut Tables, out: &mut Outputs| {
                        for spec in set(kind, 1 - form, other) {
                            tables.add(&spec, now, out).expect("there is room");
                        }
                    };
                    tables.delete(&swapped(), FlowRemovedReason::Deleted, now, &mut out);
                    // Some are added and removed within the bundle.
                    added(&mut tables, &mut out);
                    tables.delete(&swapped(), FlowRemovedReason::Deleted, now, &mut out);
                    added(&mut tables, &mut out);
                }
                // The same matches again, one by one.
                _ => {
                    for spec in set(kind, form, other) {
                        tables.add(&spec, now, &mut out).expect("they are replaced");
                    }
                }
            }
            if turn % 3 == 2 {
                tables.take_back();
            } else {
                tables.keep(&mut out);
                form = if matches!(turn % 4, 1 | 2) { 1 - form } else { form };
                color = other;
            }
            // Another entry is added or removed, and published immediately or later.
            let spec = FlowSpec::new(Match::exact(plain(5_000_000)), 1, &[]);
            if turn % 2 == 0 {
                tables.add(&spec, now, &mut out).expect("there is room");
            } else {
                let filter = FlowFilter::strictly(spec.matching, 1);
                tables.delete(&filter, FlowRemovedReason::Deleted, now, &mut out);
            }
            out.events.clear();
            tables.publish();
            // Batches that begin from now on see the change.
            for (seen, reader) in seen.iter().zip(&readers) {
                let from = seen.batches.load(Acquire);
                while seen.batches.load(Acquire) < from + 2 && !reader.is_finished() {
                    std::thread::yield_now();
                }
                let saw = seen.color.load(Relaxed) as usize;
                assert!(
                    saw == color || reader.is_finished(),
                    "turn {turn}: the last batch used set {saw}"
                );
            }
        }
        done.store(true, Relaxed);
        readers.into_iter().map(|reader| reader.join().expect("every batch used one set")).collect()
    });
    assert!(frames.iter().flatten().all(|&frames| frames > 0), "every set was used: {frames:?}");
    assert_eq!(tables.totals(&swapped()).entries, kind.count as usize * usize::from(TABLES));
    assert!(tables.is_settled(), "readers that left block nothing");
}

#[test]
fn exact_entries() {
    let kind = Kind {
        settings: TableSettings::of(300, 10),
        count: 200,
        key: plain,
        form: |form, number| (Match::exact(plain(number)), 5 + form as u16),
        others: (0..80).map(|it| (Match::exact(plain(9000 + it)), 5)).collect(),
        is_it: |_| true,
    };
    swap(&kind, 24);
}

#[test]
fn exact_entries_above_wildcard_entries() {
    let kind = Kind {
        settings: TableSettings::of(300, 300),
        count: 60,
        key: plain,
        form: |form, number| match (form + number) % 2 {
            0 => (Match::exact(plain(number)), 7),
            _ => (Match::of(&[(Field::EthSrc, number)]), 6),
        },
        others: vec![(Match::of(&[(Field::EthType, 0x88b5)]), 3), (Match::exact(plain(900)), 5)],
        is_it: |_| true,
    };
    swap(&kind, 24);
}

#[test]
fn few_wildcard_entries() {
    let kind = Kind {
        settings: TableSettings::of(0, 300),
        count: 100,
        key: plain,
        form: |form, number| {
            let open = [(Field::EthSrc, number), (Field::EthType, 0x88b5)];
            (Match::of(&open[..1 + form as usize]), 500 + form as u16)
        },
        others: vec![(Match::ANY, 1)],
        is_it: |how| how == ClassifierKind::HalfBytes,
    };
    swap(&kind, 24);
}

#[test]
fn a_linear_table() {
    let kind = Kind {
        settings: TableSettings { classifier: Classifier::Linear, ..TableSettings::of(0, 300) },
        count: 64,
        key: plain,
        form: |form, number| (Match::of(&[(Field::EthSrc, number)]), 500 + form as u16),
        others: vec![(Match::ANY, 1)],
        is_it: |how| how == ClassifierKind::List,
    };
    swap(&kind, 24);
}

#[test]
fn hashes_for_masks() {
    let kind = Kind {
        settings: TableSettings::holding(1000),
        count: 150,
        key: plain,
        form: |form, number| {
            // Half of the entries keep their match and change their priority.
            let fields = [(Field::EthSrc, number), (Field::EthType, 0x88b5)];
            let asked = 1 + (form * (number % 2)) as usize;
            (Match::of(&fields[..asked]), 500 + form as u16)
        },
        others: (0..150).map(|it| (Match::of(&[(Field::EthSrc, it)]), 3)).collect(),
        is_it: |how| matches!(how, ClassifierKind::Hashed { routes: 0, .. }),
    };
    swap(&kind, 24);
}

#[test]
fn merged_masks() {
    // Other entries with many masks; some match too, with a lower rank.
    let other = |at: u64| {
        let (length, source) = (1 + at as u32 * 7 % 32, at as u32 % 33);
        (route(0x0a00_0000 ^ at << 9, length, source), (at % 100) as u16)
    };
    let kind = Kind {
        settings: TableSettings::of(0, 4000),
        count: 60,
        key: routed,
        form: |form, number| {
            let length = 24 + form as u32 + number as u32 % 5;
            (route(0x0a00_0000 | number << 8, length, 0), 900 + number as u16)
        },
        others: (0..900).map(other).collect(),
        is_it: |how| matches!(how, ClassifierKind::Hashed { routes: 0, tables: 13.. }),
    };
    swap(&kind, 24);
}

#[test]
fn a_routing_table() {
    let other = |at: u64| match at % 8 {
        0 => (route(0x0b00_0000 | at << 5, 20, 0), 120),
        1 => (route(0x0b00_0000 | at << 4, 28, 0), 128),
        2 => (route(0x0b00_0000 | at << 7, 25, 0), 125),
        _ => (route(0x0b00_0000 | at << 8, 24, 0), 124),
    };
    let kind = Kind {
        settings: TableSettings::of(0, 8000),
        count: 120,
        key: routed,
        form: swapped_route,
        others: (0..3000).map(other).collect(),
        is_it: |how| matches!(how, ClassifierKind::Hashed { routes: 2000.., .. }),
    };
    swap(&kind, 24);
}
