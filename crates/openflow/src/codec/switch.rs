//! Encodes and decodes switch features and switch configuration.
//!
//! Source: OpenFlow 1.0.0 sections 5.3.1 and 5.3.2, 1.1.0 and 1.3.5 sections A.3.1 and 7.3.1,
//! 7.3.2.

use super::bytes::{Put, Reader};
use super::port::{put_description, read_descriptions};
use super::{Fault, MessagePart};
use crate::model::kinds::ActionKinds;
use crate::model::switch::{Capabilities, Features, FragmentHandling, SwitchConfig};
use crate::version::{ErrorCode, Version};

/// Fragment handling bits of the configuration flags.
const FRAGMENTS_MASK: u16 = 3;

/// Configuration flag of 1.1 and 1.2: the switch sends frames with an invalid TTL to the
/// controller.
const INVALID_TTL_TO_CONTROLLER: u16 = 4;

/// Appends a features reply's body.
pub(super) fn put_features(
    version: Version,
    features: &Features,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    out.put_u64(features.datapath_id);
    out.put_u32(features.buffers);
    out.put_u8(features.tables);
    out.put_u8(if version >= Version::V1_3 { features.auxiliary } else { 0 });
    out.put_zeros(2);
    out.put_u32(features.capabilities.to_wire(version).map_err(MessagePart::Bit)?);
    match version {
        Version::V1_0 => {
            out.put_u32(features.actions.to_wire(version).map_err(MessagePart::Action)?);
        }
        _ => out.put_zeros(4),
    }
    if version >= Version::V1_3 {
        return Ok(());
    }
    features.ports.iter().try_for_each(|port| put_description(version, port, out))
}

/// Reads a features reply's body.
pub(super) fn read_features(version: Version, reader: &mut Reader) -> Result<Features, Fault> {
    let datapath_id = reader.u64()?;
    let buffers = reader.u32()?;
    let tables = reader.u8()?;
    let auxiliary = reader.u8()?;
    reader.skip(2)?;
    let capabilities = Capabilities::from_wire(version, reader.u32()?).0;
    let actions = reader.u32()?;
    let mut features =
        Features { datapath_id, buffers, tables, capabilities, ..Features::default() };
    match version {
        Version::V1_0 => features.actions = ActionKinds::from_wire(version, actions),
        Version::V1_1 | Version::V1_2 => {}
        _ => features.auxiliary = auxiliary,
    }
    if version < Version::V1_3 {
        features.ports = read_descriptions(version, reader)?;
    }
    Ok(features)
}

/// Returns whether the version has the flag for frames with an invalid TTL.
fn has_ttl_flag(version: Version) -> bool {
    matches!(version, Version::V1_1 | Version::V1_2)
}

/// Appends a configuration.
pub(super) fn put_config(
    version: Version,
    config: &SwitchConfig,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    let fragments = match config.fragments {
        FragmentHandling::Normal => 0,
        FragmentHandling::Drop => 1,
        FragmentHandling::Reassemble => 2,
    };
    let ttl = match config.invalid_ttl_to_controller {
        false => 0,
        true if has_ttl_flag(version) => INVALID_TTL_TO_CONTROLLER,
        true => return Err(MessagePart::Bit("invalid_ttl_to_controller")),
    };
    out.put_u16(fragments | ttl);
    out.put_u16(config.miss_send_bytes);
    Ok(())
}

/// Reads a configuration.
///
/// In 1.0, both fragment bits are invalid together; decoding takes them as reassembly, the higher
/// bit, and ignores the bits above. Later versions have an error for unknown flags.
pub(super) fn read_config(version: Version, reader: &mut Reader) -> Result<SwitchConfig, Fault> {
    let at = reader.at();
    let flags = reader.u16()?;
    let known = match has_ttl_flag(version) {
        true => FRAGMENTS_MASK | INVALID_TTL_TO_CONTROLLER,
        false => FRAGMENTS_MASK,
    };
    let is_strange = flags & !known != 0 || flags & FRAGMENTS_MASK == FRAGMENTS_MASK;
    if version >= Version::V1_1 && is_strange {
        return Err(Fault::value(at, flags, ErrorCode::SwitchConfigBadFlags));
    }
    let fragments = match flags & FRAGMENTS_MASK {
        0 => FragmentHandling::Normal,
        1 => FragmentHandling::Drop,
        _ => FragmentHandling::Reassemble,
    };
    Ok(SwitchConfig {
        fragments,
        invalid_ttl_to_controller: has_ttl_flag(version) && flags & INVALID_TTL_TO_CONTROLLER != 0,
        miss_send_bytes: reader.u16()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::{body_of, check, refused};
    use super::*;
    use crate::model::message::Message;
    use crate::version::MessageKind;

    #[test]
    fn undefined_flags_are_rejected_from_1_1_on() {
        let config = SwitchConfig { invalid_ttl_to_controller: true, ..SwitchConfig::default() };
        check(Version::V1_2, &Message::SetConfig(config), "0004 0080");
        assert!(body_of(Version::V1_3, &Message::SetConfig(config)).is_err());
        let refused = |version, hex: &str| refused(version, MessageKind::SetConfig, hex);
        assert_eq!(refused(Version::V1_3, "0004 0080"), ErrorCode::SwitchConfigBadFlags);
        assert_eq!(refused(Version::V1_1, "0003 0080"), ErrorCode::SwitchConfigBadFlags);
    }

    #[test]
    fn features_list_ports_before_1_3_and_the_auxiliary_id_later() {
        let features = Features { datapath_id: 1, auxiliary: 2, ..Features::default() };
        let hex = "0000000000000001 00000000 00 02 0000 00000000 00000000";
        check(Version::V1_3, &Message::FeaturesReply(features.clone()), hex);
        let body = body_of(Version::V1_2, &Message::FeaturesReply(features)).unwrap();
        assert_eq!(body[12..16], [0; 4]);
    }
}
