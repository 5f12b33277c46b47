//! Mirrors of the tables of bridge and router in another data plane, such as one in the kernel.
//!
//! A table passes every change to its mirror before the change is visible elsewhere, so that both
//! forward by the same entries. The mirror forwards frames that the table never sees. The table
//! therefore asks when an entry was used there before the entry expires.

use core::fmt::Debug;

use packet::frame::PortNo;
use packet::header::ethernet::Mac;
use packet::time::Nanos;

use crate::mac_table::MacKey;
use crate::neighbor::Place;
use crate::route_table::{HopId, NextHop, Prefix};

/// A mirror of a MAC table.
pub trait MacMirror: Debug + Send + Sync {
    /// Adds or changes an address. It was last seen at this time, or is static.
    fn set(&mut self, key: MacKey, port: PortNo, seen: Option<Nanos>);

    /// Removes an address.
    fn remove(&mut self, key: MacKey);

    /// Removes all learned addresses.
    fn flush(&mut self);

    /// Sets the ageing time, or disables ageing.
    fn set_ageing(&mut self, ageing: Option<Nanos>);

    /// Sets the time at which a known address was last seen, if the mirror has an earlier one.
    fn refresh(&mut self, key: MacKey, seen: Nanos);

    /// Returns when the mirror last saw an address as source, if it has the address.
    fn last_seen(&self, key: MacKey) -> Option<Nanos>;
}

/// A mirror of a route table.
pub trait RouteMirror: Debug + Send + Sync {
    /// Adds a route, or replaces the one for the same prefix.
    fn set_route(&mut self, prefix: Prefix, id: HopId, hop: NextHop);

    /// Removes a route. The longest shorter prefix that contains it has this length and next hop.
    fn remove_route(&mut self, prefix: Prefix, shorter: Option<(u8, HopId)>);

    /// Removes all routes.
    fn clear_routes(&mut self);
}

/// A mirror of a neighbor table.
pub trait NeighborMirror: Debug + Send + Sync {
    /// Sets the hardware address of a neighbor.
    fn set_neighbor(&mut self, place: Place, mac: Mac);

    /// Removes a neighbor.
    fn remove_neighbor(&mut self, place: Place);

    /// Returns whether a frame was sent to the neighbor since the last call.
    fn take_used(&mut self, place: Place) -> bool;
}
