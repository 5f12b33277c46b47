//! The number of each field on the wire, and the bytes of its value.
//!
//! Source: `oxm_ofb_match_fields` of 1.2 section A.2.3.7, 1.3.5, 1.4.1 and 1.5.1 section 7.2.3.

use packet::field::Field;

use crate::version::Version;

/// Class of the fields that the specification defines.
pub(super) const CLASS_BASIC: u16 = 0x8000;

/// Class of somebody else's fields.
pub(super) const CLASS_EXPERIMENTER: u16 = 0xffff;

/// Number that no field has, before [`Field::PbbUca`].
const HOLE: u8 = 40;

/// The field's number in its class, if the version has it.
pub(super) fn field_code(version: Version, field: Field) -> Option<u8> {
    let last = match version {
        Version::V1_0 | Version::V1_1 => return None,
        Version::V1_2 => Field::MplsTc,
        Version::V1_3 => Field::Ipv6Exthdr,
        Version::V1_4 => Field::PbbUca,
        Version::V1_5 => Field::PacketType,
    };
    let place = field as u8;
    (field <= last).then_some(if place < HOLE { place } else { place + 1 })
}

/// The field with this number, if the version has it.
pub(super) fn field_of(version: Version, number: u8) -> Option<Field> {
    let place = match number {
        HOLE => return None,
        0..HOLE => number,
        _ => number - 1,
    };
    let field = *Field::ALL.get(usize::from(place))?;
    field_code(version, field).map(|_| field)
}

/// Bytes of a value.
pub(super) fn field_bytes(field: Field) -> usize {
    match field {
        Field::Ipv6Flabel | Field::MplsLabel => 4,
        _ => field.bits().div_ceil(8) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_specification() {
        let code = |field| field_code(Version::V1_5, field);
        assert_eq!(code(Field::InPort), Some(0));
        assert_eq!(code(Field::Ipv6Exthdr), Some(39));
        assert_eq!(code(Field::PbbUca), Some(41));
        assert_eq!(code(Field::PacketType), Some(44));
        assert_eq!(field_of(Version::V1_5, 40), None);
        for version in Version::ALL {
            for field in Field::ALL {
                let back = field_code(version, field).and_then(|code| field_of(version, code));
                assert!(back.is_none_or(|back| back == field));
            }
        }
        let count =
            |version| (0..128).filter(|number| field_of(version, *number).is_some()).count();
        assert_eq!(Version::ALL.map(count), [0, 0, 36, 40, 41, 44]);
    }

    #[test]
    fn values_have_whole_bytes() {
        assert_eq!(field_bytes(Field::Ipv6Flabel), 4);
        assert_eq!(field_bytes(Field::PbbIsid), 3);
        assert_eq!(field_bytes(Field::VlanVid), 2);
        assert_eq!(field_bytes(Field::MplsBos), 1);
    }
}
