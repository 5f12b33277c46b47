//! VLAN tagging in the kernel: eBPF programs at the ingress of two interfaces. They push a tag by
//! rules or pop one, and redirect the frame to the other interface.
//!
//! Source: Linux `include/uapi/linux/bpf.h` (`struct __sk_buff`; `bpf_skb_load_bytes`,
//! `bpf_skb_vlan_push`, `bpf_skb_vlan_pop`, `bpf_redirect`), tc classifiers in direct-action mode.
//! Before such a program runs, the kernel has removed the outermost tag from the frame's bytes. The
//! kernel stores a pushed tag outside the frame's bytes until the outgoing interface or the
//! receiver writes it.
//!
//! Registers:
//! - R6: the context.
//! - R7: the type of service without its last two bits, or `NONE`.
//! - R8: the UDP destination port in memory byte order, or `NONE`.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;

use Register::{R0, R1, R2, R3, R4, R6, R7, R8, R9, R10};
use ebpf::{Assembly, Condition, Helper, Instruction, Label, Program, Register, Width};

/// A match on frames and the tag that they get. A field that is `None` matches all frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagRule {
    /// DSCPs of IPv4 to match, up to 63.
    pub dscp: Option<RangeInclusive<u8>>,
    /// Destination port of UDP over IPv4 to match.
    pub udp_destination: Option<u16>,
    /// The VLAN, up to 4095.
    pub vlan: u16,
    /// The priority, up to 7.
    pub priority: u8,
}

/// A program for the ingress of an interface. The kernel frees it when this is dropped and it is
/// attached nowhere.
#[derive(Debug)]
pub struct Tagging {
    program: Program,
}

/// Offsets in `struct __sk_buff`: frame length, whether there is a tag, its TCI and its type.
const LENGTH: i16 = 0;
const VLAN_PRESENT: i16 = 20;
const VLAN_TCI: i16 = 24;
const VLAN_PROTO: i16 = 28;

/// Register value for "no value": above all 16-bit values.
const NONE: i32 = 0x1_0000;

/// Stack offset for the frame's EtherType and the first 20 bytes of IPv4.
const HEAD: i16 = -24;
const HEAD_AT: i32 = 12;
const HEAD_BYTES: i32 = 22;
const IP: i16 = HEAD + 2;
/// Stack offset for the UDP port.
const PORT: i16 = -32;

const ETHERNET_BYTES: i32 = 14;
const UDP_BYTES: i32 = 8;
const UDP: i32 = 17;
const IPV4: i32 = 0x0800;
/// 802.1Q, in memory byte order.
const TYPE_VLAN: i32 = u16::to_be(0x8100) as i32;
const VID_MASK: u32 = 0xfff;

/// Classifier result that passes the frame to the network stack (`TC_ACT_OK`).
const GO_ON: i32 = 0;

/// The license of the programs; the helpers that they call require none.
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";

impl Tagging {
    /// Builds a program that pushes the tag of the first matching rule on untagged frames.
    ///
    /// It redirects all frames to the interface with index `to`.
    pub fn push(rules: &[TagRule], to: u32) -> io::Result<Tagging> {
        Ok(Tagging { program: Program::load_classifier(&push_text(rules, to), LICENSE)? })
    }

    /// Builds a program that pops the tags of these VLANs and redirects all frames to an interface.
    pub fn pop(vlans: &[u16], to: u32) -> io::Result<Tagging> {
        Ok(Tagging { program: Program::load_classifier(&pop_text(vlans, Some(to)), LICENSE)? })
    }

    /// Builds a program that pops the tags of these VLANs. All frames stay on the interface where
    /// they arrived.
    pub fn pop_in_place(vlans: &[u16]) -> io::Result<Tagging> {
        Ok(Tagging { program: Program::load_classifier(&pop_text(vlans, None), LICENSE)? })
    }

    /// Returns the descriptor that attaches the program.
    pub fn descriptor(&self) -> RawFd {
        self.program.descriptor()
    }
}

fn push_text(rules: &[TagRule], to: u32) -> Vec<Instruction> {
    let mut program = Assembly::new();
    let [judge, send] = ["judge", "send"].map(|name| program.label(name));
    program.copy(R6, R1);
    program.set(R7, NONE);
    program.set(R8, NONE);
    program.load(Width::Word, R0, R6, VLAN_PRESENT);
    program.jump_if(R0, Condition::NotEqual, 0, send);
    read(&mut program, judge);
    program.place(judge);
    for rule in rules {
        let next = program.label("next");
        compare(&mut program, rule, next);
        program.copy(R1, R6);
        program.set(R2, TYPE_VLAN);
        program
            .set(R3, i32::from(u16::from(rule.priority & 7) << 13 | rule.vlan & VID_MASK as u16));
        program.call(Helper::VlanPush);
        program.jump(send);
        if rule.dscp.is_none() && rule.udp_destination.is_none() {
            // This rule matches all frames, and the kernel rejects unreachable instructions.
            break;
        }
        program.place(next);
    }
    finished(program, send, Some(to))
}

fn pop_text(vlans: &[u16], to: Option<u32>) -> Vec<Instruction> {
    let mut program = Assembly::new();
    let [found, send] = ["found", "send"].map(|name| program.label(name));
    program.copy(R6, R1);
    program.load(Width::Word, R0, R6, VLAN_PRESENT);
    program.jump_if(R0, Condition::Equal, 0, send);
    program.load(Width::Word, R0, R6, VLAN_PROTO);
    program.jump_if(R0, Condition::NotEqual, TYPE_VLAN, send);
    program.load(Width::Word, R7, R6, VLAN_TCI);
    program.and_word(R7, VID_MASK);
    for vlan in vlans {
        program.jump_if(R7, Condition::Equal, i32::from(*vlan), found);
    }
    program.jump(send);
    if !vlans.is_empty() {
        program.place(found);
        program.copy(R1, R6);
        program.call(Helper::VlanPop);
    }
    finished(program, send, to)
}

/// Ends the program: redirects the frame, or passes it to the network stack.
fn finished(mut program: Assembly, send: Label, to: Option<u32>) -> Vec<Instruction> {
    program.place(send);
    match to {
        Some(to) => {
            program.set(R1, to as i32);
            program.set(R2, 0);
            program.call(Helper::Redirect);
        }
        None => program.set(R0, GO_ON),
    }
    program.exit();
    program.finish().expect("all labels are placed after their jumps")
}

/// Jumps to `next` unless the rule matches.
fn compare(program: &mut Assembly, rule: &TagRule, next: Label) {
    if let Some(range) = &rule.dscp {
        let [first, last] = [range.start(), range.end()].map(|dscp| i32::from(*dscp) << 2);
        // A frame without the field has a value above all others.
        program.jump_if(R7, Condition::Greater, last, next);
        if first > 0 {
            let reached = program.label("reached");
            program.jump_if(R7, Condition::Greater, first - 1, reached);
            program.jump(next);
            program.place(reached);
        }
    }
    if let Some(port) = rule.udp_destination {
        program.jump_if(R8, Condition::NotEqual, i32::from(port.to_be()), next);
    }
}

/// Reads the fields that rules match, if the frame has them, and continues at `judge`.
fn read(program: &mut Assembly, judge: Label) {
    program.copy(R1, R6);
    program.set(R2, HEAD_AT);
    program.copy(R3, R10);
    program.add(R3, i32::from(HEAD));
    program.set(R4, HEAD_BYTES);
    program.call(Helper::LoadBytes);
    program.jump_if(R0, Condition::NotEqual, 0, judge);
    program.load(Width::Half, R0, R10, HEAD);
    program.network_half(R0);
    program.jump_if(R0, Condition::NotEqual, IPV4, judge);
    // Version 4, and a header of R9 bytes, at least five words.
    program.load(Width::Byte, R9, R10, IP);
    program.copy(R0, R9);
    program.and_word(R0, 0xf0);
    program.jump_if(R0, Condition::NotEqual, 0x40, judge);
    program.and_word(R9, 0x0f);
    let is_long = program.label("is_long");
    program.jump_if(R9, Condition::Greater, 4, is_long);
    program.jump(judge);
    program.place(is_long);
    program.shift_left(R9, 2);
    // R3 is the packet length. The frame contains the packet, and the packet contains the header.
    program.load(Width::Half, R3, R10, IP + 2);
    program.network_half(R3);
    program.jump_if_both(R9, Condition::Greater, R3, judge);
    program.load(Width::Word, R4, R6, LENGTH);
    program.copy(R0, R3);
    program.add(R0, ETHERNET_BYTES);
    program.jump_if_both(R0, Condition::Greater, R4, judge);
    program.load(Width::Byte, R7, R10, IP + 1);
    program.and_word(R7, 0xfc);
    // The first fragment of a datagram, and its UDP header.
    program.load(Width::Byte, R0, R10, IP + 9);
    program.jump_if(R0, Condition::NotEqual, UDP, judge);
    program.load(Width::Half, R0, R10, IP + 6);
    program.network_half(R0);
    program.and_word(R0, 0x1fff);
    program.jump_if(R0, Condition::NotEqual, 0, judge);
    program.copy(R0, R9);
    program.add(R0, UDP_BYTES);
    program.jump_if_both(R0, Condition::Greater, R3, judge);
    program.copy(R1, R6);
    program.copy(R2, R9);
    program.add(R2, ETHERNET_BYTES + 2);
    program.copy(R3, R10);
    program.add(R3, i32::from(PORT));
    program.set(R4, 2);
    program.call(Helper::LoadBytes);
    program.jump_if(R0, Condition::NotEqual, 0, judge);
    program.load(Width::Half, R8, R10, PORT);
}
