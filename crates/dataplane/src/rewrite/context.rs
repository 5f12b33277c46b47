//! Pipeline fields of a frame.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 7.2.3.8, and 1.5.1, section 7.2.3.9
//! (pipeline fields).

use packet::field::Field;

/// The pipeline fields of one frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Context {
    /// The ingress port, as the control plane numbers it.
    pub in_port: u32,
    /// The physical port of the ingress port.
    pub in_phy_port: u32,
    /// The metadata that tables wrote.
    pub metadata: u64,
    /// The tunnel identifier from the logical ingress port.
    pub tunnel_id: u64,
}

impl Context {
    /// Returns the fields of a frame received on a port, with no other fields known.
    #[inline]
    pub fn at(port: u32) -> Context {
        Context { in_port: port, in_phy_port: port, ..Context::default() }
    }

    /// Returns a field's value, if it is one of these.
    pub fn get(&self, field: Field) -> Option<u128> {
        match field {
            Field::InPort => Some(self.in_port.into()),
            Field::InPhyPort => Some(self.in_phy_port.into()),
            Field::Metadata => Some(self.metadata.into()),
            Field::TunnelId => Some(self.tunnel_id.into()),
            _ => None,
        }
    }

    /// Sets the bits of `mask` in a field, if the field can be set.
    pub fn set(&mut self, field: Field, value: u64, mask: u64) {
        let place = match field {
            Field::Metadata => &mut self.metadata,
            Field::TunnelId => &mut self.tunnel_id,
            _ => return,
        };
        *place = *place & !mask | value & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metadata_and_tunnel_can_be_set() {
        let mut context = Context { in_port: 7, ..Context::default() };
        context.set(Field::Metadata, 0xff00, 0x0ff0);
        context.set(Field::TunnelId, 5, u64::MAX);
        context.set(Field::InPort, 9, u64::MAX);
        let values = [Field::Metadata, Field::TunnelId, Field::InPort].map(|f| context.get(f));
        assert_eq!(values, [Some(0x0f00), Some(5), Some(7)]);
        assert_eq!(context.get(Field::EthDst), None);
    }
}
