//! Encodes and decodes port properties.
//!
//! Source: OpenFlow 1.4.1 sections 7.2.1, 7.3.4.3 and 7.3.5.6; 1.5.1 section 7.2.1.2.

use packet::error::Malformed;

use super::super::bytes::{Put, Reader};
use super::super::matching::field_id::{put_field_ids, read_field_ids};
use super::super::property::{EXPERIMENTER, Property, put_experimenter, put_property};
use super::super::{Fault, MessagePart};
use crate::model::port::property::{
    OpticalFeatures, OpticalMod, OpticalPort, OpticalStats, OpticalStatsFlags, PortModProperty,
    PortProperty, PortStatsProperty,
};
use crate::version::{ErrorCode, Version};

/// Type of the Ethernet property, in descriptions, port-mods and statistics.
pub(super) const ETHERNET: u16 = 0;

/// Type of the optical property, in descriptions, port-mods and statistics.
const OPTICAL: u16 = 1;

const PIPELINE_INPUT: u16 = 2;

const PIPELINE_OUTPUT: u16 = 3;

const RECIRCULATE: u16 = 4;

/// Appends a property of a description.
pub(super) fn put_port_property(
    version: Version,
    property: &PortProperty,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    match property {
        PortProperty::Optical(optical) => put_property(OPTICAL, out, |out| {
            out.put_zeros(4);
            out.put_u32(optical.supported.to_wire(version).map_err(MessagePart::Bit)?);
            optical.tx.iter().chain(&optical.rx).for_each(|number| out.put_u32(*number));
            out.put_u16(optical.tx_power_min);
            out.put_u16(optical.tx_power_max);
            Ok(())
        }),
        PortProperty::Experimenter(body) => put_experimenter(EXPERIMENTER, body, out),
        _ if version < Version::V1_5 => {
            Err(MessagePart::Bit("pipeline and recirculation of ports"))
        }
        PortProperty::PipelineInput(ids) => {
            put_property(PIPELINE_INPUT, out, |out| put_field_ids(version, ids, out))
        }
        PortProperty::PipelineOutput(ids) => {
            put_property(PIPELINE_OUTPUT, out, |out| put_field_ids(version, ids, out))
        }
        PortProperty::Recirculate(ports) => put_property(RECIRCULATE, out, |out| {
            ports.iter().for_each(|port| out.put_u32(*port));
            Ok(())
        }),
    }
}

/// Reads a property of a description, except the Ethernet property.
pub(super) fn read_port_property(
    version: Version,
    property: Property,
) -> Result<PortProperty, Fault> {
    let is_1_5 = version >= Version::V1_5;
    Ok(match property.kind {
        OPTICAL => PortProperty::Optical(property.read(|body| {
            body.skip(4)?;
            Ok(OpticalPort {
                supported: OpticalFeatures::from_wire(version, body.u32()?).0,
                tx: read_three(body)?,
                rx: read_three(body)?,
                tx_power_min: body.u16()?,
                tx_power_max: body.u16()?,
            })
        })?),
        PIPELINE_INPUT if is_1_5 => PortProperty::PipelineInput(read_field_ids(version, property)?),
        PIPELINE_OUTPUT if is_1_5 => {
            PortProperty::PipelineOutput(read_field_ids(version, property)?)
        }
        RECIRCULATE if is_1_5 => PortProperty::Recirculate(property.list(|body| body.u32())?),
        EXPERIMENTER => PortProperty::Experimenter(property.experimenter()?),
        _ => return Err(property.unknown()),
    })
}

fn read_three(body: &mut Reader) -> Result<[u32; 3], Malformed> {
    Ok([body.u32()?, body.u32()?, body.u32()?])
}

/// Appends a property of a port-mod.
pub(super) fn put_mod_property(
    version: Version,
    property: &PortModProperty,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    match property {
        PortModProperty::Optical(optical) => put_property(OPTICAL, out, |out| {
            out.put_u32(optical.configure.to_wire(version).map_err(MessagePart::Bit)?);
            out.put_u32(optical.center);
            out.put_u32(optical.offset as u32);
            out.put_u32(optical.span);
            out.put_u32(optical.tx_power);
            Ok(())
        }),
        PortModProperty::Experimenter(body) => put_experimenter(EXPERIMENTER, body, out),
    }
}

/// Reads a property of a port-mod, except the Ethernet property.
pub(super) fn read_mod_property(
    version: Version,
    property: Property,
) -> Result<PortModProperty, Fault> {
    let at = property.at + 4;
    Ok(match property.kind {
        OPTICAL => {
            let (optical, unknown) = property.read(|body| {
                let (configure, unknown) = OpticalFeatures::from_wire(version, body.u32()?);
                let center = body.u32()?;
                let offset = body.u32()? as i32;
                let (span, tx_power) = (body.u32()?, body.u32()?);
                Ok((OpticalMod { configure, center, offset, span, tx_power }, unknown))
            })?;
            if unknown != 0 {
                return Err(Fault::value(at, unknown, ErrorCode::PropertyBadValue));
            }
            PortModProperty::Optical(optical)
        }
        EXPERIMENTER => PortModProperty::Experimenter(property.experimenter()?),
        _ => return Err(property.unknown()),
    })
}

/// Appends a property of statistics.
pub(super) fn put_stats_property(
    version: Version,
    property: &PortStatsProperty,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    match property {
        PortStatsProperty::Optical(optical) => put_property(OPTICAL, out, |out| {
            out.put_zeros(4);
            out.put_u32(optical.flags.to_wire(version).map_err(MessagePart::Bit)?);
            optical.tx.iter().chain(&optical.rx).for_each(|number| out.put_u32(*number));
            out.put_u16(optical.tx_power);
            out.put_u16(optical.rx_power);
            out.put_u16(optical.bias_current);
            out.put_u16(optical.temperature);
            Ok(())
        }),
        PortStatsProperty::Experimenter(body) => put_experimenter(EXPERIMENTER, body, out),
    }
}

/// Reads a property of statistics, except the Ethernet property.
pub(super) fn read_stats_property(
    version: Version,
    property: Property,
) -> Result<PortStatsProperty, Fault> {
    Ok(match property.kind {
        OPTICAL => PortStatsProperty::Optical(property.read(|body| {
            body.skip(4)?;
            Ok(OpticalStats {
                flags: OpticalStatsFlags::from_wire(version, body.u32()?).0,
                tx: read_three(body)?,
                rx: read_three(body)?,
                tx_power: body.u16()?,
                rx_power: body.u16()?,
                bias_current: body.u16()?,
                temperature: body.u16()?,
            })
        })?),
        EXPERIMENTER => PortStatsProperty::Experimenter(property.experimenter()?),
        _ => return Err(property.unknown()),
    })
}
