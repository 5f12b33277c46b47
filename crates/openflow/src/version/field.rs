//! Match fields of each version, with their numbers in the OXM basic class.
//!
//! Source: `oxm_ofb_match_fields` of the OpenFlow Switch Specifications 1.2.0 to 1.5.1. In 1.0 and
//! 1.1 the match structure defines the fields.

use packet::field::Field;

use super::Version;

/// Returns the field's number in the basic class, and the first version that has it there.
pub(crate) const fn oxm_since(field: Field) -> (u8, Version) {
    match field {
        Field::PbbUca => (41, Version::V1_4),
        Field::TcpFlags => (42, Version::V1_5),
        Field::ActsetOutput => (43, Version::V1_5),
        Field::PacketType => (44, Version::V1_5),
        Field::MplsBos | Field::PbbIsid | Field::TunnelId | Field::Ipv6Exthdr => {
            (field as u8, Version::V1_3)
        }
        _ => (field as u8, Version::V1_2),
    }
}

/// Returns the field's number, if this version has it in the basic class.
pub(crate) fn oxm_number(version: Version, field: Field) -> Option<u8> {
    let (number, since) = oxm_since(field);
    (version >= since).then_some(number)
}

/// Returns the field with this number, if this version has it in the basic class.
pub(crate) fn oxm_field(version: Version, number: u8) -> Option<Field> {
    let place = match number {
        0..=39 => usize::from(number),
        41..=44 => usize::from(number) - 1,
        _ => return None,
    };
    let field = Field::ALL[place];
    oxm_number(version, field).map(|_| field)
}

/// Returns the bytes of a value on the wire.
pub(crate) const fn oxm_bytes(field: Field) -> usize {
    match field {
        Field::Ipv6Flabel | Field::MplsLabel => 4,
        _ => field.bits().div_ceil(8) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_number_round_trips() {
        for version in Version::ALL {
            for field in Field::ALL {
                if let Some(number) = oxm_number(version, field) {
                    assert_eq!(oxm_field(version, number), Some(field));
                }
            }
        }
        let counts = Version::ALL.map(|version| {
            Field::ALL.into_iter().filter(|&field| oxm_number(version, field).is_some()).count()
        });
        assert_eq!(counts, [0, 0, 36, 40, 41, 44]);
        assert_eq!(oxm_field(Version::V1_5, 40), None);
        assert_eq!(oxm_number(Version::V1_3, Field::Ipv6Exthdr), Some(39));
    }

    #[test]
    fn values_have_the_lengths_of_the_specification() {
        for (field, bytes) in [
            (Field::VlanVid, 2),
            (Field::PbbIsid, 3),
            (Field::Ipv6Flabel, 4),
            (Field::MplsBos, 1),
            (Field::Ipv6Exthdr, 2),
            (Field::EthDst, 6),
            (Field::Metadata, 8),
            (Field::Ipv6Src, 16),
        ] {
            assert_eq!(oxm_bytes(field), bytes, "{field}");
        }
    }
}
