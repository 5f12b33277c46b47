//! A stream in a stream file: all keys, and their conversion.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Deserialize;

use super::headers::{ArpEntry, LabelEntry, TcpFlag, TransportEntry, VlanEntry};
use super::literal::Mac;
use super::pace::ScheduleEntry;
use super::vary::{VaryEntry, groups};
use crate::stream::{Arrival, Problem, Stream};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub id: u16,
    from: usize,
    to: usize,

    pub(super) frame_bytes: Option<usize>,
    pub(super) genome: Option<String>,
    #[serde(default)]
    pub(super) genome_sizes: BTreeMap<String, usize>,
    signature_at: Option<usize>,

    pub(super) rate_pps: Option<f64>,
    pub(super) rate_percent: Option<f64>,
    pub(super) link_bits_per_second: Option<u64>,
    #[serde(default)]
    pub(super) schedule: ScheduleEntry,

    pub(super) mac_source: Mac,
    pub(super) mac_destination: Mac,
    pub(super) vlan_id: Option<u16>,
    pub(super) vlan_priority: Option<u8>,
    pub(super) vlans: Option<Vec<VlanEntry>>,
    #[serde(default)]
    pub(super) mpls: Vec<LabelEntry>,
    pub(super) arp: Option<ArpEntry>,
    pub(super) loopback_level: Option<u8>,
    pub(super) ip_source: Option<Ipv4Addr>,
    pub(super) ip_destination: Option<Ipv4Addr>,
    pub(super) ipv6_source: Option<Ipv6Addr>,
    pub(super) ipv6_destination: Option<Ipv6Addr>,
    pub(super) flow_label: Option<u32>,
    pub(super) ttl: Option<u8>,
    pub(super) tos: Option<u8>,
    pub(super) ip_protocol: Option<u8>,
    #[serde(default)]
    pub(super) transport: TransportEntry,
    pub(super) tcp_flags: Option<Vec<TcpFlag>>,
    pub(super) sctp_tag: Option<u32>,
    pub(super) port_source: Option<u16>,
    pub(super) port_destination: Option<u16>,

    #[serde(default)]
    arrival: ArrivalEntry,
    #[serde(default)]
    vary: Vec<VaryEntry>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum ArrivalEntry {
    #[default]
    Unchanged,
    Routed(RoutedEntry),
    Tagged(Vec<VlanEntry>),
    Untagged,
    Answered,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutedEntry {
    mac_source: Mac,
    mac_destination: Mac,
}

impl Entry {
    pub fn stream(self, problems: &mut Vec<Problem>) -> Stream {
        let headers = self.headers(problems);
        let rate = self.rate(problems);
        let shape = self.shape(rate, problems);
        let (frame_bytes, genome) = self.sizes(problems);
        let arrival = match self.arrival {
            ArrivalEntry::Unchanged => Arrival::Unchanged,
            ArrivalEntry::Routed(RoutedEntry { mac_source, mac_destination }) => {
                Arrival::Routed { mac_source: mac_source.0, mac_destination: mac_destination.0 }
            }
            ArrivalEntry::Tagged(tags) => {
                Arrival::Tagged(tags.iter().map(VlanEntry::tag).collect())
            }
            ArrivalEntry::Untagged => Arrival::Untagged,
            ArrivalEntry::Answered => Arrival::Answered,
        };
        // Port 0 is invalid in a file. It becomes an index that no rig has.
        let (from, to) = (self.from.wrapping_sub(1), self.to.wrapping_sub(1));
        let vary = groups(self.vary, &headers, problems);
        let plain = Stream::plain(self.id, frame_bytes, headers, rate);
        let plain = Stream { from, to, vary, shape, arrival, ..plain };
        let stream = Stream { signature_at: self.signature_at, ..plain };
        match genome {
            None => stream,
            Some(genome) => stream.with_genome(genome),
        }
    }
}
