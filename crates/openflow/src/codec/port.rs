//! Ports as bytes: numbers, descriptions, changes.
//!
//! Source: OpenFlow 1.0.0 sections 5.2.1, 5.3.3 and 5.4.3. Port numbers have 16 bits in 1.0 and
//! 32 later; reserved ones keep their place below the top.

use packet::error::{Malformed, Why};

use super::bytes::{Put, Reader};
use super::{Fault, What};
use crate::model::port::{
    PortConfig, PortDescription, PortFeatures, PortMod, PortNo, PortState, PortStatus,
    PortStatusReason, reserved,
};
use crate::version::Version;

/// Bytes of a 1.0 port description.
const DESCRIPTION_BYTES: usize = 48;

const NAME_BYTES: usize = 16;

/// First 16-bit number that no real port has.
const RESERVED_16: u16 = 0xff00;

/// The number as 1.0 writes it.
pub(super) fn port_to_wire(_version: Version, port: PortNo) -> Result<u16, What> {
    match port {
        0..0xff00 => Ok(port as u16),
        reserved::MAX.. => Ok(port as u16),
        _ => Err(What::Port(port)),
    }
}

/// The number that 1.0 wrote so.
pub(super) fn port_from_wire(_version: Version, wire: u16) -> PortNo {
    match wire {
        0..RESERVED_16 => wire.into(),
        _ => reserved::MAX | PortNo::from(wire),
    }
}

/// Appends a port's description.
pub(super) fn put_description(
    version: Version,
    port: &PortDescription,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    out.put_u16(port_to_wire(version, port.number)?);
    out.extend_from_slice(&port.mac);
    out.put_text("port name", &port.name, NAME_BYTES)?;
    out.put_u32(port.config.to_wire(version).map_err(What::Bit)?);
    out.put_u32(port.state.to_wire(version).map_err(What::Bit)?);
    for features in [port.current, port.advertised, port.supported, port.peer] {
        out.put_u32(features.to_wire(version).map_err(What::Bit)?);
    }
    Ok(())
}

/// Reads a port's description.
pub(super) fn read_description(
    version: Version,
    reader: &mut Reader,
) -> Result<PortDescription, Fault> {
    let features = |reader: &mut Reader| -> Result<PortFeatures, Malformed> {
        Ok(PortFeatures::from_wire(version, reader.u32()?).0)
    };
    Ok(PortDescription {
        number: port_from_wire(version, reader.u16()?),
        mac: reader.array()?,
        name: reader.text(NAME_BYTES)?,
        config: PortConfig::from_wire(version, reader.u32()?).0,
        state: PortState::from_wire(version, reader.u32()?).0,
        current: features(reader)?,
        advertised: features(reader)?,
        supported: features(reader)?,
        peer: features(reader)?,
        ..PortDescription::default()
    })
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
) -> Result<(), What> {
    out.put_u16(port_to_wire(version, change.number)?);
    out.extend_from_slice(&change.mac);
    out.put_u32(change.config.to_wire(version).map_err(What::Bit)?);
    out.put_u32(change.mask.to_wire(version).map_err(What::Bit)?);
    out.put_u32(change.advertise.to_wire(version).map_err(What::Bit)?);
    out.put_zeros(4);
    Ok(())
}

/// Reads a port-mod's body.
pub(super) fn read_port_mod(version: Version, reader: &mut Reader) -> Result<PortMod, Fault> {
    let change = PortMod {
        number: port_from_wire(version, reader.u16()?),
        mac: reader.array()?,
        config: PortConfig::from_wire(version, reader.u32()?).0,
        mask: PortConfig::from_wire(version, reader.u32()?).0,
        advertise: PortFeatures::from_wire(version, reader.u32()?).0,
        properties: Vec::new(),
    };
    reader.skip(4)?;
    Ok(change)
}

/// Appends a port-status' body.
pub(super) fn put_port_status(
    version: Version,
    status: &PortStatus,
    out: &mut Vec<u8>,
) -> Result<(), What> {
    out.put_u8(match status.reason {
        PortStatusReason::Add => 0,
        PortStatusReason::Delete => 1,
        PortStatusReason::Modify => 2,
    });
    out.put_zeros(7);
    put_description(version, &status.port, out)
}

/// Reads a port-status' body.
pub(super) fn read_port_status(version: Version, reader: &mut Reader) -> Result<PortStatus, Fault> {
    let at = reader.at();
    let reason = match reader.u8()? {
        0 => PortStatusReason::Add,
        1 => PortStatusReason::Delete,
        2 => PortStatusReason::Modify,
        other => return Err(Malformed { at, why: Why::BadValue(other.into()) }.into()),
    };
    reader.skip(7)?;
    Ok(PortStatus { reason, port: read_description(version, reader)? })
}
