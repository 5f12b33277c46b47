//! EtherEncap (RFC 6956 section 5.1.4): adds link-layer headers.
//!
//! - MediaEncapInfoIndex selects the row of EncapTable.
//! - The header is tagged if its VLAN or VlanPriority is not zero.
//! - The EtherType follows from the packet: IPv4 or IPv6, by its first four bits.
//! - Without such a row, the header is that of a neighbour that an agent resolved. The key is
//!   L3PortID and the next hop, or the destination of the packet if the next hop is zero.
//!   EncapTable lists such neighbours as rows from [`NEIGHBOUR_ROWS`] on.

use core::net::IpAddr;
use std::collections::BTreeMap;

use forces::Value;
use packet::frame::FRAME_BYTES_MAX;
use packet::header::ethernet::{self, Mac};
use packet::header::{ipv4, ipv6};
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Setup, Slots, Verdict, exception, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState};
use crate::compile::tree::NodeId;

const SUCCESS: u32 = 0;
const EXCEPTION: u32 = 1;
/// The component EncapTable.
const TABLE: u32 = 1;

/// First row index of neighbours that an agent resolved.
pub const NEIGHBOUR_ROWS: u32 = 0x8000_0000;

/// The EtherEncap block.
#[derive(Debug)]
pub struct Encap {
    rows: BTreeMap<u32, Header>,
    /// Neighbours that an agent resolved, by port and address.
    neighbours: BTreeMap<(u32, IpAddr), Header>,
}

#[derive(Debug, Clone, Copy)]
struct Header {
    destination: Mac,
    source: Mac,
    vid: u16,
    port: u32,
}

impl Header {
    /// Builds the header for a packet with an EtherType and a priority.
    fn bytes(&self, priority: u16, ether_type: u16) -> Vec<u8> {
        let mut bytes = [&self.destination[..], &self.source].concat();
        if self.vid != 0 || priority != 0 {
            bytes.extend(ethernet::TYPE_VLAN.to_be_bytes());
            bytes.extend((priority << 13 | self.vid).to_be_bytes());
        }
        bytes.extend(ether_type.to_be_bytes());
        bytes
    }
}

impl Encap {
    /// Sets the header of a neighbour (destination, source, VLAN), or removes it.
    pub fn set_neighbour(&mut self, at: (u32, IpAddr), header: Option<(Mac, Mac, u16)>) {
        match header {
            None => drop(self.neighbours.remove(&at)),
            Some((destination, source, vid)) => {
                let header = Header { destination, source, vid, port: at.0 };
                self.neighbours.insert(at, header);
            }
        }
    }

    /// Removes all neighbours.
    pub fn clear_neighbours(&mut self) {
        self.neighbours.clear();
    }

    fn neighbour(&self, packet: &Packet, slots: &Slots) -> Option<&Header> {
        if self.neighbours.is_empty() {
            return None;
        }
        let port = packet.meta(slots, meta_id::L3_PORT)? as u32;
        let hop = |id| packet.meta(slots, id).filter(|address| *address != 0);
        let address = match packet.bytes().first()? >> 4 {
            4 => IpAddr::V4(match hop(meta_id::NEXT_HOP_V4) {
                Some(address) => (address as u32).into(),
                None => ipv4::View::new(packet.bytes())?.destination(),
            }),
            6 => IpAddr::V6(match hop(meta_id::NEXT_HOP_V6) {
                Some(address) => address.into(),
                None => ipv6::View::new(packet.bytes())?.destination(),
            }),
            _ => return None,
        };
        self.neighbours.get(&(port, address))
    }

    fn put(&self, packet: &mut Packet, env: &Env<'_>) -> Result<u32, u128> {
        let slots = env.slots;
        let index =
            packet.meta(slots, meta_id::MEDIA_ENCAP).ok_or(exception::ENCAP_INDEX_INVALID)?;
        let row = u32::try_from(index).ok().and_then(|index| self.rows.get(&index));
        let row = row.or_else(|| self.neighbour(packet, slots));
        let row = row.ok_or(exception::ENCAP_LOOKUP_FAILED)?;
        let ether_type = match packet.bytes().first().map(|byte| byte >> 4) {
            Some(4) => ethernet::TYPE_IPV4,
            Some(6) => ethernet::TYPE_IPV6,
            _ => return Err(exception::ANY),
        };
        let priority = packet.meta(slots, meta_id::VLAN_PRIORITY).unwrap_or(0) as u16 & 7;
        if !packet.prepend(&row.bytes(priority, ether_type), env.frames) {
            return Err(exception::ANY);
        }
        packet.set_meta(slots, meta_id::L2_PORT, row.port.into());
        Ok(SUCCESS)
    }
}

impl Block for Encap {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        let rows = setup.rows(1).into_iter().map(|row| {
            let (destination, source) = (row.octets(1), row.octets(2));
            let (vid, port) = (row.number(3) as u16 & 0xfff, row.number(5));
            (row.index, Header { destination, source, vid, port })
        });
        Encap { rows: rows.collect(), neighbours: BTreeMap::new() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        match self.put(packet, env) {
            Ok(output) => Verdict::Out(output, 0),
            Err(why) => {
                packet.set_meta(env.slots, meta_id::EXCEPTION, why);
                Verdict::Out(EXCEPTION, 0)
            }
        }
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let constant = |id: u32| match grower.slots.slot(id).and_then(|slot| way.meta[slot]) {
            Some(Known::Constant(value)) => Some(Some(value)),
            None => Some(None),
            Some(_) => None,
        };
        let (index, priority) =
            (constant(meta_id::MEDIA_ENCAP)?, constant(meta_id::VLAN_PRIORITY)?);
        let priority = priority.unwrap_or(0) as u16 & 7;
        let fail = |grower: &mut TreeBuilder<'_>, mut way: PathState, why| {
            way.set(grower.slots.slot(meta_id::EXCEPTION), Known::Constant(why));
            grower.go(way, EXCEPTION, 0)
        };
        let Some(index) = index else {
            return Some(fail(grower, way, exception::ENCAP_INDEX_INVALID));
        };
        let row = u32::try_from(index).ok().and_then(|index| self.rows.get(&index));
        // An agent may resolve a neighbour at any time.
        let Some(row) = row else { return Some(grower.stand(way)) };
        let version = way.view.read(0, 4)?;
        let groups = [vec![(4, 4)], vec![(6, 6)], vec![(0, 3), (5, 5), (7, u64::MAX)]];
        let any = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            grower.choose(way, version, &groups, &mut |grower, mut way, group| {
                let ether_type = match group {
                    0 => ethernet::TYPE_IPV4,
                    1 => ethernet::TYPE_IPV6,
                    _ => return fail(grower, way, exception::ANY),
                };
                let header = row.bytes(priority, ether_type);
                // Test for room in front of the block.
                let most = FRAME_BYTES_MAX - header.len();
                if way.most() > most || !grower.prepend(&mut way, &header) {
                    return grower.stand(way);
                }
                way.set(grower.slots.slot(meta_id::L2_PORT), Known::Constant(row.port.into()));
                grower.go(way, SUCCESS, 0)
            })
        };
        let none = &mut |grower: &mut TreeBuilder<'_>, way| fail(grower, way, exception::ANY);
        Some(grower.length(way, 1, any, none))
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.neighbours, &mut old.neighbours);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        if component != TABLE || self.neighbours.is_empty() {
            return None;
        }
        let found = (NEIGHBOUR_ROWS..).zip(self.neighbours.values());
        let rows = self.rows.iter().map(|(index, row)| (*index, row)).chain(found);
        let row = |row: &Header| {
            Value::struct_of([
                (1, Value::Bytes(row.destination.to_vec())),
                (2, Value::Bytes(row.source.to_vec())),
                (3, Value::Unsigned(row.vid.into())),
                (4, Value::Unsigned(0)),
                (5, Value::Unsigned(row.port.into())),
            ])
        };
        Some(Value::Array(rows.map(|(index, header)| (index, row(header))).collect()))
    }
}
