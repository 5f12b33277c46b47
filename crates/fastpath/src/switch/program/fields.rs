//! Reading the key of a frame.
//!
//! The key is that of [`dataplane::key`]. Frames with headers that are rare or contradict
//! themselves escape: more than two tags, IEEE 802.3, IPv4 options and fragments, and headers that
//! the frame or their lengths cut off.

use dataplane::key::VLAN_PRESENT;
use packet::header::{arp, ethernet, ipv4, vlan};

use super::*;

/// Hardware type, protocol type and address lengths of ARP for IPv4 over Ethernet.
const ARP_IPV4_OVER_ETHERNET: u64 = 0x0001_0800_0604;

/// Offset of the network header from the start of an untagged frame.
const NETWORK: i16 = ethernet::HEADER_BYTES as i16;

/// Bytes of an IPv4 header without options.
const IPV4: i16 = ipv4::HEADER_BYTES as i16;

/// Position of the Ethernet type in the last word of the key.
const TYPE_SHIFT: i32 = 48;

impl Writer<'_> {
    /// Stores the key. R8 is the start of the frame and R3 its end; R8 becomes the start of the
    /// frame without its tags.
    pub(super) fn read_fields(&mut self) {
        let Labels { escape, start, .. } = self.labels;
        let [tag, second, typed, ipv4, arp] =
            ["tag", "second", "typed", "ipv4", "arp"].map(|name| self.program.label(name));
        let program = &mut *self.program;
        program.load(Width::Double, R1, R8, 0);
        program.network_double(R1);
        program.compute(R1, Operation::ShiftRight, 16);
        program.set_wide(R2, u64::from(self.own.0) << 48);
        program.compute_both(R1, Operation::Or, R2);
        program.store(Width::Double, R9, key(0), R1);
        program.load(Width::Double, R5, R8, 6);
        program.network_double(R5);
        program.compute(R5, Operation::ShiftRight, 16);
        program.load(Width::Half, R2, R8, NETWORK - 2);
        program.network_half(R2);
        // R4 collects the last word, and R5 has the second one.
        program.set(R4, 0);
        program.jump_if(R2, Condition::Equal, ethernet::TYPE_IPV4.into(), typed);
        for tag_type in vlan::TAG_TYPES {
            program.jump_if(R2, Condition::Equal, tag_type.into(), tag);
        }
        program.jump(typed);

        program.place(tag);
        self.reach(NETWORK + 4);
        let program = &mut *self.program;
        program.load(Width::Half, R1, R8, NETWORK);
        program.network_half(R1);
        program.and_word(R1, u32::from(!vlan::DEI_MASK));
        program.compute(R1, Operation::Or, VLAN_PRESENT as i32);
        program.shift_left(R1, 48);
        program.compute_both(R5, Operation::Or, R1);
        program.load(Width::Half, R2, R8, NETWORK + 2);
        program.network_half(R2);
        program.add(R8, 4);
        for (tag_type, number) in vlan::TAG_TYPES.into_iter().zip(1..) {
            let other = program.label("other");
            program.jump_if(R2, Condition::NotEqual, tag_type.into(), other);
            program.set_wide(R4, number << 40);
            program.jump(second);
            program.place(other);
        }
        program.jump(typed);

        program.place(second);
        self.reach(NETWORK + 4);
        let program = &mut *self.program;
        program.load(Width::Half, R2, R8, NETWORK + 2);
        program.network_half(R2);
        program.add(R8, 4);
        for tag_type in vlan::TAG_TYPES {
            program.jump_if(R2, Condition::Equal, tag_type.into(), escape);
        }

        program.place(typed);
        program.store(Width::Double, R9, key(1), R5);
        program.load(Width::Double, R1, R10, CONTEXT);
        program.load(Width::Word, R5, R1, DATA);
        program.copy(R1, R8);
        program.subtract(R1, R5);
        program.add(R1, NETWORK.into());
        program.store(Width::Double, R9, cpu::NETWORK, R1);
        program.copy(R1, R2);
        program.shift_left(R1, TYPE_SHIFT);
        program.compute_both(R4, Operation::Or, R1);
        program.jump_if(R2, Condition::Equal, ethernet::TYPE_IPV4.into(), ipv4);
        program.jump_if(R2, Condition::Less, ethernet::TYPE_MIN.into(), escape);
        program.jump_if(R2, Condition::Equal, ethernet::TYPE_ARP.into(), arp);
        program.store(Width::Double, R9, key(3), R4);
        program.store_number(Width::Double, R9, key(2), 0);
        program.jump(start);

        program.place(arp);
        self.read_arp();
        self.program.place(ipv4);
        self.read_ipv4();
    }

    /// Lets the frame escape unless it has this many bytes after R8. Uses R1.
    fn reach(&mut self, bytes: i16) {
        let program = &mut *self.program;
        program.copy(R1, R8);
        program.add(R1, bytes.into());
        program.jump_if_both(R1, Condition::Greater, R3, self.labels.escape);
    }

    fn read_arp(&mut self) {
        let Labels { escape, start, .. } = self.labels;
        self.reach(NETWORK + arp::HEADER_BYTES as i16);
        let program = &mut *self.program;
        program.load(Width::Double, R1, R8, NETWORK);
        program.network_double(R1);
        program.copy(R2, R1);
        program.compute(R1, Operation::ShiftRight, 16);
        program.set_wide(R5, ARP_IPV4_OVER_ETHERNET);
        program.jump_if_both(R1, Condition::NotEqual, R5, escape);
        program.and_word(R2, 0xff);
        program.shift_left(R2, 32);
        program.compute_both(R4, Operation::Or, R2);
        program.load(Width::Word, R1, R8, NETWORK + arp::SENDER_IP_AT as i16);
        program.network_word(R1);
        program.shift_left(R1, 32);
        program.load(Width::Word, R2, R8, NETWORK + arp::TARGET_IP_AT as i16);
        program.network_word(R2);
        program.compute_both(R1, Operation::Or, R2);
        program.store(Width::Double, R9, key(2), R1);
        program.store(Width::Double, R9, key(3), R4);
        program.jump(start);
    }

    fn read_ipv4(&mut self) {
        let Labels { escape, start, .. } = self.labels;
        let [tcp, udp, icmp, ports, done] =
            ["tcp", "udp", "icmp", "ports", "done"].map(|name| self.program.label(name));
        self.reach(NETWORK + IPV4);
        let program = &mut *self.program;
        program.load(Width::Byte, R1, R8, NETWORK);
        program.jump_if(R1, Condition::NotEqual, 0x45, escape);
        // R0 becomes the total length, which is within the frame.
        program.load(Width::Half, R0, R8, NETWORK + 2);
        program.network_half(R0);
        program.jump_if(R0, Condition::Less, IPV4.into(), escape);
        program.copy(R1, R3);
        program.subtract(R1, R8);
        program.add(R1, -i32::from(NETWORK));
        program.jump_if_both(R0, Condition::Greater, R1, escape);
        program.load(Width::Half, R1, R8, NETWORK + 6);
        program.network_half(R1);
        program.and_word(R1, 0x3fff);
        program.jump_if(R1, Condition::NotEqual, 0, escape);
        program.load(Width::Double, R1, R8, NETWORK + ipv4::SOURCE_AT as i16);
        program.network_double(R1);
        program.store(Width::Double, R9, key(2), R1);
        program.load(Width::Byte, R1, R8, NETWORK + 1);
        program.and_word(R1, 0xfc);
        program.shift_left(R1, 40);
        program.compute_both(R4, Operation::Or, R1);
        program.load(Width::Byte, R2, R8, NETWORK + ipv4::PROTOCOL_AT as i16);
        program.copy(R1, R2);
        program.shift_left(R1, 32);
        program.compute_both(R4, Operation::Or, R1);
        program.jump_if(R2, Condition::Equal, ipv4::PROTOCOL_UDP.into(), udp);
        program.jump_if(R2, Condition::Equal, ipv4::PROTOCOL_TCP.into(), tcp);
        program.jump_if(R2, Condition::Equal, ipv4::PROTOCOL_ICMP.into(), icmp);
        program.jump(done);

        program.place(tcp);
        program.jump_if(R0, Condition::Less, i32::from(IPV4) + 20, escape);
        program.jump(ports);
        program.place(udp);
        program.jump_if(R0, Condition::Less, i32::from(IPV4) + 8, escape);
        program.place(ports);
        self.reach(NETWORK + IPV4 + 4);
        let program = &mut *self.program;
        program.load(Width::Word, R1, R8, NETWORK + IPV4);
        program.network_word(R1);
        program.compute_both(R4, Operation::Or, R1);
        program.jump(done);

        program.place(icmp);
        program.jump_if(R0, Condition::Less, i32::from(IPV4) + 8, escape);
        self.reach(NETWORK + IPV4 + 2);
        let program = &mut *self.program;
        program.load(Width::Byte, R1, R8, NETWORK + IPV4);
        program.shift_left(R1, 16);
        program.compute_both(R4, Operation::Or, R1);
        program.load(Width::Byte, R1, R8, NETWORK + IPV4 + 1);
        program.compute_both(R4, Operation::Or, R1);
        program.place(done);
        program.store(Width::Double, R9, key(3), R4);
        program.jump(start);
    }
}
