//! Consistency of actions with the match of a flow entry.
//!
//! Source: OpenFlow switch specification 1.1.0 and later, `OFPBAC_MATCH_INCONSISTENT`. Version 1.0
//! has no such error: an action on a header that a frame does not have has no effect.

use openflow::model::{Action, Match};
use packet::field::{Field, VLAN_PRESENT};

const MPLS: [u16; 2] = [0x8847, 0x8848];
const IP: [u16; 2] = [0x0800, 0x86dd];
const PBB: u16 = 0x88e7;

/// Whether these actions, executed in this order on matching frames, always have the headers that
/// they need.
pub fn applied_make_sense(matching: &Match, actions: &[Action]) -> bool {
    let mut known = KnownFields { fields: matching.clone(), popped: false };
    actions.iter().all(|action| known.allows(action))
}

/// Like [`applied_make_sense`], for an action set, which has its own order of execution.
pub fn written_make_sense(matching: &Match, actions: &[Action]) -> bool {
    let mut sorted: Vec<&Action> = actions.iter().collect();
    sorted.sort_by_key(|action| step(action));
    let mut known = KnownFields { fields: matching.clone(), popped: false };
    sorted.into_iter().all(|action| known.allows(action))
}

/// Returns the position of an action in the order of an action set (1.3.5, section 5.10).
fn step(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 1,
        Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => 2,
        Action::PushMpls(_) => 3,
        Action::PushPbb(_) => 4,
        Action::PushVlan(_) => 5,
        Action::CopyTtlOut => 6,
        Action::DecMplsTtl | Action::DecNwTtl => 7,
        Action::SetField(_) | Action::SetMplsTtl(_) | Action::SetNwTtl(_) => 8,
        _ => 9,
    }
}

/// Known properties of a frame at some point of a list of actions.
struct KnownFields {
    fields: Match,
    /// Whether a tag has been popped. A match concerns the outermost tag only, so there may be
    /// another.
    popped: bool,
}

impl KnownFields {
    /// Whether the action has the headers that it needs. Updates the known properties to those
    /// after the action.
    fn allows(&mut self, action: &Action) -> bool {
        match action {
            Action::SetField(set) => self.has(set.field),
            Action::CopyField(copy) => self.has(copy.src) && self.has(copy.dst),
            Action::PopVlan => {
                let allowed = self.is_tagged() || self.popped;
                let fields = std::mem::take(&mut self.fields);
                self.fields = fields.without(Field::VlanVid).without(Field::VlanPcp);
                self.popped = true;
                allowed
            }
            Action::PushVlan(_) => {
                self.set_tagged();
                true
            }
            Action::PushMpls(kind) => self.becomes(true, Some(*kind)),
            Action::PopMpls(kind) => self.becomes(self.is_one_of(&MPLS), Some(*kind)),
            Action::PushPbb(kind) => self.becomes(true, Some(*kind)),
            Action::PopPbb => self.becomes(self.is_one_of(&[PBB]), None),
            Action::SetMplsTtl(_) | Action::DecMplsTtl => self.is_one_of(&MPLS),
            Action::SetNwTtl(_) | Action::DecNwTtl => self.is_one_of(&IP),
            _ => true,
        }
    }

    /// Whether a frame certainly has the field.
    fn has(&self, field: Field) -> bool {
        let met = |needed: Field, values: &[u128]| match needed {
            Field::EthType => self.fields.eth_type().is_some_and(|it| values.contains(&it.into())),
            needed => self.fields.value(needed).is_some_and(|it| values.contains(&it)),
        };
        let in_tag = matches!(field, Field::VlanVid | Field::VlanPcp);
        (!in_tag || self.is_tagged()) && field.needs().iter().all(|(of, values)| met(*of, values))
    }

    fn is_one_of(&self, kinds: &[u16]) -> bool {
        self.fields.eth_type().is_some_and(|kind| kinds.contains(&kind))
    }

    fn is_tagged(&self) -> bool {
        let tag = self.fields.get(Field::VlanVid);
        let pcp = self.fields.get(Field::VlanPcp);
        tag.is_some_and(|(value, _)| value & VLAN_PRESENT != 0) || pcp.is_some()
    }

    fn set_tagged(&mut self) {
        let fields = std::mem::take(&mut self.fields);
        self.fields = fields.with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT);
    }

    /// Sets the Ethernet type of the frame; the headers behind it are unknown.
    fn becomes(&mut self, allowed: bool, kind: Option<u16>) -> bool {
        let tagged = self.is_tagged();
        self.fields = match kind {
            Some(kind) => Match::ANY.with(Field::EthType, kind),
            None => Match::ANY,
        };
        if tagged {
            self.set_tagged();
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use openflow::model::FieldMatch;

    use super::*;

    fn set(field: Field) -> Action {
        Action::SetField(FieldMatch::exact(field, 1u8))
    }

    #[test]
    fn setting_a_field_requires_its_header_and_tag() {
        let ip = Match::ANY.with(Field::EthType, 0x0800u16);
        let tcp = ip.clone().with(Field::IpProto, 6u8);
        assert!(applied_make_sense(&ip, &[set(Field::Ipv4Src), Action::DecNwTtl]));
        assert!(!applied_make_sense(&Match::ANY, &[set(Field::Ipv4Src)]));
        assert!(!applied_make_sense(&ip, &[set(Field::TcpSrc)]));
        assert!(applied_make_sense(&tcp, &[set(Field::TcpSrc)]));
        assert!(!applied_make_sense(&tcp, &[set(Field::VlanVid)]));
        assert!(applied_make_sense(&tcp.with_vlan(3), &[set(Field::VlanVid), Action::PopVlan]));
    }

    #[test]
    fn pushes_and_pops_change_the_prerequisites() {
        let ip = Match::ANY.with(Field::EthType, 0x0800u16);
        let push = [Action::PushVlan(0x8100), set(Field::VlanPcp), Action::PopVlan];
        assert!(applied_make_sense(&ip, &push));
        assert!(!applied_make_sense(&ip, &[Action::PopVlan]));
        let tagged = ip.clone().with_vlan(3);
        assert!(applied_make_sense(&tagged, &[Action::PopVlan, Action::PopVlan]));
        assert!(!applied_make_sense(&tagged, &[Action::PopVlan, set(Field::VlanVid)]));
        let mpls = [Action::PushMpls(0x8847), set(Field::MplsLabel)];
        assert!(applied_make_sense(&ip, &mpls));
        let behind = [Action::PushMpls(0x8847), set(Field::Ipv4Src)];
        assert!(!applied_make_sense(&ip, &behind));
        let back = [Action::PushMpls(0x8847), Action::PopMpls(0x0800), set(Field::Ipv4Src)];
        assert!(applied_make_sense(&ip, &back));
    }

    #[test]
    fn an_action_set_is_checked_in_its_execution_order() {
        let ip = Match::ANY.with(Field::EthType, 0x0800u16);
        let written = [set(Field::VlanVid), Action::PushVlan(0x8100)];
        assert!(written_make_sense(&ip, &written));
        assert!(!applied_make_sense(&ip, &written));
    }
}
