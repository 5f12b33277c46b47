//! eBPF instructions (RFC 9669), and an assembler that resolves jumps.
//!
//! The assembler has methods only for the instructions that programs of this crate use. The
//! kernel's verifier checks how a program uses registers. A jump backwards, or to a label that was
//! never placed, is an error of the assembler.

/// A register: R0 holds results, R1 to R5 call arguments. R6 to R9 survive calls, and R10 points to
/// the end of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Width of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Width {
    /// 4 bytes.
    Word = 0x00,
    /// 2 bytes.
    Half = 0x08,
    /// 1 byte.
    Byte = 0x10,
    /// 8 bytes.
    Double = 0x18,
}

/// Condition of a jump; comparisons are unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Condition {
    /// The first operand equals the second.
    Equal = 0x10,
    /// The first operand is greater.
    Greater = 0x20,
    /// The operands differ.
    NotEqual = 0x50,
}

/// A kernel helper function by its number (`enum bpf_func_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// Returns the address of a map's value.
    MapLookUp = 1,
    /// Returns the monotonic clock in nanoseconds.
    MonotonicNs = 5,
    /// Pushes a VLAN tag on a frame.
    VlanPush = 18,
    /// Pops the outermost VLAN tag.
    VlanPop = 19,
    /// Redirects a frame to an interface.
    Redirect = 23,
    /// Reads bytes of a frame.
    LoadBytes = 26,
    /// Redirects a frame to the target in a map's entry.
    RedirectMap = 51,
    /// Reserves space before a frame's data.
    AdjustMeta = 54,
    /// Moves the end of a frame.
    AdjustTail = 65,
    /// Writes bytes into a frame.
    StoreBytes = 190,
}

/// One instruction of 8 bytes, in the kernel's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    code: u8,
    /// The destination in the lower half, the source in the upper.
    registers: u8,
    offset: i16,
    immediate: i32,
}

// Instruction classes and modes (RFC 9669, section 3).
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_IMMEDIATE: u8 = 0x62;
const LOAD_WIDE: u8 = 0x18;
const ADD_IMMEDIATE: u8 = 0x07;
const ADD: u8 = 0x0f;
const SUBTRACT: u8 = 0x1f;
const AND_WORD: u8 = 0x54;
const SHIFT_LEFT: u8 = 0x67;
const TO_BIG_ENDIAN: u8 = 0xdc;
const ATOMIC_ADD: u8 = 0xdb;
const MOVE_IMMEDIATE: u8 = 0xb7;
const MOVE: u8 = 0xbf;
const JUMP_IMMEDIATE: u8 = 0x05;
const JUMP_REGISTER: u8 = 0x0d;
const JUMP_WORD: u8 = 0x06;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// Source of a wide load whose immediate is a map's descriptor.
const FROM_MAP: u8 = 1;

/// Source of a wide load of the address of a map's first value, by the map's descriptor.
const FROM_MAP_VALUE: u8 = 2;

/// Source of a call whose immediate is the BTF id of a kernel function.
const OF_KERNEL: u8 = 2;

/// A jump target in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A program under construction.
#[derive(Debug, Default)]
pub struct Assembly {
    instructions: Vec<Instruction>,
    /// Jumps by position, with their labels.
    jumps: Vec<(usize, Label)>,
    /// Positions of the labels, once placed.
    places: Vec<Option<usize>>,
}

/// A jump whose label is not placed after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnresolvedLabel;

impl Assembly {
    /// Creates an empty program.
    pub fn new() -> Self {
        Assembly::default()
    }

    /// Creates a new label, to be placed later.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places a label at the current position.
    pub fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.instructions.len());
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

    /// Converts two bytes loaded in memory order from network byte order.
    pub fn network_half(&mut self, register: Register) {
        self.push(TO_BIG_ENDIAN, register, 0, 0, 16);
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

    /// Jumps to a label.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP, Register::R0, 0, 0, 0);
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
    pub fn finish(mut self) -> Result<Vec<Instruction>, UnresolvedLabel> {
        for (at, label) in self.jumps {
            let ahead = self.places[label.0].and_then(|place| place.checked_sub(at + 1));
            let offset = ahead.and_then(|ahead| i16::try_from(ahead).ok());
            self.instructions[at].offset = offset.ok_or(UnresolvedLabel)?;
        }
        Ok(self.instructions)
    }

    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        let registers = to as u8 | from << 4;
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encoded manually from RFC 9669, section 3; each line has its usual notation as a comment.
    #[test]
    fn instructions_have_the_encoding_of_the_specification() {
        let mut program = Assembly::new();
        let end = program.label();
        program.load(Width::Word, Register::R2, Register::R1, 16); // r2 = *(u32 *)(r1 + 16)
        program.store(Width::Double, Register::R10, -8, Register::R7); // *(u64 *)(r10 - 8) = r7
        program.store_number(Width::Byte, Register::R2, 1, 5); // *(u8 *)(r2 + 1) = 5
        program.copy(Register::R6, Register::R1); // r6 = r1
        program.add(Register::R4, -1); // r4 += -1
        program.jump_if_both(Register::R4, Condition::Greater, Register::R3, end); // if r4 > r3 goto +13
        program.load_map(Register::R1, 9); // r1 = 9 ll
        program.call(Helper::RedirectMap); // call 51
        program.add_register(Register::R1, Register::R2); // r1 += r2
        program.subtract(Register::R3, Register::R2); // r3 -= r2
        program.and_word(Register::R5, 0xffff_ff00); // w5 &= 0xffffff00
        program.shift_left(Register::R0, 2); // r0 <<= 2
        program.network_half(Register::R5); // r5 = be16 r5
        program.atomic_add(Register::R1, 8, Register::R0); // lock *(u64 *)(r1 + 8) += r0
        program.load_map_value(Register::R1, 9, 16); // r1 = map_value(9) + 16
        program.jump_if_word(Register::R0, Condition::NotEqual, 0x8000_0000, end); // if w0 != .. goto +1
        program.jump(end); // goto +0
        program.place(end);
        program.exit(); // exit
        let words: Vec<[u8; 8]> = program
            .finish()
            .unwrap()
            .iter()
            .map(|one| {
                let ([a, b], [c, d, e, f]) =
                    (one.offset.to_le_bytes(), one.immediate.to_le_bytes());
                [one.code, one.registers, a, b, c, d, e, f]
            })
            .collect();
        let expected = [
            [0x61, 0x12, 0x10, 0, 0, 0, 0, 0],
            [0x7b, 0x7a, 0xf8, 0xff, 0, 0, 0, 0],
            [0x72, 0x02, 1, 0, 5, 0, 0, 0],
            [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
            [0x07, 0x04, 0, 0, 0xff, 0xff, 0xff, 0xff],
            [0x2d, 0x34, 13, 0, 0, 0, 0, 0],
            [0x18, 0x11, 0, 0, 9, 0, 0, 0],
            [0; 8],
            [0x85, 0, 0, 0, 51, 0, 0, 0],
            [0x0f, 0x21, 0, 0, 0, 0, 0, 0],
            [0x1f, 0x23, 0, 0, 0, 0, 0, 0],
            [0x54, 0x05, 0, 0, 0, 0xff, 0xff, 0xff],
            [0x67, 0x00, 0, 0, 2, 0, 0, 0],
            [0xdc, 0x05, 0, 0, 16, 0, 0, 0],
            [0xdb, 0x01, 8, 0, 0, 0, 0, 0],
            [0x18, 0x21, 0, 0, 9, 0, 0, 0],
            [0, 0, 0, 0, 16, 0, 0, 0],
            [0x56, 0x00, 1, 0, 0, 0, 0, 0x80],
            [0x05, 0, 0, 0, 0, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_jump_needs_a_later_label() {
        for places_it in [false, true] {
            let mut program = Assembly::new();
            let label = program.label();
            if places_it {
                program.place(label);
            }
            program.jump_if(Register::R0, Condition::Equal, 0, label);
            program.exit();
            assert_eq!(program.finish(), Err(UnresolvedLabel));
        }
    }
}
