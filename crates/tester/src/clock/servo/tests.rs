//! Tests with drifting clocks and a reference with read noise.

use super::*;
use crate::mix::mix;

const START: u64 = 100_000_000_000;

/// A clock with an offset of `offset` nanoseconds and a rate of `ppb`, at true time `at`.
fn local(at: u64, offset: u64, ppb: i64) -> Nanos {
    let gained = i128::from(at - START) * i128::from(ppb) / 1_000_000_000;
    Nanos((i128::from(at + offset) + gained) as u64)
}

/// Pseudo-random noise of at most `most` nanoseconds in either direction.
fn scatter(place: u64, most: u64) -> i64 {
    (mix(place ^ 0xc10c) % (2 * most + 1)) as i64 - most as i64
}

/// A servo after this many pulses, and the true time then.
fn disciplined(offset: u64, ppb: i64, noise: u64, pulses: u64) -> (Discipline, u64) {
    let mut clock = Discipline::new();
    for place in 0..pulses {
        let at = START + place * 1_000_000_000;
        let seen = Nanos((local(at, offset, ppb).0 as i64 + scatter(place, noise)) as u64);
        clock.meet(&ClockReading { local: seen, reference: Nanos(at), error: Nanos(10) });
    }
    (clock, START + (pulses - 1) * 1_000_000_000)
}

#[test]
fn offset_and_drift_converge_within_the_stated_error() {
    for (offset, ppb, noise) in
        [(0, 0, 0), (7, 40_000, 0), (1_234_567_890_123, -80_000, 50), (5_000_000, 300, 500)]
    {
        let (clock, last) = disciplined(offset, ppb, noise, 60);
        let mut worst: f64 = 0.0;
        for at in (last..last + 1_000_000_000).step_by(100_000_000) {
            let here = local(at, offset, ppb);
            let off = clock.reference(here).unwrap().0 as f64 - at as f64;
            let error = clock.error_ns(here).unwrap();
            assert!(off.abs() <= error, "{offset} {ppb} {noise}: {off} ns, stated {error}");
            worst = worst.max(error);
        }
        // The error is that of the pulses, not of the disciplined clock.
        assert!(worst <= 12.0 + 4.0 * noise as f64, "{worst} ns stated for {noise}");
        assert!((clock.ppb() + ppb as f64).abs() < 20.0 + noise as f64, "{}", clock.ppb());
    }
}

#[test]
fn without_the_reference_the_error_grows() {
    let (clock, last) = disciplined(3_000, 20_000, 100, 60);
    let error = |seconds: u64| {
        let at = last + seconds * 1_000_000_000;
        let here = local(at, 3_000, 20_000);
        let off = clock.reference(here).unwrap().0 as f64 - at as f64;
        let error = clock.error_ns(here).unwrap();
        assert!(off.abs() <= error, "{seconds} s: {off} ns, stated {error}");
        error
    };
    assert!(error(30) > 10.0 * error(1));
}

#[test]
fn an_outlier_pulse_is_ignored_and_a_new_reference_time_is_adopted() {
    let (mut clock, last) = disciplined(3_000, 20_000, 100, 60);
    let before = clock.clone();
    let at = last + 400_000_000;
    let wrong =
        ClockReading { local: local(at, 3_000, 20_000), reference: Nanos(last), error: Nanos(10) };
    clock.meet(&wrong);
    assert_eq!(clock.readings(), (60, 1));
    assert_eq!(clock.reference(Nanos(at)), before.reference(Nanos(at)));
    // The reference is set by ten seconds: after a few pulses the clock follows.
    for place in 1..80 {
        let at = last + place * 1_000_000_000;
        let reference = Nanos(at + 10_000_000_000);
        clock.meet(&ClockReading { local: local(at, 3_000, 20_000), reference, error: Nanos(10) });
    }
    let at = last + 79_500_000_000;
    let here = local(at, 3_000, 20_000);
    let off = clock.reference(here).unwrap().0 as f64 - (at + 10_000_000_000) as f64;
    assert!(off.abs() <= clock.error_ns(here).unwrap(), "{off}");
}

#[test]
fn no_error_is_stated_before_the_loop_has_settled() {
    let (clock, last) = disciplined(0, 0, 10, 1);
    assert_eq!(clock.reference(Nanos(last)), None);
    let (clock, last) = disciplined(0, 0, 10, SETTLING - 1);
    assert!(clock.reference(Nanos(last)).is_some());
    assert_eq!(clock.error_ns(Nanos(last)), None);
}

#[test]
fn repeated_and_earlier_edges_change_nothing() {
    let (mut clock, last) = disciplined(0, 50, 10, 40);
    let before = clock.reference(Nanos(last + 7));
    let edge = ClockReading { local: Nanos(last - 5), reference: Nanos(last), error: Nanos(1) };
    clock.meet(&edge);
    clock.meet(&ClockReading { local: Nanos(0), reference: Nanos(u64::MAX), error: Nanos::MAX });
    assert_eq!(clock.reference(Nanos(last + 7)), before);
    assert_eq!(clock.readings().1, 2);
}
