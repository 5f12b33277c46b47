//! Check of the prerequisites of fields in a match.
//!
//! Only a few fields are prerequisites of others ([`Field::needs`]). Recording their values once is
//! sufficient for all fields of a match.

use super::{Field, Prerequisite};

/// Values of a match for the fields that are prerequisites.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrerequisiteCheck {
    eth_type: Option<u128>,
    ip_proto: Option<u128>,
    icmpv6_type: Option<u128>,
}

impl PrerequisiteCheck {
    /// Records the match of one field. A masked value does not satisfy a prerequisite.
    #[inline]
    pub fn note(&mut self, field: Field, value: u128, mask: u128) {
        let place = match field {
            Field::EthType => &mut self.eth_type,
            Field::IpProto => &mut self.ip_proto,
            Field::Icmpv6Type => &mut self.icmpv6_type,
            _ => return,
        };
        *place = (mask == field.ones()).then_some(value);
    }

    /// Returns the EtherType, if the match has one.
    pub fn eth_type(&self) -> Option<u128> {
        self.eth_type
    }

    /// Returns true if every frame with the recorded values can have this field.
    #[inline]
    pub fn bears(&self, field: Field) -> bool {
        field.needs().iter().all(|needed| self.has(needed))
    }

    #[inline]
    fn has(&self, (needed, values): &Prerequisite) -> bool {
        let value = match needed {
            Field::EthType => self.eth_type,
            Field::IpProto => self.ip_proto,
            Field::Icmpv6Type => self.icmpv6_type,
            _ => None,
        };
        value.is_some_and(|value| values.contains(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prerequisite_can_be_recorded() {
        let needs = Field::ALL.into_iter().flat_map(Field::needs);
        for &(needed, values) in needs {
            let mut ground = PrerequisiteCheck::default();
            assert!(!ground.has(&(needed, values)));
            ground.note(needed, values[0], needed.ones());
            assert!(ground.has(&(needed, values)), "{needed}");
            ground.note(needed, values[0], needed.ones() >> 1);
            assert!(!ground.has(&(needed, values)), "{needed} in part");
        }
    }

    #[test]
    fn a_port_field_requires_the_ip_protocol_and_the_ethernet_type() {
        let mut ground = PrerequisiteCheck::default();
        assert!(ground.bears(Field::EthDst) && !ground.bears(Field::UdpSrc));
        ground.note(Field::IpProto, 17, 0xff);
        assert!(!ground.bears(Field::UdpSrc));
        ground.note(Field::EthType, 0x86dd, 0xffff);
        assert!(ground.bears(Field::UdpSrc) && !ground.bears(Field::TcpSrc));
        assert!(!ground.bears(Field::Ipv4Src));
    }
}
