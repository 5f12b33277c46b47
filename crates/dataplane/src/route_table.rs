//! The longest prefix that holds an address, in one to three steps.
//!
//! Three levels of arrays with strides of 16, 8 and 8 bits, as "DIR-24-8" (P. Gupta, S. Lin and
//! N. McKeown, "Routing lookups in hardware at memory access speeds", INFOCOM 1998) but with the
//! first level cut in two: it starts at 256 KiB instead of 64 MiB and grows by 1 KiB for each /16
//! with a longer prefix and each /24 with a longer one. Each cell holds the answer itself (leaf
//! pushing) together with the length of the prefix that gave it, so that a change writes exactly
//! the cells that it rules, and the routes themselves are kept in order beside it for changes and
//! reports. RFC 1812 section 5.2.4.3: the longest match wins.
//!
//! Invariant: each cell without a level below holds the longest route that covers all of its
//! addresses; every next hop that a cell names is used by a route.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use std::fmt;

use packet::frame::PortNo;

/// Routes that a table holds unless told otherwise.
pub const ROUTES_MAX_DEFAULT: usize = 1 << 20;

/// Most different next hops: what fits in a cell.
pub const HOPS_MAX: usize = 1 << 24;

const TOP_CELLS: usize = 1 << 16;
const NODE_CELLS: usize = 1 << 8;
/// The bit of a cell that says that it leads to a level below.
const BELOW: u32 = 1 << 31;
const HOP_BITS: u32 = 24;
const HOP_MASK: u32 = (1 << HOP_BITS) - 1;

/// Addresses that share their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: u32,
    length: u8,
}

impl Prefix {
    /// The addresses that share their first `length` bits with this one; `None` if that is more
    /// than 32.
    pub fn new(address: Ipv4Addr, length: u8) -> Option<Prefix> {
        (length <= 32).then(|| Prefix { address: address.to_bits() & mask(length), length })
    }

    /// The lowest address.
    pub fn address(self) -> Ipv4Addr {
        self.address.into()
    }

    /// How many bits they share, 0 to 32.
    pub fn length(self) -> u8 {
        self.length
    }

    /// The highest address: that of directed broadcasts.
    pub fn last(self) -> Ipv4Addr {
        (self.address | !mask(self.length)).into()
    }

    /// Whether the address is one of them.
    pub fn holds(self, address: Ipv4Addr) -> bool {
        address.to_bits() & mask(self.length) == self.address
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(), self.length)
    }
}

fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
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

/// Routes, found by longest prefix.
#[derive(Debug)]
pub struct RouteTable {
    /// The first level, then nodes of the levels below.
    cells: Vec<u32>,
    nodes_free: Vec<u32>,
    routes: BTreeMap<Prefix, HopId>,
    routes_max: usize,
    hops: Vec<(NextHop, usize)>,
    hops_known: BTreeMap<NextHop, HopId>,
    hops_free: Vec<HopId>,
    /// Grows with every change.
    pub generation: u64,
}

/// Which cells a change rules: those whose answer came from a prefix of such a length.
#[derive(Debug, Clone, Copy)]
struct Change {
    /// Least and greatest length, plus one; zero stands for "no route".
    lengths: (u32, u32),
    leaf: u32,
}

impl RouteTable {
    /// An empty table for this many routes.
    pub fn new(routes_max: usize) -> RouteTable {
        RouteTable {
            cells: vec![0; TOP_CELLS],
            nodes_free: Vec::new(),
            routes: BTreeMap::new(),
            routes_max,
            hops: Vec::new(),
            hops_known: BTreeMap::new(),
            hops_free: Vec::new(),
            generation: 0,
        }
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
    pub fn lookup(&self, address: Ipv4Addr) -> Option<HopId> {
        let address = address.to_bits() as usize;
        let mut cell = self.cells[address >> 16];
        if cell & BELOW != 0 {
            cell = self.cells[below(cell) + (address >> 8 & 0xff)];
            if cell & BELOW != 0 {
                cell = self.cells[below(cell) + (address & 0xff)];
            }
        }
        (cell != 0).then_some(HopId(cell & HOP_MASK))
    }

    /// What a number that [`RouteTable::lookup`] gave stands for.
    #[inline]
    pub fn hop(&self, id: HopId) -> NextHop {
        self.hops[id.0 as usize].0
    }

    /// Numbers of next hops are below this.
    pub fn hops_end(&self) -> usize {
        self.hops.len()
    }

    /// The route for exactly this prefix.
    pub fn get(&self, prefix: Prefix) -> Option<NextHop> {
        self.routes.get(&prefix).map(|&id| self.hop(id))
    }

    /// The routes, by address and length.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, NextHop)> + '_ {
        self.routes.iter().map(|(&prefix, &id)| (prefix, self.hop(id)))
    }

    /// Adds a route, or replaces the one for the same prefix.
    pub fn insert(&mut self, prefix: Prefix, hop: NextHop) -> Result<(), RouteTableFull> {
        let before = self.routes.get(&prefix).copied();
        if before.is_none() && self.routes.len() >= self.routes_max {
            return Err(RouteTableFull(self.routes.len()));
        }
        let id = self.hop_taken(hop).ok_or(RouteTableFull(self.routes.len()))?;
        self.routes.insert(prefix, id);
        self.generation += 1;
        let length = u32::from(prefix.length) + 1;
        self.apply(prefix, Change { lengths: (0, length), leaf: length << HOP_BITS | id.0 });
        if let Some(before) = before {
            self.hop_given_back(before);
        }
        Ok(())
    }

    /// Removes the route for exactly this prefix, and says where it led.
    pub fn remove(&mut self, prefix: Prefix) -> Option<NextHop> {
        let id = self.routes.remove(&prefix)?;
        self.generation += 1;
        let hop = self.hop(id);
        let length = u32::from(prefix.length) + 1;
        self.apply(prefix, Change { lengths: (length, length), leaf: self.shorter(prefix) });
        self.collapse(prefix);
        self.hop_given_back(id);
        Some(hop)
    }

    /// The cell for the longest route that holds this prefix and is shorter.
    fn shorter(&self, prefix: Prefix) -> u32 {
        let covering = |length: u8| {
            let shorter = Prefix { address: prefix.address & mask(length), length };
            let id = self.routes.get(&shorter)?;
            Some((u32::from(length) + 1) << HOP_BITS | id.0)
        };
        (0..prefix.length).rev().find_map(covering).unwrap_or(0)
    }

    fn apply(&mut self, prefix: Prefix, change: Change) {
        let (address, length) = (prefix.address as usize, u32::from(prefix.length));
        let (mut first, mut bits_left) = (address >> 16, 16);
        if length > 16 {
            first = self.node_below(first) + (address >> 8 & 0xff);
            bits_left = 24;
        }
        if length > 24 {
            first = self.node_below(first) + (address & 0xff);
            bits_left = 32;
        }
        for cell in first..first + (1 << (bits_left - length)) {
            self.apply_to(cell, change);
        }
    }

    fn apply_to(&mut self, at: usize, change: Change) {
        let cell = self.cells[at];
        if cell & BELOW != 0 {
            (below(cell)..below(cell) + NODE_CELLS).for_each(|at| self.apply_to(at, change));
        } else if (change.lengths.0..=change.lengths.1).contains(&(cell >> HOP_BITS)) {
            self.cells[at] = change.leaf;
        }
    }

    /// Where the level below a cell begins, made if there is none.
    fn node_below(&mut self, at: usize) -> usize {
        let cell = self.cells[at];
        if cell & BELOW != 0 {
            return below(cell);
        }
        let node = self.nodes_free.pop().unwrap_or_else(|| {
            let node = (self.cells.len() - TOP_CELLS) / NODE_CELLS;
            self.cells.resize(self.cells.len() + NODE_CELLS, 0);
            node as u32
        });
        self.cells[at] = BELOW | node;
        let start = below(BELOW | node);
        self.cells[start..start + NODE_CELLS].fill(cell);
        start
    }

    /// Takes away levels below the prefix that say the same in every cell.
    fn collapse(&mut self, prefix: Prefix) {
        let address = prefix.address as usize;
        let top = address >> 16;
        if self.cells[top] & BELOW != 0 {
            self.collapse_below(below(self.cells[top]) + (address >> 8 & 0xff));
            self.collapse_below(top);
        }
    }

    fn collapse_below(&mut self, at: usize) {
        let cell = self.cells[at];
        if cell & BELOW == 0 {
            return;
        }
        let node = &self.cells[below(cell)..below(cell) + NODE_CELLS];
        let first = node[0];
        if first & BELOW == 0 && node.iter().all(|&other| other == first) {
            self.cells[at] = first;
            self.nodes_free.push(cell & !BELOW);
        }
    }

    /// Bytes that the arrays take.
    pub fn memory_bytes(&self) -> usize {
        self.cells.len() * size_of::<u32>()
    }

    fn hop_taken(&mut self, hop: NextHop) -> Option<HopId> {
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

/// Where the level that a cell leads to begins.
#[inline]
fn below(cell: u32) -> usize {
    TOP_CELLS + (cell & !BELOW) as usize * NODE_CELLS
}

#[cfg(test)]
mod tests;
