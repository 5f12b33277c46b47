//! Changing a frame in place, with its checksums.
//!
//! Source: OpenFlow switch specification 1.0.0, section 3.3 ("modify-field"), and 1.3.5, sections
//! 5.12 and 7.2.5. Checksums follow from the old and the new field ([`sum`]), so no payload is read
//! and a wrong checksum stays as wrong as it was. What a frame does not have is not changed: what it
//! has is decided as for its key ([`crate::locate`]).

use packet::frame::Frame;

use crate::action::Action;
use packet::field::Field;

/// What a frame carries through the pipeline besides its bytes.
mod context;
/// Setting and copying fields.
pub mod set;
/// The checksums of a frame after one of its fields changed.
pub mod sum;
/// Tags pushed and popped.
pub mod tag;
/// The time to live.
pub mod ttl;

pub use context::Context;
pub use tag::MplsPlace;
pub use ttl::InvalidTtl;

/// Does what an action asks to be changed; an action that sends changes nothing.
pub fn apply(action: &Action, frame: &mut Frame) {
    let context = &mut Context::default();
    let mut set = |field: Field, value: u128| {
        set::set_field(frame, context, field, value, field.ones());
    };
    match *action {
        Action::SetEthDst(mac) => set(Field::EthDst, number(&mac)),
        Action::SetEthSrc(mac) => set(Field::EthSrc, number(&mac)),
        Action::SetIpSrc(address) => set(Field::Ipv4Src, number(&address)),
        Action::SetIpDst(address) => set(Field::Ipv4Dst, number(&address)),
        Action::SetIpTos(tos) => set(Field::IpDscp, (tos >> 2).into()),
        Action::SetVlan(id) => tag::set_tag(frame, 0x0fff, id),
        Action::SetVlanPriority(priority) => {
            tag::set_tag(frame, 0xe000, u16::from(priority) << 13);
        }
        Action::StripVlan => tag::pop_vlan(frame),
        Action::SetL4Src(port) => set::set_port(frame, &set::SOURCES, port),
        Action::SetL4Dst(port) => set::set_port(frame, &set::DESTINATIONS, port),
        _ => {}
    }
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

#[cfg(test)]
mod tests;
