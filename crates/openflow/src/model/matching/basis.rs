//! Whether fields stand on what they need: [`Ground`] in the words of OpenFlow, which has two names for
//! an Ethernet type.

use packet::field::{Field, Ground, VLAN_PRESENT};

use super::{FieldMatch, Match};

/// The name space of Ethernet types among packet types (OpenFlow 1.5.1 section 7.2.3.11).
const ETHER_TYPES: u128 = 1;

/// What a match asks of the fields that others need.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Basis {
    ground: Ground,
    wants_tag: bool,
    names_port: bool,
}

impl Basis {
    /// What this match asks of them.
    pub(crate) fn of(matching: &Match) -> Basis {
        let mut basis = Basis::default();
        matching.fields().iter().for_each(|row| basis.note(row));
        basis
    }

    /// Takes in what is asked of one field.
    #[inline]
    pub(crate) fn note(&mut self, row: &FieldMatch) {
        match row.field {
            Field::VlanVid => self.wants_tag = row.value & VLAN_PRESENT != 0,
            Field::InPort => self.names_port = true,
            // An Ethernet type that is named as such counts, wherever it stands.
            Field::PacketType if self.ground.eth_type().is_none() => {
                if row.is_exact() && row.value >> 16 == ETHER_TYPES {
                    let field = Field::EthType;
                    self.ground.note(field, row.value & field.ones(), field.ones());
                }
            }
            field => self.ground.note(field, row.value, row.mask),
        }
    }

    /// Whether every frame that matches has this field.
    #[inline]
    pub(crate) fn bears(&self, field: Field) -> bool {
        match field {
            Field::VlanPcp => self.wants_tag,
            Field::InPhyPort => self.names_port,
            field => self.ground.bears(field),
        }
    }
}
