//! Prerequisites of match fields: [`PrerequisiteCheck`] with OpenFlow's two fields for an Ethernet type.

use packet::field::{Field, PrerequisiteCheck, VLAN_PRESENT};

use super::{FieldMatch, Match};

/// Namespace of Ethernet types in packet types (OpenFlow 1.5.1 section 7.2.3.11).
const ETHER_TYPES: u128 = 1;

/// The fields of a match that are prerequisites of others.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrerequisiteFields {
    ground: PrerequisiteCheck,
    wants_tag: bool,
    names_port: bool,
}

impl PrerequisiteFields {
    /// Collects the prerequisite fields of this match.
    pub(crate) fn of(matching: &Match) -> PrerequisiteFields {
        let mut basis = PrerequisiteFields::default();
        matching.fields().iter().for_each(|row| basis.note(row));
        basis
    }

    /// Adds one field.
    #[inline]
    pub(crate) fn note(&mut self, row: &FieldMatch) {
        match row.field {
            Field::VlanVid => self.wants_tag = row.value & VLAN_PRESENT != 0,
            Field::InPort => self.names_port = true,
            // `eth_type` takes precedence over the packet type, in either order.
            Field::PacketType if self.ground.eth_type().is_none() => {
                if row.is_exact() && row.value >> 16 == ETHER_TYPES {
                    let field = Field::EthType;
                    self.ground.note(field, row.value & field.ones(), field.ones());
                }
            }
            field => self.ground.note(field, row.value, row.mask),
        }
    }

    /// Returns whether the match has the prerequisites of this field.
    #[inline]
    pub(crate) fn bears(&self, field: Field) -> bool {
        match field {
            Field::VlanPcp => self.wants_tag,
            Field::InPhyPort => self.names_port,
            field => self.ground.bears(field),
        }
    }
}
