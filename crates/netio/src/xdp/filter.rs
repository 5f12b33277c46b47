//! A capture filter in the XDP program: frames that no entry captures go to the network stack and
//! cost the capture nothing.
//!
//! - The program decides about Ethernet frames with up to two tags and IPv4, or IPv6 without
//!   extension headers, whose lengths agree.
//! - It delivers every other frame, and all frames that an entry captures. The receiver applies the
//!   filter again, so the combined decision is that of [`packet::filter`] alone.
//! - Counters are only for frames that the program does not deliver, by entry.
//!
//! Registers: R6 is the context, R7 the time, R8 the protocol, R9 the IP version or 0.

use packet::filter::{Entry, Verdict, Version};

use Register::{R0, R1, R2, R3, R4, R5, R6, R8, R9, R10};
use ebpf::{Assembly, Condition, Label, Register, Width};

/// Maximum number of entries of one program; the receiver decides about the others.
pub(super) const ENTRIES_MAX: usize = 128;

/// Offsets in `struct xdp_md`: start and end of the frame.
const DATA: i16 = 0;
const DATA_END: i16 = 4;

// Stack offsets of the fields read from the frame.
const SOURCE: i16 = -16;
const DESTINATION: i16 = -32;
const PORTS: i16 = -40;
const HAS_PORTS: i16 = -36;
const FRAME_BYTES: i16 = -48;
const TRANSPORT_BYTES: i16 = -56;

/// Value of R8 for no protocol.
const NO_PROTOCOL: i32 = 256;

/// Jump targets of the decision.
#[derive(Clone, Copy)]
pub(super) struct FilterDecision {
    /// Delivers the frame.
    pub up: Label,
    /// Passes the frame to the network stack.
    pub down: Label,
}

/// Returns whether these entries can drop any frame.
pub(super) fn keeps_back(entries: &[Entry]) -> bool {
    let decisive = entries.iter().position(|entry| *entry == Entry::any(entry.verdict));
    let seen = &entries[..decisive.map_or(entries.len(), |place| place + 1).min(ENTRIES_MAX)];
    let falls_through = decisive.is_none() && entries.len() <= ENTRIES_MAX;
    falls_through || seen.iter().any(|entry| entry.verdict == Verdict::Drop)
}

/// Returns the number of counters for a program of this many entries: frames and bytes per entry,
/// and of frames that match none.
pub(super) fn counters(entries: usize) -> usize {
    2 * (entries.min(ENTRIES_MAX) + 1)
}

/// Appends the instructions of the filter; the counters are in the map with this descriptor.
///
/// Nothing is appended after an entry that decides about every frame, because the kernel rejects
/// unreachable instructions.
pub(super) fn decide(program: &mut Assembly, entries: &[Entry], map: i32, ways: FilterDecision) {
    let judge = program.label("judge");
    read(program, ways.up, judge);
    program.place(judge);
    for (place, entry) in entries.iter().take(ENTRIES_MAX).enumerate() {
        let next = program.label("next");
        compare(program, entry, next);
        if entry.verdict == Verdict::Drop {
            count(program, map, place);
            program.jump(ways.down);
        } else {
            program.jump(ways.up);
        }
        if *entry == Entry::any(entry.verdict) {
            return;
        }
        program.place(next);
    }
    if entries.len() > ENTRIES_MAX {
        program.jump(ways.up);
    } else {
        count(program, map, entries.len());
        program.jump(ways.down);
    }
}

fn count(program: &mut Assembly, map: i32, place: usize) {
    program.load_map_value(R1, map, 16 * place as i32);
    program.set(R0, 1);
    program.atomic_add(R1, 0, R0);
    program.load(Width::Double, R0, R10, FRAME_BYTES);
    program.atomic_add(R1, 8, R0);
}

/// Jumps to `next` unless the fields match the entry.
fn compare(program: &mut Assembly, entry: &Entry, next: Label) {
    if let Some(version) = entry.version() {
        program.jump_if(R9, Condition::NotEqual, number(version), next);
    }
    if let Some(protocol) = entry.protocol {
        program.jump_if(R9, Condition::Equal, 0, next);
        program.jump_if(R8, Condition::NotEqual, i32::from(protocol), next);
    }
    for (network, at) in [(entry.source, SOURCE), (entry.destination, DESTINATION)] {
        let Some(network) = network else { continue };
        let words = if network.version() == Version::V4 { 1 } else { 4 };
        let word = |bits: u128, place: usize| {
            let bits = if words == 1 { bits << 96 } else { bits };
            u32::from_ne_bytes(((bits >> (96 - 32 * place)) as u32).to_be_bytes())
        };
        for place in 0..words {
            let (value, mask) = (word(network.value(), place), word(network.mask(), place));
            same(program, Width::Word, at + 4 * place as i16, value, mask, next);
        }
    }
    let ports = [(entry.source_port, PORTS), (entry.destination_port, PORTS + 2)];
    for (port, at) in ports {
        let Some(port) = port else { continue };
        program.load(Width::Word, R0, R10, HAS_PORTS);
        program.jump_if(R0, Condition::Equal, 0, next);
        let half = |bits: u16| u32::from(u16::from_ne_bytes(bits.to_be_bytes()));
        same(program, Width::Half, at, half(port.value()), half(port.mask()), next);
    }
}

/// Jumps to `next` unless the masked bits on the stack have this value.
fn same(program: &mut Assembly, width: Width, at: i16, value: u32, mask: u32, next: Label) {
    if mask == 0 {
        return;
    }
    program.load(width, R0, R10, at);
    program.and_word(R0, mask);
    program.jump_if_word(R0, Condition::NotEqual, value, next);
}

fn number(version: Version) -> i32 {
    match version {
        Version::V4 => 4,
        Version::V6 => 6,
    }
}

/// Reads the fields that entries match, and continues at `judge`, or at `unsure` for a frame that
/// is not plain.
fn read(program: &mut Assembly, unsure: Label, judge: Label) {
    let [v4, v6, transport] = ["v4", "v6", "transport"].map(|name| program.label(name));
    program.load(Width::Word, R2, R6, DATA);
    program.load(Width::Word, R3, R6, DATA_END);
    program.copy(R0, R3);
    program.subtract(R0, R2);
    program.store(Width::Double, R10, FRAME_BYTES, R0);
    program.set(R9, 0);
    program.set(R8, NO_PROTOCOL);
    // The verifier requires that fields which are not read are initialized.
    for at in [SOURCE, SOURCE + 8, DESTINATION, DESTINATION + 8, PORTS] {
        program.store_number(Width::Double, R10, at, 0);
    }
    read_link(program, unsure, judge, [v4, v6]);
    program.place(v4);
    read_ipv4(program, unsure, judge);
    program.jump(transport);
    program.place(v6);
    read_ipv6(program, unsure, judge);
    program.place(transport);
    read_ports(program, unsure, judge);
}

/// Moves R4 to the payload after the tags.
fn read_link(program: &mut Assembly, unsure: Label, judge: Label, [v4, v6]: [Label; 2]) {
    const TAGS: [i32; 3] = [0x8100, 0x88a8, 0x9100];
    let network = program.label("network");
    program.copy(R4, R2);
    program.add(R4, 14);
    for depth in 0..3 {
        program.jump_if_both(R4, Condition::Greater, R3, unsure);
        program.load(Width::Half, R5, R4, -2);
        program.network_half(R5);
        if depth == 2 {
            break;
        }
        let tag = program.label("tag");
        TAGS.iter().for_each(|kind| program.jump_if(R5, Condition::Equal, *kind, tag));
        program.jump(network);
        program.place(tag);
        program.add(R4, 4);
    }
    program.place(network);
    program.jump_if(R5, Condition::Equal, 0x0800, v4);
    program.jump_if(R5, Condition::Equal, 0x86dd, v6);
    // A third tag, or 802.1ah.
    for kind in TAGS.iter().chain(&[0x88e7]) {
        program.jump_if(R5, Condition::Equal, *kind, unsure);
    }
    // Any other type; smaller values are IEEE 802.3 lengths.
    program.jump_if(R5, Condition::Greater, 0x5ff, judge);
    program.jump(unsure);
}

/// Moves R4 from the IPv4 header to its payload.
fn read_ipv4(program: &mut Assembly, unsure: Label, judge: Label) {
    let has_length = program.label("has_length");
    reach(program, R4, 20, unsure);
    program.load(Width::Byte, R0, R4, 0);
    program.copy(R5, R0);
    program.and_word(R5, 0xf0);
    program.jump_if(R5, Condition::NotEqual, 0x40, unsure);
    program.and_word(R0, 0x0f);
    program.jump_if(R0, Condition::Greater, 4, has_length);
    program.jump(unsure);
    program.place(has_length);
    program.shift_left(R0, 2);
    program.load(Width::Half, R5, R4, 2);
    program.network_half(R5);
    program.jump_if_both(R0, Condition::Greater, R5, unsure);
    program.copy(R1, R5);
    program.subtract(R1, R0);
    program.store(Width::Double, R10, TRANSPORT_BYTES, R1);
    program.copy(R1, R4);
    program.subtract(R1, R2);
    program.add_register(R1, R5);
    program.load(Width::Double, R5, R10, FRAME_BYTES);
    program.jump_if_both(R1, Condition::Greater, R5, unsure);
    program.set(R9, number(Version::V4));
    program.load(Width::Byte, R8, R4, 9);
    move_words(program, 12, SOURCE, 1);
    move_words(program, 16, DESTINATION, 1);
    program.load(Width::Half, R5, R4, 6);
    program.network_half(R5);
    program.and_word(R5, 0x1fff);
    program.jump_if(R5, Condition::NotEqual, 0, judge);
    program.add_register(R4, R0);
}

/// Moves R4 from the IPv6 header to its payload.
fn read_ipv6(program: &mut Assembly, unsure: Label, judge: Label) {
    reach(program, R4, 40, unsure);
    program.load(Width::Byte, R0, R4, 0);
    program.and_word(R0, 0xf0);
    program.jump_if(R0, Condition::NotEqual, 0x60, unsure);
    program.load(Width::Half, R5, R4, 4);
    program.network_half(R5);
    program.store(Width::Double, R10, TRANSPORT_BYTES, R5);
    program.copy(R1, R4);
    program.subtract(R1, R2);
    program.add(R1, 40);
    program.add_register(R1, R5);
    program.load(Width::Double, R0, R10, FRAME_BYTES);
    program.jump_if_both(R1, Condition::Greater, R0, unsure);
    program.set(R9, number(Version::V6));
    program.load(Width::Byte, R8, R4, 6);
    move_words(program, 8, SOURCE, 4);
    move_words(program, 24, DESTINATION, 4);
    program.add(R4, 40);
    program.jump_if(R8, Condition::Equal, 58, judge);
    let has_ports = program.label("has_ports");
    [6, 17, 132].iter().for_each(|it| program.jump_if(R8, Condition::Equal, *it, has_ports));
    program.jump(unsure);
    program.place(has_ports);
}

/// Reads the ports at R4 if the protocol has ports; the transport header must be complete.
fn read_ports(program: &mut Assembly, unsure: Label, judge: Label) {
    let known = program.label("known");
    for (protocol, bytes) in [(6, 20), (17, 8), (132, 12)] {
        program.set(R5, bytes);
        program.jump_if(R8, Condition::Equal, protocol, known);
    }
    program.jump(judge);
    program.place(known);
    program.load(Width::Double, R0, R10, TRANSPORT_BYTES);
    program.jump_if_both(R5, Condition::Greater, R0, unsure);
    reach(program, R4, 4, unsure);
    program.load(Width::Word, R1, R4, 0);
    program.store(Width::Word, R10, PORTS, R1);
    program.store_number(Width::Word, R10, HAS_PORTS, 1);
}

/// Jumps to `unsure` unless the frame has this many bytes after the position in the register.
fn reach(program: &mut Assembly, from: Register, bytes: i32, unsure: Label) {
    program.copy(R1, from);
    program.add(R1, bytes);
    program.jump_if_both(R1, Condition::Greater, R3, unsure);
}

/// Copies words from R4 to the stack.
fn move_words(program: &mut Assembly, from: i16, to: i16, words: i16) {
    for place in 0..words {
        program.load(Width::Word, R1, R4, from + 4 * place);
        program.store(Width::Word, R10, to + 4 * place, R1);
    }
}
