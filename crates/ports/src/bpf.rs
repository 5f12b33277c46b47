//! Small programs that run in the kernel where frames arrive, assembled and loaded here.
//!
//! They are a few dozen instructions each, so they are written as such and no compiler of eBPF is
//! needed. The kernel checks every program before it takes it; a program, its map and its place at
//! an interface go when the process that holds them goes.

mod call;
/// Instructions, and from them programs.
pub mod instruction;
/// Tables that the kernel and this process share.
pub mod map;
/// Programs in the kernel.
pub mod program;
/// Tables that this process has mapped.
pub mod shared;
