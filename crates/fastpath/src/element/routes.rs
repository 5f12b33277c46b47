//! Mirrors of the route tables of a program's blocks.
//!
//! A change of routes makes a new table from a staged copy of the old one. The mirror then follows
//! the prefixes that changed, and the same prefixes back when the change is rolled back.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use dataplane::route_table::{Prefix, RouteTable};
use progfe::lfb::ucast_lpm::Hop;

use crate::trie::{Cells, Trie};

/// Routes for each block of the trie, at which it has room for typical prefixes.
const ROUTES_PER_BLOCK: usize = 16;

/// Range of the number of blocks of 1 KiB.
const BLOCKS: [usize; 2] = [1024, 1 << 17];

/// The mirrors.
#[derive(Debug, Default)]
pub(super) struct Routes(Vec<Mirror>);

/// The mirror of one table.
#[derive(Debug)]
struct Mirror {
    /// Version of the table whose routes it has.
    version: u64,
    /// Version that it had before, and the prefixes that differ.
    before: Option<(u64, Vec<Prefix>)>,
    blocks: usize,
    cells: Arc<Cells>,
    trie: Trie,
    is_used: bool,
}

impl Routes {
    /// Mirrors the tables of a program, by the index of their block. No program reads the mirrors
    /// meanwhile.
    pub(super) fn mirror(
        &mut self,
        tables: &[(u32, &RouteTable<Hop>)],
    ) -> io::Result<HashMap<u32, Arc<Cells>>> {
        self.0.iter_mut().for_each(|mirror| mirror.is_used = false);
        let mut mirrors = HashMap::new();
        let mut others = Vec::new();
        for (block, table) in tables {
            let is_current = |mirror: &Mirror| mirror.version == table.version();
            let place = self.0.iter().position(is_current);
            let place = place.or_else(|| self.follow(table)).or_else(|| self.go_back(table));
            match place {
                Some(place) => {
                    self.0[place].is_used = true;
                    mirrors.insert(*block, Arc::clone(&self.0[place].cells));
                }
                None => others.push((*block, *table)),
            }
        }
        // The memory of other tables is used again.
        for (block, table) in others {
            let unused = self
                .0
                .iter_mut()
                .find(|mirror| !mirror.is_used && mirror.blocks == Mirror::blocks_for(table));
            let cells = match unused {
                Some(mirror) => {
                    mirror.fill(table);
                    Arc::clone(&mirror.cells)
                }
                None => {
                    let mirror = Mirror::new(table)?;
                    let cells = Arc::clone(&mirror.cells);
                    self.0.push(mirror);
                    cells
                }
            };
            mirrors.insert(block, cells);
        }
        self.0.retain(|mirror| mirror.is_used);
        Ok(mirrors)
    }

    /// Returns the number of routes without room.
    pub(super) fn without_room(&self) -> u64 {
        self.0.iter().map(|mirror| mirror.trie.without_room).sum()
    }

    fn follow(&mut self, table: &RouteTable<Hop>) -> Option<usize> {
        let (from, prefixes) = table.changes()?;
        let place = self.0.iter().position(|mirror| mirror.version == from)?;
        let mirror = &mut self.0[place];
        mirror.apply(prefixes, table);
        (mirror.version, mirror.before) = (table.version(), Some((from, prefixes.to_vec())));
        Some(place)
    }

    fn go_back(&mut self, table: &RouteTable<Hop>) -> Option<usize> {
        let was = |mirror: &Mirror| {
            mirror.before.as_ref().is_some_and(|(version, _)| *version == table.version())
        };
        let place = self.0.iter().position(was)?;
        let mirror = &mut self.0[place];
        let (version, prefixes) = mirror.before.take()?;
        mirror.apply(&prefixes, table);
        mirror.version = version;
        Some(place)
    }
}

impl Mirror {
    fn new(table: &RouteTable<Hop>) -> io::Result<Mirror> {
        let blocks = Mirror::blocks_for(table);
        let cells = Arc::new(Cells::new(blocks)?);
        let trie = Trie::new(Arc::clone(&cells));
        let mut mirror = Mirror { version: 0, before: None, blocks, cells, trie, is_used: false };
        mirror.fill(table);
        Ok(mirror)
    }

    /// Returns the number of blocks for a table.
    fn blocks_for(table: &RouteTable<Hop>) -> usize {
        let [least, most] = BLOCKS;
        (table.routes_max() / ROUTES_PER_BLOCK).clamp(least, most)
    }

    /// Takes over all routes of a table, instead of those that it has.
    fn fill(&mut self, table: &RouteTable<Hop>) {
        self.trie.clear();
        for (prefix, id) in table.iter_ids() {
            self.trie.insert(prefix.address().to_bits(), prefix.length(), id.0);
        }
        (self.version, self.before, self.is_used) = (table.version(), None, true);
    }

    /// Takes over the routes for these prefixes.
    fn apply(&mut self, prefixes: &[Prefix], table: &RouteTable<Hop>) {
        for prefix in prefixes {
            let (address, length) = (prefix.address().to_bits(), prefix.length());
            match table.id(*prefix) {
                Some(id) => self.trie.insert(address, length, id.0),
                None => {
                    let shorter = table.covering(*prefix).map(|(length, id)| (length, id.0));
                    self.trie.remove(address, length, shorter);
                }
            }
        }
    }
}
