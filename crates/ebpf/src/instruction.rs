//! eBPF instructions: operands, operation codes and layout.
//!
//! Source: RFC 9669, section 3; helpers from Linux `include/uapi/linux/bpf.h`.

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
    /// The first operand is not smaller.
    NotLess = 0x30,
    /// The operands have a common bit.
    CommonBit = 0x40,
    /// The operands differ.
    NotEqual = 0x50,
    /// The first operand is smaller.
    Less = 0xa0,
    /// The first operand is not greater.
    NotGreater = 0xb0,
}

/// Operation of an arithmetic instruction; numbers are unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Adds the second operand.
    Add = 0x00,
    /// Subtracts the second operand.
    Subtract = 0x10,
    /// Multiplies by the second operand.
    Multiply = 0x20,
    /// Divides by the second operand; the quotient by zero is zero.
    Divide = 0x30,
    /// Sets the bits of the second operand.
    Or = 0x40,
    /// Keeps the bits of the second operand.
    And = 0x50,
    /// Shifts to the left by the second operand.
    ShiftLeft = 0x60,
    /// Shifts to the right by the second operand, with zeros from the left.
    ShiftRight = 0x70,
    /// Keeps the rest of the division by the second operand.
    Modulo = 0x90,
    /// Flips the bits of the second operand.
    Xor = 0xa0,
    /// Copies the second operand.
    Move = 0xb0,
}

/// A kernel helper function by its number (`enum bpf_func_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// Returns the address of a map's value.
    MapLookUp = 1,
    /// Sets a map's value.
    MapUpdate = 2,
    /// Deletes a map's entry.
    MapDelete = 3,
    /// Returns the monotonic clock in nanoseconds.
    MonotonicNs = 5,
    /// Returns the number of the processor core.
    CoreNumber = 8,
    /// Continues with the program in a map's entry, if there is one.
    TailCall = 12,
    /// Pushes a VLAN tag on a frame.
    VlanPush = 18,
    /// Pops the outermost VLAN tag.
    VlanPop = 19,
    /// Redirects a frame to an interface.
    Redirect = 23,
    /// Reads bytes of a frame.
    LoadBytes = 26,
    /// Adds up the difference of two byte ranges as an Internet checksum.
    ChecksumDifference = 28,
    /// Moves the start of a frame.
    AdjustHead = 44,
    /// Redirects a frame to the target in a map's entry.
    RedirectMap = 51,
    /// Reserves space before a frame's data.
    AdjustMeta = 54,
    /// Moves the end of a frame.
    AdjustTail = 65,
    /// Returns the monotonic clock in nanoseconds as of the kernel's last tick.
    CoarseNs = 160,
    /// Reads bytes of a frame, in XDP programs.
    XdpLoadBytes = 189,
    /// Writes bytes into a frame.
    StoreBytes = 190,
}

impl Helper {
    /// Returns the kernel's name of the helper with this number, if a program can call it.
    pub(crate) fn name(number: i32) -> Option<&'static str> {
        Some(match number {
            1 => "bpf_map_lookup_elem",
            2 => "bpf_map_update_elem",
            3 => "bpf_map_delete_elem",
            5 => "bpf_ktime_get_ns",
            8 => "bpf_get_smp_processor_id",
            12 => "bpf_tail_call",
            18 => "bpf_skb_vlan_push",
            19 => "bpf_skb_vlan_pop",
            23 => "bpf_redirect",
            26 => "bpf_skb_load_bytes",
            28 => "bpf_csum_diff",
            44 => "bpf_xdp_adjust_head",
            51 => "bpf_redirect_map",
            54 => "bpf_xdp_adjust_meta",
            65 => "bpf_xdp_adjust_tail",
            160 => "bpf_ktime_get_coarse_ns",
            189 => "bpf_xdp_load_bytes",
            190 => "bpf_xdp_store_bytes",
            _ => return None,
        })
    }
}

/// One instruction of 8 bytes, in the kernel's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub(crate) code: u8,
    /// The destination in the lower half, the source in the upper.
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

// Instruction classes and modes (RFC 9669, section 3).
pub(crate) const LOAD: u8 = 0x61;
pub(crate) const STORE: u8 = 0x63;
pub(crate) const STORE_IMMEDIATE: u8 = 0x62;
pub(crate) const LOAD_WIDE: u8 = 0x18;
pub(crate) const ARITHMETIC: u8 = 0x07;
pub(crate) const ARITHMETIC_WORD: u8 = 0x04;
pub(crate) const WITH_REGISTER: u8 = 0x08;
pub(crate) const ADD_IMMEDIATE: u8 = 0x07;
pub(crate) const ADD: u8 = 0x0f;
pub(crate) const SUBTRACT: u8 = 0x1f;
pub(crate) const AND_WORD: u8 = 0x54;
pub(crate) const SHIFT_LEFT: u8 = 0x67;
pub(crate) const TO_BIG_ENDIAN: u8 = 0xdc;
pub(crate) const ATOMIC_ADD: u8 = 0xdb;
pub(crate) const MOVE_IMMEDIATE: u8 = 0xb7;
pub(crate) const MOVE: u8 = 0xbf;
pub(crate) const JUMP_IMMEDIATE: u8 = 0x05;
pub(crate) const JUMP_REGISTER: u8 = 0x0d;
pub(crate) const JUMP_WORD: u8 = 0x06;
pub(crate) const JUMP_WORD_REGISTER: u8 = 0x0e;
pub(crate) const JUMP: u8 = 0x05;
/// A jump that the kernel takes when a loop runs too long (Linux `BPF_JCOND`, `may_goto`).
pub(crate) const MAY_JUMP: u8 = 0xe5;
pub(crate) const CALL: u8 = 0x85;
pub(crate) const EXIT: u8 = 0x95;

/// Source of a wide load whose immediate is a map's descriptor.
pub(crate) const FROM_MAP: u8 = 1;

/// Source of a wide load of the address of a map's first value, by the map's descriptor.
pub(crate) const FROM_MAP_VALUE: u8 = 2;

/// Flag of [`Helper::RedirectMap`] for a map of interfaces: sends the frame to all of them
/// (`BPF_F_BROADCAST`).
pub const REDIRECT_TO_ALL: i32 = 1 << 3;

/// Flag beside [`REDIRECT_TO_ALL`]: not to the interface that received the frame
/// (`BPF_F_EXCLUDE_INGRESS`).
pub const EXCEPT_INGRESS: i32 = 1 << 4;

/// Source of a call whose immediate is the BTF id of a kernel function.
pub(crate) const OF_KERNEL: u8 = 2;
