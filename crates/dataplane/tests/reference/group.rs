//! Groups straight from the text: which buckets are live, and which of them a frame may go by.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 5.6.1 and 6.5. Of a select group the text
//! leaves open which bucket a flow goes by; here any that is live and has a weight may be chosen
//! ([`crate::choices`] demands that it stays the same). A bucket that watches nothing may be passed
//! over by the switch if what it sends to is dead, so that nothing is said of it.

use std::collections::{BTreeMap, BTreeSet};

use dataplane::action::Action;
use dataplane::group::GroupKind;
use packet::field::Field;
use packet::frame::PortNo;

use crate::fields::field_of;
use crate::model::{Link, Model};

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub kind: GroupKind,
    pub buckets: Vec<Bucket>,
}

/// One of its buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub id: u32,
    pub weight: u16,
    pub watch_port: Option<PortNo>,
    pub watch_group: Option<u32>,
    pub actions: Vec<Action>,
}

impl Bucket {
    pub fn watches(&self) -> bool {
        self.watch_port.is_some() || self.watch_group.is_some()
    }
}

/// The groups, and the ports whose links are up.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    pub groups: BTreeMap<u32, Group>,
    pub up: BTreeSet<PortNo>,
}

/// The buckets that a frame of a select group may go by, or none of them.
pub type Among = Vec<Option<u32>>;

impl Groups {
    /// Whether a bucket is live that watches something.
    pub fn lives(&self, bucket: &Bucket) -> bool {
        let port = bucket.watch_port.is_some_and(|port| self.up.contains(&port));
        port || bucket.watch_group.is_some_and(|number| self.group_lives(number))
    }

    /// A group is live if one of its buckets is.
    fn group_lives(&self, number: u32) -> bool {
        self.groups[&number].buckets.iter().any(|bucket| self.lives(bucket))
    }

    /// Places of the buckets that a frame goes by, where the text leaves no choice.
    pub fn places(&self, number: u32) -> Option<Vec<usize>> {
        let group = &self.groups[&number];
        match group.kind {
            GroupKind::All | GroupKind::Indirect => Some((0..group.buckets.len()).collect()),
            GroupKind::FastFailover => {
                let first = group.buckets.iter().position(|bucket| self.lives(bucket));
                Some(first.into_iter().collect())
            }
            GroupKind::Select => None,
        }
    }

    /// What a select group may choose.
    pub fn among(&self, number: u32) -> Among {
        let group = &self.groups[&number];
        let weighty = || group.buckets.iter().filter(|bucket| bucket.weight > 0);
        let surely = weighty().any(|bucket| bucket.watches() && self.lives(bucket));
        let may = weighty().filter(|bucket| !bucket.watches() || self.lives(bucket));
        let nothing = (!surely).then_some(None);
        may.map(|bucket| Some(bucket.id)).chain(nothing).collect()
    }
}

/// What the frames of one flow have in common, and others have not.
pub type Flow = Vec<u128>;

/// The flow of a frame: its addresses, protocol, tags, labels and ports.
pub fn flow(model: &Model) -> Flow {
    const FIELDS: [Field; 20] = [
        Field::EthDst,
        Field::EthSrc,
        Field::EthType,
        Field::VlanVid,
        Field::IpProto,
        Field::Ipv4Src,
        Field::Ipv4Dst,
        Field::Ipv6Src,
        Field::Ipv6Dst,
        Field::ArpSpa,
        Field::ArpTpa,
        Field::ArpSha,
        Field::ArpTha,
        Field::PbbIsid,
        Field::TcpSrc,
        Field::TcpDst,
        Field::UdpSrc,
        Field::UdpDst,
        Field::SctpSrc,
        Field::SctpDst,
    ];
    let mut flow: Flow = FIELDS.map(|field| field_of(field, model).unwrap_or(u128::MAX)).to_vec();
    for link in &model.links {
        match link {
            Link::Vlan(kind, control) => {
                flow.push(u128::from(*kind) << 12 | u128::from(control & 0xfff));
            }
            Link::Mpls(kind, entry) => {
                flow.push(u128::from(*kind) << 20 | u128::from(entry.label));
            }
            Link::Snap => flow.push(1 << 40),
            Link::Pbb(tag) => {
                flow.push(1 << 41 | u128::from(tag.isid));
                flow.extend(
                    tag.destination.iter().chain(&tag.source).map(|byte| u128::from(*byte)),
                );
            }
        }
    }
    flow
}
