//! The program of a live port.
//!
//! - A frame that arrives on the interface is copied into the ring of received frames, with the
//!   time, and dropped. The network stack gets it if the port does not receive.
//! - A frame that the kernel generates takes the bytes of the next frame to send that is due, of
//!   the slot whose turn it is, and is redirected to this slot's interface. It is dropped if none
//!   is due: the process waits for the next one by dropping frames.
//! - The program writes every byte of a frame, because recycled pages keep the content of their
//!   last user.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`struct xdp_md`). The layout of the memory is that of
//! [`super::memory`].
//!
//! Registers: R6 is the context, R7 a record, and R8 the time. R9 is the slot's control while a
//! frame is sent, and the length of a received frame.

use ebpf::{Assembly, Condition, Helper, Instruction, Label, Operation, Register, Width};

use super::memory::{
    HEADER_BYTES, RECEIVE_RING_BYTES, RECEIVED_BYTES_MAX, RESULTS, SEND_RING_BYTES,
    SEND_RING_DISTANCE, SENT_BYTES_MAX, SLOTS, TOO_LATE, arrivals, control, received, sent,
};
use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};

/// Result for a frame that goes nowhere (`XDP_DROP`).
pub(super) const DROP: i32 = 1;

/// Result for a frame that the network stack gets (`XDP_PASS`).
const PASS: i32 = 2;

/// Offsets in `struct xdp_md`: start and end of the frame, and the receiving interface;
/// kernel-generated frames have the loopback interface.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const COMES_BY: i16 = 12;

/// Stack offsets: slot, and length of the frame.
const SLOT: i16 = -8;
const LENGTH: i16 = -16;

/// Length of the most frequent frame, which is copied without a call.
const SHORT_BYTES: usize = 60;

/// Descriptors of a port's maps, and the index of its interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapDescriptors {
    pub control: i32,
    pub frames: i32,
    pub results: i32,
    pub arrivals: Option<i32>,
    pub interfaces: i32,
    pub interface: i32,
}

/// Builds the program.
pub(super) fn text(parts: MapDescriptors) -> Vec<Instruction> {
    let mut program = Assembly::new();
    let [generated, drop] = ["generated", "drop"].map(|name| program.label(name));
    program.copy(R6, R1);
    program.load(Width::Word, R0, R6, COMES_BY);
    program.jump_if(R0, Condition::NotEqual, parts.interface, generated);
    match parts.arrivals {
        Some(arrivals) => receive(&mut program, arrivals, drop),
        None => {
            program.set(R0, PASS);
            program.exit();
        }
    }
    program.place(generated);
    send(&mut program, parts, drop);
    program.place(drop);
    program.set(R0, DROP);
    program.exit();
    program.finish().expect("every label is placed within reach")
}

/// Copies a frame that arrived into the ring.
fn receive(program: &mut Assembly, memory: i32, drop: Label) {
    let names = ["long", "taken", "too_long", "full"];
    let [long, taken, too_long, full] = names.map(|name| program.label(name));
    /// Bytes of the ring that are not free for another frame of any length.
    const FREE_MIN: usize = received::BYTES + RECEIVED_BYTES_MAX + 8;
    program.call(Helper::MonotonicNs);
    program.copy(R8, R0);
    program.load(Width::Word, R2, R6, DATA);
    program.load(Width::Word, R3, R6, DATA_END);
    program.copy(R9, R3);
    program.subtract(R9, R2);
    program.load_map_value(R1, memory, 0);
    program.jump_if(R9, Condition::Less, HEADER_BYTES as i32, drop);
    program.jump_if(R9, Condition::Greater, RECEIVED_BYTES_MAX as i32, too_long);
    program.load(Width::Double, R5, R1, arrivals::PRODUCED as i16);
    program.load(Width::Double, R4, R1, arrivals::CONSUMED as i16);
    program.copy(R0, R5);
    program.subtract(R0, R4);
    program.jump_if(R0, Condition::Greater, (RECEIVE_RING_BYTES - FREE_MIN) as i32, full);
    program.and_word(R5, RECEIVE_RING_BYTES as u32 - 1);
    program.copy(R7, R1);
    program.add_register(R7, R5);
    program.add(R7, arrivals::RING as i32);
    program.store(Width::Word, R7, received::LENGTH as i16, R9);
    program.store(Width::Double, R7, received::ARRIVED as i16, R8);
    program.jump_if(R9, Condition::NotEqual, SHORT_BYTES as i32, long);
    reach(program, SHORT_BYTES, drop);
    copy_short(program, (R7, received::BYTES), (R2, 0));
    program.jump(taken);
    program.place(long);
    program.copy(R1, R6);
    program.set(R2, 0);
    program.copy(R3, R7);
    program.add(R3, received::BYTES as i32);
    program.copy(R4, R9);
    program.call(Helper::XdpLoadBytes);
    program.jump_if(R0, Condition::NotEqual, 0, drop);
    program.place(taken);
    program.load_map_value(R1, memory, 0);
    pad(program, R9, received::BYTES);
    program.load(Width::Double, R2, R1, arrivals::PRODUCED as i16);
    program.add_register(R2, R9);
    program.store(Width::Double, R1, arrivals::PRODUCED as i16, R2);
    program.set(R0, DROP);
    program.exit();
    for (label, counter) in [(too_long, arrivals::TOO_LONG), (full, arrivals::LOST)] {
        program.place(label);
        program.load(Width::Double, R2, R1, counter as i16);
        program.add(R2, 1);
        program.store(Width::Double, R1, counter as i16, R2);
        program.set(R0, DROP);
        program.exit();
    }
}

/// Turns a generated frame into the next one to send.
fn send(program: &mut Assembly, parts: MapDescriptors, drop: Label) {
    let names = ["in_turn", "on_time", "sized", "long", "written", "go", "late", "fail", "broken"];
    let [in_turn, on_time, sized, long, written, go, late, fail, broken] =
        names.map(|name| program.label(name));
    program.load_map_value(R1, parts.control, 0);
    program.load(Width::Double, R2, R1, control::TURN as i16);
    program.load(Width::Double, R3, R1, control::COUNT as i16);
    program.add(R2, 1);
    program.jump_if_both(R2, Condition::Less, R3, in_turn);
    program.set(R2, 0);
    program.place(in_turn);
    program.store(Width::Double, R1, control::TURN as i16, R2);
    program.and_word(R2, SLOTS as u32 - 1);
    program.shift_left(R2, 2);
    program.copy(R3, R1);
    program.add_register(R3, R2);
    program.load(Width::Word, R4, R3, control::TURNS as i16);
    program.and_word(R4, SLOTS as u32 - 1);
    program.store(Width::Double, R10, SLOT, R4);
    program.copy(R5, R4);
    program.compute(R5, Operation::Multiply, control::SLOT_BYTES as i32);
    program.copy(R9, R1);
    program.add_register(R9, R5);
    program.load(Width::Double, R2, R9, control::CONSUMED as i16);
    program.load(Width::Double, R3, R9, control::PRODUCED as i16);
    program.jump_if_both(R2, Condition::Equal, R3, drop);
    program.load_map_value(R7, parts.frames, 0);
    program.compute(R4, Operation::Multiply, SEND_RING_DISTANCE as i32);
    program.add_register(R7, R4);
    program.and_word(R2, SEND_RING_BYTES as u32 - 1);
    program.add_register(R7, R2);
    program.call(Helper::MonotonicNs);
    program.copy(R8, R0);
    program.load(Width::Double, R1, R7, sent::DUE as i16);
    program.jump_if_both(R1, Condition::Greater, R8, drop);

    program.load(Width::Word, R4, R7, sent::LENGTH as i16);
    program.jump_if(R4, Condition::Greater, SENT_BYTES_MAX as i32, broken);
    program.jump_if(R4, Condition::Less, HEADER_BYTES as i32, broken);
    program.store(Width::Double, R10, LENGTH, R4);
    program.load(Width::Word, R2, R6, DATA);
    program.load(Width::Word, R3, R6, DATA_END);
    program.copy(R0, R3);
    program.subtract(R0, R2);
    program.load(Width::Double, R1, R7, sent::DUE as i16);
    program.load(Width::Word, R5, R7, sent::SLACK as i16);
    program.jump_if_word(R5, Condition::Equal, u32::MAX, on_time);
    program.add_register(R1, R5);
    program.jump_if_both(R8, Condition::Greater, R1, late);
    program.place(on_time);
    program.jump_if_both(R0, Condition::Equal, R4, sized);
    program.copy(R1, R6);
    program.copy(R2, R4);
    program.subtract(R2, R0);
    program.call(Helper::AdjustTail);
    program.jump_if(R0, Condition::NotEqual, 0, fail);
    program.load(Width::Word, R2, R6, DATA);
    program.load(Width::Word, R3, R6, DATA_END);
    program.load(Width::Double, R4, R10, LENGTH);
    program.place(sized);
    program.jump_if(R4, Condition::NotEqual, SHORT_BYTES as i32, long);
    reach(program, SHORT_BYTES, fail);
    copy_short(program, (R2, 0), (R7, sent::BYTES));
    program.jump(written);
    program.place(long);
    program.copy(R1, R6);
    program.set(R2, 0);
    program.copy(R3, R7);
    program.add(R3, sent::BYTES as i32);
    program.call(Helper::StoreBytes);
    program.jump_if(R0, Condition::NotEqual, 0, fail);
    program.place(written);
    stamp(program, go, fail);

    program.place(go);
    settle(program, parts.results);
    program.load_map(R1, parts.interfaces);
    program.load(Width::Double, R2, R10, SLOT);
    program.set(R3, DROP);
    program.call(Helper::RedirectMap);
    program.exit();

    for (label, result) in [(late, TOO_LATE), (fail, 0)] {
        program.place(label);
        program.set(R8, result as i32);
        settle(program, parts.results);
        program.jump(drop);
    }
    // The port never writes such a length. Skips all frames, because the next one is unknown.
    program.place(broken);
    program.load(Width::Double, R3, R9, control::PRODUCED as i16);
    program.store(Width::Double, R9, control::CONSUMED as i16, R3);
    program.jump(drop);
}

/// Writes number and send time into the frame and completes its checksum, unless the record has
/// none.
fn stamp(program: &mut Assembly, go: Label, fail: Label) {
    let nonzero = program.label("nonzero");
    program.load(Width::Half, R4, R7, sent::STAMP_AT as i16);
    program.jump_if(R4, Condition::Equal, 0, go);
    program.jump_if(R4, Condition::Greater, SENT_BYTES_MAX as i32, fail);
    program.load(Width::Word, R2, R6, DATA);
    program.load(Width::Word, R3, R6, DATA_END);
    program.add_register(R2, R4);
    program.copy(R1, R2);
    program.add(R1, 16);
    program.jump_if_both(R1, Condition::Greater, R3, fail);

    program.load(Width::Double, R4, R7, sent::NUMBER as i16);
    program.load(Width::Double, R0, R7, sent::KEY as i16);
    program.compute_both(R0, Operation::Xor, R4);
    mix(program);
    program.load(Width::Double, R1, R7, sent::SEED as i16);
    program.compute_both(R0, Operation::Xor, R1);
    program.copy(R5, R8);
    program.shift_left(R5, 16);
    program.copy(R1, R5);
    program.compute(R1, Operation::ShiftRight, 16);
    program.compute_both(R0, Operation::Xor, R1);
    mix(program);
    program.compute(R0, Operation::ShiftRight, 48);
    program.compute_both(R5, Operation::Or, R0);

    program.load(Width::Word, R0, R7, sent::SUM as i16);
    for number in [R4, R5] {
        program.copy(R1, number);
        program.compute(R1, Operation::ShiftRight, 32);
        program.add_register(R0, R1);
        program.copy(R1, number);
        program.and_word(R1, u32::MAX);
        program.add_register(R0, R1);
    }
    for _ in 0..3 {
        program.copy(R1, R0);
        program.compute(R1, Operation::ShiftRight, 16);
        program.and_word(R0, 0xffff);
        program.add_register(R0, R1);
    }
    program.compute(R0, Operation::Xor, 0xffff);
    program.jump_if(R0, Condition::NotEqual, 0, nonzero);
    program.load(Width::Word, R0, R7, sent::ZERO as i16);
    program.place(nonzero);

    program.network_double(R4);
    program.store(Width::Double, R2, 0, R4);
    program.network_double(R5);
    program.store(Width::Double, R2, 8, R5);
    program.load(Width::Half, R4, R7, sent::CHECKSUM_AT as i16);
    program.jump_if(R4, Condition::Equal, 0, go);
    program.jump_if(R4, Condition::Greater, SENT_BYTES_MAX as i32, fail);
    program.load(Width::Word, R2, R6, DATA);
    program.add_register(R2, R4);
    program.copy(R1, R2);
    program.add(R1, 2);
    program.jump_if_both(R1, Condition::Greater, R3, fail);
    program.network_half(R0);
    program.store(Width::Half, R2, 0, R0);
}

/// Applies the finalizer of SplitMix to R0; changes R1.
fn mix(program: &mut Assembly) {
    const STEPS: [(i32, u64); 2] = [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)];
    program.set_wide(R1, 0x9e37_79b9_7f4a_7c15);
    program.add_register(R0, R1);
    for (bits, factor) in STEPS {
        program.copy(R1, R0);
        program.compute(R1, Operation::ShiftRight, bits);
        program.compute_both(R0, Operation::Xor, R1);
        program.set_wide(R1, factor);
        program.compute_both(R0, Operation::Multiply, R1);
    }
    program.copy(R1, R0);
    program.compute(R1, Operation::ShiftRight, 31);
    program.compute_both(R0, Operation::Xor, R1);
}

/// Stores the frame's result, which is R8, and moves on to its next repetition or to the next
/// record.
fn settle(program: &mut Assembly, results: i32) {
    let names = ["last", "exact", "settled"];
    let [last, exact, settled] = names.map(|name| program.label(name));
    program.load(Width::Double, R2, R9, control::DONE as i16);
    program.copy(R3, R2);
    program.and_word(R3, RESULTS as u32 - 1);
    program.shift_left(R3, 3);
    program.load(Width::Double, R4, R10, SLOT);
    program.compute(R4, Operation::Multiply, 8 * RESULTS as i32);
    program.load_map_value(R1, results, 0);
    program.add_register(R1, R3);
    program.add_register(R1, R4);
    program.store(Width::Double, R1, 0, R8);
    program.load(Width::Word, R1, R7, sent::FRAMES as i16);
    program.jump_if(R1, Condition::NotGreater, 1, last);
    program.add(R1, -1);
    program.store(Width::Word, R7, sent::FRAMES as i16, R1);
    program.load(Width::Double, R1, R7, sent::NUMBER as i16);
    program.add(R1, 1);
    program.store(Width::Double, R7, sent::NUMBER as i16, R1);
    program.load(Width::Double, R1, R7, sent::DUE as i16);
    program.load(Width::Double, R3, R7, sent::GAP as i16);
    program.add_register(R1, R3);
    program.load(Width::Double, R3, R7, sent::GAP_CARRIED as i16);
    program.load(Width::Double, R4, R7, sent::GAP_REST as i16);
    program.add_register(R3, R4);
    program.load(Width::Double, R4, R7, sent::GAP_PARTS as i16);
    program.jump_if_both(R3, Condition::Less, R4, exact);
    program.subtract(R3, R4);
    program.add(R1, 1);
    program.place(exact);
    program.store(Width::Double, R7, sent::GAP_CARRIED as i16, R3);
    program.store(Width::Double, R7, sent::DUE as i16, R1);
    program.jump(settled);
    program.place(last);
    program.load(Width::Double, R1, R10, LENGTH);
    pad(program, R1, sent::BYTES);
    program.load(Width::Double, R3, R9, control::CONSUMED as i16);
    program.add_register(R3, R1);
    program.store(Width::Double, R9, control::CONSUMED as i16, R3);
    program.place(settled);
    program.add(R2, 1);
    program.store(Width::Double, R9, control::DONE as i16, R2);
}

/// Turns the length of a frame into that of its record.
fn pad(program: &mut Assembly, length: Register, at: usize) {
    program.add(length, at as i32 + 7);
    program.and_word(length, !7);
}

/// Jumps to `otherwise` unless the frame from R2 to R3 has this many bytes; changes R4.
fn reach(program: &mut Assembly, bytes: usize, otherwise: Label) {
    program.copy(R4, R2);
    program.add(R4, bytes as i32);
    program.jump_if_both(R4, Condition::Greater, R3, otherwise);
}

/// Copies [`SHORT_BYTES`] bytes between two addresses with their offsets; changes R0.
fn copy_short(program: &mut Assembly, to: (Register, usize), from: (Register, usize)) {
    let whole = SHORT_BYTES / 8 * 8;
    for at in (0..whole).step_by(8) {
        program.load(Width::Double, R0, from.0, (from.1 + at) as i16);
        program.store(Width::Double, to.0, (to.1 + at) as i16, R0);
    }
    program.load(Width::Word, R0, from.0, (from.1 + whole) as i16);
    program.store(Width::Word, to.0, (to.1 + whole) as i16, R0);
}
