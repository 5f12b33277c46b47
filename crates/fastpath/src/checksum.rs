//! Internet checksums in programs.
//!
//! Sums are over words in memory order, which does not matter for the folded sum (RFC 1071, section
//! 2).

use Register::{R0, R1, R2, R3, R4, R5, R8};
use ebpf::{Assembly, Condition, Label, Operation, Register, Width};
use packet::header::{ipv4, ipv6};

/// TCP, and the offset of its checksum.
const TCP: (i32, i16) = (6, 16);

/// UDP, and the offset of its checksum.
const UDP: (i32, i16) = (17, 6);

/// Maximum number of VLAN tags before the network header, as when checksums are completed.
const TAGS_MAX: usize = 2;

/// Folds the sum in R0, below 2^36, to 16 bits. Uses R1.
pub(crate) fn emit_fold(program: &mut Assembly) {
    let mut step = |bits: i32, mask: u32| {
        program.copy(R1, R0);
        program.compute(R1, Operation::ShiftRight, bits);
        program.and_word(R0, mask);
        program.add_register(R0, R1);
    };
    step(32, u32::MAX);
    (0..3).for_each(|_| step(16, 0xffff));
}

/// Decrements the TTL of the IPv4 header at an offset from R8, which is at least one, with an
/// incremental checksum (RFC 1624). Uses R0 and R1.
pub(crate) fn emit_decrement(header: i16, program: &mut Assembly) {
    let (ttl, checksum) = (header + ipv4::TTL_AT as i16, header + ipv4::CHECKSUM_AT as i16);
    program.load(Width::Byte, R1, R8, ttl);
    program.add(R1, -1);
    program.store(Width::Byte, R8, ttl, R1);
    program.load(Width::Half, R0, R8, checksum);
    program.compute_word(R0, Operation::Xor, 0xffff);
    // The ones' complement of one, in memory order.
    program.add(R0, 0xfffe);
    program.copy(R1, R0);
    program.compute(R1, Operation::ShiftRight, 16);
    program.add_register(R0, R1);
    program.compute_word(R0, Operation::Xor, 0xffff);
    program.store(Width::Half, R8, checksum, R0);
}

/// Lets frames escape whose TCP or UDP checksum is the sum of the pseudo-header: the sender left
/// the rest to hardware, which a redirected frame does not reach. Receiving in user space completes
/// such checksums.
///
/// R8 is the start of the frame, which has an Ethernet header, and R3 its end. Uses R0 to R5.
pub(crate) fn emit_partial(program: &mut Assembly, escape: Label) {
    let [network, v4, v6, fine] = ["network", "v4", "v6", "fine"].map(|name| program.label(name));
    program.copy(R4, R8);
    program.add(R4, 14);
    program.load(Width::Half, R5, R4, -2);
    program.network_half(R5);
    for _ in 0..TAGS_MAX {
        let tag = program.label("tag");
        program.jump_if(R5, Condition::Equal, 0x8100, tag);
        program.jump_if(R5, Condition::NotEqual, 0x88a8, network);
        program.place(tag);
        program.add(R4, 4);
        program.jump_if_both(R4, Condition::Greater, R3, fine);
        program.load(Width::Half, R5, R4, -2);
        program.network_half(R5);
    }
    program.place(network);
    program.jump_if(R5, Condition::Equal, 0x0800, v4);
    program.jump_if(R5, Condition::Equal, 0x86dd, v6);
    program.jump(fine);

    program.place(v4);
    reach(program, ipv4::HEADER_BYTES as i32, fine);
    program.load(Width::Byte, R2, R4, 0);
    program.load(Width::Byte, R5, R4, 9);
    program.load(Width::Word, R0, R4, 12);
    program.load(Width::Word, R1, R4, 16);
    program.add_register(R0, R1);
    // The payload is the total length without the header, of at most 60 bytes.
    program.and_word(R2, 0x0f);
    program.shift_left(R2, 2);
    program.load(Width::Half, R1, R4, 2);
    program.network_half(R1);
    program.subtract(R1, R2);
    program.network_half(R1);
    program.add_register(R0, R1);
    program.add_register(R4, R2);
    compare(program, fine, escape);

    program.place(v6);
    reach(program, ipv6::HEADER_BYTES as i32, fine);
    program.load(Width::Byte, R5, R4, 6);
    program.load(Width::Half, R0, R4, 4);
    for word in 0..8 {
        program.load(Width::Word, R1, R4, 8 + 4 * word);
        program.add_register(R0, R1);
    }
    program.add(R4, ipv6::HEADER_BYTES as i32);
    compare(program, fine, escape);
    program.place(fine);
}

/// Compares the checksum of the transport header at R4 with the sum in R0 and the protocol in R5.
fn compare(program: &mut Assembly, fine: Label, escape: Label) {
    let tcp = program.label("tcp");
    program.copy(R1, R5);
    program.network_half(R1);
    program.add_register(R0, R1);
    emit_fold(program);
    program.jump_if(R5, Condition::Equal, TCP.0, tcp);
    program.jump_if(R5, Condition::NotEqual, UDP.0, fine);
    for (_, at) in [UDP, TCP] {
        if at == TCP.1 {
            program.place(tcp);
        }
        reach(program, i32::from(at) + 2, fine);
        program.load(Width::Half, R1, R4, at);
        program.jump_if_both(R1, Condition::Equal, R0, escape);
        program.jump(fine);
    }
}

/// Jumps to `fine` unless the frame has this many bytes after R4. Uses R1.
fn reach(program: &mut Assembly, bytes: i32, fine: Label) {
    program.copy(R1, R4);
    program.add(R1, bytes);
    program.jump_if_both(R1, Condition::Greater, R3, fine);
}
