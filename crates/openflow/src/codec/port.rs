//! Encodes and decodes ports: numbers, descriptions and changes.
//!
//! Source: OpenFlow 1.0.0 sections 5.2.1, 5.3.3 and 5.4.3; 1.1.0 section A.2.1; 1.4.1 sections
//! 7.2.1, 7.3.4.3 and 7.4.3.
//!
//! - Port numbers have 16 bits in 1.0 and 32 later. Reserved numbers keep their low 16 bits.
//! - From 1.4 on the features of a link are in properties.

mod property;
mod stats;

use packet::error::{Malformed, MalformedReason};

use super::bytes::{Put, Reader, put_length, read_length};
use super::property::{put_property, read_property};
use super::{Fault, MessagePart};
use crate::model::port::property::PortProperty;
use crate::model::port::{
    PortConfig, PortDescription, PortFeatures, PortMod, PortNo, PortState, PortStatus,
    PortStatusReason, reserved,
};
use crate::version::{ErrorCode, Version};
use property::{
    ETHERNET, put_mod_property, put_port_property, read_mod_property, read_port_property,
};

/// Bytes of a description without properties (1.4).
const DESCRIPTION_BYTES_MIN: usize = 40;

/// Minimum bytes of a description, in versions with a list of them.
const DESCRIPTION_BYTES: usize = 48;

const NAME_BYTES: usize = 16;

/// First reserved 16-bit number.
const RESERVED_16: u16 = 0xff00;

/// Returns the 16-bit number of 1.0.
pub(super) fn port_to_wire(port: PortNo) -> Result<u16, MessagePart> {
    match port {
        0..0xff00 => Ok(port as u16),
        reserved::MAX.. => Ok(port as u16),
        _ => Err(MessagePart::Port(port)),
    }
}

/// Returns the port of a 16-bit number of 1.0.
pub(super) fn port_from_wire(wire: u16) -> PortNo {
    match wire {
        0..RESERVED_16 => wire.into(),
        _ => reserved::MAX | PortNo::from(wire),
    }
}

/// Appends a port number: two bytes in 1.0, four later.
#[inline]
pub(super) fn put_port(
    version: Version,
    port: PortNo,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    match version {
        Version::V1_0 => out.put_u16(port_to_wire(port)?),
        _ => out.put_u32(port),
    }
    Ok(())
}

/// Reads a port number: two bytes in 1.0, four later.
#[inline]
pub(super) fn read_port(version: Version, reader: &mut Reader) -> Result<PortNo, Malformed> {
    match version {
        Version::V1_0 => Ok(port_from_wire(reader.u16()?)),
        _ => reader.u32(),
    }
}

/// Appends a port's description.
pub(super) fn put_description(
    version: Version,
    port: &PortDescription,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let start = out.len();
    put_port(version, port.number, out)?;
    if version >= Version::V1_1 {
        out.put_zeros(4);
    }
    out.extend_from_slice(&port.mac);
    if version >= Version::V1_1 {
        out.put_zeros(2);
    }
    out.put_text("port name", &port.name, NAME_BYTES)?;
    out.put_u32(port.config.to_wire(version).map_err(MessagePart::Bit)?);
    out.put_u32(port.state.to_wire(version).map_err(MessagePart::Bit)?);
    if version >= Version::V1_4 {
        put_properties(version, port, out)?;
        return put_length("port description", out, start, 4);
    }
    if !port.properties.is_empty() {
        return Err(MessagePart::Bit("port properties"));
    }
    put_link(version, port, out)
}

/// Appends the features of an Ethernet link; 1.0 has no speeds.
fn put_link(
    version: Version,
    port: &PortDescription,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    for features in [port.current, port.advertised, port.supported, port.peer] {
        out.put_u32(features.to_wire(version).map_err(MessagePart::Bit)?);
    }
    if version >= Version::V1_1 {
        out.put_u32(port.current_speed_kbps);
        out.put_u32(port.speed_max_kbps);
    }
    Ok(())
}

/// Appends the properties.
///
/// The Ethernet property is always present, except for optical ports without Ethernet features.
fn put_properties(
    version: Version,
    port: &PortDescription,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let features = port.current | port.advertised | port.supported | port.peer;
    let has_link = !features.is_empty() || (port.current_speed_kbps, port.speed_max_kbps) != (0, 0);
    let is_optical = port.properties.iter().any(|row| matches!(row, PortProperty::Optical(_)));
    if has_link || !is_optical {
        put_property(ETHERNET, out, |out| {
            out.put_zeros(4);
            put_link(version, port, out)
        })?;
    }
    port.properties.iter().try_for_each(|property| put_port_property(version, property, out))
}

/// Reads a port's description.
pub(super) fn read_description(
    version: Version,
    reader: &mut Reader,
) -> Result<PortDescription, Fault> {
    let number = read_port(version, reader)?;
    if version < Version::V1_4 {
        if version >= Version::V1_1 {
            reader.skip(4)?;
        }
        let mut port = read_identity(version, number, reader)?;
        read_link(version, &mut port, reader)?;
        return Ok(port);
    }
    let mut body = read_length(reader, DESCRIPTION_BYTES_MIN, 4)?;
    body.skip(2)?;
    let mut port = read_identity(version, number, &mut body)?;
    while let Some(property) = read_property(&mut body)? {
        if property.kind == ETHERNET {
            property.read(|body| {
                body.skip(4)?;
                read_link(version, &mut port, body)
            })?;
        } else {
            port.properties.push(read_port_property(version, property)?);
        }
    }
    Ok(port)
}

fn read_identity(
    version: Version,
    number: PortNo,
    reader: &mut Reader,
) -> Result<PortDescription, Malformed> {
    let mac = reader.array()?;
    if version >= Version::V1_1 {
        reader.skip(2)?;
    }
    Ok(PortDescription {
        number,
        mac,
        name: reader.text(NAME_BYTES)?,
        config: PortConfig::from_wire(version, reader.u32()?).0,
        state: PortState::from_wire(version, reader.u32()?).0,
        ..PortDescription::default()
    })
}

fn read_link(
    version: Version,
    port: &mut PortDescription,
    reader: &mut Reader,
) -> Result<(), Malformed> {
    let features = |reader: &mut Reader| -> Result<PortFeatures, Malformed> {
        Ok(PortFeatures::from_wire(version, reader.u32()?).0)
    };
    port.current = features(reader)?;
    port.advertised = features(reader)?;
    port.supported = features(reader)?;
    port.peer = features(reader)?;
    if version >= Version::V1_1 {
        port.current_speed_kbps = reader.u32()?;
        port.speed_max_kbps = reader.u32()?;
    }
    Ok(())
}

/// Reads descriptions up to the end.
pub(super) fn read_descriptions(
    version: Version,
    reader: &mut Reader,
) -> Result<Vec<PortDescription>, Fault> {
    let mut ports = Vec::with_capacity(reader.left() / DESCRIPTION_BYTES);
    while reader.left() > 0 {
        ports.push(read_description(version, reader)?);
    }
    Ok(ports)
}

/// Appends a port-mod's body.
pub(super) fn put_port_mod(
    version: Version,
    change: &PortMod,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    put_port(version, change.number, out)?;
    if version >= Version::V1_1 {
        out.put_zeros(4);
    }
    out.extend_from_slice(&change.mac);
    if version >= Version::V1_1 {
        out.put_zeros(2);
    }
    out.put_u32(change.config.to_wire(version).map_err(MessagePart::Bit)?);
    out.put_u32(change.mask.to_wire(version).map_err(MessagePart::Bit)?);
    let advertise = change.advertise.to_wire(version).map_err(MessagePart::Bit)?;
    if version < Version::V1_4 {
        if !change.properties.is_empty() {
            return Err(MessagePart::Bit("port properties"));
        }
        out.put_u32(advertise);
        out.put_zeros(4);
        return Ok(());
    }
    if advertise != 0 {
        put_property(ETHERNET, out, |out| {
            out.put_u32(advertise);
            Ok(())
        })?;
    }
    change.properties.iter().try_for_each(|property| put_mod_property(version, property, out))
}

/// Reads a port-mod's body.
///
/// From 1.1 on, rejects unknown bits, because the switch cannot do what they request.
pub(super) fn read_port_mod(version: Version, reader: &mut Reader) -> Result<PortMod, Fault> {
    let number = read_port(version, reader)?;
    if version >= Version::V1_1 {
        reader.skip(4)?;
    }
    let mac = reader.array()?;
    if version >= Version::V1_1 {
        reader.skip(2)?;
    }
    let config = read_config(version, reader)?;
    let mask = read_config(version, reader)?;
    let mut change = PortMod { number, mac, config, mask, ..PortMod::default() };
    if version < Version::V1_4 {
        change.advertise = read_advertise(version, reader)?;
        reader.skip(4)?;
        return Ok(change);
    }
    while let Some(property) = read_property(reader)? {
        if property.kind == ETHERNET {
            let at = property.body.at();
            let (features, unknown) =
                property.read(|body| Ok(PortFeatures::from_wire(version, body.u32()?)))?;
            refuse(version, at, unknown, ErrorCode::PortModBadAdvertise)?;
            change.advertise = features;
        } else {
            change.properties.push(read_mod_property(version, property)?);
        }
    }
    Ok(change)
}

fn read_config(version: Version, reader: &mut Reader) -> Result<PortConfig, Fault> {
    let at = reader.at();
    let (config, unknown) = PortConfig::from_wire(version, reader.u32()?);
    refuse(version, at, unknown, ErrorCode::PortModBadConfig)?;
    Ok(config)
}

fn read_advertise(version: Version, reader: &mut Reader) -> Result<PortFeatures, Fault> {
    let at = reader.at();
    let (features, unknown) = PortFeatures::from_wire(version, reader.u32()?);
    refuse(version, at, unknown, ErrorCode::PortModBadAdvertise)?;
    Ok(features)
}

fn refuse(version: Version, at: usize, unknown: u32, answer: ErrorCode) -> Result<(), Fault> {
    if version == Version::V1_0 || unknown == 0 {
        return Ok(());
    }
    Err(Fault::new(Malformed { at, why: MalformedReason::BadValue(unknown.into()) }, answer))
}

/// Appends a port-status body.
pub(super) fn put_port_status(
    version: Version,
    status: &PortStatus,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u8(match status.reason {
        PortStatusReason::Add => 0,
        PortStatusReason::Delete => 1,
        PortStatusReason::Modify => 2,
    });
    out.put_zeros(7);
    put_description(version, &status.port, out)
}

/// Reads a port-status body.
pub(super) fn read_port_status(version: Version, reader: &mut Reader) -> Result<PortStatus, Fault> {
    let at = reader.at();
    let reason = match reader.u8()? {
        0 => PortStatusReason::Add,
        1 => PortStatusReason::Delete,
        2 => PortStatusReason::Modify,
        other => return Err(Malformed { at, why: MalformedReason::BadValue(other.into()) }.into()),
    };
    reader.skip(7)?;
    Ok(PortStatus { reason, port: read_description(version, reader)? })
}

#[cfg(test)]
mod tests {
    use super::super::check::{body_of, check, refused};
    use super::*;
    use crate::model::message::Message;
    use crate::model::port::property::{OpticalPort, PortProperty};
    use crate::version::MessageKind;

    fn status(port: PortDescription) -> Message {
        Message::PortStatus(PortStatus { reason: PortStatusReason::Modify, port })
    }

    #[test]
    fn ethernet_features_are_a_property_from_1_4_on() {
        let port = PortDescription {
            number: 0x1_0002,
            mac: [2, 0, 0, 0, 0, 1],
            state: PortState::LIVE,
            current: PortFeatures::COPPER,
            current_speed_kbps: 5,
            ..PortDescription::default()
        };
        let identity = format!("020000000001 0000 {} 00000000 00000004", "00".repeat(16));
        let link = "00000800 00000000 00000000 00000000 00000005 00000000";
        let old = format!("02 00000000000000 00010002 00000000 {identity} {link}");
        check(Version::V1_1, &status(port.clone()), &old);
        let new =
            format!("02 00000000000000 00010002 0048 0000 {identity} 0000 0020 00000000 {link}");
        check(Version::V1_4, &status(port.clone()), &new);
        let error = body_of(Version::V1_0, &status(port)).unwrap_err();
        assert_eq!(error, MessagePart::Port(0x1_0002));
    }

    #[test]
    fn optical_and_pipeline_features_are_properties() {
        let properties = vec![
            PortProperty::Optical(OpticalPort { tx_power_max: 3, ..OpticalPort::default() }),
            PortProperty::Recirculate(vec![1]),
        ];
        let port = PortDescription { number: 1, properties, ..PortDescription::default() };
        let body = body_of(Version::V1_5, &status(port.clone())).unwrap();
        assert_eq!(body.len(), 8 + 40 + 40 + 8);
        assert_eq!(body[88..], [0, 4, 0, 8, 0, 0, 0, 1]);
        check(Version::V1_5, &status(port.clone()), &format!("{}", crate::model::text::Hex(&body)));
        assert!(body_of(Version::V1_4, &status(port.clone())).is_err());
        assert!(body_of(Version::V1_3, &status(port)).is_err());
    }

    #[test]
    fn changing_undefined_bits_is_rejected() {
        let refused = |version, hex: &str| refused(version, MessageKind::PortMod, hex);
        let head = "00000001 00000000 020000000001 0000";
        let config = format!("{head} 00000002 00000000 00000000 00000000");
        assert_eq!(refused(Version::V1_3, &config), ErrorCode::PortModBadConfig);
        let advertise = format!("{head} 00000000 00000000 00010000 00000000");
        assert_eq!(refused(Version::V1_3, &advertise), ErrorCode::PortModBadAdvertise);
        let property = format!("{head} 00000000 00000000 0002 0008 00000000");
        assert_eq!(refused(Version::V1_4, &property), ErrorCode::PropertyBadType);
        let length = format!("{head} 00000000 00000000 0000 0004 00000000");
        assert_eq!(refused(Version::V1_4, &length), ErrorCode::PropertyBadLength);
    }
}
