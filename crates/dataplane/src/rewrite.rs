//! Rewrites header fields in place and updates checksums.
//!
//! Source: OpenFlow switch specification 1.0.0, section 3.3 ("modify-field"), and 1.3.5, sections
//! 5.12 and 7.2.5. Checksums are updated incrementally from the old and the new field ([`sum`]). So
//! no payload is read, and a wrong checksum stays equally wrong. Fields that a frame does not have
//! are not changed; the same rules as for its key decide this ([`crate::parse`]).

use packet::frame::Frame;

use crate::action::Action;

mod context;
pub mod set;
pub mod sum;
pub mod tag;
pub mod ttl;

pub use context::Context;
pub use tag::MplsPlace;
pub use ttl::InvalidTtl;

/// Applies the change of an action; output actions change nothing. Fails without a change if a
/// decrement would leave no TTL.
pub fn apply(action: &Action, frame: &mut Frame, context: &mut Context) -> Result<(), InvalidTtl> {
    match *action {
        Action::SetField { field, value, mask } => {
            set::set_field(frame, context, field, value, mask);
        }
        Action::CopyField { from, from_bit, to, to_bit, bits } => {
            set::copy_field(frame, context, set::Copy { from, from_bit, to, to_bit, bits });
        }
        Action::PushVlan(type_) => tag::push_vlan(frame, type_),
        Action::PopVlan => tag::pop_vlan(frame),
        Action::PushMpls(type_) => tag::push_mpls(frame, type_, MplsPlace::Outermost),
        Action::PushMplsBehindVlan(type_) => tag::push_mpls(frame, type_, MplsPlace::BehindVlan),
        Action::PopMpls(type_) => tag::pop_mpls(frame, type_),
        Action::PushPbb(type_) => tag::push_pbb(frame, type_),
        Action::PopPbb => tag::pop_pbb(frame),
        Action::CopyTtlOut => ttl::copy_out(frame),
        Action::CopyTtlIn => ttl::copy_in(frame),
        Action::SetMplsTtl(value) => ttl::set_mpls(frame, value),
        Action::DecMplsTtl => return ttl::decrement_mpls(frame),
        Action::SetIpTtl(value) => ttl::set_ip(frame, value),
        Action::DecIpTtl => return ttl::decrement_ip(frame),
        Action::SetVlan(id) => tag::set_tag(frame, 0x0fff, id),
        Action::SetVlanPriority(priority) => {
            tag::set_tag(frame, 0xe000, u16::from(priority) << 13);
        }
        Action::SetL4Src(port) => set::set_port(frame, &set::SOURCES, port),
        Action::SetL4Dst(port) => set::set_port(frame, &set::DESTINATIONS, port),
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
