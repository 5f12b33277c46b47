//! IPv4UcastLPM and IPv6UcastLPM (RFC 6956 sections 5.3.1 and 5.3.3): the longest prefix that holds a
//! destination says HopSelector.
//!
//! IPv4 prefixes are in the table that our router has; IPv6 prefixes in the trie below it. A route with
//! ECMPFlag leaves by ECMPOut; one with DefaultRouteFlag holds every address, whatever its prefix says.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use dataplane::fast::trie::Trie;
use dataplane::forwarder::SIGHTS_MAX;
use dataplane::route_table::{HopId, Prefix, ROUTES_MAX_DEFAULT, RouteTable};
use forces::Value;
use packet::header::{ipv4, ipv6};
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Row, Setup, Verdict, counters, exception, meta_id};
use crate::compile::grow::Grower;
use crate::compile::tree::{NodeId, Question, RouteQuestion, Word};
use crate::compile::view::Read;
use crate::compile::way::{Known, Way};
use crate::problem::Code;

const NORMAL: u32 = 0;
const ECMP: u32 = 1;
const EXCEPTION: u32 = 2;
/// The component with the counters.
const STATS: u32 = 2;

/// What is counted of frames that go through a tree, by the place of its counter.
const FORWARDED: u32 = 1;
const NO_ROUTE: u32 = 2;
/// Next hops for which a tree has ways of their own.
const HOPS_MAX: usize = 2048;

/// Where a route leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// HopSelector.
    pub selector: u32,
    /// Whether there are several ways.
    pub ecmp: bool,
}

/// IPv4UcastLPM.
#[derive(Debug)]
pub struct Ipv4Lpm {
    routes: RouteTable<Hop>,
    counts: Counts,
}

/// IPv6UcastLPM.
#[derive(Debug)]
pub struct Ipv6Lpm {
    trie: Trie,
    hops: Vec<Hop>,
    counts: Counts,
}

/// InRcvdPkts, FwdPkts, NoRoutePkts.
#[derive(Debug, Default)]
struct Counts([u64; 3]);

impl Counts {
    /// Leads a packet where its route does.
    fn lead(&mut self, hop: Option<Hop>, packet: &mut Packet, env: &Env<'_>) -> Verdict {
        self.0[0] += 1;
        let Some(hop) = hop else {
            self.0[2] += 1;
            packet.set_meta(env.slots, meta_id::EXCEPTION, exception::LPM_FAILED);
            return Verdict::Out(EXCEPTION, 0);
        };
        self.0[1] += 1;
        packet.set_meta(env.slots, meta_id::HOP_SELECTOR, hop.selector.into());
        Verdict::Out(if hop.ecmp { ECMP } else { NORMAL }, 0)
    }
}

/// A route of a table: address, length, where it leads.
type Route<const N: usize> = ([u8; N], u8, Hop, Vec<u32>);

fn routes<const N: usize>(setup: &mut Setup<'_>) -> Vec<Route<N>> {
    let mut routes = Vec::new();
    for row in setup.rows(1) {
        let is_default = row.flag(4);
        let length = if is_default { 0 } else { row.number(2) };
        if length > N as u32 * 8 {
            let what = format!("a prefix of {length} bits");
            setup.wrong(&row.path, what, &format!("it has at most {}", N * 8));
            continue;
        }
        let hop = Hop { selector: row.number(6), ecmp: row.flag(3) };
        routes.push((row.octets(1), length as u8, hop, row.path));
    }
    routes
}

/// The route that a row says, if it says one that can be.
fn route_of(row: &Value) -> Option<(Prefix, Hop)> {
    let number = |id: u32| row.step(id).and_then(Value::unsigned);
    let flag = |id: u32| row.step(id).and_then(Value::boolean).unwrap_or(false);
    let address: [u8; 4] = row.step(1)?.octets()?;
    let length = if flag(4) { 0 } else { u8::try_from(number(2)?).ok()? };
    let hop = Hop { selector: u32::try_from(number(6)?).ok()?, ecmp: flag(3) };
    Some((Prefix::new(Ipv4Addr::from(address), length)?, hop))
}

fn twice(setup: &mut Setup<'_>, path: &[u32]) {
    setup.refuse(Code::DuplicateKey, path, "two rows have this prefix", "remove one");
}

impl Ipv4Lpm {
    /// The routes.
    pub fn routes(&self) -> &RouteTable<Hop> {
        &self.routes
    }
}

impl Block for Ipv4Lpm {
    fn new(setup: &mut Setup<'_>) -> Self {
        let mut table = RouteTable::new(ROUTES_MAX_DEFAULT);
        for (address, length, hop, path) in routes::<4>(setup) {
            let prefix = Prefix::new(Ipv4Addr::from(address), length);
            let prefix = prefix.expect("lengths were checked just now");
            let before = table.len();
            if table.insert(prefix, hop).is_err() {
                let what = format!("the table holds {} routes", table.len());
                setup.refuse(Code::Resources, &path, what, "leave some out");
                break;
            }
            if table.len() == before {
                twice(setup, &path);
            }
        }
        Ipv4Lpm { routes: table, counts: Counts::default() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let address = ipv4::View::new(packet.bytes()).map(|view| view.destination());
        let hop = address.and_then(|address| self.routes.lookup(address));
        self.counts.lead(hop.map(|hop| self.routes.hop(hop)), packet, env)
    }

    fn process_row(&mut self, row: &mut Row<'_>, env: &mut Env<'_>) -> bool {
        let mut addresses = [Ipv4Addr::UNSPECIFIED; SIGHTS_MAX];
        let mut have = [false; SIGHTS_MAX];
        for ((address, has), packet) in addresses.iter_mut().zip(&mut have).zip(row.iter()) {
            if let Some(view) = ipv4::View::new(packet.bytes()) {
                (*address, *has) = (view.destination(), true);
            }
        }
        let mut hops = [None; SIGHTS_MAX];
        self.routes.lookup_many(&addresses[..row.members.len()], &mut hops);
        let Ipv4Lpm { routes, counts } = self;
        row.each_at(|place, packet| {
            let hop = hops[place].filter(|_| have[place]);
            counts.lead(hop.map(|hop| routes.hop(hop)), packet, env)
        });
        true
    }

    fn grow(&self, way: Way, grower: &mut Grower<'_>) -> Option<NodeId> {
        let Read::Field(address) = way.view.read(ipv4::DESTINATION_AT * 8, 32)? else {
            return None;
        };
        let instance = way.instance as u32;
        let none = |grower: &mut Grower<'_>, mut way: Way| {
            grower.meet(&mut way, NO_ROUTE);
            let why = Known::Constant(exception::LPM_FAILED);
            way.set(grower.slots.slot(meta_id::EXCEPTION), why);
            grower.go(way, EXCEPTION, 0)
        };
        let ask = &mut |grower: &mut Grower<'_>, way: Way| {
            // More of them than a tree is to have are looked up again.
            let other = grower.stand(way.clone());
            let mut on = way;
            on.asked += 1;
            let hops = 0..self.routes.hops_end().min(HOPS_MAX);
            let hops = hops.map(|id| {
                let (mut way, hop) = (on.clone(), self.routes.hop(HopId(id as u32)));
                grower.meet(&mut way, FORWARDED);
                let selector = Known::Constant(hop.selector.into());
                way.set(grower.slots.slot(meta_id::HOP_SELECTOR), selector);
                grower.go(way, if hop.ecmp { ECMP } else { NORMAL }, 0)
            });
            let hops = hops.collect();
            let (address, none) = (Word::of(address), none(grower, on.clone()));
            grower.ask(Question::Route(RouteQuestion { instance, address, hops, none, other }))
        };
        let short = &mut |grower: &mut Grower<'_>, way| none(grower, way);
        Some(grower.length(way, ipv4::HEADER_BYTES, ask, short))
    }

    fn met(&mut self, what: u32, frames: u64, _bytes: u64) {
        self.counts.0[0] += frames;
        self.counts.0[what as usize] += frames;
    }

    fn follow(&self) -> Option<Self> {
        Some(Ipv4Lpm { routes: self.routes.part()?, counts: Counts::default() })
    }

    fn change_row(&mut self, _: u32, before: Option<&Value>, after: Option<&Value>) -> bool {
        if let Some(before) = before {
            // Who is not there was one of two rows with this prefix, or never could be.
            let gone = route_of(before).and_then(|(prefix, _)| self.routes.remove(prefix));
            if gone.is_none() {
                return false;
            }
        }
        let Some(after) = after else { return true };
        let Some((prefix, hop)) = route_of(after) else { return false };
        self.routes.get(prefix).is_none() && self.routes.insert(prefix, hop).is_ok()
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.counts, &mut old.counts);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == STATS).then(|| counters(&self.counts.0))
    }

    fn reset(&mut self, component: u32) {
        if component == STATS {
            self.counts = Counts::default();
        }
    }
}

impl Block for Ipv6Lpm {
    const IS_PLAIN: bool = true;

    fn new(setup: &mut Setup<'_>) -> Self {
        // The shortest first: longer ones cover them.
        let mut known: BTreeMap<(u8, u128), Hop> = BTreeMap::new();
        for (address, length, hop, path) in routes::<16>(setup) {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            let key = (length, u128::from_be_bytes(address) & mask);
            if known.insert(key, hop).is_some() {
                twice(setup, &path);
            }
        }
        let (trie, mut hops) = (Trie::new(), Vec::new());
        for ((length, address), hop) in known {
            let entry = hops.len() as u32;
            if !trie.has_room(length.into()) || entry >= dataplane::fast::trie::ENTRIES_MAX {
                let what = format!("the table has no room for more than {entry} routes");
                setup.refuse(Code::Resources, &[1], what, "leave some out");
                break;
            }
            trie.insert(address, length.into(), entry, |_| false);
            hops.push(hop);
        }
        Ipv6Lpm { trie, hops, counts: Counts::default() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let address = ipv6::View::new(packet.bytes()).map(|view| view.destination().to_bits());
        let entry = address.and_then(|address| self.trie.find(address));
        self.counts.lead(entry.map(|entry| self.hops[entry as usize]), packet, env)
    }

    fn keep(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.counts, &mut old.counts);
    }

    fn get(&self, component: u32, _now: Nanos) -> Option<Value> {
        (component == STATS).then(|| counters(&self.counts.0))
    }

    fn reset(&mut self, component: u32) {
        if component == STATS {
            self.counts = Counts::default();
        }
    }
}
