//! Encodes and decodes controller roles and controller status.
//!
//! Source: OpenFlow 1.2 section A.3.9, 1.4.1 section 7.4.4, 1.5.1 sections 7.3.8 and 7.4.8.

use packet::error::{Malformed, MalformedReason};

use super::bytes::{Put, Reader, put_length, read_length};
use super::multipart::MultipartRow;
use super::property::{
    EXPERIMENTER, Property, put_experimenter, put_experimenters, put_property, read_experimenters,
    read_properties,
};
use super::{Fault, MessagePart};
use crate::model::role::{
    CONTROLLER_NONE, ControllerProperty, ControllerStatus, ControllerStatusReason, Role,
    RoleRequest, RoleStatus, RoleStatusReason,
};
use crate::model::text::Text;
use crate::version::{ErrorCode, Version};

/// Bytes of a controller's status without properties.
const STATUS_BYTES_MIN: usize = 16;

const URI: u16 = 0;

fn put_role(role: Role, out: &mut Vec<u8>) {
    out.put_u32(match role {
        Role::NoChange => 0,
        Role::Equal => 1,
        Role::Master => 2,
        Role::Slave => 3,
    });
}

fn read_role(reader: &mut Reader) -> Result<Role, Fault> {
    let at = reader.at();
    Ok(match reader.u32()? {
        0 => Role::NoChange,
        1 => Role::Equal,
        2 => Role::Master,
        3 => Role::Slave,
        other => {
            return Err(Fault::value(at, other, ErrorCode::RoleRequestBadRole));
        }
    })
}

/// Appends the body of a role request or reply.
pub(super) fn put_request(
    version: Version,
    request: &RoleRequest,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    if version < Version::V1_5 && request.short_id != CONTROLLER_NONE {
        return Err(MessagePart::Value { field: "controller id", value: request.short_id.into() });
    }
    put_role(request.role, out);
    out.put_u16(request.short_id);
    out.put_zeros(2);
    out.put_u64(request.generation);
    Ok(())
}

/// Reads the body of a role request or reply.
pub(super) fn read_request(version: Version, reader: &mut Reader) -> Result<RoleRequest, Fault> {
    let role = read_role(reader)?;
    let short_id = match (version, reader.u16()?) {
        (Version::V1_5, id) => id,
        _ => CONTROLLER_NONE,
    };
    reader.skip(2)?;
    Ok(RoleRequest { role, short_id, generation: reader.u64()? })
}

/// Appends a role-status body.
pub(super) fn put_status(
    version: Version,
    status: &RoleStatus,
    out: &mut Vec<u8>,
) -> Result<(), MessagePart> {
    put_role(status.role, out);
    out.put_u8(match status.reason {
        RoleStatusReason::MasterRequest => 0,
        RoleStatusReason::Config => 1,
        RoleStatusReason::Experimenter => 2,
    });
    out.put_zeros(3);
    out.put_u64(status.generation);
    put_experimenters(version, &status.properties, out)
}

/// Reads a role-status body.
pub(super) fn read_status(reader: &mut Reader) -> Result<RoleStatus, Fault> {
    let role = read_role(reader)?;
    let at = reader.at();
    let reason = match reader.u8()? {
        0 => RoleStatusReason::MasterRequest,
        1 => RoleStatusReason::Config,
        2 => RoleStatusReason::Experimenter,
        other => return Err(Malformed { at, why: MalformedReason::BadValue(other.into()) }.into()),
    };
    reader.skip(3)?;
    let generation = reader.u64()?;
    let properties = read_experimenters(reader)?;
    Ok(RoleStatus { role, reason, generation, properties })
}

impl MultipartRow for ControllerStatus {
    fn put(&self, _version: Version, out: &mut Vec<u8>) -> Result<(), MessagePart> {
        let start = out.len();
        out.put_u16(0);
        out.put_u16(self.short_id);
        put_role(self.role, out);
        out.put_u8(match self.reason {
            ControllerStatusReason::Request => 0,
            ControllerStatusReason::ChannelStatus => 1,
            ControllerStatusReason::Role => 2,
            ControllerStatusReason::Added => 3,
            ControllerStatusReason::Removed => 4,
            ControllerStatusReason::ShortId => 5,
            ControllerStatusReason::Experimenter => 6,
        });
        out.put_u8(u8::from(!self.is_up));
        out.put_zeros(6);
        for property in &self.properties {
            match property {
                ControllerProperty::Uri(uri) => put_property(URI, out, |out| {
                    out.extend_from_slice(uri.as_bytes());
                    Ok(())
                })?,
                ControllerProperty::Experimenter(body) => {
                    put_experimenter(EXPERIMENTER, body, out)?;
                }
            }
        }
        put_length("controller status", out, start, 0)
    }

    fn read(_version: Version, reader: &mut Reader) -> Result<Self, Fault> {
        let mut row = read_length(reader, STATUS_BYTES_MIN, 0)?;
        let short_id = row.u16()?;
        let role = read_role(&mut row)?;
        let reason = read_status_reason(&mut row)?;
        let at = row.at();
        let is_up = match row.u8()? {
            0 => true,
            1 => false,
            other => {
                return Err(Malformed { at, why: MalformedReason::BadValue(other.into()) }.into());
            }
        };
        row.skip(6)?;
        let properties = read_properties(&mut row, read_controller_property)?;
        Ok(ControllerStatus { short_id, role, reason, is_up, properties })
    }
}

fn read_status_reason(row: &mut Reader) -> Result<ControllerStatusReason, Malformed> {
    let at = row.at();
    Ok(match row.u8()? {
        0 => ControllerStatusReason::Request,
        1 => ControllerStatusReason::ChannelStatus,
        2 => ControllerStatusReason::Role,
        3 => ControllerStatusReason::Added,
        4 => ControllerStatusReason::Removed,
        5 => ControllerStatusReason::ShortId,
        6 => ControllerStatusReason::Experimenter,
        other => return Err(Malformed { at, why: MalformedReason::BadValue(other.into()) }),
    })
}

fn read_controller_property(property: Property) -> Result<ControllerProperty, Fault> {
    Ok(match property.kind {
        URI => ControllerProperty::Uri(property.read(|body| Ok(Text::from_bytes(body.rest())))?),
        EXPERIMENTER => ControllerProperty::Experimenter(property.experimenter()?),
        _ => return Err(property.unknown()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::{check, refused};
    use super::*;
    use crate::model::message::Message;
    use crate::version::MessageKind;

    #[test]
    fn a_role_request_has_a_generation_and_a_short_id_in_1_5() {
        let mut request = RoleRequest { role: Role::Master, short_id: 0, generation: 0x1234 };
        let hex = "00000002 00000000 0000000000001234";
        check(Version::V1_2, &Message::RoleRequest(request), hex);
        check(Version::V1_4, &Message::RoleReply(request), hex);
        request.short_id = 0x55;
        let hex = "00000002 00550000 0000000000001234";
        check(Version::V1_5, &Message::RoleRequest(request), hex);
        let unknown = "00000004 00000000 0000000000000000";
        let answer = refused(Version::V1_3, MessageKind::RoleRequest, unknown);
        assert_eq!(answer, ErrorCode::RoleRequestBadRole);
        assert!(put_request(Version::V1_4, &request, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_controller_status_has_its_channel_state() {
        let status = ControllerStatus {
            short_id: 3,
            role: Role::Slave,
            reason: ControllerStatusReason::ChannelStatus,
            is_up: false,
            properties: vec![ControllerProperty::Uri(Text::from("tcp:[::1]"))],
        };
        let hex = "0020 0003 00000003 01 01 000000000000 0000 000d 7463703a5b3a3a315d 000000";
        check(Version::V1_5, &Message::ControllerStatus(status), hex);
    }

    #[test]
    fn a_role_status_has_its_reason() {
        let status = RoleStatus {
            role: Role::Slave,
            reason: RoleStatusReason::MasterRequest,
            generation: 9,
            properties: Vec::new(),
        };
        let hex = "00000003 00 000000 0000000000000009";
        check(Version::V1_4, &Message::RoleStatus(status), hex);
    }
}
