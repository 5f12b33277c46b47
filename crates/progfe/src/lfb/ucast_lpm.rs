//! IPv4UcastLPM and IPv6UcastLPM (RFC 6956 sections 5.3.1 and 5.3.3): longest prefix match of the
//! destination, which gives HopSelector.
//!
//! Both use the route table of the built-in router. A route with ECMPFlag leaves by ECMPOut. A
//! route with DefaultRouteFlag matches every address, regardless of its prefix.

use core::net::{Ipv4Addr, Ipv6Addr};

use dataplane::forwarder::SIGHTS_MAX;
use dataplane::route_table::{HopId, Net, Prefix, ROUTES_MAX_DEFAULT, RouteTable};
use forces::Value;
use packet::header::{ipv4, ipv6};
use packet::time::Nanos;

use super::{At, Block, Env, Packet, Row, Setup, Verdict, counters, exception, meta_id};
use crate::compile::build::TreeBuilder;
use crate::compile::path_state::{Known, PathState};
use crate::compile::symbolic_bytes::Read;
use crate::compile::tree::{NodeId, RouteQuestion, TableLookup, Word};
use crate::diagnostic::Code;

const NORMAL: u32 = 0;
const ECMP: u32 = 1;
const EXCEPTION: u32 = 2;
/// The component with the counters.
const STATS: u32 = 2;

/// Counters for frames in a tree, by index.
const FORWARDED: u32 = 1;
const NO_ROUTE: u32 = 2;
/// Maximum number of next hops with branches of their own in a tree.
const HOPS_MAX: usize = 2048;

/// Target of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// HopSelector.
    pub selector: u32,
    /// Whether the route has several paths (ECMP).
    pub ecmp: bool,
}

/// The IPv4UcastLPM block.
#[derive(Debug)]
pub struct Ipv4Lpm {
    routes: RouteTable<Hop>,
    counts: Counts,
}

/// The IPv6UcastLPM block.
#[derive(Debug)]
pub struct Ipv6Lpm {
    routes: RouteTable<Hop, Ipv6Addr>,
    counts: Counts,
}

/// InRcvdPkts, FwdPkts, NoRoutePkts.
#[derive(Debug, Default)]
struct Counts([u64; 3]);

impl Counts {
    /// Returns the result for a packet with its route.
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

/// Builds the table of configured routes, for addresses of `N` octets.
fn table<A: Net + From<[u8; N]>, const N: usize>(setup: &mut Setup<'_>) -> RouteTable<Hop, A> {
    let mut table = RouteTable::new(ROUTES_MAX_DEFAULT);
    for row in setup.rows(1) {
        let length = if row.flag(4) { 0 } else { row.number(2) };
        let prefix = u8::try_from(length).ok();
        let prefix = prefix.and_then(|length| Prefix::new(A::from(row.octets(1)), length));
        let Some(prefix) = prefix else {
            let what = format!("a prefix of {length} bits");
            setup.wrong(&row.path, what, &format!("use at most {}", A::BITS));
            continue;
        };
        let before = table.len();
        let hop = Hop { selector: row.number(6), ecmp: row.flag(3) };
        if table.insert(prefix, hop).is_err() {
            let what = format!("route table full: at most {} routes", table.len());
            setup.refuse(Code::Resources, &row.path, what, "remove some");
            break;
        }
        if table.len() == before {
            let what = "two rows have this prefix";
            setup.refuse(Code::DuplicateKey, &row.path, what, "remove one");
        }
    }
    table
}

/// Parses the route in a row, if it is valid.
fn route_of<A: Net + From<[u8; N]>, const N: usize>(row: &Value) -> Option<(Prefix<A>, Hop)> {
    let number = |id: u32| row.step(id).and_then(Value::unsigned);
    let flag = |id: u32| row.step(id).and_then(Value::boolean).unwrap_or(false);
    let address: [u8; N] = row.step(1)?.octets()?;
    let length = if flag(4) { 0 } else { u8::try_from(number(2)?).ok()? };
    let hop = Hop { selector: u32::try_from(number(6)?).ok()?, ecmp: flag(3) };
    Some((Prefix::new(A::from(address), length)?, hop))
}

/// Changes a row of a successor's table.
fn change_row<A: Net + From<[u8; N]>, const N: usize>(
    routes: &mut RouteTable<Hop, A>,
    before: Option<&Value>,
    after: Option<&Value>,
) -> bool {
    if let Some(before) = before {
        // A missing route was a duplicate prefix or invalid.
        let gone = route_of(before).and_then(|(prefix, _)| routes.remove(prefix));
        if gone.is_none() {
            return false;
        }
    }
    let Some(after) = after else { return true };
    let Some((prefix, hop)) = route_of(after) else { return false };
    routes.get(prefix).is_none() && routes.insert(prefix, hop).is_ok()
}

impl Ipv4Lpm {
    /// Returns the routes.
    pub fn routes(&self) -> &RouteTable<Hop> {
        &self.routes
    }
}

impl Block for Ipv4Lpm {
    fn new(setup: &mut Setup<'_>) -> Self {
        Ipv4Lpm { routes: table(setup), counts: Counts::default() }
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

    fn grow(&self, way: PathState, grower: &mut TreeBuilder<'_>) -> Option<NodeId> {
        let Read::Field(address) = way.view.read(ipv4::DESTINATION_AT * 8, 32)? else {
            return None;
        };
        let instance = way.instance as u32;
        let none = |grower: &mut TreeBuilder<'_>, mut way: PathState| {
            grower.meet(&mut way, NO_ROUTE);
            let why = Known::Constant(exception::LPM_FAILED);
            way.set(grower.slots.slot(meta_id::EXCEPTION), why);
            grower.go(way, EXCEPTION, 0)
        };
        let ask = &mut |grower: &mut TreeBuilder<'_>, way: PathState| {
            // Additional next hops require another lookup on the slow path.
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
            grower.ask(TableLookup::Route(RouteQuestion { instance, address, hops, none, other }))
        };
        let short = &mut |grower: &mut TreeBuilder<'_>, way| none(grower, way);
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
        change_row(&mut self.routes, before, after)
    }

    fn grows_as(&self, before: &Self) -> bool {
        self.routes.has_hops_of(&before.routes)
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
        Ipv6Lpm { routes: table(setup), counts: Counts::default() }
    }

    fn process(&mut self, _at: At, packet: &mut Packet, env: &mut Env<'_>) -> Verdict {
        let address = ipv6::View::new(packet.bytes()).map(|view| view.destination());
        let hop = address.and_then(|address| self.routes.lookup(address));
        self.counts.lead(hop.map(|hop| self.routes.hop(hop)), packet, env)
    }

    fn follow(&self) -> Option<Self> {
        Some(Ipv6Lpm { routes: self.routes.part()?, counts: Counts::default() })
    }

    fn change_row(&mut self, _: u32, before: Option<&Value>, after: Option<&Value>) -> bool {
        change_row(&mut self.routes, before, after)
    }

    fn grows_as(&self, before: &Self) -> bool {
        self.routes.has_hops_of(&before.routes)
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
