//! eBPF programs that run in the kernel where frames arrive, assembled and loaded by this module.
//!
//! - Each has a few dozen instructions, so they are written as instructions and need no eBPF
//!   compiler.
//! - The kernel verifies every program before it accepts it.
//! - A program, its map and its attachment to an interface end with the process that holds them.

mod call;
pub mod instruction;
pub mod map;
pub mod program;
pub mod shared;
