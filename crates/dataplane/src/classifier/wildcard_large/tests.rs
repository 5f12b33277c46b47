//! Tests of routes next to other matches, against a list in rank order.

use packet::field::Field;

use super::rebuild::INSERTED_STEP;
use super::*;
use crate::classifier::linear::LinearTable;
use crate::classifier::store::MOVED;
use crate::classifier::wildcard::tests::{Installed, check_overlap, random_acl_match};
use crate::matching::MatchedFields;
use crate::rng::Rng;

/// Draws an address with few varying bits, so that prefixes nest.
fn address(dice: &mut Rng, family: u128) -> (Field, u128) {
    let low = u128::from(dice.roll(1 << 9)) << 15 ^ u128::from(dice.roll(1 << 4)) << 6;
    match family {
        0x0800 => (Field::Ipv4Dst, 0x0a00_0000 | low | u128::from(dice.roll(3))),
        _ => (Field::Ipv6Dst, 0x2001 << 112 | low << 80 | u128::from(dice.roll(3)) << 60),
    }
}

/// Draws a prefix with the rank of its length, and sometimes with another rank.
fn route(dice: &mut Rng, family: u128) -> (Match, u32) {
    let (field, value) = address(dice, family);
    let lengths: &[u32] = match family {
        0x0800 => &[0, 8, 15, 16, 17, 20, 23, 24, 24, 24, 25, 32],
        _ => &[0, 16, 29, 32, 40, 48, 48, 48, 64, 128],
    };
    let length = dice.pick(lengths);
    let mask = field.ones() & !field.ones().checked_shr(length).unwrap_or(0);
    let asked: [MatchedFields; 2] = [(Field::EthType, family, 0xffff), (field, value & mask, mask)];
    let rank = 10 + 2 * length + if dice.roll(60) == 0 { 1 + dice.roll(9) as u32 } else { 0 };
    (Match::asking(&asked[..if length == 0 { 1 } else { 2 }]), rank)
}

fn probe(dice: &mut Rng, family: u128) -> (Key, Wide) {
    let (field, value) = address(dice, family);
    let family = if dice.roll(20) == 0 { 0x0806 } else { family };
    let whole = Match::asking(&[(Field::EthType, family, 0xffff), (field, value, field.ones())]);
    (*whole.value(), *whole.wide_value())
}

/// Adds matches beyond the upper limit and removes them below the lower one, next to matches that
/// are not routes.
fn check(family: u128, seed: u64) {
    let mut dice = Rng::new(seed);
    let (mut many, mut list) = (LargeWildcardClassifier::new(true, seed), LinearTable::default());
    let mut all = Installed::default();
    let mut view = many.view();
    let (mut had_routes, mut beside) = (false, 0);
    for turn in 0..9000 {
        let (matching, rank) = match dice.roll(12) {
            0 => (random_acl_match(&mut dice), dice.roll(100) as u32),
            _ => route(&mut dice, family),
        };
        let goes = if turn < 4500 { dice.roll(8) == 0 } else { dice.roll(8) != 0 };
        if goes && !all.is_empty() {
            let (matching, rank, entry) = all.take(&mut dice);
            many.remove(&all.slab, &matching, rank, entry);
            list.remove(rank, entry);
        } else {
            let same = many.find_same(&all.slab, &matching, rank);
            assert_eq!(same, list.find_same(&matching, rank), "seed {seed}");
            if same.is_none() {
                let entry = all.add(&matching, rank);
                many.insert(&all.slab, &matching, rank, entry);
                list.insert(&matching, rank, entry);
            }
        }
        let before = MOVED.with(std::cell::Cell::get);
        many.advance(&all.slab, &all);
        let moved = MOVED.with(std::cell::Cell::get) - before;
        assert!(moved <= 40 * INSERTED_STEP, "{moved} moved in one step");
        assert_eq!((many.count(), many.rank_most()), (list.len(), list.rank_most()));
        if many.take_changed() {
            view = many.view();
        }
        had_routes |= many.count_routes() > 0;
        beside = beside.max(many.count() - many.count_routes());
        if turn % 100 == 0 {
            let (matching, rank) = route(&mut dice, family);
            check_overlap(many.overlap(&all.slab, &matching, rank), &list, &matching, rank);
        }
        if turn % 3 > 0 {
            continue;
        }
        let probes: Vec<(Key, Wide)> = (0..5).map(|_| probe(&mut dice, family)).collect();
        let (keys, wide): (Vec<Key>, Vec<Wide>) = probes.into_iter().unzip();
        let mut found = [NO_ENTRY; 5];
        view.find_missing(&all.slab, &keys, &wide, &mut found);
        for ((key, wide), found) in keys.iter().zip(&wide).zip(found) {
            let wanted = list.find(key, wide);
            assert_eq!(view.find(&all.slab, key, wide).0, wanted, "seed {seed}, turn {turn}");
            assert_eq!(found, wanted.unwrap_or(NO_ENTRY), "seed {seed}, turn {turn}");
        }
    }
    assert!(had_routes && beside > 100, "{beside} next to the routes");
    assert_eq!(many.count_routes(), 0, "few are left");
    let mut places: Vec<u32> = many.matches(&all.slab).map(|(_, entry)| entry).collect();
    places.sort_unstable();
    assert_eq!(places, all.places());
}

#[test]
fn ipv4_routes_among_other_matches_equal_a_list() {
    check(0x0800, 1);
}

#[test]
fn ipv6_routes_among_other_matches_equal_a_list() {
    check(0x86dd, 2);
}

#[test]
fn matches_of_a_routing_table_round_trip() {
    let (mut dice, mut all) = (Rng::new(3), Installed::default());
    let mut many = LargeWildcardClassifier::new(true, 3);
    while many.count() < ROUTES_MIN + 400 {
        let (matching, rank) = route(&mut dice, 0x0800);
        if many.find_same(&all.slab, &matching, rank).is_none() {
            let entry = all.add(&matching, rank);
            many.insert(&all.slab, &matching, rank, entry);
            many.advance(&all.slab, &all);
        }
    }
    assert!(many.count_routes() > ROUTES_MIN);
    for (matching, entry) in many.matches(&all.slab) {
        assert!(all.is(entry, &matching), "{matching:?}");
    }
    let asked = LargeWildcardClassifier::new(false, 3);
    assert_eq!(asked.count_routes(), 0);
}
