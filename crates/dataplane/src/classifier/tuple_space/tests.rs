//! Tests of plain and merged tuples against a list in rank order.

use super::*;
use crate::classifier::NO_ENTRY;
use crate::classifier::exact::BATCH_MAX;
use crate::classifier::linear::LinearTable;
use crate::classifier::wildcard::tests::{
    Installed, check_overlap, random_acl_key, random_acl_match, random_match,
};
use crate::key::wide::Wide;
use crate::rng::Rng;

/// Applies random changes to tuples and to a list, and compares lookup results.
fn check(
    may_merge: bool,
    turns: usize,
    seed: u64,
    draw: fn(&mut Rng) -> Match,
    probe: fn(&mut Rng) -> (Key, Wide),
) -> TupleSpace {
    let mut dice = Rng::new(seed);
    let (mut tuples, mut list) = (TupleSpace::new(may_merge, seed), LinearTable::default());
    let mut all = Installed::default();
    let mut views = tuples.views();
    for turn in 0..turns {
        let (matching, rank) = (draw(&mut dice), dice.roll(20) as u32);
        let slab = &all.slab;
        if turn % 8 == 0 {
            check_overlap(tuples.overlap(slab, &matching, rank), &list, &matching, rank);
        }
        let same = tuples.find_same(slab, &matching, rank);
        assert_eq!(same, list.find_same(&matching, rank), "seed {seed}");
        // In the second half, removals outnumber additions.
        let goes = dice.roll(5) < if turn * 2 < turns { 1 } else { 3 };
        if goes && !all.is_empty() {
            let (matching, rank, entry) = all.take(&mut dice);
            tuples.remove(&all.slab, &matching, entry);
            list.remove(rank, entry);
        } else if same.is_none() {
            let entry = all.add(&matching, rank);
            tuples.insert(&all.slab, &matching, entry);
            list.insert(&matching, rank, entry);
        }
        assert_eq!((tuples.len(), tuples.rank_most()), (list.len(), list.rank_most()));
        if tuples.take_changed() {
            views = tuples.views();
        }
        let drawn: Vec<(Key, Wide)> = (0..3).map(|_| probe(&mut dice)).collect();
        let (keys, wide): (Vec<Key>, Vec<Wide>) = drawn.into_iter().unzip();
        let mut found = [NO_ENTRY; BATCH_MAX];
        views.improve(&all.slab, &keys, &wide, 0b111, &mut found);
        for (at, (key, wide)) in keys.iter().zip(&wide).enumerate() {
            let wanted = list.find(key, wide);
            assert_eq!(views.find(&all.slab, key, wide, None).0, wanted, "seed {seed}");
            assert_eq!(found[at], wanted.unwrap_or(NO_ENTRY), "seed {seed}");
        }
    }
    let mut places: Vec<u32> = tuples.matches(&all.slab).map(|(_, entry)| entry).collect();
    places.sort_unstable();
    assert_eq!(places, all.places());
    for (matching, entry) in tuples.matches(&all.slab) {
        assert!(all.is(entry, &matching), "a match round trips");
    }
    tuples
}

fn any_probe(dice: &mut Rng) -> (Key, Wide) {
    let probe = random_match(dice);
    (*probe.value(), *probe.wide_value())
}

fn acl_probe(dice: &mut Rng) -> (Key, Wide) {
    (random_acl_key(dice), Wide::ZERO)
}

#[test]
fn plain_tuples_give_the_lookups_of_a_list_under_random_changes() {
    for seed in 0..60 {
        let tuples = check(seed % 2 == 0, 300, seed, random_match, any_probe);
        assert!(!tuples.is_empty());
    }
}

#[test]
fn merged_tuples_give_the_lookups_of_a_list_under_random_changes() {
    for seed in 0..4 {
        let tuples = check(true, 3000, seed, random_acl_match, acl_probe);
        assert!(tuples.sieve.is_some(), "there were many masks");
    }
}

#[test]
fn entries_above_the_tuple_limit_are_found_in_lists() {
    fn odd(dice: &mut Rng) -> Match {
        let mut matching = random_acl_match(dice);
        let mask = Key([0, dice.roll(1 << 12), 0, 0]).or(matching.mask());
        matching = Match::new(*matching.value(), mask);
        matching
    }
    let tuples = check(true, 1500, 3, odd, acl_probe);
    assert!(tuples.tuples.len() <= TUPLES_MAX, "there is a limit");
    assert!(tuples.crowd.iter().count() > 100);
    assert!(tuples.count_tables() < TUPLES_MAX + 12, "{} tables", tuples.count_tables());
}

#[test]
fn masks_are_merged_only_if_there_are_many() {
    let (mut all, mut dice) = (Installed::default(), Rng::new(5));
    let mut tuples = TupleSpace::new(true, 1);
    let mut masks = std::collections::HashSet::new();
    let mut rank = 0;
    while all.places().len() < 2000 {
        let matching = random_acl_match(&mut dice);
        rank += 1;
        masks.insert(*matching.mask());
        let entry = all.add(&matching, rank);
        tuples.insert(&all.slab, &matching, entry);
        let is_merged = tuples.sieve.is_some();
        assert_eq!(is_merged, masks.len() > MASKS_PLAIN, "{} masks", masks.len());
    }
    assert!(masks.len() > 2 * TUPLES_MAX, "{} masks", masks.len());
    assert!(tuples.count_tables() < TUPLES_MAX + 8, "{} tables", tuples.count_tables());
}
