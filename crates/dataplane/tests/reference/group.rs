//! Groups by the specification text: live buckets, and the buckets that a frame may use.
//!
//! Source: OpenFlow switch specification 1.3.5, sections 5.6.1 and 6.5. The specification does not
//! define which bucket of a select group a flow uses. So any live bucket with a weight is
//! permitted; [`crate::choices`] requires that the choice stays the same. The switch may skip a
//! bucket that watches nothing if its destination is down, so this model makes no statement about
//! such buckets.

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

/// A bucket of a group.
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

/// The buckets that a frame of a select group may use, or `None` for no bucket.
pub type Among = Vec<Option<u32>>;

impl Groups {
    /// Whether a bucket that watches something is live.
    pub fn lives(&self, bucket: &Bucket) -> bool {
        let port = bucket.watch_port.is_some_and(|port| self.up.contains(&port));
        port || bucket.watch_group.is_some_and(|number| self.group_lives(number))
    }

    /// Whether a group is live: one of its buckets is.
    fn group_lives(&self, number: u32) -> bool {
        self.groups[&number].buckets.iter().any(|bucket| self.lives(bucket))
    }

    /// Returns the indexes of the buckets for a frame, if the specification leaves no choice.
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

    /// Returns the permitted choices of a select group.
    pub fn among(&self, number: u32) -> Among {
        let group = &self.groups[&number];
        let weighty = || group.buckets.iter().filter(|bucket| bucket.weight > 0);
        let surely = weighty().any(|bucket| bucket.watches() && self.lives(bucket));
        let may = weighty().filter(|bucket| !bucket.watches() || self.lives(bucket));
        let nothing = (!surely).then_some(None);
        may.map(|bucket| Some(bucket.id)).chain(nothing).collect()
    }
}

/// The values that identify a flow.
pub type Flow = Vec<u128>;

/// Returns the flow of a frame: its addresses, protocol, tags, labels and ports.
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
