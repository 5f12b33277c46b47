//! Meters: meter-mods and statistics.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 7.3.4.4 and 7.4.12
//! (`ofp_meter_mod_failed`).

use dataplane::meter::{Band, BandKind, MeterError, MeterRecord, MeterSpec, Unit};
use openflow::model::meter::{
    BandCounters, MeterBand, MeterBandKind, MeterConfig, MeterFlags, MeterMod, MeterStats,
};
use openflow::version::ErrorCode;

/// Converts the meter of a meter-mod.
pub fn meter_down(from: &MeterMod) -> Result<MeterSpec, ErrorCode> {
    let has = |flag| from.flags.contains(flag);
    if has(MeterFlags::KBPS) && has(MeterFlags::PKTPS) {
        return Err(ErrorCode::MeterModBadFlags);
    }
    let bands: Result<Vec<Band>, ErrorCode> = from.bands.iter().map(band_down).collect();
    Ok(MeterSpec {
        number: from.meter,
        unit: if has(MeterFlags::PKTPS) { Unit::Packets } else { Unit::Kilobits },
        burst: has(MeterFlags::BURST),
        stats: has(MeterFlags::STATS),
        bands: bands?,
    })
}

fn band_down(from: &MeterBand) -> Result<Band, ErrorCode> {
    let kind = match from.kind {
        MeterBandKind::Drop => BandKind::Drop,
        MeterBandKind::DscpRemark { levels } => BandKind::DscpRemark { levels },
        MeterBandKind::Experimenter(_) => return Err(ErrorCode::MeterModBadBand),
    };
    Ok(Band { rate: from.rate, burst: from.burst, kind })
}

/// Converts the error of a rejected meter-mod.
pub fn meter_error_up(error: MeterError) -> ErrorCode {
    match error {
        MeterError::MeterExists(_) => ErrorCode::MeterModExists,
        MeterError::InvalidMeter(_) => ErrorCode::MeterModInvalid,
        MeterError::UnknownMeter(_) => ErrorCode::MeterModUnknownMeter,
        MeterError::BadCommand(_) => ErrorCode::MeterModBadCommand,
        MeterError::BadFlags(_) => ErrorCode::MeterModBadFlags,
        MeterError::BadRate(_) => ErrorCode::MeterModBadRate,
        MeterError::BadBurst(_) => ErrorCode::MeterModBadBurst,
        MeterError::BadBand(_) => ErrorCode::MeterModBadBand,
        MeterError::BadBandValue(_) => ErrorCode::MeterModBadBandValue,
        MeterError::OutOfMeters(_) => ErrorCode::MeterModOutOfMeters,
        MeterError::OutOfBands(_) => ErrorCode::MeterModOutOfBands,
    }
}

/// Converts a meter to its configuration.
pub fn meter_config_up(from: &MeterSpec) -> MeterConfig {
    let mut flags = match from.unit {
        Unit::Kilobits => MeterFlags::KBPS,
        Unit::Packets => MeterFlags::PKTPS,
    };
    if from.burst {
        flags |= MeterFlags::BURST;
    }
    if from.stats {
        flags |= MeterFlags::STATS;
    }
    let bands = from.bands.iter().map(|band| MeterBand {
        rate: band.rate,
        burst: band.burst,
        kind: match band.kind {
            BandKind::Drop => MeterBandKind::Drop,
            BandKind::DscpRemark { levels } => MeterBandKind::DscpRemark { levels },
        },
    });
    MeterConfig { flags, meter: from.number, bands: bands.collect() }
}

/// Converts a meter's counters. `references` is the number of flow entries that use it.
pub fn meter_stats_up(from: &MeterRecord, references: u32) -> MeterStats {
    let bands = from.bands.iter();
    MeterStats {
        meter: from.spec.number,
        references,
        packets: from.traffic.frames,
        bytes: from.traffic.bytes,
        age: from.age,
        bands: bands.map(|it| BandCounters { packets: it.frames, bytes: it.bytes }).collect(),
    }
}
