//! The order in which a set of actions is done, whatever the order in which they were said.
//!
//! Source: OpenFlow Switch Specification 1.3.5, section 5.10. A set has one action of each kind (one
//! of each field, for those that set a field): the last said counts. Where there is a group, the
//! output is left out. The meter of 1.5 comes first: it measures the frame as it came.

use crate::action::Action;

/// The actions of the set that these make, in the order in which they are done.
pub fn ordered(actions: &[Action]) -> Vec<Action> {
    let mut set: Vec<Action> = Vec::with_capacity(actions.len());
    for action in actions {
        set.retain(|other| !replaces(action, other));
        set.push(*action);
    }
    if set.iter().any(|action| matches!(action, Action::Group(_))) {
        set.retain(|action| matches!(action, Action::Group(_)) || !action.is_output());
    }
    set.sort_by_key(rank);
    set
}

/// Whether a set cannot hold both.
fn replaces(new: &Action, old: &Action) -> bool {
    match (new, old) {
        (Action::SetField { field: new, .. }, Action::SetField { field: old, .. }) => new == old,
        (Action::CopyField { to: new, .. }, Action::CopyField { to: old, .. }) => new == old,
        (Action::SetField { .. }, _) | (_, Action::SetField { .. }) => false,
        (Action::Group(_), Action::Group(_)) => true,
        (Action::Group(_), _) | (_, Action::Group(_)) => false,
        (Action::PushMpls(_) | Action::PushMplsBehindVlan(_), _) if rank(new) == rank(old) => true,
        _ => {
            new.is_output() && old.is_output()
                || std::mem::discriminant(new) == std::mem::discriminant(old)
        }
    }
}

/// Its place among the kinds of actions. Those that set fields keep their order among each other.
fn rank(action: &Action) -> u8 {
    match action {
        Action::Meter(_) => 0,
        Action::CopyTtlIn => 1,
        Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => 2,
        Action::PushMpls(_) | Action::PushMplsBehindVlan(_) => 3,
        Action::PushPbb(_) => 4,
        Action::PushVlan(_) => 5,
        Action::CopyTtlOut => 6,
        Action::DecMplsTtl | Action::DecIpTtl => 7,
        Action::SetQueue(_) => 9,
        Action::Group(_) => 10,
        action if action.is_output() => 11,
        _ => 8,
    }
}
