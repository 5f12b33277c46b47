//! IPv4NextHop and IPv6NextHop (RFC 6956 sections 5.3.2 and 5.3.4): prepare a packet for its next
//! hop and decrement its TTL or hop limit.
//!
//! HopSelector selects the row of the table. A packet longer than the row's nonzero MTU is an
//! exception; its handler fragments it or reports that it is too big.

use std::collections::BTreeMap;

use packet::header::{ipv4, ipv6};

use super::{At, Block, Env, Packet, Setup, Verdict, exception, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState, others};
use crate::compile::tree::NodeId;

const SUCCESS: u32 = 0;
const EXCEPTION: u32 = 1;

/// The IPv4NextHop block.
#[derive(Debug)]
pub struct Ipv4NextHop {
    rows: BTreeMap<u32, Row>,
}

/// The IPv6NextHop block.
#[derive(Debug)]
pub struct Ipv6NextHop {
    rows: BTreeMap<u32, Row>,
}

/// A next hop, with its address as a number.
#[derive(Debug, Clone, Copy)]
struct Row {
    port: u32,
    mtu: u32,
    address: u128,
    encap: u32,
    output: u32,
}

fn rows(
    setup: &Setup<'_>,
    address: impl Fn(&super::config::Row<'_>) -> u128,
) -> BTreeMap<u32, Row> {
    let row = |row: super::config::Row<'_>| {
        let (port, mtu, encap, output) =
            (row.number(1), row.number(2), row.number(4), row.number(5));
        (row.index, Row { port, mtu, address: address(&row), encap, output })
    };
    setup.rows(1).into_iter().map(row).collect()
}

/// Returns the row for a packet and its length.
fn chosen(
    rows: &BTreeMap<u32, Row>,
    packet: &Packet,
    bytes: usize,
    env: &Env<'_>,
) -> Result<Row, u128> {
    let selector = packet.meta(env.slots, meta_id::HOP_SELECTOR);
    let selector = selector.ok_or(exception::HOP_SELECTOR_INVALID)?;
    let row = u32::try_from(selector).ok().and_then(|selector| rows.get(&selector));
    let row = row.ok_or(exception::NEXT_HOP_FAILED)?;
    if row.mtu > 0 && bytes > row.mtu as usize {
        return Err(exception::FRAGMENTATION);
    }
    Ok(*row)
}

fn leave(found: Result<Row, u128>, address: u32, packet: &mut Packet, env: &Env<'_>) -> Verdict {
    match found {
        Ok(row) => {
            packet.set_meta(env.slots, meta_id::L3_PORT, row.port.into());
            packet.set_meta(env.slots, address, row.address);
            packet.set_meta(env.slots, meta_id::MEDIA_ENCAP, row.encap.into());
            Verdict::Out(SUCCESS, row.output)
        }
        Err(why) => {
            packet.set_meta(env.slots, meta_id::EXCEPTION, why);
            Verdict::Out(EXCEPTION, 0)
        }
    }
}

impl Block for Ipv4NextHop {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        Ipv4NextHop { rows: rows(setup, |row| u32::from_be_bytes(row.octets(3)).into()) }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let Some(view) = ipv4::View::new(packet.bytes()) else {
            return leave(Err(exception::ANY), 0, packet, env);
        };
        let (length, ttl) = (usize::from(view.total_length()), view.ttl());
        let mut found = chosen(&self.rows, packet, length, env);
        if found.is_ok() && (ttl <= 1 || !ipv4::decrement_ttl(packet.frame_mut().bytes_mut())) {
            found = Err(exception::BAD_TTL);
        }
        leave(found, meta_id::NEXT_HOP_V4, packet, env)
    }

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let selector = match grower.slots.slot(meta_id::HOP_SELECTOR).and_then(|it| way.meta[it]) {
            Some(Known::Constant(value)) => Some(value),
            None => None,
            Some(_) => return None,
        };
        let (total, ttl) =
            (way.view.read(ipv4::TOTAL_LENGTH_AT * 8, 16)?, way.view.read(ipv4::TTL_AT * 8, 8)?);
        let fail = |grower: &mut TreeBuilder<'_>, mut way: PathState, why| {
            way.set(grower.slots.slot(meta_id::EXCEPTION), Known::Constant(why));
            grower.go(way, EXCEPTION, 0)
        };
        let onward = |grower: &mut TreeBuilder<'_>, mut way: PathState, row: &Row| {
            if !way.lessen() {
                return grower.stand(way);
            }
            let values = [
                (meta_id::L3_PORT, row.port.into()),
                (meta_id::NEXT_HOP_V4, row.address),
                (meta_id::MEDIA_ENCAP, row.encap.into()),
            ];
            for (id, value) in values {
                way.set(grower.slots.slot(id), Known::Constant(value));
            }
            grower.go(way, SUCCESS, row.output)
        };
        let row = selector.ok_or(exception::HOP_SELECTOR_INVALID).and_then(|selector| {
            let row = u32::try_from(selector).ok().and_then(|selector| self.rows.get(&selector));
            row.ok_or(exception::NEXT_HOP_FAILED)
        });
        let whole = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            let row = match row {
                Ok(row) => row,
                Err(why) => return fail(grower, way, why),
            };
            let mtu = if row.mtu == 0 { u64::MAX } else { row.mtu.into() };
            let lengths = [vec![(0, mtu)], others(&[(0, mtu)], u64::MAX)];
            grower.choose(way, total, &lengths, &mut |grower, way, is_longer| {
                if is_longer > 0 {
                    return fail(grower, way, exception::FRAGMENTATION);
                }
                let lives = [vec![(2, u64::MAX)], vec![(0, 1)]];
                grower.choose(way, ttl, &lives, &mut |grower, way, is_over| match is_over {
                    0 => onward(grower, way, row),
                    _ => fail(grower, way, exception::BAD_TTL),
                })
            })
        };
        let short = &mut |grower: &mut TreeBuilder<'_>, way| fail(grower, way, exception::ANY);
        Some(grower.length(way, ipv4::HEADER_BYTES, whole, short))
    }
}

impl Block for Ipv6NextHop {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        Ipv6NextHop { rows: rows(setup, |row| u128::from_be_bytes(row.octets(3))) }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let Some(view) = ipv6::View::new(packet.bytes()) else {
            return leave(Err(exception::ANY), 0, packet, env);
        };
        let length = ipv6::HEADER_BYTES + usize::from(view.payload_length());
        let hops = view.hop_limit();
        let mut found = chosen(&self.rows, packet, length, env);
        if found.is_ok() && hops <= 1 {
            found = Err(exception::HOP_LIMIT_ZERO);
        } else if found.is_ok() {
            packet.frame_mut().bytes_mut()[ipv6::HOP_LIMIT_AT] = hops - 1;
        }
        leave(found, meta_id::NEXT_HOP_V6, packet, env)
    }
}
