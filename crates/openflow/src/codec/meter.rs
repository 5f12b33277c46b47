//! Encodes and decodes meters: meter-mod, configuration, statistics and features.
//!
//! Source: OpenFlow 1.3.5 sections 7.3.4.4 and 7.3.5.14 to 7.3.5.16, 1.5.1 section 7.3.5.15.

use packet::error::Malformed;

use super::bytes::{Put, Reader, put_length, read_length};
use super::message::{put_experimenter, read_experimenter};
use super::multipart::MultipartRow;

use super::span::{put_span, read_span};
use super::{Fault, MessagePart};
use crate::model::meter::{
    BandCounters, MeterBand, MeterBandKind, MeterBandKinds, MeterConfig, MeterFeatureFlags,
    MeterFeatures, MeterFlags, MeterMod, MeterModCommand, MeterStats,
};
use crate::version::{ErrorCode, Version};

/// Bytes of the smallest band.
const BAND_BYTES_MIN: usize = 16;

/// Bytes of a meter's statistics without bands.
const STATS_BYTES_MIN: usize = 40;

const DROP: u16 = 1;

const DSCP_REMARK: u16 = 2;

const EXPERIMENTER: u16 = 0xffff;

/// Appends a meter-mod's body.
pub(super) fn put_meter_mod(
    version: Version,
    change: &MeterMod,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u16(match change.command {
        MeterModCommand::Add => 0,
        MeterModCommand::Modify => 1,
        MeterModCommand::Delete => 2,
    });
    out.put_u16(change.flags.to_wire(version).map_err(MessagePart::Bit)? as u16);
    out.put_u32(change.meter);
    change.bands.iter().try_for_each(|band| put_band(band, out))
}

/// Reads a meter-mod's body.
pub(super) fn read_meter_mod(version: Version, reader: &mut Reader) -> Result<MeterMod, Fault> {
    let at = reader.at();
    let command = match reader.u16()? {
        0 => MeterModCommand::Add,
        1 => MeterModCommand::Modify,
        2 => MeterModCommand::Delete,
        other => return Err(Fault::value(at, other, ErrorCode::MeterModBadCommand)),
    };
    let at = reader.at();
    let (flags, unknown) = MeterFlags::from_wire(version, reader.u16()?.into());
    if unknown != 0 {
        return Err(Fault::value(at, unknown, ErrorCode::MeterModBadFlags));
    }
    let meter = reader.u32()?;
    Ok(MeterMod { command, flags, meter, bands: read_bands(reader)? })
}

fn put_band(band: &MeterBand, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let start = out.len();
    out.put_u16(match band.kind {
        MeterBandKind::Drop => DROP,
        MeterBandKind::DscpRemark { .. } => DSCP_REMARK,
        MeterBandKind::Experimenter(_) => EXPERIMENTER,
    });
    out.put_u16(0);
    out.put_u32(band.rate);
    out.put_u32(band.burst);
    match &band.kind {
        MeterBandKind::Drop => out.put_zeros(4),
        MeterBandKind::DscpRemark { levels } => {
            out.put_u8(*levels);
            out.put_zeros(3);
        }
        MeterBandKind::Experimenter(body) => put_experimenter(body, out),
    }
    put_length("meter band", out, start, 2)
}

/// Reads bands up to the end.
fn read_bands(reader: &mut Reader) -> Result<Vec<MeterBand>, Fault> {
    let mut bands = Vec::new();
    while reader.left() > 0 {
        bands.push(read_band(reader)?);
    }
    Ok(bands)
}

fn read_band(reader: &mut Reader) -> Result<MeterBand, Fault> {
    let at = reader.at();
    let code = reader.u16()?;
    let mut body = read_length(reader, BAND_BYTES_MIN, 2)?;
    let (rate, burst) = (body.u32()?, body.u32()?);
    let kind = match code {
        DROP => {
            body.skip(4)?;
            MeterBandKind::Drop
        }
        DSCP_REMARK => {
            let levels = body.u8()?;
            body.skip(3)?;
            MeterBandKind::DscpRemark { levels }
        }
        EXPERIMENTER => MeterBandKind::Experimenter(read_experimenter(&mut body)?),
        other => return Err(Fault::value(at, other, ErrorCode::MeterModBadBand)),
    };
    body.finish()?;
    Ok(MeterBand { rate, burst, kind })
}

/// Appends the requested meter.
pub(super) fn put_which_meter(meter: u32, out: &mut Vec<u8>) {
    out.put_u32(meter);
    out.put_zeros(4);
}

/// Reads the requested meter.
pub(super) fn read_which_meter(reader: &mut Reader) -> Result<u32, Malformed> {
    let meter = reader.u32()?;
    reader.skip(4)?;
    Ok(meter)
}

impl MultipartRow for MeterConfig {
    fn put(&self, version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_u16(0);
        out.put_u16(self.flags.to_wire(version).map_err(MessagePart::Bit)? as u16);
        out.put_u32(self.meter);
        self.bands.iter().try_for_each(|band| put_band(band, out))?;
        put_length("meter description", out, start, 0)
    }

    fn read(version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let mut row = read_length(reader, 8, 0)?;
        let (flags, _) = MeterFlags::from_wire(version, row.u16()?.into());
        let meter = row.u32()?;
        Ok(MeterConfig { flags, meter, bands: read_bands(&mut row)? })
    }
}

impl MultipartRow for MeterStats {
    fn put(&self, _version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_u32(self.meter);
        out.put_zeros(8);
        out.put_u32(self.references);
        out.put_u64(self.packets);
        out.put_u64(self.bytes);
        put_span(self.age, out)?;
        for band in &self.bands {
            out.put_u64(band.packets);
            out.put_u64(band.bytes);
        }
        put_length("meter statistics", out, start, 4)
    }

    fn read(_version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let meter = reader.u32()?;
        let mut row = read_length(reader, STATS_BYTES_MIN, 4)?;
        row.skip(6)?;
        let references = row.u32()?;
        let (packets, bytes) = (row.u64()?, row.u64()?);
        let age = read_span(&mut row)?;
        let mut bands = Vec::new();
        while row.left() > 0 {
            bands.push(BandCounters { packets: row.u64()?, bytes: row.u64()? });
        }
        Ok(MeterStats { meter, references, packets, bytes, age, bands })
    }
}

/// Appends meter features.
pub(super) fn put_features(
    version: Version,
    features: &MeterFeatures,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u32(features.meters_max);
    out.put_u32(features.band_kinds.to_wire(version).map_err(MessagePart::Bit)?);
    out.put_u32(features.capabilities.to_wire(version).map_err(MessagePart::Bit)?);
    out.put_u8(features.bands_max);
    out.put_u8(features.colours_max);
    out.put_zeros(2);
    let flags = features.flags.to_wire(version).map_err(MessagePart::Bit)?;
    if version >= Version::V1_5 {
        out.put_u32(flags);
        out.put_zeros(4);
    }
    Ok(())
}

/// Reads meter features.
pub(super) fn read_features(
    version: Version,
    reader: &mut Reader,
) -> Result<MeterFeatures, Malformed> {
    let mut features = MeterFeatures {
        meters_max: reader.u32()?,
        band_kinds: MeterBandKinds::from_wire(version, reader.u32()?).0,
        capabilities: MeterFlags::from_wire(version, reader.u32()?).0,
        bands_max: reader.u8()?,
        colours_max: reader.u8()?,
        ..MeterFeatures::default()
    };
    reader.skip(2)?;
    // Open vSwitch omits the rest, even in 1.5.
    if version >= Version::V1_5 && reader.left() > 0 {
        features.flags = MeterFeatureFlags::from_wire(version, reader.u32()?).0;
        reader.skip(4)?;
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::super::check::{check, refused};
    use super::*;
    use crate::model::message::Message;
    use crate::model::multipart::MultipartReplyBody;
    use crate::version::MessageKind;

    #[test]
    fn a_meter_is_followed_by_its_bands() {
        let bands = vec![
            MeterBand { rate: 1000, burst: 10, kind: MeterBandKind::Drop },
            MeterBand { rate: 7, burst: 0, kind: MeterBandKind::DscpRemark { levels: 1 } },
        ];
        let change = MeterMod {
            flags: MeterFlags::KBPS | MeterFlags::BURST,
            meter: 3,
            bands,
            ..MeterMod::default()
        };
        let hex = "0000 0005 00000003 0001 0010 000003e8 0000000a 00000000
            0002 0010 00000007 00000000 01 000000";
        check(Version::V1_3, &Message::MeterMod(change), hex);
    }

    #[test]
    fn invalid_meters_have_specific_errors() {
        let refused = |hex: &str| refused(Version::V1_3, MessageKind::MeterMod, hex);
        assert_eq!(refused("0003 0000 00000001"), ErrorCode::MeterModBadCommand);
        assert_eq!(refused("0000 0010 00000001"), ErrorCode::MeterModBadFlags);
        let band = "0000 0001 00000001 0003 0010 00000001 00000000 00000000";
        assert_eq!(refused(band), ErrorCode::MeterModBadBand);
        let short = "0000 0001 00000001 0001 000c 00000001 00000000";
        assert_eq!(refused(short), ErrorCode::RequestBadLength);
    }

    #[test]
    fn statistics_have_a_length_after_the_meter_id() {
        let stats = MeterStats {
            meter: 1,
            references: 2,
            bands: vec![BandCounters { packets: 3, bytes: 4 }],
            ..MeterStats::default()
        };
        let zeros = "00".repeat(24);
        let hex = format!(
            "0009 0000 00000000 00000001 0038 000000000000 00000002 {zeros}
            0000000000000003 0000000000000004"
        );
        check(
            Version::V1_3,
            &Message::MultipartReply(MultipartReplyBody::Meter(vec![stats]).into()),
            &hex,
        );
    }
}
