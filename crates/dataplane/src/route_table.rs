//! Longest-prefix match in one to three steps.
//!
//! Lookup uses the [trie](crate::fast::trie) that flow tables use too. An entry of the trie has the
//! prefix length and the number of the next hop, so a lookup reads nothing else. Lookups of many
//! addresses proceed level by level together. The routes themselves are also kept in order, for
//! changes and reports. RFC 1812, section 5.2.4.3: the longest match wins.
//!
//! Invariants:
//! - The trie has the entry of each route and no other, and no level that no route needs.
//! - Every next hop is used by a route.
//! - No lookup runs while a route changes, so each removal frees its levels immediately.

use core::fmt::Debug;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use packet::frame::PortNo;
use shared::Shared;

use crate::fast::trie::{Address, Trie};
use crate::forwarder::SIGHTS_MAX;

/// Default capacity.
pub const ROUTES_MAX_DEFAULT: usize = 1 << 20;

/// Maximum number of distinct next hops: an entry stores the number next to a length.
pub const HOPS_MAX: usize = 1 << HOP_BITS;

/// The prefix length (0 to 128) is in the bits above.
const HOP_BITS: u32 = 23;
const HOP_MASK: u32 = (1 << HOP_BITS) - 1;

/// Addresses of one family.
pub trait Net: Copy + Ord + fmt::Display {
    /// Number of bits.
    const BITS: u8;

    /// Returns the address bits, left-aligned and padded with zeros.
    fn wide(self) -> Address;

    /// Creates an address from left-aligned bits.
    fn of_wide(bits: Address) -> Self;
}

/// A mirror of a route table in another data plane, such as one in the kernel. The table passes on
/// every change before it is visible elsewhere.
pub trait RouteMirror: Debug + Send + Sync {
    /// Adds a route, or replaces the one for the same prefix.
    fn set_route(&mut self, prefix: Prefix, id: HopId, hop: NextHop);

    /// Removes a route. The longest shorter prefix that contains it has this length and next hop.
    fn remove_route(&mut self, prefix: Prefix, shorter: Option<(u8, HopId)>);

    /// Removes all routes.
    fn clear_routes(&mut self);
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

/// An address prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A = Ipv4Addr> {
    address: A,
    length: u8,
}

impl<A: Net> Prefix<A> {
    /// Creates the prefix of the first `length` bits of an address. Returns `None` if the address
    /// is shorter.
    pub fn new(address: A, length: u8) -> Option<Prefix<A>> {
        (length <= A::BITS).then(|| Prefix::within(address, length))
    }

    fn within(address: A, length: u8) -> Prefix<A> {
        Prefix { address: A::of_wide(address.wide() & mask(length)), length }
    }

    /// Returns the lowest address.
    pub fn address(self) -> A {
        self.address
    }

    /// Returns the length in bits.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Returns the highest address, which is the directed broadcast address.
    pub fn last(self) -> A {
        A::of_wide(self.address.wide() | !mask(self.length))
    }

    /// Whether the prefix contains the address.
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

/// Next hop of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NextHop {
    /// A router on a link.
    Gateway {
        /// The port of the link.
        port: PortNo,
        /// The router's address.
        via: Ipv4Addr,
    },
    /// The destination itself, which is on a link.
    Link {
        /// The port of the link.
        port: PortNo,
    },
    /// The router itself.
    Local,
    /// A broadcast on a link; such packets are not routed.
    Broadcast,
}

/// Number of a next hop in its table, valid until a route changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopId(pub u32);

/// The table is full; it has this many routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteTableFull(pub usize);

/// Routes with longest-prefix match. A route leads to a router's next hop, or to any other value
/// that the owner of the table associates with addresses.
#[derive(Debug)]
pub struct RouteTable<H = NextHop, A = Ipv4Addr> {
    trie: Trie,
    /// A map with structural sharing: a copy costs only its differences.
    routes: Shared<Prefix<A>, HopId>,
    routes_max: usize,
    hops: Vec<(H, usize)>,
    hops_known: BTreeMap<H, HopId>,
    hops_free: Vec<HopId>,
    /// Incremented with every change.
    pub generation: u64,
    /// Liveness of the staged copy, while there is one.
    heir: Mutex<Weak<()>>,
    /// A staged copy owns this to mark its existence.
    _is_heir: Option<Arc<()>>,
    version: u64,
    /// Of a staged copy: the version of the copied table, and the prefixes that changed since then.
    changes: Option<(u64, Vec<Prefix<A>>)>,
}

/// Returns a number for a new table.
fn next_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl<H: Copy + Ord, A: Net> RouteTable<H, A> {
    /// Creates an empty table for this many routes.
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
            version: next_version(),
            changes: None,
        }
    }

    /// Creates a staged copy with the same routes, which will replace this table. Returns `None`
    /// while a staged copy exists.
    ///
    /// Until the replacement, only the copy may change, and lookups use this table. Levels of the
    /// trie and parts of the route list are shared, and copied on write. Versions before this one
    /// must no longer be in use.
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
            version: next_version(),
            changes: Some((self.version, Vec::new())),
        })
    }

    /// Returns a number that no other table of this process has.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the version of the table of which this is a staged copy, and the prefixes that
    /// changed since then, some of them several times.
    pub fn changes(&self) -> Option<(u64, &[Prefix<A>])> {
        self.changes.as_ref().map(|(from, prefixes)| (*from, &prefixes[..]))
    }

    fn note_change(&mut self, prefix: Prefix<A>) {
        self.generation += 1;
        if let Some((_, prefixes)) = &mut self.changes {
            prefixes.push(prefix);
        }
    }

    /// Returns the number of routes.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Returns the capacity.
    pub fn routes_max(&self) -> usize {
        self.routes_max
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Returns the next hop for an address.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<HopId> {
        self.trie.find(address.wide()).map(hop_of)
    }

    /// First step of a lookup: prefetches the memory that it reads first.
    #[inline]
    pub fn foresee(&self, address: A) {
        self.trie.prefetch(address.wide());
    }

    /// Returns the next hops of up to [`SIGHTS_MAX`] addresses.
    #[inline]
    pub fn lookup_many(&self, addresses: &[A], hops: &mut [Option<HopId>; SIGHTS_MAX]) {
        let mut asked = [0; SIGHTS_MAX];
        let count = addresses.len().min(SIGHTS_MAX);
        asked.iter_mut().zip(addresses).for_each(|(asked, address)| *asked = address.wide());
        hops[..count].fill(None);
        self.trie.find_batch(&asked[..count], |at, entry| hops[at] = Some(hop_of(entry)));
    }

    /// Returns the next hop for a number from [`RouteTable::lookup`].
    #[inline]
    pub fn hop(&self, id: HopId) -> H {
        self.hops[id.0 as usize].0
    }

    /// Returns the upper bound of next hop numbers (exclusive).
    pub fn hops_end(&self) -> usize {
        self.hops.len()
    }

    /// Whether each next hop has the same number in both tables.
    pub fn has_hops_of(&self, other: &RouteTable<H, A>) -> bool {
        self.hops.iter().map(|(hop, _)| hop).eq(other.hops.iter().map(|(hop, _)| hop))
    }

    /// Returns the route for exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<H> {
        self.routes.get(&prefix).map(|&id| self.hop(id))
    }

    /// Returns the next hop number of the route for exactly this prefix.
    pub fn id(&self, prefix: Prefix<A>) -> Option<HopId> {
        self.routes.get(&prefix).copied()
    }

    /// Returns the length and next hop number of the longest shorter route that contains a prefix.
    pub fn covering(&self, prefix: Prefix<A>) -> Option<(u8, HopId)> {
        let covering = |length: u8| {
            let shorter = Prefix::within(prefix.address, length);
            self.routes.get(&shorter).map(|&id| (length, id))
        };
        (0..prefix.length).rev().find_map(covering)
    }

    /// Returns the routes, ordered by address and length.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<A>, H)> + '_ {
        self.routes.iter().map(|(&prefix, &id)| (prefix, self.hop(id)))
    }

    /// Returns the routes with the numbers of their next hops, ordered by address and length.
    pub fn iter_ids(&self) -> impl Iterator<Item = (Prefix<A>, HopId)> + '_ {
        self.routes.iter().map(|(&prefix, &id)| (prefix, id))
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
        self.note_change(prefix);
        note(&self.trie, prefix, id);
        if let Some(before) = before {
            self.hop_given_back(before);
        }
        Ok(())
    }

    /// Removes the route for exactly this prefix, and returns its next hop.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<H> {
        let id = self.routes.remove(&prefix)?;
        self.note_change(prefix);
        let hop = self.hop(id);
        let shorter = self.covering(prefix).map(|(length, id)| entry_of(length, id));
        let (address, length) = (prefix.address().wide(), prefix.length.into());
        self.trie.remove_apart(address, length, entry_of(prefix.length, id), shorter);
        self.hop_given_back(id);
        Some(hop)
    }

    /// Removes all routes but these, and returns the rest for [`RouteTable::dismantle`]. Next hop
    /// numbers change.
    pub fn keep_only(&mut self, kept: &[(Prefix<A>, H)]) -> RouteTable<H, A> {
        let mut table = RouteTable::new(self.routes_max);
        for &(prefix, hop) in kept {
            // The old table of the same capacity had space for these routes.
            let _ = table.insert(prefix, hop);
        }
        table.generation = self.generation + 1;
        std::mem::replace(self, table)
    }

    /// Frees the table's memory, with one step for each route and next hop. Returns false if
    /// nothing is left.
    pub fn dismantle(&mut self, steps: &mut usize) -> bool {
        while *steps > 0 {
            *steps -= 1;
            let first = self.routes.first_key_value().map(|(&prefix, _)| prefix);
            if let Some(prefix) = first {
                self.routes.remove(&prefix);
            } else if self.hops_known.pop_first().is_none() {
                // Freeing a piece of memory uses up the remaining steps.
                *steps = 0;
                return self.trie.free_some();
            }
        }
        true
    }

    /// Returns the routes after this one by address and length, or all.
    pub fn iter_after(
        &self,
        prefix: Option<Prefix<A>>,
    ) -> impl Iterator<Item = (Prefix<A>, H)> + '_ {
        let from = prefix.map_or(Bound::Unbounded, Bound::Excluded);
        let routes = self.routes.range((from, Bound::Unbounded));
        routes.map(|(&prefix, &id)| (prefix, self.hop(id)))
    }

    /// Returns the memory of the lookup structure in bytes.
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

/// Writes a route's entry where there is no longer prefix.
fn note<A: Net>(trie: &Trie, prefix: Prefix<A>, id: HopId) {
    let (address, length) = (prefix.address().wide(), u32::from(prefix.length));
    trie.insert(address, length, entry_of(prefix.length, id), |other| other >> HOP_BITS > length);
}

/// Returns the trie entry of a route.
fn entry_of(length: u8, id: HopId) -> u32 {
    u32::from(length) << HOP_BITS | id.0
}

#[inline]
fn hop_of(entry: u32) -> HopId {
    HopId(entry & HOP_MASK)
}

#[cfg(test)]
mod tests;
