//! Tests of the wheel against a sorted list.

use std::collections::BTreeMap;

use super::*;
use crate::rng::Rng;

fn pop_all(wheel: &mut Wheel, now: Nanos) -> Vec<u32> {
    let mut due: Vec<u32> =
        std::iter::from_fn(|| wheel.pop(now, &mut usize::MAX.clone())).collect();
    due.sort_unstable();
    due
}

#[test]
fn entries_expire_in_their_tick_and_never_early() {
    let mut wheel = Wheel::default();
    wheel.schedule(7, Nanos::from_secs(1));
    assert_eq!(pop_all(&mut wheel, Nanos(999_999_999)), []);
    assert_eq!(pop_all(&mut wheel, Nanos::from_secs(1)), [7]);
    assert_eq!(wheel.next(), None);
    wheel.schedule(3, Nanos::ZERO);
    assert_eq!(pop_all(&mut wheel, Nanos::from_secs(1)), [3]);
}

#[test]
fn each_step_is_bounded_and_the_rest_follows() {
    let mut wheel = Wheel::default();
    for entry in 0..100 {
        wheel.schedule(entry, Nanos::from_secs(1));
    }
    let (mut out, mut calls) = (0, 0);
    while out < 100 {
        let mut steps = 10;
        while wheel.pop(Nanos::from_secs(2), &mut steps).is_some() {
            out += 1;
        }
        calls += 1;
        assert!(calls <= 40, "an entry moves down a few levels at most");
    }
    assert!(calls >= 10);
}

#[test]
fn the_latest_time_is_handled_like_any_other() {
    let mut wheel = Wheel::default();
    wheel.schedule(1, Nanos::MAX);
    assert_eq!(pop_all(&mut wheel, Nanos::from_secs(1 << 30)), []);
    wheel.cancel(1);
    assert_eq!(wheel.next(), None);
}

#[test]
fn the_wheel_agrees_with_a_sorted_list() {
    for seed in 1..20 {
        let mut dice = Rng::new(seed);
        let mut wheel = Wheel::default();
        let mut due_of: BTreeMap<u32, u64> = BTreeMap::new();
        let mut now = 0;
        for _ in 0..3000 {
            let entry = dice.roll(200) as u32;
            match dice.roll(4) {
                0 => {
                    wheel.cancel(entry);
                    due_of.remove(&entry);
                }
                1 => {
                    let step = TICK.0 << dice.roll(12);
                    now += dice.roll(step);
                    let due = pop_all(&mut wheel, Nanos(now));
                    let tick = now / TICK.0;
                    let wanted: Vec<u32> =
                        due_of.iter().filter(|due| *due.1 <= tick).map(|due| *due.0).collect();
                    assert_eq!(due, wanted, "seed {seed}, at {now}");
                    due_of.retain(|_, due| *due > tick);
                    if let Some(next) = wheel.next() {
                        let first = *due_of.values().min().unwrap();
                        assert!(next.0 > now - now % TICK.0 && next.0 <= first * TICK.0);
                    }
                }
                _ => {
                    let reach = TICK.0 << dice.roll(20);
                    let due = now + dice.roll(reach);
                    wheel.schedule(entry, Nanos(due));
                    due_of.insert(entry, due.div_ceil(TICK.0));
                }
            }
            assert_eq!(wheel.next().is_none(), due_of.is_empty());
        }
    }
}
