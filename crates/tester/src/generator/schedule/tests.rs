//! Tests of exact schedules of all shapes, with sequential and random access.

use super::*;

fn schedule(rate: Rate, frame_bytes: usize, span: Nanos) -> Schedule {
    Schedule::new(Nanos(5), Nanos::ZERO, span, Period::new(rate, frame_bytes))
}

#[test]
fn line_rate_of_64_byte_frames_on_a_gigabit_is_672_nanoseconds() {
    let line = Rate::LinkPercent { percent: 100.0, link_bits_per_second: 1_000_000_000 };
    let schedule = schedule(line, 64, Nanos::from_secs(1));
    assert_eq!(schedule.seek(1).due, Nanos(5 + 672));
    // 1,488,095.238 frames: the last of them starts within the second.
    assert_eq!(schedule.count, 1_488_096);
}

#[test]
fn stepping_and_seeking_agree_without_drift_over_hours() {
    for pps in [1.0, 3.0, 7e5, 1_488_095.238, 0.3] {
        let schedule = schedule(Rate::FramesPerSecond(pps), 64, Nanos::from_secs(36_000));
        let mut cursor = schedule.seek(0);
        for _ in 0..100_000 {
            cursor = schedule.after(cursor);
        }
        assert_eq!(cursor, schedule.seek(100_000));
        // Ten hours later, compared to the ideal time in integers: micro-frames per second.
        let number = schedule.count - 1;
        let micro = (pps * 1e6).round() as u128;
        let ideal = u128::from(number) * 1_000_000_000_000_000 / micro;
        assert_eq!(u128::from(schedule.seek(number).due.0 - 5), ideal, "{pps}");
        let expected = (micro * 36_000).div_ceil(1_000_000) as u64;
        assert_eq!(schedule.count, expected, "{pps}");
    }
}

#[test]
fn due_counts_exactly_the_frames_due_so_far() {
    let schedule = schedule(Rate::FramesPerSecond(3.0), 64, Nanos::from_secs(2));
    assert_eq!(schedule.count, 6);
    let moments: Vec<u64> = (0..6).map(|number| schedule.seek(number).due.0).collect();
    assert_eq!(moments[..3], [5, 333_333_338, 666_666_671]);
    for now in [0, 4, 5, 6, 333_333_337, 333_333_338, 666_666_671, 5_000_000_000] {
        let want = moments.iter().filter(|&&moment| moment <= now).count() as u64;
        assert_eq!(schedule.due(Nanos(now)), want, "at {now}");
    }
}

#[test]
fn nearby_and_distant_lookups_agree_in_both_directions() {
    let schedule = schedule(Rate::FramesPerSecond(123_457.0), 64, Nanos::from_secs(1));
    let mut cursor = schedule.seek(0);
    for number in [0, 1, 5, 4, 20, 21, 21, 60, 3, 9_000] {
        assert_eq!(schedule.due_near(&mut cursor, number), schedule.seek(number).due);
    }
}

fn shaped(rate_pps: f64, shape: BurstProfile, seconds: u64) -> Schedule {
    let rate = Rate::FramesPerSecond(rate_pps);
    let stream = Stream { shape, rate, ..crate::generator::template::tests::stream(64) };
    Schedule::of(&stream, Nanos(5), Nanos::ZERO, Nanos::from_secs(seconds), false)
}

const SHAPES: [BurstProfile; 5] = [
    BurstProfile::Constant,
    BurstProfile::Poisson { seed: 9 },
    BurstProfile::Bursts { frames: 7, gap: Nanos(333) },
    BurstProfile::OnOff { on: Nanos(1_000_003), off: Nanos(2_000_001) },
    BurstProfile::Ramp { to: Rate::FramesPerSecond(1e6), over: Nanos(700_000_000) },
];

#[test]
fn every_shape_steps_seeks_and_counts_consistently() {
    for shape in SHAPES {
        let schedule = shaped(123_456.789, shape, 1);
        let (mut cursor, mut last) = (schedule.seek(0), Nanos::ZERO);
        for number in 0..schedule.count {
            assert!(cursor.due >= last, "{shape:?} {number}");
            if number % 997 < 3 || number > schedule.count - 5 {
                assert_eq!(cursor, schedule.seek(number), "{shape:?}");
                let due = schedule.due(cursor.due);
                assert!(due > number, "{shape:?} {number}: {due}");
                assert!(schedule.due(Nanos(cursor.due.0 - 1)) <= number, "{shape:?}");
            }
            last = cursor.due;
            cursor = schedule.after(cursor);
        }
        let end = Nanos::from_secs(1) + Nanos(5);
        assert!(last < end && cursor.due >= end, "{shape:?}: {last:?}, {:?}", cursor.due);
    }
}

#[test]
fn poisson_gaps_have_the_expected_mean_and_variance() {
    let schedule = shaped(1e6, BurstProfile::Poisson { seed: 1 }, 2);
    let (mut cursor, mut gaps) = (schedule.seek(0), Vec::new());
    for _ in 0..1_000_000 {
        let next = schedule.after(cursor);
        gaps.push((next.due.0 - cursor.due.0) as f64);
        cursor = next;
    }
    let mean = gaps.iter().sum::<f64>() / 1e6;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 1e6;
    assert!((mean - 1000.0).abs() < 0.1, "{mean}");
    // The standard deviation of the variance of a million exponential gaps is sqrt(8 / 1e6) of it.
    assert!((variance / 1e6 - 1.0).abs() < 5.0 * 0.0028, "{variance}");
    // One gap in e^3 is longer than three means. Successive gaps are independent.
    let long = gaps.iter().filter(|&&gap| gap > 3000.0).count() as f64;
    assert!((long / 1e6 - (-3f64).exp()).abs() < 5.0 * 0.00022, "{long}");
    let product = |pair: &[f64]| (pair[0] - mean) * (pair[1] - mean);
    let covariance = gaps.windows(2).map(product).sum::<f64>() / 1e6;
    assert!((covariance / 1e6).abs() < 5.0 * 0.001, "{covariance}");
    assert_eq!(schedule.due(Nanos(5 + 1_024_000 * 700 - 1)), 1024 * 700);
    let other = shaped(1e6, BurstProfile::Poisson { seed: 2 }, 2);
    assert_ne!(other.seek(500_000), schedule.seek(500_000));
}

#[test]
fn bursts_and_pauses_begin_at_exact_times() {
    let bursts = shaped(3.0, BurstProfile::Bursts { frames: 2, gap: Nanos(100) }, 2);
    let due = |schedule: &Schedule, number| schedule.seek(number).due.0 - 5;
    let moments: Vec<u64> = (0..6).map(|number| due(&bursts, number)).collect();
    let want = [0, 100, 666_666_666, 666_666_766, 1_333_333_333, 1_333_333_433];
    assert_eq!((moments, bursts.count), (want.to_vec(), 6));
    // Back to back.
    let lumps = shaped(1000.0, BurstProfile::Bursts { frames: 10, gap: Nanos::ZERO }, 1);
    assert_eq!((due(&lumps, 19), lumps.count), (10_000_000, 1000));
    let on = Nanos::from_millis(1);
    let pauses = shaped(10_000.0, BurstProfile::OnOff { on, off: Nanos::from_millis(9) }, 1);
    assert_eq!(pauses.count, 1000);
    assert_eq!((due(&pauses, 9), due(&pauses, 10)), (900_000, 10_000_000));
    // No error has accumulated after a week.
    let number = 10 * 6_048_000;
    let week = shaped(10_000.0, BurstProfile::OnOff { on, off: Nanos::from_millis(99) }, 604_800);
    assert_eq!((week.count, due(&week, number)), (number, 604_800_000_000_000));
}

#[test]
fn a_ramp_warms_up_at_its_first_rate() {
    let rate = Rate::FramesPerSecond(1000.0);
    let shape = BurstProfile::Ramp { to: Rate::FramesPerSecond(3000.0), over: Nanos::from_secs(1) };
    let stream = Stream { shape, rate, ..crate::generator::template::tests::stream(64) };
    let of =
        |is_warmup| Schedule::of(&stream, Nanos::ZERO, Nanos::ZERO, Nanos::from_secs(2), is_warmup);
    assert_eq!((of(true).count, of(false).count), (2000, 5000));
}

#[test]
fn a_percentage_refers_to_the_link_rate_for_the_mean_size() {
    let genome = crate::stream::Genome::read("7a4d1g", &[]).unwrap();
    let stream = crate::generator::template::tests::stream(64).with_genome(genome);
    let rate = Rate::LinkPercent { percent: 100.0, link_bits_per_second: 1_000_000_000 };
    let stream = Stream { rate, ..stream };
    let second = Nanos::from_secs(1);
    let schedule = Schedule::of(&stream, Nanos::ZERO, Nanos::ZERO, second, false);
    let bits = 8 * (7 * 84 + 4 * 532 + 1538);
    assert_eq!(schedule.count, 12_000_000_000u64.div_ceil(bits));
    assert!((stream.rate_pps() - 12e9 / bits as f64).abs() < 1e-6);
}

#[test]
fn a_phase_shifts_the_frames_but_not_the_end() {
    let period = Period::new(Rate::FramesPerSecond(10.0), 64);
    let late = Schedule::new(Nanos(0), Nanos(50_000_000), Nanos::from_secs(1), period);
    assert_eq!((late.seek(0).due, late.count), (Nanos(50_000_000), 10));
    assert!(late.seek(9).due < Nanos::from_secs(1));
    let last = Schedule::new(Nanos(0), Nanos(100_000_000), Nanos::from_secs(1), period);
    assert_eq!(last.count, 9);
}
