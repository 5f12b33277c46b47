//! Assembler and loader of eBPF programs (RFC 9669), without a compiler or a library in between.
//!
//! - [`Assembly`] builds a program instruction by instruction and resolves its labels.
//!   [`disassemble`] prints it.
//! - [`Program`] loads it: the kernel verifies every program before it accepts it. An
//!   [`Attachment`] runs it for the frames of an interface.
//! - [`Map`], [`Counters`], [`MappedArray`] and [`SharedMemory`] share data with a program.
//! - [`Program::run_once`] runs a program on a frame for tests, and measures its time.
//! - A program, its maps and its attachment end with the process that owns them.
//!
//! This crate knows no packet formats. Its users write programs that do.
//!
//! ```
//! use ebpf::{Assembly, Condition, Register, Width, disassemble};
//!
//! // Drops frames of less than 60 bytes (result 1), and passes others (result 2).
//! let mut program = Assembly::new();
//! let short = program.label("short");
//! program.load(Width::Word, Register::R2, Register::R1, 0);
//! program.load(Width::Word, Register::R3, Register::R1, 4);
//! program.add(Register::R2, 60);
//! program.set(Register::R0, 1);
//! program.jump_if_both(Register::R2, Condition::Greater, Register::R3, short);
//! program.set(Register::R0, 2);
//! program.place(short);
//! program.exit();
//! let program = program.finish()?;
//!
//! assert_eq!(
//!     disassemble(&program),
//!     "   0: (61) r2 = *(u32 *)(r1 +0)
//!    1: (61) r3 = *(u32 *)(r1 +4)
//!    2: (07) r2 += 60
//!    3: (b7) r0 = 1
//!    4: (2d) if r2 > r3 goto pc+1
//!    5: (b7) r0 = 2
//!    6: (95) exit
//! "
//! );
//! # Ok::<(), ebpf::LabelError>(())
//! ```
//!
//! As root, `Program::load(&program, c"Apache-2.0")?.attach(interface, XdpMode::Native)` runs it.

mod assembly;
mod call;
mod disassembly;
mod instruction;
mod map;
mod mapped_array;
mod program;
mod shared_memory;

pub use assembly::{Assembly, Label, LabelError};
pub use disassembly::disassemble;
pub use instruction::{
    Condition, EXCEPT_INGRESS, Helper, Instruction, Operation, REDIRECT_TO_ALL, Register, Width,
};
pub use map::{Counters, Layout, Map, MapKind, possible_cores};
pub use mapped_array::MappedArray;
pub use program::{Attachment, Program, TestRun, XdpMode};
pub use shared_memory::SharedMemory;
