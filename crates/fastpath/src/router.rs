//! An IPv4 router in the kernel.
//!
//! A packet is forwarded if the user-space code would route it by its first bytes: it is for the
//! ingress port's address, plain (no options, TTL above one, valid header and addresses, no more
//! padding than a frame needs), fits the MTU, and its next hop has a known hardware address. All
//! other frames escape.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use Register::{R0, R1, R2, R3, R4, R5, R8, R9, R10};
use dataplane::neighbor::NeighborMirror;
use dataplane::neighbor::Place;
use dataplane::route_table::RouteMirror;
use dataplane::route_table::{HopId, NextHop, Prefix};
use dataplane::router::Router;
use ebpf::{Assembly, Condition, Label, MappedArray, Operation, Register, Width};
use packet::frame::PortNo;
use packet::header::ethernet::{FRAME_BYTES_MIN, Mac};
use packet::header::ipv4;

use crate::exact_table::{ExactTable, TAKEN, USED_AT};
use crate::ports::{
    BYTES, HEADER_BYTES, MTU_AT, PORT_SHIFT, PORTS_MAX, Ports, STACK, TO, mac_word,
};
use crate::trie::{Cells, HOP_OF_ESCAPE, HOPS, Trie};
use crate::{Entries, checksum};

/// Bytes of a next hop, a power of two: index of the port, the mask of the destination and the
/// gateway's address in it. The neighbor of a packet is `destination & mask | gateway`.
const HOP_BYTES: usize = 16;
const HOP_SHIFT: i32 = 4;
const MASK_AT: i16 = 4;
const GATEWAY_AT: i16 = 8;

/// Index of no port.
const NO_PORT: u32 = u32::MAX;

/// Routes for each block of the trie, at which it has room for typical prefixes.
const ROUTES_PER_BLOCK: usize = 16;

/// Range of the number of blocks of 1 KiB.
const BLOCKS: [usize; 2] = [1024, 1 << 17];

// Offsets in a frame.
const TYPE_AT: i16 = 12;
const IP_AT: i16 = 14;
const TOTAL_AT: i16 = IP_AT + 2;
const TTL_AT: i16 = IP_AT + 8;
const SOURCE_AT: i16 = IP_AT + 12;
const DESTINATION_AT: i16 = IP_AT + 16;

// Stack offsets, all of 8 bytes.
const TOTAL: i16 = STACK - 8;
const CELL: i16 = STACK - 16;
const NEXT_MAC: i16 = STACK - 24;
const OWN_MAC: i16 = STACK - 32;

/// The maps of a router.
#[derive(Debug)]
pub(crate) struct RouterPath {
    ports: Arc<Ports>,
    /// MAC address of each port with an interface of the router, by index.
    macs: Vec<Option<Mac>>,
    cells: Arc<Cells>,
    hops: MappedArray,
    neighbors: ExactTable,
    routes_without_room: AtomicU64,
}

impl RouterPath {
    pub(crate) fn new(router: &Router, ports: Arc<Ports>, seed: u64) -> io::Result<RouterPath> {
        let mut macs = vec![None; PORTS_MAX];
        for interface in router.interfaces() {
            if let Some(index) = ports.index(interface.port) {
                macs[index] = Some(interface.mac);
                ports.set_facts(index, interface.mac, interface.mtu);
            }
        }
        let [least, most] = BLOCKS;
        let blocks = (router.routes().routes_max() / ROUTES_PER_BLOCK).clamp(least, most);
        let hops = MappedArray::new(1, HOPS * HOP_BYTES)?;
        let path = RouterPath {
            ports,
            macs,
            cells: Arc::new(Cells::new(blocks)?),
            hops,
            neighbors: ExactTable::new(router.neighbors().entries_max(), seed)?,
            routes_without_room: AtomicU64::new(0),
        };
        path.set_hop(HOP_OF_ESCAPE, [NO_PORT, 0, 0]);
        Ok(path)
    }

    pub(crate) fn mirrors(self: &Arc<Self>) -> (Box<dyn RouteMirror>, Box<dyn NeighborMirror>) {
        let trie = Trie::new(Arc::clone(&self.cells));
        let routes = Routes { path: Arc::clone(self), trie };
        (Box::new(routes), Box::new(Neighbors(Arc::clone(self))))
    }

    pub(crate) fn entries(&self) -> Entries {
        Entries {
            macs: 0,
            neighbors: self.neighbors.len(),
            routes_without_room: self.routes_without_room.load(Relaxed),
            others_without_room: self.neighbors.without_room(),
        }
    }

    fn set_hop(&self, number: u32, [port, mask, gateway]: [u32; 3]) {
        let word = |at: i16| self.hops.word_at(number as usize * HOP_BYTES + at as usize);
        word(MASK_AT).store(mask, Relaxed);
        word(GATEWAY_AT).store(gateway, Relaxed);
        word(0).store(port, Release);
    }

    fn index(&self, port: PortNo) -> u32 {
        self.ports.index(port).map_or(NO_PORT, |index| index as u32)
    }

    /// Appends the program of a port. Without an interface of the router, all frames escape.
    pub(crate) fn emit(
        &self,
        port: PortNo,
        is_partial: bool,
        program: &mut Assembly,
        escape: Label,
    ) {
        let own = self.ports.index(port).expect("the port is one of the fast path");
        let Some(mac) = self.macs[own] else { return program.jump(escape) };
        let headers = HEADER_BYTES + ipv4::HEADER_BYTES as i32;
        self.ports.emit_bounds(program, headers, escape);
        emit_checks(mac, program, escape);
        if is_partial {
            checksum::emit_partial(program, escape);
        }
        program.load(Width::Word, R0, R8, DESTINATION_AT);
        program.network_word(R0);
        self.cells.emit_find(R9, program, escape);
        program.store(Width::Double, R10, CELL, R2);
        self.emit_next_hop(program, escape);
        // The next hop was that of the destination all the time.
        program.load(Width::Word, R1, R9, 0);
        program.load(Width::Double, R2, R10, CELL);
        program.jump_if_both(R1, Condition::NotEqual, R2, escape);
        self.ports.emit_redirect(program, escape);
        emit_rewrite(program);
        self.ports.emit_end(own, program);
    }

    /// Finds the hardware addresses and the port for the destination in R0 and the cell in R2.
    fn emit_next_hop(&self, program: &mut Assembly, escape: Label) {
        program.add(R2, -1);
        program.and_word(R2, HOPS as u32 - 1);
        program.shift_left(R2, HOP_SHIFT);
        program.load_map_value(R3, self.hops.descriptor(), 0);
        program.add_register(R3, R2);
        program.load(Width::Word, R4, R3, 0);
        program.jump_if(R4, Condition::Greater, PORTS_MAX as i32 - 1, escape);
        program.store(Width::Double, R10, TO, R4);
        program.copy(R1, R0);
        program.load(Width::Word, R5, R3, MASK_AT);
        program.compute_words(R1, Operation::And, R5);
        program.load(Width::Word, R5, R3, GATEWAY_AT);
        program.compute_words(R1, Operation::Or, R5);
        program.shift_left(R4, 32);
        program.compute_both(R1, Operation::Or, R4);
        program.set_wide(R4, TAKEN);
        program.compute_both(R1, Operation::Or, R4);
        self.neighbors.emit_find(program, escape);
        program.store(Width::Double, R10, NEXT_MAC, R5);
        let is_used = program.label("is_used");
        program.load(Width::Double, R0, R2, USED_AT);
        program.jump_if(R0, Condition::NotEqual, 0, is_used);
        program.set(R0, 1);
        program.store(Width::Double, R2, USED_AT, R0);
        program.place(is_used);
        program.load(Width::Double, R4, R10, TO);
        program.and_word(R4, PORTS_MAX as u32 - 1);
        program.shift_left(R4, PORT_SHIFT);
        self.ports.emit_facts(program, R3);
        program.add_register(R3, R4);
        program.load(Width::Double, R0, R3, 0);
        program.store(Width::Double, R10, OWN_MAC, R0);
        program.load(Width::Double, R0, R3, MTU_AT);
        program.load(Width::Double, R1, R10, TOTAL);
        program.jump_if_both(R1, Condition::Greater, R0, escape);
    }
}

/// Lets all frames escape but plain packets for this station, and stores the packet's length. R8 is
/// the start of the frame, which has both headers. Uses R0 to R2.
fn emit_checks(own: Mac, program: &mut Assembly, escape: Label) {
    let [a, b, c, d, e, f] = own;
    let mut differs = |width, at, value: u32| {
        program.load(width, R0, R8, at);
        program.jump_if_word(R0, Condition::NotEqual, value, escape);
    };
    differs(Width::Word, 0, u32::from_le_bytes([a, b, c, d]));
    differs(Width::Half, 4, u16::from_le_bytes([e, f]).into());
    differs(Width::Half, TYPE_AT, u16::from_le_bytes([0x08, 0x00]).into());
    differs(Width::Byte, IP_AT, 0x45);
    program.load(Width::Byte, R0, R8, TTL_AT);
    program.jump_if(R0, Condition::NotGreater, 1, escape);

    program.load(Width::Half, R1, R8, TOTAL_AT);
    program.network_half(R1);
    program.store(Width::Double, R10, TOTAL, R1);
    program.jump_if(R1, Condition::Less, ipv4::HEADER_BYTES as i32, escape);
    program.add(R1, HEADER_BYTES);
    program.load(Width::Double, R2, R10, BYTES);
    program.jump_if_both(R1, Condition::Greater, R2, escape);
    // More padding than a frame needs is removed in user space.
    let is_long = program.label("is_long");
    program.jump_if(R1, Condition::NotLess, FRAME_BYTES_MIN as i32, is_long);
    program.set(R1, FRAME_BYTES_MIN as i32);
    program.place(is_long);
    program.jump_if_both(R2, Condition::Greater, R1, escape);

    for at in [SOURCE_AT, DESTINATION_AT] {
        program.load(Width::Byte, R0, R8, at);
        program.jump_if(R0, Condition::Equal, 0, escape);
        program.jump_if(R0, Condition::Equal, 127, escape);
        program.jump_if(R0, Condition::Greater, 223, escape);
    }
    program.load(Width::Word, R0, R8, IP_AT);
    for word in 1..5 {
        program.load(Width::Word, R1, R8, IP_AT + 4 * word);
        program.add_register(R0, R1);
    }
    checksum::emit_fold(program);
    program.jump_if(R0, Condition::NotEqual, 0xffff, escape);
}

/// Writes the hardware addresses and decrements the TTL, with an incremental checksum (RFC 1624).
fn emit_rewrite(program: &mut Assembly) {
    for (from, to) in [(NEXT_MAC, 0), (OWN_MAC, 6)] {
        program.load(Width::Double, R1, R10, from);
        program.store(Width::Word, R8, to, R1);
        program.compute(R1, Operation::ShiftRight, 32);
        program.store(Width::Half, R8, to + 4, R1);
    }
    checksum::emit_decrement(IP_AT, program);
}

/// Writes the changes of the route table.
#[derive(Debug)]
struct Routes {
    path: Arc<RouterPath>,
    trie: Trie,
}

impl Routes {
    fn count(&self) {
        self.path.routes_without_room.store(self.trie.without_room, Relaxed);
    }
}

impl RouteMirror for Routes {
    fn set_route(&mut self, prefix: Prefix, id: HopId, hop: NextHop) {
        let record = match hop {
            NextHop::Gateway { port, via } => [self.path.index(port), 0, via.to_bits()],
            NextHop::Link { port } => [self.path.index(port), u32::MAX, 0],
            NextHop::Local | NextHop::Broadcast => [NO_PORT, 0, 0],
        };
        if id.0 < HOP_OF_ESCAPE {
            self.path.set_hop(id.0, record);
        }
        self.trie.insert(prefix.address().to_bits(), prefix.length(), id.0);
        self.count();
    }

    fn remove_route(&mut self, prefix: Prefix, shorter: Option<(u8, HopId)>) {
        let shorter = shorter.map(|(length, id)| (length, id.0));
        self.trie.remove(prefix.address().to_bits(), prefix.length(), shorter);
        self.count();
    }

    fn clear_routes(&mut self) {
        self.trie.clear();
        self.count();
    }
}

/// Writes the changes of the neighbor table.
#[derive(Debug)]
struct Neighbors(Arc<RouterPath>);

impl Neighbors {
    /// Returns the key of a neighbor in the kernel, if its port is one of the fast path.
    fn key(&self, place: Place) -> Option<u64> {
        let index = self.0.ports.index(place.port)?;
        Some(TAKEN | (index as u64) << 32 | u64::from(place.address.to_bits()))
    }
}

impl NeighborMirror for Neighbors {
    fn set_neighbor(&mut self, place: Place, mac: Mac) {
        if let Some(key) = self.key(place) {
            self.0.neighbors.insert(key, mac_word(mac), 0);
        }
    }

    fn remove_neighbor(&mut self, place: Place) {
        if let Some(key) = self.key(place) {
            self.0.neighbors.remove(key);
        }
    }

    fn take_used(&mut self, place: Place) -> bool {
        let slot = self.key(place).and_then(|key| self.0.neighbors.find(key));
        slot.is_some_and(|slot| self.0.neighbors.used(slot).swap(0, Relaxed) != 0)
    }
}
