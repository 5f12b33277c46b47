//! The program of a port: it reads the fields of a frame, searches its entry and executes it.
//!
//! A frame escapes before it is changed, and with the registers that the caller expects: R6 is the
//! context, and R7 stays unused, because it may have no value. The program announces the generation
//! of entries that it uses, as long as it uses it (see [`super::projection`]).
//!
//! Scratch values are in the memory of the CPU, not on the stack. The verifier knows nothing about
//! the contents of maps, so it need not examine the program for different values, or follow them
//! back through the rounds of a loop.

use std::sync::Arc;

use Register::{R0, R1, R2, R3, R4, R5, R6, R8, R9, R10};
use ebpf::{Assembly, Condition, Helper, Label, Operation, Register, Width};
use packet::frame::PortNo;

use super::layout::{TABLES, action, count, cpu, order, port, root};
use super::memory::{Descriptors, Memory};
use crate::checksum;
use crate::ports::{BYTES, HEADER_BYTES, Ports, STACK, TO};

mod change;
mod fields;
mod search;

/// Offsets in `struct xdp_md`: start and end of the frame.
const DATA: i16 = 0;
const DATA_END: i16 = 4;

/// Result of a dropped frame (`XDP_DROP`).
const DROP: i32 = 1;

// Stack offsets.
/// The context, 8 bytes.
const CONTEXT: i16 = STACK - 8;
/// Index for a map, 4 bytes.
const INDEX: i16 = STACK - 16;

/// Returns the offset of a word of the key in the memory of the CPU.
const fn key(word: i16) -> i16 {
    cpu::KEY + 8 * word
}

/// Parts of the program that jump to each other.
#[derive(Debug, Clone, Copy)]
struct Labels {
    /// The frame goes to user space.
    escape: Label,
    /// The key is complete: the search in the first table begins.
    start: Label,
    /// The search in the current table begins.
    search: Label,
    /// The search is over.
    found: Label,
    /// The output is the ingress port.
    back: Label,
    /// The entry changes the frame.
    change: Label,
    /// The changed frame leaves.
    send_changed: Label,
    /// The frame cannot be used any more.
    broken: Label,
}

/// What the programs of all ports have in common.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) ports: Arc<Ports>,
    pub(super) memory: Arc<Memory>,
    pub(super) seed: u64,
}

/// The program of one port, under construction.
struct Writer<'a> {
    program: &'a mut Assembly,
    ports: &'a Ports,
    maps: Descriptors,
    seed: u64,
    chains: usize,
    /// Number and index of the port.
    own: (PortNo, usize),
    labels: Labels,
}

impl Programs {
    /// Appends the program of a port.
    pub(super) fn emit(
        &self,
        port: PortNo,
        is_partial: bool,
        program: &mut Assembly,
        escape: Label,
    ) {
        let index = self.ports.index(port).expect("the port is one of the fast path");
        let mut label = |name| program.label(name);
        let labels = Labels {
            escape: label("escape"),
            start: label("start"),
            search: label("search"),
            found: label("found"),
            back: label("back"),
            change: label("change"),
            send_changed: label("send_changed"),
            broken: label("broken"),
        };
        let mut writer = Writer {
            program,
            ports: &self.ports,
            maps: self.memory.descriptors(),
            seed: self.seed,
            chains: self.memory.chains,
            own: (port, index),
            labels,
        };
        writer.begin(escape);
        if is_partial {
            checksum::emit_partial(writer.program, labels.escape);
        }
        writer.read_fields();
        writer.search();
        writer.execute();
        writer.change();
        writer.escape(escape);
    }
}

impl Writer<'_> {
    /// Announces the generation, and checks flags and length. R9 becomes the memory of the CPU, R8
    /// the start of the frame and R3 its end.
    fn begin(&mut self, no_memory: Label) {
        let (escape, own) = (self.labels.escape, self.own.1);
        let program = &mut *self.program;
        program.store(Width::Double, R10, CONTEXT, R6);
        program.call(Helper::CoreNumber);
        program.store(Width::Word, R10, INDEX, R0);
        self.look_up(self.maps.cpus, INDEX, no_memory);
        let program = &mut *self.program;
        program.copy(R9, R0);
        program.store_number(Width::Double, R9, cpu::RUNS, cpu::STARTING);
        program.load_map_value(R1, self.maps.root, 0);
        program.load(Width::Double, R1, R1, root::STATE);
        program.store(Width::Double, R9, cpu::STATE, R1);
        program.copy(R2, R1);
        program.compute(R2, Operation::ShiftRight, root::FLAG_BITS as i32);
        program.store(Width::Double, R9, cpu::GENERATION, R2);
        program.add(R2, cpu::FIRST);
        program.store(Width::Double, R9, cpu::RUNS, R2);
        program.jump_if(R1, Condition::CommonBit, root::ESCAPE_ALL as i32, escape);
        program.load_map_value(R1, self.maps.ports, own as i32 * 8);
        program.load(Width::Double, R1, R1, 0);
        program.compute(R1, Operation::And, port::RECEIVES as i32);
        program.jump_if(R1, Condition::Equal, 0, escape);
        self.ports.emit_bounds(program, HEADER_BYTES, escape);
    }

    /// Sets R0 to a value of a map, by the index at this stack offset. Uses R1 to R5.
    fn look_up(&mut self, map: i32, index: i16, missing: Label) {
        let program = &mut *self.program;
        program.load_map(R1, map);
        program.copy(R2, R10);
        program.add(R2, index.into());
        program.call(Helper::MapLookUp);
        program.jump_if(R0, Condition::Equal, 0, missing);
    }

    /// Executes the entry that the search found, or treats the frame as a miss.
    fn execute(&mut self) {
        let Labels { escape, found, back, change, send_changed, .. } = self.labels;
        let [goto, output, to_ingress, drop, send] =
            ["goto", "output", "to_ingress", "drop", "send"].map(|name| self.program.label(name));
        let program = &mut *self.program;
        program.place(found);
        let hit = program.label("hit");
        program.load(Width::Double, R1, R9, cpu::BEST);
        program.jump_if(R1, Condition::NotEqual, 0, hit);
        program.load(Width::Double, R1, R9, cpu::TABLE);
        program.load(Width::Double, R2, R9, cpu::STATE);
        program.compute(R2, Operation::ShiftRight, root::DROPS_MISSES_AT as i32);
        program.compute_both(R2, Operation::ShiftRight, R1);
        program.compute(R2, Operation::And, 1);
        program.jump_if(R2, Condition::Equal, 0, escape);
        self.table_counters();
        let program = &mut *self.program;
        program.load(Width::Double, R2, R1, cpu::MISSED);
        program.add(R2, 1);
        program.store(Width::Double, R1, cpu::MISSED, R2);
        self.count_trail();
        self.end_with_drop(cpu::NO_MATCH);

        let program = &mut *self.program;
        program.place(hit);
        program.load(Width::Double, R8, R9, cpu::ACTION);
        program.copy(R1, R8);
        program.compute(R1, Operation::ShiftRight, action::KIND_SHIFT as i32);
        program.and_word(R8, 0xffff);
        program.jump_if(R1, Condition::Equal, action::GOTO as i32, goto);
        program.jump_if(R1, Condition::Equal, action::OUTPUT as i32, output);
        program.jump_if(R1, Condition::Equal, action::DROP as i32, drop);
        program.jump_if(R1, Condition::Equal, action::IN_PORT as i32, to_ingress);
        program.jump_if(R1, Condition::Equal, action::REWRITE as i32, change);
        program.jump(escape);

        program.place(goto);
        self.go_on();
        self.program.place(drop);
        self.count_entry();
        self.end_with_drop(cpu::BY_FLOW);
        self.program.place(back);
        self.count_entry();
        self.end_with_drop(cpu::BACK);

        let own = self.own.1 as i32;
        let program = &mut *self.program;
        program.place(to_ingress);
        program.set(R8, own);
        program.jump(send);
        program.place(output);
        program.jump_if(R8, Condition::Equal, own, back);
        program.place(send);
        program.store(Width::Double, R10, TO, R8);
        self.check_sends();
        self.send(escape);
        self.program.place(send_changed);
        self.send(self.labels.broken);
    }

    /// Lets the frame escape if frames do not leave at once by the egress port. Uses R1 and R2.
    fn check_sends(&mut self) {
        let program = &mut *self.program;
        program.load(Width::Double, R2, R10, TO);
        program.and_word(R2, crate::ports::PORTS_MAX as u32 - 1);
        program.shift_left(R2, 3);
        program.load_map_value(R1, self.maps.ports, 0);
        program.add_register(R1, R2);
        program.load(Width::Double, R1, R1, 0);
        program.compute(R1, Operation::And, port::SENDS as i32);
        program.jump_if(R1, Condition::Equal, 0, self.labels.escape);
    }

    /// Sends the frame to the egress port, counts it and ends.
    fn send(&mut self, failed: Label) {
        self.ports.emit_redirect(self.program, failed);
        self.count_entry();
        self.program.store_number(Width::Double, R9, cpu::RUNS, 0);
        self.ports.emit_end(self.own.1, self.program);
    }

    /// Continues the search in the table with the number in R8, and notes the entry.
    fn go_on(&mut self) {
        let Labels { escape, search, .. } = self.labels;
        self.part_counter();
        let program = &mut *self.program;
        // The slot, and the offset of the counter of its part in the memory of the CPU.
        program.subtract(R1, R9);
        program.shift_left(R1, 32);
        program.load(Width::Double, R2, R9, cpu::SLOT);
        program.compute_both(R1, Operation::Or, R2);
        program.load(Width::Double, R2, R9, cpu::TRAIL_COUNT);
        program.jump_if(R2, Condition::NotLess, TABLES as i32, escape);
        program.copy(R3, R2);
        program.add(R3, 1);
        program.store(Width::Double, R9, cpu::TRAIL_COUNT, R3);
        program.and_word(R2, TABLES as u32 - 1);
        program.shift_left(R2, 3);
        program.add_register(R2, R9);
        program.store(Width::Double, R2, cpu::TRAIL, R1);
        program.and_word(R8, TABLES as u32 - 1);
        program.store(Width::Double, R9, cpu::TABLE, R8);
        program.jump(search);
    }

    /// Sets R1 to the counters of the current table, less their offset in the memory of the CPU.
    fn table_counters(&mut self) {
        let program = &mut *self.program;
        program.load(Width::Double, R1, R9, cpu::TABLE);
        program.and_word(R1, TABLES as u32 - 1);
        program.shift_left(R1, cpu::TABLE_SHIFT);
        program.add(R1, cpu::TABLES.into());
        program.add_register(R1, R9);
    }

    /// Sets R1 to the counter of the part of the best entry. Uses R2.
    fn part_counter(&mut self) {
        self.table_counters();
        let program = &mut *self.program;
        program.load(Width::Double, R2, R9, cpu::BEST);
        program.compute(R2, Operation::ShiftRight, order::EXACT_AT as i32);
        program.and_word(R2, 1);
        program.shift_left(R2, 3);
        program.add_register(R1, R2);
    }

    /// Counts the frame for its entry and those of earlier tables. Uses R0 to R6 and R8.
    fn count_entry(&mut self) {
        self.part_counter();
        let program = &mut *self.program;
        program.load(Width::Double, R2, R1, 0);
        program.add(R2, 1);
        program.store(Width::Double, R1, 0, R2);
        program.call(Helper::CoarseNs);
        program.copy(R8, R0);
        program.load(Width::Double, R1, R9, cpu::SLOT);
        program.store(Width::Word, R10, INDEX, R1);
        self.count_slot();
        self.count_trail();
    }

    /// Counts the frame for the entries of earlier tables. Uses R0 to R6 and R8.
    fn count_trail(&mut self) {
        let [next, done] = ["next", "done"].map(|name| self.program.label(name));
        let program = &mut *self.program;
        program.load(Width::Double, R1, R9, cpu::TRAIL_COUNT);
        program.jump_if(R1, Condition::Equal, 0, done);
        program.call(Helper::CoarseNs);
        program.copy(R8, R0);
        program.set(R6, 0);
        program.place(next);
        program.copy(R1, R6);
        program.shift_left(R1, 3);
        program.add_register(R1, R9);
        program.load(Width::Double, R1, R1, cpu::TRAIL);
        program.store(Width::Word, R10, INDEX, R1);
        program.compute(R1, Operation::ShiftRight, 32);
        program.jump_if(R1, Condition::Greater, cpu::BYTES as i32 - 8, done);
        program.add_register(R1, R9);
        program.load(Width::Double, R2, R1, 0);
        program.add(R2, 1);
        program.store(Width::Double, R1, 0, R2);
        self.count_slot();
        let program = &mut *self.program;
        program.add(R6, 1);
        program.jump_if(R6, Condition::NotLess, TABLES as i32, done);
        program.load(Width::Double, R1, R9, cpu::TRAIL_COUNT);
        program.jump_if_both(R6, Condition::Less, R1, next);
        program.place(done);
    }

    /// Counts the frame for the entry in the slot on the stack, at the time in R8. Uses R0 to R5.
    fn count_slot(&mut self) {
        let counted = self.program.label("counted");
        self.look_up(self.maps.counts, INDEX, counted);
        let program = &mut *self.program;
        program.store(Width::Double, R0, count::LAST, R8);
        program.set(R1, 1);
        program.atomic_add(R0, count::FRAMES, R1);
        program.load(Width::Double, R1, R10, BYTES);
        program.atomic_add(R0, count::BYTES_SUM, R1);
        program.place(counted);
    }

    /// Drops and counts the frame, and ends.
    fn end_with_drop(&mut self, counter: i32) {
        self.program.set(R1, 1);
        self.add_to(counter);
        self.program.load(Width::Double, R1, R10, BYTES);
        self.add_to(cpu::DROPPED_BYTES);
        let program = &mut *self.program;
        program.store_number(Width::Double, R9, cpu::RUNS, 0);
        program.set(R0, DROP);
        program.exit();
    }

    /// Adds R1 to a counter of the ingress port. Uses R2.
    fn add_to(&mut self, counter: i32) {
        let at = cpu::PORTS + (self.own.1 * cpu::PORT_BYTES) as i32 + counter;
        let program = &mut *self.program;
        program.load(Width::Double, R2, R9, at as i16);
        program.add_register(R2, R1);
        program.store(Width::Double, R9, at as i16, R2);
    }

    /// Ends the program for frames that escape, and for broken ones.
    fn escape(&mut self, escape: Label) {
        self.program.place(self.labels.escape);
        self.program.set(R1, 1);
        self.add_to(cpu::ESCAPED);
        let program = &mut *self.program;
        program.store_number(Width::Double, R9, cpu::RUNS, 0);
        program.load(Width::Double, R6, R10, CONTEXT);
        program.jump(escape);

        program.place(self.labels.broken);
        self.end_with_drop(cpu::BROKEN);
    }
}
