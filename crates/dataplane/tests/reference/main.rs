//! Tests of the pipeline against a naive switch: random tables, instructions, actions, groups,
//! meters, timeouts, egress tables, commands and frames. A failure prints its seed.
//!
//! `SEEDS=FROM..TO` selects other seeds.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may panic at any place")]

#[path = "../rewrite/change.rs"]
mod change;
mod choices;
#[path = "../../src/rng.rs"]
mod rng;
mod draw;
mod fields;
mod group;
#[path = "../rewrite/kinds.rs"]
mod kinds;
mod meter;
#[allow(dead_code, reason = "shared with the test of changes")]
#[path = "../rewrite/model.rs"]
mod model;
mod pair;
mod resources;
mod set;
mod switch;
mod traffic;

use pair::Pair;

#[test]
fn the_pipeline_agrees_with_the_reference_switch() {
    let (mut frames, mut later, mut left) = (0, 0, 0);
    let (mut learned, mut stayed, mut timed_out, mut metered) = (0, 0, 0, 0);
    let (mut bundled, mut taken_back) = (0, 0);
    let seeds = seeds();
    for seed in seeds.clone() {
        let mut pair = Pair::new(seed);
        for round in 0..25 {
            let place = format!("seed {seed}, round {round}");
            pair.pass(&place);
            for _ in 0..pair.dice.roll(6) {
                pair.command();
            }
            pair.traffic(&place);
        }
        pair.flows_stay(&format!("seed {seed}, at the end"));
        let accounts = &pair.naive.accounts;
        frames += accounts[0].0;
        later += accounts[1].1;
        left += pair.naive.first_egress.map_or(0, |at| accounts[usize::from(at)].1);
        learned += pair.learned;
        stayed += pair.stayed;
        timed_out += pair.timed_out;
        bundled += pair.bundled[0];
        taken_back += pair.bundled[1];
        metered += pair.naive.meters.values().flat_map(|it| &it.done).map(|it| it.0).sum::<u64>();
    }
    println!(
        "seeds {seeds:?}: {frames} frames, {later} matched in the second table, {left} on their way \
         out, {metered} exceeded a band; {timed_out} entries timed out; of {learned} choices of \
         select groups {stayed} times one had to stay when a bucket left; {bundled} commands were \
         done in bundles, {taken_back} taken back"
    );
    if seeds == USUAL {
        assert!(frames > 100_000 && later > 10_000, "hardly a frame reached the second table");
        assert!(
            left > 2_000 && metered > 1_000 && timed_out > 1_000,
            "some part saw hardly a frame"
        );
        assert!(bundled > 2_000 && taken_back > 1_000, "hardly any command was in a bundle");
        assert!(learned > 5_000 && stayed > 1_000, "select groups made hardly any choice");
    }
}

/// The default seeds.
const USUAL: std::ops::Range<u64> = 0..200;

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("SEEDS") else { return USUAL };
    let (from, to) = text.split_once("..").expect("SEEDS=FROM..TO");
    from.parse().unwrap()..to.parse().unwrap()
}
