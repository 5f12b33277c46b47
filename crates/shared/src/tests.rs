//! Tests of shared maps against the standard library's map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// An operation on a map.
#[derive(Debug, Clone)]
enum Step {
    Insert(u16, u8),
    Remove(u16),
    Change(u16),
    Copy,
}

fn step() -> impl Strategy<Value = Step> {
    // Few keys, so that they repeat; many steps, so that chunks split and join.
    let key = || 0u16..20_000;
    prop_oneof![
        6 => (key(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
        4 => key().prop_map(Step::Remove),
        2 => key().prop_map(Step::Change),
        1 => Just(Step::Copy),
    ]
}

fn check(map: &Shared<u16, u8>, model: &BTreeMap<u16, u8>) {
    assert!(map.iter().eq(model.iter()));
    assert!(map.iter().rev().eq(model.iter().rev()));
    assert_eq!(map.len(), model.len());
    for (first, chunks) in &map.groups {
        assert!(chunks.len() <= GROUP_MAX && chunks.first().map(|(key, _)| key) == Some(first));
        for (first, entries) in &**chunks {
            let key = entries.first().map(|(key, _)| key);
            assert!(entries.len() <= CHUNK_MAX && key == Some(first));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_map_equals_the_standard_map_and_copies_do_not_change(
        begin in prop_oneof![0u16..2000, 8000u16..20_000],
        cut in any::<bool>(),
        steps in prop::collection::vec(step(), 0..2000),
    ) {
        let mut map: Shared<u16, u8> = (0..begin).map(|key| (key, 0)).collect();
        let mut model: BTreeMap<u16, u8> = (0..begin).map(|key| (key, 0)).collect();
        let mut copies = vec![(map.clone(), model.clone())];
        if cut {
            // Whole groups are removed, and the remaining parts are joined.
            for key in (0..begin).filter(|key| key % 997 != 0) {
                prop_assert_eq!(map.remove(&key), model.remove(&key));
            }
        }
        for step in steps {
            match step {
                Step::Insert(key, value) => {
                    prop_assert_eq!(map.insert(key, value), model.insert(key, value));
                }
                Step::Remove(key) => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                Step::Change(key) => {
                    if let Some(value) = map.get_mut(&key) {
                        *value ^= 1;
                    }
                    if let Some(value) = model.get_mut(&key) {
                        *value ^= 1;
                    }
                    prop_assert_eq!(map.get(&key), model.get(&key));
                }
                Step::Copy if copies.len() < 8 => copies.push((map.clone(), model.clone())),
                Step::Copy => {}
            }
        }
        check(&map, &model);
        prop_assert!(map.range(100..=700).eq(model.range(100..=700)));
        prop_assert!(map.range(2000..).eq(model.range(2000..)));
        for (copy, model_of_copy) in &copies {
            check(copy, model_of_copy);
            let mut reported = Vec::new();
            copy.differences(&map, |key, old, new| reported.push((*key, old.copied(), new.copied())));
            let keys: std::collections::BTreeSet<u16> =
                model_of_copy.keys().chain(model.keys()).copied().collect();
            let all = keys.into_iter().map(|key| {
                (key, model_of_copy.get(&key).copied(), model.get(&key).copied())
            });
            let differ: Vec<_> = all.filter(|(_, old, new)| old != new).collect();
            prop_assert_eq!(reported, differ);
            prop_assert_eq!(*copy == map, *model_of_copy == model);
        }
        let mut kept = map.clone();
        kept.retain(|key, _| key % 3 == 0);
        model.retain(|key, _| key % 3 == 0);
        check(&kept, &model);
        prop_assert!(kept.into_iter().eq(model));
    }
}

#[test]
fn comparing_maps_skips_shared_chunks() {
    /// A number that counts its comparisons.
    #[derive(Clone)]
    struct Told<'a>(u32, &'a std::cell::Cell<usize>);
    impl PartialEq for Told<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.1.set(self.1.get() + 1);
            self.0 == other.0
        }
    }
    let compared = std::cell::Cell::new(0);
    let map: Shared<u32, Told<'_>> = (0..100_000).map(|key| (key, Told(0, &compared))).collect();
    let mut other = map.clone();
    other.insert(50_000, Told(1, &compared));
    other.remove(&70_000);
    let mut keys = Vec::new();
    map.differences(&other, |key, _, _| keys.push(*key));
    assert_eq!(keys, [50_000, 70_000]);
    assert!(compared.get() <= 2 * CHUNK_MAX, "{} were compared", compared.get());
}

#[test]
fn the_last_of_equal_keys_wins() {
    let map: Shared<u8, char> = [(2, 'a'), (1, 'b'), (2, 'c')].into();
    assert!(map.iter().eq([(&1, &'b'), (&2, &'c')]));
}

#[test]
fn a_map_is_cleared_in_steps_and_copies_keep_their_entries() {
    let value = Arc::new(());
    let entry = |key: u32| (key, Arc::clone(&value));
    let mut map: Shared<u32, Arc<()>> = (0..20_000).map(entry).collect();
    let copy = map.clone();
    assert!(map.clear_some(|_| 0, &mut 1), "a copy keeps all entries");
    assert_eq!((map.len(), map.iter().count()), (0, 0));
    let mut map = copy.clone();
    map.insert(7, Arc::clone(&value));
    assert!(map.clear_some(|_| 0, &mut (CHUNK_MAX + GROUP_MAX + 9)), "except around that entry");
    assert_eq!(copy.iter().count(), 20_000);
    let mut map = copy;
    let (mut calls, mut left) = (1, Arc::strong_count(&value));
    while !map.clear_some(|_| 1, &mut 100) {
        let now = Arc::strong_count(&value);
        assert!((40..=50).contains(&(left - now)), "{} in one call", left - now);
        (calls, left) = (calls + 1, now);
    }
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(calls >= 400, "{calls} calls");
}
