//! A learning bridge in the kernel.
//!
//! A frame is forwarded if its source address is known at its ingress port and its destination
//! address at another port, and neither has expired. The program stores the time at which it saw a
//! source. All other frames escape: for learning, moves, flooding, and filtered frames.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use Register::{R0, R1, R2, R3, R4, R5, R8, R10};
use dataplane::bridge::{Bridge, Learning};
use dataplane::mac_table::MacKey;
use dataplane::mac_table::MacMirror;
use ebpf::{Assembly, Condition, Helper, Label, MappedArray, Operation, Register, Width};
use packet::frame::PortNo;
use packet::time::Nanos;

use crate::exact_table::{ExactTable, TAKEN, USED_AT};
use crate::ports::{HEADER_BYTES, Ports, STACK, mac_word};
use crate::{Entries, checksum};

/// Bit of a value for a static address; the port's index is in the bits below.
const STATIC: u64 = 1 << 16;

/// The generation of a learned address is in the upper bits of a value. A flush starts a new one.
const GENERATION_SHIFT: i32 = 32;

/// Ageing time of a bridge without ageing.
const NEVER: u64 = 1 << 62;

// Offsets of settings: ageing time in nanoseconds, and current generation.
const AGEING_AT: usize = 0;
const GENERATION_AT: usize = 8;
const SETTINGS_BYTES: usize = 16;

// Stack offsets, all of 8 bytes.
/// Time in nanoseconds.
const NOW: i16 = STACK - 8;
/// Upper bits of the keys of the frame's addresses.
const TAG: i16 = STACK - 16;

/// The maps of a bridge.
#[derive(Debug)]
pub(crate) struct BridgePath {
    ports: Arc<Ports>,
    addresses: ExactTable,
    settings: MappedArray,
    learning: Learning,
}

impl BridgePath {
    pub(crate) fn new(bridge: &Bridge, ports: Arc<Ports>, seed: u64) -> io::Result<BridgePath> {
        Ok(BridgePath {
            ports,
            addresses: ExactTable::new(bridge.table.entries_max(), seed)?,
            settings: MappedArray::new(1, SETTINGS_BYTES)?,
            learning: bridge.learning(),
        })
    }

    pub(crate) fn mirror(self: &Arc<Self>) -> Box<dyn MacMirror> {
        Box::new(Mirror(Arc::clone(self)))
    }

    pub(crate) fn entries(&self) -> Entries {
        Entries {
            macs: self.addresses.len(),
            others_without_room: self.addresses.without_room(),
            ..Entries::default()
        }
    }

    fn ageing(&self) -> &AtomicU64 {
        self.settings.double_at(AGEING_AT)
    }

    fn generation(&self) -> &AtomicU64 {
        self.settings.double_at(GENERATION_AT)
    }

    /// Appends the program of a port.
    pub(crate) fn emit(
        &self,
        port: PortNo,
        is_partial: bool,
        program: &mut Assembly,
        escape: Label,
    ) {
        let own = self.ports.index(port).expect("the port is one of the fast path");
        program.call(Helper::CoarseNs);
        program.store(Width::Double, R10, NOW, R0);
        self.ports.emit_bounds(program, HEADER_BYTES, escape);
        if is_partial {
            checksum::emit_partial(program, escape);
        }
        self.emit_tag(program);

        self.emit_key(program, 6);
        self.addresses.emit_find(program, escape);
        program.copy(R0, R5);
        program.and_word(R0, 0xffff);
        program.jump_if(R0, Condition::NotEqual, own as i32, escape);
        let is_seen = program.label("is_seen");
        self.emit_expiry(program, is_seen, escape);
        program.load(Width::Double, R4, R2, USED_AT);
        // The clock is that of the last tick, so that few frames write.
        program.jump_if_both(R4, Condition::NotLess, R1, is_seen);
        program.store(Width::Double, R2, USED_AT, R1);
        program.place(is_seen);

        self.emit_key(program, 0);
        self.addresses.emit_find(program, escape);
        program.copy(R0, R5);
        program.and_word(R0, 0xffff);
        program.jump_if(R0, Condition::Equal, own as i32, escape);
        program.store(Width::Double, R10, crate::ports::TO, R0);
        let is_valid = program.label("is_valid");
        self.emit_expiry(program, is_valid, escape);
        program.place(is_valid);
        self.ports.emit_redirect(program, escape);
        self.ports.emit_end(own, program);
    }

    /// Stores the bits of keys that do not depend on the address: those of the outermost tag, if
    /// VLANs have separate addresses.
    fn emit_tag(&self, program: &mut Assembly) {
        program.set_wide(R0, TAKEN);
        if self.learning == Learning::PerVlan {
            let untagged = program.label("untagged");
            program.copy(R1, R8);
            program.add(R1, HEADER_BYTES + 4);
            program.jump_if_both(R1, Condition::Greater, R3, untagged);
            program.load(Width::Half, R1, R8, 12);
            program.network_half(R1);
            program.jump_if(R1, Condition::NotEqual, 0x8100, untagged);
            program.load(Width::Half, R1, R8, 14);
            program.network_half(R1);
            program.and_word(R1, 0x0fff);
            program.shift_left(R1, 48);
            program.compute_both(R0, Operation::Or, R1);
            program.place(untagged);
        }
        program.store(Width::Double, R10, TAG, R0);
    }

    /// Sets R1 to the key of the address at this offset. Uses R0.
    fn emit_key(&self, program: &mut Assembly, at: i16) {
        program.load(Width::Double, R1, R8, at);
        program.shift_left(R1, 16);
        program.compute(R1, Operation::ShiftRight, 16);
        program.load(Width::Double, R0, R10, TAG);
        program.compute_both(R1, Operation::Or, R0);
    }

    /// Continues at `is_static` for a static address, or lets the frame escape if the learned
    /// address with slot R2 and value R5 has expired. R1 becomes the time. Uses R0, R3 and R4.
    fn emit_expiry(&self, program: &mut Assembly, is_static: Label, escape: Label) {
        program.jump_if(R5, Condition::CommonBit, STATIC as i32, is_static);
        program.compute(R5, Operation::ShiftRight, GENERATION_SHIFT);
        program.load_map_value(R3, self.settings.descriptor(), 0);
        program.load(Width::Double, R0, R3, GENERATION_AT as i16);
        program.jump_if_both(R0, Condition::NotEqual, R5, escape);
        program.load(Width::Double, R4, R2, USED_AT);
        program.load(Width::Double, R0, R3, AGEING_AT as i16);
        program.add_register(R4, R0);
        program.load(Width::Double, R1, R10, NOW);
        program.jump_if_both(R1, Condition::NotLess, R4, escape);
    }
}

/// Writes the changes of the MAC table.
#[derive(Debug)]
struct Mirror(Arc<BridgePath>);

/// Returns the key of an address in the kernel.
fn key_of(key: MacKey) -> u64 {
    TAKEN | u64::from(key.vid()) << 48 | mac_word(key.mac())
}

impl MacMirror for Mirror {
    fn set(&mut self, key: MacKey, port: PortNo, seen: Option<Nanos>) {
        let path = &*self.0;
        let Some(index) = path.ports.index(port) else { return self.remove(key) };
        let generation = path.generation().load(Relaxed) << GENERATION_SHIFT;
        let kind = if seen.is_none() { STATIC } else { 0 };
        let value = index as u64 | kind | generation;
        path.addresses.insert(key_of(key), value, seen.map_or(0, |seen| seen.0));
    }

    fn remove(&mut self, key: MacKey) {
        self.0.addresses.remove(key_of(key));
    }

    fn flush(&mut self) {
        // A generation has 32 bits; an entry of an earlier one is removed long before it repeats.
        let next = (self.0.generation().load(Relaxed) + 1) & u64::from(u32::MAX);
        self.0.generation().store(next, Release);
    }

    fn set_ageing(&mut self, ageing: Option<Nanos>) {
        self.0.ageing().store(ageing.map_or(NEVER, |span| span.0.min(NEVER)), Release);
    }

    fn refresh(&mut self, key: MacKey, seen: Nanos) {
        if let Some(slot) = self.0.addresses.find(key_of(key)) {
            self.0.addresses.used(slot).fetch_max(seen.0, Relaxed);
        }
    }

    fn last_seen(&self, key: MacKey) -> Option<Nanos> {
        let slot = self.0.addresses.find(key_of(key))?;
        Some(Nanos(self.0.addresses.used(slot).load(Relaxed)))
    }
}
