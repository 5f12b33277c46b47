//! The longest prefix that holds an address, in one to three steps.
//!
//! It is found by the [trie](crate::fast::trie) that tables of flows have too. An entry of it is the length of a prefix and the
//! number of its next hop, so that a lookup reads nothing else, and lookups of many addresses are done level by
//! level together. The routes themselves are kept in order beside it for changes and reports. RFC 1812
//! section 5.2.4.3: the longest match wins.
//!
//! Invariant: the trie has the entry of each route and no other, and no level that no route needs; every
//! next hop that one names is used by a route. Nobody looks up while a route changes, so each removal gives
//! its levels back at once.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use packet::frame::PortNo;
use shared::Shared;

use crate::fast::trie::{Address, Trie};
use crate::forwarder::SIGHTS_MAX;

/// Routes that a table holds unless told otherwise.
pub const ROUTES_MAX_DEFAULT: usize = 1 << 20;

/// Most different next hops: what fits into an entry beside a length.
pub const HOPS_MAX: usize = 1 << HOP_BITS;

/// A length of 0 to 128 stands above them.
const HOP_BITS: u32 = 23;
const HOP_MASK: u32 = (1 << HOP_BITS) - 1;

/// Addresses of a kind.
pub trait Net: Copy + Ord + fmt::Display {
    /// How many bits they have.
    const BITS: u8;

    /// The bits from the first on, then zeros.
    fn wide(self) -> Address;

    /// The address with these bits in front.
    fn of_wide(bits: Address) -> Self;
}

impl Net for Ipv4Addr {
    const BITS: u8 = 32;

    #[inline]
    fn wide(self) -> Address {
        Address::from(self.to_bits()) << (Address::BITS - u32::BITS)
    }

    fn of_wide(bits: Address) -> Self {
        Ipv4Addr::from_bits((bits >> (Address::BITS - u32::BITS)) as u32)
    }
}

impl Net for Ipv6Addr {
    const BITS: u8 = 128;

    #[inline]
    fn wide(self) -> Address {
        self.to_bits()
    }

    fn of_wide(bits: Address) -> Self {
        Ipv6Addr::from_bits(bits)
    }
}

/// Addresses that share their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A = Ipv4Addr> {
    address: A,
    length: u8,
}

impl<A: Net> Prefix<A> {
    /// The addresses that share their first `length` bits with this one; `None` if they have not so many.
    pub fn new(address: A, length: u8) -> Option<Prefix<A>> {
        (length <= A::BITS).then(|| Prefix::within(address, length))
    }

    fn within(address: A, length: u8) -> Prefix<A> {
        Prefix { address: A::of_wide(address.wide() & mask(length)), length }
    }

    /// The lowest address.
    pub fn address(self) -> A {
        self.address
    }

    /// How many bits they share.
    pub fn length(self) -> u8 {
        self.length
    }

    /// The highest address: that of directed broadcasts.
    pub fn last(self) -> A {
        A::of_wide(self.address.wide() | !mask(self.length))
    }

    /// Whether the address is one of them.
    pub fn holds(self, address: A) -> bool {
        address.wide() & mask(self.length) == self.address.wide()
    }
}

impl<A: Net> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(), self.length)
    }
}

fn mask(length: u8) -> Address {
    Address::MAX.checked_shl(Address::BITS - u32::from(length)).unwrap_or(0)
}

/// Where a packet goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NextHop {
    /// To a router on a link.
    Gateway {
        /// The port of the link.
        port: PortNo,
        /// The router's address.
        via: Ipv4Addr,
    },
    /// To its destination itself, which is on a link.
    Link {
        /// The port of the link.
        port: PortNo,
    },
    /// Nowhere: it is for the router itself.
    Local,
    /// Nowhere: it is for all stations of a link, and such packets are not routed.
    Broadcast,
}

/// The number of a next hop in its table, good until a route changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopId(pub u32);

/// The table is full: it holds this many routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteTableFull(pub usize);

/// Routes, found by longest prefix. Where they lead is a router's next hop, or whatever else whoever
/// has the table chooses by addresses.
#[derive(Debug)]
pub struct RouteTable<H = NextHop, A = Ipv4Addr> {
    trie: Trie,
    /// A map whose copies share: versions cost what they differ in.
    routes: Shared<Prefix<A>, HopId>,
    routes_max: usize,
    hops: Vec<(H, usize)>,
    hops_known: BTreeMap<H, HopId>,
    hops_free: Vec<HopId>,
    /// Grows with every change.
    pub generation: u64,
    /// The version that was made of it and is changed apart, while there is one.
    heir: Mutex<Weak<()>>,
    /// Of a version apart, what says that there is one.
    _is_heir: Option<Arc<()>>,
}

impl<H: Copy + Ord, A: Net> RouteTable<H, A> {
    /// An empty table for this many routes.
    pub fn new(routes_max: usize) -> RouteTable<H, A> {
        RouteTable {
            trie: Trie::new(),
            routes: Shared::new(),
            routes_max,
            hops: Vec::new(),
            hops_known: BTreeMap::new(),
            hops_free: Vec::new(),
            generation: 0,
            heir: Mutex::default(),
            _is_heir: None,
        }
    }

    /// A version with the same routes, which is to take the place of this one: from now on only that may
    /// be changed, until it is looked at, and this one goes on being looked at until then. Levels of the trie and parts of the
    /// list of routes are shared, and copied where they change. `None` while there is such a version. No version
    /// before this one may be looked at any more.
    pub fn part(&self) -> Option<RouteTable<H, A>> {
        let mut heir = self.heir.lock().unwrap_or_else(PoisonError::into_inner);
        if heir.upgrade().is_some() {
            return None;
        }
        let token = Arc::new(());
        *heir = Arc::downgrade(&token);
        Some(RouteTable {
            trie: self.trie.part(),
            routes: self.routes.clone(),
            routes_max: self.routes_max,
            hops: self.hops.clone(),
            hops_known: self.hops_known.clone(),
            hops_free: self.hops_free.clone(),
            generation: self.generation,
            heir: Mutex::default(),
            _is_heir: Some(token),
        })
    }

    /// Routes in the table.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The next hop for an address.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<HopId> {
        self.trie.find(address.wide()).map(hop_of)
    }

    /// The first step of a lookup: asks for what it will read first.
    #[inline]
    pub fn foresee(&self, address: A) {
        self.trie.prefetch(address.wide());
    }

    /// The next hops of some addresses, at most as many as frames are decided at once.
    #[inline]
    pub fn lookup_many(&self, addresses: &[A], hops: &mut [Option<HopId>; SIGHTS_MAX]) {
        let mut asked = [0; SIGHTS_MAX];
        let count = addresses.len().min(SIGHTS_MAX);
        asked.iter_mut().zip(addresses).for_each(|(asked, address)| *asked = address.wide());
        hops[..count].fill(None);
        self.trie.find_batch(&asked[..count], |at, entry| hops[at] = Some(hop_of(entry)));
    }

    /// What a number that [`RouteTable::lookup`] gave stands for.
    #[inline]
    pub fn hop(&self, id: HopId) -> H {
        self.hops[id.0 as usize].0
    }

    /// Numbers of next hops are below this.
    pub fn hops_end(&self) -> usize {
        self.hops.len()
    }

    /// Whether each number of a next hop stands for the same here and there.
    pub fn has_hops_of(&self, other: &RouteTable<H, A>) -> bool {
        self.hops.iter().map(|(hop, _)| hop).eq(other.hops.iter().map(|(hop, _)| hop))
    }

    /// The route for exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<H> {
        self.routes.get(&prefix).map(|&id| self.hop(id))
    }

    /// The routes, by address and length.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, H)> + '_ {
        self.routes.iter().map(|(&prefix, &id)| (prefix, self.hop(id)))
    }

    /// Adds a route, or replaces the one for the same prefix.
    pub fn insert(&mut self, prefix: Prefix<A>, hop: H) -> Result<(), RouteTableFull> {
        let before = self.routes.get(&prefix).copied();
        let full = RouteTableFull(self.routes.len());
        if before.is_none() && self.routes.len() >= self.routes_max {
            return Err(full);
        }
        if !self.trie.has_room(prefix.length.into()) {
            return Err(full);
        }
        let id = self.hop_taken(hop).ok_or(full)?;
        self.routes.insert(prefix, id);
        self.generation += 1;
        note(&self.trie, prefix, id);
        if let Some(before) = before {
            self.hop_given_back(before);
        }
        Ok(())
    }

    /// Removes the route for exactly this prefix, and says where it led.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<H> {
        let id = self.routes.remove(&prefix)?;
        self.generation += 1;
        let hop = self.hop(id);
        let shorter = self.shorter(prefix);
        let (address, length) = (prefix.address().wide(), prefix.length.into());
        self.trie.remove_apart(address, length, entry_of(prefix.length, id), shorter);
        self.hop_given_back(id);
        Some(hop)
    }

    /// Removes all routes but these, and returns what the others need, for [`RouteTable::dismantle`]. Numbers of
    /// next hops stand for others from now on.
    pub fn keep_only(&mut self, kept: &[(Prefix<A>, H)]) -> RouteTable<H, A> {
        let mut table = RouteTable::new(self.routes_max);
        for &(prefix, hop) in kept {
            // They had room in a table as large.
            let _ = table.insert(prefix, hop);
        }
        table.generation = self.generation + 1;
        std::mem::replace(self, table)
    }

    /// Frees what the table needs, with a step for each route and next hop. False if there is nothing left.
    pub fn dismantle(&mut self, steps: &mut usize) -> bool {
        while *steps > 0 {
            *steps -= 1;
            let first = self.routes.first_key_value().map(|(&prefix, _)| prefix);
            if let Some(prefix) = first {
                self.routes.remove(&prefix);
            } else if self.hops_known.pop_first().is_none() {
                // As much work as the steps that are left.
                *steps = 0;
                return self.trie.free_some();
            }
        }
        true
    }

    /// The entry of the longest route that holds this prefix and is shorter.
    fn shorter(&self, prefix: Prefix<A>) -> Option<u32> {
        let covering = |length: u8| {
            let shorter = Prefix::within(prefix.address, length);
            self.routes.get(&shorter).map(|&id| entry_of(length, id))
        };
        (0..prefix.length).rev().find_map(covering)
    }

    /// The routes behind this one by address and length, or all.
    pub fn iter_after(
        &self,
        prefix: Option<Prefix<A>>,
    ) -> impl Iterator<Item = (Prefix<A>, H)> + '_ {
        let from = prefix.map_or(Bound::Unbounded, Bound::Excluded);
        let routes = self.routes.range((from, Bound::Unbounded));
        routes.map(|(&prefix, &id)| (prefix, self.hop(id)))
    }

    /// Bytes that are in use for lookups.
    pub fn memory_bytes(&self) -> usize {
        self.trie.memory_bytes()
    }

    fn hop_taken(&mut self, hop: H) -> Option<HopId> {
        if let Some(&id) = self.hops_known.get(&hop) {
            self.hops[id.0 as usize].1 += 1;
            return Some(id);
        }
        let id = match self.hops_free.pop() {
            Some(id) => {
                self.hops[id.0 as usize] = (hop, 1);
                id
            }
            None if self.hops.len() == HOPS_MAX => return None,
            None => {
                self.hops.push((hop, 1));
                HopId(self.hops.len() as u32 - 1)
            }
        };
        self.hops_known.insert(hop, id);
        Some(id)
    }

    fn hop_given_back(&mut self, id: HopId) {
        let (hop, uses) = &mut self.hops[id.0 as usize];
        *uses -= 1;
        if *uses == 0 {
            self.hops_known.remove(hop);
            self.hops_free.push(id);
        }
    }
}

/// Puts a route's entry where no longer one is.
fn note<A: Net>(trie: &Trie, prefix: Prefix<A>, id: HopId) {
    let (address, length) = (prefix.address().wide(), u32::from(prefix.length));
    trie.insert(address, length, entry_of(prefix.length, id), |other| other >> HOP_BITS > length);
}

/// What stands in the trie for a route.
fn entry_of(length: u8, id: HopId) -> u32 {
    u32::from(length) << HOP_BITS | id.0
}

#[inline]
fn hop_of(entry: u32) -> HopId {
    HopId(entry & HOP_MASK)
}

#[cfg(test)]
mod tests;
