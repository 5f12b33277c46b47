//! Encodes and decodes the asynchronous message configuration.
//!
//! Source: OpenFlow 1.3.5 section 7.3.10 and 1.4.1 section 7.3.10.
//!
//! 1.3 has six sets of reasons at fixed positions, later versions have a property for each.
//! Decoding keeps reasons that the version does not have, because peers request some.

use super::bytes::{Put, Reader};
use super::property::{Property, put_experimenter, put_property, read_property};
use super::{Fault, MessagePart};
use crate::model::asynchronous::{AsyncConfig, AsyncExperimenter};
use crate::version::{AsyncKind, ErrorCode, Version};

/// Type of the experimenter property for slaves; the next type is that for masters.
const EXPERIMENTER_SLAVE: u16 = 0xfffe;

/// The message types of 1.3, in order; each has a set for masters, then one for slaves.
const KINDS_1_3: [AsyncKind; 3] =
    [AsyncKind::PacketIn, AsyncKind::PortStatus, AsyncKind::FlowRemoved];

/// Appends a configuration.
pub(super) fn put_config(
    version: Version,
    config: &AsyncConfig,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if version == Version::V1_3 {
        return put_fixed(config, out);
    }
    for mask in &config.masks {
        let kind = mask.kind.code(version).ok_or(MessagePart::Bit(mask.kind.name()))?;
        put_property(kind + u16::from(!mask.slave), out, |out| {
            out.put_u32(mask.reasons);
            Ok(())
        })?;
    }
    config.experimenter.iter().try_for_each(|news| {
        put_experimenter(EXPERIMENTER_SLAVE + u16::from(!news.slave), &news.property, out)
    })
}

fn put_fixed(config: &AsyncConfig, out: &mut Vec<u8>) -> Result<(), MessagePart> {
    let strange = config.masks.iter().find(|mask| !KINDS_1_3.contains(&mask.kind));
    if let Some(mask) = strange {
        return Err(MessagePart::Bit(mask.kind.name()));
    }
    if !config.experimenter.is_empty() {
        return Err(MessagePart::Bit("experimenter's asynchronous message"));
    }
    for kind in KINDS_1_3 {
        for slave in [false, true] {
            let left_out = MessagePart::Value { field: kind.name(), value: 0 };
            let reasons = config.get(kind, slave).ok_or(left_out)?;
            out.put_u32(reasons);
        }
    }
    Ok(())
}

/// Reads a configuration.
pub(super) fn read_config(version: Version, reader: &mut Reader) -> Result<AsyncConfig, Fault> {
    let mut config = AsyncConfig::default();
    if version == Version::V1_3 {
        for kind in KINDS_1_3 {
            for slave in [false, true] {
                config.set(kind, slave, reader.u32()?);
            }
        }
        return Ok(config);
    }
    while let Some(property) = read_property(reader)? {
        read_news(version, property, &mut config)?;
    }
    Ok(config)
}

fn read_news(version: Version, property: Property, config: &mut AsyncConfig) -> Result<(), Fault> {
    let (kind, at) = (property.kind, property.at);
    let slave = kind & 1 == 0;
    if kind >= EXPERIMENTER_SLAVE {
        let property = property.experimenter()?;
        config.experimenter.push(AsyncExperimenter { slave, property });
        return Ok(());
    }
    let Some(kind) = AsyncKind::from_code(version, kind & !1) else {
        return Err(property.unknown());
    };
    if config.get(kind, slave).is_some() {
        return Err(Fault::value(at, property.kind, ErrorCode::PropertyDuplicateType));
    }
    let reasons = property.read(|body| body.u32())?;
    config.set(kind, slave, reasons);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::check::{body_of, check, refused};
    use super::*;
    use crate::model::message::Message;
    use crate::version::MessageKind;

    #[test]
    fn the_six_masks_of_1_3_are_properties_later() {
        let mut config = AsyncConfig::default();
        for (place, kind) in KINDS_1_3.into_iter().enumerate() {
            config.set(kind, false, place as u32 + 1);
            config.set(kind, true, 7);
        }
        let hex = "00000001 00000007 00000002 00000007 00000003 00000007";
        check(Version::V1_3, &Message::SetAsync(config.clone()), hex);
        config.masks.truncate(2);
        assert!(body_of(Version::V1_3, &Message::SetAsync(config.clone())).is_err());
        check(
            Version::V1_4,
            &Message::SetAsync(config.clone()),
            "00010008 00000001 00000008 00000007",
        );
        config.set(AsyncKind::ControllerStatus, true, 1);
        let error = body_of(Version::V1_4, &Message::SetAsync(config)).unwrap_err();
        assert_eq!(error, MessagePart::Bit("controller_status"));
    }

    #[test]
    fn invalid_properties_have_specific_errors() {
        let refused = |hex: &str| refused(Version::V1_4, MessageKind::SetAsync, hex);
        assert_eq!(refused("000e0008 00000001"), ErrorCode::PropertyBadType);
        assert_eq!(refused("00000007 00000001"), ErrorCode::PropertyBadLength);
        assert_eq!(refused("00000003 00000001"), ErrorCode::PropertyBadLength);
        assert_eq!(refused("00000010 00000001"), ErrorCode::PropertyBadLength);
        let twice = "00000008 00000001 00000008 00000001";
        assert_eq!(refused(twice), ErrorCode::PropertyDuplicateType);
    }
}
