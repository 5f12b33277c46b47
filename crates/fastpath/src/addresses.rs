//! Addresses of a bridge table in memory that programs read: the value of each address, and when a
//! program last saw it as source.
//!
//! A learned address is valid until it expires, or until a flush, which starts a new generation.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use Register::{R0, R1, R2, R4, R5};
use dataplane::mac_table::{MacKey, MacMirror};
use ebpf::{Assembly, Condition, Label, MappedArray, Operation, Register, Width};
use packet::frame::PortNo;
use packet::time::Nanos;

use crate::exact_table::{ExactTable, TAKEN, USED_AT};
use crate::ports::{Ports, mac_word};

/// Bits of a value for the port, or its index.
pub(crate) const PORT_MASK: u32 = 0xffff;

/// Bit of a value for a static address.
const STATIC: u64 = 1 << 16;

/// The generation of a learned address is in the upper bits of a value. A flush starts a new one.
const GENERATION_SHIFT: i32 = 32;

/// Ageing time of a bridge without ageing.
const NEVER: u64 = 1 << 62;

// Offsets of settings: ageing time in nanoseconds, and current generation.
const AGEING_AT: usize = 0;
const GENERATION_AT: usize = 8;
const SETTINGS_BYTES: usize = 16;

/// Where a program has the time in nanoseconds: a register with an address, and an offset.
pub(crate) type TimeAt = (Register, i16);

/// The addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    table: ExactTable,
    settings: MappedArray,
    /// The ports whose indices are the values; otherwise values are numbers of ports.
    ports: Option<Arc<Ports>>,
}

/// Writes the changes of a table of addresses.
#[derive(Debug)]
pub(crate) struct AddressMirror(pub(crate) Arc<Addresses>);

impl Addresses {
    pub(crate) fn new(
        entries_max: usize,
        seed: u64,
        ports: Option<Arc<Ports>>,
    ) -> io::Result<Addresses> {
        Ok(Addresses {
            table: ExactTable::new(entries_max, seed)?,
            settings: MappedArray::new(1, SETTINGS_BYTES)?,
            ports,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn without_room(&self) -> u64 {
        self.table.without_room()
    }

    /// Appends the lookup of a source, whose key is in R1. It must be known with this value;
    /// otherwise the frame escapes. Uses R0, R1, R2, R4 and R5.
    pub(crate) fn emit_source(
        &self,
        value: u32,
        now: TimeAt,
        program: &mut Assembly,
        escape: Label,
    ) {
        self.table.emit_find(program, escape);
        program.copy(R0, R5);
        program.and_word(R0, PORT_MASK);
        program.jump_if(R0, Condition::NotEqual, value as i32, escape);
        let is_seen = program.label("is_seen");
        self.emit_expiry(now, program, is_seen, escape);
        program.load(Width::Double, R4, R2, USED_AT);
        // The clock is that of the last tick, so that few frames write.
        program.jump_if_both(R4, Condition::NotLess, R1, is_seen);
        program.store(Width::Double, R2, USED_AT, R1);
        program.place(is_seen);
    }

    /// Appends the lookup of a destination, whose key is in R1: the lower half of R5 becomes its
    /// value and flags. Uses R0, R1, R2 and R4.
    pub(crate) fn emit_destination(&self, now: TimeAt, program: &mut Assembly, escape: Label) {
        self.table.emit_find(program, escape);
        let is_valid = program.label("is_valid");
        self.emit_expiry(now, program, is_valid, escape);
        program.place(is_valid);
    }

    /// Continues at `is_static` for a static address, or lets the frame escape if the learned
    /// address with slot R2 and value R5 has expired. R1 becomes the time. Uses R0 and R4.
    fn emit_expiry(&self, now: TimeAt, program: &mut Assembly, is_static: Label, escape: Label) {
        program.jump_if(R5, Condition::CommonBit, STATIC as i32, is_static);
        program.copy(R0, R5);
        program.compute(R0, Operation::ShiftRight, GENERATION_SHIFT);
        program.load_map_value(R4, self.settings.descriptor(), 0);
        program.load(Width::Double, R1, R4, GENERATION_AT as i16);
        program.jump_if_both(R0, Condition::NotEqual, R1, escape);
        program.load(Width::Double, R0, R4, AGEING_AT as i16);
        program.load(Width::Double, R4, R2, USED_AT);
        program.add_register(R4, R0);
        program.load(Width::Double, R1, now.0, now.1);
        program.jump_if_both(R1, Condition::NotLess, R4, escape);
    }

    fn ageing(&self) -> &AtomicU64 {
        self.settings.double_at(AGEING_AT)
    }

    fn generation(&self) -> &AtomicU64 {
        self.settings.double_at(GENERATION_AT)
    }
}

/// Returns the key of an address in the kernel.
fn key_of(key: MacKey) -> u64 {
    TAKEN | u64::from(key.vid()) << 48 | mac_word(key.mac())
}

impl MacMirror for AddressMirror {
    fn set(&mut self, key: MacKey, port: PortNo, seen: Option<Nanos>) {
        let addresses = &*self.0;
        let value = match &addresses.ports {
            Some(ports) => ports.index(port),
            None => Some(port as usize),
        };
        let Some(value) = value else { return self.remove(key) };
        let generation = addresses.generation().load(Relaxed) << GENERATION_SHIFT;
        let kind = if seen.is_none() { STATIC } else { 0 };
        let value = value as u64 | kind | generation;
        addresses.table.insert(key_of(key), value, seen.map_or(0, |seen| seen.0));
    }

    fn remove(&mut self, key: MacKey) {
        self.0.table.remove(key_of(key));
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
        if let Some(slot) = self.0.table.find(key_of(key)) {
            self.0.table.used(slot).fetch_max(seen.0, Relaxed);
        }
    }

    fn last_seen(&self, key: MacKey) -> Option<Nanos> {
        let slot = self.0.table.find(key_of(key))?;
        Some(Nanos(self.0.table.used(slot).load(Relaxed)))
    }
}
