//! Replacement of actions in an action set, and the set's output.
//!
//! Source: OpenFlow switch specification 1.3.5, section 5.10; 1.5.1, section 7.2.3.8
//! (`actset_output`).

use dataplane::action::{Action, UNSET};
use packet::frame::PortNo;

/// Whether an action replaces the other one in an action set.
pub fn same_kind(one: &Action, other: &Action) -> bool {
    let push =
        |action: &Action| matches!(action, Action::PushMpls(_) | Action::PushMplsBehindVlan(_));
    match (one, other) {
        (Action::SetField { field, .. }, Action::SetField { field: same, .. }) => field == same,
        _ if is_output(one) => is_output(other),
        _ if push(one) => push(other),
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

pub fn is_output(action: &Action) -> bool {
    let controller = matches!(action, Action::Controller { .. });
    controller
        || matches!(action, Action::Output { .. } | Action::InPort | Action::All | Action::Flood)
}

/// Returns the output port of an action set, with the numbers of reserved ports.
pub fn output_of(set: &[Action]) -> PortNo {
    if set.iter().any(|action| matches!(action, Action::Group(_))) {
        return UNSET;
    }
    match set.iter().find(|action| is_output(action)) {
        Some(Action::Output { port }) => *port,
        Some(Action::InPort) => 0xfff8,
        Some(Action::Flood) => 0xfffb,
        Some(Action::All) => 0xfffc,
        Some(Action::Controller { .. }) => 0xfffd,
        _ => UNSET,
    }
}
