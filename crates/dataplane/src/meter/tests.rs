//! Tests of meters: rates over five seconds, interaction of bands, and invalid commands.

use super::*;

const SECOND: u64 = 1_000_000_000;

fn spec(number: MeterNo, unit: Unit, bands: &[Band]) -> MeterSpec {
    MeterSpec { number, unit, burst: false, stats: true, bands: bands.to_vec() }
}

fn drop_at(rate: u32) -> Band {
    Band { kind: BandKind::Drop, rate, burst: 0 }
}

fn remark_at(rate: u32) -> Band {
    Band { kind: BandKind::DscpRemark { levels: 1 }, rate, burst: 0 }
}

/// Offers frames of these lengths in turn, one every `gap`, for five seconds. Returns the load that
/// passed, in frames or in bits.
fn passed(band: Band, unit: Unit, burst: bool, lengths: &[usize], gap: Nanos) -> u64 {
    let mut meters = MeterTable::default();
    let start = Nanos(77);
    meters.add(MeterSpec { burst, ..spec(1, unit, &[band]) }, start).unwrap();
    let (mut passed, mut at) = (0, start);
    for length in lengths.iter().cycle() {
        if at.since(start).0 >= 5 * SECOND {
            break;
        }
        if meters.measure(1, *length, at) == MeterVerdict::Pass {
            passed += if unit == Unit::Packets { 1 } else { *length as u64 * 8 };
        }
        at += gap;
    }
    passed
}

/// Returns the gap at which the offered load is `percent` of the rate.
fn gap_for(rate: u64, unit: Unit, lengths: &[usize], percent: u64) -> Nanos {
    let mean_bits = lengths.iter().sum::<usize>() as u64 * 8 / lengths.len() as u64;
    let per_second = if unit == Unit::Packets { rate } else { rate * 1000 / mean_bits.max(1) };
    Nanos((SECOND * 100 / (per_second * percent).max(1)).max(1))
}

#[test]
fn a_band_passes_at_most_its_rate_over_five_seconds() {
    let mixes: [&[usize]; 4] = [&[60], &[1514], &[60, 590, 1514, 60, 60], &[9000, 64]];
    for lengths in mixes {
        for (rate, percent) in [(100, 150), (1_000, 101), (20_000, 133), (20_000, 400)] {
            let gap = gap_for(rate, Unit::Kilobits, lengths, percent);
            let bits = passed(drop_at(rate as u32), Unit::Kilobits, false, lengths, gap);
            let (wanted, longest) = (5_000 * rate, *lengths.iter().max().unwrap() as u64 * 8);
            // The slack, once, and the last frame.
            let most = wanted + (rate * 10).max(longest) + longest;
            let text = format!("{rate} kbit/s, {percent} %, {lengths:?}: {bits}");
            assert!((wanted.saturating_sub(longest)..=most).contains(&bits), "{text}");
        }
    }
    for (rate, percent) in [(10, 150), (999, 107), (10_000, 101), (10_000, 500)] {
        let gap = gap_for(rate, Unit::Packets, &[60], percent);
        let frames = passed(drop_at(rate as u32), Unit::Packets, false, &[60, 1514], gap);
        let most = 5 * rate + (rate / 100).max(1) + 1;
        assert!((5 * rate..=most).contains(&frames), "{rate} frames/s, {percent} %: {frames}");
    }
}

#[test]
fn under_constant_overload_the_number_of_passed_frames_is_exact() {
    // The meter passes one frame per millisecond, and two are offered: the bucket is never full.
    let gap = Nanos::from_micros(500);
    assert_eq!(passed(drop_at(1000), Unit::Packets, false, &[60], gap), 5000);
    // 1250 bytes at 10 Mbit/s also take a millisecond.
    assert_eq!(passed(drop_at(10_000), Unit::Kilobits, false, &[1250], gap), 5000 * 10_000);
    // A burst passes in addition, once.
    let burst = Band { burst: 100, ..drop_at(1000) };
    assert_eq!(passed(burst, Unit::Packets, true, &[60], gap), 5099);
    let burst = Band { burst: 100, ..drop_at(10_000) };
    assert_eq!(passed(burst, Unit::Kilobits, true, &[1250], gap), 5009 * 10_000);
    // A load below the rate passes completely.
    assert_eq!(passed(drop_at(2000), Unit::Packets, false, &[60], gap), 10_000);
}

#[test]
fn the_exceeded_band_with_the_highest_rate_applies_and_counts() {
    let mut meters = MeterTable::default();
    let bands = [drop_at(300), remark_at(100), remark_at(200)];
    meters.add(spec(1, Unit::Packets, &bands), Nanos::ZERO).unwrap();
    let mut outcomes = [0; 3];
    for frame in 0..5000u64 {
        // Five seconds at a thousand frames per second.
        outcomes[match meters.measure(1, 100, Nanos::from_millis(frame)) {
            MeterVerdict::Pass => 0,
            MeterVerdict::Remark(levels) => usize::from(levels),
            MeterVerdict::Drop => 2,
        }] += 1;
    }
    let record = meters.records(1, Nanos::from_secs(5)).remove(0);
    assert_eq!(record.traffic, Traffic { frames: 5000, bytes: 500_000 });
    let frames: Vec<u64> = record.bands.iter().map(|band| band.frames).collect();
    assert_eq!((outcomes, frames), ([500, 1000, 3500], vec![3500, 500, 500]));
    assert_eq!(record.age, Nanos::from_secs(5));
}

#[test]
fn invalid_commands_are_rejected() {
    let limits = MeterLimits { meters_max: 2, bands_max: 1 };
    let mut meters = MeterTable::new(limits);
    let at = Nanos::ZERO;
    let plain = |number| spec(number, Unit::Kilobits, &[drop_at(5)]);
    assert_eq!(meters.add(plain(0), at), Err(MeterError::InvalidMeter(0)));
    let beyond = METER_NO_MAX + 1;
    assert_eq!(meters.add(plain(beyond), at), Err(MeterError::InvalidMeter(beyond)));
    assert_eq!(meters.add(plain(METERS_ALL), at), Err(MeterError::InvalidMeter(METERS_ALL)));
    assert_eq!(meters.add(plain(METER_NO_MAX), at), Ok(()));
    assert_eq!(meters.add(plain(METER_NO_MAX), at), Err(MeterError::MeterExists(METER_NO_MAX)));
    let two = spec(1, Unit::Kilobits, &[drop_at(5), drop_at(6)]);
    assert_eq!(meters.add(two.clone(), at), Err(MeterError::OutOfBands(1)));
    let still = spec(1, Unit::Kilobits, &[drop_at(0)]);
    assert_eq!(meters.add(still, at), Err(MeterError::BadRate(0)));
    let mark = Band { kind: BandKind::DscpRemark { levels: 0 }, rate: 1, burst: 0 };
    let mark = spec(1, Unit::Kilobits, &[mark]);
    assert_eq!(meters.add(mark, at), Err(MeterError::BadBandValue(0)));
    assert_eq!(meters.add(plain(1), at), Ok(()));
    assert_eq!(meters.add(plain(2), at), Err(MeterError::OutOfMeters(2)));
    assert_eq!(meters.add(plain(CONTROLLER), at), Ok(()));
    assert_eq!(meters.modify(plain(2), at), Err(MeterError::UnknownMeter(2)));
    assert_eq!(meters.modify(MeterSpec { number: 1, ..two }, at), Err(MeterError::OutOfBands(1)));
    assert_eq!((meters.count(), meters.records(METERS_ALL, at).len()), (2, 3));
    assert_eq!(meters.delete(7).count(), 0);
    let gone = meters.delete(METERS_ALL).records(METERS_ALL, at);
    let gone: Vec<_> = gone.iter().map(|record| record.spec.number).collect();
    assert_eq!(gone, [1, METER_NO_MAX, CONTROLLER]);
    assert_eq!(meters.measure(1, 60, at), MeterVerdict::Pass);
}

#[test]
fn a_modified_meter_keeps_its_counters_and_resets_its_bands() {
    let mut meters = MeterTable::default();
    meters.add(spec(1, Unit::Packets, &[drop_at(1)]), Nanos::ZERO).unwrap();
    let mut outcomes = || [(); 2].map(|()| meters.measure(1, 60, Nanos::ZERO));
    assert_eq!(outcomes(), [MeterVerdict::Pass, MeterVerdict::Drop]);
    meters.modify(spec(1, Unit::Packets, &[remark_at(7)]), Nanos::from_secs(1)).unwrap();
    let record = meters.records(1, Nanos::from_secs(2)).remove(0);
    assert_eq!((record.traffic.frames, record.age), (2, Nanos::from_secs(2)));
    assert_eq!(record.bands, [Traffic::default()]);
}

#[test]
fn extreme_rates_bursts_and_durations_do_not_overflow() {
    let most = Band { burst: u32::MAX, ..drop_at(u32::MAX) };
    for unit in [Unit::Kilobits, Unit::Packets] {
        let mut meters = MeterTable::default();
        let described = MeterSpec { burst: true, ..spec(1, unit, &[most]) };
        meters.add(described, Nanos::ZERO).unwrap();
        for at in [Nanos::ZERO, Nanos::MAX, Nanos::ZERO, Nanos(1)] {
            assert_eq!(meters.measure(1, 16_384, at), MeterVerdict::Pass);
        }
    }
}
