//! Changing a frame by the rewrite of its entry.
//!
//! First come all checks after which a frame may escape. Checksums change by the difference of the
//! changed words, as in [`dataplane::rewrite`].

use packet::header::{ethernet, ipv4, tcp, udp};

use super::*;
use crate::switch::layout::rewrite::{self, *};

/// Protocol number of SCTP, whose checksum is no Internet checksum.
const SCTP: i32 = ipv4::PROTOCOL_SCTP as i32;

/// Offset of the type in an untagged frame.
const TYPE_AT: i16 = ethernet::TYPE.start as i16;

/// Bytes of a VLAN tag.
const TAG_BYTES: i16 = 4;

/// Bytes of an IPv4 header without options.
const IPV4: i16 = ipv4::HEADER_BYTES as i16;

/// Difference of the word with the TTL when the TTL is decremented.
const ONE_TTL: i32 = -0x100;

impl Writer<'_> {
    /// Changes the frame by the rewrite with the index in R8, and sends it.
    pub(super) fn change(&mut self) {
        let Labels { escape, change, back, send_changed, .. } = self.labels;
        let own = self.own.1 as i32;
        let [to_ingress, ready] = ["to_ingress", "ready"].map(|name| self.program.label(name));
        self.program.place(change);
        self.program.store(Width::Word, R10, INDEX, R8);
        self.look_up(self.maps.rewrites, INDEX, escape);
        let program = &mut *self.program;
        // R8 is the rewrite from here on.
        program.copy(R8, R0);
        // A TTL of zero matters even if the frame goes nowhere.
        self.check_ip();
        let program = &mut *self.program;
        program.load(Width::Word, R1, R8, THEN);
        program.copy(R2, R1);
        program.compute(R2, Operation::ShiftRight, action::KIND_SHIFT as i32);
        program.and_word(R1, 0xffff);
        program.jump_if(R2, Condition::Equal, action::IN_PORT as i32, to_ingress);
        program.jump_if(R1, Condition::Equal, own, back);
        program.jump(ready);
        program.place(to_ingress);
        program.set(R1, own);
        program.place(ready);
        program.store(Width::Double, R10, TO, R1);
        self.check_sends();
        self.change_tag();
        self.change_addresses();
        self.change_ip();
        self.program.jump(send_changed);
    }

    /// Jumps unless the rewrite has one of these flags. Uses R1.
    fn unless(&mut self, flags: u32, to: Label) {
        let program = &mut *self.program;
        program.load(Width::Word, R1, R8, rewrite::FLAGS);
        program.and_word(R1, flags);
        program.jump_if(R1, Condition::Equal, 0, to);
    }

    /// Sets a register to the Ethernet type.
    fn ethernet_type(&mut self, into: Register) {
        self.program.load(Width::Double, into, R9, key(3));
        self.program.compute(into, Operation::ShiftRight, 48);
    }

    /// Sets a register to the IP protocol.
    fn protocol(&mut self, into: Register) {
        self.program.load(Width::Double, into, R9, key(3));
        self.program.compute(into, Operation::ShiftRight, 32);
        self.program.and_word(into, 0xff);
    }

    /// Sets R3 to the start of the frame and R4 to its end. Uses R2.
    fn reload(&mut self) {
        let program = &mut *self.program;
        program.load(Width::Double, R2, R10, CONTEXT);
        program.load(Width::Word, R3, R2, DATA);
        program.load(Width::Word, R4, R2, DATA_END);
    }

    /// Jumps unless the frame has this many bytes after a register; R4 is its end. Uses R2.
    fn need(&mut self, from: Register, bytes: i16, otherwise: Label) {
        let program = &mut *self.program;
        program.copy(R2, from);
        program.add(R2, bytes.into());
        program.jump_if_both(R2, Condition::Greater, R4, otherwise);
    }

    /// Sets R3 to the IPv4 header and R4 to the end of the frame. Uses R2.
    fn reach_network(&mut self, otherwise: Label) {
        self.reload();
        let program = &mut *self.program;
        program.load(Width::Double, R2, R9, cpu::NETWORK);
        program.and_word(R2, 0x3f);
        program.add_register(R3, R2);
        self.need(R3, IPV4, otherwise);
    }

    /// Lets frames escape whose IP packet cannot be changed here.
    fn check_ip(&mut self) {
        let escape = self.labels.escape;
        let [checked, no_sctp] = ["checked", "no_sctp"].map(|name| self.program.label(name));
        self.unless(CHANGES_IP, checked);
        self.ethernet_type(R1);
        self.program.jump_if(R1, Condition::Equal, ethernet::TYPE_IPV6.into(), escape);
        self.program.jump_if(R1, Condition::NotEqual, ethernet::TYPE_IPV4.into(), checked);
        self.unless(CHANGES_TCP | CHANGES_UDP, no_sctp);
        self.protocol(R1);
        self.program.jump_if(R1, Condition::Equal, SCTP, escape);
        self.program.place(no_sctp);
        self.unless(DECREMENTS, checked);
        self.reach_network(escape);
        self.program.load(Width::Byte, R1, R3, ipv4::TTL_AT as i16);
        self.program.jump_if(R1, Condition::NotGreater, 1, escape);
        self.program.place(checked);
    }

    fn change_tag(&mut self) {
        let Labels { escape, broken, .. } = self.labels;
        let [done, tagged, push, set] =
            ["done", "tagged", "push", "set"].map(|name| self.program.label(name));
        self.unless(SETS_TAG | NEEDS_TAG | PUSHES | POPS, done);
        let program = &mut *self.program;
        // R5 becomes the flags, and R1 the control information of the tag, or zero.
        program.load(Width::Word, R5, R8, rewrite::FLAGS);
        program.load(Width::Double, R1, R9, key(1));
        program.compute(R1, Operation::ShiftRight, 48);
        program.jump_if(R1, Condition::NotEqual, 0, tagged);
        program.jump_if(R5, Condition::CommonBit, (PUSHES | NEEDS_TAG) as i32, push);
        program.jump(done);
        program.place(tagged);
        program.jump_if(R5, Condition::CommonBit, PUSHES as i32, push);
        program.jump_if(R5, Condition::CommonBit, (SETS_TAG | NEEDS_TAG) as i32, set);

        // Pops the tag.
        self.reload();
        self.need(R3, TYPE_AT + TAG_BYTES + 2, broken);
        self.move_addresses(0, TAG_BYTES);
        self.move_start(TAG_BYTES, broken);
        self.program.jump(done);

        self.program.place(push);
        let program = &mut *self.program;
        program.and_word(R1, 0xefff);
        self.replace_bits(R1, TAG);
        self.program.store(Width::Double, R9, cpu::CONTROL, R1);
        self.move_start(-TAG_BYTES, escape);
        self.reload();
        self.need(R3, TYPE_AT + TAG_BYTES + 2, broken);
        self.move_addresses(TAG_BYTES, 0);
        let program = &mut *self.program;
        program.load(Width::Half, R1, R8, TAG_TYPE);
        program.network_half(R1);
        program.store(Width::Half, R3, TYPE_AT, R1);
        program.load(Width::Double, R1, R9, cpu::CONTROL);
        program.network_half(R1);
        program.store(Width::Half, R3, TYPE_AT + 2, R1);
        program.jump(done);

        self.program.place(set);
        self.reload();
        self.need(R3, TYPE_AT + TAG_BYTES + 2, broken);
        let program = &mut *self.program;
        program.load(Width::Half, R1, R3, TYPE_AT + 2);
        program.network_half(R1);
        self.replace_bits(R1, TAG);
        let program = &mut *self.program;
        program.network_half(R1);
        program.store(Width::Half, R3, TYPE_AT + 2, R1);
        program.place(done);
    }

    /// Copies both Ethernet addresses from one offset after R3 to another. Uses R1 and R2.
    fn move_addresses(&mut self, from: i16, to: i16) {
        let program = &mut *self.program;
        program.load(Width::Double, R1, R3, from);
        program.load(Width::Word, R2, R3, from + 8);
        program.store(Width::Double, R3, to, R1);
        program.store(Width::Word, R3, to + 8, R2);
    }

    /// Moves the start of the frame, and notes the difference of its length. Uses R0 to R5.
    fn move_start(&mut self, by: i16, failed: Label) {
        let program = &mut *self.program;
        program.load(Width::Double, R1, R10, CONTEXT);
        program.set(R2, by.into());
        program.call(Helper::AdjustHead);
        program.jump_if(R0, Condition::NotEqual, 0, failed);
        program.load(Width::Double, R1, R9, cpu::NETWORK);
        program.add(R1, (-by).into());
        program.store(Width::Double, R9, cpu::NETWORK, R1);
        // For the counters of the egress port.
        program.load(Width::Double, R2, R10, TO);
        program.and_word(R2, crate::ports::PORTS_MAX as u32 - 1);
        program.compute(R2, Operation::Multiply, cpu::PORT_BYTES as i32);
        program.add_register(R2, R9);
        program.load(Width::Double, R1, R2, cpu::PORTS as i16 + cpu::GROWTH as i16);
        program.add(R1, (-by).into());
        program.store(Width::Double, R2, cpu::PORTS as i16 + cpu::GROWTH as i16, R1);
    }

    /// Replaces bits of a 16-bit number by those of the rewrite at an offset. Uses R2.
    fn replace_bits(&mut self, number: Register, at: i16) {
        let program = &mut *self.program;
        program.load(Width::Half, R2, R8, at);
        program.compute_both(number, Operation::And, R2);
        program.load(Width::Half, R2, R8, at + 2);
        program.compute_both(number, Operation::Or, R2);
    }

    /// Sets the Ethernet addresses.
    fn change_addresses(&mut self) {
        let done = self.program.label("addresses");
        self.unless(SETS_DST | SETS_SRC, done);
        self.reload();
        self.need(R3, TYPE_AT, self.labels.broken);
        for (flag, from, to) in [(SETS_DST, ETH_DST, 0), (SETS_SRC, ETH_SRC, 6)] {
            let skip = self.program.label("skip");
            self.unless(flag, skip);
            let program = &mut *self.program;
            program.load(Width::Word, R1, R8, from);
            program.store(Width::Word, R3, to, R1);
            program.load(Width::Half, R1, R8, from + 4);
            program.store(Width::Half, R3, to + 4, R1);
            program.place(skip);
        }
        self.program.place(done);
    }

    /// Changes IPv4, TCP and UDP. R0 sums the changes of the IPv4 header, R5 those that the
    /// transport checksum covers; both are differences of ones' complement numbers.
    fn change_ip(&mut self) {
        let broken = self.labels.broken;
        let done = self.program.label("done");
        self.unless(CHANGES_IP, done);
        self.ethernet_type(R1);
        self.program.jump_if(R1, Condition::NotEqual, ethernet::TYPE_IPV4.into(), done);
        self.reach_network(broken);
        let program = &mut *self.program;
        program.copy(R6, R3);
        program.set(R0, 0);
        program.set(R5, 0);
        let offsets = [ipv4::SOURCE_AT, ipv4::DESTINATION_AT].map(|at| at as i16);
        for (at, bits) in offsets.into_iter().zip(ADDRESSES) {
            self.change_address(at, bits);
        }
        self.change_half(0, SERVICE, R0);
        self.change_half(ipv4::TTL_AT as i16, TTL, R0);
        let not_decremented = self.program.label("not_decremented");
        self.unless(DECREMENTS, not_decremented);
        let program = &mut *self.program;
        program.load(Width::Half, R1, R6, ipv4::TTL_AT as i16);
        program.network_half(R1);
        program.copy(R2, R1);
        program.add(R2, ONE_TTL);
        self.put_half(ipv4::TTL_AT as i16, R0);
        self.program.place(not_decremented);
        self.update(ipv4::CHECKSUM_AT as i16, R0, false);
        self.change_transport(done);
        self.program.place(done);
    }

    /// Changes ports and the checksum of TCP and UDP.
    fn change_transport(&mut self, done: Label) {
        let broken = self.labels.broken;
        let [tcp, udp] = ["tcp", "udp"].map(|name| self.program.label(name));
        self.protocol(R1);
        self.program.jump_if(R1, Condition::Equal, ipv4::PROTOCOL_TCP.into(), tcp);
        self.program.jump_if(R1, Condition::Equal, ipv4::PROTOCOL_UDP.into(), udp);
        self.program.jump(done);
        let kinds = [
            (tcp, CHANGES_TCP, tcp::CHECKSUM_AT as i16, false),
            (udp, CHANGES_UDP, udp::CHECKSUM_AT as i16, true),
        ];
        for (label, flag, checksum, is_udp) in kinds {
            let sum = self.program.label("sum");
            self.program.place(label);
            self.need(R6, IPV4 + checksum + 2, broken);
            self.unless(flag, sum);
            self.change_half(IPV4, PORTS[0], R5);
            self.change_half(IPV4 + 2, PORTS[1], R5);
            self.program.place(sum);
            self.update(IPV4 + checksum, R5, is_udp);
            self.program.jump(done);
        }
    }

    /// Changes an IPv4 address at R6 + `at`, and adds the difference to both sums. Uses R1 to R3.
    fn change_address(&mut self, at: i16, bits: i16) {
        let same = self.program.label("same");
        let program = &mut *self.program;
        program.load(Width::Word, R1, R6, at);
        program.network_word(R1);
        program.load(Width::Word, R2, R8, bits);
        program.compute_both(R2, Operation::And, R1);
        program.load(Width::Word, R3, R8, bits + 4);
        program.compute_both(R2, Operation::Or, R3);
        program.jump_if_both(R1, Condition::Equal, R2, same);
        program.copy(R3, R2);
        program.network_word(R3);
        program.store(Width::Word, R6, at, R3);
        program.compute_word(R1, Operation::Xor, u32::MAX);
        program.add_register(R1, R2);
        program.add_register(R0, R1);
        program.add_register(R5, R1);
        program.place(same);
    }

    /// Changes 16 bits at R6 + `at`, and adds the difference to a sum. Uses R1 to R3.
    fn change_half(&mut self, at: i16, bits: i16, sum: Register) {
        let same = self.program.label("same");
        let program = &mut *self.program;
        program.load(Width::Half, R1, R6, at);
        program.network_half(R1);
        program.load(Width::Half, R2, R8, bits);
        program.compute_both(R2, Operation::And, R1);
        program.load(Width::Half, R3, R8, bits + 2);
        program.compute_both(R2, Operation::Or, R3);
        program.jump_if_both(R1, Condition::Equal, R2, same);
        self.put_half(at, sum);
        self.program.place(same);
    }

    /// Stores R2 at R6 + `at`, and adds its difference to the old value R1 to a sum. Uses R3.
    fn put_half(&mut self, at: i16, sum: Register) {
        let program = &mut *self.program;
        program.copy(R3, R2);
        program.network_half(R3);
        program.store(Width::Half, R6, at, R3);
        program.compute_word(R1, Operation::Xor, 0xffff);
        program.add_register(R1, R2);
        program.add_register(sum, R1);
    }

    /// Updates the checksum at R6 + `at` by a sum of differences. In UDP, a checksum of zero means
    /// none. Uses R1 and R2.
    fn update(&mut self, at: i16, sum: Register, is_udp: bool) {
        let [same, store] = ["same", "store"].map(|name| self.program.label(name));
        let program = &mut *self.program;
        program.jump_if(sum, Condition::Equal, 0, same);
        program.load(Width::Half, R1, R6, at);
        if is_udp {
            program.jump_if(R1, Condition::Equal, 0, same);
        }
        program.network_half(R1);
        program.compute_word(R1, Operation::Xor, 0xffff);
        program.add_register(R1, sum);
        // The sum is below 2^37.
        for _ in 0..4 {
            program.copy(R2, R1);
            program.compute(R2, Operation::ShiftRight, 16);
            program.and_word(R1, 0xffff);
            program.add_register(R1, R2);
        }
        program.compute_word(R1, Operation::Xor, 0xffff);
        if is_udp {
            program.jump_if(R1, Condition::NotEqual, 0, store);
            program.set(R1, 0xffff);
        }
        program.place(store);
        program.network_half(R1);
        program.store(Width::Half, R6, at, R1);
        program.place(same);
    }
}
