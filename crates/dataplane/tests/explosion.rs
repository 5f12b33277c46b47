//! Tests that traffic creates no state in tables, and that no frame makes the next one more
//! expensive.
//!
//! L. Csikor et al., "Tuple space explosion: a denial-of-service attack against a software packet
//! classifier" (CoNEXT 2019), attack a switch that caches decisions under masks. Frames whose
//! fields differ from the rules at each bit in turn create as many masks as there are combinations
//! of bits. Simple policies such as "allow some, drop the rest" suffice. In this data plane, only
//! installed entries create masks.

use dataplane::action::Action;
use dataplane::classifier::NO_ENTRY;
use dataplane::classifier::exact::BATCH_MAX;
use dataplane::fast::verdict::Verdict;
use dataplane::flow::FlowSpec;
use dataplane::forwarder::Outputs;
use dataplane::key::wide::Wide;
use dataplane::key::{Field, Key};
use dataplane::matching::Match;
use dataplane::table::{ClassifierKind, LookupWork, TableSettings, Tables};
use packet::time::Nanos;

const ALLOW: [Action; 1] = [Action::Output { port: 2 }];

/// What the policies allow: an address, a destination port and a source port.
const ADDRESS: u64 = 0x0a00_0001;
const PORT_TO: u64 = 80;
const PORT_FROM: u64 = 12_345;

fn udp(fields: &[(Field, u64)]) -> Match {
    let mut asked = vec![(Field::EthType, 0x0800), (Field::IpProto, 17)];
    asked.extend(fields);
    Match::of(&asked)
}

fn prefix(network: u64, length: u32) -> Match {
    let mask = u64::from(u32::MAX) << (32 - length) & 0xffff_ffff;
    let value = Key::ZERO.with(Field::EthType, 0x0800).with(Field::IpDst, network & mask);
    Match::new(value, Key::ZERO.with(Field::EthType, 0xffff).with(Field::IpDst, mask))
}

/// Creates a table that allows some frames and drops the rest, with other entries next to these.
fn tables(others: impl Iterator<Item = (Match, u16)>) -> Tables {
    let mut tables = Tables::new(&[TableSettings::of(100, 10_000)], 5);
    let mut out = Outputs::new(&[1, 2]);
    let mut add = |matching: Match, priority: u16, actions: &[Action]| {
        let spec = FlowSpec::new(matching, priority, actions);
        tables.add(&spec, Nanos(1), &mut out).expect("there is room");
    };
    add(udp(&[(Field::L4Dst, PORT_TO)]), 60_003, &ALLOW);
    add(udp(&[(Field::IpSrc, ADDRESS)]), 60_002, &ALLOW);
    add(udp(&[(Field::L4Src, PORT_FROM)]), 60_001, &ALLOW);
    others.for_each(|(matching, priority)| add(matching, priority, &[]));
    add(Match::ANY, 0, &[]);
    tables
}

/// Generates the attack: for each combination, one bit of each field is the first that differs from
/// the allowed value, and the later bits are arbitrary. A cache of masks would explode.
fn attack() -> impl Iterator<Item = Key> {
    let bits = |count: u32| 0..count;
    let noise = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    bits(32).flat_map(move |address| {
        bits(16).flat_map(move |to| bits(16).map(move |from| (address, to, from))).map(
            move |(address, to, from)| {
                let some = noise(u64::from(address << 10 | to << 5 | from));
                let off = |value: u64, bit: u32| {
                    let behind = (1u64 << bit) - 1;
                    (value ^ 1 << bit) & !behind | some & behind
                };
                Key::ZERO
                    .with(Field::InPort, 1)
                    .with(Field::EthType, 0x0800)
                    .with(Field::IpProto, 17)
                    .with(Field::IpSrc, off(ADDRESS, address))
                    .with(Field::IpDst, some)
                    .with(Field::L4Dst, off(PORT_TO, to))
                    .with(Field::L4Src, off(PORT_FROM, from))
            },
        )
    })
}

/// Applies the attack twice; the classifier must be as expected and must not change.
fn check(mut tables: Tables, is_it: impl Fn(ClassifierKind) -> bool, probes_max: usize) {
    let described = tables.describe(0).expect("there is a table");
    assert!(is_it(described), "{described:?}");
    let (entries, lists) = (tables.account(0).entries, tables.instruction_lists());
    let mut lookup = tables.reader();
    let keys: Vec<Key> = attack().collect();
    assert_eq!(keys.len(), 32 * 16 * 16);
    let mut pass = || -> Vec<LookupWork> {
        let mut work = Vec::new();
        for keys in keys.chunks(BATCH_MAX) {
            lookup.begin();
            let mut found = [NO_ENTRY; BATCH_MAX];
            lookup.lookup(0, keys, &[], &mut found);
            for (key, found) in keys.iter().zip(found) {
                let verdict = lookup.count(0, found, 1, 60, Nanos(2));
                assert_eq!(verdict, Some(Verdict::Drop), "the policy does not allow {key:?}");
                assert_eq!(lookup.find(0, key, &Wide::ZERO), found);
                work.push(lookup.work(0, key, &Wide::ZERO));
            }
        }
        work
    };
    let (first, second) = (pass(), pass());
    assert_eq!(first, second, "repeated frames cost the same");
    let most = first.iter().map(|work| work.probes).max();
    assert!(most.is_some_and(|most| most <= probes_max), "{most:?} probes");
    assert_eq!(tables.describe(0), Some(described));
    assert_eq!((tables.account(0).entries, tables.instruction_lists()), (entries, lists));
}

#[test]
fn a_simple_policy_keeps_its_classifier() {
    check(tables(std::iter::empty()), |it| it == ClassifierKind::HalfBytes, 1);
}

#[test]
fn a_policy_with_few_masks_keeps_one_hash_table_per_mask() {
    let others = (0..400).map(|at| (udp(&[(Field::IpDst, 0xf000_0000 + at)]), 7));
    check(tables(others), |it| it == ClassifierKind::Hashed { routes: 0, tables: 5 }, 5);
}

#[test]
fn a_policy_with_many_masks_keeps_its_tuples() {
    let others = (0..1000u64).map(|at| {
        let length = 1 + at as u32 % 32;
        let source = Key::ZERO.with(Field::IpSrc, u64::from(u32::MAX) << (at % 29));
        let narrow = prefix(0xf000_0000 | at << 13, length);
        (Match::new(*narrow.value(), narrow.mask().or(&source)), 9 + at as u16)
    });
    let is_merged = |it: ClassifierKind| match it {
        ClassifierKind::Hashed { routes, tables } => routes == 0 && (2..=72).contains(&tables),
        _ => false,
    };
    check(tables(others), is_merged, 72);
}

#[test]
fn a_policy_next_to_a_routing_table_keeps_its_classifier() {
    let others = (0..4000u64).map(|at| {
        let length = [32, 24, 20, 16][at as usize % 4];
        (prefix(0xf000_0000 ^ at << 12 ^ at << 2, length), 100 + length as u16)
    });
    let mut known = std::collections::HashSet::new();
    let others = others.filter(move |(matching, _)| known.insert(*matching));
    let is_routed = |it: ClassifierKind| matches!(it, ClassifierKind::Hashed { routes, tables: 4 } if routes > 2000);
    check(tables(others), is_routed, 5);
}
