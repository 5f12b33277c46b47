//! An assembler: one method per instruction, and labels as targets of jumps.
//!
//! - Jumps go forward or backward. The kernel accepts loops since Linux 5.3 if its verifier finds
//!   that they end.
//! - The assembler has the instructions that the programs of this project need. It does not check
//!   how a program uses registers and memory, because the kernel's verifier does.

use crate::instruction::*;

/// A jump target in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A program under construction.
#[derive(Debug, Default)]
pub struct Assembly {
    instructions: Vec<Instruction>,
    /// Jumps by position, with their labels.
    jumps: Vec<(usize, Label)>,
    /// Names of the labels, with their positions once placed.
    labels: Vec<(&'static str, Option<usize>)>,
}

/// A label that a jump cannot reach, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelError {
    /// The label is not placed.
    NotPlaced(&'static str),
    /// The label is more instructions away than a jump can skip.
    TooFar(&'static str),
}

impl Assembly {
    /// Creates an empty program.
    pub fn new() -> Self {
        Assembly::default()
    }

    /// Creates a new label. The name is for errors; several labels may have the same.
    pub fn label(&mut self, name: &'static str) -> Label {
        self.labels.push((name, None));
        Label(self.labels.len() - 1)
    }

    /// Returns the number of instructions so far.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Whether there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// Places a label before the next instruction.
    ///
    /// # Panics
    /// Panics if the label has a place already.
    pub fn place(&mut self, label: Label) {
        let (name, place) = &mut self.labels[label.0];
        assert!(place.is_none(), "label {name} is placed once");
        *place = Some(self.instructions.len());
    }

    /// Loads memory at `from` + `offset`.
    pub fn load(&mut self, width: Width, into: Register, from: Register, offset: i16) {
        self.push(LOAD | width as u8, into, from as u8, offset, 0);
    }

    /// Stores a register to memory at `to` + `offset`.
    pub fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.push(STORE | width as u8, to, from as u8, offset, 0);
    }

    /// Stores a number to memory at `to` + `offset`.
    pub fn store_number(&mut self, width: Width, to: Register, offset: i16, number: i32) {
        self.push(STORE_IMMEDIATE | width as u8, to, 0, offset, number);
    }

    /// Sets a register to a number.
    pub fn set(&mut self, register: Register, number: i32) {
        self.push(MOVE_IMMEDIATE, register, 0, 0, number);
    }

    /// Copies a register.
    pub fn copy(&mut self, into: Register, from: Register) {
        self.push(MOVE, into, from as u8, 0, 0);
    }

    /// Adds a number to a register.
    pub fn add(&mut self, register: Register, number: i32) {
        self.push(ADD_IMMEDIATE, register, 0, 0, number);
    }

    /// Adds another register.
    pub fn add_register(&mut self, to: Register, what: Register) {
        self.push(ADD, to, what as u8, 0, 0);
    }

    /// Subtracts another register.
    pub fn subtract(&mut self, from: Register, what: Register) {
        self.push(SUBTRACT, from, what as u8, 0, 0);
    }

    /// Masks the lower 32 bits of a register; the upper 32 become zero.
    pub fn and_word(&mut self, register: Register, mask: u32) {
        self.push(AND_WORD, register, 0, 0, mask as i32);
    }

    /// Shifts a register to the left.
    pub fn shift_left(&mut self, register: Register, bits: i32) {
        self.push(SHIFT_LEFT, register, 0, 0, bits);
    }

    /// Applies an operation with a number, which is sign-extended, to all 64 bits of a register.
    pub fn compute(&mut self, register: Register, operation: Operation, number: i32) {
        self.push(ARITHMETIC | operation as u8, register, 0, 0, number);
    }

    /// Applies an operation with another register to all 64 bits of a register.
    pub fn compute_both(&mut self, register: Register, operation: Operation, what: Register) {
        self.push(ARITHMETIC | WITH_REGISTER | operation as u8, register, what as u8, 0, 0);
    }

    /// Applies an operation with a number to the lower 32 bits of a register; the upper 32 become
    /// zero.
    pub fn compute_word(&mut self, register: Register, operation: Operation, number: u32) {
        self.push(ARITHMETIC_WORD | operation as u8, register, 0, 0, number as i32);
    }

    /// Applies an operation with another register to the lower 32 bits of a register; the upper 32
    /// become zero.
    pub fn compute_words(&mut self, register: Register, operation: Operation, what: Register) {
        self.push(ARITHMETIC_WORD | WITH_REGISTER | operation as u8, register, what as u8, 0, 0);
    }

    /// Sets a register to a number of 64 bits.
    pub fn set_wide(&mut self, register: Register, number: u64) {
        self.push(LOAD_WIDE, register, 0, 0, number as i32);
        self.push(0, Register::R0, 0, 0, (number >> 32) as i32);
    }

    /// Converts two bytes between memory order and network byte order; the upper 48 bits become
    /// zero.
    pub fn network_half(&mut self, register: Register) {
        self.push(TO_BIG_ENDIAN, register, 0, 0, 16);
    }

    /// Converts four bytes between memory order and network byte order; the upper 32 bits become
    /// zero.
    pub fn network_word(&mut self, register: Register) {
        self.push(TO_BIG_ENDIAN, register, 0, 0, 32);
    }

    /// Converts eight bytes between memory order and network byte order.
    pub fn network_double(&mut self, register: Register) {
        self.push(TO_BIG_ENDIAN, register, 0, 0, 64);
    }

    /// Atomically adds a register to the 8-byte number at `to` + `offset`.
    pub fn atomic_add(&mut self, to: Register, offset: i16, what: Register) {
        self.push(ATOMIC_ADD, to, what as u8, offset, 0);
    }

    /// Sets a register to the address of a byte of a map's first value, by the map's descriptor.
    pub fn load_map_value(&mut self, into: Register, descriptor: i32, byte: i32) {
        self.push(LOAD_WIDE, into, FROM_MAP_VALUE, 0, descriptor);
        self.push(0, Register::R0, 0, 0, byte);
    }

    /// Sets a register to a map, by the map's descriptor.
    pub fn load_map(&mut self, into: Register, descriptor: i32) {
        self.push(LOAD_WIDE, into, FROM_MAP, 0, descriptor);
        self.push(0, Register::R0, 0, 0, 0);
    }

    /// Jumps to a label if the comparison of a register with a number holds.
    pub fn jump_if(&mut self, one: Register, condition: Condition, number: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP_IMMEDIATE | condition as u8, one, 0, 0, number);
    }

    /// Jumps to a label if the comparison of two registers holds.
    pub fn jump_if_both(&mut self, one: Register, condition: Condition, two: Register, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP_REGISTER | condition as u8, one, two as u8, 0, 0);
    }

    /// Jumps to a label if the comparison of a register's lower 32 bits with a number holds.
    pub fn jump_if_word(&mut self, one: Register, condition: Condition, number: u32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP_WORD | condition as u8, one, 0, 0, number as i32);
    }

    /// Jumps to a label if the comparison of two registers' lower 32 bits holds.
    pub fn jump_if_words(&mut self, one: Register, condition: Condition, two: Register, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP_WORD_REGISTER | condition as u8, one, two as u8, 0, 0);
    }

    /// Jumps to a label.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP, Register::R0, 0, 0, 0);
    }

    /// Jumps to a label when the kernel decides to end the loop that contains this instruction,
    /// after millions of rounds. The verifier then need not find that the loop ends. Since Linux
    /// 6.9.
    pub fn may_jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(MAY_JUMP, Register::R0, 0, 0, 0);
    }

    /// Calls a helper, with arguments in R1 to R5 and the result in R0.
    pub fn call(&mut self, helper: Helper) {
        self.push(CALL, Register::R0, 0, 0, helper as i32);
    }

    /// Calls a kernel function by its BTF id.
    pub fn call_kernel(&mut self, function: i32) {
        self.push(CALL, Register::R0, OF_KERNEL, 0, function);
    }

    /// Ends the program with the result in R0.
    pub fn exit(&mut self) {
        self.push(EXIT, Register::R0, 0, 0, 0);
    }

    /// Resolves the jumps and returns the program.
    pub fn finish(mut self) -> Result<Vec<Instruction>, LabelError> {
        for (at, label) in self.jumps {
            let (name, place) = self.labels[label.0];
            let place = place.ok_or(LabelError::NotPlaced(name))?;
            // A jump counts from the instruction after it.
            let offset = place as i64 - (at as i64 + 1);
            let offset = i16::try_from(offset).map_err(|_| LabelError::TooFar(name))?;
            self.instructions[at].offset = offset;
        }
        Ok(self.instructions)
    }

    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        let registers = to as u8 | from << 4;
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }
}

impl std::fmt::Display for LabelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LabelError::NotPlaced(name) => write!(f, "cannot jump to {name}: it is not placed"),
            LabelError::TooFar(name) => {
                write!(f, "cannot jump to {name}: it is more than 32767 instructions away")
            }
        }
    }
}

impl std::error::Error for LabelError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disassemble;

    /// Bytes encoded manually from RFC 9669, section 3. Text in the notation of Linux
    /// `kernel/bpf/disasm.c`.
    const EXPECTED: &[([u8; 8], &str)] = &[
        ([0x61, 0x12, 0x10, 0, 0, 0, 0, 0], "   0: (61) r2 = *(u32 *)(r1 +16)"),
        ([0x69, 0x43, 0, 0, 0, 0, 0, 0], "   1: (69) r3 = *(u16 *)(r4 +0)"),
        ([0x7b, 0x7a, 0xf8, 0xff, 0, 0, 0, 0], "   2: (7b) *(u64 *)(r10 -8) = r7"),
        ([0x72, 0x02, 1, 0, 5, 0, 0, 0], "   3: (72) *(u8 *)(r2 +1) = 5"),
        ([0xbf, 0x16, 0, 0, 0, 0, 0, 0], "   4: (bf) r6 = r1"),
        ([0xb7, 0x00, 0, 0, 2, 0, 0, 0], "   5: (b7) r0 = 2"),
        ([0x07, 0x04, 0, 0, 0xff, 0xff, 0xff, 0xff], "   6: (07) r4 += -1"),
        ([0x55, 0x04, 0xfe, 0xff, 0, 0, 0, 0], "   7: (55) if r4 != 0x0 goto pc-2"),
        ([0x2d, 0x34, 14, 0, 0, 0, 0, 0], "   8: (2d) if r4 > r3 goto pc+14"),
        ([0x18, 0x11, 0, 0, 9, 0, 0, 0], "   9: (18) r1 = map[fd:9]"),
        ([0; 8], ""),
        ([0x85, 0, 0, 0, 51, 0, 0, 0], "  11: (85) call bpf_redirect_map#51"),
        ([0x0f, 0x21, 0, 0, 0, 0, 0, 0], "  12: (0f) r1 += r2"),
        ([0x1f, 0x23, 0, 0, 0, 0, 0, 0], "  13: (1f) r3 -= r2"),
        ([0x54, 0x05, 0, 0, 0, 0xff, 0xff, 0xff], "  14: (54) w5 &= -256"),
        ([0x67, 0x00, 0, 0, 2, 0, 0, 0], "  15: (67) r0 <<= 2"),
        ([0xdc, 0x05, 0, 0, 16, 0, 0, 0], "  16: (dc) r5 = be16 r5"),
        ([0xdb, 0x01, 8, 0, 0, 0, 0, 0], "  17: (db) lock *(u64 *)(r1 +8) += r0"),
        ([0x18, 0x21, 0, 0, 9, 0, 0, 0], "  18: (18) r1 = map[fd:9][0]+16"),
        ([0, 0, 0, 0, 16, 0, 0, 0], ""),
        ([0x85, 0x20, 0, 0, 7, 0, 0, 0], "  20: (85) call kernel-function#7"),
        ([0x56, 0x00, 1, 0, 0, 0, 0, 0x80], "  21: (56) if w0 != 0x80000000 goto pc+1"),
        ([0x05, 0, 0, 0, 0, 0, 0, 0], "  22: (05) goto pc+0"),
        ([0x77, 0x01, 0, 0, 8, 0, 0, 0], "  23: (77) r1 >>= 8"),
        ([0xaf, 0x21, 0, 0, 0, 0, 0, 0], "  24: (af) r1 ^= r2"),
        ([0x94, 0x03, 0, 0, 7, 0, 0, 0], "  25: (94) w3 %= 7"),
        ([0x4c, 0x43, 0, 0, 0, 0, 0, 0], "  26: (4c) w3 |= w4"),
        ([0x18, 0x05, 0, 0, 0xef, 0xcd, 0xab, 0x89], "  27: (18) r5 = 0x123456789abcdef"),
        ([0, 0, 0, 0, 0x67, 0x45, 0x23, 0x01], ""),
        ([0xdc, 0x05, 0, 0, 32, 0, 0, 0], "  29: (dc) r5 = be32 r5"),
        ([0xdc, 0x05, 0, 0, 64, 0, 0, 0], "  30: (dc) r5 = be64 r5"),
        ([0xae, 0x21, 0, 0, 0, 0, 0, 0], "  31: (ae) if w1 < w2 goto pc+0"),
        ([0x85, 0, 0, 0, 44, 0, 0, 0], "  32: (85) call bpf_xdp_adjust_head#44"),
        ([0xe5, 0, 0, 0, 0, 0, 0, 0], "  33: (e5) may_goto pc+0"),
        ([0x95, 0, 0, 0, 0, 0, 0, 0], "  34: (95) exit"),
    ];

    #[test]
    fn instructions_have_the_bytes_of_the_specification_and_the_text_of_the_kernel() {
        use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R10};
        let mut program = Assembly::new();
        let [again, end] = ["again", "end"].map(|name| program.label(name));
        program.load(Width::Word, R2, R1, 16);
        program.load(Width::Half, R3, R4, 0);
        program.store(Width::Double, R10, -8, R7);
        program.store_number(Width::Byte, R2, 1, 5);
        program.copy(R6, R1);
        program.set(R0, 2);
        program.place(again);
        program.add(R4, -1);
        program.jump_if(R4, Condition::NotEqual, 0, again);
        program.jump_if_both(R4, Condition::Greater, R3, end);
        program.load_map(R1, 9);
        program.call(Helper::RedirectMap);
        program.add_register(R1, R2);
        program.subtract(R3, R2);
        program.and_word(R5, 0xffff_ff00);
        program.shift_left(R0, 2);
        program.network_half(R5);
        program.atomic_add(R1, 8, R0);
        program.load_map_value(R1, 9, 16);
        program.call_kernel(7);
        program.jump_if_word(R0, Condition::NotEqual, 0x8000_0000, end);
        program.jump(end);
        program.place(end);
        program.compute(R1, Operation::ShiftRight, 8);
        program.compute_both(R1, Operation::Xor, R2);
        program.compute_word(R3, Operation::Modulo, 7);
        program.compute_words(R3, Operation::Or, R4);
        program.set_wide(R5, 0x0123_4567_89ab_cdef);
        program.network_word(R5);
        program.network_double(R5);
        let next = program.label("next");
        program.jump_if_words(R1, Condition::Less, R2, next);
        program.place(next);
        program.call(Helper::AdjustHead);
        let end_of_loop = program.label("end of loop");
        program.may_jump(end_of_loop);
        program.place(end_of_loop);
        program.exit();
        let program = program.finish().unwrap();
        let bytes = |one: &Instruction| {
            let ([a, b], [c, d, e, f]) = (one.offset.to_le_bytes(), one.immediate.to_le_bytes());
            [one.code, one.registers, a, b, c, d, e, f]
        };
        let expected: Vec<[u8; 8]> = EXPECTED.iter().map(|(bytes, _)| *bytes).collect();
        assert_eq!(program.iter().map(bytes).collect::<Vec<_>>(), expected);
        let expected: Vec<&str> =
            EXPECTED.iter().map(|(_, text)| *text).filter(|text| !text.is_empty()).collect();
        assert_eq!(disassemble(&program).lines().collect::<Vec<_>>(), expected);
    }

    /// Jumps over this many instructions, forward or backward.
    fn jump_over(count: usize, is_backward: bool) -> Result<i16, LabelError> {
        let mut program = Assembly::new();
        let label = program.label("far");
        if is_backward {
            program.place(label);
        } else {
            program.jump(label);
        }
        (0..count).for_each(|_| program.set(Register::R0, 0));
        if is_backward {
            program.jump(label);
        } else {
            program.place(label);
        }
        let at = if is_backward { count } else { 0 };
        Ok(program.finish()?[at].offset)
    }

    #[test]
    fn a_jump_reaches_labels_within_its_range_in_both_directions() {
        assert_eq!(jump_over(32767, false), Ok(32767));
        assert_eq!(jump_over(32768, false), Err(LabelError::TooFar("far")));
        assert_eq!(jump_over(32767, true), Ok(-32768));
        assert_eq!(jump_over(32768, true), Err(LabelError::TooFar("far")));
    }

    #[test]
    fn a_label_is_placed_exactly_once() {
        let mut program = Assembly::new();
        let label = program.label("lost");
        program.jump_if(Register::R0, Condition::Equal, 0, label);
        program.exit();
        assert_eq!(program.finish(), Err(LabelError::NotPlaced("lost")));
        let twice = std::panic::catch_unwind(|| {
            let mut program = Assembly::new();
            let label = program.label("twice");
            program.place(label);
            program.place(label);
        });
        assert!(twice.is_err());
    }
}
