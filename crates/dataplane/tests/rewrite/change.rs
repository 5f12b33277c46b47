//! Effect of an action on the model of a frame.

use dataplane::action::Action;
use dataplane::rewrite::InvalidTtl;
use packet::field::Field;

use crate::model::Model;

/// Applies an action to the model.
pub fn change(action: &Action, model: &mut Model) -> Result<(), InvalidTtl> {
    match *action {
        Action::SetField { field, value, mask } => model.set(field, value, mask),
        Action::CopyField { from, from_bit, to, to_bit, bits } => {
            if let Some(value) = model.get(from) {
                let mask = u128::MAX >> (128 - u32::from(bits));
                model.set(to, (value >> from_bit & mask) << to_bit, mask << to_bit);
            }
        }
        Action::PushVlan(type_) => model.push_vlan(type_),
        Action::PopVlan => model.pop_vlan(),
        Action::PushMpls(type_) => model.push_mpls(type_, false),
        Action::PushMplsBehindVlan(type_) => model.push_mpls(type_, true),
        Action::PopMpls(_) => model.pop_mpls(),
        Action::PushPbb(_) => model.push_pbb(),
        Action::PopPbb => model.pop_pbb(),
        Action::CopyTtlOut | Action::CopyTtlIn => {
            if let [outer, inner] = model.ttls()[..] {
                let out = matches!(action, Action::CopyTtlOut);
                let (from, to) = if out { (inner, outer) } else { (outer, inner) };
                model.set_ttl(to, model.ttl(from));
            }
        }
        Action::SetMplsTtl(_) | Action::DecMplsTtl | Action::SetIpTtl(_) | Action::DecIpTtl => {
            return change_ttl(action, model);
        }
        Action::SetVlan(id) => model.set_tag(0xfff, id),
        Action::SetVlanPriority(priority) => model.set_tag(0xe000, u16::from(priority) << 13),
        Action::SetL4Src(port) => {
            for field in [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc] {
                model.set(field, port.into(), 0xffff);
            }
        }
        Action::SetL4Dst(port) => {
            for field in [Field::TcpDst, Field::UdpDst, Field::SctpDst] {
                model.set(field, port.into(), 0xffff);
            }
        }
        _ => unreachable!("only changes"),
    }
    Ok(())
}

fn change_ttl(action: &Action, model: &mut Model) -> Result<(), InvalidTtl> {
    let Some(&outer) = model.ttls().first() else { return Ok(()) };
    let of_ip = matches!(action, Action::SetIpTtl(_) | Action::DecIpTtl);
    if of_ip != (outer == usize::MAX) {
        return Ok(());
    }
    let ttl = match *action {
        Action::SetMplsTtl(ttl) | Action::SetIpTtl(ttl) => ttl,
        _ if model.ttl(outer) <= 1 => return Err(InvalidTtl),
        _ => model.ttl(outer) - 1,
    };
    model.set_ttl(outer, ttl);
    Ok(())
}
