//! Action set of a frame: tables write it, and it executes after the last table.
//!
//! Source: OpenFlow switch specification 1.3.5, section 5.10 (1.5.1, section 5.6, for meters). The
//! set holds at most one action of each kind, the last one written, and one `SetField` per field.
//! They execute in this order: copy TTL inwards, pop, push MPLS, push PBB, push VLAN, copy TTL
//! outwards, decrement TTL, set, meter and queue, group, output. With a group, the output does not
//! execute.
//!
//! Invariant: the actions are sorted by [`slot`] and no two have the same.

use crate::action::{Action, UNSET};
use packet::frame::PortNo;

/// An action set.
#[derive(Debug, Clone, Default)]
pub struct ActionSet {
    actions: Vec<Action>,
}

impl ActionSet {
    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Removes all actions.
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    /// Writes actions; each replaces the one of its kind.
    pub fn write(&mut self, actions: &[Action]) {
        for action in actions {
            match self.actions.binary_search_by_key(&slot(action), slot) {
                Ok(at) => self.actions[at] = *action,
                Err(at) => self.actions.insert(at, *action),
            }
        }
    }

    /// Returns the actions in execution order.
    pub fn actions(&self) -> &[Action] {
        match &self.actions[..] {
            [.., Action::Group(_), _] => &self.actions[..self.actions.len() - 1],
            all => all,
        }
    }

    /// Returns the output port of the set, or [`UNSET`].
    pub fn output(&self) -> PortNo {
        self.actions().last().and_then(Action::port_asked).unwrap_or(UNSET)
    }
}

/// Returns the position of an action in the execution order.
fn slot(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 0,
        Action::PopVlan => 1,
        Action::PopMpls(_) => 2,
        Action::PopPbb => 3,
        Action::PushMpls(_) | Action::PushMplsBehindVlan(_) => 4,
        Action::PushPbb(_) => 5,
        Action::PushVlan(_) => 6,
        Action::CopyTtlOut => 7,
        Action::DecMplsTtl => 8,
        Action::DecIpTtl => 9,
        Action::SetMplsTtl(_) => 10,
        Action::SetIpTtl(_) => 11,
        Action::SetVlan(_) => 12,
        Action::SetVlanPriority(_) => 13,
        Action::SetL4Src(_) => 14,
        Action::SetL4Dst(_) => 15,
        Action::SetField { field, .. } => 16 + *field as u8,
        Action::CopyField { to, .. } => 80 + *to as u8,
        Action::Meter(_) => 150,
        Action::SetQueue(_) => 151,
        Action::Group(_) => 152,
        Action::Output { .. }
        | Action::InPort
        | Action::All
        | Action::Flood
        | Action::Controller { .. }
        | Action::Normal
        | Action::Local
        | Action::Table
        | Action::Enqueue { .. } => 153,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::field::Field;

    #[test]
    fn an_action_set_has_each_kind_once_and_runs_in_order() {
        let mut set = ActionSet::default();
        let out = |port| Action::Output { port };
        let vid = |id| Action::set(Field::VlanVid, id);
        set.write(&[out(1), vid(5), Action::set(Field::EthDst, 9), Action::PushVlan(0x8100)]);
        set.write(&[vid(6), Action::DecIpTtl, out(2), Action::SetQueue(3), Action::CopyTtlIn]);
        let wanted = [
            Action::CopyTtlIn,
            Action::PushVlan(0x8100),
            Action::DecIpTtl,
            Action::set(Field::EthDst, 9),
            vid(6),
            Action::SetQueue(3),
            out(2),
        ];
        assert_eq!(set.actions(), wanted);
        assert_eq!(set.output(), 2);
        set.write(&[Action::Group(7)]);
        assert_eq!(set.actions()[wanted.len() - 1..], [Action::Group(7)]);
        assert_eq!(set.output(), UNSET);
        set.clear();
        assert!(set.is_empty() && set.actions().is_empty());
    }

    #[test]
    fn action_kinds_have_distinct_positions() {
        let fields = Field::ALL.map(|field| Action::set(field, 0));
        let copies = Field::ALL.map(|to| Action::CopyField {
            from: Field::InPort,
            from_bit: 0,
            to,
            to_bit: 0,
            bits: 1,
        });
        let mut slots: Vec<u8> = fields.iter().chain(&copies).map(slot).collect();
        slots.extend([Action::SetL4Dst(1), Action::Meter(1), Action::Group(1)].iter().map(slot));
        let count = slots.len();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), count);
    }
}
