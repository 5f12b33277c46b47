//! Cache of destinations in front of the route table.
//!
//! The kernel in bianco2010, section III, had a route cache; Linux removed it in 3.6. A router here
//! can have one too; it is off by default. Each destination has one slot, which the last looked-up
//! destination occupies. Any change of a route invalidates the cache.
//!
//! Invariant: the cache returns what the table would.

use core::net::Ipv4Addr;

use crate::hash::mix;
use crate::route_table::HopId;

/// Maximum number of entries.
pub const CACHE_ENTRIES_MAX: usize = 1 << 24;

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    generation: u64,
    address: u32,
    hop: u32,
}

/// The cache, with hit and miss counters.
#[derive(Debug)]
pub struct RouteCache {
    slots: Vec<Slot>,
    seed: u64,
    /// Number of lookups that hit the cache.
    pub hits: u64,
    /// Number of lookups passed to the table.
    pub misses: u64,
}

impl RouteCache {
    /// Creates a cache for `entries` destinations, rounded up to a power of two and at most
    /// [`CACHE_ENTRIES_MAX`]. Returns `None` for zero.
    pub fn new(entries: usize, seed: u64) -> Option<RouteCache> {
        let slots = vec![Slot::default(); entries.min(CACHE_ENTRIES_MAX).next_power_of_two()];
        (entries > 0).then_some(RouteCache { slots, seed, hits: 0, misses: 0 })
    }

    /// Returns the next hop for an address from the cache, or else from `table`, and caches it.
    /// `generation` is the table's.
    #[inline]
    pub fn lookup(
        &mut self,
        address: Ipv4Addr,
        generation: u64,
        table: impl FnOnce() -> Option<HopId>,
    ) -> Option<HopId> {
        let address = address.to_bits();
        let place = mix(address.into(), self.seed) as usize & (self.slots.len() - 1);
        let slot = &mut self.slots[place];
        // Empty slots have generation zero; a table with routes has a higher one.
        if slot.address == address && slot.generation == generation && generation != 0 {
            self.hits += 1;
            return Some(HopId(slot.hop));
        }
        self.misses += 1;
        let hop = table()?;
        *slot = Slot { generation, address, hop: hop.0 };
        Some(hop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_destination_needs_no_table_lookup() {
        let mut cache = RouteCache::new(16, 1).unwrap();
        let address = Ipv4Addr::new(10, 0, 0, 1);
        assert_eq!(cache.lookup(address, 1, || Some(HopId(7))), Some(HopId(7)));
        assert_eq!(cache.lookup(address, 1, || panic!("looked up the table")), Some(HopId(7)));
        assert_eq!((cache.hits, cache.misses), (1, 1));
    }

    #[test]
    fn a_route_change_empties_the_cache_and_missing_routes_are_not_cached() {
        let mut cache = RouteCache::new(16, 1).unwrap();
        let address = Ipv4Addr::UNSPECIFIED;
        assert_eq!(cache.lookup(address, 0, || None), None);
        assert_eq!(cache.lookup(address, 0, || Some(HopId(1))), Some(HopId(1)));
        assert_eq!(cache.lookup(address, 1, || Some(HopId(2))), Some(HopId(2)));
        assert_eq!(cache.lookup(address, 2, || None), None);
        assert!(RouteCache::new(0, 1).is_none());
    }

    #[test]
    fn destinations_with_the_same_slot_replace_each_other() {
        let mut cache = RouteCache::new(1, 1).unwrap();
        for round in 0..4u32 {
            let address = Ipv4Addr::from_bits(round % 2);
            assert_eq!(cache.lookup(address, 1, || Some(HopId(round))), Some(HopId(round)));
        }
        assert_eq!(cache.misses, 4);
    }
}
