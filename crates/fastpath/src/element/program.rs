//! The program of a port: the nodes of its decision tree, one after the other.
//!
//! - R6 is the context, R8 the start of the frame, R3 its end, R9 the memory of the CPU. R7 stays
//!   unused.
//! - A frame is changed and counted only at an end, after the last check after which it may escape.
//! - The program reads a byte only after it has compared the frame's length. A frame that is too
//!   short for a read escapes.
//! - The program marks the memory of its CPU while it uses its tree (see [`super`]). It has no
//!   values on the stack: the verifier would follow them through all branches.

use std::collections::HashMap;

use Register::{R0, R1, R2, R3, R4, R5, R6, R8, R9};
use ebpf::{Assembly, Condition, Helper, Label, Operation, Register, Width};
use packet::frame::PortNo;
use packet::header::ipv4;
use progfe::compile::change::Change;
use progfe::compile::tree::{
    Fate, LearnQuestion, MacAt, Node, NodeId, RouteQuestion, TableLookup, Word,
};

use super::generation::{COUNT_BYTES, Generation, JOINS_AT, LENGTH_AT, NOW_AT, RUNS_AT};
use crate::addresses::PORT_MASK;
use crate::checksum;
use crate::exact_table::TAKEN;
use crate::ports::{DATA, DATA_END, HEADER_BYTES, Ports, REDIRECTED};
use crate::trie::HOPS;

mod change;

/// Result of a dropped frame (`XDP_DROP`).
const DROP: i32 = 1;

/// Result of a frame that cannot be used any more (`XDP_ABORTED`). No frame has it.
const BROKEN: i32 = 0;

/// The program of one port, under construction.
struct Writer<'a> {
    program: &'a mut Assembly,
    generation: &'a Generation,
    ports: &'a Ports,
    /// Index of the port.
    own: usize,
    escape: Label,
    /// Labels of the nodes that the program has.
    labels: HashMap<NodeId, Label>,
    /// Number of bytes that a frame has for certain at each of them.
    known: HashMap<NodeId, u32>,
    /// The node after the current one.
    next: Option<NodeId>,
    /// Number of bytes that a frame has for certain here.
    has: u32,
}

/// Appends the program of a port with this index. Frames that escape go to `outside`.
pub(super) fn emit(
    generation: &Generation,
    ports: &Ports,
    (port, own): (PortNo, usize),
    is_partial: bool,
    program: &mut Assembly,
    outside: Label,
) {
    let roots = &generation.lowering.roots;
    let Some(root) = roots.iter().find(|(of, _)| *of == port).and_then(|(_, root)| *root) else {
        return program.jump(outside);
    };
    let order = generation.lowering.from(root);
    let escape = program.label("escape");
    let labels = order.iter().map(|node| (*node, program.label("node"))).collect();
    let (known, next, has) = (HashMap::new(), None, HEADER_BYTES as u32);
    let mut writer = Writer { program, generation, ports, own, escape, labels, known, next, has };
    writer.begin(&order, is_partial, outside);
    writer.reach(root);
    for (place, node) in order.iter().enumerate() {
        writer.next = order.get(place + 1).copied();
        // The length of frames may rule out a node.
        if writer.known.contains_key(node) {
            writer.node(*node);
        }
    }
    let program = writer.program;
    program.place(escape);
    program.store_number(Width::Double, R9, RUNS_AT, 0);
    program.jump(outside);
}

impl Writer<'_> {
    /// Marks the CPU, and checks that this generation is the current one and the frame's length.
    fn begin(&mut self, order: &[NodeId], is_partial: bool, outside: Label) {
        let Writer { program, generation, escape, .. } = self;
        let (generation, escape) = (*generation, *escape);
        program.call(Helper::CoreNumber);
        program.jump_if(R0, Condition::NotLess, generation.cores as i32, outside);
        program.compute(R0, Operation::Multiply, generation.core_bytes as i32);
        program.load_map_value(R9, generation.memory.descriptor(), 0);
        program.add_register(R9, R0);
        program.store_number(Width::Double, R9, RUNS_AT, 1);
        program.load_map_value(R1, generation.gate, 0);
        program.load(Width::Double, R1, R1, 0);
        program.jump_if(R1, Condition::NotEqual, generation.number as i32, escape);
        let nodes = &generation.lowering.nodes;
        let learns = |at: &NodeId| match &nodes[*at as usize] {
            Node::Ask(question) => matches!(**question, TableLookup::Learn(_)),
            _ => false,
        };
        if order.iter().any(learns) {
            program.call(Helper::CoarseNs);
            program.store(Width::Double, R9, NOW_AT, R0);
        }
        self.ports.emit_bounds(program, HEADER_BYTES, escape);
        program.store(Width::Double, R9, LENGTH_AT, R0);
        if is_partial {
            checksum::emit_partial(program, escape);
        }
        let joins = order.iter().map(|at| generation.lowering.joins_before[*at as usize]).max();
        for join in 0..joins.unwrap_or(0) {
            let nothing = generation.nothing_at(self.own);
            program.store_number(Width::Double, R9, join_at(join), nothing as i32);
        }
    }

    /// Notes that a frame with the bytes that are certain here reaches a node.
    fn reach(&mut self, node: NodeId) {
        let known = self.known.entry(node).or_insert(self.has);
        *known = (*known).min(self.has);
    }

    /// Returns the label of a node, or that of frames that escape.
    fn to(&mut self, node: NodeId) -> Label {
        match self.labels.get(&node).copied() {
            Some(label) => {
                self.reach(node);
                label
            }
            None => self.escape,
        }
    }

    /// Continues at a node.
    fn go(&mut self, node: NodeId) {
        let is_next = self.next == Some(node);
        let to = self.to(node);
        if !is_next {
            self.program.jump(to);
        }
    }

    /// Lets a frame escape that has fewer bytes. Uses R1.
    fn need(&mut self, bytes: u32) {
        if bytes > self.has {
            self.program.copy(R1, R8);
            self.program.add(R1, bytes as i32);
            self.program.jump_if_both(R1, Condition::Greater, R3, self.escape);
            self.has = bytes;
        }
    }

    fn node(&mut self, at: NodeId) {
        self.program.place(self.labels[&at]);
        self.has = self.known[&at];
        let generation = self.generation;
        match &generation.lowering.nodes[at as usize] {
            Node::End(end) => self.end(at, *end),
            Node::Back(_) => self.program.jump(self.escape),
            Node::Join(_, next) => {
                let before = generation.lowering.joins_before[at as usize];
                let counter = generation.counter_at(self.own, at) as i32;
                self.program.store_number(Width::Double, R9, join_at(before), counter);
                self.go(*next);
            }
            Node::Length(least, [yes, no]) => self.length(*least, *yes, *no),
            Node::Is(word, value, [yes, no]) => {
                self.field(*word);
                self.branch(Condition::Equal, *value, *yes, *no);
            }
            Node::AtMost(word, value, [yes, no]) => {
                self.field(*word);
                self.branch(Condition::NotGreater, *value, *yes, *no);
            }
            Node::Fits(word, more, [yes, no]) => {
                self.field(*word);
                self.program.add(R0, *more as i32);
                self.program.load(Width::Double, R1, R9, LENGTH_AT);
                let no = self.to(*no);
                self.program.jump_if_both(R0, Condition::Greater, R1, no);
                self.go(*yes);
            }
            Node::Values(word, ways, other) => {
                self.field(*word);
                for (value, to) in ways {
                    let to = self.to(*to);
                    self.jump_if(Condition::Equal, *value, to);
                }
                self.go(*other);
            }
            Node::Dense(word, base, ways, other) => {
                self.field(*word);
                let ways = ways.iter().zip(*base..).map(|(to, value)| (value, value, *to));
                self.select(ways, *other);
            }
            Node::Table(word, ways) => {
                self.field(*word);
                let ways = ways.iter().zip(0..).map(|(to, value)| (value, value, *to));
                self.select(ways, NodeId::MAX);
            }
            Node::Ranges(word, ways) => {
                self.field(*word);
                let lows = std::iter::once(0).chain(ways.iter().map(|(high, _)| high + 1));
                let ways = ways.iter().zip(lows).map(|((high, to), low)| (low, *high, *to));
                self.select(ways, NodeId::MAX);
            }
            Node::Ipv4(at, ways) => {
                self.plain_ipv4(*at);
                self.go(ways[0]);
            }
            Node::Ask(question) => match &**question {
                TableLookup::Learn(of) => self.learn(of),
                TableLookup::Route(of) => self.route(of),
            },
        }
    }

    fn length(&mut self, least: u32, yes: NodeId, no: NodeId) {
        if least <= self.has {
            return self.go(yes);
        }
        self.program.copy(R1, R8);
        self.program.add(R1, least as i32);
        let no = self.to(no);
        self.program.jump_if_both(R1, Condition::Greater, R3, no);
        self.has = least;
        self.go(yes);
    }

    /// Sets R0 to a field. Uses R1.
    fn field(&mut self, word: Word) {
        let (byte, before, bits) = word.place();
        let (width, bytes) = match before + bits {
            0..=8 => (Width::Byte, 1),
            9..=16 => (Width::Half, 2),
            17..=32 => (Width::Word, 4),
            _ => (Width::Double, 8),
        };
        self.need(u32::from(byte) + bytes);
        let program = &mut *self.program;
        program.load(width, R0, R8, byte as i16);
        match width {
            Width::Byte => {}
            Width::Half => program.network_half(R0),
            Width::Word => program.network_word(R0),
            Width::Double => program.network_double(R0),
        }
        let after = 8 * bytes as i32 - i32::from(before + bits);
        if after > 0 {
            program.compute(R0, Operation::ShiftRight, after);
        }
        match (before, bits) {
            (0, _) => {}
            (_, ..=31) => program.and_word(R0, (1 << bits) - 1),
            _ => {
                program.shift_left(R0, 64 - i32::from(bits));
                program.compute(R0, Operation::ShiftRight, 64 - i32::from(bits));
            }
        }
    }

    /// Jumps if the comparison of R0 with a value holds. Uses R1.
    fn jump_if(&mut self, condition: Condition, value: u64, to: Label) {
        match i32::try_from(value) {
            Ok(value) => self.program.jump_if(R0, condition, value, to),
            Err(_) => {
                self.program.set_wide(R1, value);
                self.program.jump_if_both(R0, condition, R1, to);
            }
        }
    }

    /// Continues at one of two nodes by a comparison of R0 with a value.
    fn branch(&mut self, condition: Condition, value: u64, yes: NodeId, no: NodeId) {
        let (condition, first, second) = match condition {
            Condition::Equal if self.next == Some(yes) => (Condition::NotEqual, no, yes),
            Condition::NotGreater if self.next == Some(yes) => (Condition::Greater, no, yes),
            condition => (condition, yes, no),
        };
        let first = self.to(first);
        self.jump_if(condition, value, first);
        self.go(second);
    }

    /// Continues at the node of the range that contains R0, or at another one. The ranges ascend.
    fn select(&mut self, ways: impl Iterator<Item = (u64, u64, NodeId)>, other: NodeId) {
        // Numbers below the next range continue at `other`.
        let mut all: Vec<(u64, NodeId)> = Vec::new();
        let mut next = Some(0);
        let mut add = |high: u64, node: NodeId, has: bool| {
            let node = if has { node } else { NodeId::MAX };
            match all.last_mut() {
                Some((end, last)) if *last == node => *end = high,
                _ => all.push((high, node)),
            }
        };
        let has = |node: NodeId| self.labels.contains_key(&node);
        for (low, high, node) in ways {
            if next.is_some_and(|next| next < low) {
                add(low - 1, other, has(other));
            }
            add(high, node, has(node));
            next = high.checked_add(1);
        }
        if next.is_some() {
            add(u64::MAX, other, has(other));
        }
        self.search(&all);
    }

    /// Continues at the node of the first range with an end that is not below R0. Uses R1.
    fn search(&mut self, ways: &[(u64, NodeId)]) {
        match ways {
            [] => self.program.jump(self.escape),
            [(_, node)] => self.go(*node),
            _ => {
                let above = self.program.label("above");
                let (low, high) = ways.split_at(ways.len() / 2);
                let end = low[low.len() - 1].0;
                self.jump_if(Condition::Greater, end, above);
                let next = self.next.take();
                self.search(low);
                self.program.place(above);
                self.next = next;
                self.search(high);
            }
        }
    }

    /// Lets all frames escape but those with a common IPv4 header at this offset (see
    /// `progfe::lfb::ipv4_validator::is_plain`). Uses R0 to R2.
    fn plain_ipv4(&mut self, at: u16) {
        self.need(u32::from(at) + ipv4::HEADER_BYTES as u32);
        let (escape, at) = (self.escape, at as i16);
        let program = &mut *self.program;
        program.load(Width::Byte, R0, R8, at);
        program.jump_if(R0, Condition::NotEqual, 0x45, escape);
        program.load(Width::Half, R0, R8, at + ipv4::TOTAL_LENGTH_AT as i16);
        program.network_half(R0);
        program.jump_if(R0, Condition::Less, ipv4::HEADER_BYTES as i32, escape);
        program.add(R0, at.into());
        program.load(Width::Double, R1, R9, LENGTH_AT);
        program.jump_if_both(R0, Condition::Greater, R1, escape);
        program.load(Width::Byte, R0, R8, at + ipv4::TTL_AT as i16);
        program.jump_if(R0, Condition::NotGreater, 1, escape);
        for (offset, is_destination) in [(ipv4::SOURCE_AT, false), (ipv4::DESTINATION_AT, true)] {
            program.load(Width::Word, R0, R8, at + offset as i16);
            program.network_word(R0);
            program.copy(R2, R0);
            program.compute(R2, Operation::ShiftRight, 24);
            program.jump_if(R2, Condition::Equal, 127, escape);
            if is_destination {
                program.jump_if(R2, Condition::Equal, 0, escape);
            } else {
                program.jump_if(R0, Condition::Equal, 0, escape);
            }
            program.jump_if_word(R0, Condition::Equal, u32::MAX, escape);
            program.and_word(R2, 0xf0);
            program.jump_if(R2, Condition::Equal, 0xe0, escape);
        }
        program.load(Width::Word, R0, R8, at);
        for word in 1..5 {
            program.load(Width::Word, R1, R8, at + 4 * word);
            program.add_register(R0, R1);
        }
        checksum::emit_fold(program);
        program.jump_if(R0, Condition::NotEqual, 0xffff, escape);
    }

    /// Sets R1 to the key of an address. Group addresses escape. Uses R0.
    fn mac_key(&mut self, of: &MacAt) {
        let (byte, ..) = of.mac.place();
        self.need(u32::from(byte) + 8);
        match of.vid {
            Some(vid) => {
                self.field(vid);
                self.program.shift_left(R0, 48);
                self.program.set_wide(R1, TAKEN);
                self.program.compute_both(R0, Operation::Or, R1);
            }
            None => self.program.set_wide(R0, TAKEN),
        }
        let program = &mut *self.program;
        program.load(Width::Double, R1, R8, byte as i16);
        program.jump_if(R1, Condition::CommonBit, 1, self.escape);
        program.shift_left(R1, 16);
        program.compute(R1, Operation::ShiftRight, 16);
        program.compute_both(R1, Operation::Or, R0);
    }

    fn learn(&mut self, of: &LearnQuestion) {
        let generation = self.generation;
        let Some(addresses) = generation.addresses.get(&of.instance) else {
            return self.program.jump(self.escape);
        };
        if let Some(value) = of.value {
            self.mac_key(&of.learn);
            addresses.emit_source(value & PORT_MASK, (R9, NOW_AT), self.program, self.escape);
        }
        self.mac_key(&of.search);
        addresses.emit_destination((R9, NOW_AT), self.program, self.escape);
        self.program.copy(R0, R5);
        self.program.and_word(R0, PORT_MASK);
        let ways = of.known.iter().zip(0..).map(|(to, value)| (value, value, *to));
        self.select(ways, NodeId::MAX);
    }

    fn route(&mut self, of: &RouteQuestion) {
        let generation = self.generation;
        let Some(cells) = generation.routes.get(&of.instance) else {
            return self.program.jump(self.escape);
        };
        self.field(of.address);
        cells.emit_find(R4, self.program, self.escape);
        self.program.copy(R0, R2);
        self.program.add(R0, -1);
        self.program.and_word(R0, HOPS as u32 - 1);
        let ways = of.hops.iter().zip(0..).map(|(to, value)| (value, value, *to));
        self.select(ways, NodeId::MAX);
    }

    /// Sends or drops the frame, counts it and ends.
    fn end(&mut self, at: NodeId, end: u32) {
        let generation = self.generation;
        let end = &generation.lowering.ends[end as usize];
        let result = match end.fate {
            Fate::Goes => return self.program.jump(self.escape),
            Fate::Gone => DROP,
            Fate::Leaves(port, _) => {
                let Some(to) = self.ports.index(port) else {
                    return self.program.jump(self.escape);
                };
                self.check(&end.change);
                self.ports.emit_redirect_to(to, self.program, self.escape);
                self.change(&end.change);
                REDIRECTED
            }
        };
        let joins = generation.lowering.joins_before[at as usize];
        self.count(generation.counter_at(self.own, at), joins);
        let program = &mut *self.program;
        program.store_number(Width::Double, R9, RUNS_AT, 0);
        program.set(R0, result);
        program.exit();
    }

    /// Counts the frame at an end and at the joins before it. Uses R1, R2 and R4.
    fn count(&mut self, counter: usize, joins: usize) {
        let program = &mut *self.program;
        program.load(Width::Double, R4, R9, LENGTH_AT);
        let most = self.generation.core_bytes - COUNT_BYTES;
        for join in 0..joins {
            let none = program.label("none");
            program.load(Width::Double, R1, R9, join_at(join));
            program.jump_if(R1, Condition::Greater, most as i32, none);
            program.add_register(R1, R9);
            add_one(program, R1, 0);
            program.place(none);
        }
        match i16::try_from(counter + COUNT_BYTES) {
            Ok(_) => add_one(program, R9, counter as i16),
            Err(_) => {
                program.copy(R1, R9);
                program.add(R1, counter as i32);
                add_one(program, R1, 0);
            }
        }
    }
}

/// Adds one frame of R4 bytes to a counter. Uses R2.
fn add_one(program: &mut Assembly, counter: Register, at: i16) {
    program.load(Width::Double, R2, counter, at);
    program.add(R2, 1);
    program.store(Width::Double, counter, at, R2);
    program.load(Width::Double, R2, counter, at + 8);
    program.add_register(R2, R4);
    program.store(Width::Double, counter, at + 8, R2);
}

/// Returns the offset of the counter of a passed join in the memory of a CPU.
fn join_at(join: usize) -> i16 {
    JOINS_AT + 8 * join as i16
}
